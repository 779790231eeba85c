/* Products of matrices and vectors: shape rules with PyTorch's checks, and the composites. */
#include "op_bodies.h"
#include "ops.h"

#include "base/vec.h"
#include "boxing.h"
#include "op_ids.h"
#include "shapes.h"

/* ---------------------------------------------------------------- shape rules */

static const char *c_name(int dtype)
{
    switch (dtype) {
    case TM_BOOL: return "bool";
    case TM_U8: return "unsigned char";
    case TM_I8: return "signed char";
    case TM_I16: return "short int";
    case TM_I32: return "int";
    case TM_I64: return "long int";
    case TM_F16: return "c10::Half";
    case TM_F32: return "float";
    case TM_F64: return "double";
    case TM_C64: return "c10::complex<float>";
    case TM_C128: return "c10::complex<double>";
    case TM_BF16: return "c10::BFloat16";
    default: return tmi_dtypes[dtype].name;
    }
}

static const char *message_name(const tm_tensor *t) { return tmi_dtypes[t->dtype].type_name; }

static tm_status meta_2d(tmi_meta *m, tm_int rows, tm_int cols)
{
    tmi_meta_set(m, 2, (tm_int[]){rows, cols});
    return TM_OK;
}

static tm_status check_mm(const tm_tensor *a, const tm_tensor *b)
{
    TMI_REQUIRE(a->sizes[1] == b->sizes[0], TM_SHAPE, "mat1 and mat2 shapes cannot be multiplied (%ldx%ld and %ldx%ld)", (long)a->sizes[0],
                (long)a->sizes[1], (long)b->sizes[0], (long)b->sizes[1]);
    return TM_OK;
}

tm_status tmi_shape_mm(tmi_meta *m, tm_tensor *self, tm_tensor *mat2)
{
    TMI_REQUIRE(self->ndim == 2, TM_SHAPE, "self must be a matrix");
    TMI_REQUIRE(mat2->ndim == 2, TM_SHAPE, "mat2 must be a matrix");
    TMI_TRY(check_mm(self, mat2));
    TMI_REQUIRE(self->dtype == mat2->dtype, TM_INVALID, "expected m1 and m2 to have the same dtype, but got: %s != %s", c_name(self->dtype),
                c_name(mat2->dtype));
    return meta_2d(m, self->sizes[0], mat2->sizes[1]);
}

/* `self` must broadcast to the result. */
static tm_status check_expands(const tm_tensor *self, int ndim, const tm_int *sizes)
{
    char want[256], have[256];
    tmi_format_sizes(want, sizeof want, ndim, sizes);
    tmi_format_sizes(have, sizeof have, self->ndim, self->sizes);
    TMI_REQUIRE(self->ndim <= ndim, TM_SHAPE,
                "expand: the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)", ndim, self->ndim);
    for (int i = ndim - 1; i >= ndim - self->ndim; i--) {
        tm_int s = self->sizes[i - ndim + self->ndim];
        TMI_REQUIRE(s == sizes[i] || s == 1, TM_SHAPE,
                    "The expanded size of the tensor (%ld) must match the existing size (%ld) at non-singleton dimension %d.  Target sizes: %s.  "
                    "Tensor sizes: %s", (long)sizes[i], (long)s, i, want, have);
    }
    return TM_OK;
}

static tm_status check_same(const tm_tensor *a, const char *a_name, const tm_tensor *b, const char *b_name)
{
    TMI_REQUIRE(a->dtype == b->dtype, TM_INVALID, "%s and %s must have the same dtype, but got %s and %s", a_name, b_name, message_name(a),
                message_name(b));
    return TM_OK;
}

tm_status tmi_shape_addmm(tmi_meta *m, tm_tensor *self, tm_tensor *mat1, tm_tensor *mat2, tm_scalar beta, tm_scalar alpha)
{
    TMI_REQUIRE(mat1->ndim == 2, TM_SHAPE, "mat1 must be a matrix, got %d-D tensor", mat1->ndim);
    TMI_REQUIRE(mat2->ndim == 2, TM_SHAPE, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
    TMI_TRY(check_mm(mat1, mat2));
    TMI_TRY(check_same(mat1, "mat1", mat2, "mat2"));
    TMI_TRY(check_same(self, "self", mat2, "mat2"));
    TMI_TRY(check_expands(self, 2, (tm_int[]){mat1->sizes[0], mat2->sizes[1]}));
    return meta_2d(m, mat1->sizes[0], mat2->sizes[1]);
}

static tm_status check_batches(const tm_tensor *a, const tm_tensor *b)
{
    TMI_REQUIRE(a->ndim == 3, TM_SHAPE, "batch1 must be a 3D tensor");
    TMI_REQUIRE(b->ndim == 3, TM_SHAPE, "batch2 must be a 3D tensor");
    TMI_REQUIRE(b->sizes[0] == a->sizes[0] && b->sizes[1] == a->sizes[2], TM_SHAPE,
                "Expected size for first two dimensions of batch2 tensor to be: [%ld, %ld] but got: [%ld, %ld].", (long)a->sizes[0],
                (long)a->sizes[2], (long)b->sizes[0], (long)b->sizes[1]);
    TMI_REQUIRE(a->dtype == b->dtype, TM_INVALID, "expected scalar type %s but found %s", message_name(a), message_name(b));
    return TM_OK;
}

tm_status tmi_shape_bmm(tmi_meta *m, tm_tensor *self, tm_tensor *mat2)
{
    TMI_TRY(check_batches(self, mat2));
    tmi_meta_set(m, 3, (tm_int[]){self->sizes[0], self->sizes[1], mat2->sizes[2]});
    return TM_OK;
}

tm_status tmi_shape_baddbmm(tmi_meta *m, tm_tensor *self, tm_tensor *batch1, tm_tensor *batch2, tm_scalar beta, tm_scalar alpha)
{
    TMI_TRY(check_batches(batch1, batch2));
    tm_int sizes[] = {batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]};
    TMI_TRY(check_expands(self, 3, sizes));
    TMI_REQUIRE(self->dtype == batch1->dtype, TM_INVALID, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                c_name(self->dtype), c_name(batch1->dtype), c_name(batch2->dtype));
    tmi_meta_set(m, 3, sizes);
    return TM_OK;
}

tm_status tmi_shape_addbmm(tmi_meta *m, tm_tensor *self, tm_tensor *batch1, tm_tensor *batch2, tm_scalar beta, tm_scalar alpha)
{
    TMI_REQUIRE(batch1->ndim == 3, TM_SHAPE, "batch1 must be a 3D tensor");
    TMI_REQUIRE(batch2->ndim == 3, TM_SHAPE, "batch2 must be a 3D tensor");
    TMI_REQUIRE(batch1->sizes[0] == batch2->sizes[0], TM_SHAPE, "batch1 and batch2 must have same number of batches, got %ld and %ld",
                (long)batch1->sizes[0], (long)batch2->sizes[0]);
    TMI_REQUIRE(batch1->sizes[2] == batch2->sizes[1], TM_SHAPE, "Incompatible matrix sizes for bmm (%ldx%ld and %ldx%ld)", (long)batch1->sizes[1],
                (long)batch1->sizes[2], (long)batch2->sizes[1], (long)batch2->sizes[2]);
    TMI_TRY(check_same(batch1, "mat1", batch2, "mat2"));
    TMI_TRY(check_same(self, "self", batch2, "mat2"));
    TMI_TRY(check_expands(self, 2, (tm_int[]){batch1->sizes[1], batch2->sizes[2]}));
    return meta_2d(m, batch1->sizes[1], batch2->sizes[2]);
}

static tm_status check_mv(const tm_tensor *self, tm_int length, const tm_tensor *mat, const tm_tensor *vec)
{
    TMI_REQUIRE(mat->ndim == 2 && vec->ndim == 1 && self->ndim <= 2, TM_SHAPE, "vector + matrix @ vector expected, got %d, %d, %d",
                self == mat ? 1 : self->ndim, mat->ndim, vec->ndim);
    TMI_REQUIRE(mat->sizes[1] == vec->sizes[0] && (length == mat->sizes[0] || length == 1), TM_SHAPE,
                "size mismatch, got input (%ld), mat (%ldx%ld), vec (%ld)", (long)length, (long)mat->sizes[0], (long)mat->sizes[1],
                (long)vec->sizes[0]);
    return TM_OK;
}

tm_status tmi_shape_mv(tmi_meta *m, tm_tensor *self, tm_tensor *vec)
{
    TMI_TRY(check_mv(self, self->ndim ? self->sizes[0] : 1, self, vec));
    TMI_REQUIRE(self->dtype == vec->dtype, TM_INVALID, "addmv input tensors must have the same dtype, but got %s, %s, and %s", message_name(vec),
                message_name(self), message_name(vec));
    tmi_meta_set(m, 1, self->sizes);
    return TM_OK;
}

tm_status tmi_shape_addmv(tmi_meta *m, tm_tensor *self, tm_tensor *mat, tm_tensor *vec, tm_scalar beta, tm_scalar alpha)
{
    TMI_REQUIRE(self->ndim <= 1, TM_SHAPE, "vector + matrix @ vector expected, got %d, %d, %d", self->ndim, mat->ndim, vec->ndim);
    TMI_TRY(check_mv(self, self->numel, mat, vec));
    TMI_REQUIRE(self->dtype == mat->dtype && mat->dtype == vec->dtype, TM_INVALID,
                "addmv input tensors must have the same dtype, but got %s, %s, and %s", message_name(self), message_name(mat), message_name(vec));
    tmi_meta_set(m, 1, mat->sizes);
    return TM_OK;
}

static tm_status check_dot(const tm_tensor *self, const tm_tensor *other)
{
    TMI_REQUIRE(self->ndim == 1 && other->ndim == 1, TM_SHAPE, "1D tensors expected, but got %dD and %dD tensors", self->ndim, other->ndim);
    TMI_REQUIRE(self->dtype == other->dtype, TM_INVALID, "dot : expected both vectors to have same dtype, but found %s and %s", message_name(self),
                message_name(other));
    TMI_REQUIRE(self->numel == other->numel, TM_SHAPE,
                "inconsistent tensor size, expected tensor [%ld] and src [%ld] to have the same number of elements, but got %ld and %ld elements "
                "respectively", (long)self->numel, (long)other->numel, (long)self->numel, (long)other->numel);
    return TM_OK;
}

tm_status tmi_shape_dot(tmi_meta *m, tm_tensor *self, tm_tensor *tensor)
{
    TMI_TRY(check_dot(self, tensor));
    tmi_meta_set(m, 0, NULL);
    return TM_OK;
}

/* ---------------------------------------------------------------- vectors */

tm_tensor *tmi_vdot(tm_tensor *self, tm_tensor *other)
{
    TMI_TRY_PTR(check_dot(self, other));
    return tm_dot(tmi_conj_for_grad(self), other);
}

tm_tensor *tmi_outer(tm_tensor *self, tm_tensor *vec2)
{
    TMI_REQUIRE_PTR(self->ndim == 1, TM_SHAPE, "outer: Expected 1-D argument self, but got %d-D", self->ndim);
    TMI_REQUIRE_PTR(vec2->ndim == 1, TM_SHAPE, "outer: Expected 1-D argument vec2, but got %d-D", vec2->ndim);
    return tm_mul(tm_view(self, (tm_int[]){self->sizes[0], 1}, 2), vec2);
}

static bool is_number(tm_scalar s, double x) { return s.tag != TM_SCALAR_C128 && tmi_scalar_f64(s) == x; }

/* For bool "plus" is or, "times" is and. */
static tm_tensor *addr_bool(tm_tensor *self, tm_tensor *product, bool beta, bool alpha)
{
    if (!alpha) product = tm_zeros_like(product);
    return beta ? tm_logical_or(product, self) : product;
}

tm_tensor *tmi_addr(tm_tensor *self, tm_tensor *vec1, tm_tensor *vec2, tm_scalar beta, tm_scalar alpha)
{
    TMI_REQUIRE_PTR(vec1->ndim == 1, TM_SHAPE, "addr: Expected 1-D argument vec1, but got %d-D", vec1->ndim);
    TMI_REQUIRE_PTR(vec2->ndim == 1, TM_SHAPE, "addr: Expected 1-D argument vec2, but got %d-D", vec2->ndim);
    TMI_TRY_PTR(check_expands(self, 2, (tm_int[]){vec1->sizes[0], vec2->sizes[0]}));
    bool integral = !tmi_is_float(self->dtype) && !tmi_is_complex(self->dtype) && !tmi_is_float(vec1->dtype) && !tmi_is_float(vec2->dtype);
    TMI_REQUIRE_PTR(!integral || beta.tag <= TM_SCALAR_U64, TM_INVALID, "For integral input tensors, argument beta must not be a floating point number.");
    TMI_REQUIRE_PTR(!integral || alpha.tag <= TM_SCALAR_U64, TM_INVALID, "For integral input tensors, argument alpha must not be a floating point number.");
    if (self->dtype == TM_BF16 || self->dtype == TM_F16) {   /* one rounding, at the end */
        tm_tensor *wide = tmi_addr(tm_to_dtype(self, TM_F32), tm_to_dtype(vec1, TM_F32), tm_to_dtype(vec2, TM_F32), beta, alpha);
        return tm_to_dtype(wide, self->dtype);
    }
    tm_tensor *product = tmi_outer(vec1, vec2);
    if (product && self->dtype == TM_BOOL && product->dtype == TM_BOOL)
        return addr_bool(self, product, !is_number(beta, 0), !is_number(alpha, 0));
    if (!is_number(alpha, 1)) product = tm_mul_scalar(product, alpha);
    if (is_number(beta, 0)) return product && product->dtype != self->dtype ? tm_add(product, tm_zeros_like(self)) : product;
    return tm_add(is_number(beta, 1) ? self : tm_mul_scalar(self, beta), product);
}

tm_tensor *tmi_vecdot(tm_tensor *x, tm_tensor *y, tm_int dim)
{
    return tm_sum_dim_intlist(tm_mul(tmi_conj_for_grad(x), y), (tm_int[]){dim}, 1);
}

static tm_tensor *cross_part(tm_tensor *a, tm_tensor *b, tm_int dim, int i)
{
    int j = (i + 1) % 3, k = (i + 2) % 3;
    tm_tensor *p = tm_mul(tm_select_int(a, dim, j), tm_select_int(b, dim, k));
    return tm_sub(p, tm_mul(tm_select_int(a, dim, k), tm_select_int(b, dim, j)));
}

tm_tensor *tmi_linalg_cross(tm_tensor *self, tm_tensor *other, tm_int dim)
{
    TMI_REQUIRE_PTR(self->ndim == other->ndim, TM_SHAPE, "linalg.cross: inputs must have the same number of dimensions.");
    tm_int at = dim;
    TMI_TRY_PTR(tmi_wrap_dim(&at, self->ndim));
    TMI_REQUIRE_PTR(self->sizes[at] == 3 && other->sizes[at] == 3, TM_SHAPE,
                    "linalg.cross: inputs dimension %ld must have length 3. Got %ld and %ld", (long)dim, (long)self->sizes[at], (long)other->sizes[at]);
    tm_tensor *parts[3] = {cross_part(self, other, at, 0), cross_part(self, other, at, 1), cross_part(self, other, at, 2)};
    return parts[2] ? tm_stack_full(parts, 3, at) : NULL;
}

tm_tensor *tmi_cross(tm_tensor *self, tm_tensor *other, const tm_int *dim)
{
    if (dim) return tmi_linalg_cross(self, other, *dim);
    int n, ndim = self->ndim > other->ndim ? self->ndim : other->ndim;
    tm_int sizes[TMI_MAX_DIMS];
    TMI_TRY_PTR(tmi_broadcast_sizes(self->ndim, self->sizes, other->ndim, other->sizes, &n, sizes));
    for (int i = 0; i < ndim; i++)
        if (sizes[i] == 3) return tmi_linalg_cross(self, other, i);
    return tmi_fail(TM_INVALID, "no dimension of size 3 in input"), NULL;
}

/* ---------------------------------------------------------------- matmul */

/* Leading dims become one: [.., k] -> [rows, k]. */
static tm_tensor *fold(tm_tensor *t)
{
    tm_int rows = 1, k = t->sizes[t->ndim - 1];
    for (int i = 0; i < t->ndim - 1; i++) rows *= t->sizes[i];
    return tm_reshape(t, (tm_int[]){rows, k}, 2);
}

/* The result of a folded product: a's leading dims, then the last dim of a matrix. */
static tm_tensor *unfold_rows(tm_tensor *out, const tm_tensor *a, bool vector)
{
    tm_int sizes[TMI_MAX_DIMS];
    if (!out) return NULL;
    for (int i = 0; i < a->ndim - 1; i++) sizes[i] = a->sizes[i];
    if (vector) return tmo_unsafe_view(out, sizes, a->ndim - 1);
    sizes[a->ndim - 1] = out->sizes[1];
    return tmo_unsafe_view(out, sizes, a->ndim);
}

/* t with its batch dims expanded to `batch` and made one. */
static tm_tensor *batch_of(tm_tensor *t, int n, const tm_int *batch, tm_int count)
{
    tm_int sizes[TMI_MAX_DIMS];
    for (int i = 0; i < n; i++) sizes[i] = batch[i];
    sizes[n] = t->sizes[t->ndim - 2];
    sizes[n + 1] = t->sizes[t->ndim - 1];
    bool same = t->ndim == n + 2;
    for (int i = 0; i < n && same; i++) same = t->sizes[i] == batch[i];
    tm_tensor *wide = same ? t : tm_expand(t, sizes, n + 2);
    return n == 1 ? wide : tm_reshape(wide, (tm_int[]){count, sizes[n], sizes[n + 1]}, 3);
}

static tm_tensor *matmul_batched(tm_tensor *a, tm_tensor *b)
{
    tm_int batch[TMI_MAX_DIMS], count = 1;
    int n;
    TMI_TRY_PTR(tmi_broadcast_sizes(a->ndim - 2, a->sizes, b->ndim - 2, b->sizes, &n, batch));
    for (int i = 0; i < n; i++) count *= batch[i];
    tm_int rows = a->sizes[a->ndim - 2], cols = b->sizes[b->ndim - 1];
    tm_tensor *out = tm_bmm(batch_of(a, n, batch, count), batch_of(b, n, batch, count));
    batch[n] = rows;
    batch[n + 1] = cols;
    return tmo_unsafe_view(out, batch, n + 2);
}

tm_tensor *tmi_matmul(tm_tensor *self, tm_tensor *other)
{
    int a = self->ndim, b = other->ndim;
    TMI_REQUIRE_PTR(a >= 1 && b >= 1, TM_SHAPE, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a, b);
    if (a == 2 && b == 2) return tm_mm(self, other);
    if (a == 1 && b == 1) return tm_dot(self, other);
    if (a == 2 && b == 1) return tm_mv(self, other);
    if (a == 1 && b == 2) return tm_squeeze_dim(tm_mm(tm_unsqueeze(self, 0), other), 0);
    if (b == 1) return unfold_rows(tm_mv(fold(self), other), self, true);
    if (b == 2) return unfold_rows(tm_mm(fold(self), other), self, false);
    if (a == 1) return tm_squeeze_dim(matmul_batched(tm_unsqueeze(self, 0), other), -2);
    return matmul_batched(self, other);
}

/* The rows of a 2-D addmm, as the layer of any rank. */
static tm_tensor *linear_rows(tm_tensor *input, tm_tensor *wt, tm_tensor *bias)
{
    tm_tensor *out = tm_addmm(bias, fold(input), wt);
    if (!out) return NULL;
    tm_int sizes[TMI_MAX_DIMS];
    for (int i = 0; i < input->ndim - 1; i++) sizes[i] = input->sizes[i];
    sizes[input->ndim - 1] = out->sizes[1];
    return tm_view(out, sizes, input->ndim);
}

tm_tensor *tmi_linear(tm_tensor *input, tm_tensor *weight, tm_tensor *bias)
{
    TMI_REQUIRE_PTR(input->ndim >= 1 && weight->ndim >= 1, TM_SHAPE, "both arguments to linear need to be at least 1D, but they are %dD and %dD",
                    input->ndim, weight->ndim);
    if (!bias) return tmi_matmul(input, tm_t(weight));
    TMI_REQUIRE_PTR(weight->ndim == 2, TM_SHAPE, "mat2 must be a matrix, got %d-D tensor", weight->ndim);
    if (input->dtype != weight->dtype) return check_same(input, "mat1", weight, "mat2"), NULL;
    tm_tensor *wt = tm_t(weight);
    return input->ndim == 2 ? tm_addmm(bias, input, wt) : linear_rows(input, wt, bias);
}

tm_tensor *tmi_bilinear(tm_tensor *input1, tm_tensor *input2, tm_tensor *weight, tm_tensor *bias)
{
    TMI_REQUIRE_PTR(input1->ndim == input2->ndim, TM_SHAPE, "bilinear(): input dimensions do not match: got %d and %d", input1->ndim, input2->ndim);
    int last = input1->ndim - 1;
    for (int i = 0; i < last; i++)
        TMI_REQUIRE_PTR(input1->sizes[i] == input2->sizes[i], TM_SHAPE, "bilinear(): input batch dimensions do not match at dim %d: got %ld and %ld", i,
                        (long)input1->sizes[i], (long)input2->sizes[i]);
    TMI_REQUIRE_PTR(weight->ndim == 3 && last >= 0, TM_SHAPE, "bilinear(): expected a 3-D weight and inputs of at least 1 dimension");
    TMI_REQUIRE_PTR(input1->sizes[last] == weight->sizes[1], TM_SHAPE, "bilinear(): input1 size does not match weight size: got %ld but expected %ld",
                    (long)input1->sizes[last], (long)weight->sizes[1]);
    TMI_REQUIRE_PTR(input2->sizes[last] == weight->sizes[2], TM_SHAPE, "bilinear(): input2 size does not match weight size: got %ld but expected %ld",
                    (long)input2->sizes[last], (long)weight->sizes[2]);
    TMI_REQUIRE_PTR(!bias || bias->sizes[0] == weight->sizes[0], TM_SHAPE, "bilinear(): bias size does not match weight size: got %ld but expected %ld",
                    (long)(bias ? bias->sizes[0] : 0), (long)weight->sizes[0]);
    tm_int out = weight->sizes[0], n1 = weight->sizes[1], n2 = weight->sizes[2], sizes[TMI_MAX_DIMS];
    tm_tensor *x1 = fold(input1), *x2 = fold(input2);
    if (!x1 || !x2) return NULL;
    /* [rows, n1] [n1, out * n2] -> [rows, out, n2]; then with [rows, n2, 1] */
    tm_tensor *w = tm_reshape(tm_permute(weight, (tm_int[]){1, 0, 2}, 3), (tm_int[]){n1, out * n2}, 2);
    tm_tensor *y = tm_bmm(tm_view(tm_mm(x1, w), (tm_int[]){x1->sizes[0], out, n2}, 3), tm_unsqueeze(x2, 2));
    for (int i = 0; i < last; i++) sizes[i] = input1->sizes[i];
    sizes[last] = out;
    y = tm_view(y, sizes, last + 1);
    return bias ? tm_add(y, bias) : y;
}

/* ---------------------------------------------------------------- dims summed over */

/* Permutes t so that the dims of `mask` come last (or first), in the order of `dims`. */
static tm_tensor *gather_dims(tm_tensor *t, const tm_int *dims, int64_t n, bool last, tm_int *kept_size, tm_int *sum_size)
{
    tm_int order[TMI_MAX_DIMS];
    bool summed[TMI_MAX_DIMS] = {false};
    int at = last ? 0 : (int)n, from = last ? t->ndim - (int)n : 0;
    for (int64_t i = 0; i < n; i++) summed[dims[i]] = true;
    *kept_size = *sum_size = 1;
    for (int i = 0; i < t->ndim; i++)
        if (!summed[i]) order[at++] = i, *kept_size *= t->sizes[i];
    for (int64_t i = 0; i < n; i++) order[from + i] = dims[i], *sum_size *= t->sizes[dims[i]];
    return tm_permute(t, order, t->ndim);
}

tm_tensor *tmi_tensordot(tm_tensor *self, tm_tensor *other, const tm_int *dims_self, int64_t n_self, const tm_int *dims_other, int64_t n_other)
{
    TMI_REQUIRE_PTR(n_self == n_other, TM_SHAPE, "both dimension lists should have same length");
    TMI_REQUIRE_PTR(self->dtype == other->dtype, TM_INVALID, "both inputs should have same dtype");
    tm_int d1[TMI_MAX_DIMS], d2[TMI_MAX_DIMS], sizes[TMI_MAX_DIMS], rows, cols, k, k2;
    TMI_REQUIRE_PTR(n_self <= self->ndim && n_other <= other->ndim, TM_SHAPE, "tensordot: too many dims to sum over");
    int n = 0;
    for (int64_t i = 0; i < n_self; i++) {
        d1[i] = dims_self[i], d2[i] = dims_other[i];
        TMI_TRY_PTR(tmi_wrap_dim(&d1[i], self->ndim));
        TMI_TRY_PTR(tmi_wrap_dim(&d2[i], other->ndim));
        tm_int s1 = self->sizes[d1[i]], s2 = other->sizes[d2[i]];
        if (s1 == 1 && s2 != 1) other = tm_sum_dim_intlist_full(other, &d2[i], 1, true, TM_DTYPE_DEFAULT);   /* size 1 stands for any */
        if (s2 == 1 && s1 != 1) self = tm_sum_dim_intlist_full(self, &d1[i], 1, true, TM_DTYPE_DEFAULT);
        if (!self || !other) return NULL;
        TMI_REQUIRE_PTR(self->sizes[d1[i]] == other->sizes[d2[i]], TM_SHAPE,
                        "contracted dimensions need to match, but first has size %ld in dim %ld and second has size %ld in dim %ld",
                        (long)self->sizes[d1[i]], (long)dims_self[i], (long)other->sizes[d2[i]], (long)dims_other[i]);
    }
    tm_tensor *a = gather_dims(self, d1, n_self, true, &rows, &k), *b = gather_dims(other, d2, n_other, false, &cols, &k2);
    if (!a || !b) return NULL;
    for (int i = 0; i < self->ndim - n_self; i++) sizes[n++] = a->sizes[i];
    for (int i = (int)n_other; i < other->ndim; i++) sizes[n++] = b->sizes[i];
    tm_tensor *p = tm_mm(tm_reshape(a, (tm_int[]){rows, k}, 2), tm_reshape(b, (tm_int[]){k, cols}, 2));
    return tm_reshape(p, sizes, n);
}

tm_tensor *tmi_inner(tm_tensor *self, tm_tensor *other)
{
    if (self->ndim == 0 || other->ndim == 0) return tm_mul(self, other);
    char a[256], b[256];
    tmi_format_sizes(a, sizeof a, self->ndim, self->sizes);
    tmi_format_sizes(b, sizeof b, other->ndim, other->sizes);
    TMI_REQUIRE_PTR(self->sizes[self->ndim - 1] == other->sizes[other->ndim - 1], TM_SHAPE,
                    "inner() the last dimension must match on both input tensors but got shapes %s and %s", a, b);
    return tmi_tensordot(self, other, (tm_int[]){-1}, 1, (tm_int[]){-1}, 1);
}

/* Dims a0 a1 and b0 b1 -> a0 b0 a1 b1, multiplied and joined two by two. */
tm_tensor *tmi_kron(tm_tensor *self, tm_tensor *other)
{
    int n = self->ndim > other->ndim ? self->ndim : other->ndim;
    TMI_REQUIRE_PTR(2 * n <= TMI_MAX_DIMS, TM_SHAPE, "kron: too many dimensions");
    tm_int a[TMI_MAX_DIMS], b[TMI_MAX_DIMS], out[TMI_MAX_DIMS];
    for (int i = 0; i < n; i++) {
        int ia = i - (n - self->ndim), ib = i - (n - other->ndim);
        a[2 * i] = ia < 0 ? 1 : self->sizes[ia], a[2 * i + 1] = 1;
        b[2 * i] = 1, b[2 * i + 1] = ib < 0 ? 1 : other->sizes[ib];
        out[i] = a[2 * i] * b[2 * i + 1];
    }
    return tmo_unsafe_view(tm_mul(tm_reshape(self, a, 2 * n), tm_reshape(other, b, 2 * n)), out, n);
}

/* ---------------------------------------------------------------- chains and powers */

enum { MAX_CHAIN = 64 };

typedef struct chain {
    tm_tensor *t[MAX_CHAIN];
    int split[MAX_CHAIN][MAX_CHAIN];   /* where the product of [i, j] is parted */
} chain;

/* Dynamic programming over sub-chains (Cormen et al., Introduction to Algorithms, 15.2). */
static void plan_chain(chain *c, int n)
{
    double cost[MAX_CHAIN][MAX_CHAIN];
    for (int i = 0; i < n; i++) cost[i][i] = 0;
    for (int len = 1; len < n; len++)
        for (int i = 0; i + len < n; i++) {
            int j = i + len;
            cost[i][j] = -1;
            for (int s = i; s < j; s++) {
                double q = cost[i][s] + cost[s + 1][j] + (double)c->t[i]->sizes[0] * (double)c->t[s]->sizes[1] * (double)c->t[j]->sizes[1];
                if (cost[i][j] < 0 || q < cost[i][j]) cost[i][j] = q, c->split[i][j] = s;
            }
        }
}

static tm_tensor *run_chain(const chain *c, int i, int j)
{
    return i == j ? c->t[i] : tm_mm(run_chain(c, i, c->split[i][j]), run_chain(c, c->split[i][j] + 1, j));
}

static tm_status check_chain(tm_tensor *const *t, int64_t n)
{
    TMI_REQUIRE(n >= 2, TM_SHAPE, "multi_dot(): expected at least 2 tensors but got %ld", (long)n);
    TMI_REQUIRE(n <= MAX_CHAIN, TM_SHAPE, "multi_dot(): at most %d tensors, but got %ld", MAX_CHAIN, (long)n);
    TMI_REQUIRE(t[0]->ndim == 1 || t[0]->ndim == 2, TM_SHAPE, "multi_dot(): the first tensor must be 1D or 2D but got %dD", t[0]->ndim);
    TMI_REQUIRE(t[n - 1]->ndim == 1 || t[n - 1]->ndim == 2, TM_SHAPE, "multi_dot(): the last tensor must be 1D or 2D but got %dD", t[n - 1]->ndim);
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE(i == 0 || i == n - 1 || t[i]->ndim == 2, TM_SHAPE, "multi_dot(): tensor %ld must be 2D but got %dD", (long)i, t[i]->ndim);
        TMI_REQUIRE(t[i]->dtype == t[0]->dtype, TM_INVALID, "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %ld %s",
                    c_name(t[0]->dtype), (long)i, c_name(t[i]->dtype));
    }
    for (int64_t i = 1; i < n; i++) {
        char a[128], b[128];
        tmi_format_sizes(a, sizeof a, t[i - 1]->ndim, t[i - 1]->sizes);
        tmi_format_sizes(b, sizeof b, t[i]->ndim, t[i]->sizes);
        TMI_REQUIRE(t[i - 1]->sizes[t[i - 1]->ndim - 1] == t[i]->sizes[0], TM_SHAPE, "multi_dot(): tensors %ld and %ld with shapes %s and %s cannot be multiplied",
                    (long)i - 1, (long)i, a, b);
    }
    return TM_OK;
}

tm_tensor *tmi_multi_dot(tm_tensor *const *tensors, int64_t n)
{
    chain c;
    TMI_TRY_PTR(check_chain(tensors, n));
    bool row = tensors[0]->ndim == 1, col = tensors[n - 1]->ndim == 1;
    for (int64_t i = 0; i < n; i++) c.t[i] = tensors[i];
    if (row) c.t[0] = tm_unsqueeze(c.t[0], 0);
    if (col) c.t[n - 1] = tm_unsqueeze(c.t[n - 1], -1);
    if (tm_error_status()) return NULL;
    plan_chain(&c, (int)n);
    tm_tensor *out = run_chain(&c, 0, (int)n - 1);
    if (row) out = tm_squeeze_dim(out, 0);
    return col ? tm_squeeze_dim(out, -1) : out;
}

tm_tensor *tmi_chain_matmul(tm_tensor *const *matrices, int64_t n)
{
    TMI_REQUIRE_PTR(n > 0, TM_INVALID, "chain_matmul(): Expected one or more matrices");
    for (int64_t i = 0; i < n; i++)
        TMI_REQUIRE_PTR(matrices[i]->ndim == 2, TM_SHAPE, "Tensor dimension is %d, expected 2 instead.", matrices[i]->ndim);
    if (n == 1) return tm_clone(matrices[0]);
    return tmi_multi_dot(matrices, n);
}

static tm_tensor *identity_like(tm_tensor *self)
{
    tm_tensor *eye = tm_eye_full(self->sizes[self->ndim - 1], self->dtype, -1, self->device, NULL);
    return tm_clone(tm_expand(eye, self->sizes, self->ndim));
}

tm_tensor *tmi_matrix_power(tm_tensor *self, tm_int n)
{
    TMI_REQUIRE_PTR(self->ndim >= 2, TM_SHAPE, "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
    tm_int rows = self->sizes[self->ndim - 2], cols = self->sizes[self->ndim - 1];
    TMI_REQUIRE_PTR(rows == cols, TM_SHAPE, "linalg.matrix_power: A must be batches of square matrices, but they are %ld by %ld matrices", (long)rows, (long)cols);
    TMI_REQUIRE_PTR(n >= 0, TM_NOT_IMPLEMENTED, "linalg.matrix_power: negative powers need linalg.inv, which this build does not have yet");
    if (n == 0) return identity_like(self);
    if (n == 1) return tm_clone(self);
    tm_tensor *result = NULL, *power = self;
    for (uint64_t left = (uint64_t)n; left; left >>= 1) {
        if (left & 1) result = result ? tm_matmul(result, power) : power;
        if (left > 1) power = tm_matmul(power, power);
    }
    return result;
}

/* ---------------------------------------------------------------- block_diag */

/* t between columns of zeros. */
static tm_tensor *padded_row(tm_tensor *t, tm_int before, tm_int after)
{
    tm_tensor *left = tm_new_zeros(t, (tm_int[]){t->sizes[0], before}, 2), *right = tm_new_zeros(t, (tm_int[]){t->sizes[0], after}, 2);
    tm_tensor *parts[3] = {left, t, right};
    return left && right ? tm_cat_full(parts, 3, 1) : NULL;
}

tm_tensor *tmi_block_diag(tm_tensor *const *tensors, int64_t n)
{
    if (n == 0) return tm_empty_memory_format_full((tm_int[]){1, 0}, 2, TM_DTYPE_DEFAULT, -1, TMI_NO_DEVICE, NULL, -1);
    TMI_VEC(tm_tensor *) rows = {0};
    tm_int cols = 0, at = 0;
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE_PTR(tensors[i]->ndim <= 2, TM_SHAPE, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %ld has %d dimensions",
                        (long)i, tensors[i]->ndim);
        cols += tensors[i]->ndim ? tensors[i]->sizes[tensors[i]->ndim - 1] : 1;
        TMI_TRY_PTR(tmi_promote_tensor(&p, tensors[i]));
    }
    TMI_TRY_PTR(tmi_promoted(&p, &dtype));
    for (int64_t i = 0; i < n && !tm_error_status(); i++) {
        tm_tensor *t = tensors[i]->ndim == 2 ? tensors[i] : tm_reshape(tensors[i], (tm_int[]){1, -1}, 2);
        if (t && t->dtype != dtype) t = tm_to_dtype(t, dtype);
        tm_int width = t ? t->sizes[1] : 0;
        if (!tmi_vec_push(&rows, t ? padded_row(t, at, cols - at - width) : NULL)) break;
        at += width;
    }
    tm_tensor *out = tm_error_status() ? NULL : tm_cat_full(rows.data, n, 0);
    tmi_vec_free(&rows);
    return out;
}
