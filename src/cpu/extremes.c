/* Largest and smallest elements with their place: max(dim), argmax and the like. NaN is beyond every number; the first of equals wins.
 *
 * A straight line is searched in two steps: the vectorised fold finds a block's extreme, and only a block that beats the best so far is
 * searched for the place. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "lines.h"
#include "op_bodies.h"
#include "reduce.h"
#include "scratch.h"

enum { BLOCK = 1024, PART = 65536, COLUMNS = 512 };

typedef struct search {
    const char *data;
    tmk_lines l;
    int64_t in_size, acc_size;
    int64_t n_parts, n_blocks;
    tmk_acc acc;
    int which;                      /* 0 largest, 1 smallest */
    void (*row)(const void *, int64_t, void *);
    void (*tree)(void *, void *);
    void (*load)(const void *, int64_t, int64_t, void *);
    void (*arg_rows)(const void *, int64_t, int64_t, int64_t, void *, void *);
    bool direct, flip;              /* flip: unsigned 64-bit, shifted to keep the order */
    char *best;                     /* [part][output] numbers */
    int64_t *index;                 /* [part][output] */
    int64_t n_out;
} search;

static double as_f64(const search *s, const char *p) { return s->acc == TMK_ACC_F32 ? *(const float *)p : *(const double *)p; }

/* Whether number a beats b. */
static bool beats(const search *s, const char *a, const char *b)
{
    if (s->acc == TMK_ACC_I64) {
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
        return s->which ? x < y : x > y;
    }
    double x = as_f64(s, a), y = as_f64(s, b);
    if (isnan(x)) return !isnan(y);
    return s->which ? x < y : x > y;
}

static bool same(const search *s, const char *a, const char *b)
{
    if (s->acc == TMK_ACC_I64) return *(const int64_t *)a == *(const int64_t *)b;
    double x = as_f64(s, a), y = as_f64(s, b);
    return x == y || (isnan(x) && isnan(y));
}

static const char *numbers(const search *s, const char *at, int64_t n, char *buf)
{
    if (s->direct) return at;
    s->load(at, 1, n, buf);
    if (s->flip)
        for (int64_t i = 0; i < n; i++) ((uint64_t *)buf)[i] ^= UINT64_C(1) << 63;
    return buf;
}

static void search_line(const search *s, const char *line, int64_t begin, int64_t end, char *best, int64_t *index)
{
    _Alignas(64) char buf[BLOCK * 8], lanes[TMK_LANES * 8], top[8];
    int64_t acc = s->acc_size;
    for (int64_t i = begin; i < end; i += BLOCK) {
        int64_t n = end - i < BLOCK ? end - i : BLOCK;
        const char *x = numbers(s, line + i * s->in_size, n, buf);
        for (int k = 0; k < TMK_LANES; k++) memcpy(lanes + k * acc, x, (size_t)acc);
        s->row(x, n, lanes);
        s->tree(lanes, top);
        if (i > begin && !beats(s, top, best)) continue;
        int64_t k = 0;
        while (k < n - 1 && !same(s, x + k * acc, top)) k++;
        memcpy(best, x + k * acc, (size_t)acc);
        *index = i + k;
    }
}

/* Task t: part of line t / n_parts. */
static void run_lines(void *ctx, int64_t begin, int64_t end)
{
    const search *s = ctx;
    for (int64_t t = begin; t < end; t++) {
        int64_t o = t / s->n_parts, part = t % s->n_parts, first = part * PART;
        int64_t last = first + PART < s->l.length ? first + PART : s->l.length, at = part * s->n_out + o;
        search_line(s, s->data + o * s->l.length * s->in_size, first, last, s->best + at * s->acc_size, &s->index[at]);
    }
}

/* Columns of [length, inner]: leaves of rows, then the leaves against each other. */
static void search_columns(const search *s, const char *base, int64_t width, char *best, int64_t *index)
{
    _Alignas(64) char row[COLUMNS * 8], leaf_best[COLUMNS * 8], leaf_index[COLUMNS * 8];
    int64_t acc = s->acc_size, pitch = s->l.inner * s->in_size;
    for (int64_t r = 0; r < s->l.length;) {
        int64_t n = s->direct ? (s->l.length - r < TMK_LEAF ? s->l.length - r : TMK_LEAF) : 1;
        const char *x = numbers(s, base + r * pitch, width, row);
        s->arg_rows(x, s->l.inner, n, width, leaf_best, leaf_index);
        for (int64_t b = 0; b < width; b++) {
            if (r > 0 && !beats(s, leaf_best + b * acc, best + b * acc)) continue;
            memcpy(best + b * acc, leaf_best + b * acc, (size_t)acc);
            index[b] = r + (acc == 4 ? ((int32_t *)leaf_index)[b] : ((int64_t *)leaf_index)[b]);
        }
        r += n;
    }
}

static void run_columns(void *ctx, int64_t begin, int64_t end)
{
    const search *s = ctx;
    for (int64_t t = begin; t < end; t++) {
        int64_t outer = t / s->n_blocks, first = t % s->n_blocks * COLUMNS;
        int64_t width = s->l.inner - first < COLUMNS ? s->l.inner - first : COLUMNS, o = outer * s->l.inner + first;
        search_columns(s, s->data + (outer * s->l.length * s->l.inner + first) * s->in_size, width, s->best + o * s->acc_size, s->index + o);
    }
}

static void merge_parts(search *s)
{
    for (int64_t part = 1; part < s->n_parts; part++)
        for (int64_t o = 0; o < s->n_out; o++) {
            char *x = s->best + (part * s->n_out + o) * s->acc_size, *best = s->best + o * s->acc_size;
            if (!beats(s, x, best)) continue;
            memcpy(best, x, (size_t)s->acc_size);
            s->index[o] = s->index[part * s->n_out + o];
        }
}

static void run_search(search *s)
{
    if (s->l.inner == 1) {
        int64_t line = s->l.length < PART ? s->l.length : PART;
        tmi_parallel_for(s->n_out * s->n_parts, 1 + 65536 / (line * s->in_size + 64), run_lines, s);
        merge_parts(s);
    } else {
        int64_t width = s->l.inner < COLUMNS ? s->l.inner : COLUMNS;
        tmi_parallel_for(s->l.outer * s->n_blocks, 1 + 65536 / (s->l.length * width * s->in_size), run_columns, s);
    }
}

static void store_results(search *s, tm_tensor *values, tm_tensor *indices)
{
    if (s->flip)
        for (int64_t o = 0; o < s->n_out; o++) ((uint64_t *)s->best)[o] ^= UINT64_C(1) << 63;
    if (values) tmk_acc_store(values, s->acc, s->best);
    tmk_acc_store(indices, TMK_ACC_I64, s->index);
}

/* Over lines `l` of t (contiguous). values may be NULL. */
static tm_status find_extremes(tm_tensor *values, tm_tensor *indices, const tm_tensor *t, tmk_lines l, int which)
{
    const tmk_fold_table *k = tmk_folds();
    search s = {.data = tmi_data(t), .l = l, .in_size = (int64_t)tmi_dtype_size(t->dtype), .which = which, .n_out = l.outer * l.inner};
    s.acc = tmk_acc_of(t->dtype);
    s.acc_size = (int64_t)tmk_acc_size(s.acc);
    s.row = k->row[s.acc][which ? TMK_FOLD_MIN : TMK_FOLD_MAX];
    s.tree = k->tree[s.acc][which ? TMK_FOLD_MIN : TMK_FOLD_MAX];
    s.arg_rows = k->arg_rows[s.acc][which];
    s.load = tmk_load(t->dtype, s.acc);
    s.flip = t->dtype == TM_U64;
    s.direct = t->dtype == tmk_acc_dtype(s.acc);
    s.n_parts = l.inner == 1 ? (l.length + PART - 1) / PART : 1;
    s.n_blocks = (l.inner + COLUMNS - 1) / COLUMNS;
    int64_t n = s.n_out * s.n_parts;
    if (n == 0) return TM_OK;
    s.best = tmk_acc_alloc(s.acc, n);
    s.index = tmk_acc_alloc(TMK_ACC_I64, n);
    tm_status status = s.best && s.index ? TM_OK : TM_NOMEM;
    if (status == TM_OK) {
        run_search(&s);
        store_results(&s, values, indices);
    }
    tmk_acc_free(s.acc, n, s.best);
    tmk_acc_free(TMK_ACC_I64, n, s.index);
    return status;
}

static tm_status extremes(tm_tensor *values, tm_tensor *indices, const tm_tensor *self, const tm_int *dim, int which)
{
    tm_tensor *t = tmk_plain(self, self->dtype);
    if (!t) return tm_error_status();
    tmk_lines l = dim ? tmk_lines_of(t, *dim) : (tmk_lines){1, t->numel, 1};
    tm_status status = find_extremes(values, indices, t, l, which);
    tmi_release(t);
    return status;
}

tm_status tmk_max_dim(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim, bool keepdim) { return extremes(values, indices, self, &dim, 0); }
tm_status tmk_min_dim(tm_tensor *values, tm_tensor *indices, tm_tensor *self, tm_int dim, bool keepdim) { return extremes(values, indices, self, &dim, 1); }
tm_status tmk_argmax(tm_tensor *out, tm_tensor *self, const tm_int *dim, bool keepdim) { return extremes(NULL, out, self, dim, 0); }
tm_status tmk_argmin(tm_tensor *out, tm_tensor *self, const tm_int *dim, bool keepdim) { return extremes(NULL, out, self, dim, 1); }
