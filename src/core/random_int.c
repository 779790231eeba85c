/* Integers, permutations, and sampling from weights. */
#include <math.h>

#include "base/alloc.h"
#include "generator.h"

tm_status tmi_random_unsupported(const char *what, tm_dtype dtype)
{
    return tmi_fail(TM_NOT_IMPLEMENTED, "\"%s\" not implemented for '%s'", what, tmi_dtypes[dtype].type_name);
}

/* Integers that the callers have put into int64, into any dtype. */
static void store_ints(void *data, int64_t at, const int64_t *v, int64_t n, tm_dtype dtype)
{
    size_t size = tmi_dtypes[dtype].size;
    char *out = (char *)data + at * (int64_t)size;
    switch (dtype) {
    case TM_I64: case TM_U64: memcpy(out, v, (size_t)n * sizeof *v); break;
    case TM_I32: case TM_U32: for (int64_t i = 0; i < n; i++) ((uint32_t *)(void *)out)[i] = (uint32_t)v[i]; break;
    case TM_I8: case TM_U8: for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = (uint8_t)v[i]; break;
    case TM_F32: for (int64_t i = 0; i < n; i++) ((float *)(void *)out)[i] = (float)v[i]; break;
    case TM_F64: for (int64_t i = 0; i < n; i++) ((double *)(void *)out)[i] = (double)v[i]; break;
    default: for (int64_t i = 0; i < n; i++) tmi_store_scalar(out + (size_t)i * size, dtype, tm_i64(v[i])); break;
    }
}

/* ---- ranges */

/* Bits of precision: every integer up to 2^digits is exact. */
static int float_digits(tm_dtype d) { return d == TM_F64 ? 53 : d == TM_F32 ? 24 : d == TM_F16 ? 11 : d == TM_BF16 ? 8 : 0; }

const char *tmi_random_ctype(tm_dtype d)
{
    static const char *const names[TM_DTYPE_COUNT] = {
        [TM_BOOL] = "bool", [TM_U8] = "unsigned char", [TM_I8] = "signed char", [TM_I16] = "short int", [TM_I32] = "int", [TM_I64] = "long int",
        [TM_U16] = "short unsigned int", [TM_U32] = "unsigned int", [TM_U64] = "long unsigned int", [TM_F16] = "c10::Half", [TM_F32] = "float",
        [TM_F64] = "double", [TM_BF16] = "c10::BFloat16", [TM_C64] = "c10::complex<float>", [TM_C128] = "c10::complex<double>",
        [TM_F8_E4M3FN] = "c10::Float8_e4m3fn", [TM_F8_E5M2] = "c10::Float8_e5m2"};
    return names[d];
}

static int64_t lowest_int(tm_dtype d)
{
    return d == TM_I8 ? INT8_MIN : d == TM_I16 ? INT16_MIN : d == TM_I32 ? INT32_MIN : d == TM_I64 ? INT64_MIN : 0;
}

static int64_t largest_int(tm_dtype d)
{
    if (d == TM_BOOL) return 1;
    int bits = tmi_dtypes[d].size * 8 - (tmi_dtypes[d].category == 'I');
    return bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
}

static tm_status check_bound(const char *name, int64_t v, tm_dtype d)
{
    bool ok = float_digits(d) ? d != TM_F16 || (v >= -65504 && v <= 65504) : v >= lowest_int(d) && v <= largest_int(d);
    TMI_REQUIRE(ok, TM_INVALID, "%s is out of bounds for %s", name, tmi_random_ctype(d));
    return TM_OK;
}

/* What `v` becomes in a floating type of that many digits. */
static int64_t rounded(int64_t v, tm_dtype d)
{
    double x = (double)v;
    if (d == TM_F32) x = (float)v;
    else if (d == TM_F16) x = tmi_f16_to_f32(tmi_f32_to_f16((float)v));
    else if (d == TM_BF16) x = tmi_bf16_to_f32(tmi_f32_to_bf16((float)v));
    return tmi_f64_to_i64(x);
}

/* The gap between neighbours of |v| in the floating type. */
static int64_t spacing(int64_t v, tm_dtype d)
{
    uint64_t m = v < 0 ? -(uint64_t)v : (uint64_t)v;
    int top = m ? 63 - __builtin_clzll(m) : 0;
    return (int64_t)1 << (top - float_digits(d) + 1);
}

/* Floating types: bounds that rounding would carry out of the range move inwards. */
static void tighten(int64_t *from, int64_t *to, tm_dtype d)
{
    if (*from < INT64_MAX && rounded(*from + 1, d) < *from) *from = rounded(*from + 1, d) + spacing(*from + 1, d);
    if (*to > INT64_MIN && rounded(*to - 1, d) >= *to) *to = rounded(*to - 1, d) - spacing(*to - 1, d);
}

/* A remainder, and then a shift by `base`. 0 stands for 2^64. */
typedef struct divisor {
    uint64_t d, base;
    bool two_words;
} divisor;

/* Remainder of 32-bit numbers by a fixed divisor with two multiplications: m = ceil(2^64 / d), and r = high64(low64(m x) d); m does not fit
 * for d = 1. */
static void remainders_32(const uint32_t *w, int64_t *out, int64_t n, const divisor *by)
{
    uint64_t d = by->d, m = d > 1 ? UINT64_MAX / d + 1 : 0;
    for (int64_t i = 0; i < n; i++) out[i] = (int64_t)(by->base + (uint64_t)((unsigned __int128)(m * w[i]) * d >> 64));
}

static void remainders_64(const uint32_t *w, int64_t *out, int64_t n, const divisor *by)
{
    uint64_t d = by->d, mask = d - 1;   /* for powers of two, 2^64 among them */
    bool power = (d & mask) == 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = (uint64_t)w[2 * i] << 32 | w[2 * i + 1];
        out[i] = (int64_t)(by->base + (power ? r & mask : r % d));
    }
}

static void fill(tm_generator *g, void *data, int64_t n, tm_dtype dtype, divisor by)
{
    enum { CHUNK = 256 };
    uint32_t words[2 * CHUNK];
    int64_t v[CHUNK];
    g = tmi_generator_lock(g);
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t take = n - at < CHUNK ? n - at : CHUNK;
        tmi_mt_words(g, words, by.two_words ? 2 * take : take);
        (by.two_words ? remainders_64 : remainders_32)(words, v, take, &by);
        store_ints(data, at, v, take, dtype);
    }
    tmi_generator_unlock(g);
}

/* One word where range < 2^28, else two. */
static void fill_range(tm_generator *g, void *data, int64_t n, tm_dtype dtype, int64_t base, uint64_t range)
{
    fill(g, data, n, dtype, (divisor){.d = range, .base = (uint64_t)base, .two_words = range == 0 || range >= UINT64_C(1) << 28});
}

/* random_(-2^63, None): the bits themselves, in types that can spread them. */
static tm_status fill_64_bits(tm_generator *g, void *data, int64_t n, tm_dtype d)
{
    if (d == TM_BOOL || d == TM_F16 || tmi_is_complex(d) || d >= TM_U16) return tmi_random_unsupported("random_full_64_bits_range_kernel_cpu", d);
    TMI_REQUIRE(d == TM_I64 || d == TM_F64 || d == TM_F32 || d == TM_BF16, TM_INVALID,
                "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    fill_range(g, data, n, d, 0, 0);
    return TM_OK;
}

tm_status tmi_random_range(tm_generator *g, void *data, int64_t n, tm_dtype dtype, int64_t from, const int64_t *to)
{
    bool is_float = float_digits(dtype);
    if (!to && from == INT64_MIN) return fill_64_bits(g, data, n, dtype);
    if (!to) {
        TMI_REQUIRE(!tmi_is_complex(dtype) && tmi_dtypes[dtype].category != 'X', TM_INVALID, "random_from_to_impl handles only integral, floating-point and boolean types");
        int64_t last = is_float ? (int64_t)1 << float_digits(dtype) : largest_int(dtype), none = INT64_MIN;
        if (is_float) tighten(&from, &none, dtype);
        TMI_REQUIRE(!is_float || from < last, TM_INVALID,
                    "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=%lld > "
                    "to_inc=%lld", (long long)from, (long long)last);
        TMI_TRY(check_bound("from", from, dtype));
        TMI_REQUIRE(dtype != TM_U64, TM_INVALID, "to - 1 is out of bounds for %s", tmi_random_ctype(dtype));
        TMI_REQUIRE(from <= last, TM_INVALID, "random_ expects 'from' to be less than or equal to 'to_inc' but got from=%lld > to_inc=%lld",
                    (long long)from, (long long)last);
        fill_range(g, data, n, dtype, from, (uint64_t)last - (uint64_t)from + 1);
        return TM_OK;
    }
    int64_t end = *to;
    TMI_REQUIRE(from < end, TM_INVALID, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from,
                (long long)end);
    TMI_REQUIRE(!tmi_is_complex(dtype) && tmi_dtypes[dtype].category != 'X', TM_INVALID, "check_random_bounds handles only integral, floating-point and boolean types");
    if (is_float) {
        tighten(&from, &end, dtype);
        TMI_REQUIRE(from < end, TM_INVALID,
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= to=%lld",
                    (long long)from, (long long)end);
    }
    TMI_TRY(check_bound("from", from, dtype));
    TMI_TRY(check_bound("to - 1", end - 1, dtype));
    fill_range(g, data, n, dtype, from, (uint64_t)end - (uint64_t)from);
    return TM_OK;
}

/* Two words for 64-bit types, one for the rest. */
tm_status tmi_random_full(tm_generator *g, void *data, int64_t n, tm_dtype dtype)
{
    if (tmi_is_complex(dtype) || (dtype >= TM_U16 && dtype <= TM_F8_E5M2)) return tmi_random_unsupported("random_kernel_cpu", dtype);
    uint64_t limit = float_digits(dtype) ? (UINT64_C(1) << float_digits(dtype)) + 1 : (uint64_t)largest_int(dtype) + 1;
    fill(g, data, n, dtype, (divisor){.d = limit, .two_words = dtype == TM_I64 || dtype == TM_F64});
    return TM_OK;
}

/* ---- permutations */

static void shuffle(tm_generator *g, int64_t *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) r[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t j = i + tmi_mt_next(g) % (uint32_t)(n - i), kept = r[i];
        r[i] = r[j];
        r[j] = kept;
    }
}

/* Where 32 bits would favour some positions too much: inside out, with 64-bit draws. */
static void shuffle_large(tm_generator *g, int64_t *r, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)(tmi_mt_next64(g) % (uint64_t)(i + 1));
        r[i] = i;
        r[i] = r[j];
        r[j] = i;
    }
}

static tm_status check_permutation(int64_t n, tm_dtype d)
{
    TMI_REQUIRE(n >= 0, TM_INVALID, "n must be non-negative, got%lld", (long long)n);
    if (d == TM_BOOL || tmi_is_complex(d) || d >= TM_U16) return tmi_random_unsupported("randperm", d);
    int digits = float_digits(d);
    TMI_REQUIRE(!digits || d == TM_BF16 || n <= ((int64_t)1 << digits) + 1, TM_INVALID, "n cannot be greater than %lld for %s type.",
                (long long)(((int64_t)1 << digits) + 1), tmi_dtypes[d].type_name);
    TMI_REQUIRE(digits || n - 1 <= largest_int(d), TM_INVALID, "value cannot be converted to type %s%s without overflow", tmi_dtypes[d].name, "_t");
    return TM_OK;
}

tm_status tmi_random_permutation(tm_generator *g, void *data, int64_t n, tm_dtype dtype)
{
    TMI_TRY(check_permutation(n, dtype));
    int64_t *r = data;
    if (dtype != TM_I64 && !(r = tmi_data_alloc((size_t)n * sizeof *r))) return TM_NOMEM;
    g = tmi_generator_lock(g);
    if (n < UINT32_MAX / 20) shuffle(g, r, n);
    else shuffle_large(g, r, n);
    tmi_generator_unlock(g);
    if (dtype == TM_I64) return TM_OK;
    store_ints(data, 0, r, n, dtype);
    tmi_data_free(r, (size_t)n * sizeof *r);
    return TM_OK;
}

/* ---- sampling from weights */

/* Rounds to the weights' dtype and back: PyTorch computes in it. */
static double round_to(double v, tm_dtype d)
{
    if (d == TM_F64) return v;
    float f = (float)v;
    if (d == TM_F16) return tmi_f16_to_f32(tmi_f32_to_f16(f));
    return d == TM_BF16 ? tmi_bf16_to_f32(tmi_f32_to_bf16(f)) : f;
}

static void load_row(const void *weights, int64_t row, int64_t n, tm_dtype dtype, double *out)
{
    const char *p = (const char *)weights + row * n * (int64_t)tmi_dtypes[dtype].size;
    for (int64_t i = 0; i < n; i++) out[i] = tmi_scalar_f64(tmi_load_scalar(p + i * tmi_dtypes[dtype].size, dtype));
}

/* Keeps the k largest of w, largest first (smaller index first among equals), as indices: a heap whose root is the worst kept. */
static bool worse(const double *w, int64_t a, int64_t b) { return w[a] < w[b] || (w[a] == w[b] && a > b); }

static void sift_down(const double *w, int64_t *heap, int64_t n, int64_t i)
{
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && worse(w, heap[child + 1], heap[child])) child++;
        if (!worse(w, heap[child], heap[i])) return;
        int64_t kept = heap[i];
        heap[i] = heap[child];
        heap[child] = kept;
    }
}

static void largest_k(const double *w, int64_t n, int64_t k, int64_t *out)
{
    for (int64_t i = 0; i < k; i++) out[i] = i;
    for (int64_t i = k / 2; i-- > 0;) sift_down(w, out, k, i);
    for (int64_t i = k; i < n; i++)
        if (worse(w, out[0], i)) {
            out[0] = i;
            sift_down(w, out, k, 0);
        }
    for (int64_t left = k - 1; left > 0; left--) {
        int64_t worst = out[0];
        out[0] = out[left];
        out[left] = worst;
        sift_down(w, out, left, 0);
    }
}

/* p / q with q exponential: the k largest are k draws without replacement. All rows' q are drawn before any is used. */
static void sample_without(tm_generator *g, const void *weights, int64_t n, int64_t row, tm_dtype dtype, int64_t k, double *p, int64_t *out)
{
    load_row(weights, row, n, dtype, p);
    for (int64_t i = 0; i < n; i++) p[i] = round_to(p[i] / round_to(-log1p(-tmi_mt_unit(g)), dtype), dtype);
    largest_k(p, n, k, out);
}

static int64_t lower_bound(const double *cum, int64_t n, double u)
{
    int64_t lo = 0, hi = n;
    while (hi > lo) {
        int64_t mid = lo + (hi - lo) / 2;
        if (cum[mid] < u) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static void sample_with(tm_generator *g, const double *cum, int64_t n, int64_t k, int64_t *out)
{
    for (int64_t i = 0; i < k; i++) out[i] = lower_bound(cum, n, tmi_mt_unit(g));
}

/* Cumulative sums in the weights' dtype (halves: in float32), divided by the total. */
static tm_status cumulate(double *p, int64_t n, tm_dtype dtype)
{
    tm_dtype wide = dtype == TM_F64 ? TM_F64 : TM_F32;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE(p[i] >= 0, TM_INVALID, "invalid multinomial distribution (encountering probability entry < 0)");
        TMI_REQUIRE(isfinite(p[i]), TM_INVALID, "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
        p[i] = sum = round_to(sum + p[i], wide);
    }
    TMI_REQUIRE(sum > 0, TM_INVALID, "invalid multinomial distribution (sum of probabilities <= 0)");
    for (int64_t i = 0; i < n; i++) p[i] = round_to(p[i] / sum, wide);
    p[n - 1] = 1;
    return TM_OK;
}

static tm_status check_weights(const double *p, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        TMI_REQUIRE(p[i] >= 0 && isfinite(p[i]), TM_INVALID, "probability tensor contains either `inf`, `nan` or element < 0");
        sum += p[i];
    }
    TMI_REQUIRE(sum > 0, TM_INVALID, "invalid multinomial distribution (sum of probabilities <= 0)");
    return TM_OK;
}

static tm_status sample_rows(tm_generator *g, const void *weights, int64_t rows, int64_t n, tm_dtype dtype, int64_t k, bool cumulative,
                             double *p, int64_t *out)
{
    for (int64_t r = 0; r < rows; r++) {   /* all rows are checked before anything is drawn */
        load_row(weights, r, n, dtype, p);
        TMI_TRY(cumulative ? cumulate(p, n, dtype) : check_weights(p, n));
    }
    g = tmi_generator_lock(g);
    for (int64_t r = 0; r < rows; r++) {
        if (!cumulative) {
            sample_without(g, weights, n, r, dtype, k, p, out + r * k);
            continue;
        }
        load_row(weights, r, n, dtype, p);
        if (cumulate(p, n, dtype) == TM_OK) sample_with(g, p, n, k, out + r * k);
    }
    tmi_generator_unlock(g);
    return TM_OK;
}

tm_status tmi_random_multinomial(tm_generator *g, const void *weights, int64_t rows, int64_t categories, tm_dtype dtype, int64_t samples,
                                 bool replacement, int64_t *out)
{
    TMI_REQUIRE(tmi_is_float(dtype), TM_INVALID, "multinomial only supports floating-point dtypes for input, got: %s",
                tmi_dtypes[dtype].type_name);
    TMI_REQUIRE(samples > 0, TM_INVALID, "cannot sample n_sample <= 0 samples");
    TMI_REQUIRE(replacement || samples <= categories, TM_INVALID,
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    if (!float_digits(dtype)) return tmi_random_unsupported(replacement && samples > 1 ? "multinomial" : "aminmax_cpu", dtype);
    if (rows == 0 || categories == 0) return TM_OK;
    double *p = tmi_data_alloc((size_t)categories * sizeof *p);
    if (!p) return TM_NOMEM;
    tm_status s = sample_rows(g, weights, rows, categories, dtype, samples, replacement && samples > 1, p, out);
    tmi_data_free(p, (size_t)categories * sizeof *p);
    return s;
}
