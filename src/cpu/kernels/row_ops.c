/* Instantiates row_ops.h for one instruction set. */
#include "row_ops.h"

#include "exp_inline.h"
#include "fold.h"
#include "isa_name.h"

#define FOLD_SUM(a, b) ((a) + (b))
#define FOLD_MAX(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define SELECT_MAX(a, b) (((b) > (a)) | ((b) != (b)))

#define T float
#define ITYPE int32_t
#define FOLD FOLD_SUM
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) f32_sum_##x
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
#define ROW_SUM f32_sum_row
#define TREE_SUM f32_sum_tree
#define ROW_MAX f32_max_row
#define TREE_MAX f32_max_tree
#define EXP tmk_exp_f32
#define NAME(x) f32_##x
#define TABLE TMK_FOR_ISA(tmk_row_table_f32)
#include "row_ops.tmpl.h"
#undef ROW_SUM
#undef TREE_SUM
#undef ROW_MAX
#undef TREE_MAX
#undef EXP
#undef NAME
#undef TABLE
#undef T
#undef ITYPE

#define T double
#define ITYPE int64_t
#define FOLD FOLD_SUM
#define FOLD_SCALAR FOLD_SUM
#define NAME(x) f64_sum_##x
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
#define ROW_SUM f64_sum_row
#define TREE_SUM f64_sum_tree
#define ROW_MAX f64_max_row
#define TREE_MAX f64_max_tree
#define EXP tmk_exp_f64
#define NAME(x) f64_##x
#define TABLE TMK_FOR_ISA(tmk_row_table_f64)
#include "row_ops.tmpl.h"
