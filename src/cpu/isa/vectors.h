/* One vector vocabulary over all instruction sets. A kernel file is compiled once per ISA with -DTMK_ISA=<isa> -DTMK_ISA_<ISA>=1 and
 * includes this header; everything here is static inline, so no code of one ISA leaks into another's objects.
 *
 * Types: vf32 (TMK_W32 lanes), vf64 (TMK_W64 = TMK_W32 / 2 lanes, or 1 in the scalar vocabulary), vi32/vu32 and vi64/vu64 of the same
 * lanes. A mask is a vi32 (for f32) or vi64 (for f64) whose lanes are 0 or -1. The operators + - * / on floats, and + - & | ^ ~ << >>
 * on integers, work on every vocabulary; a scalar constant of the element type may stand for a vector beside an operator.
 *
 * Functions, for S = f32 and f64:
 *   v_set_S(x)  v_load_S(p)  v_store_S(p, v)  v_load_n_S(p, n)  v_store_n_S(p, v, n)   n < lanes; missing lanes load as 0
 *   v_stream_S(p, v)                                    store past the cache; p is aligned to the vector
 *   v_fma_S(a, b, c) = a * b + c, rounded once          v_sqrt_S  v_rint_S (half to even)  v_floor_S  v_ceil_S  v_trunc_S
 *   v_lt_S v_le_S v_gt_S v_ge_S v_eq_S v_ne_S -> mask   v_isnan_S -> mask
 *   v_sel_S(mask, a, b) = mask ? a : b                  v_any_S(mask), v_all_S(mask) -> bool
 *   v_abs_S  v_neg_S  v_copysign_S(magnitude, sign)     v_max_S(a, b) = a > b ? a : b,  v_min_S = a < b ? a : b
 *   v_bits_S(v) -> vi32/vi64    v_of_bits_S(i) -> vf    the same bits seen otherwise
 *   v_load_mask_S(bytes) -> mask, v_store_mask_S(bytes, mask)   one bool byte per lane
 *   v_sum_S(v), v_hmax_S(v), v_hmin_S(v)                over the lanes, by halves (the order depends on the lane count)
 * and v_i32_of_f32 (towards zero), v_f32_of_i32, v_lo_f64 / v_hi_f64 (lower and upper half of a vf32), v_join_f32(lo, hi) (rounds).
 * In the scalar vocabulary v_hi_f64 repeats v_lo_f64 and v_join_f32 takes `lo`.
 *
 * Every function gives the same bits for a lane on every ISA: fused multiply-add is explicit, nothing is contracted or reassociated. */
#ifndef TMK_VEC_H
#define TMK_VEC_H

/* The iterations of the next loop do not depend on each other, whatever the pointers look like. */
#ifdef __clang__
#define TMK_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TMK_IVDEP _Pragma("GCC ivdep")
#endif

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TMK_INLINE static inline __attribute__((always_inline, unused))
#define TMK_CAT3_(a, b, c) a##b##c
#define TMK_CAT3(a, b, c) TMK_CAT3_(a, b, c)
/* The name of a kernel for the ISA that is being compiled: TMK_NAME(add_f32) is tmk_add_f32_avx2. */
#define TMK_NAME(stem) TMK_CAT3(tmk_##stem, _, TMK_ISA)
#define TMK_LOCAL_NAME(stem) TMK_CAT3(stem, _, TMK_ISA)

#if defined(TMK_ISA_AVX512)
#include "vec_avx512.h"
#elif defined(TMK_ISA_AVX2)
#include "vec_avx2.h"
#elif defined(TMK_ISA_NEON)
#include "vec_neon.h"
#else
#include "vec_scalar.h"
#endif

#endif
