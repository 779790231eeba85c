/* Row-wise pieces of softmax and normalisation in float and double, one table per instruction set. Sums run in 32 lanes per leaf of 4096
 * (kernels/fold.h) and over leaves in double, so the bits do not depend on the vector width. */
#ifndef TMK_ROW_OPS_H
#define TMK_ROW_OPS_H

#include <stdint.h>

typedef struct tmk_row_table {
    double (*max)(const void *x, int64_t n);                                   /* NaN wins; n >= 1 */
    double (*sum)(const void *x, int64_t n);
    double (*dot)(const void *a, const void *b, int64_t n);
    double (*exp_sum)(const void *x, int64_t n, double m, void *out);          /* sum of e = exp(x - m), which goes to out if not NULL */
    double (*square_dev)(const void *x, int64_t n, double mean);               /* sum of (x - mean)^2 */
    void (*scale)(const void *x, int64_t n, double by, void *out);             /* x * by */
    void (*shift)(const void *x, int64_t n, double m, double l, void *out);    /* (x - m) - l */
    void (*softmax_grad)(const void *g, const void *y, int64_t n, double dot, void *out);      /* y (g - dot) */
    void (*log_softmax_grad)(const void *g, const void *y, int64_t n, double sum, void *out);  /* g - exp(y) sum */
    /* (x - mean) rstd w + b; w and b may be NULL; with no mean (rms) give 0 */
    void (*normalize)(const void *x, int64_t n, double mean, double rstd, const void *w, const void *b, void *out);
    /* s[0] = sum of g w, s[1] = sum of g w xhat, xhat = (x - mean) rstd; w may be NULL */
    void (*grad_sums)(const void *g, const void *x, const void *w, int64_t n, double mean, double rstd, double *s);
    /* rstd (g w - c0 - xhat c1) */
    void (*norm_grad)(const void *g, const void *x, const void *w, int64_t n, double mean, double rstd, double c0, double c1, void *out);
    /* dw += g xhat, db += g; each may be NULL */
    void (*weight_grads)(const void *g, const void *x, int64_t n, double mean, double rstd, void *dw, void *db);
    void (*affine)(const void *x, int64_t n, double a, double b, void *out);                       /* a x + b */
    void (*affine2)(const void *g, const void *x, int64_t n, double a, double b, double c, void *out);   /* a g + b x + c */
    /* columns: one row at a time, state per column */
    void (*column_max)(const void *x, int64_t n, void *m);                     /* m = max(m, x) */
    void (*column_exp)(const void *x, int64_t n, const void *m, void *out, double *sum);  /* sum += e = exp(x - m) -> out unless NULL */
    void (*column_scale)(const void *x, int64_t n, const void *by, void *out); /* x * by */
    void (*column_shift)(const void *x, int64_t n, const void *m, const void *l, void *out);
    void (*column_dot)(const void *a, const void *b, int64_t n, double *sum);  /* sum += a b; b NULL: sum += a */
    void (*column_softmax_grad)(const void *g, const void *y, int64_t n, const void *dot, void *out);
    void (*column_log_softmax_grad)(const void *g, const void *y, int64_t n, const void *sum, void *out);
} tmk_row_table;

/* is_double false: float. */
const tmk_row_table *tmk_row_ops(int is_double);

extern const tmk_row_table tmk_row_table_f32_scalar, tmk_row_table_f32_avx2, tmk_row_table_f32_avx512, tmk_row_table_f32_neon;
extern const tmk_row_table tmk_row_table_f64_scalar, tmk_row_table_f64_avx2, tmk_row_table_f64_avx512, tmk_row_table_f64_neon;

#endif
