#include "sort_keys.h"

#include <complex.h>
#undef I

/* Floats by their bits: negative ones turned round, the sign bit set on the others. */
static inline uint32_t float_key(uint32_t bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0xffffffffu;
    if (bits == 0x80000000u) bits = 0;
    return bits ^ ((bits & 0x80000000u) ? 0xffffffffu : 0x80000000u);
}
static inline uint64_t double_key(uint64_t bits)
{
    if ((bits & 0x7fffffffffffffffu) > 0x7ff0000000000000u) return UINT64_MAX;
    if (bits == 0x8000000000000000u) bits = 0;
    return bits ^ ((bits & 0x8000000000000000u) ? UINT64_MAX : 0x8000000000000000u);
}
static inline uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

#define KEY uint32_t
#define S uint32_t
#define TO_KEY(x) float_key(x)
#define NAME keys_f32
#include "sort_key.tmpl.h"
#undef TO_KEY
#undef NAME
#define TO_KEY(x) (x)
#define NAME keys_u32
#include "sort_key.tmpl.h"
#undef TO_KEY
#undef NAME
#define TO_KEY(x) ((x) ^ 0x80000000u)
#define NAME keys_i32
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#define S int16_t
#define TO_KEY(x) ((uint32_t)((int32_t)(x) + 32768))
#define NAME keys_i16
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#define S int8_t
#define TO_KEY(x) ((uint32_t)((int32_t)(x) + 128))
#define NAME keys_i8
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#define TO_KEY(x) ((uint32_t)(x))
#define S uint16_t
#define NAME keys_u16
#include "sort_key.tmpl.h"
#undef S
#undef NAME
#define S uint8_t
#define NAME keys_u8
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#define S tmi_bf16
#define TO_KEY(x) float_key((uint32_t)(x).bits << 16)
#define NAME keys_bf16
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#define S tmi_f16
#define TO_KEY(x) float_key(float_bits(tmi_f16_to_f32(x)))
#define NAME keys_f16
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#undef KEY
#define KEY uint64_t
#define S uint64_t
#define TO_KEY(x) double_key(x)
#define NAME keys_f64
#include "sort_key.tmpl.h"
#undef TO_KEY
#undef NAME
#define TO_KEY(x) (x)
#define NAME keys_u64
#include "sort_key.tmpl.h"
#undef TO_KEY
#undef NAME
#define TO_KEY(x) ((x) ^ 0x8000000000000000u)
#define NAME keys_i64
#include "sort_key.tmpl.h"
#undef S
#undef TO_KEY
#undef NAME
#undef KEY

typedef void keys32_fn(const void *, int64_t, int64_t, uint32_t, uint32_t *);
typedef void keys64_fn(const void *, int64_t, int64_t, uint64_t, uint64_t *);

void tmk_keys32(tm_dtype d, const void *from, int64_t stride, int64_t n, bool descending, uint32_t *out)
{
    static keys32_fn *const table[TM_DTYPE_COUNT] = {
        [TM_BOOL] = keys_u8, [TM_U8] = keys_u8, [TM_I8] = keys_i8, [TM_I16] = keys_i16, [TM_I32] = keys_i32, [TM_F16] = keys_f16, [TM_F32] = keys_f32,
        [TM_BF16] = keys_bf16, [TM_U16] = keys_u16, [TM_U32] = keys_u32, [TM_F8_E4M3FN] = keys_u8, [TM_F8_E5M2] = keys_u8,
    };
    table[d](from, stride, n, descending ? 0xffffffffu : 0, out);
}

void tmk_keys64(tm_dtype d, const void *from, int64_t stride, int64_t n, bool descending, uint64_t *out)
{
    keys64_fn *f = d == TM_F64 ? keys_f64 : d == TM_U64 ? keys_u64 : keys_i64;
    f(from, stride, n, descending ? UINT64_MAX : 0, out);
}




#define PAIR tmk_pair32
#define BITS 32
#define NAME(x) short_##x
#define SORT tmk_sort_pairs32
#include "sort_pairs.tmpl.h"
#undef PAIR
#undef BITS
#undef NAME
#undef SORT
#define PAIR tmk_pair64
#define BITS 64
#define NAME(x) long_##x
#define SORT tmk_sort_pairs64
#include "sort_pairs.tmpl.h"
