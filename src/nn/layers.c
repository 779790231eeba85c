/* Layers. First values are drawn in the order in which PyTorch's modules draw them: weight, then bias. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "params.h"
#include "taimatsu/autograd.h"
#include "taimatsu/ops.h"

/* ---- first values */

tm_status tm_nn_init_normal(tm_tensor *t, double mean, double std)
{
    tmi_quiet q;
    TMI_TRY(tmi_quiet_begin(&q));
    tm_normal_inplace_full(t, mean, std, NULL);
    return tmi_quiet_end(&q);
}

tm_status tm_nn_init_uniform(tm_tensor *t, double low, double high)
{
    tmi_quiet q;
    TMI_TRY(tmi_quiet_begin(&q));
    tm_uniform_inplace_full(t, low, high, NULL);
    return tmi_quiet_end(&q);
}

static tm_status init_constant(tm_tensor *t, double value)
{
    tmi_quiet q;
    TMI_TRY(tmi_quiet_begin(&q));
    tm_fill_scalar_inplace(t, tm_f64(value));
    return tmi_quiet_end(&q);
}

tm_status tm_nn_init_zeros(tm_tensor *t) { return init_constant(t, 0); }
tm_status tm_nn_init_ones(tm_tensor *t) { return init_constant(t, 1); }

/* Elements that one output depends on. */
static tm_status fan_in(const tm_tensor *t, int64_t *out)
{
    TMI_REQUIRE(tm_tensor_ndim(t) >= 2, TM_VALUE, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
    *out = tm_tensor_size(t, 1);
    for (int d = 2; d < tm_tensor_ndim(t); d++) *out *= tm_tensor_size(t, d);
    return TM_OK;
}

tm_status tm_nn_init_kaiming_uniform(tm_tensor *t, double a)
{
    int64_t fan = 0;
    if (tm_error_status() != TM_OK) return tm_error_status();
    TMI_TRY(fan_in(t, &fan));
    double bound = sqrt(3.0) * (sqrt(2.0 / (1 + a * a)) / sqrt((double)fan));
    return fan ? tm_nn_init_uniform(t, -bound, bound) : TM_OK;
}

/* ---- making parameters */

/* A float tensor that wants a gradient, in the list as "name.part"; borrowed. NULL on failure. */
static tm_tensor *new_param(tm_params *p, const char *name, const char *part, int ndim, const int64_t *sizes)
{
    char full[512];
    if (tm_error_status() != TM_OK) return NULL;
    int n = snprintf(full, sizeof full, "%s%s%s", name, *name ? "." : "", part);
    TMI_REQUIRE_PTR(n < (int)sizeof full, TM_VALUE, "a parameter's name is longer than %zu bytes", sizeof full - 1);
    tm_scope *scope = tm_scope_open();
    tm_tensor *t = scope ? tm_tensor_empty(ndim, sizes, tm_get_default_dtype()) : NULL;
    if (!t || tm_tensor_set_requires_grad(t, true) != TM_OK || tm_params_add(p, full, t) != TM_OK) t = NULL;
    tm_scope_close(scope);   /* the list's reference stays */
    return t;
}

tm_status tm_nn_linear_init(tm_nn_linear *l, tm_params *p, const char *name, int64_t in, int64_t out, bool bias)
{
    l->bias = NULL;
    l->weight = new_param(p, name, "weight", 2, (int64_t[]){out, in});
    if (!l->weight) return tm_error_status();
    TMI_TRY(tm_nn_init_kaiming_uniform(l->weight, sqrt(5)));
    if (!bias) return TM_OK;
    l->bias = new_param(p, name, "bias", 1, (int64_t[]){out});
    if (!l->bias) return tm_error_status();
    double bound = in > 0 ? 1 / sqrt((double)in) : 0;
    return tm_nn_init_uniform(l->bias, -bound, bound);
}

tm_tensor *tm_nn_linear_forward(const tm_nn_linear *l, tm_tensor *x) { return tm_linear_full(x, l->weight, l->bias); }

tm_status tm_nn_embedding_init(tm_nn_embedding *l, tm_params *p, const char *name, int64_t count, int64_t dim)
{
    l->weight = new_param(p, name, "weight", 2, (int64_t[]){count, dim});
    return l->weight ? tm_nn_init_normal(l->weight, 0, 1) : tm_error_status();
}

tm_tensor *tm_nn_embedding_forward(const tm_nn_embedding *l, tm_tensor *ids) { return tm_embedding(l->weight, ids); }

tm_status tm_nn_layer_norm_init(tm_nn_layer_norm *l, tm_params *p, const char *name, int64_t dim, bool bias)
{
    *l = (tm_nn_layer_norm){.dim = dim, .eps = 1e-5};
    l->weight = new_param(p, name, "weight", 1, &dim);
    if (!l->weight) return tm_error_status();
    TMI_TRY(tm_nn_init_ones(l->weight));
    if (!bias) return TM_OK;
    l->bias = new_param(p, name, "bias", 1, &dim);
    return l->bias ? tm_nn_init_zeros(l->bias) : tm_error_status();
}

tm_tensor *tm_nn_layer_norm_forward(const tm_nn_layer_norm *l, tm_tensor *x)
{
    return tm_layer_norm_full(x, &l->dim, 1, l->weight, l->bias, l->eps, true);
}

tm_tensor *tm_nn_dropout_forward(const tm_nn_dropout *l, tm_tensor *x) { return tm_dropout(x, l->p, l->training); }
