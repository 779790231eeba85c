/* What attention does to the rows of a tile of scores, compiled once per instruction set (src/cpu/kernels/attention_rows.c). */
#ifndef TMI_ATTENTION_ROWS_H
#define TMI_ATTENTION_ROWS_H

#include <stdint.h>

/* Tiles have row stride ld >= the columns rounded up to 16; columns between are filled with -inf on the way. */
typedef struct tmk_attention_rows {
    /* Online softmax: max[r] and sum[r] take in the row, the row becomes exp(s - max), shrink[r] = exp(old max - new max). */
    void (*soft_f32)(float *s, int64_t ld, int64_t rows, int64_t cols, float *max, float *sum, float *shrink);
    void (*soft_f64)(double *s, int64_t ld, int64_t rows, int64_t cols, double *max, double *sum, double *shrink);
    /* The row becomes exp(s - lse[r]). */
    void (*weights_f32)(float *s, int64_t ld, int64_t rows, int64_t cols, const float *lse);
    void (*weights_f64)(double *s, int64_t ld, int64_t rows, int64_t cols, const double *lse);
    /* dp becomes p * (dp - delta[r]). */
    void (*scores_grad_f32)(const float *p, float *dp, int64_t ld, int64_t rows, int64_t cols, const float *delta);
    void (*scores_grad_f64)(const double *p, double *dp, int64_t ld, int64_t rows, int64_t cols, const double *delta);
} tmk_attention_rows;

extern const tmk_attention_rows tmk_attention_rows_scalar, tmk_attention_rows_avx2, tmk_attention_rows_avx512, tmk_attention_rows_neon;

#endif
