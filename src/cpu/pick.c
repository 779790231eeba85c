/* The walk of gather and scatter: an odometer over the outer dims, a typed run over the innermost.
 *
 * Scatters are deterministic and still parallel: work is cut along dims other than the indexed one, so two threads never write one
 * element, and each element gets its contributions in logical order. */
#include "pick.h"

#include <math.h>

#include "base/pool.h"
#include "kernels/half_inline.h"

typedef struct run {
    char *wide, *slim;
    const void *index;
    bool narrow, separate;
    int64_t n, wide_stride, slim_stride, line_stride, index_stride;
} run;
typedef void run_fn(const run *r);

/* ---- moves by element size */
typedef struct { uint64_t part[2]; } sixteen;
#define T uint8_t
#define NAME(x) b1_##x
#include "pick_gather.tmpl.h"
#define COMBINE(a, b) (b)
#include "pick_scatter.tmpl.h"
#undef T
#undef NAME
#define T uint16_t
#define NAME(x) b2_##x
#include "pick_gather.tmpl.h"
#include "pick_scatter.tmpl.h"
#undef T
#undef NAME
#define T uint32_t
#define NAME(x) b4_##x
#include "pick_gather.tmpl.h"
#include "pick_scatter.tmpl.h"
#undef T
#undef NAME
#define T uint64_t
#define NAME(x) b8_##x
#include "pick_gather.tmpl.h"
#include "pick_scatter.tmpl.h"
#undef T
#undef NAME
#define T sixteen
#define NAME(x) b16_##x
#include "pick_gather.tmpl.h"
#include "pick_scatter.tmpl.h"
#undef T
#undef NAME
#undef COMBINE

/* ---- combining scatters by dtype */
static inline tmi_f16 add_f16(tmi_f16 a, tmi_f16 b) { return float_to_half(half_to_float(a) + half_to_float(b)); }
static inline tmi_f16 mul_f16(tmi_f16 a, tmi_f16 b) { return float_to_half(half_to_float(a) * half_to_float(b)); }
static inline tmi_bf16 add_bf16(tmi_bf16 a, tmi_bf16 b) { return tmi_f32_to_bf16(tmi_bf16_to_f32(a) + tmi_bf16_to_f32(b)); }
static inline tmi_bf16 mul_bf16(tmi_bf16 a, tmi_bf16 b) { return tmi_f32_to_bf16(tmi_bf16_to_f32(a) * tmi_bf16_to_f32(b)); }
#define GREATER_F16(a, b) (half_to_float(b) > half_to_float(a) || isnan(half_to_float(b)) ? (b) : (a))
#define LESS_F16(a, b) (half_to_float(b) < half_to_float(a) || isnan(half_to_float(b)) ? (b) : (a))
#define GREATER_BF16(a, b) (tmi_bf16_to_f32(b) > tmi_bf16_to_f32(a) || isnan(tmi_bf16_to_f32(b)) ? (b) : (a))
#define LESS_BF16(a, b) (tmi_bf16_to_f32(b) < tmi_bf16_to_f32(a) || isnan(tmi_bf16_to_f32(b)) ? (b) : (a))
#define GREATER_REAL(a, b) ((b) > (a) || isnan(b) ? (b) : (a))
#define LESS_REAL(a, b) ((b) < (a) || isnan(b) ? (b) : (a))
#define GREATER_INT(a, b) ((b) > (a) ? (b) : (a))
#define LESS_INT(a, b) ((b) < (a) ? (b) : (a))
#define ADD(a, b) ((T)((a) + (b)))
#define MUL(a, b) ((T)((a) * (b)))
#define ADD_INT(a, b) ((T)((U)(a) + (U)(b)))
#define MUL_INT(a, b) ((T)((U)(a) * (U)(b)))
#define OR(a, b) ((T)((a) | (b)))
#define AND(a, b) ((T)((a) & (b)))
#include "pick_table.inc"

static run_fn *const set_runs[] = {b1_scatter_run, b2_scatter_run, b4_scatter_run, b8_scatter_run, b16_scatter_run};
static run_fn *const gather_runs[] = {b1_gather_run, b2_gather_run, b4_gather_run, b8_gather_run, b16_gather_run};
static int size_class(tm_dtype d) { return __builtin_ctz((unsigned)tmi_dtype_size(d)); }

/* ---- walks */

static inline int64_t index_at(const tmk_places *p, int64_t at) { return p->narrow ? ((const int32_t *)p->data)[at] : ((const int64_t *)p->data)[at]; }

/* The first of n indices that is outside [lo, limit), or -1. The test of a whole run is one comparison per index, without branches. */
static int64_t bad_in_run(const tmk_places *p, int64_t at, int64_t n, int64_t stride, int64_t lo, int64_t limit)
{
    uint64_t range = (uint64_t)(limit - lo), outside = 0;
    for (int64_t i = 0; i < n; i++) outside |= (uint64_t)(index_at(p, at + i * stride) - lo) >= range;
    for (int64_t i = 0; outside && i < n; i++)
        if ((uint64_t)(index_at(p, at + i * stride) - lo) >= range) return i;
    return -1;
}

bool tmk_places_valid(const tmk_walk *w, bool negative, int64_t *bad)
{
    int64_t lo = negative ? -w->limit : 0, at = 0, index[TMI_MAX_DIMS] = {0}, size[TMI_MAX_DIMS], stride[TMI_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < w->ndim; d++) {
        if (w->sizes[d] == 0) return true;
        if (w->at.strides[d] == 0) continue;   /* the same indices again */
        size[n] = w->sizes[d];
        stride[n++] = w->at.strides[d];
    }
    if (n == 0) size[n] = stride[n] = 1, n = 1;
    for (;;) {
        int64_t k = bad_in_run(&w->at, at, size[n - 1], stride[n - 1], lo, w->limit);
        if (k >= 0) {
            *bad = index_at(&w->at, at + k * stride[n - 1]);
            return false;
        }
        int d = n - 2;
        for (; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < size[d]) break;
            at -= size[d] * stride[d];
            index[d] = 0;
        }
        if (d < 0) return true;
    }
}

/* Walk dims that can be merged are: same index for both, contiguous in both. Dims of size 1 go. */
static void simplify(tmk_walk *w)
{
    int n = 0;
    for (int d = 0; d < w->ndim; d++) {
        if (w->sizes[d] == 1 && d != w->dim) continue;
        bool merge = n > 0 && d != w->dim && n - 1 != w->dim && w->wide_strides[n - 1] == w->sizes[d] * w->wide_strides[d] &&
                     w->slim_strides[n - 1] == w->sizes[d] * w->slim_strides[d] && w->at.strides[n - 1] == w->sizes[d] * w->at.strides[d];
        if (merge) {
            w->sizes[n - 1] *= w->sizes[d];
        } else {
            if (d == w->dim) w->dim = n;
            w->sizes[n] = w->sizes[d];
            n++;
        }
        w->wide_strides[n - 1] = w->wide_strides[d];
        w->slim_strides[n - 1] = w->slim_strides[d];
        w->at.strides[n - 1] = w->at.strides[d];
    }
    w->ndim = n;
}

typedef struct task {
    const tmk_walk *w;
    run_fn *fn;
    int cut;           /* the dim that is divided between chunks */
    bool separate;
} task;

/* All positions with coordinate `cut` in [begin, end). */
static void run_box(void *ctx, int64_t begin, int64_t end)
{
    const task *t = ctx;
    const tmk_walk *w = t->w;
    int last = w->ndim - 1;
    int64_t esize = (int64_t)tmi_dtype_size(w->dtype), isize = w->at.narrow ? 4 : 8, lo[TMI_MAX_DIMS], n[TMI_MAX_DIMS], at[TMI_MAX_DIMS];
    int64_t wide = 0, slim = 0, index = 0;
    for (int d = 0; d <= last; d++) {
        lo[d] = d == t->cut ? begin : 0;
        n[d] = d == t->cut ? end - begin : w->sizes[d];
        at[d] = 0;
        slim += lo[d] * w->slim_strides[d];
        index += lo[d] * w->at.strides[d];
        if (d != w->dim) wide += lo[d] * w->wide_strides[d];
    }
    run r = {.narrow = w->at.narrow, .separate = t->separate, .n = n[last], .wide_stride = last == w->dim ? 0 : w->wide_strides[last],
             .slim_stride = w->slim_strides[last], .line_stride = w->wide_strides[w->dim], .index_stride = w->at.strides[last]};
    for (;;) {
        r.wide = w->wide + wide * esize;
        r.slim = w->slim + slim * esize;
        r.index = (const char *)w->at.data + index * isize;
        t->fn(&r);
        int d = last - 1;
        for (; d >= 0; d--) {
            int64_t ws = d == w->dim ? 0 : w->wide_strides[d];
            slim += w->slim_strides[d];
            index += w->at.strides[d];
            wide += ws;
            if (++at[d] < n[d]) break;
            slim -= n[d] * w->slim_strides[d];
            index -= n[d] * w->at.strides[d];
            wide -= n[d] * ws;
            at[d] = 0;
        }
        if (d < 0) return;
    }
}

/* Rows of bytes: one index per row, the rest contiguous in both. */
typedef struct row_task {
    const tmk_walk *w;
    int64_t bytes, rows_per_outer, esize, wide_outer, slim_outer, index_outer;
} row_task;

static void gather_rows(void *ctx, int64_t begin, int64_t end)
{
    const row_task *t = ctx;
    const tmk_walk *w = t->w;
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / t->rows_per_outer, k = i % t->rows_per_outer;
        int64_t index = index_at(&w->at, outer * t->index_outer + k * w->at.strides[w->dim]);
        memcpy(w->slim + (outer * t->slim_outer + k * w->slim_strides[w->dim]) * t->esize,
               w->wide + (outer * t->wide_outer + index * w->wide_strides[w->dim]) * t->esize, (size_t)t->bytes);
    }
}

static bool as_rows(const tmk_walk *w, row_task *t)
{
    int last = w->ndim - 1;
    if (w->dim != last - 1 || last > 2 || w->at.strides[last] != 0 || w->wide_strides[last] != 1 || w->slim_strides[last] != 1) return false;
    t->w = w;
    t->esize = (int64_t)tmi_dtype_size(w->dtype);
    t->bytes = w->sizes[last] * t->esize;
    t->rows_per_outer = w->sizes[w->dim];
    t->wide_outer = last == 2 ? w->wide_strides[0] : 0;
    t->slim_outer = last == 2 ? w->slim_strides[0] : 0;
    t->index_outer = last == 2 ? w->at.strides[0] : 0;
    return t->bytes >= 64;
}

/* Cuts at the largest dim (not the indexed one, when that is forbidden). */
static void run_walk(const tmk_walk *w, run_fn *fn, bool cut_indexed, bool separate)
{
    task t = {w, fn, -1, separate};
    int64_t total = 1;
    for (int d = 0; d < w->ndim; d++) {
        total *= w->sizes[d];
        if (d == w->dim && !cut_indexed) continue;
        if (t.cut < 0 || w->sizes[d] > w->sizes[t.cut]) t.cut = d;
    }
    if (total == 0) return;
    if (t.cut < 0) {
        run_box(&t, 0, 0);
        return;
    }
    int64_t per = total / w->sizes[t.cut], grain = 1 + 32768 / per;
    if (t.cut == w->ndim - 1 && grain < 64) grain = 64;
    tmi_parallel_for(w->sizes[t.cut], grain, run_box, &t);
}

void tmk_gather_walk(const tmk_walk *given)
{
    tmk_walk w = *given;
    for (int d = 0; d < w.ndim; d++)
        if (w.sizes[d] == 0) return;
    simplify(&w);
    row_task rows;
    if (as_rows(&w, &rows)) {
        int64_t n = rows.rows_per_outer * (w.ndim == 3 ? w.sizes[0] : 1);
        tmi_parallel_for(n, 1 + 65536 / rows.bytes, gather_rows, &rows);
        return;
    }
    run_walk(&w, gather_runs[size_class(w.dtype)], true, true);
}

tm_status tmk_scatter_walk(const tmk_walk *given, tmk_scatter op, const char *name)
{
    tmk_walk w = *given;
    run_fn *fn = op == TMK_SCATTER_SET ? set_runs[size_class(w.dtype)] : combine_runs[op][w.dtype];
    TMI_REQUIRE(fn, TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", name, tmi_dtypes[w.dtype].type_name);
    for (int d = 0; d < w.ndim; d++)
        if (w.sizes[d] == 0) return TM_OK;
    simplify(&w);
    run_walk(&w, fn, false, true);
    return TM_OK;
}

/* ---- making walks */

static void set_index(tmk_walk *w, const tm_tensor *index)
{
    w->at.data = index->numel ? tmi_data(index) : NULL;
    w->at.narrow = index->dtype == TM_I32;
}

static void set_sides(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *slim)
{
    w->dtype = wide->dtype;
    w->dim = (int)dim;
    w->wide = wide->numel ? tmi_data(wide) : NULL;
    w->slim = slim->numel ? tmi_data(slim) : NULL;
    w->limit = wide->ndim ? wide->sizes[dim] : 1;
    for (int d = 0; d < w->ndim; d++) {
        w->wide_strides[d] = wide->ndim ? wide->strides[d] : 1;
        w->slim_strides[d] = slim->ndim ? slim->strides[d] : 0;
    }
}

void tmk_walk_tensors(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *index, const tm_tensor *slim)
{
    w->ndim = index->ndim ? index->ndim : 1;
    for (int d = 0; d < w->ndim; d++) {
        w->sizes[d] = index->ndim ? index->sizes[d] : 1;
        w->at.strides[d] = index->ndim ? index->strides[d] : 0;
    }
    set_index(w, index);
    set_sides(w, wide, dim, slim);
}

void tmk_walk_flat(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *index, const tm_tensor *slim)
{
    w->ndim = wide->ndim ? wide->ndim : 1;
    for (int d = 0; d < w->ndim; d++) {
        w->sizes[d] = wide->ndim ? wide->sizes[d] : 1;
        w->at.strides[d] = 0;
    }
    w->sizes[dim] = index->numel;
    w->at.strides[dim] = index->ndim ? index->strides[0] : 0;
    set_index(w, index);
    set_sides(w, wide, dim, slim);
}
