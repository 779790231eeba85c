/* Three ways through memory, chosen once per call:
 *   rows     the innermost dim is long: runs along it, cut to tiles where something must be converted
 *   packed   it is short: tiles over all dims in order, operands that are not straight there are gathered row by row
 *   blocks   an operand is straight along another dim (a transpose): blocks of both dims, each read cache line by cache line */
#include "iterate.h"

#include "base/cpuinfo.h"
#include "base/pool.h"

enum { SHORT_ROW = 32, BLOCK_ROWS = 16, MIN_BLOCK = 8 };

/* ---------------------------------------------------------------- set up */

void tmk_walk_output(tmk_walk *w, const tm_tensor *out, tm_dtype native)
{
    tmk_operand *o = &w->operand[0];
    int64_t item = (int64_t)tmi_dtype_size(out->dtype);
    w->ndim = out->ndim;
    for (int d = 0; d < out->ndim; d++) {
        w->size[d] = out->sizes[out->ndim - 1 - d];
        o->stride[d] = w->size[d] == 1 ? 0 : out->strides[out->ndim - 1 - d] * item;
    }
    o->data = tmi_data(out);
    o->dtype = out->dtype;
    o->native = o->rounded = (uint8_t)native;
}

void tmk_walk_input(tmk_walk *w, int k, const tm_tensor *t, tm_dtype native)
{
    tmk_operand *o = &w->operand[k];
    int64_t item = (int64_t)tmi_dtype_size(t->dtype);
    for (int d = 0; d < w->ndim; d++) {
        int s = t->ndim - 1 - d;
        o->stride[d] = s < 0 || t->sizes[s] == 1 ? 0 : t->strides[s] * item;
    }
    o->data = tmi_data(t);
    o->dtype = t->dtype;
    o->native = o->rounded = (uint8_t)native;
}

void tmk_walk_number(tmk_walk *w, int k, void *value, tm_dtype native)
{
    tmk_operand *o = &w->operand[k];
    for (int d = 0; d < w->ndim; d++) o->stride[d] = 0;
    o->data = value;
    o->dtype = o->native = o->rounded = (uint8_t)native;
}

static void move_dim(tmk_walk *w, int to, int from)
{
    w->size[to] = w->size[from];
    for (int k = 0; k < w->n_operands; k++) w->operand[k].stride[to] = w->operand[k].stride[from];
}
static void swap_dims(tmk_walk *w, int a, int b)
{
    int64_t t = w->size[a];
    w->size[a] = w->size[b];
    w->size[b] = t;
    for (int k = 0; k < w->n_operands; k++) {
        t = w->operand[k].stride[a];
        w->operand[k].stride[a] = w->operand[k].stride[b];
        w->operand[k].stride[b] = t;
    }
}
/* Does dim b belong inside of dim a? The first operand with an opinion decides, the output before all. */
static bool belongs_inside(const tmk_walk *w, int a, int b)
{
    for (int k = 0; k < w->n_operands; k++) {
        int64_t sa = w->operand[k].stride[a], sb = w->operand[k].stride[b];
        if (sa == 0 || sb == 0) continue;
        if (sa != sb) return sb < sa;
    }
    return false;
}
static bool joins(const tmk_walk *w, int inner, int outer)
{
    for (int k = 0; k < w->n_operands; k++)
        if (w->operand[k].stride[outer] != w->operand[k].stride[inner] * w->size[inner]) return false;
    return true;
}
static void order_dims(tmk_walk *w)
{
    int n = 0;
    for (int d = 0; d < w->ndim; d++)
        if (w->size[d] != 1) move_dim(w, n++, d);
    w->ndim = n;
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && belongs_inside(w, j - 1, j); j--) swap_dims(w, j - 1, j);
    int last = 0;
    for (int d = 1; d < n; d++) {
        if (joins(w, last, d)) w->size[last] *= w->size[d];
        else move_dim(w, ++last, d);
    }
    if (n == 0) {
        w->size[0] = 1;
        for (int k = 0; k < w->n_operands; k++) w->operand[k].stride[0] = 0;
        w->ndim = 1;
    } else {
        w->ndim = last + 1;
    }
}

/* ---------------------------------------------------------------- tiles */

/* Per thread and call: a tile per operand, in its native type, and one for elements as they lie in memory. */
typedef struct tiles {
    _Alignas(64) char tile[TMK_MAX_OPERANDS][TMK_TILE_BYTES];
    _Alignas(64) char raw[TMK_TILE_BYTES];
} tiles;

static int64_t item_of(const tmk_operand *o) { return (int64_t)tmi_dtypes[o->dtype].size; }
static int64_t native_item(const tmk_operand *o) { return (int64_t)tmi_dtypes[o->native].size; }

static int64_t tile_length(const tmk_walk *w)
{
    int64_t widest = 1;
    for (int k = 0; k < w->n_operands; k++) {
        if (item_of(&w->operand[k]) > widest) widest = item_of(&w->operand[k]);
        if (native_item(&w->operand[k]) > widest) widest = native_item(&w->operand[k]);
    }
    return TMK_TILE_BYTES / widest;
}

/* n elements with a stride to or from a straight run. */
static void gather(char *dst, const char *src, int64_t stride, int64_t n, int64_t item)
{
    if (stride == item) {
        memcpy(dst, src, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1: for (int64_t i = 0; i < n; i++) dst[i] = src[i * stride]; break;
    case 2: for (int64_t i = 0; i < n; i++) memcpy(dst + 2 * i, src + i * stride, 2); break;
    case 4: for (int64_t i = 0; i < n; i++) memcpy(dst + 4 * i, src + i * stride, 4); break;
    case 8: for (int64_t i = 0; i < n; i++) memcpy(dst + 8 * i, src + i * stride, 8); break;
    default: for (int64_t i = 0; i < n; i++) memcpy(dst + 16 * i, src + i * stride, 16); break;
    }
}
static void scatter(char *dst, int64_t stride, const char *src, int64_t n, int64_t item)
{
    if (stride == item) {
        memcpy(dst, src, (size_t)(n * item));
        return;
    }
    switch (item) {
    case 1: for (int64_t i = 0; i < n; i++) dst[i * stride] = src[i]; break;
    case 2: for (int64_t i = 0; i < n; i++) memcpy(dst + i * stride, src + 2 * i, 2); break;
    case 4: for (int64_t i = 0; i < n; i++) memcpy(dst + i * stride, src + 4 * i, 4); break;
    case 8: for (int64_t i = 0; i < n; i++) memcpy(dst + i * stride, src + 8 * i, 8); break;
    default: for (int64_t i = 0; i < n; i++) memcpy(dst + i * stride, src + 16 * i, 16); break;
    }
}

/* Input `o` from p on, n elements along dim 0, ready for the loop: where it is, or brought into `tile`. */
static const char *ready_input(const tmk_operand *o, const char *p, int64_t n, char *tile, char *raw, int64_t *step)
{
    int64_t stride = o->stride[0], item = item_of(o);
    *step = stride == 0 ? 0 : native_item(o);
    if (stride == 0) n = 1;
    if (o->dtype == o->native) {
        if (stride == item || stride == 0) return p;
        gather(tile, p, stride, n, item);
        return tile;
    }
    if (stride != item && stride != 0) {
        gather(raw, p, stride, n, item);
        p = raw;
    }
    tmk_cast(tile, o->native, p, o->dtype, n);
    return tile;
}

/* A tile of results, rounded to the narrow type that the operation is said to compute in. */
static void round_tile(const tmk_operand *o, char *tile, int64_t n, char *raw)
{
    if (o->rounded == o->native || o->rounded == o->dtype) return;
    tmk_cast(raw, o->rounded, tile, o->native, n);
    tmk_cast(tile, o->native, raw, o->rounded, n);
}

/* The result from a tile to its place, n elements along dim 0. */
static void place_output(const tmk_operand *o, char *p, char *tile, int64_t n, char *raw, bool stream)
{
    round_tile(o, tile, n, raw);
    int64_t item = item_of(o);
    bool straight = o->stride[0] == item || n == 1;
    if (o->dtype != o->native) {
        char *to = straight && !stream ? p : raw;
        tmk_cast(to, o->dtype, tile, o->native, n);
        if (to == p) return;
        tile = raw;
    }
    if (straight && stream) tmk_stream(p, tile, (size_t)(n * item));
    else scatter(p, o->stride[0], tile, n, item);
}

/* ---------------------------------------------------------------- rows */

typedef struct job {
    const tmk_walk *w;
    int64_t chunk;          /* elements per piece of a row */
    int64_t pieces;         /* per row */
    int64_t tile;           /* elements per tile */
    int d;                  /* blocks: the other dim */
    int64_t blocks0, blocks1;
    bool direct;            /* the loop works on memory itself */
    bool stream;
} job;

/* Address of operand o at outer coordinates `row` over dims first.. (dim 0 at 0). */
static char *row_address(const tmk_walk *w, const tmk_operand *o, int64_t row, int first)
{
    char *p = o->data;
    for (int d = first; d < w->ndim; d++) {
        p += row % w->size[d] * o->stride[d];
        row /= w->size[d];
    }
    return p;
}

static bool all_direct(const tmk_walk *w)
{
    for (int k = 0; k < w->n_operands; k++) {
        const tmk_operand *o = &w->operand[k];
        bool straight = o->stride[0] == item_of(o) || (w->size[0] == 1) || (k > 0 && o->stride[0] == 0);
        if (o->dtype != o->native || o->rounded != o->native || !straight) return false;
    }
    return true;
}

/* n elements of a row from p[] on, tile by tile. */
static void run_tiles(const job *j, tiles *t, char *const *p, int64_t n)
{
    const tmk_walk *w = j->w;
    const tmk_operand *out = &w->operand[0];
    bool place = out->dtype != out->native || out->rounded != out->native || (out->stride[0] != item_of(out) && n > 1) || j->stream;
    char *data[TMK_MAX_OPERANDS];
    int64_t steps[TMK_MAX_OPERANDS];
    for (int64_t at = 0; at < n; at += j->tile) {
        int64_t m = n - at < j->tile ? n - at : j->tile;
        for (int k = 1; k < w->n_operands; k++) {
            const tmk_operand *o = &w->operand[k];
            data[k] = (char *)(uintptr_t)ready_input(o, p[k] + at * o->stride[0], m, t->tile[k], t->raw, &steps[k]);
        }
        char *y = p[0] + at * out->stride[0];
        data[0] = place ? t->tile[0] : y;
        steps[0] = native_item(out);
        w->loop(data, steps, m, w->params);
        if (place) place_output(out, y, t->tile[0], m, t->raw, j->stream);
    }
}

static void run_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const tmk_walk *w = j->w;
    tiles t;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / j->pieces, at = i % j->pieces * j->chunk;
        int64_t n = w->size[0] - at < j->chunk ? w->size[0] - at : j->chunk;
        char *p[TMK_MAX_OPERANDS];
        int64_t steps[TMK_MAX_OPERANDS];
        for (int k = 0; k < w->n_operands; k++) {
            p[k] = row_address(w, &w->operand[k], row, 1) + at * w->operand[k].stride[0];
            steps[k] = w->operand[k].stride[0];
        }
        if (j->direct) w->loop(p, steps, n, w->params);
        else run_tiles(j, &t, p, n);
    }
}

/* ---------------------------------------------------------------- packed: short rows */

/* Where a run over all dims stands. */
typedef struct place { int64_t at[TMK_MAX_LOOP_DIMS]; } place;

static char *start_place(const tmk_walk *w, const tmk_operand *o, place *c, int64_t index)
{
    char *p = o->data;
    for (int d = 0; d < w->ndim; d++) {
        c->at[d] = index % w->size[d];
        index /= w->size[d];
        if (d > 0) p += c->at[d] * o->stride[d];
    }
    return p;   /* at dim 0 = 0 */
}
static char *next_row(const tmk_walk *w, const tmk_operand *o, place *c, char *p)
{
    c->at[0] = 0;
    for (int d = 1; d < w->ndim; d++) {
        p += o->stride[d];
        if (++c->at[d] < w->size[d]) return p;
        p -= o->stride[d] * w->size[d];
        c->at[d] = 0;
    }
    return p;
}
/* Elements [begin, begin + n) in order, between memory and a straight run. */
static void walk_rows(const tmk_walk *w, const tmk_operand *o, int64_t begin, int64_t n, char *run, bool out)
{
    place c;
    int64_t item = item_of(o);
    char *p = start_place(w, o, &c, begin);
    while (n > 0) {
        int64_t m = w->size[0] - c.at[0] < n ? w->size[0] - c.at[0] : n;
        char *q = p + c.at[0] * o->stride[0];
        if (out) scatter(q, o->stride[0], run, m, item);
        else gather(run, q, o->stride[0], m, item);
        run += m * item;
        n -= m;
        p = next_row(w, o, &c, p);
    }
}
/* 2: one value everywhere; 1: straight over all dims; 0: neither */
static int shape_of(const tmk_walk *w, const tmk_operand *o)
{
    bool zero = true, straight = o->stride[0] == item_of(o);
    for (int d = 0; d < w->ndim; d++) {
        zero &= o->stride[d] == 0;
        if (d > 0) straight &= o->stride[d] == o->stride[d - 1] * w->size[d - 1];
    }
    return zero ? 2 : straight;
}

static void run_packed(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const tmk_walk *w = j->w;
    tiles t;
    char *data[TMK_MAX_OPERANDS];
    int64_t steps[TMK_MAX_OPERANDS];
    for (int64_t at = begin; at < end; at += j->tile) {
        int64_t n = end - at < j->tile ? end - at : j->tile;
        for (int k = 1; k < w->n_operands; k++) {
            const tmk_operand *o = &w->operand[k];
            int shape = shape_of(w, o);
            const char *p = o->data + (shape == 1 ? at * item_of(o) : 0);
            if (shape == 0) {
                char *to = o->dtype == o->native ? t.tile[k] : t.raw;
                walk_rows(w, o, at, n, to, false);
                p = to;
            }
            if (o->dtype != o->native) {
                tmk_cast(t.tile[k], o->native, p, o->dtype, shape == 2 ? 1 : n);
                p = t.tile[k];
            }
            data[k] = (char *)(uintptr_t)p;
            steps[k] = shape == 2 ? 0 : native_item(o);
        }
        const tmk_operand *out = &w->operand[0];
        bool straight = shape_of(w, out) == 1;
        char *y = out->data + at * item_of(out);
        data[0] = straight && out->dtype == out->native && out->rounded == out->native ? y : t.tile[0];
        steps[0] = native_item(out);
        w->loop(data, steps, n, w->params);
        if (data[0] == y) continue;
        char *from = t.tile[0];
        round_tile(out, from, n, t.raw);
        if (out->dtype != out->native) tmk_cast(from = straight ? y : t.raw, out->dtype, t.tile[0], out->native, n);
        if (!straight) walk_rows(w, out, at, n, from, true);
    }
}

/* ---------------------------------------------------------------- blocks: transposed operands */

/* Rows r of dim d, columns c of dim 0: src[r * sd + c * s0] to dst[r * row + c * item], reading straight along d (sd == item). */
static void gather_block(char *dst, int64_t row, const char *src, int64_t s0, int64_t rows, int64_t cols, int64_t item)
{
    switch (item) {
    case 1:
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) dst[r * row + c] = src[c * s0 + r];
        break;
    case 2:
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) memcpy(dst + r * row + 2 * c, src + c * s0 + 2 * r, 2);
        break;
    case 4:
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) memcpy(dst + r * row + 4 * c, src + c * s0 + 4 * r, 4);
        break;
    case 8:
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) memcpy(dst + r * row + 8 * c, src + c * s0 + 8 * r, 8);
        break;
    default:
        for (int64_t c = 0; c < cols; c++)
            for (int64_t r = 0; r < rows; r++) memcpy(dst + r * row + 16 * c, src + c * s0 + 16 * r, 16);
    }
}
static bool transposed(const tmk_walk *w, const tmk_operand *o, int d)
{
    int64_t item = item_of(o);
    return o->stride[d] == item && o->stride[0] != item && o->stride[0] != 0 && w->size[d] >= MIN_BLOCK;
}

enum { BLOCK_COLS_BYTES = 1024 };
typedef struct blocks { _Alignas(64) char at[TMK_MAX_OPERANDS][BLOCK_ROWS * BLOCK_COLS_BYTES]; } blocks;

/* One block at p[] (dim 0 and d at the block's corner). */
static void run_block(const job *j, tiles *t, blocks *b, char *const *p, int64_t rows, int64_t cols)
{
    tmk_walk row = {.loop = j->w->loop, .params = j->w->params, .n_operands = j->w->n_operands, .ndim = 1};
    job one = {.w = &row, .tile = j->tile, .stream = j->stream};
    row.size[0] = cols;
    char *q[TMK_MAX_OPERANDS];
    int64_t down[TMK_MAX_OPERANDS];
    for (int k = 0; k < row.n_operands; k++) {
        const tmk_operand *o = &j->w->operand[k];
        row.operand[k].dtype = o->dtype;
        row.operand[k].native = o->native;
        row.operand[k].rounded = o->rounded;
        row.operand[k].stride[0] = o->stride[0];
        q[k] = p[k];
        down[k] = o->stride[j->d];
        if (k == 0 || !transposed(j->w, o, j->d)) continue;
        int64_t item = item_of(o);
        gather_block(b->at[k], BLOCK_COLS_BYTES, p[k], o->stride[0], rows, cols, item);
        q[k] = b->at[k];
        down[k] = BLOCK_COLS_BYTES;
        row.operand[k].stride[0] = item;
    }
    for (int64_t r = 0; r < rows; r++) {
        run_tiles(&one, t, q, cols);
        for (int k = 0; k < row.n_operands; k++) q[k] += down[k];
    }
}

static void run_blocks(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const tmk_walk *w = j->w;
    tiles t;
    blocks b;
    for (int64_t i = begin; i < end; i++) {
        int64_t c0 = i % j->blocks0 * j->chunk, rest = i / j->blocks0;
        int64_t r0 = rest % j->blocks1 * BLOCK_ROWS;
        rest /= j->blocks1;
        int64_t cols = w->size[0] - c0 < j->chunk ? w->size[0] - c0 : j->chunk;
        int64_t rows = w->size[j->d] - r0 < BLOCK_ROWS ? w->size[j->d] - r0 : BLOCK_ROWS;
        char *p[TMK_MAX_OPERANDS];
        for (int k = 0; k < w->n_operands; k++) {
            const tmk_operand *o = &w->operand[k];
            int64_t outer = rest;
            p[k] = o->data + c0 * o->stride[0] + r0 * o->stride[j->d];
            for (int d = 1; d < w->ndim; d++) {
                if (d == j->d) continue;
                p[k] += outer % w->size[d] * o->stride[d];
                outer /= w->size[d];
            }
        }
        run_block(j, &t, &b, p, rows, cols);
    }
}

/* ---------------------------------------------------------------- run */

int64_t tmk_stream_from(void)
{
    int64_t cache = tmi_cpu()->l3;
    return cache > (8 << 20) ? (cache < (32 << 20) ? cache : 32 << 20) : 8 << 20;
}

static int transposed_dim(const tmk_walk *w)
{
    if (w->size[0] < MIN_BLOCK) return 0;
    for (int k = 1; k < w->n_operands; k++)
        for (int d = 1; d < w->ndim; d++)
            if (transposed(w, &w->operand[k], d)) return d;
    return 0;
}

void tmk_walk_run(tmk_walk *w)
{
    order_dims(w);
    int64_t total = 1, bytes = 0, widest = 1;
    for (int d = 0; d < w->ndim; d++) total *= w->size[d];
    for (int k = 0; k < w->n_operands; k++) {
        bytes += item_of(&w->operand[k]);
        if (item_of(&w->operand[k]) > widest) widest = item_of(&w->operand[k]);
    }
    int64_t grain = tmi_grain(bytes), row = w->size[0];
    bool large = total * item_of(&w->operand[0]) >= tmk_stream_from() && !w->in_place;
    job j = {.w = w, .tile = tile_length(w), .d = transposed_dim(w)};
    if (j.d) {
        j.stream = false;
        j.chunk = BLOCK_COLS_BYTES / widest;
        j.blocks0 = (row + j.chunk - 1) / j.chunk;
        j.blocks1 = (w->size[j.d] + BLOCK_ROWS - 1) / BLOCK_ROWS;
        int64_t n = j.blocks0 * j.blocks1 * (total / row / w->size[j.d]), per = grain / (BLOCK_ROWS * j.chunk);
        tmi_parallel_for(n, per > 0 ? per : 1, run_blocks, &j);
        return;
    }
    if (row < SHORT_ROW && w->ndim > 1) {
        grain = (grain + j.tile - 1) / j.tile * j.tile;
        tmi_parallel_for(total, grain, run_packed, &j);
        return;
    }
    j.stream = large && w->operand[0].stride[0] == item_of(&w->operand[0]);
    j.direct = !j.stream && all_direct(w);
    j.chunk = grain < row ? (grain + j.tile - 1) / j.tile * j.tile : row;
    j.pieces = (row + j.chunk - 1) / j.chunk;
    int64_t per = grain / (row < j.chunk ? row : j.chunk);
    tmi_parallel_for(total / row * j.pieces, per > 0 ? per : 1, run_rows, &j);
}
