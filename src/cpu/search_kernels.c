/* bincount, histc, searchsorted, isin, unique. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"
#include "sort_keys.h"

/* ---- counting */

static tm_status largest_count(const tm_tensor *numbers, int64_t *largest)
{
    const int64_t *x = numbers->numel ? tmi_data(numbers) : NULL;
    *largest = -1;
    for (int64_t i = 0; i < numbers->numel; i++) {
        TMI_REQUIRE(x[i] >= 0, TM_INVALID, "bincount only supports 1-d non-negative integral inputs.");
        if (x[i] > *largest) *largest = x[i];
    }
    return TM_OK;
}

static void add_weights(tm_tensor *out, const tm_tensor *numbers, const tm_tensor *weights)
{
    const int64_t *x = tmi_data(numbers);
    for (int64_t i = 0; i < numbers->numel; i++) {
        if (out->dtype == TM_F32) ((float *)tmi_data(out))[x[i]] += ((const float *)tmi_data(weights))[i];
        else if (out->dtype == TM_F64) ((double *)tmi_data(out))[x[i]] += ((const double *)tmi_data(weights))[i];
        else ((int64_t *)tmi_data(out))[x[i]]++;
    }
}

tm_status tmk_bincount(tm_tensor **out, tm_tensor *self, tm_tensor *weights, tm_int minlength)
{
    TMI_REQUIRE(self->ndim == 1 && (tmi_is_integral(self->dtype) || self->dtype == TM_BOOL), TM_INVALID, "bincount only supports 1-d non-negative integral inputs.");
    TMI_REQUIRE(self->dtype != TM_BOOL, TM_NOT_IMPLEMENTED, "\"bincount_cpu\" not implemented for 'Bool'");
    TMI_REQUIRE(minlength >= 0, TM_INVALID, "minlength should be >= 0");
    TMI_REQUIRE(!weights || (weights->ndim == 1 && weights->numel == self->numel), TM_INVALID, "weights should be 1-d and have the same length as input");
    tm_dtype dtype = !weights ? TM_I64 : weights->dtype == TM_F32 ? TM_F32 : TM_F64;
    tm_tensor *numbers = tmk_plain(self, TM_I64), *w = weights ? tmk_plain(weights, dtype) : NULL;
    int64_t largest = -1;
    tm_status status = tm_error_status();
    if (status == TM_OK) status = largest_count(numbers, &largest);
    if (status == TM_OK) {
        int64_t n = largest + 1 > minlength ? largest + 1 : minlength;
        *out = tmi_tensor_new(1, &n, NULL, dtype, self->device);
        status = *out ? tmk_fill(*out, tm_i64(0)) : tm_error_status();
        if (status == TM_OK && numbers->numel) add_weights(*out, numbers, w);
    }
    if (numbers) tmi_release(numbers);
    if (w) tmi_release(w);
    return status;
}

tm_status tmk_histc(tm_tensor *out, tm_tensor *self, tm_int bins, tm_scalar min, tm_scalar max)
{
    double lo = tmi_scalar_f64(min), hi = tmi_scalar_f64(max);
    tm_tensor *x = tmk_plain(self, TM_F64);
    size_t bytes = (size_t)bins * sizeof(double);
    double *count = tmi_calloc(bytes), *v = x && x->numel ? tmi_data(x) : NULL;
    tm_status status = tm_error_status();
    if (status == TM_OK && lo == hi && x->numel) {
        lo = hi = v[0];
        for (int64_t i = 1; i < x->numel; i++) {
            lo = v[i] < lo || isnan(v[i]) ? v[i] : lo;
            hi = v[i] > hi || isnan(v[i]) ? v[i] : hi;
        }
    }
    if (lo == hi) {
        lo -= 1;
        hi += 1;
    }
    if (status == TM_OK && !(isfinite(lo) && isfinite(hi))) status = tmi_fail(TM_INVALID, "range of [%g, %g] is not finite", lo, hi);
    if (status == TM_OK && lo > hi) status = tmi_fail(TM_INVALID, "max must be larger than min");
    for (int64_t i = 0; status == TM_OK && i < x->numel; i++) {
        if (!(v[i] >= lo && v[i] <= hi)) continue;
        int64_t bin = (int64_t)((v[i] - lo) / (hi - lo) * (double)bins);
        count[bin < bins ? bin : bins - 1] += 1;
    }
    tmk_stack_tensor s;
    if (status == TM_OK) status = tmk_copy(out, tmk_stack_wrap(&s, count, TM_F64, 1, &bins));
    tmi_free(count, bytes);
    if (x) tmi_release(x);
    return status;
}

/* ---- keys of a whole tensor, 64 bits whatever the dtype; free with free_keys */

static uint64_t *keys_of(const tm_tensor *t, tm_dtype dtype)
{
    tm_tensor *plain = tmk_plain(t, dtype);
    uint64_t *keys = plain ? tmi_data_alloc((size_t)t->numel * sizeof *keys) : NULL;
    if (keys && t->numel) {
        if (tmk_short_keys(dtype)) {
            uint32_t *narrow = (uint32_t *)keys + t->numel;   /* the upper half, widened from the front: each is read before it is overwritten */
            tmk_keys32(dtype, tmi_data(plain), 1, t->numel, false, narrow);
            for (int64_t i = 0; i < t->numel; i++) {
                uint32_t k;
                memcpy(&k, (const char *)narrow + i * 4, 4);
                keys[i] = k;
            }
        } else {
            tmk_keys64(dtype, tmi_data(plain), 1, t->numel, false, keys);
        }
    }
    if (plain) tmi_release(plain);
    return keys;
}
static void free_keys(uint64_t *keys, int64_t n)
{
    if (keys) tmi_data_free(keys, (size_t)n * sizeof *keys);
}

/* First position whose key is not below (right: is above) the value. */
static int64_t bound(const uint64_t *sorted, const int64_t *order, int64_t n, uint64_t value, bool right)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        uint64_t k = sorted[order ? order[mid] : mid];
        if (right ? k <= value : k < value) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

tm_status tmk_searchsorted(tm_tensor *out, tm_tensor *sequence, tm_tensor *self, bool out_int32, bool right, const char *side, tm_tensor *sorter)
{
    if (self->numel == 0) return TM_OK;
    right = right || (side && strcmp(side, "right") == 0);
    tm_tensor *to = tmk_plain_out(out, TM_I64), *order = sorter ? tmk_plain(sorter, TM_I64) : NULL;
    uint64_t *s = keys_of(sequence, (tm_dtype)sequence->dtype), *v = keys_of(self, (tm_dtype)sequence->dtype);
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        int64_t n = sequence->sizes[sequence->ndim - 1], per = sequence->ndim == 1 ? self->numel : self->sizes[self->ndim - 1];
        const int64_t *o = order && order->numel ? tmi_data(order) : NULL;
        for (int64_t i = 0; o && i < order->numel && status == TM_OK; i++)
            if (o[i] < 0 || o[i] >= n) status = tmi_fail(TM_INVALID, "torch.searchsorted(): sorter index out of range");
        for (int64_t i = 0; status == TM_OK && i < self->numel; i++) {
            int64_t line = per ? i / per : 0;
            ((int64_t *)tmi_data(to))[i] = bound(s + line * n, o ? o + line * n : NULL, n, v[i], right);
        }
    }
    free_keys(s, sequence->numel);
    free_keys(v, self->numel);
    if (order) tmi_release(order);
    return tmk_plain_end(out, to, status);
}

/* ---- sorted copies of all elements */

typedef struct sorted {
    tmk_pair64 *pairs;
    int64_t n;
    size_t bytes;
} sorted;

static tm_status sort_all(sorted *s, const tm_tensor *t, tm_dtype dtype)
{
    s->n = t->numel;
    s->bytes = (size_t)(2 * s->n + 1) * sizeof *s->pairs;
    s->pairs = tmi_data_alloc(s->bytes);
    uint64_t *keys = s->pairs ? keys_of(t, dtype) : NULL;
    if (!keys) return tm_error_status();
    for (int64_t i = 0; i < s->n; i++) s->pairs[i] = (tmk_pair64){keys[i], i};
    tmk_sort_pairs64(s->pairs, s->pairs + s->n, s->n);
    free_keys(keys, s->n);
    return TM_OK;
}
static void free_sorted(sorted *s)
{
    if (s->pairs) tmi_data_free(s->pairs, s->bytes);
}

tm_status tmk_isin(tm_tensor *out, tm_tensor *elements, tm_tensor *test, bool assume_unique, bool invert)
{
    if (elements->numel == 0) return TM_OK;
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    TMI_TRY(tmi_promote_tensor(&p, elements));
    TMI_TRY(tmi_promote_tensor(&p, test));
    TMI_TRY(tmi_promoted(&p, &dtype));
    TMI_REQUIRE(!tmi_is_complex(dtype), TM_INVALID, "Unsupported input type encountered for isin(): %s", tmi_dtypes[dtype].type_name);
    sorted s = {0};
    uint64_t *keys = keys_of(elements, dtype);
    tm_tensor *to = tmk_plain_out(out, TM_BOOL);
    tm_status status = tm_error_status();
    if (status == TM_OK) status = sort_all(&s, test, dtype);
    uint64_t nan_key = tmk_short_keys(dtype) ? UINT32_MAX : UINT64_MAX;
    for (int64_t i = 0; status == TM_OK && i < elements->numel; i++) {
        int64_t lo = 0, hi = s.n;
        while (lo < hi) {
            int64_t mid = lo + (hi - lo) / 2;
            if (s.pairs[mid].key < keys[i]) lo = mid + 1;
            else hi = mid;
        }
        bool found = lo < s.n && s.pairs[lo].key == keys[i] && !(tmi_is_float(dtype) && keys[i] == nan_key);
        ((uint8_t *)tmi_data(to))[i] = found != invert;
    }
    free_keys(keys, elements->numel);
    free_sorted(&s);
    return tmk_plain_end(out, to, status);
}

/* ---- unique */

/* Elements (or slices) of `rows` rows: which are kept, which group each belongs to. */
typedef struct groups {
    int64_t *first, *of_row, *count, n, rows;   /* first[g]: a row of group g */
} groups;

static tm_status groups_new(groups *g, int64_t rows)
{
    g->rows = rows;
    g->n = 0;
    g->first = tmi_alloc((size_t)(3 * rows + 1) * sizeof(int64_t));
    if (!g->first) return TM_NOMEM;
    g->of_row = g->first + rows;
    g->count = g->of_row + rows;
    return TM_OK;
}
static void groups_free(groups *g) { tmi_free(g->first, (size_t)(3 * g->rows + 1) * sizeof(int64_t)); }

static void add_row(groups *g, int64_t row, bool starts)
{
    if (starts) {
        g->first[g->n] = row;
        g->count[g->n++] = 0;
    }
    g->of_row[row] = g->n - 1;
    g->count[g->n - 1]++;
}

static tm_tensor *numbers(const int64_t *values, int ndim, const int64_t *sizes, bool wanted, tm_device device)
{
    static const int64_t none = 0;
    tm_tensor *t = wanted ? tmi_tensor_new(ndim, sizes, NULL, TM_I64, device) : tmi_tensor_new(1, &none, NULL, TM_I64, device);
    if (t && wanted && t->numel) memcpy(tmi_data(t), values, (size_t)t->numel * sizeof *values);
    return t;
}

/* The rows first[0..n) of a contiguous tensor whose rows have `bytes` bytes. */
static tm_tensor *rows_of(const tm_tensor *plain, const groups *g, int64_t bytes, int ndim, const int64_t *sizes)
{
    tm_tensor *t = tmi_tensor_new(ndim, sizes, NULL, (tm_dtype)plain->dtype, plain->device);
    for (int64_t k = 0; t && k < g->n && bytes; k++)
        memcpy((char *)tmi_data(t) + k * bytes, (const char *)tmi_data(plain) + g->first[k] * bytes, (size_t)bytes);
    return t;
}

static tm_status no_complex(const char *op, const tm_tensor *t)
{
    TMI_REQUIRE(!tmi_is_complex(t->dtype), TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", op, tmi_dtypes[t->dtype].type_name);
    return TM_OK;
}

/* NaNs are all different from each other. */
static bool is_nan_key(const tm_tensor *t, uint64_t key) { return tmi_is_float(t->dtype) && key == (tmk_short_keys(t->dtype) ? UINT32_MAX : UINT64_MAX); }

tm_status tmk_unique(tm_tensor **out, tm_tensor **inverse, tm_tensor **counts, tm_tensor *self, bool sort, bool return_inverse, bool return_counts)
{
    TMI_TRY(no_complex("unique", self));
    groups g = {0};
    sorted s = {0};
    tm_tensor *plain = tmk_plain(self, (tm_dtype)self->dtype);
    tm_status status = plain ? groups_new(&g, self->numel) : tm_error_status();
    if (status == TM_OK) status = sort_all(&s, self, (tm_dtype)self->dtype);
    for (int64_t i = 0; status == TM_OK && i < s.n; i++)
        add_row(&g, s.pairs[i].place, i == 0 || s.pairs[i].key != s.pairs[i - 1].key || is_nan_key(self, s.pairs[i].key));
    if (status == TM_OK) {
        *out = rows_of(plain, &g, (int64_t)tmi_dtype_size(self->dtype), 1, &g.n);
        *inverse = numbers(g.of_row, self->ndim, self->sizes, return_inverse || return_counts, self->device);
        *counts = numbers(g.count, 1, &g.n, return_counts, self->device);
        status = tm_error_status();
    }
    free_sorted(&s);
    groups_free(&g);
    if (plain) tmi_release(plain);
    return status;
}

/* self with dim in front, contiguous. */
static tm_tensor *dim_first(const tm_tensor *self, int64_t dim)
{
    tm_tensor view = *self;
    int64_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    sizes[0] = self->sizes[dim];
    strides[0] = self->strides[dim];
    for (int d = 0, k = 1; d < self->ndim; d++)
        if (d != dim) {
            sizes[k] = self->sizes[d];
            strides[k++] = self->strides[d];
        }
    view.sizes = sizes;
    view.strides = strides;
    view.flags = 0;
    tm_tensor *t = tmi_tensor_new(self->ndim, sizes, NULL, (tm_dtype)self->dtype, self->device);
    if (t && self->numel && tmk_copy(t, &view) != TM_OK) {
        tmi_release(t);
        return NULL;
    }
    return t;
}

/* And back: dim 0 of t becomes dim. */
static tm_tensor *dim_back(const tm_tensor *t, int64_t dim)
{
    int64_t sizes[TMI_MAX_DIMS], strides[TMI_MAX_DIMS];
    for (int d = 0, k = 1; d < t->ndim; d++) {
        sizes[d] = d == dim ? t->sizes[0] : t->sizes[k];
        strides[d] = d == dim ? t->strides[0] : t->strides[k++];
    }
    tm_tensor view = *t;
    view.sizes = sizes;
    view.strides = strides;
    view.flags = 0;
    tm_tensor *out = tmi_tensor_new(t->ndim, sizes, NULL, (tm_dtype)t->dtype, t->device);
    if (out && t->numel && tmk_copy(out, &view) != TM_OK) {
        tmi_release(out);
        return NULL;
    }
    return out;
}

static int compare_rows(const uint64_t *a, const uint64_t *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* A stable order of rows by their keys: merge sort of places. */
static void sort_rows(int64_t *places, int64_t *other, int64_t n, const uint64_t *keys, int64_t width)
{
    if (n < 2) return;
    int64_t mid = n / 2, i = 0, j = mid, k = 0;
    sort_rows(places, other, mid, keys, width);
    sort_rows(places + mid, other, n - mid, keys, width);
    while (i < mid && j < n)
        other[k++] = compare_rows(keys + places[j] * width, keys + places[i] * width, width) < 0 ? places[j++] : places[i++];
    while (i < mid) other[k++] = places[i++];
    while (j < n) other[k++] = places[j++];
    memcpy(places, other, (size_t)n * sizeof *places);
}

/* Rows of t (dim 0) in the given order fall into groups of equal neighbours. */
static void group_rows(groups *g, const int64_t *order, const uint64_t *keys, int64_t width)
{
    for (int64_t i = 0; i < g->rows; i++) {
        int64_t row = order ? order[i] : i, before = i == 0 ? 0 : order ? order[i - 1] : i - 1;
        add_row(g, row, i == 0 || compare_rows(keys + row * width, keys + before * width, width) != 0);
    }
}

static tm_status unique_rows(tm_tensor **out, tm_tensor **inverse, tm_tensor **counts, tm_tensor *self, int64_t dim, bool sort, bool return_inverse,
                             bool return_counts, bool flat)
{
    tm_tensor *t = flat ? tmk_plain(self, (tm_dtype)self->dtype) : dim_first(self, dim);
    if (!t) return tm_error_status();
    int64_t rows = flat ? t->numel : t->sizes[0], width = rows ? t->numel / rows : 0, *order = NULL;
    groups g = {0};
    uint64_t *keys = keys_of(t, (tm_dtype)t->dtype);
    tm_status status = keys ? groups_new(&g, rows) : tm_error_status();
    size_t order_bytes = (size_t)(2 * rows + 1) * sizeof *order;
    if (status == TM_OK && sort) {
        order = tmi_alloc(order_bytes);
        status = order ? TM_OK : TM_NOMEM;
        for (int64_t i = 0; order && i < rows; i++) order[i] = i;
        if (order) sort_rows(order, order + rows, rows, keys, width);
    }
    if (status == TM_OK) {
        group_rows(&g, order, keys, width);
        int64_t sizes[TMI_MAX_DIMS];
        memcpy(sizes, t->sizes, (size_t)t->ndim * sizeof *sizes);
        sizes[0] = g.n;
        tm_tensor *kept = rows_of(t, &g, width * (int64_t)tmi_dtype_size(t->dtype), flat ? 1 : t->ndim, sizes);
        *out = kept && !flat && dim ? dim_back(kept, dim) : kept;
        if (kept && *out != kept) tmi_release(kept);
        *inverse = numbers(g.of_row, flat ? self->ndim : 1, flat ? self->sizes : &rows, return_inverse, self->device);
        *counts = numbers(g.count, 1, &g.n, return_counts, self->device);
        status = tm_error_status();
    }
    if (order) tmi_free(order, order_bytes);
    free_keys(keys, t->numel);
    groups_free(&g);
    tmi_release(t);
    return status;
}

tm_status tmk_unique_dim(tm_tensor **out, tm_tensor **inverse, tm_tensor **counts, tm_tensor *self, tm_int dim, bool sort, bool return_inverse, bool return_counts)
{
    TMI_TRY(no_complex("unique_dim", self));
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    TMI_REQUIRE(self->ndim > 0, TM_INVALID, "unique_dim: a 0-d tensor has no dims");
    bool empty_elsewhere = false;
    for (int d = 0; d < self->ndim; d++) empty_elsewhere |= self->sizes[d] == 0 && d != dim;
    TMI_REQUIRE(!empty_elsewhere, TM_INVALID, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return unique_rows(out, inverse, counts, self, dim, true, true, true, false);
}

tm_status tmk_unique_consecutive(tm_tensor **out, tm_tensor **inverse, tm_tensor **counts, tm_tensor *self, bool return_inverse, bool return_counts, const tm_int *dim)
{
    TMI_TRY(no_complex("unique_consecutive", self));
    tm_int d = dim ? *dim : 0;
    if (dim) TMI_TRY(tmi_wrap_dim(&d, self->ndim));
    bool flat = !dim || self->ndim == 0;
    return unique_rows(out, inverse, counts, self, d, false, return_inverse, return_counts, flat);
}
