/* softmax: shape rules, bodies and second derivatives. */
#include "compose.h"
#include "ops/shapes.h"

static tm_status along(tmi_meta *m, const char *op, const tm_tensor *self, tm_int dim, bool half_to_float)
{
    TMI_TRY(tmi_wrap_dim(&dim, self->ndim));
    bool last = self->ndim == 0 || dim == self->ndim - 1;
    TMI_REQUIRE(tmi_dtypes[self->dtype].category == 'F', TM_NOT_IMPLEMENTED, "\"%s%s\" not implemented for '%s'", op,
                last ? "_lastdim_kernel_impl" : "_kernel_impl", tmi_dtypes[self->dtype].type_name);
    TMI_REQUIRE(!half_to_float || self->dtype == TM_F16 || self->dtype == TM_BF16, TM_INVALID,
                "conversion is supported for Half type only");
    tmi_meta_set(m, self->ndim, self->sizes);
    if (half_to_float) m->dtype = TM_F32;
    return TM_OK;
}
tm_status tmi_shape__softmax(tmi_meta *m, tm_tensor *self, tm_int dim, bool half_to_float) { return along(m, "softmax", self, dim, half_to_float); }
tm_status tmi_shape__log_softmax(tmi_meta *m, tm_tensor *self, tm_int dim, bool half_to_float) { return along(m, "log_softmax", self, dim, half_to_float); }

static tm_status backwards(tmi_meta *m, const tm_tensor *grad, const tm_tensor *output, tm_int dim, tm_dtype input_dtype)
{
    TMI_TRY(tmi_wrap_dim(&dim, grad->ndim));
    bool same = grad->ndim == output->ndim && memcmp(grad->sizes, output->sizes, (size_t)grad->ndim * sizeof *grad->sizes) == 0;
    TMI_REQUIRE(same, TM_SHAPE, "softmax backward: gradient and output must have the same sizes");
    tmi_meta_set(m, grad->ndim, grad->sizes);
    m->dtype = (uint8_t)input_dtype;
    return TM_OK;
}
tm_status tmi_shape__softmax_backward_data(tmi_meta *m, tm_tensor *grad, tm_tensor *output, tm_int dim, tm_dtype input_dtype)
{
    return backwards(m, grad, output, dim, input_dtype);
}
tm_status tmi_shape__log_softmax_backward_data(tmi_meta *m, tm_tensor *grad, tm_tensor *output, tm_int dim, tm_dtype input_dtype)
{
    return backwards(m, grad, output, dim, input_dtype);
}

tm_tensor *tmi_softmax(tm_tensor *self, tm_int dim, tm_dtype dtype)
{
    return tmo_softmax(dtype == TM_DTYPE_DEFAULT ? self : tmi_cast(self, dtype), dim, false);
}
tm_tensor *tmi_log_softmax(tm_tensor *self, tm_int dim, tm_dtype dtype)
{
    return tmo_log_softmax(dtype == TM_DTYPE_DEFAULT ? self : tmi_cast(self, dtype), dim, false);
}

static tm_tensor *line_sum(tm_tensor *t, tm_int dim) { return tm_sum_dim_intlist_full(t, &dim, 1, true, TM_DTYPE_DEFAULT); }

/* d/dy of y (g - sum(g y)), against gg: gg g - gg sum(g y) - g sum(gg y). */
tm_tensor *tmi_grad_softmax_second(tm_tensor *gg, tm_tensor *g, tm_tensor *y, tm_int dim)
{
    tm_tensor *direct = tm_sub(tm_mul(gg, g), tm_mul(gg, line_sum(tm_mul(g, y), dim)));
    return tm_sub(direct, tm_mul(g, line_sum(tm_mul(gg, y), dim)));
}

/* d/dg of g - exp(y) sum(g), against gg: gg - sum(gg exp(y)). */
tm_tensor *tmi_grad_log_softmax_second(tm_tensor *gg, tm_tensor *y, tm_int dim) { return tm_sub(gg, line_sum(tm_mul(gg, tm_exp(y)), dim)); }

tm_tensor *tmi_grad_log_softmax_second_output(tm_tensor *gg, tm_tensor *g, tm_tensor *y, tm_int dim)
{
    return tm_neg(tm_mul(tm_mul(gg, tm_exp(y)), line_sum(g, dim)));
}
