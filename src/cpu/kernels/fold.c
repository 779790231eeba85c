/* Instantiates the folds of fold.h for one instruction set. Only exact operations and plain multiplications and additions are used,
 * so every instruction set gives the same bits. */
#include "fold.h"

#include "exp_inline.h"
#include "half_inline.h"
#include "isa_name.h"

#define FOLD_SUM(a, b) ((a) + (b))
#define FOLD_PROD(a, b) ((a) * (b))
/* NaN wins and stays: the first operand is kept unless the second is larger or NaN. */
#define FOLD_MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define FOLD_MIN(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#define SELECT_MAX(a, b) (((b) > (a)) | ((b) != (b)))
#define SELECT_MIN(a, b) (((b) < (a)) | ((b) != (b)))

/* ---- f32 */
#define T float
#define ITYPE int32_t
#define FOLD FOLD_SUM
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) f32_sum_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#define FOLD FOLD_PROD
#define FOLD_SCALAR FOLD_PROD
#define NAME(x) f32_prod_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#define SELECT_IF SELECT_MAX
#define FOLD_SCALAR FOLD_MAX
#define NAME(x) f32_max_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define SELECT_IF SELECT_MIN
#define FOLD_SCALAR FOLD_MIN
#define NAME(x) f32_min_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define NAME(x) f32_map_##x
#define ABS fabsf
#define POW powf
#define EXP tmk_exp_f32
#include "fold_maps.tmpl.h"
#undef ABS
#undef POW
#undef EXP
#undef NAME
#undef T
#undef ITYPE

/* ---- f64 */
#define T double
#define ITYPE int64_t
#define FOLD FOLD_SUM
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) f64_sum_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#define FOLD FOLD_PROD
#define FOLD_SCALAR FOLD_PROD
#define NAME(x) f64_prod_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#define SELECT_IF SELECT_MAX
#define FOLD_SCALAR FOLD_MAX
#define NAME(x) f64_max_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define SELECT_IF SELECT_MIN
#define FOLD_SCALAR FOLD_MIN
#define NAME(x) f64_min_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define NAME(x) f64_map_##x
#define ABS fabs
#define POW pow
#define EXP tmk_exp_f64
#include "fold_maps.tmpl.h"
#undef ABS
#undef POW
#undef EXP
#undef NAME
#undef T
#undef ITYPE

/* ---- i64: sums and products wrap, so they are computed unsigned */
#define T uint64_t
#define ITYPE uint64_t
#define FOLD FOLD_SUM
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) i64_sum_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#define FOLD FOLD_PROD
#define FOLD_SCALAR FOLD_PROD
#define NAME(x) i64_prod_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef FOLD
#undef FOLD_SCALAR
#undef T
#undef ITYPE
#define T int64_t
#define ITYPE int64_t
#define SELECT_IF(a, b) ((b) > (a))
#define FOLD_SCALAR FOLD_MAX
#define NAME(x) i64_max_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define SELECT_IF(a, b) ((b) < (a))
#define FOLD_SCALAR FOLD_MIN
#define NAME(x) i64_min_##x
#include "fold_vector.tmpl.h"
#undef NAME
#undef SELECT_IF
#undef FOLD_SCALAR
#define NAME(x) i64_map_##x
#define ABS(x) ((x) < 0 ? -(x) : (x))
#include "fold_maps.tmpl.h"
#undef ABS
#undef NAME
#undef T
#undef ITYPE

/* ---- flags and complex numbers */
#define T uint8_t
#define FOLD_SCALAR(a, b) ((uint8_t)((a) | (b)))
#define NAME(x) u8_max_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#define FOLD_SCALAR(a, b) ((uint8_t)((a) & (b)))
#define NAME(x) u8_min_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#undef T
#define T tmi_c64
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) c64_sum_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#define FOLD_SCALAR FOLD_PROD
#define NAME(x) c64_prod_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#undef T
#define T tmi_c128
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) c128_sum_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#define FOLD_SCALAR FOLD_PROD
#define NAME(x) c128_prod_##x
#include "fold_plain.tmpl.h"
#undef NAME
#undef FOLD_SCALAR
#undef T

/* ---- loads that matter; the rest is in load_numbers.c */
#define CONVERT(x) half_to_float(x)
#define S tmi_f16
#define D float
#define NAME load_f32_f16
#include "load_number.tmpl.h"
#undef S
#undef NAME
#undef CONVERT
#define CONVERT(x) tmi_bf16_to_f32(x)
#define S tmi_bf16
#define NAME load_f32_bf16
#include "load_number.tmpl.h"
#undef S
#undef D
#undef NAME
#undef CONVERT
#define CONVERT(x) ((D)(x))
#define S float
#define D double
#define NAME load_f64_f32
#include "load_number.tmpl.h"
#undef S
#undef D
#undef NAME
#define S int32_t
#define D int64_t
#define NAME load_i64_i32
#include "load_number.tmpl.h"
#undef S
#undef NAME
#define S uint8_t
#define NAME load_i64_u8
#include "load_number.tmpl.h"
#undef S
#undef D
#undef NAME
#undef CONVERT

#define TEST(x) ((x) != 0)
#define S float
#define NAME flags_f32
#include "load_flags.tmpl.h"
#undef S
#undef NAME
#undef TEST

/* ---- extremes with their place */
#define BETTER_MAX(v, old) (((v) > (old)) | (((v) != (v)) & ((old) == (old))))
#define BETTER_MIN(v, old) (((v) < (old)) | (((v) != (v)) & ((old) == (old))))
#define T float
#define ITYPE int32_t
#define BETTER BETTER_MAX
#define NAME(x) f32_max_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#define BETTER BETTER_MIN
#define NAME(x) f32_min_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#undef T
#undef ITYPE
#define T double
#define ITYPE int64_t
#define BETTER BETTER_MAX
#define NAME(x) f64_max_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#define BETTER BETTER_MIN
#define NAME(x) f64_min_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#undef T
#undef ITYPE
#define T int64_t
#define ITYPE int64_t
#define BETTER BETTER_MAX
#define NAME(x) i64_max_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#define BETTER BETTER_MIN
#define NAME(x) i64_min_##x
#include "arg_rows.tmpl.h"
#undef BETTER
#undef NAME
#undef T
#undef ITYPE


const tmk_fold_table TMK_FOR_ISA(tmk_fold_table) = {
    .row = {
        [TMK_ACC_F32] = {f32_sum_row, f32_prod_row, f32_max_row, f32_min_row},
        [TMK_ACC_F64] = {f64_sum_row, f64_prod_row, f64_max_row, f64_min_row},
        [TMK_ACC_I64] = {i64_sum_row, i64_prod_row, i64_max_row, i64_min_row},
        [TMK_ACC_U8] = {NULL, NULL, u8_max_row, u8_min_row},
        [TMK_ACC_C64] = {c64_sum_row, c64_prod_row},
        [TMK_ACC_C128] = {c128_sum_row, c128_prod_row},
    },
    .rows = {
        [TMK_ACC_F32] = {f32_sum_rows, f32_prod_rows, f32_max_rows, f32_min_rows},
        [TMK_ACC_F64] = {f64_sum_rows, f64_prod_rows, f64_max_rows, f64_min_rows},
        [TMK_ACC_I64] = {i64_sum_rows, i64_prod_rows, i64_max_rows, i64_min_rows},
        [TMK_ACC_U8] = {NULL, NULL, u8_max_rows, u8_min_rows},
        [TMK_ACC_C64] = {c64_sum_rows, c64_prod_rows},
        [TMK_ACC_C128] = {c128_sum_rows, c128_prod_rows},
    },
    .tree = {
        [TMK_ACC_F32] = {f32_sum_tree, f32_prod_tree, f32_max_tree, f32_min_tree},
        [TMK_ACC_F64] = {f64_sum_tree, f64_prod_tree, f64_max_tree, f64_min_tree},
        [TMK_ACC_I64] = {i64_sum_tree, i64_prod_tree, i64_max_tree, i64_min_tree},
        [TMK_ACC_U8] = {NULL, NULL, u8_max_tree, u8_min_tree},
        [TMK_ACC_C64] = {c64_sum_tree, c64_prod_tree},
        [TMK_ACC_C128] = {c128_sum_tree, c128_prod_tree},
    },
    .load = {
        [TM_F16] = {[TMK_ACC_F32] = load_f32_f16},
        [TM_BF16] = {[TMK_ACC_F32] = load_f32_bf16},
        [TM_F32] = {[TMK_ACC_F64] = load_f64_f32, [TMK_ACC_U8] = flags_f32},
        [TM_I32] = {[TMK_ACC_I64] = load_i64_i32},
        [TM_U8] = {[TMK_ACC_I64] = load_i64_u8},
    },
    .map = {
        [TMK_ACC_F32] = {NULL, f32_map_abs, f32_map_square, f32_map_nonzero, f32_map_nan_zero, f32_map_not_nan, f32_map_pow,
                         f32_map_dev_sq, f32_map_exp_dev},
        [TMK_ACC_F64] = {NULL, f64_map_abs, f64_map_square, f64_map_nonzero, f64_map_nan_zero, f64_map_not_nan, f64_map_pow,
                         f64_map_dev_sq, f64_map_exp_dev},
        [TMK_ACC_I64] = {NULL, i64_map_abs, i64_map_square, i64_map_nonzero, i64_map_nan_zero, i64_map_not_nan, NULL, NULL, NULL},
    },
    .arg_rows = {
        [TMK_ACC_F32] = {f32_max_arg_rows, f32_min_arg_rows},
        [TMK_ACC_F64] = {f64_max_arg_rows, f64_min_arg_rows},
        [TMK_ACC_I64] = {i64_max_arg_rows, i64_min_arg_rows},
    },
};
