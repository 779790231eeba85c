/* Convolution without a matrix product, for groups with few channels: rows of the output are sums of scaled rows of the input. Included with T,
 * AXPY(y, y_step, n, scale, x, x_step), DOT(n, x, x_step, y, y_step) and NAME defined. Tasks own the planes that they write. */

typedef struct NAME(direct) {
    const conv_geometry *g;
    const conv_array *in, *out;
    const T *weight, *bias;
    T *gweight;
} NAME(direct);

static void NAME(fill_plane)(const conv_array *a, const int64_t *n, T *p, T value)
{
    for (int64_t z = 0; z < n[0]; z++)
        for (int64_t y = 0; y < n[1]; y++)
            for (int64_t x = 0; x < n[2]; x++) p[z * a->ss[0] + y * a->ss[1] + x * a->ss[2]] = value;
}

/* out += input plane with the taps of one channel pair. */
static void NAME(add_plane)(const NAME(direct) *d, T *out, const T *in, const T *w)
{
    const conv_geometry *g = d->g;
    conv_meeting m;
    for (int64_t t = 0; t < conv_taps(g); t++)
        for (int64_t row = 0; row < g->out[0] * g->out[1]; row++)
            if (conv_meet(g, row, t, &m))
                AXPY(out + conv_out_at(d->out, &m), d->out->ss[2], m.hi - m.lo, w[t], in + conv_in_at(g, d->in, &m), d->in->ss[2] * g->stride[2]);
}

/* The other way: gradient of the input plane += ... */
static void NAME(add_plane_back)(const NAME(direct) *d, T *in, const T *out, const T *w)
{
    const conv_geometry *g = d->g;
    conv_meeting m;
    for (int64_t t = 0; t < conv_taps(g); t++)
        for (int64_t row = 0; row < g->out[0] * g->out[1]; row++)
            if (conv_meet(g, row, t, &m))
                AXPY(in + conv_in_at(g, d->in, &m), d->in->ss[2] * g->stride[2], m.hi - m.lo, w[t], out + conv_out_at(d->out, &m), d->out->ss[2]);
}

static T NAME(tap_grad)(const NAME(direct) *d, const T *out, const T *in, int64_t t)
{
    const conv_geometry *g = d->g;
    conv_meeting m;
    T sum = 0;
    for (int64_t row = 0; row < g->out[0] * g->out[1]; row++)
        if (conv_meet(g, row, t, &m))
            sum += DOT(m.hi - m.lo, out + conv_out_at(d->out, &m), d->out->ss[2], in + conv_in_at(g, d->in, &m), d->in->ss[2] * g->stride[2]);
    return sum;
}

/* Task: a plane of the output. */
static void NAME(direct_apply)(void *ctx, int64_t begin, int64_t end)
{
    const NAME(direct) *d = ctx;
    const conv_geometry *g = d->g;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) {
        int64_t n = t / (g->groups * g->cout), co = t % (g->groups * g->cout);
        T *out = (T *)d->out->data + n * d->out->ns + co * d->out->cs;
        NAME(fill_plane)(d->out, g->out, out, d->bias ? d->bias[co] : 0);
        for (int64_t ci = 0; ci < g->cin; ci++)
            NAME(add_plane)(d, out, (const T *)d->in->data + n * d->in->ns + (co / g->cout * g->cin + ci) * d->in->cs,
                            d->weight + (co * g->cin + ci) * conv_taps(g));
    }
    tmi_denormals_restore(mode);
}

/* Task: a plane of the input's gradient; `out` is the output's gradient. */
static void NAME(direct_input)(void *ctx, int64_t begin, int64_t end)
{
    const NAME(direct) *d = ctx;
    const conv_geometry *g = d->g;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t t = begin; t < end; t++) {
        int64_t n = t / (g->groups * g->cin), c = t % (g->groups * g->cin), first = c / g->cin * g->cout;
        T *in = (T *)d->in->data + n * d->in->ns + c * d->in->cs;
        NAME(fill_plane)(d->in, g->in, in, 0);
        for (int64_t co = first; co < first + g->cout; co++)
            NAME(add_plane_back)(d, in, (const T *)d->out->data + n * d->out->ns + co * d->out->cs,
                                 d->weight + (co * g->cin + c % g->cin) * conv_taps(g));
    }
    tmi_denormals_restore(mode);
}

/* Task: the weights of an output channel. */
static void NAME(direct_weight)(void *ctx, int64_t begin, int64_t end)
{
    const NAME(direct) *d = ctx;
    const conv_geometry *g = d->g;
    uint64_t mode = tmi_denormals_flush();
    for (int64_t w = begin * g->cin * conv_taps(g); w < end * g->cin * conv_taps(g); w++) {
        int64_t t = w % conv_taps(g), ci = w / conv_taps(g) % g->cin, co = w / conv_taps(g) / g->cin;
        T sum = 0;
        for (int64_t n = 0; n < g->batch; n++)
            sum += NAME(tap_grad)(d, (const T *)d->out->data + n * d->out->ns + co * d->out->cs,
                                  (const T *)d->in->data + n * d->in->ns + (co / g->cout * g->cin + ci) * d->in->cs, t);
        d->gweight[w] = sum;
    }
    tmi_denormals_restore(mode);
}
