#include "vec.h"

bool tmi_vec_grow(void **data, int64_t *cap, int64_t need, size_t elem)
{
    int64_t n = *cap ? *cap * 2 : 8;
    if (n < need) n = need;
    if ((uint64_t)n > (SIZE_MAX >> 1) / elem) {
        tmi_fail(TM_NOMEM, "array of %lld elements of %zu bytes is too large", (long long)n, elem);
        return false;
    }
    void *p = tmi_realloc(*data, (size_t)*cap * elem, (size_t)n * elem);
    if (!p) return false;
    *data = p;
    *cap = n;
    return true;
}
