/* Special functions: recurrence and asymptotic series for the gamma family, Euler-Maclaurin for zeta, Halley's iteration on erf and erfc
 * for the inverses, power and asymptotic series for the Bessel functions. */
#include "special.h"

#include <math.h>

#include "isa/vec_math_f64.h"

#define PI 3.14159265358979324
#define SQRT_HALF 0.70710678118654752
#define TWO_OVER_SQRT_PI 1.12837916709551257

/* B(2k) / (2k) for k = 1.. */
static const double bernoulli_over[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12, -3617.0 / 8160};
/* B(2k) */
static const double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798,
                                   -174611.0 / 330};

double tmk_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double tmk_digamma(double x)
{
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        if (x == trunc(x)) return NAN;
        double whole;
        return tmk_digamma(1 - x) - PI / tan(PI * modf(x, &whole));
    }
    double below = 0;
    for (; x < 10; x++) below += 1 / x;
    if (x == 10) return 2.25175258906672110764 - below;
    double z = 1 / (x * x), tail = 0;
    for (int k = 7; k >= 0; k--) tail = (tail + bernoulli_over[k]) * z;
    return log(x) - 0.5 / x - (x < 1e17 ? tail : 0) - below;
}

double tmk_trigamma(double x)
{
    double sign = 1, sum = 0;
    if (x < 0.5) {
        double s = sin(PI * x);
        sum -= PI * PI / (s * s);
        sign = -1;
        x = 1 - x;
    }
    for (; x < 12; x++) sum += 1 / (x * x);
    double z = 1 / (x * x), tail = 0;
    for (int k = 7; k >= 0; k--) tail = (tail + bernoulli[k]) * z;
    return sign * (sum + 1 / x + 0.5 * z + tail / x);
}

double tmk_zeta(double s, double q)
{
    if (s == 1) return INFINITY;
    if (!(s > 1) || isnan(q)) return NAN;
    if (q <= 0 && q == floor(q)) return INFINITY;
    if (q <= 0 && s != floor(s)) return NAN;
    double sum = pow(q, -s), a = q;
    for (int i = 0; i < 9 || a <= 9; i++) {
        double term = pow(a += 1, -s);
        sum += term;
        if (fabs(term) < 0x1p-54 * fabs(sum)) return sum;
    }
    /* what is left: a^(1-s)/(s-1) - a^-s/2 + sum of B(2k)/(2k)! s (s+1) ... a^-(s+2k-1) */
    double term = pow(a, -s);
    sum += term * a / (s - 1) - 0.5 * term;
    double factor = s * term / a / 2;
    for (int k = 0; k < 10; k++) {
        double t = bernoulli[k] * factor;
        sum += t;
        if (fabs(t) < 0x1p-54 * fabs(sum)) break;
        double m = s + 2 * k + 1;
        factor *= m * (m + 1) / ((2 * k + 3) * (2 * k + 4)) / (a * a);
    }
    return sum;
}

double tmk_polygamma(double order, double x)
{
    if (order == 0) return tmk_digamma(x);
    if (order == 1) return tmk_trigamma(x);
    double sign = fmod(order, 2) == 0 ? -1 : 1;
    return sign * exp(tmk_lgamma(order + 1)) * tmk_zeta(order + 1, x);
}

double tmk_erfcx(double x)
{
    if (isnan(x)) return x;
    if (x < 0.5) return x < -26.7 ? INFINITY : exp(x * x) * erfc(x);
    if (x <= 28) return v_erfcx_core_f64(v_set_f64(x));
    double z = 1 / (x * x);
    return TWO_OVER_SQRT_PI / 2 / x * (1 - z / 2 * (1 - z * 1.5 * (1 - z * 2.5)));
}

/* x with Phi(-x) = p for 0 < p <= 1/2, to 5e-4. */
static double normal_tail_guess(double p)
{
    double t = sqrt(-2 * log(p));
    return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

double tmk_ndtri(double p)
{
    if (!(p > 0 && p < 1)) return p == 0 ? -INFINITY : p == 1 ? INFINITY : NAN;
    if (p > 0.5) return -tmk_ndtri(1 - p);
    if (p == 0.5) return 0;
    double x = -normal_tail_guess(p);
    for (int i = 0; i < 3; i++) {
        double e = (0.5 * erfc(-x * SQRT_HALF) - p) * sqrt(2 * PI) * exp(0.5 * x * x);
        x -= e / (1 + 0.5 * x * e);
    }
    return x;
}

double tmk_erfinv(double y)
{
    double a = fabs(y);
    if (!(a < 1)) return a == 1 ? copysign(INFINITY, y) : NAN;
    double x, z = y * y;
    if (a < 0.25) x = a * (0.88622692545275801 + z * (0.23201366653465450 + z * (0.12755617530559793 + z * 0.08655212924154753)));
    else x = normal_tail_guess((1 - a) * 0.5) * SQRT_HALF;
    for (int i = 0; i < 2; i++) {
        double f = a < 0.5 ? erf(x) - a : (1 - a) - erfc(x);
        double e = f / (TWO_OVER_SQRT_PI * exp(-x * x));
        x -= e / (1 + x * e);
    }
    return copysign(x, y);
}

double tmk_log_ndtr(double x)
{
    double t = x * SQRT_HALF;
    return x < -1 ? log(0.5 * tmk_erfcx(-t)) - t * t : log1p(-0.5 * erfc(t));
}

/* exp(-|x|) I_v(x) for v = 0, 1 and x >= 0. All terms of the power series are positive, so it loses nothing. */
static double bessel_scaled(int v, double x)
{
    if (isnan(x)) return x;
    if (isinf(x)) return 0;
    double sum = 1, term = 1;
    if (x <= 30) {
        double z = 0.25 * x * x;
        for (int k = 1; term > 0x1p-56 * sum; k++) sum += term *= z / ((double)k * (k + v));
        return sum * (v ? 0.5 * x : 1) * exp(-x);
    }
    for (int k = 1; k < 40 && fabs(term) > 0x1p-56; k++) {
        double m = 2 * k - 1;
        sum += term *= (m * m - 4 * v * v) / (8 * x * k);
    }
    return sum / sqrt(2 * PI * x);
}
double tmk_i0e(double x) { return bessel_scaled(0, fabs(x)); }
double tmk_i1e(double x) { return copysign(bessel_scaled(1, fabs(x)), x); }
double tmk_i0(double x) { return isinf(x) ? INFINITY : tmk_i0e(x) * exp(fabs(x)); }
double tmk_i1(double x) { return isinf(x) ? x : tmk_i1e(x) * exp(fabs(x)); }
