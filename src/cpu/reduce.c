/* The reduction engine: finds the cheapest walk through memory that keeps the logical order of every output's tree.
 *
 * Rows: the reduced elements of an output are (nearly) contiguous; each leaf of each output is folded by itself. Columns: outputs lie
 * side by side, so whole rows of outputs are folded at once, lane by lane. Both give the same bits. */
#include "reduce.h"

#include <math.h>

#include "base/alloc.h"
#include "base/cpuinfo.h"
#include "base/pool.h"

const tmk_fold_table *tmk_folds(void)
{
    switch (tmi_cpu()->isa) {
#ifdef TMK_HAVE_AVX512
    case TMI_ISA_AVX512: return &tmk_fold_table_avx512;
#endif
#ifdef TMK_HAVE_AVX2
    case TMI_ISA_AVX2: return &tmk_fold_table_avx2;
#endif
#ifdef TMK_HAVE_NEON
    case TMI_ISA_NEON: return &tmk_fold_table_neon;
#endif
    default: return &tmk_fold_table_scalar;
    }
}

static const uint8_t acc_dtypes[TMK_ACC_COUNT] = {TM_F32, TM_F64, TM_I64, TM_BOOL, TM_C64, TM_C128};
tm_dtype tmk_acc_dtype(tmk_acc acc) { return acc_dtypes[acc]; }
size_t tmk_acc_size(tmk_acc acc) { return tmi_dtype_size(acc_dtypes[acc]); }

tmk_acc tmk_acc_of(tm_dtype dtype)
{
    switch (dtype) {
    case TM_F64: return TMK_ACC_F64;
    case TM_C64: return TMK_ACC_C64;
    case TM_C128: return TMK_ACC_C128;
    default: return tmi_is_float(dtype) ? TMK_ACC_F32 : TMK_ACC_I64;
    }
}

uint64_t tmk_dim_mask(const tm_tensor *t, const tm_int *dims, int64_t n)
{
    if (n == 0 || !dims) return ~UINT64_C(0);
    uint64_t mask = 0;
    for (int64_t i = 0; i < n; i++) mask |= UINT64_C(1) << (dims[i] < 0 ? dims[i] + (t->ndim ? t->ndim : 1) : dims[i]);
    return mask;
}

int64_t tmk_reduced_count(const tm_tensor *t, uint64_t mask)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim; d++)
        if (mask >> d & 1) n *= t->sizes[d];
    return n;
}

int64_t tmk_output_count(const tm_tensor *t, uint64_t mask) { return tmk_reduced_count(t, ~mask); }

void *tmk_acc_alloc(tmk_acc acc, int64_t n) { return tmi_data_alloc((size_t)n * tmk_acc_size(acc)); }
void tmk_acc_free(tmk_acc acc, int64_t n, void *p)
{
    if (p) tmi_data_free(p, (size_t)n * tmk_acc_size(acc));
}

/* ---- the plan */
typedef struct plan {
    const char *data;
    int64_t in_size, acc_size;
    int n_red, n_kept;
    int64_t red_size[TMI_MAX_DIMS], red_stride[TMI_MAX_DIMS];                                /* logical order, merged */
    int64_t kept_size[TMI_MAX_DIMS], kept_stride[TMI_MAX_DIMS], kept_out[TMI_MAX_DIMS];      /* by stride, largest first */
    int64_t count, n_out, n_leaves;
    bool direct;          /* input elements are accumulator numbers and need no map */
    tmk_acc acc;
    tmk_map map;
    const char *centre;
    union { float f; double d; int64_t i; tmi_c128 c; } power, identity;
    void (*row)(const void *, int64_t, void *);
    void (*rows)(const void *, int64_t, int64_t, int64_t, void *);
    void (*tree)(void *, void *);
    void (*load)(const void *, int64_t, int64_t, void *);
    void (*mapper)(const void *, int64_t, void *, const void *, int64_t);
    char *out, *partials;   /* partials[leaf][output]; = out with a single leaf */
    /* columns */
    int64_t width, n_blocks;
} plan;

static void set_number(void *p, tmk_acc acc, double x)
{
    switch (acc) {
    case TMK_ACC_F32: *(float *)p = (float)x; break;
    case TMK_ACC_F64: *(double *)p = x; break;
    case TMK_ACC_U8: *(uint8_t *)p = (uint8_t)x; break;
    case TMK_ACC_C64: *(tmi_c64 *)p = (float)x; break;
    case TMK_ACC_C128: *(tmi_c128 *)p = x; break;
    default: *(int64_t *)p = isinf(x) ? (x < 0 ? INT64_MIN : INT64_MAX) : (int64_t)x;
    }
}

static double identity_of(tmk_acc acc, tmk_fold fold)
{
    if (acc == TMK_ACC_U8) return fold == TMK_FOLD_MAX ? 0 : 1;
    return fold == TMK_FOLD_SUM ? 0 : fold == TMK_FOLD_PROD ? 1 : fold == TMK_FOLD_MAX ? -INFINITY : INFINITY;
}

/* n times the identity, by doubling what is there. */
static void fill(const plan *p, void *dst, int64_t n)
{
    size_t done = (size_t)p->acc_size, bytes = (size_t)(n * p->acc_size);
    if (n <= 0) return;
    memcpy(dst, &p->identity, done);
    while (done < bytes) {
        size_t more = done < bytes - done ? done : bytes - done;
        memcpy((char *)dst + done, dst, more);
        done += more;
    }
}

/* Neighbouring reduced dims that lie behind one another become one. */
static void add_reduced(plan *p, int64_t size, int64_t stride)
{
    int n = p->n_red;
    if (size == 1) return;
    if (n && p->red_stride[n - 1] == size * stride) {
        p->red_size[n - 1] *= size;
        p->red_stride[n - 1] = stride;
        return;
    }
    p->red_size[n] = size;
    p->red_stride[n] = stride;
    p->n_red++;
}

static void add_kept(plan *p, int64_t size, int64_t stride, int64_t out)
{
    int n = p->n_kept;
    if (size == 1) return;
    if (n && p->kept_stride[n - 1] == size * stride && p->kept_out[n - 1] == size * out) {
        p->kept_size[n - 1] *= size;
        p->kept_stride[n - 1] = stride;
        p->kept_out[n - 1] = out;
        return;
    }
    p->kept_size[n] = size;
    p->kept_stride[n] = stride;
    p->kept_out[n] = out;
    p->n_kept++;
}

static int64_t reach(int64_t stride) { return stride == 0 ? INT64_MAX : stride < 0 ? -stride : stride; }

static void sort_kept(plan *p)
{
    for (int i = 1; i < p->n_kept; i++) {
        int64_t n = p->kept_size[i], s = p->kept_stride[i], o = p->kept_out[i];
        int j = i;
        for (; j > 0 && reach(p->kept_stride[j - 1]) < reach(s); j--) {
            p->kept_size[j] = p->kept_size[j - 1];
            p->kept_stride[j] = p->kept_stride[j - 1];
            p->kept_out[j] = p->kept_out[j - 1];
        }
        p->kept_size[j] = n;
        p->kept_stride[j] = s;
        p->kept_out[j] = o;
    }
}

static void plan_dims(plan *p, const tm_tensor *in, uint64_t mask)
{
    int64_t out = p->n_out;
    for (int d = 0; d < in->ndim; d++) {
        if (mask >> d & 1) {
            add_reduced(p, in->sizes[d], in->strides[d]);
        } else {
            out /= in->sizes[d];
            add_kept(p, in->sizes[d], in->strides[d], out);
        }
    }
    if (p->n_red == 0) {
        p->red_size[0] = 1;
        p->red_stride[0] = 1;
        p->n_red = 1;
    }
    sort_kept(p);
}

static void plan_functions(plan *p, const tm_tensor *in, const tmk_reduction *r)
{
    const tmk_fold_table *k = tmk_folds();
    p->row = k->row[r->acc][r->fold];
    p->rows = k->rows[r->acc][r->fold];
    p->tree = k->tree[r->acc][r->fold];
    p->load = tmk_load(in->dtype, r->acc);
    p->mapper = r->map == TMK_MAP_ID ? NULL : k->map[r->acc][r->map];
    p->direct = !p->mapper && in->dtype == tmk_acc_dtype(r->acc) && r->acc != TMK_ACC_U8;
    if (r->acc == TMK_ACC_U8 && in->dtype == TM_BOOL) p->direct = true;
    p->acc = r->acc;
    p->map = r->map;
    p->centre = r->map == TMK_MAP_DEV_SQ || r->map == TMK_MAP_EXP_DEV ? r->centre : NULL;
    set_number(&p->power, r->acc, r->power);
    set_number(&p->identity, r->acc, identity_of(r->acc, r->fold));
}

/* ---- reading logical elements */

/* The parameter of the map for output o: its centre, or the power. */
static const void *param_of(const plan *p, int64_t o) { return p->centre ? p->centre + o * p->acc_size : (const char *)&p->power; }

/* Elements [r, r + n) of the output whose first element is at `base`, as accumulator numbers; `buf` holds n. */
static const char *read_run(const plan *p, const char *base, int64_t r, int64_t n, const void *param, char *buf)
{
    int last = p->n_red - 1;
    int64_t index[TMI_MAX_DIMS], rest = r;
    const char *at = base;
    if (p->n_red == 1) {
        at += r * p->red_stride[0] * p->in_size;
        if (p->direct && p->red_stride[0] == 1) return at;
        p->load(at, p->red_stride[0], n, buf);
    } else {
        for (int d = last; d >= 0; d--) {
            index[d] = rest % p->red_size[d];
            rest /= p->red_size[d];
            at += index[d] * p->red_stride[d] * p->in_size;
        }
        for (int64_t done = 0; done < n;) {
            int64_t piece = p->red_size[last] - index[last];
            if (piece > n - done) piece = n - done;
            p->load(at, p->red_stride[last], piece, buf + done * p->acc_size);
            done += piece;
            index[last] += piece;
            at += piece * p->red_stride[last] * p->in_size;
            for (int d = last; d > 0 && index[d] == p->red_size[d]; d--) {
                at += (p->red_stride[d - 1] - p->red_size[d] * p->red_stride[d]) * p->in_size;
                index[d] = 0;
                index[d - 1]++;
            }
        }
    }
    if (p->mapper) p->mapper(buf, n, buf, param, 0);
    return buf;
}

static int64_t row_offset(const plan *p, int64_t r)
{
    int64_t at = 0;
    for (int d = p->n_red - 1; d >= 0; d--) {
        at += r % p->red_size[d] * p->red_stride[d];
        r /= p->red_size[d];
    }
    return at;
}

/* ---- rows */
enum { CHUNK = 1024 };   /* elements converted at a time: stays in L1, a multiple of the lanes */

static void leaf_of_row(const plan *p, const char *base, int64_t o, int64_t leaf, char *result)
{
    _Alignas(64) char lanes[TMK_LANES * 16], buf[CHUNK * 16];
    int64_t begin = leaf * TMK_LEAF, n = p->count - begin < TMK_LEAF ? p->count - begin : TMK_LEAF;
    const void *param = param_of(p, o);
    fill(p, lanes, TMK_LANES);
    if (p->direct && p->n_red == 1 && p->red_stride[0] == 1) {
        p->row(base + begin * p->in_size, n, lanes);
    } else {
        for (int64_t i = 0; i < n; i += CHUNK) {
            int64_t len = n - i < CHUNK ? n - i : CHUNK;
            p->row(read_run(p, base, begin + i, len, param, buf), len, lanes);
        }
    }
    p->tree(lanes, result);
}

/* Task t is leaf t % n_leaves of kept position t / n_leaves. */
static void run_rows(void *ctx, int64_t begin, int64_t end)
{
    const plan *p = ctx;
    for (int64_t t = begin; t < end; t++) {
        int64_t k = t / p->n_leaves, leaf = t % p->n_leaves, in = 0, o = 0;
        for (int d = p->n_kept - 1; d >= 0; d--) {
            int64_t i = k % p->kept_size[d];
            k /= p->kept_size[d];
            in += i * p->kept_stride[d];
            o += i * p->kept_out[d];
        }
        leaf_of_row(p, p->data + in * p->in_size, o, leaf, p->partials + (leaf * p->n_out + o) * p->acc_size);
    }
}

/* ---- columns */
enum { BLOCK_BYTES = 4096, NARROW = 64 };

/* One row of outputs as accumulator numbers. */
static const char *read_row(const plan *p, const char *at, int64_t stride, int64_t width, int64_t o, int64_t o_step, char *buf)
{
    if (p->direct && stride == 1) return at;
    p->load(at, stride, width, buf);
    if (!p->mapper) return buf;
    if (!p->centre || o_step == 1) {
        p->mapper(buf, width, buf, param_of(p, o), p->centre ? 1 : 0);
        return buf;
    }
    for (int64_t b = 0; b < width; b++)
        p->mapper(buf + b * p->acc_size, 1, buf + b * p->acc_size, param_of(p, o + b * o_step), 0);
    return buf;
}

/* Few outputs side by side: 32 rows make one long vector, in which lane l of output b stands at l * width + b. */
static void narrow_leaf(const plan *p, const char *base, int64_t width, int64_t o, int64_t o_step, int64_t begin, int64_t n, char *acc)
{
    _Alignas(64) char buf[TMK_LANES * NARROW * 16];
    int64_t stride = p->kept_stride[p->n_kept - 1], group = TMK_LANES * width, whole = n / TMK_LANES;
    fill(p, acc, group);
    if (p->direct && stride == 1 && p->n_red == 1 && p->red_stride[0] == width) {
        const char *at = base + begin * width * p->in_size;
        p->rows(at, group, whole, group, acc);
        p->rows(at + whole * group * p->in_size, 0, 1, (n - whole * TMK_LANES) * width, acc);
    } else {
        for (int64_t r = 0; r < n; r += TMK_LANES) {
            int64_t lanes = n - r < TMK_LANES ? n - r : TMK_LANES;
            for (int64_t l = 0; l < lanes; l++) {
                char *to = buf + l * width * p->acc_size;
                const char *row = read_row(p, base + row_offset(p, begin + r + l) * p->in_size, stride, width, o, o_step, to);
                if (row != to) memcpy(to, row, (size_t)(width * p->acc_size));
            }
            p->rows(buf, 0, 1, lanes * width, acc);
        }
    }
    for (int64_t h = TMK_LANES / 2; h >= 1; h /= 2) p->rows(acc + h * width * p->acc_size, 0, 1, h * width, acc);
}

/* acc[b] = fold over rows begin + lane, begin + lane + 32, ... */
static void fold_lane(const plan *p, const char *base, int64_t width, int64_t o, int64_t o_step, int64_t begin, int64_t n, int64_t lane,
                      char *acc, char *buf)
{
    int64_t stride = p->kept_stride[p->n_kept - 1];
    fill(p, acc, width);
    if (p->direct && stride == 1 && p->n_red == 1) {
        const char *at = base + (begin + lane) * p->red_stride[0] * p->in_size;
        p->rows(at, TMK_LANES * p->red_stride[0], (n - lane + TMK_LANES - 1) / TMK_LANES, width, acc);
        return;
    }
    for (int64_t r = lane; r < n; r += TMK_LANES)
        p->rows(read_row(p, base + row_offset(p, begin + r) * p->in_size, stride, width, o, o_step, buf), 0, 1, width, acc);
}

/* Lanes are visited in the order in which the tree wants them (bits reversed), so that a stack of six rows holds all partial results. */
static void wide_leaf(const plan *p, const char *base, int64_t width, int64_t o, int64_t o_step, int64_t begin, int64_t n, char *stack)
{
    _Alignas(64) char buf[BLOCK_BYTES];
    bool filled[7];
    int top = 0;
    for (int64_t i = 0; i < TMK_LANES; i++) {
        int64_t lane = (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | (i & 16) >> 4;
        filled[top] = lane < n;
        if (filled[top]) fold_lane(p, base, width, o, o_step, begin, n, lane, stack + top * BLOCK_BYTES, buf);
        top++;
        for (int64_t bits = i; bits & 1; bits >>= 1) {
            top--;
            if (filled[top]) p->rows(stack + top * BLOCK_BYTES, 0, 1, width, stack + (top - 1) * BLOCK_BYTES);
        }
    }
}

static void put_row(const plan *p, int64_t leaf, int64_t o, int64_t o_step, int64_t width, const char *acc)
{
    char *to = p->partials + (leaf * p->n_out + o) * p->acc_size;
    if (o_step == 1) {
        memcpy(to, acc, (size_t)(width * p->acc_size));
        return;
    }
    for (int64_t b = 0; b < width; b++)
        memcpy(to + b * o_step * p->acc_size, acc + b * p->acc_size, (size_t)p->acc_size);
}

/* Task t: leaf, block of the innermost kept dim, position in the outer ones. */
static void run_columns(void *ctx, int64_t begin, int64_t end)
{
    const plan *p = ctx;
    _Alignas(64) char scratch[TMK_LANES * NARROW * 16];
    int last = p->n_kept - 1;
    for (int64_t t = begin; t < end; t++) {
        int64_t leaf = t % p->n_leaves, block = t / p->n_leaves % p->n_blocks, k = t / p->n_leaves / p->n_blocks;
        int64_t first = block * p->width, width = p->kept_size[last] - first < p->width ? p->kept_size[last] - first : p->width;
        int64_t in = first * p->kept_stride[last], o = first * p->kept_out[last];
        for (int d = last - 1; d >= 0; d--) {
            int64_t i = k % p->kept_size[d];
            k /= p->kept_size[d];
            in += i * p->kept_stride[d];
            o += i * p->kept_out[d];
        }
        int64_t row = leaf * TMK_LEAF, n = p->count - row < TMK_LEAF ? p->count - row : TMK_LEAF;
        const char *base = p->data + in * p->in_size;
        if (width <= NARROW)
            narrow_leaf(p, base, width, o, p->kept_out[last], row, n, scratch);
        else
            wide_leaf(p, base, width, o, p->kept_out[last], row, n, scratch);
        put_row(p, leaf, o, p->kept_out[last], width, scratch);
    }
}

/* ---- leaves */

/* partials[0] becomes the binary tree over all leaves. */
static void run_combine(void *ctx, int64_t begin, int64_t end)
{
    const plan *p = ctx;
    for (int64_t s = 1; s < p->n_leaves; s *= 2)
        for (int64_t i = 0; i + s < p->n_leaves; i += 2 * s)
            p->rows(p->partials + ((i + s) * p->n_out + begin) * p->acc_size, 0, 1, end - begin,
                    p->partials + (i * p->n_out + begin) * p->acc_size);
    memcpy(p->out + begin * p->acc_size, p->partials + begin * p->acc_size, (size_t)((end - begin) * p->acc_size));
}

static int64_t tasks_per_chunk(int64_t bytes_per_task)
{
    int64_t n = (64 * 1024) / (bytes_per_task > 0 ? bytes_per_task : 1);
    return n < 1 ? 1 : n;
}

static void run_plan(plan *p)
{
    int last = p->n_kept - 1;
    int64_t leaf_rows = p->count < TMK_LEAF ? p->count : TMK_LEAF;
    /* few terms per output: side by side too, though the outputs' elements are apart */
    bool beside = p->n_kept && (reach(p->kept_stride[last]) < reach(p->red_stride[p->n_red - 1]) || (p->count <= TMK_LANES && p->kept_size[last] >= 64));
    if (beside && p->count > 1) {
        p->width = BLOCK_BYTES / p->acc_size;
        p->n_blocks = (p->kept_size[last] + p->width - 1) / p->width;
        int64_t width = p->kept_size[last] < p->width ? p->kept_size[last] : p->width;
        int64_t tasks = p->n_out / p->kept_size[last] * p->n_blocks * p->n_leaves;
        tmi_parallel_for(tasks, tasks_per_chunk(leaf_rows * width * p->in_size), run_columns, p);
    } else {
        tmi_parallel_for(p->n_out * p->n_leaves, tasks_per_chunk((leaf_rows + 16) * p->in_size), run_rows, p);
    }
    if (p->n_leaves > 1) tmi_parallel_for(p->n_out, tasks_per_chunk(p->n_leaves * p->acc_size), run_combine, p);
}

tm_status tmk_reduce(const tm_tensor *in, uint64_t mask, const tmk_reduction *r, void *out)
{
    plan p;
    memset(&p, 0, offsetof(plan, red_size));
    p.n_out = tmk_output_count(in, mask);
    p.count = tmk_reduced_count(in, mask);
    p.in_size = (int64_t)tmi_dtype_size(in->dtype);
    p.acc_size = (int64_t)tmk_acc_size(r->acc);
    plan_functions(&p, in, r);
    if (p.n_out == 0) return TM_OK;
    if (p.count == 0) {
        fill(&p, out, p.n_out);
        return TM_OK;
    }
    p.data = tmi_data(in);
    p.n_leaves = (p.count + TMK_LEAF - 1) / TMK_LEAF;
    p.out = p.partials = out;
    plan_dims(&p, in, mask);
    size_t bytes = (size_t)(p.n_leaves * p.n_out * p.acc_size);
    if (p.n_leaves > 1 && !(p.partials = tmi_data_alloc(bytes))) return TM_NOMEM;
    run_plan(&p);
    if (p.n_leaves > 1) tmi_data_free(p.partials, bytes);
    return TM_OK;
}
