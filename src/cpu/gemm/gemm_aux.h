/* What surrounds the micro-kernels: packing with conversion, dot products for skinny shapes, narrowing. Compiled once per instruction
 * set (src/cpu/kernels/gemm_aux.c); one table each. */
#ifndef TMI_GEMM_AUX_H
#define TMI_GEMM_AUX_H

#include "taimatsu/tensor.h"

/* dst[k * pad + i] = src[i * sw + k * sk] for i < width, 0 for width <= i < pad; k < kc. Converted to float (double from double). */
typedef void tmk_pack_fn(void *dst, int64_t width, int64_t pad, int64_t kc, const void *src, int64_t sw, int64_t sk);
/* out[i * out_s] = sum over k of w[i * w_s + k] * x[k] for i < rows, as float or double. */
typedef void tmk_dot_rows_fn(void *out, int64_t out_s, int64_t rows, int64_t k, const void *w, int64_t w_s, const void *x);
/* y[j] += sum over i < k of w[i * w_s + j] * x[i] for j < n. */
typedef void tmk_axpy_rows_fn(void *y, int64_t n, int64_t k, const void *w, int64_t w_s, const void *x);
/* Rounds n floats to the narrow dtype, and widens. */
typedef void tmk_narrow_fn(void *dst, const float *src, int64_t n);
typedef void tmk_widen_fn(float *dst, const void *src, int64_t n);

typedef struct tmk_gemm_aux {
    tmk_pack_fn *pack_f32, *pack_f64, *pack_f16, *pack_bf16;
    tmk_dot_rows_fn *dot_rows_f32, *dot_rows_f64, *dot_rows_f16, *dot_rows_bf16;   /* narrow: w narrow, x and out float */
    tmk_axpy_rows_fn *axpy_rows_f32, *axpy_rows_f64, *axpy_rows_f16, *axpy_rows_bf16;
    tmk_narrow_fn *narrow_f16, *narrow_bf16;
    tmk_widen_fn *widen_f16, *widen_bf16;
} tmk_gemm_aux;

extern const tmk_gemm_aux tmk_gemm_aux_scalar, tmk_gemm_aux_avx2, tmk_gemm_aux_avx512, tmk_gemm_aux_neon;
const tmk_gemm_aux *tmi_gemm_aux(void);   /* of the level in use */

#endif
