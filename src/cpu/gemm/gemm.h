/* Matrix products: C = beta * C + alpha * A B, any strides, any dtype but bool, one matrix or a batch.
 *
 * A is m x k, B is k x n, C is m x n; element (i, j) of X lies at x[i * x_rs + j * x_cs], strides in elements, any value (0 and negative
 * included; C must not overlap itself or the inputs). beta = 0 never reads C, so NaN there is ignored; alpha = 0 or k = 0 never reads A
 * and B. f16 and bf16 are converted while packing, accumulated in f32 and rounded once; integers wrap.
 *
 * The same bits for any number of threads: tiles are cut by shape alone, each has one owner, and K runs in a fixed order.
 * Denormals are flushed inside tiles (docs/numerics.md); the caller's floating-point mode is restored. */
#ifndef TMI_GEMM_H
#define TMI_GEMM_H

#include "taimatsu/tensor.h"

/* Runs once per finished tile while it is in cache, before rounding to a narrower dtype: element (i, j) of the tile is (row + i, col + j)
 * of C and lies at tile[i * rs + j * cs]. The type is float for f32, f16, bf16 and double for f64. Called from pool threads. */
typedef void tmi_gemm_epilogue(void *ctx, void *tile, int64_t rs, int64_t cs, int64_t row, int64_t rows, int64_t col, int64_t cols);

/* Stands in for reading B: writes the rows [k0, k0 + kc) of columns [col, col + cols) as dst[i * width + j], zeros for cols <= j < width
 * (at most 32 columns).  dst is float for f32, f16, bf16 and double for f64. `batch` is the matrix' number. Called from pool threads. */
typedef void tmi_gemm_load_b(void *ctx, void *dst, int64_t batch, int64_t k0, int64_t kc, int64_t col, int64_t cols, int64_t width);

typedef struct tmi_gemm {
    tm_dtype dtype;                      /* of A, B and C */
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t a_rs, a_cs, b_rs, b_cs, c_rs, c_cs;
    tm_scalar alpha, beta;
    int64_t batch;                       /* 0 counts as 1 */
    int64_t a_bs, b_bs, c_bs;            /* from one matrix of the batch to the next; 0 = the same for all (not for C) */
    tmi_gemm_epilogue *epilogue;         /* NULL: none. Floating dtypes only */
    void *epilogue_ctx;
    tmi_gemm_load_b *load_b;             /* NULL: B is read from memory. f32, f64, f16, bf16 only */
    void *load_b_ctx;
} tmi_gemm;

/* alpha 1, beta 0, one matrix, nothing else set. */
tmi_gemm tmi_gemm_init(tm_dtype dtype, int64_t m, int64_t n, int64_t k);
/* TM_NOMEM, or TM_NOT_IMPLEMENTED for bool. */
tm_status tmi_gemm_run(const tmi_gemm *g);

/* ---- pieces for kernels with their own loops (attention, direct convolution); float or double only, inside pool tasks, no allocation */

/* Columns of B per packed panel. */
int64_t tmi_gemm_panel(tm_dtype dtype);
/* Bytes of B (k x n) when packed whole: panels of `panel` columns, each k x panel, the last one padded with zeros. */
size_t tmi_gemm_packed_bytes(tm_dtype dtype, int64_t k, int64_t n);
/* `src` is f32, f64, f16 or bf16; dst is f64 for f64, else f32. */
void tmi_gemm_pack_b(tm_dtype src, int64_t k, int64_t n, const void *b, int64_t rs, int64_t cs, void *dst);
/* C (row stride ldc, columns adjacent) = alpha * A B + (accumulate ? C : 0) for packed B; any m, n, k. B was packed with `packed_k` >= k rows, of
 * which the first k count. */
void tmi_gemm_tile_f32(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *packed_b, int64_t packed_k, float *c,
                       int64_t ldc, float alpha, bool accumulate);
void tmi_gemm_tile_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t rs, int64_t cs, const double *packed_b, int64_t packed_k, double *c,
                       int64_t ldc, double alpha, bool accumulate);

/* Denormals to zero on this thread until tmi_denormals_restore with the value returned. */
uint64_t tmi_denormals_flush(void);
void tmi_denormals_restore(uint64_t saved);

#endif
