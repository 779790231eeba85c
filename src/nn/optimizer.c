/* SGD and AdamW, in the order of operations of PyTorch's single-tensor implementations, so that the same gradients give the same parameters. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "params.h"
#include "taimatsu/autograd.h"
#include "taimatsu/ops.h"
#include "taimatsu/optim.h"

/* What is kept per parameter. SGD: buffer. AdamW: exp_avg, exp_avg_sq, step. */
typedef struct slot {
    char *name;
    tm_tensor *t;              /* owned reference, like the two below */
    tm_tensor *first, *second;
    int64_t step;
} slot;

struct tm_optimizer {
    TMI_VEC(slot) slots;
    bool adam;
    double vector_decay;       /* for parameters with fewer than two dimensions */
    tm_sgd_options sgd;
    tm_adamw_options adamw;
};

void tm_optimizer_free(tm_optimizer *o)
{
    if (!o) return;
    for (int64_t i = 0; i < o->slots.len; i++) {
        slot *s = &o->slots.data[i];
        tmi_free(s->name, strlen(s->name) + 1);
        tm_release(s->t);
        tm_release(s->first);
        tm_release(s->second);
    }
    tmi_vec_free(&o->slots);
    tmi_free(o, sizeof *o);
}

static tm_status add_slot(tm_optimizer *o, const tmi_param *p)
{
    slot s = {.name = tmi_strdup(p->name), .t = p->t};
    if (!s.name) return TM_NOMEM;
    if (!tmi_vec_push(&o->slots, s)) {
        tmi_free(s.name, strlen(s.name) + 1);
        return TM_NOMEM;
    }
    tm_retain(p->t);
    return TM_OK;
}

static tm_optimizer *optimizer_new(const tm_params *p, double decay)
{
    tm_optimizer *o = tmi_calloc(sizeof *o);
    if (!o) return NULL;
    o->vector_decay = decay;
    for (int64_t i = 0; i < p->items.len; i++)
        if (!p->items.data[i].tied && add_slot(o, &p->items.data[i]) != TM_OK) {
            tm_optimizer_free(o);
            return NULL;
        }
    return o;
}

/* Ranges are checked as PyTorch checks them, NaN refused. */
#define CHECK_RANGE(cond, text, value) TMI_REQUIRE_PTR(cond, TM_VALUE, text, value)

tm_optimizer *tm_sgd_new(const tm_params *p, tm_sgd_options options)
{
    if (tm_error_status() != TM_OK) return NULL;
    CHECK_RANGE(options.lr >= 0, "Invalid learning rate: %g", options.lr);
    CHECK_RANGE(options.momentum >= 0, "Invalid momentum value: %g", options.momentum);
    CHECK_RANGE(options.weight_decay >= 0, "Invalid weight_decay value: %g", options.weight_decay);
    TMI_REQUIRE_PTR(!options.nesterov || (options.momentum > 0 && options.dampening == 0), TM_VALUE,
                    "Nesterov momentum requires a momentum and zero dampening");
    tm_optimizer *o = optimizer_new(p, options.weight_decay);
    if (o) o->sgd = options;
    return o;
}

tm_optimizer *tm_adamw_new(const tm_params *p, tm_adamw_options options)
{
    if (tm_error_status() != TM_OK) return NULL;
    CHECK_RANGE(options.lr >= 0, "Invalid learning rate: %g", options.lr);
    CHECK_RANGE(options.eps >= 0, "Invalid epsilon value: %g", options.eps);
    CHECK_RANGE(options.beta1 >= 0 && options.beta1 < 1, "Invalid beta parameter at index 0: %g", options.beta1);
    CHECK_RANGE(options.beta2 >= 0 && options.beta2 < 1, "Invalid beta parameter at index 1: %g", options.beta2);
    CHECK_RANGE(options.weight_decay >= 0, "Invalid weight_decay value: %g", options.weight_decay);
    tm_optimizer *o = optimizer_new(p, options.weight_decay);
    if (!o) return NULL;
    o->adam = true;
    o->adamw = options;
    return o;
}

tm_status tm_optimizer_set_lr(tm_optimizer *o, double lr)
{
    TMI_REQUIRE(lr >= 0, TM_VALUE, "Invalid learning rate: %g", lr);
    *(o->adam ? &o->adamw.lr : &o->sgd.lr) = lr;
    return TM_OK;
}

double tm_optimizer_lr(const tm_optimizer *o) { return o->adam ? o->adamw.lr : o->sgd.lr; }

tm_status tm_optimizer_set_vector_decay(tm_optimizer *o, double weight_decay)
{
    TMI_REQUIRE(weight_decay >= 0, TM_VALUE, "Invalid weight_decay value: %g", weight_decay);
    o->vector_decay = weight_decay;
    return TM_OK;
}

tm_status tm_optimizer_zero_grad(tm_optimizer *o)
{
    for (int64_t i = 0; i < o->slots.len; i++) TMI_TRY(tm_tensor_set_grad(o->slots.data[i].t, NULL));
    return TM_OK;
}

/* ---- one parameter's step; a scope is open and nothing records */

static double decay_of(const tm_optimizer *o, const slot *s)
{
    double all = o->adam ? o->adamw.weight_decay : o->sgd.weight_decay;
    return tm_tensor_ndim(s->t) < 2 ? o->vector_decay : all;
}

/* A tensor that outlives the scope. */
static tm_tensor *kept(tm_tensor *t) { return tm_retain(t); }

static tm_status step_adamw(const tm_optimizer *o, slot *s, tm_tensor *grad)
{
    const tm_adamw_options *a = &o->adamw;
    if (!s->first) s->first = kept(tm_zeros_like(s->t));
    if (!s->second) s->second = kept(tm_zeros_like(s->t));
    if (tm_error_status() != TM_OK) return tm_error_status();
    s->step++;
    double decay = decay_of(o, s), n = (double)s->step;
    if (decay != 0) tm_mul_scalar_inplace(s->t, tm_f64(1 - a->lr * decay));
    tm_lerp_scalar_inplace(s->first, grad, tm_f64(1 - a->beta1));
    tm_addcmul_inplace_full(tm_mul_scalar_inplace(s->second, tm_f64(a->beta2)), grad, grad, tm_f64(1 - a->beta2));
    double correction1 = 1 - pow(a->beta1, n), correction2 = sqrt(1 - pow(a->beta2, n));
    tm_tensor *root = tm_div_scalar_inplace(tm_sqrt(s->second), tm_f64(correction2));
    tm_addcdiv_inplace_full(s->t, s->first, tm_add_scalar_inplace(root, tm_f64(a->eps)), tm_f64(-a->lr / correction1));
    return tm_error_status();
}

static tm_status step_sgd(const tm_optimizer *o, slot *s, tm_tensor *grad)
{
    const tm_sgd_options *a = &o->sgd;
    double decay = decay_of(o, s);
    if (decay != 0) grad = tm_add_full(grad, s->t, tm_f64(decay));
    if (a->momentum != 0) {
        if (!s->first) s->first = kept(tm_clone(grad));
        else tm_add_inplace_full(tm_mul_scalar_inplace(s->first, tm_f64(a->momentum)), grad, tm_f64(1 - a->dampening));
        grad = a->nesterov ? tm_add_full(grad, s->first, tm_f64(a->momentum)) : s->first;
    }
    tm_add_inplace_full(s->t, grad, tm_f64(-a->lr));
    return tm_error_status();
}

tm_status tm_optimizer_step(tm_optimizer *o)
{
    for (int64_t i = 0; i < o->slots.len; i++) {
        slot *s = &o->slots.data[i];
        tmi_quiet q;
        TMI_TRY(tmi_quiet_begin(&q));
        tm_tensor *grad = tm_tensor_grad(s->t);
        if (grad) (o->adam ? step_adamw : step_sgd)(o, s, grad);
        TMI_TRY(tmi_quiet_end(&q));
    }
    return TM_OK;
}

/* ---- state: tensors named PREFIX + parameter + part */

static tm_status part_name(char *out, size_t n, const char *prefix, const slot *s, const char *part)
{
    int k = snprintf(out, n, "%s%s.%s", prefix, s->name, part);
    TMI_REQUIRE(k < (int)n, TM_VALUE, "an optimiser state's name is longer than %zu bytes", n - 1);
    return TM_OK;
}

static tm_status save_part(tm_params *into, const char *prefix, const slot *s, const char *part, tm_tensor *t)
{
    char name[640];
    if (!t) return tm_error_status();
    TMI_TRY(part_name(name, sizeof name, prefix, s, part));
    return tm_params_add(into, name, t);
}

tm_status tm_optimizer_save_state(const tm_optimizer *o, tm_params *into, const char *prefix)
{
    tmi_quiet q;
    TMI_TRY(tmi_quiet_begin(&q));
    for (int64_t i = 0; i < o->slots.len && tm_error_status() == TM_OK; i++) {
        const slot *s = &o->slots.data[i];
        save_part(into, prefix, s, o->adam ? "exp_avg" : "momentum_buffer", s->first);
        save_part(into, prefix, s, "exp_avg_sq", s->second);
        if (s->step) save_part(into, prefix, s, "step", tm_tensor_scalar(tm_i64(s->step), TM_I64));
    }
    return tmi_quiet_end(&q);
}

static tm_status load_part(const tm_params *from, const char *prefix, const slot *s, const char *part, tm_tensor **out)
{
    char name[640];
    TMI_TRY(part_name(name, sizeof name, prefix, s, part));
    tm_tensor *t = tm_params_find(from, name);
    TMI_REQUIRE(t, TM_NOT_FOUND, "optimiser state `%s` is missing", name);
    bool fits = tm_tensor_ndim(t) == tm_tensor_ndim(s->t) &&
                !memcmp(tm_tensor_sizes(t), tm_tensor_sizes(s->t), (size_t)tm_tensor_ndim(t) * sizeof(int64_t));
    TMI_REQUIRE(fits, TM_SHAPE, "optimiser state `%s` does not have its parameter's shape", name);
    tm_tensor *copy = kept(tm_clone(t));
    tm_release(*out);
    *out = copy;
    return tm_error_status();
}

static tm_status load_slot(const tm_optimizer *o, const tm_params *from, const char *prefix, slot *s)
{
    char name[640];
    tm_scalar step;
    if (!o->adam && o->sgd.momentum == 0) return TM_OK;
    TMI_TRY(load_part(from, prefix, s, o->adam ? "exp_avg" : "momentum_buffer", &s->first));
    if (!o->adam) return TM_OK;
    TMI_TRY(load_part(from, prefix, s, "exp_avg_sq", &s->second));
    TMI_TRY(part_name(name, sizeof name, prefix, s, "step"));
    TMI_REQUIRE(tm_params_find(from, name), TM_NOT_FOUND, "optimiser state `%s` is missing", name);
    TMI_TRY(tm_tensor_item(tm_params_find(from, name), &step));
    s->step = step.tag == TM_SCALAR_F64 ? (int64_t)step.v.f : step.v.i;
    return TM_OK;
}

tm_status tm_optimizer_load_state(tm_optimizer *o, const tm_params *from, const char *prefix)
{
    for (int64_t i = 0; i < o->slots.len; i++) {
        tmi_quiet q;
        TMI_TRY(tmi_quiet_begin(&q));
        load_slot(o, from, prefix, &o->slots.data[i]);
        TMI_TRY(tmi_quiet_end(&q));
    }
    return TM_OK;
}
