/* gather, scatter and the index_* operators: checks of indices, then a walk of pick.c. */
#include <math.h>

#include "base/alloc.h"
#include "op_bodies.h"
#include "pick.h"
#include "pointwise.h"
#include "scratch.h"

static int64_t wrapped(int64_t dim, const tm_tensor *t) { return dim < 0 ? dim + (t->ndim ? t->ndim : 1) : dim; }

static tm_status start_from(tm_tensor *out, const tm_tensor *self) { return tmk_same_view(out, self) ? TM_OK : tmk_copy(out, self); }

/* A reference of one's own to an index as int32 or int64. */
static tm_tensor *places(const tm_tensor *index)
{
    if (index->dtype != TM_I32 && index->dtype != TM_I64) return tmk_plain(index, TM_I64);
    tmi_retain((tm_tensor *)index);
    return (tm_tensor *)index;
}

static tm_status out_of_bounds(int64_t index, int64_t dim, int64_t size)
{
    return tmi_fail(TM_INVALID, "index %lld is out of bounds for dimension %lld with size %lld", (long long)index, (long long)dim, (long long)size);
}

/* ---- gather and scatter */

tm_status tmk_gather(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, bool sparse_grad)
{
    tmk_walk w;
    int64_t bad;
    dim = wrapped(dim, self);
    tmk_walk_tensors(&w, self, dim, index, out);
    if (!tmk_places_valid(&w, false, &bad)) return out_of_bounds(bad, dim, w.limit);
    tmk_gather_walk(&w);
    return TM_OK;
}

static tm_status scatter(tm_tensor *out, const tm_tensor *self, int64_t dim, const tm_tensor *index, const tm_tensor *src, tmk_scatter op)
{
    tmk_walk w;
    int64_t bad;
    dim = wrapped(dim, self);
    tmk_walk_tensors(&w, out, dim, index, src);
    if (!tmk_places_valid(&w, false, &bad)) return out_of_bounds(bad, dim, w.limit);
    TMI_TRY(start_from(out, self));
    return tmk_scatter_walk(&w, op, "scatter");
}

/* One value as a tensor that the walk reads again and again. */
typedef struct constant {
    tm_tensor t;
    tm_storage storage;
    char value[16];
} constant;
static const tm_tensor *constant_like(constant *c, const tm_tensor *index, tm_dtype dtype, tm_scalar value)
{
    memset(c, 0, sizeof *c);
    tmi_store_scalar(c->value, dtype, value);
    c->storage.data = c->value;
    c->t.storage = &c->storage;
    c->t.ndim = index->ndim;
    c->t.sizes = index->sizes;
    static const int64_t zeros[TMI_MAX_DIMS];
    c->t.strides = (int64_t *)zeros;
    c->t.dtype = (uint8_t)dtype;
    c->t.numel = index->numel;
    return &c->t;
}

tm_status tmk_scatter_src(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src)
{
    return scatter(out, self, dim, index, src, TMK_SCATTER_SET);
}
tm_status tmk_scatter_add(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src)
{
    return scatter(out, self, dim, index, src, TMK_SCATTER_ADD);
}
tm_status tmk_scatter_value(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value)
{
    constant c;
    return scatter(out, self, dim, index, constant_like(&c, index, out->dtype, value), TMK_SCATTER_SET);
}

static tmk_scatter named(const char *reduce) { return strcmp(reduce, "add") == 0 ? TMK_SCATTER_ADD : TMK_SCATTER_MUL; }
tm_status tmk_scatter_named(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src, const char *reduce)
{
    return scatter(out, self, dim, index, src, named(reduce));
}
tm_status tmk_scatter_value_named(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value, const char *reduce)
{
    constant c;
    return scatter(out, self, dim, index, constant_like(&c, index, out->dtype, value), named(reduce));
}

/* ---- scatter_reduce */

static tm_scalar least(tm_dtype d)
{
    if (tmi_is_float(d)) return tm_f64(-INFINITY);
    switch (d) {
    case TM_I8: return tm_i64(INT8_MIN);
    case TM_I16: return tm_i64(INT16_MIN);
    case TM_I32: return tm_i64(INT32_MIN);
    case TM_I64: return tm_i64(INT64_MIN);
    default: return tm_i64(0);
    }
}
static tm_scalar greatest(tm_dtype d)
{
    if (tmi_is_float(d)) return tm_f64(INFINITY);
    switch (d) {
    case TM_I8: return tm_i64(INT8_MAX);
    case TM_I16: return tm_i64(INT16_MAX);
    case TM_I32: return tm_i64(INT32_MAX);
    case TM_U8: return tm_i64(UINT8_MAX);
    case TM_U16: return tm_i64(UINT16_MAX);
    case TM_U32: return tm_i64(UINT32_MAX);
    case TM_BOOL: return tm_i64(1);
    default: return tm_i64(INT64_MAX);
    }
}

typedef struct reduction {
    tmk_scatter op;
    bool mean;
    tm_scalar identity;
} reduction;

static reduction reduction_of(const char *name, tm_dtype d)
{
    reduction r = {TMK_SCATTER_ADD, strcmp(name, "mean") == 0, tm_i64(0)};
    if (strcmp(name, "prod") == 0) r = (reduction){TMK_SCATTER_MUL, false, tm_i64(1)};
    if (strcmp(name, "amax") == 0) r = (reduction){TMK_SCATTER_MAX, false, least(d)};
    if (strcmp(name, "amin") == 0) r = (reduction){TMK_SCATTER_MIN, false, greatest(d)};
    return r;
}

/* Divides every element that got contributions by their number (and itself, if it takes part). */
static void divide_by_counts(tm_tensor *out, const int64_t *counts, bool include_self)
{
    char *x = tmi_data(out);
    size_t size = tmi_dtype_size(out->dtype);
    for (int64_t i = 0; i < out->numel; i++) {
        int64_t n = counts[i] + (include_self && counts[i] ? 1 : 0);
        if (n <= 1) continue;
        tm_scalar v = tmi_load_scalar(x + (size_t)i * size, out->dtype);
        if (v.tag == TM_SCALAR_F64) v.v.f /= (double)n;
        else if (v.tag == TM_SCALAR_C128) v.v.c.re /= (double)n, v.v.c.im /= (double)n;
        else if (v.tag == TM_SCALAR_U64) v.v.u /= (uint64_t)n;
        else if (v.tag == TM_SCALAR_I64) v.v.i = v.v.i / n - (v.v.i % n < 0);
        tmi_store_scalar(x + (size_t)i * size, out->dtype, v);
    }
}

typedef void make_walk(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *index, const tm_tensor *slim);

/* The contributions per element, as a walk of ones. */
static tm_status count_places(tm_tensor *counts, int64_t dim, const tm_tensor *index, const tm_tensor *src, make_walk *make)
{
    constant one;
    tmk_walk w;
    TMI_TRY(tmk_fill(counts, tm_i64(0)));
    make(&w, counts, dim, index, constant_like(&one, src, TM_I64, tm_i64(1)));
    return tmk_scatter_walk(&w, TMK_SCATTER_ADD, "scatter_reduce");
}

static tm_status reduce_on(tm_tensor *work, int64_t dim, const tm_tensor *index, const tm_tensor *src, reduction r, bool include_self, make_walk *make)
{
    tmk_walk w;
    make(&w, work, dim, index, src);
    if (!include_self) {
        constant start;
        tmk_walk fill;
        make(&fill, work, dim, index, constant_like(&start, src, work->dtype, r.identity));
        TMI_TRY(tmk_scatter_walk(&fill, TMK_SCATTER_SET, "scatter_reduce"));
    }
    TMI_TRY(tmk_scatter_walk(&w, r.op, "scatter_reduce"));
    if (!r.mean || work->numel == 0) return TM_OK;
    tm_tensor *counts = tmi_tensor_new(work->ndim, work->sizes, NULL, TM_I64, work->device);
    if (!counts) return tm_error_status();
    tm_status status = count_places(counts, dim, index, src, make);
    if (status == TM_OK) divide_by_counts(work, tmi_data(counts), include_self);
    tmi_release(counts);
    return status;
}

static tm_status reduce_into(tm_tensor *out, const tm_tensor *self, const tm_tensor *source, int64_t dim, const tm_tensor *index, reduction r, bool include_self, make_walk *make)
{
    tm_tensor *work = tmi_tensor_new(self->ndim, self->sizes, NULL, self->dtype, self->device);
    tm_status status = work ? tmk_copy(work, self) : tm_error_status();
    if (status == TM_OK) status = reduce_on(work, dim, index, source, r, include_self, make);
    if (status == TM_OK) status = tmk_copy(out, work);
    if (work) tmi_release(work);
    return status;
}

tm_status tmk_scatter_reduce(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *src, const char *reduce, bool include_self)
{
    tmk_walk w;
    int64_t bad;
    dim = wrapped(dim, self);
    tmk_walk_tensors(&w, self, dim, index, src);
    if (!tmk_places_valid(&w, false, &bad)) return out_of_bounds(bad, dim, w.limit);
    return reduce_into(out, self, src, dim, index, reduction_of(reduce, self->dtype), include_self, tmk_walk_tensors);
}

/* ---- index_* */

static tm_status check_flat(const tmk_walk *w, tm_status status, const char *text, int64_t dim)
{
    int64_t bad;
    if (tmk_places_valid(w, false, &bad)) return TM_OK;
    if (text) return tmi_fail(status, "%s", text);
    return tmi_fail(status, "index %lld is out of bounds for dimension %lld with size %lld", (long long)bad, (long long)dim, (long long)w->limit);
}

tm_status tmk_index_select(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index)
{
    tmk_walk w;
    dim = wrapped(dim, self);
    tm_tensor *at = places(index);
    if (!at) return tm_error_status();
    tmk_walk_flat(&w, self, dim, at, out);
    tm_status status = check_flat(&w, TM_INDEX, "index out of range in self", dim);
    if (status == TM_OK) tmk_gather_walk(&w);
    tmi_release(at);
    return status;
}

static tm_status index_walk(tm_tensor *out, const tm_tensor *self, int64_t dim, const tm_tensor *index, const tm_tensor *source, tmk_scatter op,
                            const char *text)
{
    tmk_walk w;
    dim = wrapped(dim, self);
    tm_tensor *at = places(index);
    if (!at) return tm_error_status();
    tmk_walk_flat(&w, out, dim, at, source);
    tm_status status = check_flat(&w, TM_INDEX, text, dim);
    if (status == TM_OK) status = start_from(out, self);
    if (status == TM_OK) status = tmk_scatter_walk(&w, op, "index_add");
    tmi_release(at);
    return status;
}

/* alpha * t in t's dtype, or t itself for 1; a reference of one's own. */
static tm_tensor *scaled(const tm_tensor *t, tm_scalar alpha)
{
    if (alpha.tag != TM_SCALAR_C128 && tmi_scalar_f64(alpha) == 1) {
        tmi_retain((tm_tensor *)t);
        return (tm_tensor *)t;
    }
    tm_tensor *out = tmi_tensor_new(t->ndim, t->sizes, NULL, t->dtype, t->device);
    tmi_operand in[2] = {{.t = t}, {.s = alpha}};
    if (out && tmk_pointwise(TMK_PW_MUL, 2, in, 1, &out, t->dtype, NULL, 0) != TM_OK) {
        tmi_release(out);
        return NULL;
    }
    return out;
}

tm_status tmk_index_add(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source, tm_scalar alpha)
{
    tm_tensor *s = scaled(source, alpha);
    if (!s) return tm_error_status();
    tm_status status = index_walk(out, self, dim, index, s, TMK_SCATTER_ADD, "index out of range in self");
    tmi_release(s);
    return status;
}

tm_status tmk_index_copy(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source)
{
    return index_walk(out, self, dim, index, source, TMK_SCATTER_SET, NULL);
}

static tm_status fill_at(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value)
{
    constant c;
    tmk_walk w;
    int64_t bad;
    dim = wrapped(dim, self);
    tm_tensor *at = places(index);
    if (!at) return tm_error_status();
    tmk_walk_flat(&w, out, dim, at, constant_like(&c, out, out->dtype, value));
    w.slim = c.value;   /* also when out is empty elsewhere */
    tm_status status = TM_OK;
    if (!tmk_places_valid(&w, true, &bad))
        status = tmi_fail(TM_INDEX, "index %lld is out of bounds for dimension %lld with size %lld", (long long)bad, (long long)dim, (long long)w.limit);
    tm_tensor *positive = NULL;
    if (status == TM_OK) status = start_from(out, self);
    if (status == TM_OK && at->numel) {
        positive = tmi_tensor_new(1, (int64_t[]){at->numel}, NULL, TM_I64, at->device);
        status = positive ? TM_OK : tm_error_status();
    }
    if (positive) {
        int64_t *to = tmi_data(positive), step = at->ndim ? at->strides[0] : 0;
        for (int64_t i = 0; i < at->numel; i++) {
            int64_t v = w.at.narrow ? ((const int32_t *)w.at.data)[i * step] : ((const int64_t *)w.at.data)[i * step];
            to[i] = v < 0 ? v + w.limit : v;
        }
        w.at = (tmk_places){.data = to};
        w.at.strides[dim] = 1;
        status = tmk_scatter_walk(&w, TMK_SCATTER_SET, "index_fill_");
        tmi_release(positive);
    }
    tmi_release(at);
    return status;
}

tm_status tmk_index_fill(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_scalar value) { return fill_at(out, self, dim, index, value); }
tm_status tmk_index_fill_tensor(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *value)
{
    return fill_at(out, self, dim, index, tmi_load_scalar(tmi_data(value), value->dtype));
}

tm_status tmk_index_reduce(tm_tensor *out, tm_tensor *self, tm_int dim, tm_tensor *index, tm_tensor *source, const char *reduce, bool include_self)
{
    tmk_walk w;
    dim = wrapped(dim, self);
    tm_tensor *at = places(index);
    if (!at) return tm_error_status();
    tmk_walk_flat(&w, self, dim, at, source);
    tm_status status = check_flat(&w, TM_INDEX, "index out of range in self", dim);
    if (status == TM_OK) status = reduce_into(out, self, source, dim, at, reduction_of(reduce, self->dtype), include_self, tmk_walk_flat);
    tmi_release(at);
    return status;
}

/* ---- take and put: the flattened tensor */

/* Indices as int64 counted from the start; TM_INDEX where one is out of range. Released by the caller. */
static tm_tensor *flat_places(const tm_tensor *index, int64_t limit)
{
    tm_tensor *at = tmi_tensor_new(1, (int64_t[]){index->numel}, NULL, TM_I64, index->device), *plain = tmk_plain(index, TM_I64);
    bool good = at && plain;
    for (int64_t i = 0; good && i < index->numel; i++) {
        int64_t v = ((const int64_t *)tmi_data(plain))[i];
        if (v < -limit || v >= limit) {
            tmi_fail(TM_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.", (long long)v, (long long)limit);
            good = false;
            break;
        }
        ((int64_t *)tmi_data(at))[i] = v < 0 ? v + limit : v;
    }
    if (plain) tmi_release(plain);
    if (good) return at;
    if (at) tmi_release(at);
    return NULL;
}

static void flat_walk(tmk_walk *w, const tm_tensor *wide, const tm_tensor *at, const tm_tensor *slim)
{
    memset(w, 0, offsetof(tmk_walk, sizes));
    w->ndim = 1;
    w->dim = 0;
    w->sizes[0] = at->numel;
    w->wide_strides[0] = w->slim_strides[0] = 1;
    w->limit = wide->numel;
    w->at = (tmk_places){.data = at->numel ? tmi_data(at) : NULL};
    w->at.strides[0] = 1;
    w->dtype = wide->dtype;
    w->wide = tmi_data(wide);
    w->slim = tmi_data(slim);
}

tm_status tmk_take(tm_tensor *out, tm_tensor *self, tm_tensor *index)
{
    if (index->numel == 0) return TM_OK;
    tmk_walk w;
    tm_tensor *in = tmk_plain(self, self->dtype), *at = in ? flat_places(index, self->numel) : NULL, *to = tmk_plain_out(out, out->dtype);
    tm_status status = at && to ? TM_OK : tm_error_status();
    if (status == TM_OK) {
        flat_walk(&w, in, at, to);
        tmk_gather_walk(&w);
    }
    if (in) tmi_release(in);
    if (at) tmi_release(at);
    return tmk_plain_end(out, to, status);
}

tm_status tmk_put(tm_tensor *out, tm_tensor *self, tm_tensor *index, tm_tensor *source, bool accumulate)
{
    TMI_REQUIRE(index->dtype == TM_I64, TM_INDEX, "put_(): Expected a long tensor for index, but got %s", tmi_dtypes[index->dtype].type_name);
    TMI_REQUIRE(self->dtype == source->dtype, TM_INVALID, "put_(): self and source expected to have the same dtype, but got self.dtype = %s and "
                "source.dtype = %s", tmi_dtypes[self->dtype].type_name, tmi_dtypes[source->dtype].type_name);
    TMI_REQUIRE(index->numel == source->numel, TM_INVALID, "put_(): Expected source and index to have the same number of elements, but got "
                "source.numel() = %lld, index.numel() = %lld", (long long)source->numel, (long long)index->numel);
    TMI_REQUIRE(self->numel > 0 || index->numel == 0, TM_INDEX, "put_(): Expected self to be non-empty");
    tmk_walk w;
    tm_tensor *from = tmk_plain(source, source->dtype), *at = from ? flat_places(index, self->numel) : NULL, *to = tmk_plain_out(out, out->dtype);
    tm_status status = at && to ? TM_OK : tm_error_status();
    if (status == TM_OK) status = tmk_copy(to, self);
    if (status == TM_OK && index->numel) {
        flat_walk(&w, to, at, from);
        status = tmk_scatter_walk(&w, accumulate ? TMK_SCATTER_ADD : TMK_SCATTER_SET, "put_");
    }
    if (from) tmi_release(from);
    if (at) tmi_release(at);
    return tmk_plain_end(out, to, status);
}
