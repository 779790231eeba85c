/* Continuous distributions and coin flips. Words are drawn in chunks into a buffer on the stack and turned into numbers by the loops of
 * random_fill.c; distributions that go through libm draw and compute one by one, as PyTorch does. */
#include "random.h"

#include <float.h>
#include <math.h>

#include "generator.h"

enum { CHUNK = 512 };   /* words at a time; a multiple of 16 */

static bool is_plain_float(tm_dtype d) { return tmi_dtypes[d].category == 'F'; }

/* A complex block is a block of twice as many reals. */
static void as_reals(int64_t *n, tm_dtype *dtype)
{
    if (!tmi_is_complex(*dtype)) return;
    *n *= 2;
    *dtype = tmi_real_dtype(*dtype);
}

/* float32 -> dtype (half, bfloat16 or float32). */
static void store_floats(void *data, int64_t at, const float *v, int64_t n, tm_dtype dtype)
{
    if (dtype == TM_F32) memcpy((float *)data + at, v, (size_t)n * sizeof *v);
    else if (dtype == TM_F16) for (int64_t i = 0; i < n; i++) ((tmi_f16 *)data)[at + i] = tmi_f32_to_f16(v[i]);
    else for (int64_t i = 0; i < n; i++) ((tmi_bf16 *)data)[at + i] = tmi_f32_to_bf16(v[i]);
}

static float load_float(const void *data, int64_t at, tm_dtype dtype)
{
    if (dtype == TM_F32) return ((const float *)data)[at];
    if (dtype == TM_F16) return tmi_f16_to_f32(((const tmi_f16 *)data)[at]);
    return tmi_bf16_to_f32(((const tmi_bf16 *)data)[at]);
}

/* One result computed in double, cast to the tensor's type. */
static void store_double(void *data, int64_t at, double v, tm_dtype dtype)
{
    if (dtype == TM_F32) ((float *)data)[at] = (float)v;
    else if (dtype == TM_F64) ((double *)data)[at] = v;
    else tmi_store_scalar((char *)data + at * (int64_t)tmi_dtypes[dtype].size, dtype, tm_f64(v));
}

/* ---- uniform */

static double largest(tm_dtype d)
{
    return d == TM_F64 ? DBL_MAX : d == TM_F32 ? FLT_MAX : d == TM_F16 ? 65504.0 : 0x1.fep127;
}

static tm_status check_uniform(tm_dtype d, double from, double to)
{
    if (!is_plain_float(d)) return tmi_random_unsupported("check_uniform_bounds", d);
    double max = largest(d);
    TMI_REQUIRE(from >= -max && from <= max, TM_INVALID, "from is out of bounds for %s", tmi_random_ctype(d));
    TMI_REQUIRE(to >= -max && to <= max, TM_INVALID, "to is out of bounds for %s", tmi_random_ctype(d));
    TMI_REQUIRE(from <= to, TM_INVALID, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    TMI_REQUIRE(to - from <= max, TM_INVALID,
                "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g which result in to-from to "
                "exceed the limit", tmi_dtypes[d].type_name, to, from);
    return TM_OK;
}

static void uniform_f64(tm_generator *g, double *out, int64_t n, double from, double to)
{
    uint32_t words[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK / 2) {
        int64_t take = n - at < CHUNK / 2 ? n - at : CHUNK / 2;
        tmi_mt_words(g, words, 2 * take);
        tmi_random_loops_get()->uniform_f64(words, out + at, take, from, to - from, to);
    }
}

static void uniform_f32(tm_generator *g, float *out, int64_t n, float from, float to)
{
    uint32_t words[CHUNK];
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t take = n - at < CHUNK ? n - at : CHUNK;
        tmi_mt_words(g, words, take);
        tmi_random_loops_get()->uniform_f32(words, out + at, take, from, to - from, to);
    }
}

static uint16_t half_bits(float v, tm_dtype dtype) { return dtype == TM_F16 ? tmi_f32_to_f16(v).bits : tmi_f32_to_bf16(v).bits; }

/* Computed in float32; compared with `to` after rounding to the half type. */
static void uniform_half(tm_generator *g, uint16_t *out, int64_t n, tm_dtype dtype, float from, float to)
{
    uint32_t words[CHUNK];
    float v[CHUNK];
    uint16_t first = half_bits(from, dtype), end = half_bits(to, dtype);
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t take = n - at < CHUNK ? n - at : CHUNK;
        tmi_mt_words(g, words, take);
        tmi_random_loops_get()->uniform_f32(words, v, take, from, to - from, NAN);
        for (int64_t i = 0; i < take; i++) {
            uint16_t h = half_bits(v[i], dtype);
            out[at + i] = h == end ? first : h;
        }
    }
}

tm_status tmi_random_uniform(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double from, double to)
{
    as_reals(&n, &dtype);
    TMI_TRY(check_uniform(dtype, from, to));
    g = tmi_generator_lock(g);
    if (dtype == TM_F64) uniform_f64(g, data, n, from, to);
    else if (dtype == TM_F32) uniform_f32(g, data, n, (float)from, (float)to);
    else uniform_half(g, data, n, dtype, (float)from, (float)to);
    tmi_generator_unlock(g);
    return TM_OK;
}

/* ---- normal */

/* Box and Muller in double, in pairs: the cosine's value now, the sine's kept for the next call. */
static double unit_normal(tm_generator *g)
{
    if (g->has_normal) {
        g->has_normal = false;
        double kept = g->cached_normal;
        g->cached_normal = 0;
        return kept;
    }
    double u1 = tmi_mt_unit(g), u2 = tmi_mt_unit(g);
    double r = sqrt(-2.0 * log1p(-u2)), theta = 2.0 * M_PI * u1;
    g->cached_normal = r * sin(theta);
    g->has_normal = true;
    return r * cos(theta);
}

static double scalar_normal(tm_generator *g, double mean, double std) { return fma(unit_normal(g), std, mean); }

static void normal16_f64(const double *u, double *out, double mean, double std)
{
    for (int k = 0; k < 8; k++) {
        double r = sqrt(-2.0 * log(1.0 - u[k])), theta = 2.0 * M_PI * u[k + 8];
        out[k] = fma(r * cos(theta), std, mean);
        out[k + 8] = fma(r * sin(theta), std, mean);
    }
}

/* Blocks of 16. A ragged end draws 16 fresh uniforms and computes the last 16 results again; its own n % 16 uniforms were drawn
 * before them and count for nothing. */
static void normal_blocks_f64(tm_generator *g, double *out, int64_t n, double mean, double std)
{
    double u[16];
    for (int64_t at = 0; at + 16 <= n; at += 16) {
        for (int k = 0; k < 16; k++) u[k] = tmi_mt_unit(g);
        normal16_f64(u, out + at, mean, std);
    }
    if (n % 16 == 0) return;
    for (int k = 0; k < n % 16; k++) tmi_mt_unit(g);
    for (int k = 0; k < 16; k++) u[k] = tmi_mt_unit(g);
    normal16_f64(u, out + n - 16, mean, std);
}

static void normal_blocks_f32(tm_generator *g, void *out, int64_t n, tm_dtype dtype, float mean, float std)
{
    uint32_t words[CHUNK];
    float v[16];
    const tmi_random_loops *loops = tmi_random_loops_get();
    int64_t whole = n - n % 16;
    for (int64_t at = 0; at < whole; at += CHUNK) {
        int64_t take = whole - at < CHUNK ? whole - at : CHUNK;
        tmi_mt_words(g, words, take);
        for (int64_t k = 0; k < take; k += 16) {
            bool direct = dtype == TM_F32;
            loops->normal16_f32(words + k, direct ? (float *)out + at + k : v, mean, std);
            if (!direct) store_floats(out, at + k, v, 16, dtype);
        }
    }
    if (whole == n) return;
    if (dtype == TM_F32) tmi_mt_words(g, words, n % 16);   /* half types draw no uniforms for the ragged end */
    tmi_mt_words(g, words, 16);
    loops->normal16_f32(words, v, mean, std);
    store_floats(out, n - 16, v, 16, dtype);
}

tm_status tmi_random_normal(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double mean, double std, bool contiguous)
{
    TMI_REQUIRE(std >= 0, TM_INVALID, "normal expects std >= 0.0, but found std %g", std);
    if (n == 0) return TM_OK;
    if (!is_plain_float(dtype) && !tmi_is_complex(dtype)) return tmi_random_unsupported("normal_kernel_cpu", dtype);
    bool complex_values = tmi_is_complex(dtype);
    as_reals(&n, &dtype);
    double m = mean, s = complex_values ? std / sqrt(2.0) : std;
    g = tmi_generator_lock(g);
    if (n < 16 || !contiguous) for (int64_t i = 0; i < n; i++) store_double(data, i, scalar_normal(g, m, s), dtype);
    else if (dtype == TM_F64) normal_blocks_f64(g, data, n, m, s);
    else normal_blocks_f32(g, data, n, dtype, (float)m, (float)s);
    tmi_generator_unlock(g);
    return TM_OK;
}

tm_status tmi_random_log_normal(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double mean, double std)
{
    TMI_REQUIRE(std > 0, TM_INVALID, "log_normal_ expects std > 0.0, but found std=%g", std);
    if (!is_plain_float(dtype)) return tmi_random_unsupported("log_normal_cpu", dtype);
    g = tmi_generator_lock(g);
    for (int64_t i = 0; i < n; i++) store_double(data, i, exp(scalar_normal(g, mean, std)), dtype);
    tmi_generator_unlock(g);
    return TM_OK;
}

/* ---- by inversion of the distribution function */

tm_status tmi_random_exponential(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double lambda)
{
    TMI_REQUIRE(lambda > 0, TM_INVALID, "exponential_ expects lambda > 0.0, but found lambda=%g", lambda);
    TMI_REQUIRE(tmi_is_float(dtype), TM_INVALID,
                "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
                tmi_dtypes[dtype].type_name);
    if (!is_plain_float(dtype)) return tmi_random_unsupported("exponential_cpu", dtype);
    g = tmi_generator_lock(g);
    for (int64_t i = 0; i < n; i++) store_double(data, i, -1.0 / lambda * log1p(-tmi_mt_unit(g)), dtype);
    tmi_generator_unlock(g);
    return TM_OK;
}

tm_status tmi_random_geometric(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double p)
{
    TMI_REQUIRE(p > 0 && p < 1, TM_INVALID, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    if (dtype == TM_BOOL || tmi_is_complex(dtype) || dtype >= TM_U16) return tmi_random_unsupported("geometric_cpu", dtype);
    g = tmi_generator_lock(g);
    for (int64_t i = 0; i < n; i++) store_double(data, i, ceil(log(tmi_mt_unit(g)) / log1p(-p)), dtype);
    tmi_generator_unlock(g);
    return TM_OK;
}

tm_status tmi_random_cauchy(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double median, double sigma)
{
    TMI_REQUIRE(sigma > 0, TM_INVALID, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
    TMI_REQUIRE(tmi_is_float(dtype), TM_INVALID,
                "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
                tmi_random_ctype(dtype));
    if (!is_plain_float(dtype)) return tmi_random_unsupported("cauchy_cpu", dtype);
    g = tmi_generator_lock(g);
    for (int64_t i = 0; i < n; i++) store_double(data, i, fma(sigma, tan(M_PI * (tmi_mt_unit(g) - 0.5)), median), dtype);
    tmi_generator_unlock(g);
    return TM_OK;
}

/* ---- bernoulli */

static void store_flag(void *data, int64_t at, uint8_t flag, tm_dtype dtype)
{
    if (tmi_dtypes[dtype].size == 1) ((uint8_t *)data)[at] = flag;
    else store_double(data, at, flag, dtype);
}

static void store_flags(void *data, int64_t at, const uint8_t *flags, int64_t n, tm_dtype dtype)
{
    if (dtype == TM_F32) for (int64_t i = 0; i < n; i++) ((float *)data)[at + i] = flags[i];
    else for (int64_t i = 0; i < n; i++) store_flag(data, at + i, flags[i], dtype);
}

static bool takes_flags(tm_dtype d) { return d <= TM_F64 || d == TM_BF16; }

/* u < p for u = r 2^-53 is r < ceil(p 2^53), in integers. */
tm_status tmi_random_bernoulli(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double p)
{
    TMI_REQUIRE(p >= 0 && p <= 1, TM_INVALID, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    if (!takes_flags(dtype)) return tmi_random_unsupported("bernoulli_scalar_cpu_", dtype);
    uint32_t words[CHUNK];
    uint8_t flags[CHUNK / 2];
    uint64_t bound = (uint64_t)ceil(p * 0x1p53);
    g = tmi_generator_lock(g);
    for (int64_t at = 0; at < n; at += CHUNK / 2) {
        int64_t take = n - at < CHUNK / 2 ? n - at : CHUNK / 2;
        tmi_mt_words(g, words, 2 * take);
        tmi_random_loops_get()->below(words, flags, take, bound);
        store_flags(data, at, flags, take, dtype);
    }
    tmi_generator_unlock(g);
    return TM_OK;
}

static double probability(const void *p, int64_t i, tm_dtype d) { return d == TM_F64 ? ((const double *)p)[i] : load_float(p, i, d); }

tm_status tmi_random_bernoulli_each(tm_generator *g, void *data, int64_t n, tm_dtype dtype, const void *p, tm_dtype p_dtype)
{
    if (!takes_flags(dtype)) return tmi_random_unsupported("bernoulli_tensor_cpu_self_", dtype);
    if (!is_plain_float(p_dtype)) return tmi_random_unsupported("bernoulli_tensor_cpu_p_", p_dtype);
    for (int64_t i = 0; i < n; i++) {
        double x = probability(p, i, p_dtype);
        TMI_REQUIRE(x >= 0 && x <= 1, TM_INVALID, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message "
                    "be improved?  If so, please report an enhancement request to PyTorch.)");
    }
    g = tmi_generator_lock(g);
    for (int64_t i = 0; i < n; i++) {
        double u = p_dtype == TM_F64 ? tmi_mt_unit(g) : (double)tmi_mt_unit24(g);
        store_flag(data, i, u < probability(p, i, p_dtype), dtype);
    }
    tmi_generator_unlock(g);
    return TM_OK;
}
