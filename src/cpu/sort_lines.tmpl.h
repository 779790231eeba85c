/* Sorting, the largest k and order statistics of one line, keys of KEY in PAIR: NAME(x), KEYS, SORT_PAIRS. */
static void NAME(pairs)(const sorter *s, const char *line, PAIR *pairs, KEY *keys)
{
    enum { PIECE = 512 };
    for (int64_t i = 0; i < s->l.length; i += PIECE) {
        int64_t n = s->l.length - i < PIECE ? s->l.length - i : PIECE;
        KEYS(s->dtype, line + i * s->l.inner * s->size, s->l.inner, n, s->descending, keys);
        for (int64_t k = 0; k < n; k++) pairs[i + k] = (PAIR){keys[k], (uint32_t)(i + k)};
    }
}

static void NAME(put)(const sorter *s, const char *line, const PAIR *pairs, int64_t n, int64_t outer, int64_t inner)
{
    char *values = s->values + (outer * n * s->l.inner + inner) * s->size;
    int64_t *indices = s->indices + outer * n * s->l.inner + inner;
    for (int64_t i = 0; i < n; i++) indices[i * s->l.inner] = (int64_t)pairs[i].place;
    for (int64_t i = 0; i < n; i++)
        memcpy(values + i * s->l.inner * s->size, line + (int64_t)pairs[i].place * s->l.inner * s->size, (size_t)s->size);
}

static void NAME(sort_line)(const sorter *s, const char *line, char *scratch, int64_t outer, int64_t inner)
{
    PAIR *pairs = (PAIR *)scratch, *other = pairs + s->l.length;
    NAME(pairs)(s, line, pairs, (KEY *)other);
    SORT_PAIRS(pairs, other, s->l.length);
    NAME(put)(s, line, pairs, s->l.length, outer, inner);
}

/* Keeps the best k seen so far in a buffer; when it is full the worse half goes, and only what beats the worst kept one is looked at. */
static void NAME(top_line)(const sorter *s, const char *line, char *scratch, int64_t outer, int64_t inner)
{
    enum { PIECE = 512 };
    int64_t room = s->k * 2 > 256 ? s->k * 2 : 256, held = 0;
    PAIR *best = (PAIR *)scratch, *other = best + room;
    KEY keys[PIECE], worst = (KEY)-1;
    bool full = false;
    for (int64_t i = 0; i < s->l.length; i += PIECE) {
        int64_t n = s->l.length - i < PIECE ? s->l.length - i : PIECE;
        KEYS(s->dtype, line + i * s->l.inner * s->size, s->l.inner, n, s->descending, keys);
        for (int64_t k = 0; k < n; k++) {
            if (full && keys[k] >= worst) continue;
            best[held++] = (PAIR){keys[k], (uint32_t)(i + k)};
            if (held < room) continue;
            SORT_PAIRS(best, other, held);
            held = s->k;
            full = true;
            worst = held ? best[held - 1].key : 0;
        }
    }
    SORT_PAIRS(best, other, held);
    NAME(put)(s, line, best, s->k, outer, inner);
}

/* The element of rank k (0: smallest) among those whose key is below `limit`. The bucket of the leading bits that holds it is found by
 * counting, and only that bucket is sorted. */
static PAIR NAME(select)(const sorter *s, const char *line, char *scratch, int64_t k)
{
    enum { PIECE = 512, BUCKETS = 2048, SHIFT = sizeof(KEY) * 8 - 11 };
    int64_t count[BUCKETS] = {0}, n = s->l.length, held = 0, bucket = 0;
    KEY *keys = (KEY *)scratch;
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t len = n - i < PIECE ? n - i : PIECE;
        KEYS(s->dtype, line + i * s->l.inner * s->size, s->l.inner, len, false, keys + i);
        for (int64_t j = 0; j < len; j++) count[keys[i + j] >> SHIFT]++;
    }
    while (k >= count[bucket]) k -= count[bucket++];
    PAIR *pairs = (PAIR *)(scratch + (n * (int64_t)sizeof(KEY) + 15) / 16 * 16), *other = pairs + count[bucket];
    for (int64_t i = 0; i < n; i++)
        if ((int64_t)(keys[i] >> SHIFT) == bucket) pairs[held++] = (PAIR){keys[i], (uint32_t)i};
    SORT_PAIRS(pairs, other, held);
    return pairs[k];
}
