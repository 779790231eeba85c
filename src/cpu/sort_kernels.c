/* sort, topk, kthvalue, median, mode: a thread owns a line. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "lines.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"
#include "sort_keys.h"

typedef struct sorter {
    const char *in;
    char *values;
    int64_t *indices;
    tmk_lines l;
    tm_dtype dtype;
    int64_t size, k;
    bool descending, skip_nan, lower_median;
    char *scratch;
    int64_t scratch_size;
} sorter;

#define KEY uint32_t
#define PAIR tmk_pair32
#define KEYS tmk_keys32
#define SORT_PAIRS tmk_sort_pairs32
#define NAME(x) short_##x
#include "sort_lines.tmpl.h"
#undef KEY
#undef PAIR
#undef KEYS
#undef SORT_PAIRS
#undef NAME
#define KEY uint64_t
#define PAIR tmk_pair64
#define KEYS tmk_keys64
#define SORT_PAIRS tmk_sort_pairs64
#define NAME(x) long_##x
#include "sort_lines.tmpl.h"

static const char *line_of(const sorter *s, int64_t t, int64_t *outer, int64_t *inner)
{
    *outer = t / s->l.inner;
    *inner = t % s->l.inner;
    return s->in + (*outer * s->l.length * s->l.inner + *inner) * s->size;
}

static char *scratch_of(const sorter *s) { return s->scratch + tmi_pool_thread() * s->scratch_size; }

static void sort_lines(void *ctx, int64_t begin, int64_t end)
{
    const sorter *s = ctx;
    for (int64_t t = begin, outer, inner; t < end; t++) {
        const char *line = line_of(s, t, &outer, &inner);
        if (tmk_short_keys(s->dtype)) short_sort_line(s, line, scratch_of(s), outer, inner);
        else long_sort_line(s, line, scratch_of(s), outer, inner);
    }
}

static void top_lines(void *ctx, int64_t begin, int64_t end)
{
    const sorter *s = ctx;
    for (int64_t t = begin, outer, inner; t < end; t++) {
        const char *line = line_of(s, t, &outer, &inner);
        if (tmk_short_keys(s->dtype)) short_top_line(s, line, scratch_of(s), outer, inner);
        else long_top_line(s, line, scratch_of(s), outer, inner);
    }
}

/* Rank and place. NaN: for the median any NaN is the result; nanmedian ranks the rest. */
static int64_t select_place(const sorter *s, const char *line, char *scratch, int64_t k)
{
    return tmk_short_keys(s->dtype) ? (int64_t)short_select(s, line, scratch, k).place : long_select(s, line, scratch, k).place;
}

static bool nan_at(const sorter *s, const char *p)
{
    return tmi_is_float(s->dtype) && isnan(tmi_scalar_f64(tmi_load_scalar(p, s->dtype)));
}

static int64_t median_place(const sorter *s, const char *line, char *scratch)
{
    int64_t step = s->l.inner * s->size, nans = 0, first = -1;
    for (int64_t i = 0; i < s->l.length && tmi_is_float(s->dtype); i++)
        if (nan_at(s, line + i * step)) {
            if (first < 0) first = i;
            nans++;
        }
    if (nans && (!s->skip_nan || nans == s->l.length)) return first;
    return select_place(s, line, scratch, (s->l.length - nans - 1) / 2);
}

static void select_lines(void *ctx, int64_t begin, int64_t end)
{
    const sorter *s = ctx;
    for (int64_t t = begin, outer, inner; t < end; t++) {
        const char *line = line_of(s, t, &outer, &inner);
        int64_t place = s->lower_median ? median_place(s, line, scratch_of(s)) : select_place(s, line, scratch_of(s), s->k);
        s->indices[t] = place;
        memcpy(s->values + t * s->size, line + place * s->l.inner * s->size, (size_t)s->size);
    }
}

/* The most frequent element, the smallest of equals; its last place. */
static void mode_lines(void *ctx, int64_t begin, int64_t end)
{
    const sorter *s = ctx;
    for (int64_t t = begin, outer, inner; t < end; t++) {
        const char *line = line_of(s, t, &outer, &inner);
        tmk_pair64 *pairs = (tmk_pair64 *)scratch_of(s), *other = pairs + s->l.length;
        int64_t n = s->l.length, best = 0, best_run = 0, run = 0;
        for (int64_t i = 0; i < n; i++) {
            const char *at = line + i * s->l.inner * s->size;
            uint32_t key32;
            if (tmk_short_keys(s->dtype)) {
                tmk_keys32(s->dtype, at, 1, 1, false, &key32);
                pairs[i].key = key32;
            } else {
                tmk_keys64(s->dtype, at, 1, 1, false, &pairs[i].key);
            }
            pairs[i].place = i;
        }
        tmk_sort_pairs64(pairs, other, n);
        for (int64_t i = 0; i < n; i++) {
            run = i > 0 && pairs[i].key == pairs[i - 1].key ? run + 1 : 1;
            if (run > best_run) {
                best_run = run;
                best = i;
            }
        }
        s->indices[t] = pairs[best].place;
        memcpy(s->values + t * s->size, line + pairs[best].place * s->l.inner * s->size, (size_t)s->size);
    }
}

static tm_status run(tm_tensor *values, tm_tensor *indices, const tm_tensor *self, tmk_lines l, sorter s, int64_t scratch_pairs, tmi_range_fn *fn)
{
    if (self->numel == 0 || values->numel == 0) return TM_OK;
    tm_tensor *in = tmk_plain(self, self->dtype), *v = tmk_plain_out(values, self->dtype), *at = tmk_plain_out(indices, TM_I64);
    s.scratch_size = (scratch_pairs + 4) * (int64_t)sizeof(tmk_pair64);
    size_t bytes = (size_t)(s.scratch_size * tmi_pool_size());
    s.scratch = tmi_data_alloc(bytes);
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        s.l = l;
        s.in = tmi_data(in);
        s.values = tmi_data(v);
        s.indices = tmi_data(at);
        s.dtype = (tm_dtype)self->dtype;
        s.size = (int64_t)tmi_dtype_size(self->dtype);
        tmi_parallel_for(l.outer * l.inner, 1 + 4096 / l.length, fn, &s);
    }
    if (s.scratch) tmi_data_free(s.scratch, bytes);
    if (in) tmi_release(in);
    if (at) status = tmk_plain_end(indices, at, status);
    return tmk_plain_end(values, v, status);
}

tm_status tmk_sort(tm_tensor *values, tm_tensor *indices, tm_tensor *self, const bool *stable, tm_int dim, bool descending)
{
    tmk_lines l = tmk_lines_of(self, dim);
    return run(values, indices, self, l, (sorter){.descending = descending}, 2 * l.length, sort_lines);
}

tm_status tmk_topk(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int k, tm_int dim, bool largest, bool sorted)
{
    tmk_lines l = tmk_lines_of(self, dim);
    bool most = k > l.length / 4;
    int64_t room = k * 2 > 256 ? k * 2 : 256;
    sorter s = {.descending = largest, .k = k};
    return run(values, indices, self, l, s, most ? 2 * (room > l.length ? room : l.length) : 2 * room, top_lines);
}

tm_status tmk_kthvalue(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int k, tm_int dim, bool keepdim)
{
    tmk_lines l = tmk_lines_of(self, dim);
    return run(values, indices, self, l, (sorter){.k = k - 1}, 3 * l.length, select_lines);
}

static tm_status median(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tmk_lines l, bool skip_nan)
{
    return run(values, indices, self, l, (sorter){.lower_median = true, .skip_nan = skip_nan}, 3 * l.length, select_lines);
}
tm_status tmk_median_dim(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim, bool keepdim) { return median(values, indices, self, tmk_lines_of(self, dim), false); }
tm_status tmk_nanmedian_dim(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim, bool keepdim) { return median(values, indices, self, tmk_lines_of(self, dim), true); }

static tm_status median_all(tm_tensor *out, tm_tensor *self, bool skip_nan)
{
    if (self->numel == 0) return tmk_fill(out, tm_f64(NAN));
    tm_tensor *index = tmi_tensor_new(0, NULL, NULL, TM_I64, self->device);
    if (!index) return tm_error_status();
    tm_status status = median(out, index, self, (tmk_lines){1, self->numel, 1}, skip_nan);
    tmi_release(index);
    return status;
}
tm_status tmk_median(tm_tensor *out, tm_tensor *self) { return median_all(out, self, false); }
tm_status tmk_nanmedian(tm_tensor *out, tm_tensor *self) { return median_all(out, self, true); }

tm_status tmk_mode(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim, bool keepdim)
{
    tmk_lines l = tmk_lines_of(self, dim);
    return run(values, indices, self, l, (sorter){0}, 2 * l.length, mode_lines);
}
