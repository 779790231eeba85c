/* Reading the input as a matrix of patches. Included with T and NAME defined. Rows of the matrix are (channel, tap) in this order, or (tap,
 * channel) where channels lie next to each other in memory; columns are output positions. */

typedef struct NAME(patches) {
    const conv_geometry *g;
    const T *in;              /* first channel of the group, first image */
    conv_array a;
    bool channels_inner;
} NAME(patches);

/* A run of columns in one row of the output. */
typedef struct NAME(run) { int64_t at, n, origin[3]; } NAME(run);   /* origin: input coordinate under tap 0 of the first column */
enum { NAME(RUNS) = 64 };

static int NAME(find_runs)(const conv_geometry *g, int64_t col, int64_t cols, NAME(run) *runs)
{
    int count = 0;
    for (int64_t at = 0; at < cols; count++) {
        int64_t p = col + at, x = p % g->out[2], y = p / g->out[2] % g->out[1], z = p / g->out[2] / g->out[1], n = conv_low(g->out[2] - x, cols - at);
        runs[count] = (NAME(run)){at, n, {z * g->stride[0] - g->pad[0], y * g->stride[1] - g->pad[1], x * g->stride[2] - g->pad[2]}};
        at += n;
    }
    return count;
}

/* Address of (z, y, 0) of a tap under a run; NULL outside the image. */
static const T *NAME(line)(const NAME(patches) *s, const NAME(run) *r, const T *image, const int64_t *tap)
{
    const conv_geometry *g = s->g;
    int64_t z = r->origin[0] + tap[0] * g->dilation[0], y = r->origin[1] + tap[1] * g->dilation[1];
    if (z < 0 || z >= g->in[0] || y < 0 || y >= g->in[1]) return NULL;
    return image + z * s->a.ss[0] + y * s->a.ss[1];
}

/* One row of the matrix under one run. */
static void NAME(load_run)(const NAME(patches) *s, const NAME(run) *r, const T *channel, const int64_t *tap, T *dst)
{
    const conv_geometry *g = s->g;
    const T *line = NAME(line)(s, r, channel, tap);
    int64_t x = r->origin[2] + tap[2] * g->dilation[2], step = g->stride[2];
    int64_t lo = line ? conv_low(conv_enter(x, step), r->n) : r->n, hi = line ? conv_low(conv_leave(x, step, g->in[2]), r->n) : r->n;
    for (int64_t j = 0; j < lo; j++) dst[j] = 0;
    int64_t at = s->a.ss[2] * step;
    const T *p = line ? line + (x + lo * step) * s->a.ss[2] : NULL;   /* the first element inside the image */
    if (at == 1)
        for (int64_t j = lo; j < hi; j++) dst[j] = p[j - lo];
    else
        for (int64_t j = lo; j < hi; j++) dst[j] = p[(j - lo) * at];
    for (int64_t j = hi > lo ? hi : lo; j < r->n; j++) dst[j] = 0;
}

/* All channels of one tap at one position: they lie side by side, and go to a column. */
static void NAME(load_channels)(const T *src, int64_t n, T *dst, int64_t width)
{
    if (src)
        for (int64_t c = 0; c < n; c++) dst[c * width] = src[c];
    else
        for (int64_t c = 0; c < n; c++) dst[c * width] = 0;
}

static void NAME(load_inner)(const NAME(patches) *s, T *dst, const T *image, int64_t k0, int64_t kc, const NAME(run) *runs, int n_runs, int64_t width)
{
    const conv_geometry *g = s->g;
    for (int64_t k = k0; k < k0 + kc;) {
        int64_t c = k % g->cin, n = conv_low(g->cin - c, k0 + kc - k), tap[3];
        conv_split_tap(g, k / g->cin, tap);
        for (int i = 0; i < n_runs; i++) {
            const T *line = NAME(line)(s, &runs[i], image, tap);
            for (int64_t j = 0; j < runs[i].n; j++) {
                int64_t x = runs[i].origin[2] + tap[2] * g->dilation[2] + j * g->stride[2];
                bool inside = line && x >= 0 && x < g->in[2];
                NAME(load_channels)(inside ? line + x * s->a.ss[2] + c : NULL, n, dst + (k - k0) * width + runs[i].at + j, width);
            }
        }
        k += n;
    }
}

/* B of the forward product: see tmi_gemm_load_b. */
static void NAME(load)(void *ctx, void *dst_, int64_t batch, int64_t k0, int64_t kc, int64_t col, int64_t cols, int64_t width)
{
    const NAME(patches) *s = ctx;
    const conv_geometry *g = s->g;
    T *dst = dst_;
    NAME(run) runs[NAME(RUNS)];
    const T *image = s->in + batch * s->a.ns;
    int n = NAME(find_runs)(g, col, cols, runs);
    if (s->channels_inner) {
        NAME(load_inner)(s, dst, image, k0, kc, runs, n, width);
    } else {
        int64_t taps = conv_taps(g), tap[3], c = k0 / taps;
        conv_split_tap(g, k0 % taps, tap);
        for (int64_t k = 0; k < kc; k++) {
            for (int i = 0; i < n; i++) NAME(load_run)(s, &runs[i], image + c * s->a.cs, tap, dst + k * width + runs[i].at);
            if (++tap[2] < g->k[2]) continue;
            tap[2] = 0;
            if (++tap[1] < g->k[1]) continue;
            tap[1] = 0;
            if (++tap[0] < g->k[0]) continue;
            tap[0] = 0;
            c++;
        }
    }
    for (int64_t k = 0; cols < width && k < kc; k++)
        for (int64_t j = cols; j < width; j++) dst[k * width + j] = 0;
}

/* B of the weights' gradient, the patches turned: rows are output positions, columns (channel, tap). */
static void NAME(load_turned)(void *ctx, void *dst_, int64_t batch, int64_t k0, int64_t kc, int64_t col, int64_t cols, int64_t width)
{
    const NAME(patches) *s = ctx;
    const conv_geometry *g = s->g;
    T *dst = dst_;
    const T *image = s->in + batch * s->a.ns;
    for (int64_t at = 0; at < kc;) {
        NAME(run) runs[NAME(RUNS)];
        int64_t len = conv_low(kc - at, NAME(RUNS));
        int n = NAME(find_runs)(g, k0 + at, len, runs);
        for (int64_t j = 0; j < cols; j++) {
            int64_t row = col + j, taps = conv_taps(g), tap[3], c = s->channels_inner ? row % g->cin : row / taps;
            conv_split_tap(g, s->channels_inner ? row / g->cin : row % taps, tap);
            for (int i = 0; i < n; i++) {
                T line[NAME(RUNS)];
                NAME(load_run)(s, &runs[i], image + c * s->a.cs, tap, line);
                T *to = dst + (at + runs[i].at) * width + j;
                for (int64_t x = 0; x < runs[i].n; x++) to[x * width] = line[x];
            }
        }
        at += len;
    }
    for (int64_t k = 0; cols < width && k < kc; k++)
        for (int64_t j = cols; j < width; j++) dst[k * width + j] = 0;
}
