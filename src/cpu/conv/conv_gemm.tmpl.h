/* Convolution by matrix products. Included with T, DTYPE and NAME defined. */

static bool NAME(goes_direct)(const conv_geometry *g) { return g->groups > 1 && g->cout < 8 && g->cin < 8; }

/* Weights of all groups with channels innermost: [cout][taps][cin]. */
static T *NAME(inner_weights)(const conv_geometry *g, const T *w, size_t *bytes)
{
    int64_t taps = conv_taps(g), rows = g->groups * g->cout;
    *bytes = (size_t)(rows * taps * g->cin) * sizeof(T);
    T *out = tmi_data_alloc(*bytes);
    for (int64_t r = 0; out && r < rows; r++)
        for (int64_t c = 0; c < g->cin; c++)
            for (int64_t t = 0; t < taps; t++) out[(r * taps + t) * g->cin + c] = w[(r * g->cin + c) * taps + t];
    return out;
}

static void NAME(add_bias)(void *ctx, void *tile, int64_t rs, int64_t cs, int64_t row, int64_t rows, int64_t col, int64_t cols)
{
    const T *bias = ctx;
    T *t = tile;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++) t[i * rs + j * cs] += bias[row + i];
}

/* A 1 x 1 kernel over evenly lying positions needs no gathering: the input is the matrix. */
static bool NAME(is_pointwise)(const conv_geometry *g, const conv_array *in, int64_t *step)
{
    bool plain = conv_taps(g) == 1 && conv_even(in, g->in, step);
    for (int i = 0; i < 3; i++) plain = plain && g->stride[i] == 1 && g->pad[i] == 0;
    return plain;
}

static tm_status NAME(apply_group)(const conv_geometry *g, const conv_array *in, const T *weight, const T *bias, const conv_array *out, int64_t group,
                                   bool inner)
{
    int64_t k = g->cin * conv_taps(g), step, in_step = 1;
    tmi_gemm m = tmi_gemm_init(DTYPE, g->cout, conv_positions(g->out), k);
    NAME(patches) patches = {.g = g, .in = (const T *)in->data + group * g->cin * in->cs, .a = *in, .channels_inner = inner};
    conv_even(out, g->out, &step);
    m.a = weight + group * g->cout * k, m.a_rs = k, m.a_cs = 1;
    m.c = (T *)out->data + group * g->cout * out->cs, m.c_rs = out->cs, m.c_cs = step, m.c_bs = out->ns;
    m.batch = g->batch;
    if (NAME(is_pointwise)(g, in, &in_step)) {
        m.b = patches.in, m.b_rs = in->cs, m.b_cs = in_step, m.b_bs = in->ns;
    } else {
        m.load_b = NAME(load), m.load_b_ctx = &patches;
    }
    if (bias) m.epilogue = NAME(add_bias), m.epilogue_ctx = (void *)(uintptr_t)(bias + group * g->cout);
    return tmi_gemm_run(&m);
}

static tm_status NAME(apply)(const conv_geometry *g, const conv_array *in, const void *weight, const void *bias, const conv_array *out)
{
    if (NAME(goes_direct)(g)) {
        NAME(direct) d = {.g = g, .in = in, .out = out, .weight = weight, .bias = bias};
        tmi_parallel_for(g->batch * g->groups * g->cout, 1 + 16384 / (conv_positions(g->out) * conv_taps(g) * g->cin + 1), NAME(direct_apply), &d);
        return TM_OK;
    }
    bool inner = in->cs == 1 && g->cin > 1;
    size_t bytes = 0;
    T *turned = inner && conv_taps(g) > 1 ? NAME(inner_weights)(g, weight, &bytes) : NULL;
    if (inner && conv_taps(g) > 1 && !turned) return TM_NOMEM;
    tm_status status = TM_OK;
    for (int64_t i = 0; i < g->groups && !status; i++) status = NAME(apply_group)(g, in, turned ? turned : weight, bias, out, i, inner);
    if (turned) tmi_data_free(turned, bytes);
    return status;
}

/* ---- gradient of the input */

/* With stride 1 it is a convolution of the output's gradient with the weights turned around. */
static bool NAME(turns)(const conv_geometry *g, conv_geometry *t)
{
    *t = *g;
    t->cin = g->cout, t->cout = g->cin;
    for (int i = 0; i < 3; i++) {
        t->pad[i] = g->dilation[i] * (g->k[i] - 1) - g->pad[i];
        t->in[i] = g->out[i], t->out[i] = g->in[i];
        if (g->stride[i] != 1 || t->pad[i] < 0) return false;
    }
    return true;
}

/* [groups][cin][cout][taps backwards] from [groups][cout][cin][taps]. */
static T *NAME(turned_weights)(const conv_geometry *g, const T *w, size_t *bytes)
{
    int64_t taps = conv_taps(g);
    *bytes = (size_t)(g->groups * g->cout * g->cin * taps) * sizeof(T);
    T *out = tmi_data_alloc(*bytes), *p = out;
    for (int64_t s = 0; out && s < g->groups; s++)
        for (int64_t ci = 0; ci < g->cin; ci++)
            for (int64_t co = 0; co < g->cout; co++)
                for (int64_t t = taps - 1; t >= 0; t--) *p++ = w[((s * g->cout + co) * g->cin + ci) * taps + t];
    return out;
}

typedef struct NAME(scatter) {
    const conv_geometry *g;
    const T *cols;      /* [cin][taps][positions] */
    T *gin;             /* first channel of the group in one image */
    const conv_array *a;
} NAME(scatter);

/* Task: a channel. Each row of the patches' gradient is added to the row of the input that it came from. */
static void NAME(scatter_channels)(void *ctx, int64_t begin, int64_t end)
{
    const NAME(scatter) *s = ctx;
    const conv_geometry *g = s->g;
    for (int64_t c = begin; c < end; c++) {
        const T *col = s->cols + c * conv_taps(g) * conv_positions(g->out);
        T *gin = s->gin + c * s->a->cs;
        NAME(fill_plane)(s->a, g->in, gin, 0);
        for (int64_t t = 0; t < conv_taps(g); t++)
            for (int64_t row = 0; row < g->out[0] * g->out[1]; row++, col += g->out[2]) {
                conv_meeting m;
                if (!conv_meet(g, row, t, &m)) continue;
                T *to = gin + conv_in_at(g, s->a, &m);
                int64_t step = g->stride[2] * s->a->ss[2];
                for (int64_t j = m.lo; j < m.hi; j++) to[(j - m.lo) * step] += col[j];
            }
    }
}

static tm_status NAME(input_by_scatter)(const conv_geometry *g, const conv_array *gout, const T *weight, const conv_array *gin, T *cols)
{
    int64_t k = g->cin * conv_taps(g), step;
    conv_even(gout, g->out, &step);
    for (int64_t n = 0; n < g->batch; n++)
        for (int64_t i = 0; i < g->groups; i++) {
            tmi_gemm m = tmi_gemm_init(DTYPE, k, conv_positions(g->out), g->cout);
            m.a = weight + i * g->cout * k, m.a_rs = 1, m.a_cs = k;
            m.b = (const T *)gout->data + n * gout->ns + i * g->cout * gout->cs, m.b_rs = gout->cs, m.b_cs = step;
            m.c = cols, m.c_rs = m.n, m.c_cs = 1;
            TMI_TRY(tmi_gemm_run(&m));
            NAME(scatter) s = {.g = g, .cols = cols, .gin = (T *)gin->data + n * gin->ns + i * g->cin * gin->cs, .a = gin};
            tmi_parallel_for(g->cin, 1 + 16384 / (conv_taps(g) * m.n + 1), NAME(scatter_channels), &s);
        }
    return TM_OK;
}

static tm_status NAME(input_grad)(const conv_geometry *g, const conv_array *gout, const void *weight, const conv_array *gin)
{
    conv_geometry turned;
    size_t bytes;
    if (NAME(goes_direct)(g)) {
        NAME(direct) d = {.g = g, .in = gin, .out = gout, .weight = weight};
        tmi_parallel_for(g->batch * g->groups * g->cin, 1 + 16384 / (conv_positions(g->out) * conv_taps(g) * g->cout + 1), NAME(direct_input), &d);
        return TM_OK;
    }
    tm_status status;
    if (NAME(turns)(g, &turned)) {
        T *w = NAME(turned_weights)(g, weight, &bytes);
        if (!w) return TM_NOMEM;
        status = NAME(apply)(&turned, gout, w, NULL, gin);
        tmi_data_free(w, bytes);
        return status;
    }
    bytes = (size_t)(g->cin * conv_taps(g) * conv_positions(g->out)) * sizeof(T);
    T *cols = tmi_data_alloc(bytes);
    if (!cols) return TM_NOMEM;
    status = NAME(input_by_scatter)(g, gout, weight, gin, cols);
    tmi_data_free(cols, bytes);
    return status;
}

/* ---- gradient of the weights: images one after the other */

static tm_status NAME(weight_grad)(const conv_geometry *g, const conv_array *in, const conv_array *gout, void *gweight)
{
    int64_t k = g->cin * conv_taps(g), step;
    if (NAME(goes_direct)(g)) {
        NAME(direct) d = {.g = g, .in = in, .out = gout, .gweight = gweight};
        tmi_parallel_for(g->groups * g->cout, 1, NAME(direct_weight), &d);
        return TM_OK;
    }
    conv_even(gout, g->out, &step);
    for (int64_t i = 0; i < g->groups; i++) {
        NAME(patches) patches = {.g = g, .a = *in};
        tmi_gemm m = tmi_gemm_init(DTYPE, g->cout, k, conv_positions(g->out));
        m.load_b = NAME(load_turned), m.load_b_ctx = &patches;
        m.a_rs = gout->cs, m.a_cs = step;
        m.c = (T *)gweight + i * g->cout * k, m.c_rs = k, m.c_cs = 1;
        for (int64_t n = 0; n < g->batch; n++) {
            patches.in = (const T *)in->data + i * g->cin * in->cs + n * in->ns;
            m.a = (const T *)gout->data + n * gout->ns + i * g->cout * gout->cs;
            m.beta = tm_f64(n > 0);
            TMI_TRY(tmi_gemm_run(&m));
        }
    }
    return TM_OK;
}
