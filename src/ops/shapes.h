/* The vocabulary of shape and type rules that *.ops blocks name: `shape: reduce(self, dim, keepdim)` calls
 * tmi_shape_reduce(out, self, dim...). Each takes the metas first, then the named arguments in C form: a tensor is tm_tensor*, an int[]
 * is (const tm_int *, int64_t n), int[]? likewise with NULL for absent, a bool is bool, a Scalar is tm_scalar (Scalar?: const tm_scalar*,
 * NULL for absent), a dtype is tm_dtype (TM_DTYPE_DEFAULT for absent), a Tensor[] is (tm_tensor *const *, int64_t n).
 * A rule of one operator's own is declared by `shape: own`, and has the signature tmi_shape_<op>_<overload>(out, all args...). */
#ifndef TMI_SHAPES_H
#define TMI_SHAPES_H

#include "op.h"

/* Sizes (and memory order, when dense) of t. */
tm_status tmi_shape_same(tmi_meta *m, const tm_tensor *t);
/* The same, and dim must be one of t's. */
tm_status tmi_shape_same_along(tmi_meta *m, const tm_tensor *t, tm_int dim);
/* Broadcast of the given tensors; output strides follow the inputs' common memory order as in PyTorch. NULL entries are skipped. */
tm_status tmi_shape_broadcast(tmi_meta *m, int n, const tm_tensor *const *t);
/* dims NULL or empty: all of them. */
tm_status tmi_shape_reduce(tmi_meta *m, const tm_tensor *t, const tm_int *dims, int64_t n_dims, bool keepdim);
tm_status tmi_shape_reduce_one(tmi_meta *m, const tm_tensor *t, tm_int dim, bool keepdim);
/* Resizing of the last 1, 2 or 3 dims (pooling.c); upsample_back: the input's sizes from the gradient of the output. */
tm_status tmi_shape_upsample1d(tmi_meta *m, tm_tensor *self, const tm_int *output_size, int64_t n);
tm_status tmi_shape_upsample2d(tmi_meta *m, tm_tensor *self, const tm_int *output_size, int64_t n);
tm_status tmi_shape_upsample3d(tmi_meta *m, tm_tensor *self, const tm_int *output_size, int64_t n);
tm_status tmi_shape_upsample_back(tmi_meta *m, tm_tensor *grad_output, const tm_int *input_size, int64_t n);
/* Plain sizes, contiguous. */
tm_status tmi_shape_sizes(tmi_meta *m, const tm_int *sizes, int64_t n);
void tmi_meta_set(tmi_meta *m, int ndim, const tm_int *sizes);                    /* contiguous */
void tmi_meta_view(tmi_meta *m, tm_tensor *base, int ndim, const tm_int *sizes, const tm_int *strides, tm_int offset);
void tmi_meta_self(tmi_meta *m, tm_tensor *base);
/* Options of a factory: NULL/default values leave the presets or the default dtype. */
void tmi_meta_options(tmi_meta *m, tm_dtype dtype, tm_device device);

/* One input of a pointwise operator: a tensor, or a number when t is NULL. */
typedef struct tmi_operand {
    const tm_tensor *t;
    tm_scalar s;
} tmi_operand;
/* The type in which a pointwise operator computes. mode 0: promotion over the operands; 1: the same, integers become the default float;
 * 2: the first tensor's. */
tm_status tmi_pointwise_dtype(int n, const tmi_operand *operands, int mode, tm_dtype *out);
/* Broadcast sizes, common device and memory order of the operands into m[0]; the computing type into *common. */
tm_status tmi_shape_pointwise(tmi_meta *m, int n, const tmi_operand *operands, int mode, tm_dtype *common);

#endif
