/* Sorting of PAIR, keys of KEY with BITS bits: NAME(x). Short arrays by merging insertion-sorted runs, long ones by radix. */
static void NAME(insertion)(PAIR *p, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        PAIR x = p[i];
        int64_t j = i;
        for (; j > 0 && p[j - 1].key > x.key; j--) p[j] = p[j - 1];
        p[j] = x;
    }
}

static void NAME(merge)(const PAIR *a, int64_t na, const PAIR *b, int64_t nb, PAIR *out)
{
    int64_t i = 0, j = 0;
    while (i < na && j < nb) {
        bool right = b[j].key < a[i].key;
        *out++ = right ? b[j] : a[i];
        j += right;
        i += !right;
    }
    memcpy(out, a + i, (size_t)(na - i) * sizeof *a);
    memcpy(out + (na - i), b + j, (size_t)(nb - j) * sizeof *b);
}

static void NAME(merge_sort)(PAIR *p, PAIR *other, int64_t n)
{
    enum { RUN = 16 };
    for (int64_t i = 0; i < n; i += RUN) NAME(insertion)(p + i, n - i < RUN ? n - i : RUN);
    PAIR *from = p, *to = other;
    for (int64_t width = RUN; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t mid = i + width < n ? i + width : n, end = i + 2 * width < n ? i + 2 * width : n;
            NAME(merge)(from + i, mid - i, from + mid, end - mid, to + i);
        }
        PAIR *t = from;
        from = to;
        to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

/* Least significant digit first, 8 bits at a time; a digit that all keys share is skipped. */
static void NAME(radix_sort)(PAIR *p, PAIR *other, int64_t n)
{
    enum { DIGITS = BITS / 8 };
    int64_t count[DIGITS][256];
    memset(count, 0, sizeof count);
    for (int64_t i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) count[d][p[i].key >> (8 * d) & 255]++;
    PAIR *from = p, *to = other;
    for (int d = 0; d < DIGITS; d++) {
        if (count[d][p[0].key >> (8 * d) & 255] == n) continue;
        int64_t at = 0;
        for (int v = 0; v < 256; v++) {
            int64_t c = count[d][v];
            count[d][v] = at;
            at += c;
        }
        for (int64_t i = 0; i < n; i++) to[count[d][from[i].key >> (8 * d) & 255]++] = from[i];
        PAIR *t = from;
        from = to;
        to = t;
    }
    if (from != p) memcpy(p, from, (size_t)n * sizeof *p);
}

void SORT(PAIR *pairs, PAIR *other, int64_t n)
{
    if (n <= 1) return;
    if (n <= 512) NAME(merge_sort)(pairs, other, n);
    else NAME(radix_sort)(pairs, other, n);
}
