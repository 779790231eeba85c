/* Reductions over any set of dims of any strided tensor, in the fixed order of kernels/fold.h. */
#ifndef TMK_REDUCE_H
#define TMK_REDUCE_H

#include "core/tensor_state.h"
#include "kernels/fold.h"

typedef struct tmk_reduction {
    tmk_acc acc;          /* what is computed in */
    tmk_fold fold;
    tmk_map map;
    double power;         /* TMK_MAP_POW */
    const void *centre;   /* TMK_MAP_DEV_SQ, TMK_MAP_EXP_DEV: one number of type acc per output */
} tmk_reduction;

/* How elements of a dtype become accumulator numbers; never NULL. */
tmk_load_fn *tmk_load(tm_dtype from, tmk_acc to);
size_t tmk_acc_size(tmk_acc acc);
/* The dtype whose elements look like the accumulator's. */
tm_dtype tmk_acc_dtype(tmk_acc acc);
/* What sums and products of this dtype are computed in. */
tmk_acc tmk_acc_of(tm_dtype dtype);

/* Bit i: dim i is reduced. dims NULL or empty: all. Dims are in range (shape rules have checked). */
uint64_t tmk_dim_mask(const tm_tensor *t, const tm_int *dims, int64_t n);
/* Number of elements that go into one output, and number of outputs. */
int64_t tmk_reduced_count(const tm_tensor *t, uint64_t mask);
int64_t tmk_output_count(const tm_tensor *t, uint64_t mask);

/* out[o] = fold of map(elements of output o), outputs in logical order of the dims that stay; out is contiguous, of type acc.
 * Reducing nothing gives the identity of the fold. Only TM_NOMEM can fail. */
tm_status tmk_reduce(const tm_tensor *in, uint64_t mask, const tmk_reduction *r, void *out);

/* Temporary numbers of type acc; NULL with TM_NOMEM recorded. */
void *tmk_acc_alloc(tmk_acc acc, int64_t n);
void tmk_acc_free(tmk_acc acc, int64_t n, void *p);
/* Writes n = numel(t) numbers in logical order into t, converted to its dtype. */
void tmk_acc_store(tm_tensor *t, tmk_acc acc, const void *values);

#endif
