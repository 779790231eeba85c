/* Pointwise kernels in f64. exp, log, tanh, erf, sin, cos, pow are vector code of ours; the rest asks the C library, element by element. */
#include "cpu/isa/vec_math_f64.h"
#include "cpu/special.h"
#include "kernel_tables.h"

#define S double
#define V vf64
#define M vi64
#define W TMK_W64
#define F(x) v_##x##_f64

TMK_INLINE V m_each(V x, double (*f)(double)) { return v_map_f64(x, f); }
TMK_INLINE V m_each2(V x, V y, double (*f)(double, double)) { return v_map2_f64(x, y, f); }
TMK_INLINE V m_exp(V x) { return v_exp_f64(x); }
TMK_INLINE V m_exp2(V x) { return v_map_f64(x, exp2); }
TMK_INLINE V m_expm1(V x) { return v_map_f64(x, expm1); }
TMK_INLINE V m_log(V x) { return v_log_f64(x); }
TMK_INLINE V m_log2(V x) { return v_map_f64(x, log2); }
TMK_INLINE V m_log10(V x) { return v_map_f64(x, log10); }
TMK_INLINE V m_log1p(V x) { return v_map_f64(x, log1p); }
TMK_INLINE V m_sin(V x) { return v_sin_f64(x); }
TMK_INLINE V m_cos(V x) { return v_cos_f64(x); }
TMK_INLINE V m_tan(V x) { return v_map_f64(x, tan); }
TMK_INLINE V m_asin(V x) { return v_map_f64(x, asin); }
TMK_INLINE V m_acos(V x) { return v_map_f64(x, acos); }
TMK_INLINE V m_atan(V x) { return v_map_f64(x, atan); }
TMK_INLINE V m_sinh(V x) { return v_map_f64(x, sinh); }
TMK_INLINE V m_cosh(V x) { return v_map_f64(x, cosh); }
TMK_INLINE V m_tanh(V x) { return v_tanh_f64(x); }
TMK_INLINE V m_asinh(V x) { return v_map_f64(x, asinh); }
TMK_INLINE V m_acosh(V x) { return v_map_f64(x, acosh); }
TMK_INLINE V m_atanh(V x) { return v_map_f64(x, atanh); }
TMK_INLINE V m_erf(V x) { return v_erf_f64(x); }
TMK_INLINE V m_erfc(V x) { return v_map_f64(x, erfc); }
TMK_INLINE V m_sigmoid(V x) { return 1 / (v_exp_f64(v_neg_f64(x)) + 1); }
TMK_INLINE V m_pow(V x, V y) { return v_pow_f64(x, y); }
TMK_INLINE V m_atan2(V y, V x) { return v_map2_f64(y, x, atan2); }
TMK_INLINE V m_nextafter(V x, V y) { return v_map2_f64(x, y, nextafter); }
TMK_INLINE V m_hypot(V x, V y) { return v_map2_f64(x, y, hypot); }
TMK_INLINE V m_fmod(V x, V y) { return v_map2_f64(x, y, fmod); }

#include "loops_float.tmpl.h"
#include "ops_float.tmpl.h"

#define COLUMN(F, I, U, B, C) F
#define LOOP(form) loop_##form
#define OPERATOR(name) op_##name
#define TMK_KERNEL(name) TMK_NAME(name##_f64)
#define KERNEL_TABLE TMK_NAME(loops_f64)
#include "table.tmpl.h"
