/* Fused optimiser steps: the tensors of a list are cut into blocks, and all blocks run in one parallel pass. */
#include <math.h>

#include "base/alloc.h"
#include "base/cpuinfo.h"
#include "base/pool.h"
#include "kernels/optim_steps.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "rows.h"
#include "scratch.h"

enum { BLOCK = 16384, PIECE = 1024, ARRAYS = 5 };

static const tmk_optim_table *steps(void)
{
    switch (tmi_cpu()->isa) {
#ifdef TMK_HAVE_AVX512
    case TMI_ISA_AVX512: return &tmk_optim_table_avx512;
#endif
#ifdef TMK_HAVE_AVX2
    case TMI_ISA_AVX2: return &tmk_optim_table_avx2;
#endif
#ifdef TMK_HAVE_NEON
    case TMI_ISA_NEON: return &tmk_optim_table_neon;
#endif
    default: return &tmk_optim_table_scalar;
    }
}

typedef enum kind { ADAM, SGD, ADAGRAD } kind;
typedef union settings { tmk_adam adam; tmk_sgd sgd; tmk_adagrad adagrad; } settings;

/* One parameter: its arrays (parameter, gradient, states; NULL where there is none), contiguous. */
typedef struct item {
    tm_tensor *given[ARRAYS], *plain[ARRAYS];
    int64_t n, first_block;
    settings set;
} item;

typedef struct job {
    kind what;
    item *items;
    int64_t n_items;
    const tmk_optim_table *table;
} job;

static void run_step(const job *j, void **a, int64_t n, bool is_double, const settings *s)
{
    if (j->what == ADAM) j->table->adam[is_double](a[0], a[1], a[2], a[3], a[4], n, &s->adam);
    else if (j->what == SGD) j->table->sgd[is_double](a[0], a[1], a[2], n, &s->sgd);
    else j->table->adagrad[is_double](a[0], a[1], a[2], n, &s->adagrad);
}

/* Half-precision arrays go through float pieces on the stack. */
static void run_pieces(const job *j, const item *it, int64_t begin, int64_t end)
{
    float buf[ARRAYS][PIECE];
    void *a[ARRAYS];
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t n = end - i < PIECE ? end - i : PIECE;
        for (int k = 0; k < ARRAYS; k++) {
            a[k] = it->plain[k] ? buf[k] : NULL;
            if (!a[k]) continue;
            tm_dtype d = (tm_dtype)it->plain[k]->dtype;
            tmk_cast(buf[k], TM_F32, (char *)tmi_data(it->plain[k]) + i * (int64_t)tmi_dtype_size(d), d, n);
        }
        run_step(j, a, n, false, &it->set);
        for (int k = 0; k < ARRAYS; k++)
            if (a[k]) tmk_cast((char *)tmi_data(it->plain[k]) + i * (int64_t)tmi_dtype_size(it->plain[k]->dtype), (tm_dtype)it->plain[k]->dtype, buf[k], TM_F32, n);
    }
}

static void run_block(const job *j, const item *it, int64_t block)
{
    int64_t begin = block * BLOCK, end = begin + BLOCK < it->n ? begin + BLOCK : it->n;
    tm_dtype d = (tm_dtype)it->plain[0]->dtype;
    void *a[ARRAYS];
    for (int k = 0; k < ARRAYS; k++) {
        if (it->plain[k] && it->plain[k]->dtype != TM_F32 && it->plain[k]->dtype != TM_F64) d = TM_F16;
        a[k] = it->plain[k] ? (char *)tmi_data(it->plain[k]) + begin * (int64_t)tmi_dtype_size(it->plain[k]->dtype) : NULL;
    }
    if (d == TM_F32 || d == TM_F64) run_step(j, a, end - begin, d == TM_F64, &it->set);
    else run_pieces(j, it, begin, end);
}

static void run_blocks(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    int64_t lo = 0, hi = j->n_items;
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (j->items[mid].first_block <= begin) lo = mid;
        else hi = mid;
    }
    for (int64_t b = begin, i = lo; b < end; b++) {
        while (i + 1 < j->n_items && j->items[i + 1].first_block <= b) i++;
        run_block(j, &j->items[i], b - j->items[i].first_block);
    }
}

static tm_status add_array(item *it, int k, tm_tensor *t)
{
    it->given[k] = t;
    if (!t) return TM_OK;
    TMI_REQUIRE(tmi_dtypes[t->dtype].category == 'F', TM_INVALID, "fused optimizers need floating point tensors");
    TMI_REQUIRE(t->numel == it->n, TM_INVALID, "params, grads and states must have the same sizes");
    it->plain[k] = tmk_plain(t, t->dtype);
    return it->plain[k] ? TM_OK : tm_error_status();
}

static tm_status run_job(job *j)
{
    int64_t blocks = 0;
    for (int64_t i = 0; i < j->n_items; i++) {
        j->items[i].first_block = blocks;
        blocks += (j->items[i].n + BLOCK - 1) / BLOCK;
    }
    j->table = steps();
    tmi_parallel_for(blocks, 1, run_blocks, j);
    for (int64_t i = 0; i < j->n_items; i++)
        for (int k = 0; k < ARRAYS; k++)
            if (j->items[i].plain[k] && j->items[i].plain[k] != j->items[i].given[k]) TMI_TRY(tmk_copy(j->items[i].given[k], j->items[i].plain[k]));
    return TM_OK;
}

static void free_items(job *j)
{
    for (int64_t i = 0; j->items && i < j->n_items; i++)
        for (int k = 0; k < ARRAYS; k++)
            if (j->items[i].plain[k]) tmi_release(j->items[i].plain[k]);
    tmi_free(j->items, (size_t)j->n_items * sizeof *j->items);
}

static double value_of(const tm_tensor *t) { return t ? tmi_scalar_f64(tmi_load_scalar(tmi_data(t), t->dtype)) : 0; }
static double scale_of(const tm_tensor *t) { return t ? value_of(t) : 1; }

static tm_status lengths(int64_t n, const int64_t *others, int count)
{
    for (int i = 0; i < count; i++)
        TMI_REQUIRE(others[i] == n, TM_INVALID, "fused optimizers: the lists must have the same length, got %lld and %lld", (long long)n, (long long)others[i]);
    return TM_OK;
}

/* Lists by array number; NULL: no such array. */
static tm_status run_lists(job *j, int64_t n, tm_tensor *const *lists[ARRAYS], const settings *set, tm_tensor *const *step_tensors,
                           void (*at_step)(settings *s, double step))
{
    j->n_items = n;
    j->items = tmi_calloc((size_t)n * sizeof *j->items);
    tm_status status = j->items ? TM_OK : TM_NOMEM;
    for (int64_t i = 0; i < n && status == TM_OK; i++) {
        item *it = &j->items[i];
        it->n = lists[0][i]->numel;
        it->set = *set;
        if (at_step) at_step(&it->set, value_of(step_tensors[i]));
        for (int k = 0; k < ARRAYS && status == TM_OK; k++) status = add_array(it, k, lists[k] ? lists[k][i] : NULL);
    }
    if (status == TM_OK) status = run_job(j);
    free_items(j);
    return status;
}

/* ---- adam */

static void adam_at_step(settings *s, double step)
{
    s->adam.correction1 = 1 - pow(s->adam.beta1, step);
    s->adam.root_correction2 = sqrt(1 - pow(s->adam.beta2, step));
}

static tm_status fused_adam(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *m, int64_t n_m, tm_tensor *const *v,
                            int64_t n_v, tm_tensor *const *top, int64_t n_top, tm_tensor *const *state_steps, int64_t n_steps, tmk_adam set,
                            tm_tensor *grad_scale, tm_tensor *found_inf)
{
    TMI_TRY(lengths(n, (int64_t[]){n_grads, n_m, n_v, n_steps, set.amsgrad ? n_top : n}, 5));
    if (n == 0 || value_of(found_inf) == 1) return TM_OK;
    set.grad_scale = scale_of(grad_scale);
    job j = {.what = ADAM};
    return run_lists(&j, n, (tm_tensor *const *[ARRAYS]){self, grads, m, v, set.amsgrad ? top : NULL}, &(settings){.adam = set}, state_steps, adam_at_step);
}

tm_status tmk_fused_adam(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *m, int64_t n_m, tm_tensor *const *v,
                         int64_t n_v, tm_tensor *const *top, int64_t n_top, tm_tensor *const *state_steps, int64_t n_steps, double lr, double beta1, double beta2,
                         double weight_decay, double eps, bool amsgrad, bool maximize, tm_tensor *grad_scale, tm_tensor *found_inf)
{
    tmk_adam set = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay, .eps = eps, .amsgrad = amsgrad, .maximize = maximize};
    return fused_adam(self, n, grads, n_grads, m, n_m, v, n_v, top, n_top, state_steps, n_steps, set, grad_scale, found_inf);
}

tm_status tmk_fused_adamw(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *m, int64_t n_m, tm_tensor *const *v,
                          int64_t n_v, tm_tensor *const *top, int64_t n_top, tm_tensor *const *state_steps, int64_t n_steps, double lr, double beta1, double beta2,
                          double weight_decay, double eps, bool amsgrad, bool maximize, tm_tensor *grad_scale, tm_tensor *found_inf)
{
    tmk_adam set = {.lr = lr, .beta1 = beta1, .beta2 = beta2, .weight_decay = weight_decay, .eps = eps, .amsgrad = amsgrad, .maximize = maximize, .decoupled = true};
    return fused_adam(self, n, grads, n_grads, m, n_m, v, n_v, top, n_top, state_steps, n_steps, set, grad_scale, found_inf);
}

/* ---- sgd and adagrad */

tm_status tmk_fused_sgd(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *bufs, int64_t n_bufs, double weight_decay,
                        double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step, tm_tensor *grad_scale, tm_tensor *found_inf)
{
    bool with_momentum = momentum != 0 && n_bufs > 0;
    TMI_TRY(lengths(n, (int64_t[]){n_grads, with_momentum ? n_bufs : n}, 2));
    if (n == 0 || value_of(found_inf) == 1) return TM_OK;
    tmk_sgd set = {lr, weight_decay, momentum, dampening, scale_of(grad_scale), nesterov, maximize, is_first_step};
    job j = {.what = SGD};
    return run_lists(&j, n, (tm_tensor *const *[ARRAYS]){self, grads, with_momentum ? bufs : NULL, NULL, NULL}, &(settings){.sgd = set}, NULL, NULL);
}

static void adagrad_at_step(settings *s, double step) { s->adagrad.rate = s->adagrad.lr / (1 + (step - 1) * s->adagrad.lr_decay); }

tm_status tmk_fused_adagrad(tm_tensor *const *self, int64_t n, tm_tensor *const *grads, int64_t n_grads, tm_tensor *const *sums, int64_t n_sums,
                            tm_tensor *const *state_steps, int64_t n_steps, double lr, double lr_decay, double weight_decay, double eps, bool maximize,
                            tm_tensor *grad_scale, tm_tensor *found_inf)
{
    TMI_TRY(lengths(n, (int64_t[]){n_grads, n_sums, n_steps}, 3));
    if (n == 0 || value_of(found_inf) == 1) return TM_OK;
    tmk_adagrad set = {lr, lr_decay, lr, weight_decay, eps, scale_of(grad_scale), maximize};
    job j = {.what = ADAGRAD};
    return run_lists(&j, n, (tm_tensor *const *[ARRAYS]){self, grads, sums, NULL, NULL}, &(settings){.adagrad = set}, state_steps, adagrad_at_step);
}
