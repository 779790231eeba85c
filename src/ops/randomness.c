/* Random factories and dropout, as PyTorch draws them: the same seed gives the same numbers. */
#include <math.h>

#include "boxing.h"
#include "op_bodies.h"
#include "shapes.h"

/* ---------------------------------------------------------------- factories */

static tm_tensor *empty_of(const tm_int *size, int64_t n, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_empty_memory_format_full(size, n, dtype, layout, device, pin, -1);
}

tm_tensor *tmi_rand(const tm_int *size, int64_t n, tm_generator *g, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_uniform_inplace_full(empty_of(size, n, dtype, layout, device, pin), 0, 1, g);
}

tm_tensor *tmi_randn(const tm_int *size, int64_t n, tm_generator *g, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tm_normal_inplace_full(empty_of(size, n, dtype, layout, device, pin), 0, 1, g);
}

tm_tensor *tmi_randint_low(tm_int low, tm_int high, const tm_int *size, int64_t n, tm_generator *g, tm_dtype dtype, int layout, tm_device device,
                           const bool *pin)
{
    tm_tensor *t = empty_of(size, n, dtype == TM_DTYPE_DEFAULT ? TM_I64 : dtype, layout, device, pin);
    return tm_random_from_inplace_full(t, low, &high, g);
}

tm_tensor *tmi_randint(tm_int high, const tm_int *size, int64_t n, tm_generator *g, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    return tmi_randint_low(0, high, size, n, g, dtype, layout, device, pin);
}

tm_tensor *tmi_randperm(tm_int n, tm_generator *g, tm_dtype dtype, int layout, tm_device device, const bool *pin)
{
    TMI_REQUIRE_PTR(n >= 0, TM_INVALID, "n must be non-negative, got%lld", (long long)n);
    return tmo_randperm_inplace_full(empty_of(&n, 1, dtype == TM_DTYPE_DEFAULT ? TM_I64 : dtype, layout, device, pin), g);
}

tm_tensor *tmi_rand_like(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_uniform_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format));
}

tm_tensor *tmi_randn_like(tm_tensor *self, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_normal_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format));
}

tm_tensor *tmi_randint_like_low(tm_tensor *self, tm_int low, tm_int high, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tm_random_from_inplace(tm_empty_like_full(self, dtype, layout, device, pin, format), low, &high);
}

tm_tensor *tmi_randint_like(tm_tensor *self, tm_int high, tm_dtype dtype, int layout, tm_device device, const bool *pin, int format)
{
    return tmi_randint_like_low(self, 0, high, dtype, layout, device, pin, format);
}

/* ---------------------------------------------------------------- normal with tensors */

static tm_status check_std(tm_tensor *std)
{
    TMI_REQUIRE(!tmi_is_complex(std->dtype), TM_INVALID, "normal expects standard deviation to be non-complex");
    if (std->numel == 0 || tmi_is_meta(std)) return TM_OK;
    tm_scalar least;
    tm_tensor *min = tm_amin(std);
    if (!min) return tm_error_status();
    TMI_TRY(tm_tensor_item(min, &least));
    TMI_REQUIRE(tmi_scalar_f64(least) >= 0, TM_INVALID, "normal expects all elements of std >= 0.0");
    return TM_OK;
}

tm_tensor *tmi_normal_mean(tm_tensor *mean, double std, tm_generator *g)
{
    tm_tensor *t = tm_normal_inplace_full(tm_empty_like_full(mean, TM_DTYPE_DEFAULT, -1, TM_NO_DEVICE, NULL, TM_CONTIGUOUS), 0, std, g);
    return tm_add_inplace(t, mean);
}

tm_tensor *tmi_normal_std(double mean, tm_tensor *std, tm_generator *g)
{
    TMI_TRY_PTR(check_std(std));
    tm_tensor *t = tm_normal_inplace_full(tm_empty_like_full(std, TM_DTYPE_DEFAULT, -1, TM_NO_DEVICE, NULL, TM_CONTIGUOUS), 0, 1, g);
    return tm_add_scalar_inplace(tm_mul_inplace(t, std), tm_f64(mean));
}

tm_tensor *tmi_normal_both(tm_tensor *mean, tm_tensor *std, tm_generator *g)
{
    tm_int sizes[TMI_MAX_DIMS];
    int ndim;
    TMI_TRY_PTR(check_std(std));
    TMI_TRY_PTR(tmi_broadcast_sizes(mean->ndim, mean->sizes, std->ndim, std->sizes, &ndim, sizes));
    tm_tensor *t = tm_normal_inplace_full(empty_of(sizes, ndim, mean->dtype, -1, mean->device, NULL), 0, 1, g);
    return tm_add_inplace(tm_mul_inplace(t, std), mean);
}

tm_tensor *tmi_normal_sized(double mean, double std, const tm_int *size, int64_t n, tm_generator *g, tm_dtype dtype, int layout, tm_device device,
                            const bool *pin)
{
    return tm_normal_inplace_full(empty_of(size, n, dtype, layout, device, pin), mean, std, g);
}

/* ---------------------------------------------------------------- bernoulli, multinomial */

tm_tensor *tmi_bernoulli(tm_tensor *self, tm_generator *g)
{
    return tm_bernoulli_inplace_full(tm_empty_like_full(self, TM_DTYPE_DEFAULT, -1, TM_NO_DEVICE, NULL, TM_CONTIGUOUS), self, g);
}

tm_tensor *tmi_bernoulli_p(tm_tensor *self, double p, tm_generator *g)
{
    return tm_bernoulli_float_inplace_full(tm_empty_like_full(self, TM_DTYPE_DEFAULT, -1, TM_NO_DEVICE, NULL, TM_CONTIGUOUS), p, g);
}

tm_status tmi_shape_multinomial(tmi_meta *m, tm_tensor *self, tm_int num_samples, bool replacement, tm_generator *g)
{
    (void)g;
    TMI_REQUIRE(self->ndim == 1 || self->ndim == 2, TM_INVALID, "prob_dist must be 1 or 2 dim");
    TMI_REQUIRE(tmi_is_float(self->dtype), TM_INVALID, "multinomial only supports floating-point dtypes for input, got: %s", tmi_dtypes[self->dtype].type_name);
    TMI_REQUIRE(num_samples > 0, TM_INVALID, "cannot sample n_sample <= 0 samples");
    int64_t categories = self->sizes[self->ndim - 1];
    TMI_REQUIRE(replacement || num_samples <= categories, TM_INVALID, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    tm_int sizes[2] = {self->ndim == 2 ? self->sizes[0] : num_samples, num_samples};
    tmi_meta_set(m, self->ndim, sizes);
    m->dtype = TM_I64;
    return TM_OK;
}

/* ---------------------------------------------------------------- dropout */

static tm_status check_probability(double p)
{
    TMI_REQUIRE(p >= 0 && p <= 1, TM_INVALID, "dropout probability has to be between 0 and 1, but got %g", p);
    return TM_OK;
}

/* noise = bernoulli(1 - p) / (1 - p), the shape of `like`. Nothing is drawn for p of 0 or 1 or an empty input: the callers see to it. */
static tm_tensor *noise_for(tm_tensor *like, double p)
{
    tm_tensor *noise = tm_bernoulli_float_inplace_full(tm_empty_like(like), 1 - p, NULL);
    return tm_div_scalar_inplace(noise, tm_f64(1 - p));
}

tm_tensor *tmi_dropout(tm_tensor *input, double p, bool train)
{
    TMI_TRY_PTR(check_probability(p));
    if (p == 0 || !train || input->numel == 0) return input;
    if (p == 1) return tm_mul(input, tm_zeros_full(NULL, 0, input->dtype, -1, input->device, NULL));
    return tm_mul(input, noise_for(input, p));
}

/* One number per sample and channel, broadcast over the rest. */
static tm_tensor *feature_shape(tm_tensor *input)
{
    TMI_REQUIRE_PTR(input->ndim >= 2, TM_INVALID, "Feature dropout requires at least 2 dimensions in the input");
    tm_int sizes[TMI_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++) sizes[i] = i < 2 ? input->sizes[i] : 1;
    return empty_of(sizes, input->ndim, input->dtype, -1, input->device, NULL);
}

tm_tensor *tmi_feature_dropout(tm_tensor *input, double p, bool train)
{
    TMI_TRY_PTR(check_probability(p));
    if (p == 0 || !train || input->numel == 0) return input;
    if (p == 1) return tm_mul(input, tm_zeros_full(NULL, 0, input->dtype, -1, input->device, NULL));
    tm_tensor *shape = feature_shape(input);
    return shape ? tm_mul(input, noise_for(shape, p)) : NULL;
}

/* Keeps mean and variance of selu's fixed point: dropped units become alpha', and a, b restore the moments. */
static tm_tensor *alpha_noise(tm_tensor *input, tm_tensor *shape, double p)
{
    const double alpha = 1.7580993408473766;
    double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
    tm_tensor *noise = tm_bernoulli_float_inplace_full(shape, 1 - p, NULL);
    tm_tensor *b = tm_add_scalar(tm_mul_scalar(tm_sub_scalar(noise, tm_i64(1)), tm_f64(alpha * a)), tm_f64(alpha * a * p));
    return tm_add(tm_mul(input, tm_mul_scalar(noise, tm_f64(a))), b);
}

tm_tensor *tmi_alpha_dropout(tm_tensor *input, double p, bool train)
{
    TMI_TRY_PTR(check_probability(p));
    if (p == 0 || !train || input->numel == 0) return input;
    if (p == 1) return tm_mul(input, tm_zeros_full(NULL, 0, input->dtype, -1, input->device, NULL));
    return alpha_noise(input, tm_empty_like(input), p);
}

tm_tensor *tmi_feature_alpha_dropout(tm_tensor *input, double p, bool train)
{
    TMI_TRY_PTR(check_probability(p));
    if (p == 0 || !train || input->numel == 0) return input;
    if (p == 1) return tm_mul(input, tm_zeros_full(NULL, 0, input->dtype, -1, input->device, NULL));
    tm_tensor *shape = feature_shape(input);
    return shape ? alpha_noise(input, shape, p) : NULL;
}

tm_status tmi_native_dropout(tm_tensor *input, double p, const bool *train, tm_tensor **out, tm_tensor **mask)
{
    TMI_TRY(check_probability(p));
    if (input->numel == 0 || (train && !*train)) {
        *out = input;
        *mask = tm_ones_like_full(input, TM_BOOL, -1, TM_NO_DEVICE, NULL, -1);
        return tm_error_status();
    }
    tm_tensor *kept = tm_bernoulli_float_inplace_full(tm_empty_like_full(input, TM_BOOL, -1, TM_NO_DEVICE, NULL, -1), 1 - p, NULL);
    *mask = kept;
    *out = tm_mul_scalar(tm_mul(input, kept), tm_f64(p == 1 ? 0 : 1 / (1 - p)));
    return tm_error_status();
}
