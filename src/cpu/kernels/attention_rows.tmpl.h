/* Rows of scores in attention. Included with T, V, W, LOAD, STORE, SET, MAX, HMAX, SUM, EXP and NAME defined. */

static int64_t NAME(fill_tail)(T *row, int64_t cols)
{
    int64_t end = (cols + W - 1) / W * W;
    for (int64_t j = cols; j < end; j++) row[j] = -(T)INFINITY;
    return end;
}

static T NAME(row_max)(const T *row, int64_t end)
{
    V m = LOAD(row);
    for (int64_t j = W; j < end; j += W) m = MAX(m, LOAD(row + j));
    return HMAX(m);
}

/* exp(row - shift) in place; returns the sum. */
static T NAME(row_exp)(T *row, int64_t end, T shift)
{
    V sum = SET(0), by = SET(shift);
    for (int64_t j = 0; j < end; j += W) {
        V e = EXP(LOAD(row + j) - by);
        STORE(row + j, e);
        sum = sum + e;
    }
    return SUM(sum);
}

static void NAME(soft)(T *s, int64_t ld, int64_t rows, int64_t cols, T *max, T *sum, T *shrink)
{
    for (int64_t r = 0; r < rows; r++) {
        T *row = s + r * ld;
        int64_t end = NAME(fill_tail)(row, cols);
        T m = NAME(row_max)(row, end), old = max[r];
        if (!(m > old)) m = old;
        if (m == -(T)INFINITY) {   /* nothing but masked scores so far */
            for (int64_t j = 0; j < end; j++) row[j] = row[j] != row[j] ? row[j] : 0;
            shrink[r] = 1;
            for (int64_t j = 0; j < cols; j++) sum[r] += row[j];
            continue;
        }
        T less = old == -(T)INFINITY ? 0 : EXP1(old - m);
        sum[r] = sum[r] * less + NAME(row_exp)(row, end, m);
        max[r] = m;
        shrink[r] = less;
    }
}

static void NAME(weights)(T *s, int64_t ld, int64_t rows, int64_t cols, const T *lse)
{
    for (int64_t r = 0; r < rows; r++) {
        T *row = s + r * ld;
        int64_t end = NAME(fill_tail)(row, cols);
        if (lse[r] == -(T)INFINITY)
            for (int64_t j = 0; j < end; j++) row[j] = 0;
        else
            NAME(row_exp)(row, end, lse[r]);
    }
}

static void NAME(scores_grad)(const T *p, T *dp, int64_t ld, int64_t rows, int64_t cols, const T *delta)
{
    for (int64_t r = 0; r < rows; r++) {
        const T *w = p + r * ld;
        T *d = dp + r * ld;
        V by = SET(delta[r]);
        int64_t end = cols / W * W;
        for (int64_t j = 0; j < end; j += W) STORE(d + j, LOAD(w + j) * (LOAD(d + j) - by));
        for (int64_t j = end; j < cols; j++) d[j] = w[j] * (d[j] - delta[r]);
    }
}

#undef T
#undef V
#undef W
#undef LOAD
#undef STORE
#undef SET
#undef MAX
#undef HMAX
#undef SUM
#undef EXP
#undef EXP1
#undef NAME
