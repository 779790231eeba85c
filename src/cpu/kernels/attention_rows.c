/* Rows of scores in attention: see cpu/attention/attention_rows.h. */
#include "cpu/attention/attention_rows.h"

#include "cpu/isa/vectors.h"

#include "cpu/isa/vec_math_f32.h"
#include "cpu/isa/vec_math_f64.h"

/* exp of one number by the vector function, so that it agrees with its lanes. */
static float exp1_f32(float x) { return v_hmax_f32(v_exp_f32(v_set_f32(x))); }
static double exp1_f64(double x) { return v_hmax_f64(v_exp_f64(v_set_f64(x))); }

#define T float
#define V vf32
#define W TMK_W32
#define LOAD v_load_f32
#define STORE v_store_f32
#define SET v_set_f32
#define MAX v_max_f32
#define HMAX v_hmax_f32
#define SUM v_sum_f32
#define EXP v_exp_f32
#define EXP1 exp1_f32
#define NAME(x) f32_##x
#include "attention_rows.tmpl.h"
#define T double
#define V vf64
#define W TMK_W64
#define LOAD v_load_f64
#define STORE v_store_f64
#define SET v_set_f64
#define MAX v_max_f64
#define HMAX v_hmax_f64
#define SUM v_sum_f64
#define EXP v_exp_f64
#define EXP1 exp1_f64
#define NAME(x) f64_##x
#include "attention_rows.tmpl.h"

const tmk_attention_rows TMK_NAME(attention_rows) = {
    .soft_f32 = f32_soft, .soft_f64 = f64_soft, .weights_f32 = f32_weights, .weights_f64 = f64_weights,
    .scores_grad_f32 = f32_scores_grad, .scores_grad_f64 = f64_scores_grad,
};
