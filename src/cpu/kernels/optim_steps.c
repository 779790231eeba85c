/* Instantiates optim_steps.h for one instruction set. */
#include "optim_steps.h"

#include <math.h>

#include "isa_name.h"

#define T float
#define SQRT sqrtf
#define NAME(x) f32_##x
#include "optim_steps.tmpl.h"
#undef T
#undef SQRT
#undef NAME
#define T double
#define SQRT sqrt
#define NAME(x) f64_##x
#include "optim_steps.tmpl.h"

const tmk_optim_table TMK_FOR_ISA(tmk_optim_table) = {
    .adam = {f32_adam, f64_adam},
    .sgd = {f32_sgd, f64_sgd},
    .adagrad = {f32_adagrad, f64_adagrad},
};
