/* Changing the size of a tensor that exists: resize_ and out= results. */
#ifndef TMI_RESIZE_H
#define TMI_RESIZE_H

#include "core/tensor_state.h"

/* t becomes a view of these sizes (strides NULL: contiguous) at its own offset; the storage grows when it must. */
tm_status tmi_resize(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides);
/* The same for an out= tensor: nothing where the sizes agree. */
tm_status tmi_resize_output(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides);

#endif
