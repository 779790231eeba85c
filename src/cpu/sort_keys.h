/* Numbers as unsigned keys of the same order, and stable sorting of keys with their places.
 *
 * NaN is beyond every number, all NaNs are equal, and so are the two zeros. */
#ifndef TMK_SORT_KEYS_H
#define TMK_SORT_KEYS_H

#include "core/dtype.h"

typedef struct tmk_pair32 { uint32_t key, place; } tmk_pair32;
typedef struct tmk_pair64 { uint64_t key; int64_t place; } tmk_pair64;

/* Keys of 32 bits are enough for this dtype. */
static inline bool tmk_short_keys(tm_dtype d) { return tmi_dtypes[d].size <= 4; }

/* out[i] = key of element i * stride; descending: the order is turned round (equal ones stay in order). Real dtypes only. */
void tmk_keys32(tm_dtype d, const void *from, int64_t stride, int64_t n, bool descending, uint32_t *out);
void tmk_keys64(tm_dtype d, const void *from, int64_t stride, int64_t n, bool descending, uint64_t *out);




/* Stable, ascending by key; `other` is scratch of n pairs. The result is in `pairs`. */
void tmk_sort_pairs32(tmk_pair32 *pairs, tmk_pair32 *other, int64_t n);
void tmk_sort_pairs64(tmk_pair64 *pairs, tmk_pair64 *other, int64_t n);

#endif
