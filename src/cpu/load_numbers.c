/* Loads from every dtype to every accumulator: what kernels/fold.c does not do with vectors. */
#include <complex.h>
#undef I

#include "kernels/half_inline.h"
#include "reduce.h"

#define FROM_COMPLEX(x) ((D)cabs(x))
#define D float
#define TO(x) load_f32_##x
#include "kernels/load_numbers.tmpl.h"
#undef D
#undef TO
#define D double
#define TO(x) load_f64_##x
#include "kernels/load_numbers.tmpl.h"
#undef D
#undef TO
#define D int64_t
#define TO(x) load_i64_##x
#include "kernels/load_numbers.tmpl.h"
#undef D
#undef TO
#undef FROM_COMPLEX
#define FROM_COMPLEX(x) ((D)(x))
#define D tmi_c64
#define TO(x) load_c64_##x
#include "kernels/load_numbers.tmpl.h"
#undef D
#undef TO
#define D tmi_c128
#define TO(x) load_c128_##x
#include "kernels/load_numbers.tmpl.h"
#undef D
#undef TO

#define TEST(x) ((x) != 0)
#define S uint8_t
#define NAME flags_1
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S uint16_t
#define NAME flags_2
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S uint32_t
#define NAME flags_4
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S uint64_t
#define NAME flags_8
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S float
#define NAME flags_f32
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S double
#define NAME flags_f64
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S tmi_c64
#define NAME flags_c64
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#define S tmi_c128
#define NAME flags_c128
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#undef TEST
#define TEST(x) (((x) & 0x7fff) != 0)   /* f16 and bf16: both zeros */
#define S uint16_t
#define NAME flags_half
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#undef TEST
#define TEST(x) (((x) & 0x7f) != 0)
#define S uint8_t
#define NAME flags_f8
#include "kernels/load_flags.tmpl.h"
#undef S
#undef NAME
#undef TEST

#define LOADS(d, flags)                                                                                               \
    { load_f32_##d, load_f64_##d, load_i64_##d, flags, load_c64_##d, load_c128_##d }

static tmk_load_fn *const loads[TM_DTYPE_COUNT][TMK_ACC_COUNT] = {
    [TM_BOOL] = LOADS(bool, flags_1), [TM_U8] = LOADS(u8, flags_1), [TM_I8] = LOADS(i8, flags_1),
    [TM_I16] = LOADS(i16, flags_2), [TM_I32] = LOADS(i32, flags_4), [TM_I64] = LOADS(i64, flags_8),
    [TM_F16] = LOADS(f16, flags_half), [TM_F32] = LOADS(f32, flags_f32), [TM_F64] = LOADS(f64, flags_f64),
    [TM_C64] = LOADS(c64, flags_c64), [TM_C128] = LOADS(c128, flags_c128), [TM_BF16] = LOADS(bf16, flags_half),
    [TM_U16] = LOADS(u16, flags_2), [TM_U32] = LOADS(u32, flags_4), [TM_U64] = LOADS(u64, flags_8),
    [TM_F8_E4M3FN] = LOADS(f8_e4m3fn, flags_f8), [TM_F8_E5M2] = LOADS(f8_e5m2, flags_f8),
};

tmk_load_fn *tmk_load(tm_dtype from, tmk_acc to)
{
    tmk_load_fn *fast = tmk_folds()->load[from][to];
    return fast ? fast : loads[from][to];
}
