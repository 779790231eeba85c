/* Sorting: shape rules and bodies. */
#include "compose.h"
#include "ops/shapes.h"

static tm_status sortable(const char *op, const tm_tensor *t)
{
    TMI_REQUIRE(!tmi_is_complex(t->dtype), TM_INVALID, "%s: complex inputs are not supported", op);
    return TM_OK;
}

tm_status tmi_shape_sort_stable(tmi_meta *m, tm_tensor *self, const bool *stable, tm_int dim, bool descending)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_TRY(sortable("Sort", self));
    for (int i = 0; i < 2; i++) TMI_TRY(tmi_shape_same(&m[i], self));
    m[1].dtype = TM_I64;
    return TM_OK;
}

tm_status tmi_shape_topk(tmi_meta *m, tm_tensor *self, tm_int k, tm_int dim, bool largest, bool sorted)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(k >= 0 && k <= (self->ndim ? self->sizes[dim] : 1), TM_INVALID, "selected index k out of range");
    TMI_REQUIRE(!tmi_is_complex(self->dtype) && self->dtype != TM_BOOL, TM_NOT_IMPLEMENTED, "\"topk_cpu\" not implemented for '%s'",
                tmi_dtypes[self->dtype].type_name);
    for (int i = 0; i < 2; i++) {
        tmi_meta_set(&m[i], self->ndim, self->sizes);
        if (self->ndim) m[i].sizes[dim] = k;
    }
    m[1].dtype = TM_I64;
    return TM_OK;
}

static tm_status statistic(tmi_meta *m, const char *op, tm_tensor *self, tm_int dim, bool keepdim, bool need)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(!need || self->ndim == 0 || self->sizes[dim] > 0, TM_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)dim);
    TMI_REQUIRE(!tmi_is_complex(self->dtype), TM_NOT_IMPLEMENTED, "\"%s_out_impl\" not implemented for '%s'", op, tmi_dtypes[self->dtype].type_name);
    for (int i = 0; i < 2; i++) TMI_TRY(tmi_shape_reduce_one(&m[i], self, dim, keepdim));
    m[1].dtype = TM_I64;
    return TM_OK;
}
tm_status tmi_shape_kthvalue(tmi_meta *m, tm_tensor *self, tm_int k, tm_int dim, bool keepdim)
{
    tm_int d = dim;
    TMI_TRY(tmi_wrap_dim(&d, self->ndim));
    TMI_TRY(statistic(m, "kthvalue", self, dim, keepdim, true));
    TMI_REQUIRE(k >= 1 && k <= (self->ndim ? self->sizes[d] : 1), TM_INVALID, "kthvalue(): selected number k out of range for dimension %lld", (long long)d);
    return TM_OK;
}
tm_status tmi_shape_median_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return statistic(m, "median", self, dim, keepdim, true); }
tm_status tmi_shape_nanmedian_dim(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return statistic(m, "nanmedian", self, dim, keepdim, true); }
tm_status tmi_shape_mode(tmi_meta *m, tm_tensor *self, tm_int dim, bool keepdim) { return statistic(m, "mode", self, dim, keepdim, true); }

static tm_status statistic_all(tmi_meta *m, const char *op, tm_tensor *self)
{
    TMI_REQUIRE(!tmi_is_complex(self->dtype) && self->dtype != TM_BOOL, TM_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", op,
                tmi_dtypes[self->dtype].type_name);
    tmi_meta_set(m, 0, NULL);
    return TM_OK;
}
tm_status tmi_shape_median(tmi_meta *m, tm_tensor *self) { return statistic_all(m, "median", self); }
tm_status tmi_shape_nanmedian(tmi_meta *m, tm_tensor *self) { return statistic_all(m, "nanmedian", self); }

/* ---------------------------------------------------------------- bodies */

tm_status tmi_sort(tm_tensor *self, tm_int dim, bool descending, tm_tensor **values, tm_tensor **indices)
{
    return tm_sort_stable_full(self, NULL, dim, descending, values, indices);
}

static tm_tensor *order(tm_tensor *self, tm_int dim, bool descending)
{
    tm_tensor *values, *indices;
    TMI_TRY_PTR(tm_sort_stable_full(self, NULL, dim, descending, &values, &indices));
    return indices;
}
tm_tensor *tmi_argsort(tm_tensor *self, tm_int dim, bool descending) { return order(self, dim, descending); }
tm_tensor *tmi_argsort_stable(tm_tensor *self, bool stable, tm_int dim, bool descending) { return order(self, dim, descending); }

tm_tensor *tmi_msort(tm_tensor *self)
{
    tm_tensor *values, *indices;
    TMI_TRY_PTR(tm_sort_stable_full(self, NULL, 0, false, &values, &indices));
    return values;
}

/* ---- quantiles: sort along the last dim, pick two neighbours, interpolate */

typedef enum interpolation { LINEAR, LOWER, HIGHER, MIDPOINT, NEAREST } interpolation;

static int interpolation_of(const char *name)
{
    static const char *const names[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return -1;
}

static tm_status quantile_checks(const tm_tensor *self, const tm_tensor *q, const char *name)
{
    TMI_REQUIRE(self->numel > 0, TM_INVALID, "quantile() input tensor must be non-empty");
    TMI_REQUIRE(q->ndim <= 1, TM_INVALID, "quantile() q must be a scalar or 1D tensor");
    TMI_REQUIRE(self->dtype == TM_F32 || self->dtype == TM_F64, TM_INVALID, "quantile() input tensor must be either float or double dtype");
    TMI_REQUIRE(self->dtype == q->dtype, TM_INVALID, "quantile() q tensor must be same dtype as the input tensor");
    TMI_REQUIRE(interpolation_of(name) >= 0, TM_INVALID, "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", name);
    return TM_OK;
}

static tm_tensor *interpolated(tm_tensor *sorted, tm_tensor *rank, interpolation how)
{
    if (how == LOWER) rank = tm_floor(rank);
    if (how == HIGHER) rank = tm_ceil(rank);
    if (how == NEAREST) rank = tm_round(rank);
    tm_tensor *below = tmi_cast(rank, TM_I64), *lo = tm_gather(sorted, -1, below);
    if (how != LINEAR && how != MIDPOINT) return lo;
    tm_tensor *weight = how == MIDPOINT ? tm_full_like(rank, tm_f64(0.5)) : tm_sub(rank, below);
    tm_tensor *hi = tm_gather(sorted, -1, tmi_cast(tm_ceil(rank), TM_I64));
    return tm_lerp(lo, hi, weight);
}

/* Ranks of q in every line: q (n - 1), n the line's length, or the number of its elements that are not NaN. */
static tm_tensor *ranks_of(tm_tensor *sorted, tm_tensor *q, bool ignore_nan)
{
    tm_int n = sorted->sizes[sorted->ndim - 1], last = -1;
    if (ignore_nan) {
        tm_tensor *count = tm_sum_dim_intlist_full(tm_logical_not(tm_isnan(sorted)), &last, 1, true, TM_DTYPE_DEFAULT);
        tm_tensor *rank = tm_mul(q, tm_sub_scalar(tmi_cast(count, (tm_dtype)q->dtype), tm_i64(1)));
        return tm_masked_fill_scalar(rank, tm_lt_scalar(rank, tm_i64(0)), tm_i64(0));
    }
    tm_tensor *rank = tm_mul_scalar(q, tm_i64(n - 1)), *bad = tm_any_dim_full(tm_isnan(sorted), -1, true);
    return tm_masked_fill_scalar(tm_expand(rank, (tm_int[]){sorted->sizes[0], q->numel}, 2), bad, tm_i64(n - 1));
}

static tm_tensor *quantiles(tm_tensor *self, tm_tensor *q, const tm_int *dim, bool keepdim, const char *name, bool ignore_nan)
{
    TMI_TRY_PTR(quantile_checks(self, q, name));
    tm_scalar bad;
    tm_tensor *outside = tm_any(tm_logical_not(tm_logical_and(tm_ge_scalar(q, tm_i64(0)), tm_le_scalar(q, tm_i64(1)))));
    TMI_TRY_PTR(outside ? tm_tensor_item(outside, &bad) : tm_error_status());
    TMI_REQUIRE_PTR(!bad.v.b, TM_INVALID, "quantile() q values must be in the range [0, 1]");
    tm_int d = dim ? *dim : 0, shape[TMI_MAX_DIMS], n_shape = 0;
    TMI_TRY_PTR(tmi_wrap_dim(&d, self->ndim));
    if (q->ndim) shape[n_shape++] = q->numel;
    for (int i = 0; i < self->ndim; i++) {
        bool reduced = !dim || i == d;
        if (!reduced || keepdim) shape[n_shape++] = reduced ? 1 : self->sizes[i];
    }
    tm_tensor *lines = !dim || self->ndim == 0 ? tm_reshape(self, (tm_int[]){1, -1}, 2)
                                               : tm_reshape(tm_transpose_int(self, d, -1), (tm_int[]){-1, self->sizes[d]}, 2);
    tm_tensor *sorted, *indices, *flat = tm_reshape(q, (tm_int[]){1, -1}, 2);
    TMI_TRY_PTR(tm_sort_stable_full(lines, NULL, -1, false, &sorted, &indices));
    if (!flat) return NULL;
    tm_tensor *out = interpolated(sorted, tm_expand(ranks_of(sorted, flat, ignore_nan), (tm_int[]){sorted->sizes[0], flat->numel}, 2),
                                  (interpolation)interpolation_of(name));
    /* [lines, q] to [q, lines...]; the lines are in the order of self with dim moved last */
    out = tm_transpose_int(out, 0, 1);
    if (!dim || self->ndim <= 1) return tm_reshape(out, shape, n_shape);
    tm_int apart[TMI_MAX_DIMS], n_apart = 0;
    apart[n_apart++] = q->numel;
    for (int i = 0; i < self->ndim - 1; i++) apart[n_apart++] = self->sizes[i == d ? self->ndim - 1 : i];
    apart[n_apart++] = 1;
    out = tm_transpose_int(tm_reshape(out, apart, n_apart), d + 1, -1);
    return tm_reshape(out, shape, n_shape);
}

static tm_tensor *one_q(const tm_tensor *self, double q)
{
    TMI_REQUIRE_PTR(q >= 0 && q <= 1, TM_INVALID, "quantile() q must be in the range [0, 1] but got %g", q);
    return tmi_number_as(self, q);
}
tm_tensor *tmi_quantile(tm_tensor *self, tm_tensor *q, const tm_int *dim, bool keepdim, const char *how) { return quantiles(self, q, dim, keepdim, how, false); }
tm_tensor *tmi_nanquantile(tm_tensor *self, tm_tensor *q, const tm_int *dim, bool keepdim, const char *how) { return quantiles(self, q, dim, keepdim, how, true); }
tm_tensor *tmi_quantile_scalar(tm_tensor *self, double q, const tm_int *dim, bool keepdim, const char *how)
{
    tm_tensor *t = one_q(self, q);
    return t ? quantiles(self, t, dim, keepdim, how, false) : NULL;
}
tm_tensor *tmi_nanquantile_scalar(tm_tensor *self, double q, const tm_int *dim, bool keepdim, const char *how)
{
    tm_tensor *t = one_q(self, q);
    return t ? quantiles(self, t, dim, keepdim, how, true) : NULL;
}
