/* Reductions: shape rules and composite bodies. Gradients are in reduction_grad.c. */
#include <math.h>

#include "compose.h"
#include "ops/shapes.h"
#include "types.h"

/* ---------------------------------------------------------------- shape rules */

tm_status tmi_shape_same_along(tmi_meta *m, const tm_tensor *t, tm_int dim)
{
    TMI_TRY(tmi_wrap_dim(&dim, t->ndim));
    return tmi_shape_same(m, t);
}

tm_status tmi_shape_nansum(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    TMI_REQUIRE(!tmi_is_complex(self->dtype), TM_INVALID, "nansum does not support complex inputs");
    return tmi_shape_reduce(m, self, dim, n_dim, keepdim);
}

static tm_status mean_dtype(tmi_meta *m, const tm_tensor *self, tm_dtype dtype)
{
    tm_dtype d = dtype == TM_DTYPE_DEFAULT ? (tm_dtype)self->dtype : dtype;
    bool fits = tmi_is_float(d) || tmi_is_complex(d);
    if (!fits && dtype == TM_DTYPE_DEFAULT)
        return tmi_fail(TM_INVALID, "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: %s",
                        tmi_dtypes[d].type_name);
    TMI_REQUIRE(fits, TM_INVALID, "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: %s",
                tmi_dtypes[d].type_name);
    m->dtype = (uint8_t)d;
    return TM_OK;
}

tm_status tmi_shape_mean(tmi_meta *m, tm_tensor *self, tm_dtype dtype)
{
    TMI_TRY(tmi_shape_reduce(m, self, NULL, 0, false));
    return mean_dtype(m, self, dtype);
}

tm_status tmi_shape_mean_dim(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    TMI_TRY(tmi_shape_reduce(m, self, dim, n_dim, keepdim));
    return mean_dtype(m, self, dtype);
}

/* Maxima and minima need at least one element, and an order. */
static tm_status nonempty(const char *op, const tm_tensor *t, const tm_int *dim, int64_t n)
{
    TMI_REQUIRE(!tmi_is_complex(t->dtype), TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, tmi_dtypes[t->dtype].type_name);
    if (t->numel > 0) return TM_OK;
    if (n == 0 && !strncmp(op, "arg", 3)) return tmi_fail(TM_INDEX, "%s(): Expected reduction dim to be specified for input.numel() == 0.", op);
    TMI_REQUIRE(n > 0, TM_INVALID, "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
                op);
    for (int64_t i = 0; i < n; i++) {
        tm_int d = tmi_wrapped(dim[i], t->ndim);
        TMI_REQUIRE(t->ndim == 0 || t->sizes[d] > 0, TM_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)d);
    }
    return TM_OK;
}

tm_status tmi_shape_amax(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    TMI_TRY(tmi_shape_reduce(m, self, dim, n_dim, keepdim));
    return nonempty("amax", self, dim, n_dim);
}
tm_status tmi_shape_amin(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    TMI_TRY(tmi_shape_reduce(m, self, dim, n_dim, keepdim));
    return nonempty("amin", self, dim, n_dim);
}
tm_status tmi_shape_max(tmi_meta *m, tm_tensor *self)
{
    TMI_TRY(tmi_shape_reduce(m, self, NULL, 0, false));
    return nonempty("max", self, NULL, 0);
}
tm_status tmi_shape_min(tmi_meta *m, tm_tensor *self)
{
    TMI_TRY(tmi_shape_reduce(m, self, NULL, 0, false));
    return nonempty("min", self, NULL, 0);
}

tm_status tmi_shape_aminmax(tmi_meta *m, tm_tensor *self, const tm_int *dim, bool keepdim)
{
    for (int i = 0; i < 2; i++) {
        TMI_TRY(tmi_shape_reduce(&m[i], self, dim, dim ? 1 : 0, keepdim));
        m[i].dtype = self->dtype;
    }
    return nonempty("aminmax", self, dim, dim ? 1 : 0);
}

static tm_status with_indices(tmi_meta *m, const char *op, const tm_tensor *self, tm_int dim, bool keepdim)
{
    for (int i = 0; i < 2; i++) TMI_TRY(tmi_shape_reduce_one(&m[i], self, dim, keepdim));
    m[1].dtype = TM_I64;
    return nonempty(op, self, &dim, 1);
}
tm_status tmi_shape_max_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return with_indices(m, "max", self, dim, keepdim); }
tm_status tmi_shape_min_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return with_indices(m, "min", self, dim, keepdim); }

static tm_status where_extreme(tmi_meta *m, const char *op, const tm_tensor *self, const tm_int *dim, bool keepdim)
{
    TMI_TRY(tmi_shape_reduce(m, self, dim, dim ? 1 : 0, keepdim));
    m->dtype = TM_I64;
    TMI_REQUIRE(self->dtype != TM_BOOL, TM_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for 'Bool'", op);
    return nonempty(op, self, dim, dim ? 1 : 0);
}
tm_status tmi_shape_argmax(tmi_meta *m, tm_tensor *self, const tm_int *dim, bool keepdim) { return where_extreme(m, "argmax", self, dim, keepdim); }
tm_status tmi_shape_argmin(tmi_meta *m, tm_tensor *self, const tm_int *dim, bool keepdim) { return where_extreme(m, "argmin", self, dim, keepdim); }

/* any and all give bool, but uint8 for uint8. A given but empty list of dims reduces nothing. */
static tm_status truth(tmi_meta *m, const tm_tensor *self, const tm_int *dim, int64_t n, bool keepdim)
{
    if (dim && n == 0) tmi_meta_set(m, self->ndim, self->sizes);
    else TMI_TRY(tmi_shape_reduce(m, self, dim, n, keepdim));
    m->dtype = self->dtype == TM_U8 ? TM_U8 : TM_BOOL;
    return TM_OK;
}
tm_status tmi_shape_any(tmi_meta *m, tm_tensor *self) { return truth(m, self, NULL, 0, false); }
tm_status tmi_shape_all(tmi_meta *m, tm_tensor *self) { return truth(m, self, NULL, 0, false); }
tm_status tmi_shape_any_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return truth(m, self, &dim, 1, keepdim); }
tm_status tmi_shape_all_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return truth(m, self, &dim, 1, keepdim); }
tm_status tmi_shape_any_dims(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim) { return truth(m, self, dim, n_dim, keepdim); }
tm_status tmi_shape_all_dims(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim) { return truth(m, self, dim, n_dim, keepdim); }

static tm_status moments(tmi_meta *m, int n_out, const char *op, const tm_tensor *self, const tm_int *dim, int64_t n, bool keepdim)
{
    TMI_REQUIRE(tmi_is_float(self->dtype) || tmi_is_complex(self->dtype), TM_INVALID, "%s only support floating point and complex dtypes", op);
    TMI_REQUIRE(!tmi_is_complex(self->dtype), TM_NOT_IMPLEMENTED, "%s: complex numbers are not implemented", op);
    for (int i = 0; i < n_out; i++) TMI_TRY(tmi_shape_reduce(&m[i], self, dim, n, keepdim));
    return TM_OK;
}
tm_status tmi_shape_var_correction(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return moments(m, 1, "std and var", self, dim, n_dim, keepdim);
}
tm_status tmi_shape_std_correction(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return moments(m, 1, "std and var", self, dim, n_dim, keepdim);
}
tm_status tmi_shape_var_mean_correction(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return moments(m, 2, "var_mean", self, dim, n_dim, keepdim);
}
tm_status tmi_shape_std_mean_correction(tmi_meta *m, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return moments(m, 2, "std_mean", self, dim, n_dim, keepdim);
}

tm_status tmi_shape_linalg_vector_norm(tmi_meta *m, tm_tensor *self, tm_scalar ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    tm_dtype in = dtype == TM_DTYPE_DEFAULT ? (tm_dtype)self->dtype : dtype;
    TMI_REQUIRE(ord.tag != TM_SCALAR_C128, TM_INVALID, "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
    TMI_REQUIRE(tmi_is_float(self->dtype) || tmi_is_complex(self->dtype), TM_INVALID,
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s", tmi_dtypes[self->dtype].type_name);
    TMI_REQUIRE(tmi_is_float(in) || tmi_is_complex(in), TM_INVALID, "linalg.vector_norm: dtype should be floating point or complex. Got %s",
                tmi_dtypes[in].type_name);
    TMI_REQUIRE(tmi_is_complex(in) == tmi_is_complex(self->dtype), TM_INVALID,
                "linalg.vector_norm: dtype should be %s for %s inputs. Got %s", tmi_is_complex(self->dtype) ? "complex" : "real",
                tmi_is_complex(self->dtype) ? "complex" : "real", tmi_dtypes[in].type_name);
    TMI_REQUIRE(tm_dtype_promote(self->dtype, in) == in, TM_INVALID, "linalg.vector_norm: the dtype of the input (%s) should be convertible "
                "without narrowing to the specified dtype (%s)", tmi_dtypes[self->dtype].type_name, tmi_dtypes[in].type_name);
    double p = tmi_scalar_f64(ord);
    if (self->numel == 0 && (p < 0 || p == INFINITY)) {
        TMI_REQUIRE(dim && n_dim, TM_INVALID, "linalg.vector_norm cannot compute the %g norm on an empty tensor because the operation does not have an identity", p);
        for (int64_t i = 0; i < n_dim; i++) {
            tm_int d = tmi_wrapped(dim[i], self->ndim);
            TMI_REQUIRE(self->ndim == 0 || d >= self->ndim || d < 0 || self->sizes[d] != 0, TM_INVALID,
                        "linalg.vector_norm cannot compute the %g norm on the dimension %lld because this dimension is empty and the operation "
                        "does not have an identity", p, (long long)d);
        }
    }
    TMI_TRY(tmi_shape_reduce(m, self, dim, n_dim, keepdim));
    m->dtype = (uint8_t)tmi_real_dtype(in);
    return TM_OK;
}

static tm_status running(tmi_meta *m, const tm_tensor *self, tm_int dim)
{
    for (int i = 0; i < 2; i++) TMI_TRY(tmi_shape_same_along(&m[i], self, dim));
    TMI_REQUIRE(!tmi_is_complex(self->dtype), TM_NOT_IMPLEMENTED, "\"cummax_cummin\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
    m[1].dtype = TM_I64;
    return TM_OK;
}
tm_status tmi_shape_cummax(tmi_meta *m, tm_tensor *self, tm_int dim) { return running(m, self, dim); }
tm_status tmi_shape_cummin(tmi_meta *m, tm_tensor *self, tm_int dim) { return running(m, self, dim); }

/* ---------------------------------------------------------------- bodies */

tm_tensor *tmi_nanmean(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    TMI_REQUIRE_PTR(tmi_is_float(self->dtype) || tmi_is_complex(self->dtype), TM_INVALID,
                    "nanmean(): expected input to have floating point or complex dtype but got %s", tmi_dtypes[self->dtype].type_name);
    tm_tensor *count = tm_sum_dim_intlist_full(tm_logical_not(tm_isnan(self)), dim, n_dim, keepdim, TM_DTYPE_DEFAULT);
    return tm_div(tm_nansum_full(self, dim, n_dim, keepdim, dtype), count);
}

tm_tensor *tmi_max_other(tm_tensor *self, tm_tensor *other) { return tm_maximum(self, other); }
tm_tensor *tmi_min_other(tm_tensor *self, tm_tensor *other) { return tm_minimum(self, other); }

tm_tensor *tmi_count_nonzero(tm_tensor *self, const tm_int *dim) { return tm_count_nonzero_dim_intlist(self, dim, dim ? 1 : 0); }

static const tm_scalar *correction_of(bool unbiased)
{
    static const tm_scalar none = {.tag = TM_SCALAR_I64, .v.i = 0}, one = {.tag = TM_SCALAR_I64, .v.i = 1};
    return unbiased ? &one : &none;
}
tm_tensor *tmi_var_all(tm_tensor *self, bool unbiased) { return tm_var_correction_full(self, NULL, 0, correction_of(unbiased), false); }
tm_tensor *tmi_var_dim(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool unbiased, bool keepdim)
{
    return tm_var_correction_full(self, dim, n_dim, correction_of(unbiased), keepdim);
}
tm_tensor *tmi_std_all(tm_tensor *self, bool unbiased) { return tm_std_correction_full(self, NULL, 0, correction_of(unbiased), false); }
tm_tensor *tmi_std_dim(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool unbiased, bool keepdim)
{
    return tm_std_correction_full(self, dim, n_dim, correction_of(unbiased), keepdim);
}
tm_status tmi_var_mean_all(tm_tensor *self, bool unbiased, tm_tensor **var, tm_tensor **mean)
{
    return tm_var_mean_correction_full(self, NULL, 0, correction_of(unbiased), false, var, mean);
}
tm_status tmi_var_mean_dim(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool unbiased, bool keepdim, tm_tensor **var, tm_tensor **mean)
{
    return tm_var_mean_correction_full(self, dim, n_dim, correction_of(unbiased), keepdim, var, mean);
}
tm_status tmi_std_mean_all(tm_tensor *self, bool unbiased, tm_tensor **std, tm_tensor **mean)
{
    return tm_std_mean_correction_full(self, NULL, 0, correction_of(unbiased), false, std, mean);
}
tm_status tmi_std_mean_dim(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool unbiased, bool keepdim, tm_tensor **std, tm_tensor **mean)
{
    return tm_std_mean_correction_full(self, dim, n_dim, correction_of(unbiased), keepdim, std, mean);
}

/* ---- norms */

static tm_tensor *vector_norm(tm_tensor *self, double p, const tm_int *dim, int64_t n, bool keepdim, tm_dtype dtype)
{
    return tm_linalg_vector_norm_full(self, tm_f64(p), dim, n, keepdim, dtype);
}

/* The dims of a matrix, wrapped and different from each other. */
static tm_status matrix_dims(const tm_tensor *self, const tm_int *dim, int64_t n, const char *what, tm_int *rows, tm_int *cols)
{
    TMI_REQUIRE(n == 2, TM_INVALID, "linalg.matrix_norm: dim must be a 2-tuple. Got %lld", (long long)n);
    TMI_REQUIRE(self->ndim >= 2, TM_INVALID, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
    TMI_REQUIRE(tmi_is_float(self->dtype) || tmi_is_complex(self->dtype), TM_INVALID,
                "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got %s", tmi_dtypes[self->dtype].type_name);
    *rows = dim[0];
    *cols = dim[1];
    TMI_TRY(tmi_wrap_dim(rows, self->ndim));
    TMI_TRY(tmi_wrap_dim(cols, self->ndim));
    TMI_REQUIRE(*rows != *cols, TM_INVALID, "linalg.matrix_norm: dims must be different. Got (%lld, %lld)", (long long)*rows, (long long)*cols);
    return TM_OK;
}

tm_tensor *tmi_matrix_norm(tm_tensor *self, tm_scalar ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    tm_int rows, cols;
    TMI_TRY_PTR(matrix_dims(self, dim, n_dim, "linalg.matrix_norm", &rows, &cols));
    double p = tmi_scalar_f64(ord), size = fabs(p);
    TMI_REQUIRE_PTR(size == 1 || size == 2 || size == INFINITY, TM_INVALID, "linalg.matrix_norm: Order %g not supported.", p);
    if (dtype != TM_DTYPE_DEFAULT) self = tmi_cast(self, dtype);
    TMI_REQUIRE_PTR(size != 2, TM_NOT_IMPLEMENTED, "linalg.matrix_norm: order %g needs singular values, which are not implemented", p);
    if (size == INFINITY) {
        tm_int t = rows;
        rows = cols;
        cols = t;
    }
    tm_tensor *sums = vector_norm(self, 1, &rows, 1, keepdim, TM_DTYPE_DEFAULT);
    if (!keepdim && cols > rows) cols--;
    if (sums && sums->sizes[cols] == 0 && p > 0) return tm_sum_dim_intlist_full(sums, &cols, 1, keepdim, TM_DTYPE_DEFAULT);
    return p > 0 ? tm_amax_full(sums, &cols, 1, keepdim) : tm_amin_full(sums, &cols, 1, keepdim);
}

tm_tensor *tmi_matrix_norm_str(tm_tensor *self, const char *ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    tm_int rows, cols;
    TMI_TRY_PTR(matrix_dims(self, dim, n_dim, "linalg.matrix_norm", &rows, &cols));
    bool fro = strcmp(ord, "fro") == 0, nuc = strcmp(ord, "nuc") == 0;
    TMI_REQUIRE_PTR(fro || nuc, TM_INVALID, "linalg.matrix_norm: Order %s not supported.", ord);
    if (fro) return vector_norm(self, 2, (tm_int[]){rows, cols}, 2, keepdim, dtype);
    tmi_fail(TM_NOT_IMPLEMENTED, "linalg.matrix_norm: the nuclear norm needs singular values, which are not implemented");
    return NULL;
}

tm_tensor *tmi_linalg_norm(tm_tensor *self, const tm_scalar *ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    if (!ord) return vector_norm(self, 2, dim, n_dim, keepdim, dtype);
    TMI_REQUIRE_PTR(!dim || n_dim == 1 || n_dim == 2, TM_INVALID, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %lld", (long long)n_dim);
    TMI_REQUIRE_PTR(dim || self->ndim == 1 || self->ndim == 2, TM_INVALID,
                    "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", self->ndim);
    bool matrix = dim ? n_dim == 2 : self->ndim == 2;
    if (!matrix) return tm_linalg_vector_norm_full(self, *ord, dim, n_dim, keepdim, dtype);
    return tm_linalg_matrix_norm_full(self, *ord, dim ? dim : (tm_int[]){0, 1}, 2, keepdim, dtype);
}

tm_tensor *tmi_linalg_norm_str(tm_tensor *self, const char *ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    TMI_REQUIRE_PTR(!dim || n_dim == 2, TM_INVALID, "linalg.norm: If ord is a string, dim must be a 2-tuple.");
    TMI_REQUIRE_PTR(dim || self->ndim == 2, TM_INVALID, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.", self->ndim);
    return tm_linalg_matrix_norm_str_ord_full(self, ord, dim ? dim : (tm_int[]){0, 1}, 2, keepdim, dtype);
}

static double order_of(const tm_scalar *p) { return p ? tmi_scalar_f64(*p) : 2; }
tm_tensor *tmi_norm(tm_tensor *self, tm_scalar p) { return vector_norm(self, tmi_scalar_f64(p), NULL, 0, false, TM_DTYPE_DEFAULT); }
tm_tensor *tmi_norm_dtype(tm_tensor *self, const tm_scalar *p, tm_dtype dtype) { return vector_norm(self, order_of(p), NULL, 0, false, dtype); }
tm_tensor *tmi_norm_dim(tm_tensor *self, const tm_scalar *p, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return vector_norm(self, order_of(p), dim, n_dim, keepdim, TM_DTYPE_DEFAULT);
}
tm_tensor *tmi_norm_dim_dtype(tm_tensor *self, const tm_scalar *p, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    return vector_norm(self, order_of(p), dim, n_dim, keepdim, dtype);
}
tm_tensor *tmi_frobenius_norm(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return vector_norm(self, 2, dim, n_dim, keepdim, TM_DTYPE_DEFAULT);
}
tm_tensor *tmi_dist(tm_tensor *self, tm_tensor *other, tm_scalar p) { return tm_norm_scalar_full(tm_sub(self, other), p); }
tm_tensor *tmi_special_logsumexp(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim) { return tm_logsumexp_full(self, dim, n_dim, keepdim); }

/* ---- the rest */

tm_tensor *tmi_trace(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim == 2, TM_INVALID, "trace: expected a matrix, but got tensor with dim %d", self->ndim);
    return tm_sum(tm_diagonal(self));
}

tm_tensor *tmi_diff(tm_tensor *self, tm_int n, tm_int dim, tm_tensor *prepend, tm_tensor *append)
{
    TMI_REQUIRE_PTR(self->ndim >= 1, TM_INVALID, "diff expects input to be at least one-dimensional");
    TMI_REQUIRE_PTR(n >= 0, TM_INVALID, "order must be non-negative but got %lld", (long long)n);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_tensor *parts[3];
    int count = 0;
    if (prepend) parts[count++] = prepend;
    parts[count++] = self;
    if (append) parts[count++] = append;
    if (count > 1 && n > 0) self = tm_cat_full(parts, count, dim);
    if (self && n == 0) return tm_clone(self);
    if (self && n > self->sizes[dim]) n = self->sizes[dim];
    for (tm_int i = 0; i < n && self; i++) {
        tm_int len = self->sizes[dim];
        if (len == 0) return self;
        tm_tensor *hi = tm_narrow(self, dim, 1, len - 1), *lo = tm_narrow(self, dim, 0, len - 1);
        self = self->dtype == TM_BOOL ? tm_logical_xor(hi, lo) : tm_sub(hi, lo);
    }
    return self;
}

tm_tensor *tmi_cov(tm_tensor *self, tm_int correction, tm_tensor *fweights, tm_tensor *aweights)
{
    TMI_REQUIRE_PTR(self->ndim <= 2, TM_INVALID, "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions", self->ndim);
    TMI_REQUIRE_PTR(self->dtype != TM_BOOL, TM_INVALID, "cov(): bool dtype is not supported for input");
    tm_tensor *in = self->ndim < 2 ? tm_view(self, (tm_int[]){1, -1}, 2) : self;
    if (self->ndim == 0) in = tm_reshape(self, (tm_int[]){1, 1}, 2);
    if (!in) return NULL;
    tm_int n = in->sizes[1];
    tm_tensor *w = NULL;
    for (int i = 0; i < 2; i++) {
        tm_tensor *given = i == 0 ? fweights : aweights;
        const char *name = i == 0 ? "fweights" : "aweights";
        if (!given) continue;
        TMI_REQUIRE_PTR(given->ndim <= 1, TM_INVALID, "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions", name, name, given->ndim);
        TMI_REQUIRE_PTR(i == 1 || tmi_is_integral(given->dtype), TM_INVALID, "cov(): expected fweights to have integral dtype but got fweights with %s dtype",
                        tmi_dtypes[given->dtype].type_name);
        TMI_REQUIRE_PTR(i == 0 || tmi_is_float(given->dtype), TM_INVALID, "cov(): expected aweights to have floating point dtype but got aweights with %s dtype",
                        tmi_dtypes[given->dtype].type_name);
        TMI_REQUIRE_PTR(given->numel == n, TM_INVALID, "cov(): expected %s to have the same numel as there are observations in the input but got %lld != %lld",
                        name, (long long)given->numel, (long long)n);
        tm_scalar bad;
        TMI_TRY_PTR(tm_tensor_item(n == 0 ? tm_zeros(NULL, 0) : tm_lt_scalar(tm_min(given), tm_i64(0)), &bad));
        TMI_REQUIRE_PTR(tmi_scalar_f64(bad) == 0, TM_INVALID, "cov(): %s cannot be negative", name);
        w = w ? tm_mul(w, given) : given;
    }
    tm_tensor *w_sum = w ? tm_sum(w) : NULL, *norm, *avg;
    if (w) {
        avg = tm_div(tm_sum_dim_intlist_full(tm_mul(in, w), (tm_int[]){1}, 1, false, TM_DTYPE_DEFAULT), w_sum);
        if (aweights && correction != 0)
            norm = tm_sub(w_sum, tm_div(tm_mul_scalar(tm_sum(tm_mul(w, aweights)), tm_i64(correction)), w_sum));
        else
            norm = tm_sub_scalar(w_sum, tm_i64(correction));
    } else {
        avg = tm_div_scalar(tm_sum_dim_intlist_full(in, (tm_int[]){1}, 1, false, TM_DTYPE_DEFAULT), tm_i64(n));
        norm = tmi_number_as(avg, (double)(n - correction));
    }
    norm = tm_clamp_min(tmi_is_complex_tensor(norm) ? tm_real(norm) : norm, tm_i64(0));
    in = tm_sub(in, tm_unsqueeze(avg, 1));
    tm_tensor *c = tm_mm(in, tm_conj(tm_t(w ? tm_mul(in, w) : in)));
    return tm_squeeze(tm_div(c, norm));
}

tm_tensor *tmi_corrcoef(tm_tensor *self)
{
    TMI_REQUIRE_PTR(self->ndim <= 2, TM_INVALID, "corrcoef(): expected input to have two or fewer dimensions but got an input with %d dimensions", self->ndim);
    tm_tensor *c = tm_cov(self);
    if (!c) return NULL;
    if (c->ndim == 0) return tm_div(c, c);
    tm_tensor *d = tm_sqrt(tm_diagonal(c));
    c = tm_div(tm_div(c, tm_view(d, (tm_int[]){-1, 1}, 2)), tm_view(d, (tm_int[]){1, -1}, 2));
    return tmi_is_complex_tensor(c) ? c : tm_clamp_full(c, &(tm_scalar){.tag = TM_SCALAR_F64, .v.f = -1}, &(tm_scalar){.tag = TM_SCALAR_F64, .v.f = 1});
}

static tm_tensor *halves(tm_tensor *y, tm_int dim)
{
    tm_int n = y->sizes[dim];
    return tm_add(tm_narrow(y, dim, 1, n - 1), tm_narrow(y, dim, 0, n - 1));
}

/* Spacings along `dim` of y: x is 1-D with as many points, or broadcasts like y. */
static tm_tensor *spacings(tm_tensor *y, tm_tensor *x, tm_int dim)
{
    if (x->ndim == 1) {
        TMI_REQUIRE_PTR(x->sizes[0] == y->sizes[dim], TM_INVALID, "trapezoid: There must be one `x` value for each sample point");
        tm_int view[TMI_MAX_DIMS];
        for (int d = 0; d < y->ndim; d++) view[d] = 1;
        view[dim] = x->sizes[0];
        x = tm_reshape(x, view, y->ndim);
    } else if (x->ndim < y->ndim) {
        tm_int view[TMI_MAX_DIMS];
        int lead = y->ndim - x->ndim;
        for (int d = 0; d < y->ndim; d++) view[d] = d < lead ? 1 : x->sizes[d - lead];
        x = tm_reshape(x, view, y->ndim);
    }
    if (!x) return NULL;
    return tm_sub(tm_narrow(x, dim, 1, x->sizes[dim] - 1), tm_narrow(x, dim, 0, x->sizes[dim] - 1));
}

tm_tensor *tmi_trapezoid_x(tm_tensor *y, tm_tensor *x, tm_int dim)
{
    TMI_TRY_PTR(tmi_wrap_dim(&dim, y->ndim));
    TMI_REQUIRE_PTR(y->dtype != TM_BOOL && x->dtype != TM_BOOL, TM_INVALID, "trapezoid: received a bool input for `x` or `y`, but bool is not supported");
    if (y->sizes[dim] == 0) return tm_sum_dim_intlist_full(y, &dim, 1, false, TM_DTYPE_DEFAULT);
    tm_tensor *dx = spacings(y, x, dim);
    return tm_div_scalar(tm_sum_dim_intlist_full(tm_mul(dx, halves(y, dim)), &dim, 1, false, TM_DTYPE_DEFAULT), tm_f64(2));
}

tm_tensor *tmi_trapezoid_dx(tm_tensor *y, tm_scalar dx, tm_int dim)
{
    TMI_TRY_PTR(tmi_wrap_dim(&dim, y->ndim));
    TMI_REQUIRE_PTR(y->dtype != TM_BOOL, TM_INVALID, "trapezoid: received a bool input for `y`, but bool is not supported");
    if (y->sizes[dim] == 0) return tm_sum_dim_intlist_full(y, &dim, 1, false, TM_DTYPE_DEFAULT);
    tm_tensor *total = tm_sum_dim_intlist_full(halves(y, dim), &dim, 1, false, TM_DTYPE_DEFAULT);
    return tm_mul_scalar(total, tm_f64(tmi_scalar_f64(dx) / 2));
}
tm_tensor *tmi_trapz_dx(tm_tensor *y, double dx, tm_int dim) { return tmi_trapezoid_dx(y, tm_f64(dx), dim); }

tm_tensor *tmi_cumulative_trapezoid_x(tm_tensor *y, tm_tensor *x, tm_int dim)
{
    TMI_TRY_PTR(tmi_wrap_dim(&dim, y->ndim));
    TMI_REQUIRE_PTR(y->dtype != TM_BOOL && x->dtype != TM_BOOL, TM_INVALID,
                    "cumulative_trapezoid: received a bool input for `x` or `y`, but bool is not supported");
    tm_tensor *dx = spacings(y, x, dim);
    return tm_div_scalar(tm_cumsum(tm_mul(dx, halves(y, dim)), dim), tm_f64(2));
}

tm_tensor *tmi_cumulative_trapezoid_dx(tm_tensor *y, tm_scalar dx, tm_int dim)
{
    TMI_TRY_PTR(tmi_wrap_dim(&dim, y->ndim));
    TMI_REQUIRE_PTR(y->dtype != TM_BOOL, TM_INVALID, "cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
    return tm_mul_scalar(tm_cumsum(halves(y, dim), dim), tm_f64(tmi_scalar_f64(dx) / 2));
}

tm_tensor *tmi_renorm(tm_tensor *self, tm_scalar p, tm_int dim, tm_scalar maxnorm)
{
    double most = tmi_scalar_f64(maxnorm), order = tmi_scalar_f64(p);
    TMI_REQUIRE_PTR(p.tag != TM_SCALAR_C128, TM_INVALID, "renorm: p must be real-valued");
    TMI_REQUIRE_PTR(order > 0, TM_INVALID, "renorm: non-positive-norm not supported");
    TMI_REQUIRE_PTR(most >= 0, TM_INVALID, "renorm: expected maxnorm to be >= 0 but got %g", most);
    TMI_REQUIRE_PTR(self->ndim > 1, TM_INVALID, "renorm: input needs at least 2 dimensions, got %d dimensions", self->ndim);
    TMI_TRY_PTR(tmi_wrap_dim(&dim, self->ndim));
    tm_int others[TMI_MAX_DIMS], n = 0;
    for (int d = 0; d < self->ndim; d++)
        if (d != dim) others[n++] = d;
    tm_tensor *norm = vector_norm(self, order, others, n, true, TM_DTYPE_DEFAULT);
    tm_tensor *scale = tm_mul_scalar(tm_reciprocal(tm_add_scalar(norm, tm_f64(1e-7))), tm_f64(most));
    return tm_mul(self, tm_where_self(tm_gt_scalar(norm, tm_f64(most)), scale, tm_ones_like(norm)));
}

tm_tensor *tmi_nuclear_norm(tm_tensor *self, bool keepdim) { return tm_linalg_matrix_norm_str_ord_full(self, "nuc", (tm_int[]){-2, -1}, 2, keepdim, TM_DTYPE_DEFAULT); }
tm_tensor *tmi_nuclear_norm_dim(tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return tm_linalg_matrix_norm_str_ord_full(self, "nuc", dim, n_dim, keepdim, TM_DTYPE_DEFAULT);
}
