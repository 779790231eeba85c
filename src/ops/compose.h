/* Small helpers of composite bodies and gradient formulas. Results are owned by the open scope, like operators' results. */
#ifndef TMI_COMPOSE_H
#define TMI_COMPOSE_H

#include "op_bodies.h"

tm_tensor *tmi_cast(tm_tensor *t, tm_dtype dtype);                                     /* t itself where it has the dtype */
tm_tensor *tmi_make_zeros(const tm_int *sizes, int64_t n, tm_dtype dtype, tm_device device);
tm_tensor *tmi_make_zeros_as(const tm_tensor *like, const tm_int *sizes, int64_t n);         /* dtype and device of `like` */
tm_tensor *tmi_number_as(const tm_tensor *like, double value);                          /* 0-d tensor */
tm_tensor *tmi_unreduce(tm_tensor *t, const tm_int *dim, int64_t n_dim, bool keepdim, int64_t ndim); /* reduced dims come back with size 1 */
tm_tensor *tmi_sum_to_keep(tm_tensor *t, const tm_int *dim, int64_t n_dim);             /* sum with keepdim; no dims: all */
/* reduction: 0 none, 1 mean, 2 sum. */
tm_tensor *tmi_apply_reduction(tm_tensor *loss, tm_int reduction);
static inline tm_int tmi_wrapped(tm_int dim, int64_t ndim) { return dim < 0 ? dim + (ndim ? ndim : 1) : dim; }
bool tmi_is_complex_tensor(const tm_tensor *t);

#endif
