/* Pointwise kernels of one complex type. The including file defines TYPE, T (complex), R (its real type) and LIBM(x) (the C library's name for
 * this type). Compiled once, for the lowest ISA: complex numbers are rare and their transcendentals come from the C library. */
#define N(x) TMK_CAT3(x, _, TYPE)
#define LIBC(x) LIBM(c##x)

TMK_INLINE T N(pair)(R re, R im)
{
    T z;
    R t[2] = {re, im};
    memcpy(&z, t, sizeof z);
    return z;
}
TMK_INLINE R N(re)(T z) { return LIBM(creal)(z); }
TMK_INLINE R N(im)(T z) { return LIBM(cimag)(z); }
TMK_INLINE T N(param)(const tmk_params *params, int i) { return params ? N(pair)((R)params->p[i].f, (R)params->p[i].im) : 0; }
#define AT(type, k, i) (*(const type *)(data[k] + (i) * steps[k]))

TMK_INLINE void N(loop_UNARY)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, const tmk_params *))
{
    for (int64_t i = 0; i < n; i++) ((T *)data[0])[i] = op(AT(T, 1, i), params);
}
TMK_INLINE void N(loop_BINARY)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T))
{
    T p = N(param)(params, 0);
    for (int64_t i = 0; i < n; i++) ((T *)data[0])[i] = op(AT(T, 1, i), AT(T, 2, i), p);
}
TMK_INLINE void N(loop_EACH)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T))
{
    N(loop_BINARY)(data, steps, n, params, op);
}
TMK_INLINE void N(loop_TERNARY)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T, T))
{
    T p = N(param)(params, 0);
    for (int64_t i = 0; i < n; i++) ((T *)data[0])[i] = op(AT(T, 1, i), AT(T, 2, i), AT(T, 3, i), p);
}
TMK_INLINE void N(loop_TEST)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, bool (*op)(T))
{
    for (int64_t i = 0; i < n; i++) ((bool *)data[0])[i] = op(AT(T, 1, i));
}
TMK_INLINE void N(loop_COMPARE)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params,
                                bool (*op)(T, T, const tmk_params *))
{
    for (int64_t i = 0; i < n; i++) ((bool *)data[0])[i] = op(AT(T, 1, i), AT(T, 2, i), params);
}
TMK_INLINE void N(loop_WHERE)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(bool, T, T))
{
    for (int64_t i = 0; i < n; i++) ((T *)data[0])[i] = op(AT(uint8_t, 1, i) != 0, AT(T, 2, i), AT(T, 3, i));
}
TMK_INLINE void N(loop_PART)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, R (*op)(T))
{
    for (int64_t i = 0; i < n; i++) ((R *)data[0])[i] = op(AT(T, 1, i));
}

/* ---- arithmetic, by the plain formulas: C's own product would call a function that repairs infinities */
TMK_INLINE T N(times)(T a, T b)
{
    return N(pair)(N(re)(a) * N(re)(b) - N(im)(a) * N(im)(b), N(re)(a) * N(im)(b) + N(im)(a) * N(re)(b));
}
/* a / b, scaled by the larger part of b (Smith, 1962). */
TMK_INLINE T N(over)(T a, T b)
{
    R ar = N(re)(a), ai = N(im)(a), br = N(re)(b), bi = N(im)(b);
    if (LIBM(fabs)(br) >= LIBM(fabs)(bi)) {
        if (br == 0 && bi == 0) return N(pair)(ar / LIBM(fabs)(br), ai / LIBM(fabs)(bi));
        R q = bi / br, d = 1 / (br + bi * q);
        return N(pair)((ar + ai * q) * d, (ai - ar * q) * d);
    }
    R q = br / bi, d = 1 / (bi + br * q);
    return N(pair)((ar * q + ai) * d, (ai * q - ar) * d);
}
TMK_INLINE T N(scaled)(T a, R x) { return N(pair)(N(re)(a) * x, N(im)(a) * x); }

TMK_INLINE T N(op_add)(T a, T b, T p) { return a + b; }
TMK_INLINE T N(op_add_scaled)(T a, T b, T p) { return a + N(times)(p, b); }
TMK_INLINE T N(op_sub)(T a, T b, T p) { return a - b; }
TMK_INLINE T N(op_mul)(T a, T b, T p) { return N(times)(a, b); }
TMK_INLINE T N(op_div)(T a, T b, T p) { return N(over)(a, b); }
TMK_INLINE T N(op_pow)(T a, T b, T p)
{
    if (b == 0) return 1;
    if (a == 0 && N(re)(b) > 0 && N(im)(b) == 0) return 0;
    return LIBC(pow)(a, b);
}
TMK_INLINE T N(op_neg)(T a, const tmk_params *p) { return -a; }
TMK_INLINE R N(op_abs)(T a) { return LIBC(abs)(a); }
TMK_INLINE R N(op_angle)(T a) { return LIBC(arg)(a); }
TMK_INLINE T N(op_sgn)(T a, const tmk_params *p)
{
    R m = LIBC(abs)(a);
    return m == 0 ? (T)0 : N(pair)(N(re)(a) / m, N(im)(a) / m);
}
TMK_INLINE T N(op_square)(T a, const tmk_params *p) { return N(times)(a, a); }
TMK_INLINE T N(op_cube)(T a, const tmk_params *p) { return N(times)(N(times)(a, a), a); }
TMK_INLINE T N(op_reciprocal)(T a, const tmk_params *p) { return N(over)(1, a); }
TMK_INLINE T N(op_sqrt)(T a, const tmk_params *p) { return LIBC(sqrt)(a); }
TMK_INLINE T N(op_rsqrt)(T a, const tmk_params *p) { return N(over)(1, LIBC(sqrt)(a)); }
TMK_INLINE T N(op_lerp)(T a, T b, T w, T p)
{
    return LIBC(abs)(w) < (R)0.5 ? a + N(times)(w, b - a) : b - N(times)(b - a, 1 - w);
}
TMK_INLINE T N(op_addcmul)(T a, T b, T c, T p) { return a + N(times)(N(times)(p, b), c); }
TMK_INLINE T N(op_addcdiv)(T a, T b, T c, T p) { return a + N(over)(N(times)(p, b), c); }
TMK_INLINE R N(number_part)(R x, const tmk_params *p)
{
    return x != x ? (R)p->p[0].f : isinf(x) ? (R)(x > 0 ? p->p[1].f : p->p[2].f) : x;
}
TMK_INLINE T N(op_nan_to_num)(T a, const tmk_params *p) { return N(pair)(N(number_part)(N(re)(a), p), N(number_part)(N(im)(a), p)); }
TMK_INLINE T N(op_conj)(T a, const tmk_params *p) { return N(pair)(N(re)(a), -N(im)(a)); }

/* ---- transcendental */
TMK_INLINE T N(op_exp)(T a, const tmk_params *p) { return LIBC(exp)(a); }
TMK_INLINE T N(op_exp2)(T a, const tmk_params *p) { return LIBC(exp)(N(scaled)(a, (R)0.69314718055994531)); }
/* e^a - 1 without cancellation near 0: (e^x - 1) cos y - 2 sin^2(y/2), and e^x sin y. */
TMK_INLINE T N(op_expm1)(T a, const tmk_params *p)
{
    R x = N(re)(a), y = N(im)(a), h = LIBM(sin)(y / 2);
    return N(pair)(LIBM(expm1)(x) * LIBM(cos)(y) - 2 * h * h, LIBM(exp)(x) * LIBM(sin)(y));
}
TMK_INLINE T N(op_log)(T a, const tmk_params *p) { return LIBC(log)(a); }
TMK_INLINE T N(op_log2)(T a, const tmk_params *p) { return N(scaled)(LIBC(log)(a), (R)1.44269504088896341); }
TMK_INLINE T N(op_log10)(T a, const tmk_params *p) { return N(scaled)(LIBC(log)(a), (R)0.434294481903251828); }
TMK_INLINE T N(op_log1p)(T a, const tmk_params *p)
{
    R x = N(re)(a), y = N(im)(a);
    if (LIBM(fabs)(x) > 1 || LIBM(fabs)(y) > 1) return LIBC(log)(N(pair)(x + 1, y));
    return N(pair)(LIBM(log1p)(x * (2 + x) + y * y) / 2, LIBM(atan2)(y, x + 1));
}
TMK_INLINE T N(op_sin)(T a, const tmk_params *p) { return LIBC(sin)(a); }
TMK_INLINE T N(op_cos)(T a, const tmk_params *p) { return LIBC(cos)(a); }
TMK_INLINE T N(op_tan)(T a, const tmk_params *p) { return LIBC(tan)(a); }
TMK_INLINE T N(op_asin)(T a, const tmk_params *p) { return LIBC(asin)(a); }
TMK_INLINE T N(op_acos)(T a, const tmk_params *p) { return LIBC(acos)(a); }
TMK_INLINE T N(op_atan)(T a, const tmk_params *p) { return LIBC(atan)(a); }
TMK_INLINE T N(op_sinh)(T a, const tmk_params *p) { return LIBC(sinh)(a); }
TMK_INLINE T N(op_cosh)(T a, const tmk_params *p) { return LIBC(cosh)(a); }
TMK_INLINE T N(op_tanh)(T a, const tmk_params *p) { return LIBC(tanh)(a); }
TMK_INLINE T N(op_asinh)(T a, const tmk_params *p) { return LIBC(asinh)(a); }
TMK_INLINE T N(op_acosh)(T a, const tmk_params *p) { return LIBC(acosh)(a); }
TMK_INLINE T N(op_atanh)(T a, const tmk_params *p) { return LIBC(atanh)(a); }
TMK_INLINE T N(op_sigmoid)(T a, const tmk_params *p) { return N(over)(1, 1 + LIBC(exp)(-a)); }
TMK_INLINE T N(op_silu)(T a, const tmk_params *p) { return N(over)(a, 1 + LIBC(exp)(-a)); }
TMK_INLINE T N(op_silu_backward)(T g, T a, T p)
{
    T s = N(over)(1, 1 + LIBC(exp)(-a));
    return N(times)(g, N(op_conj)(N(times)(s, 1 + N(times)(a, 1 - s)), NULL));
}
TMK_INLINE T N(op_sigmoid_backward)(T g, T y, T p) { return N(times)(g, N(op_conj)(N(times)(1 - y, y), NULL)); }
TMK_INLINE T N(op_tanh_backward)(T g, T y, T p) { return N(times)(g, N(op_conj)(1 - N(times)(y, y), NULL)); }
TMK_INLINE T N(op_sinc)(T a, const tmk_params *p)
{
    T x = N(scaled)(a, (R)3.14159265358979324);
    return a == 0 ? (T)1 : N(over)(LIBC(sin)(x), x);
}
TMK_INLINE T N(op_logaddexp)(T a, T b, T p)
{
    T m = N(re)(a) >= N(re)(b) ? a : b, s = N(re)(a) >= N(re)(b) ? b : a;
    if (isinf(N(re)(m)) && N(re)(m) == N(re)(s)) return N(re)(m) < 0 ? m : LIBC(log)(LIBC(exp)(a) + LIBC(exp)(b));
    return m + N(op_log1p)(LIBC(exp)(s - m), NULL);
}
TMK_INLINE T N(op_logaddexp2)(T a, T b, T p)
{
    T r = N(op_logaddexp)(N(scaled)(a, (R)0.69314718055994531), N(scaled)(b, (R)0.69314718055994531), 0);
    return N(scaled)(r, (R)1.44269504088896341);
}

/* ---- comparison */
TMK_INLINE bool N(op_eq)(T a, T b, const tmk_params *p) { return a == b; }
TMK_INLINE bool N(op_ne)(T a, T b, const tmk_params *p) { return a != b; }
TMK_INLINE bool N(op_logical_and)(T a, T b, const tmk_params *p) { return a != 0 && b != 0; }
TMK_INLINE bool N(op_logical_or)(T a, T b, const tmk_params *p) { return a != 0 || b != 0; }
TMK_INLINE bool N(op_logical_xor)(T a, T b, const tmk_params *p) { return (a != 0) != (b != 0); }
TMK_INLINE bool N(op_logical_not)(T a) { return a == 0; }
TMK_INLINE bool N(op_isnan)(T a) { return isnan(N(re)(a)) || isnan(N(im)(a)); }
TMK_INLINE bool N(op_isinf)(T a) { return isinf(N(re)(a)) || isinf(N(im)(a)); }
TMK_INLINE bool N(op_isfinite)(T a) { return isfinite(N(re)(a)) && isfinite(N(im)(a)); }
TMK_INLINE bool N(op_isclose)(T a, T b, const tmk_params *p)
{
    if (a == b || (p->p[2].f != 0 && N(op_isnan)(a) && N(op_isnan)(b))) return true;
    R far = LIBC(abs)(a - b);
    return isfinite(far) && far <= p->p[1].f + LIBC(abs)(N(scaled)(b, (R)p->p[0].f));
}
TMK_INLINE T N(op_where)(bool c, T a, T b) { return c ? a : b; }

#define COLUMN(F, I, U, B, C) C
#define LOOP(form) N(loop_##form)
#define OPERATOR(name) N(op_##name)
#define TMK_KERNEL(name) TMK_CAT3(tmk_##name, _, TMK_CAT3(TYPE, _, TMK_ISA))
#define KERNEL_TABLE TMK_CAT3(tmk_loops_, TYPE, TMK_CAT3(_, , TMK_ISA))
#include "table.tmpl.h"

#undef N
#undef LIBC
#undef AT
#undef TYPE
#undef T
#undef R
#undef LIBM
