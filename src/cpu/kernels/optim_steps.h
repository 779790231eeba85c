/* Optimiser steps over contiguous runs, one table per instruction set. */
#ifndef TMK_OPTIM_STEPS_H
#define TMK_OPTIM_STEPS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tmk_adam {
    double lr, beta1, beta2, weight_decay, eps, correction1, root_correction2, grad_scale;   /* root_correction2 = sqrt(1 - beta2^t) */
    bool amsgrad, maximize, decoupled;   /* decoupled: AdamW */
} tmk_adam;
typedef struct tmk_sgd {
    double lr, weight_decay, momentum, dampening, grad_scale;
    bool nesterov, maximize, first;
} tmk_sgd;
typedef struct tmk_adagrad {
    double lr, lr_decay, rate, weight_decay, eps, grad_scale;   /* rate: lr / (1 + (t - 1) lr_decay) */
    bool maximize;
} tmk_adagrad;

/* p parameters, g gradients (divided by grad_scale in place where it is not 1), the rest state; m NULL for SGD without momentum. */
typedef struct tmk_optim_table {
    void (*adam[2])(void *p, void *g, void *m, void *v, void *top, int64_t n, const tmk_adam *a);   /* [0] float, [1] double */
    void (*sgd[2])(void *p, void *g, void *m, int64_t n, const tmk_sgd *s);
    void (*adagrad[2])(void *p, void *g, void *sum, int64_t n, const tmk_adagrad *a);
} tmk_optim_table;

extern const tmk_optim_table tmk_optim_table_scalar, tmk_optim_table_avx2, tmk_optim_table_avx512, tmk_optim_table_neon;

#endif
