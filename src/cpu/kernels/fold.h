/* Folding many numbers into one: the vectorised inner loops, one table per instruction set.
 *
 * The order of every reduction is a property of the logical problem: the reduced elements, in logical order, are cut into leaves of
 * TMK_LEAF; inside a leaf element i goes to lane i % TMK_LANES, lanes are combined as a binary tree (j with j + 16, then j + 8 ...) and
 * leaves as a binary tree too. Layout, axis, vector width and number of threads only change who does which part, never the bits. */
#ifndef TMK_FOLD_H
#define TMK_FOLD_H

#include "core/dtype.h"

enum { TMK_LANES = 32, TMK_LEAF = 4096 };

typedef enum tmk_acc { TMK_ACC_F32, TMK_ACC_F64, TMK_ACC_I64, TMK_ACC_U8, TMK_ACC_C64, TMK_ACC_C128, TMK_ACC_COUNT } tmk_acc;
typedef enum tmk_fold { TMK_FOLD_SUM, TMK_FOLD_PROD, TMK_FOLD_MAX, TMK_FOLD_MIN, TMK_FOLD_COUNT } tmk_fold;
/* What happens to an element first. DEV_SQ: (x - param)^2; EXP_DEV: exp(x - param); POW: |x|^param; NONZERO: x != 0. */
typedef enum tmk_map {
    TMK_MAP_ID, TMK_MAP_ABS, TMK_MAP_SQUARE, TMK_MAP_NONZERO, TMK_MAP_NAN_ZERO, TMK_MAP_NOT_NAN, TMK_MAP_POW, TMK_MAP_DEV_SQ,
    TMK_MAP_EXP_DEV, TMK_MAP_COUNT
} tmk_map;

/* dst[i] = (accumulator)src[i * stride]; complex to real is the magnitude, anything to U8 is "not zero" */
typedef void tmk_load_fn(const void *src, int64_t stride, int64_t n, void *dst);

typedef struct tmk_fold_table {
    /* lanes[i % 32] = fold(lanes[i % 32], x[i]) */
    void (*row[TMK_ACC_COUNT][TMK_FOLD_COUNT])(const void *x, int64_t n, void *lanes);
    /* acc[b] = fold(acc[b], x[r * stride + b]) for r in order, b < width; stride in elements */
    void (*rows[TMK_ACC_COUNT][TMK_FOLD_COUNT])(const void *x, int64_t stride, int64_t n_rows, int64_t width, void *acc);
    /* out = lanes combined as a tree */
    void (*tree[TMK_ACC_COUNT][TMK_FOLD_COUNT])(void *lanes, void *out);
    tmk_load_fn *load[TM_DTYPE_COUNT][TMK_ACC_COUNT];   /* NULL: see tmk_load */
    /* dst[i] = map(src[i], param[i * step]); dst may be src */
    void (*map[TMK_ACC_COUNT][TMK_MAP_COUNT])(const void *src, int64_t n, void *dst, const void *param, int64_t step);
    /* per column the extreme over n_rows >= 1 rows (at most 2^31) and the first row that has it, as an integer as wide as the number;
     * NaN is beyond all; [0] largest, [1] smallest */
    void (*arg_rows[TMK_ACC_COUNT][2])(const void *x, int64_t stride, int64_t n_rows, int64_t width, void *best, void *index);
} tmk_fold_table;

/* The table for the instruction set in use. */
const tmk_fold_table *tmk_folds(void);

extern const tmk_fold_table tmk_fold_table_scalar, tmk_fold_table_avx2, tmk_fold_table_avx512, tmk_fold_table_neon;

#endif
