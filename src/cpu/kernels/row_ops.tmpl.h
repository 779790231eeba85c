/* The row operations of row_ops.h for one number type T; ROW_SUM and ROW_MAX are fold rows of it, TREE_SUM and TREE_MAX their trees. */
enum { NAME(piece) = 512 };   /* elements that pass through a buffer: stays in L1, a multiple of the lanes */

static double NAME(max)(const void *x, int64_t n)
{
    T lanes[TMK_LANES], top;
    for (int k = 0; k < TMK_LANES; k++) lanes[k] = *(const T *)x;
    ROW_MAX(x, n, lanes);
    TREE_MAX(lanes, &top);
    return (double)top;
}

static double NAME(sum)(const void *from, int64_t n)
{
    const T *x = from;
    double total = 0;
    for (int64_t i = 0; i < n; i += TMK_LEAF) {
        T lanes[TMK_LANES] = {0}, leaf;
        ROW_SUM(x + i, n - i < TMK_LEAF ? n - i : TMK_LEAF, lanes);
        TREE_SUM(lanes, &leaf);
        total += (double)leaf;
    }
    return total;
}

/* Adds a piece's values to the lanes; a leaf that is full goes to the total. */
static inline void NAME(add_piece)(const T *values, int64_t at, int64_t n, int64_t end, T *lanes, double *total)
{
    ROW_SUM(values, n, lanes);
    if ((at + n) % TMK_LEAF != 0 && at + n != end) return;
    T leaf;
    TREE_SUM(lanes, &leaf);
    *total += (double)leaf;
    memset(lanes, 0, TMK_LANES * sizeof *lanes);
}

static double NAME(dot)(const void *a_v, const void *b_v, int64_t n)
{
    const T *a = a_v, *b = b_v;
    T lanes[TMK_LANES] = {0}, buf[NAME(piece)];
    double total = 0;
    for (int64_t i = 0; i < n; i += NAME(piece)) {
        int64_t len = n - i < NAME(piece) ? n - i : NAME(piece);
        for (int64_t k = 0; k < len; k++) buf[k] = a[i + k] * b[i + k];
        NAME(add_piece)(buf, i, len, n, lanes, &total);
    }
    return total;
}

static double NAME(exp_sum)(const void *x_v, int64_t n, double m_d, void *out_v)
{
    const T *x = x_v;
    T *out = out_v, m = (T)m_d, lanes[TMK_LANES] = {0}, buf[NAME(piece)];
    double total = 0;
    for (int64_t i = 0; i < n; i += NAME(piece)) {
        int64_t len = n - i < NAME(piece) ? n - i : NAME(piece);
        for (int64_t k = 0; k < len; k++) buf[k] = EXP(x[i + k] - m);
        if (out) memcpy(out + i, buf, (size_t)len * sizeof *buf);
        NAME(add_piece)(buf, i, len, n, lanes, &total);
    }
    return total;
}

static double NAME(square_dev)(const void *x_v, int64_t n, double mean_d)
{
    const T *x = x_v;
    T mean = (T)mean_d, lanes[TMK_LANES] = {0}, buf[NAME(piece)];
    double total = 0;
    for (int64_t i = 0; i < n; i += NAME(piece)) {
        int64_t len = n - i < NAME(piece) ? n - i : NAME(piece);
        for (int64_t k = 0; k < len; k++) buf[k] = (x[i + k] - mean) * (x[i + k] - mean);
        NAME(add_piece)(buf, i, len, n, lanes, &total);
    }
    return total;
}

static void NAME(scale)(const void *x, int64_t n, double by_d, void *out)
{
    T by = (T)by_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)x)[i] * by;
}

static void NAME(shift)(const void *x, int64_t n, double m_d, double l_d, void *out)
{
    T m = (T)m_d, l = (T)l_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = (((const T *)x)[i] - m) - l;
}

static void NAME(softmax_grad)(const void *g, const void *y, int64_t n, double dot_d, void *out)
{
    T dot = (T)dot_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)y)[i] * (((const T *)g)[i] - dot);
}

static void NAME(log_softmax_grad)(const void *g, const void *y, int64_t n, double sum_d, void *out)
{
    T sum = (T)sum_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)g)[i] - EXP(((const T *)y)[i]) * sum;
}

static void NAME(normalize)(const void *x_v, int64_t n, double mean_d, double rstd_d, const void *w_v, const void *b_v, void *out_v)
{
    const T *restrict x = x_v, *restrict w = w_v, *restrict b = b_v;
    T *restrict out = out_v, mean = (T)mean_d, rstd = (T)rstd_d;
    if (w && b)
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];
    else if (w)
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];
    else if (b)
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;
}

static void NAME(grad_sums)(const void *g_v, const void *x_v, const void *w_v, int64_t n, double mean_d, double rstd_d, double *s)
{
    const T *g = g_v, *x = x_v, *w = w_v;
    T mean = (T)mean_d, rstd = (T)rstd_d, lanes[2][TMK_LANES] = {{0}}, a[NAME(piece)], b[NAME(piece)];
    s[0] = s[1] = 0;
    for (int64_t i = 0; i < n; i += NAME(piece)) {
        int64_t len = n - i < NAME(piece) ? n - i : NAME(piece);
        if (w)
            for (int64_t k = 0; k < len; k++) a[k] = g[i + k] * w[i + k];
        else
            for (int64_t k = 0; k < len; k++) a[k] = g[i + k];
        for (int64_t k = 0; k < len; k++) b[k] = a[k] * ((x[i + k] - mean) * rstd);
        NAME(add_piece)(a, i, len, n, lanes[0], &s[0]);
        NAME(add_piece)(b, i, len, n, lanes[1], &s[1]);
    }
}

static void NAME(norm_grad)(const void *g_v, const void *x_v, const void *w_v, int64_t n, double mean_d, double rstd_d, double c0_d, double c1_d,
                            void *out_v)
{
    const T *restrict g = g_v, *restrict x = x_v, *restrict w = w_v;
    T *restrict out = out_v, mean = (T)mean_d, rstd = (T)rstd_d, c0 = (T)c0_d, c1 = (T)c1_d;
    if (w)
        for (int64_t i = 0; i < n; i++) out[i] = (g[i] * w[i] - c0 - (x[i] - mean) * rstd * c1) * rstd;
    else
        for (int64_t i = 0; i < n; i++) out[i] = (g[i] - c0 - (x[i] - mean) * rstd * c1) * rstd;
}

static void NAME(weight_grads)(const void *g_v, const void *x_v, int64_t n, double mean_d, double rstd_d, void *dw_v, void *db_v)
{
    const T *restrict g = g_v, *restrict x = x_v;
    T *restrict dw = dw_v, *restrict db = db_v, mean = (T)mean_d, rstd = (T)rstd_d;
    if (dw)
        for (int64_t i = 0; i < n; i++) dw[i] += g[i] * ((x[i] - mean) * rstd);
    if (db)
        for (int64_t i = 0; i < n; i++) db[i] += g[i];
}

static void NAME(affine)(const void *x, int64_t n, double a_d, double b_d, void *out)
{
    T a = (T)a_d, b = (T)b_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)x)[i] * a + b;
}

static void NAME(affine2)(const void *g, const void *x, int64_t n, double a_d, double b_d, double c_d, void *out)
{
    T a = (T)a_d, b = (T)b_d, c = (T)c_d;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = (((const T *)g)[i] * a + ((const T *)x)[i] * b) + c;
}

static void NAME(column_max)(const void *x, int64_t n, void *m_v)
{
    T *m = m_v;
    for (int64_t i = 0; i < n; i++) {
        T v = ((const T *)x)[i];
        m[i] = v > m[i] || v != v ? v : m[i];
    }
}

static void NAME(column_exp)(const void *x, int64_t n, const void *m, void *out, double *sum)
{
    T e[NAME(piece)];
    for (int64_t i = 0; i < n; i++) e[i] = EXP(((const T *)x)[i] - ((const T *)m)[i]);
    for (int64_t i = 0; i < n; i++) sum[i] += (double)e[i];
    if (out) memcpy(out, e, (size_t)n * sizeof *e);
}

static void NAME(column_scale)(const void *x, int64_t n, const void *by, void *out)
{
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)x)[i] * ((const T *)by)[i];
}

static void NAME(column_shift)(const void *x, int64_t n, const void *m, const void *l, void *out)
{
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = (((const T *)x)[i] - ((const T *)m)[i]) - ((const T *)l)[i];
}

static void NAME(column_dot)(const void *a, const void *b, int64_t n, double *sum)
{
    if (b)
        for (int64_t i = 0; i < n; i++) sum[i] += (double)(((const T *)a)[i] * ((const T *)b)[i]);
    else
        for (int64_t i = 0; i < n; i++) sum[i] += (double)((const T *)a)[i];
}

static void NAME(column_softmax_grad)(const void *g, const void *y, int64_t n, const void *dot, void *out)
{
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)y)[i] * (((const T *)g)[i] - ((const T *)dot)[i]);
}

static void NAME(column_log_softmax_grad)(const void *g, const void *y, int64_t n, const void *sum, void *out)
{
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = ((const T *)g)[i] - EXP(((const T *)y)[i]) * ((const T *)sum)[i];
}

const tmk_row_table TABLE = {
    .max = NAME(max), .sum = NAME(sum), .dot = NAME(dot), .exp_sum = NAME(exp_sum), .square_dev = NAME(square_dev), .scale = NAME(scale),
    .shift = NAME(shift), .softmax_grad = NAME(softmax_grad), .log_softmax_grad = NAME(log_softmax_grad), .normalize = NAME(normalize),
    .grad_sums = NAME(grad_sums), .norm_grad = NAME(norm_grad), .weight_grads = NAME(weight_grads), .affine = NAME(affine), .affine2 = NAME(affine2),
    .column_max = NAME(column_max),
    .column_exp = NAME(column_exp), .column_scale = NAME(column_scale), .column_shift = NAME(column_shift), .column_dot = NAME(column_dot),
    .column_softmax_grad = NAME(column_softmax_grad), .column_log_softmax_grad = NAME(column_log_softmax_grad),
};
