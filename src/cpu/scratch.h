/* Contiguous and converted copies of operands, for kernels that want to see plain arrays. */
#ifndef TMK_SCRATCH_H
#define TMK_SCRATCH_H

#include "core/tensor_state.h"

/* A reference of one's own to t's values, contiguous and of this dtype: t itself where it is so already. NULL with an error recorded. */
tm_tensor *tmk_plain(const tm_tensor *t, tm_dtype dtype);
/* Where to write a result that must be contiguous and of this dtype: out itself, or a temporary that tmk_plain_end copies into it. */
tm_tensor *tmk_plain_out(tm_tensor *out, tm_dtype dtype);
/* Ends tmk_plain_out: copies if need be, gives the reference back, passes `status` on. */
tm_status tmk_plain_end(tm_tensor *out, tm_tensor *plain, tm_status status);
/* True if both see the same elements in the same order. */
bool tmk_same_view(const tm_tensor *a, const tm_tensor *b);

/* A tensor on the stack over n contiguous numbers; lives as long as the struct, never retained. */
typedef struct tmk_stack_tensor {
    tm_tensor t;
    tm_storage storage;
} tmk_stack_tensor;
const tm_tensor *tmk_stack_wrap(tmk_stack_tensor *s, void *data, tm_dtype dtype, int ndim, const int64_t *sizes);

#endif
