#include "params.h"

#include <math.h>
#include <string.h>

#include "taimatsu/autograd.h"
#include "taimatsu/ops.h"

tm_status tmi_quiet_begin(tmi_quiet *q)
{
    *q = (tmi_quiet){.grad_was = true};
    if (tm_error_status() != TM_OK) return tm_error_status();
    q->scope = tm_scope_open();
    if (!q->scope) return TM_NOMEM;
    q->grad_was = tm_set_grad_enabled(false);
    return TM_OK;
}

tm_status tmi_quiet_end(tmi_quiet *q)
{
    tm_set_grad_enabled(q->grad_was);
    tm_scope_close(q->scope);
    return tm_error_status();
}

tm_params *tm_params_new(void) { return tmi_calloc(sizeof(tm_params)); }

void tm_params_free(tm_params *p)
{
    if (!p) return;
    for (int64_t i = 0; i < p->items.len; i++) {
        tmi_free(p->items.data[i].name, strlen(p->items.data[i].name) + 1);
        tm_release(p->items.data[i].t);
    }
    tmi_vec_free(&p->items);
    tmi_map_free(&p->by_name);
    tmi_map_free(&p->by_tensor);
    tmi_free(p, sizeof *p);
}

/* The two maps first, so that a failure leaves the list as it was. */
static tm_status add_named(tm_params *p, char *name, tm_tensor *t)
{
    void *number = (void *)(intptr_t)(p->items.len + 1);
    void **by_tensor = tmi_map_put(&p->by_tensor, (uint64_t)(uintptr_t)t);
    if (!by_tensor) return TM_NOMEM;
    bool tied = *by_tensor != NULL;
    if (!tied) *by_tensor = number;
    void **by_name = tmi_map_put_str(&p->by_name, name);
    tmi_param item = {name, t, tied};
    if (by_name && tmi_vec_push(&p->items, item)) {
        *by_name = number;
        tm_retain(t);
        return TM_OK;
    }
    if (!tied) tmi_map_remove(&p->by_tensor, (uint64_t)(uintptr_t)t);
    return TM_NOMEM;
}

tm_status tm_params_add(tm_params *p, const char *name, tm_tensor *t)
{
    if (tm_error_status() != TM_OK) return tm_error_status();
    TMI_REQUIRE(p && name && t, TM_VALUE, "tm_params_add: list, name or tensor is NULL");
    TMI_REQUIRE(!tm_params_find(p, name), TM_VALUE, "tm_params_add: a parameter named `%s` is there already", name);
    char *copy = tmi_strdup(name);
    if (!copy) return TM_NOMEM;
    tm_status s = add_named(p, copy, t);
    if (s != TM_OK) tmi_free(copy, strlen(copy) + 1);
    return s;
}

int64_t tm_params_len(const tm_params *p) { return p->items.len; }

static tm_status check_index(const tm_params *p, int64_t i)
{
    TMI_REQUIRE(i >= 0 && i < p->items.len, TM_INDEX, "parameter %lld of %lld", (long long)i, (long long)p->items.len);
    return TM_OK;
}

const char *tm_params_name(const tm_params *p, int64_t i) { return check_index(p, i) == TM_OK ? p->items.data[i].name : NULL; }
tm_tensor *tm_params_get(const tm_params *p, int64_t i) { return check_index(p, i) == TM_OK ? p->items.data[i].t : NULL; }

tm_tensor *tm_params_find(const tm_params *p, const char *name)
{
    intptr_t number = (intptr_t)tmi_map_get_str(&p->by_name, name);
    return number ? p->items.data[number - 1].t : NULL;
}

int64_t tm_params_numel(const tm_params *p)
{
    int64_t n = 0;
    for (int64_t i = 0; i < p->items.len; i++)
        if (!p->items.data[i].tied) n += tm_tensor_numel(p->items.data[i].t);
    return n;
}

tm_status tm_params_zero_grad(tm_params *p)
{
    for (int64_t i = 0; i < p->items.len; i++) TMI_TRY(tm_tensor_set_grad(p->items.data[i].t, NULL));
    return TM_OK;
}

/* The gradient that item i brings, NULL for none and for the second name of a tensor. */
static tm_tensor *grad_of(const tm_params *p, int64_t i)
{
    return p->items.data[i].tied ? NULL : tm_tensor_grad(p->items.data[i].t);
}

static tm_status total_norm(const tm_params *p, double *out)
{
    double sum = 0;
    for (int64_t i = 0; i < p->items.len; i++) {
        tm_scalar norm;
        tm_tensor *grad = grad_of(p, i);
        if (!grad) continue;
        TMI_TRY(tm_tensor_item(tm_linalg_vector_norm(grad), &norm));
        sum += norm.v.f * norm.v.f;
    }
    *out = sqrt(sum);
    return tm_error_status();
}

tm_status tm_params_clip_grad_norm(tm_params *p, double max_norm, double *total)
{
    tmi_quiet q;
    double norm = 0;
    TMI_TRY(tmi_quiet_begin(&q));
    if (total_norm(p, &norm) == TM_OK && norm + 1e-6 > max_norm)
        for (int64_t i = 0; i < p->items.len; i++)
            if (grad_of(p, i)) tm_mul_scalar_inplace(grad_of(p, i), tm_f64(max_norm / (norm + 1e-6)));
    if (total) *total = norm;
    return tmi_quiet_end(&q);
}
