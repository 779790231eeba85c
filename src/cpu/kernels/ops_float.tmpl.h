/* What each kernel of pointwise.def does to one vector of f32 or f64. The including file defines S, V, M, W and F(x) as for
 * loops_float.tmpl.h, X(x) (the same for functions of its own, x_f32), and the functions m_<name> that differ between the two types. */

#define K(x) F(set)((S)(x))
#define SEL F(sel)

/* ---- arithmetic */
TMK_INLINE V op_add(V a, V b, const S *p) { return a + b; }
TMK_INLINE V op_add_scaled(V a, V b, const S *p) { return F(fma)(b, K(p[0]), a); }
TMK_INLINE V op_sub(V a, V b, const S *p) { return a - b; }
TMK_INLINE V op_mul(V a, V b, const S *p) { return a * b; }
TMK_INLINE V op_div(V a, V b, const S *p) { return a / b; }
TMK_INLINE V op_div_trunc(V a, V b, const S *p) { return F(trunc)(a / b); }
TMK_INLINE V op_fmod(V a, V b, const S *p) { return m_fmod(a, b); }
TMK_INLINE V op_remainder(V a, V b, const S *p)
{
    V r = m_fmod(a, b), zero = K(0);
    M off = F(ne)(r, zero) & (F(lt)(b, zero) ^ F(lt)(r, zero));
    return SEL(off, r + b, r);
}
TMK_INLINE V op_div_floor(V a, V b, const S *p)
{
    V zero = K(0), r = m_fmod(a, b), q = (a - r) / b, plain = a / b;
    q = SEL(F(ne)(r, zero) & (F(lt)(b, zero) ^ F(lt)(r, zero)), q - 1, q);
    V f = F(floor)(q);
    f = SEL(F(gt)(q - f, K(0.5)), f + 1, f);
    f = SEL(F(eq)(q, zero), F(copysign)(zero, plain), f);
    return SEL(F(eq)(b, zero), plain, f);
}
TMK_INLINE V op_pow(V a, V b, const S *p) { return m_pow(a, b); }
TMK_INLINE V op_neg(V a, const S *p) { return F(neg)(a); }
TMK_INLINE V op_abs(V a, const S *p) { return F(abs)(a); }
TMK_INLINE V op_sign(V a, const S *p)
{
    return SEL(F(gt)(a, K(0)), K(1), SEL(F(lt)(a, K(0)), K(-1), K(0)));
}
TMK_INLINE V op_sgn(V a, const S *p) { return op_sign(a, p); }
TMK_INLINE V op_square(V a, const S *p) { return a * a; }
TMK_INLINE V op_cube(V a, const S *p) { return a * a * a; }
TMK_INLINE V op_reciprocal(V a, const S *p) { return 1 / a; }
TMK_INLINE V op_sqrt(V a, const S *p) { return F(sqrt)(a); }
TMK_INLINE V op_rsqrt(V a, const S *p) { return 1 / F(sqrt)(a); }
TMK_INLINE V op_maximum(V a, V b, const S *p) { return SEL(F(isnan)(a) | F(gt)(a, b), a, SEL(F(isnan)(b), b, F(max)(a, b))); }
TMK_INLINE V op_minimum(V a, V b, const S *p) { return SEL(F(isnan)(a) | F(lt)(a, b), a, SEL(F(isnan)(b), b, F(min)(a, b))); }
TMK_INLINE V op_fmax(V a, V b, const S *p) { return SEL(F(isnan)(b) | F(ge)(a, b), a, b); }
TMK_INLINE V op_fmin(V a, V b, const S *p) { return SEL(F(isnan)(b) | F(le)(a, b), a, b); }
TMK_INLINE V op_clamp(V a, const S *p) { return F(min)(K(p[1]), F(max)(K(p[0]), a)); }
TMK_INLINE V op_clamp_min(V a, const S *p) { return F(max)(K(p[0]), a); }
TMK_INLINE V op_clamp_max(V a, const S *p) { return F(min)(K(p[0]), a); }
TMK_INLINE V op_clamp_tensor(V a, V lo, V hi, const S *p) { return op_minimum(op_maximum(a, lo, p), hi, p); }
TMK_INLINE V op_lerp(V a, V b, V w, const S *p)
{
    M near = F(lt)(F(abs)(w), K(0.5));
    return F(fma)(SEL(near, w, w - 1), b - a, SEL(near, a, b));
}
TMK_INLINE V op_addcmul(V a, V b, V c, const S *p) { return a + K(p[0]) * b * c; }
TMK_INLINE V op_addcdiv(V a, V b, V c, const S *p) { return a + K(p[0]) * b / c; }
TMK_INLINE V op_hypot(V a, V b, const S *p) { return m_hypot(a, b); }
TMK_INLINE V op_atan2(V a, V b, const S *p) { return m_atan2(a, b); }
TMK_INLINE V op_copysign(V a, V b, const S *p) { return F(copysign)(a, b); }
TMK_INLINE V op_logaddexp(V a, V b, const S *p)
{
    V m = op_maximum(a, b, p), r = m + m_log1p(m_exp(F(neg)(F(abs)(a - b))));
    return SEL(F(eq)(a, b) & F(eq)(F(abs)(a), K(INFINITY)), a, r);
}
TMK_INLINE V op_logaddexp2(V a, V b, const S *p)
{
    V m = op_maximum(a, b, p), r = m + m_log1p(m_exp2(F(neg)(F(abs)(a - b)))) * (S)1.4426950408889634074;
    return SEL(F(eq)(a, b) & F(eq)(F(abs)(a), K(INFINITY)), a, r);
}
TMK_INLINE V op_nan_to_num(V a, const S *p)
{
    V r = SEL(F(isnan)(a), K(p[0]), a);
    r = SEL(F(eq)(a, K(INFINITY)), K(p[1]), r);
    return SEL(F(eq)(a, K(-INFINITY)), K(p[2]), r);
}
TMK_INLINE V op_xlogy(V a, V b, const S *p) { return SEL(F(isnan)(b), b, SEL(F(eq)(a, K(0)), K(0), a * m_log(b))); }
TMK_INLINE V op_xlog1py(V a, V b, const S *p) { return SEL(F(isnan)(b), b, SEL(F(eq)(a, K(0)), K(0), a * m_log1p(b))); }
TMK_INLINE V op_heaviside(V a, V b, const S *p) { return SEL(F(eq)(a, K(0)), b, SEL(F(gt)(a, K(0)), K(1), K(0))); }
TMK_INLINE V op_nextafter(V a, V b, const S *p) { return m_nextafter(a, b); }
TMK_INLINE V op_conj(V a, const S *p) { return a; }
TMK_INLINE V op_angle(V a, const S *p) { return SEL(F(isnan)(a), a, SEL(F(lt)(a, K(0)), K(3.14159265358979324), K(0))); }
TMK_INLINE void op_complex(S re, S im, S *out)
{
    out[0] = re;
    out[1] = im;
}
TMK_INLINE void op_polar(S modulus, S angle, S *out)
{
    out[0] = (S)(modulus * cos(angle));
    out[1] = (S)(modulus * sin(angle));
}

/* ---- transcendental */
TMK_INLINE V op_exp(V a, const S *p) { return m_exp(a); }
TMK_INLINE V op_exp2(V a, const S *p) { return m_exp2(a); }
TMK_INLINE V op_expm1(V a, const S *p) { return m_expm1(a); }
TMK_INLINE V op_log(V a, const S *p) { return m_log(a); }
TMK_INLINE V op_log2(V a, const S *p) { return m_log2(a); }
TMK_INLINE V op_log10(V a, const S *p) { return m_log10(a); }
TMK_INLINE V op_log1p(V a, const S *p) { return m_log1p(a); }
TMK_INLINE V op_sin(V a, const S *p) { return m_sin(a); }
TMK_INLINE V op_cos(V a, const S *p) { return m_cos(a); }
TMK_INLINE V op_tan(V a, const S *p) { return m_tan(a); }
TMK_INLINE V op_asin(V a, const S *p) { return m_asin(a); }
TMK_INLINE V op_acos(V a, const S *p) { return m_acos(a); }
TMK_INLINE V op_atan(V a, const S *p) { return m_atan(a); }
TMK_INLINE V op_sinh(V a, const S *p) { return m_sinh(a); }
TMK_INLINE V op_cosh(V a, const S *p) { return m_cosh(a); }
TMK_INLINE V op_tanh(V a, const S *p) { return m_tanh(a); }
TMK_INLINE V op_asinh(V a, const S *p) { return m_asinh(a); }
TMK_INLINE V op_acosh(V a, const S *p) { return m_acosh(a); }
TMK_INLINE V op_atanh(V a, const S *p) { return m_atanh(a); }
TMK_INLINE V op_sigmoid(V a, const S *p) { return m_sigmoid(a); }
TMK_INLINE V op_erf(V a, const S *p) { return m_erf(a); }
TMK_INLINE V op_erfc(V a, const S *p) { return m_erfc(a); }
TMK_INLINE V op_sinc(V a, const S *p) { return SEL(F(eq)(a, K(0)), K(1), m_sin(a * (S)3.14159265358979324) / (a * (S)3.14159265358979324)); }
TMK_INLINE V op_logit(V a, const S *p)
{
    V x = p[0] < 0 ? a : F(min)(K(1 - p[0]), F(max)(K(p[0]), a));
    return m_log(x / (1 - x));
}
TMK_INLINE V op_logit_backward(V g, V x, const S *p)
{
    S lo = p[0] < 0 ? 0 : p[0], hi = p[0] < 0 ? 1 : 1 - p[0];
    return SEL(F(lt)(x, K(lo)) | F(gt)(x, K(hi)), K(p[0] < 0 ? NAN : 0), g / (x * (1 - x)));
}
TMK_INLINE V op_erfinv(V a, const S *p) { return m_each(a, tmk_erfinv); }
TMK_INLINE V op_lgamma(V a, const S *p) { return m_each(a, tmk_lgamma); }
TMK_INLINE V op_digamma(V a, const S *p) { return m_each(a, tmk_digamma); }
TMK_INLINE V op_trigamma(V a, const S *p) { return m_each(a, tmk_trigamma); }
TMK_INLINE V op_polygamma(V a, const S *p) { return m_each2(K(p[0]), a, tmk_polygamma); }
TMK_INLINE V op_zeta(V a, V b, const S *p) { return m_each2(a, b, tmk_zeta); }
TMK_INLINE V op_i0(V a, const S *p) { return m_each(a, tmk_i0); }
TMK_INLINE V op_i0e(V a, const S *p) { return m_each(a, tmk_i0e); }
TMK_INLINE V op_i1(V a, const S *p) { return m_each(a, tmk_i1); }
TMK_INLINE V op_i1e(V a, const S *p) { return m_each(a, tmk_i1e); }
TMK_INLINE V op_entr(V a, const S *p)
{
    return SEL(F(isnan)(a), a, SEL(F(gt)(a, K(0)), -(a * m_log(a)), SEL(F(eq)(a, K(0)), K(0), K(-INFINITY))));
}
TMK_INLINE V op_ndtri(V a, const S *p) { return m_each(a, tmk_ndtri); }
TMK_INLINE V op_log_ndtr(V a, const S *p) { return m_each(a, tmk_log_ndtr); }
TMK_INLINE V op_erfcx(V a, const S *p) { return m_each(a, tmk_erfcx); }

/* ---- rounding */
TMK_INLINE V op_ceil(V a, const S *p) { return F(ceil)(a); }
TMK_INLINE V op_floor(V a, const S *p) { return F(floor)(a); }
TMK_INLINE V op_round(V a, const S *p) { return F(rint)(a); }
TMK_INLINE V op_trunc(V a, const S *p) { return F(trunc)(a); }
TMK_INLINE V op_frac(V a, const S *p) { return a - F(trunc)(a); }
TMK_INLINE V op_round_decimals(V a, const S *p)
{
    V ten = K(pow(10, p[0] < 0 ? -p[0] : p[0]));
    return p[0] < 0 ? F(rint)(a / ten) * ten : F(rint)(a * ten) / ten;
}

/* ---- comparison */
TMK_INLINE M op_eq(V a, V b, const S *p) { return F(eq)(a, b); }
TMK_INLINE M op_ne(V a, V b, const S *p) { return F(ne)(a, b); }
TMK_INLINE M op_lt(V a, V b, const S *p) { return F(lt)(a, b); }
TMK_INLINE M op_le(V a, V b, const S *p) { return F(le)(a, b); }
TMK_INLINE M op_gt(V a, V b, const S *p) { return F(gt)(a, b); }
TMK_INLINE M op_ge(V a, V b, const S *p) { return F(ge)(a, b); }
TMK_INLINE M op_logical_and(V a, V b, const S *p) { return F(ne)(a, K(0)) & F(ne)(b, K(0)); }
TMK_INLINE M op_logical_or(V a, V b, const S *p) { return F(ne)(a, K(0)) | F(ne)(b, K(0)); }
TMK_INLINE M op_logical_xor(V a, V b, const S *p) { return F(ne)(a, K(0)) ^ F(ne)(b, K(0)); }
TMK_INLINE M op_logical_not(V a, const S *p) { return F(eq)(a, K(0)); }
TMK_INLINE M op_isclose(V a, V b, const S *p)
{
    V far = F(abs)(a - b), allowed = K(p[1]) + F(abs)(K(p[0]) * b);
    M close = F(eq)(a, b) | (F(lt)(far, K(INFINITY)) & F(le)(far, allowed));
    return p[2] != 0 ? close | (F(isnan)(a) & F(isnan)(b)) : close;
}
TMK_INLINE M op_isnan(V a, const S *p) { return F(isnan)(a); }
TMK_INLINE M op_isinf(V a, const S *p) { return F(eq)(F(abs)(a), K(INFINITY)); }
TMK_INLINE M op_isfinite(V a, const S *p) { return F(lt)(F(abs)(a), K(INFINITY)); }
TMK_INLINE M op_isposinf(V a, const S *p) { return F(eq)(a, K(INFINITY)); }
TMK_INLINE M op_isneginf(V a, const S *p) { return F(eq)(a, K(-INFINITY)); }
TMK_INLINE M op_signbit(V a, const S *p) { return F(lt)(F(copysign)(K(1), a), K(0)); }
TMK_INLINE V op_where(M c, V a, V b) { return SEL(c, a, b); }

/* ---- activations */
TMK_INLINE V op_relu(V x, const S *p) { return F(max)(K(0), x); }
TMK_INLINE V op_leaky_relu(V x, const S *p) { return SEL(F(gt)(x, K(0)), x, x * p[0]); }
TMK_INLINE V op_leaky_relu_backward(V g, V x, const S *p) { return SEL(F(gt)(x, K(0)), g, g * p[0]); }
TMK_INLINE V op_prelu(V x, V w, const S *p) { return SEL(F(gt)(x, K(0)), x, w * x); }
TMK_INLINE V op_elu(V x, const S *p) { return SEL(F(le)(x, K(0)), m_expm1(x * p[2]) * (p[0] * p[1]), x * p[1]); }
TMK_INLINE V op_elu_backward(V g, V x, const S *p)
{
    S low = p[0] * p[1];
    V inner = p[3] != 0 ? g * p[2] * (x + low) : g * p[2] * low * m_exp(x * p[2]);
    return SEL(F(le)(x, K(0)), inner, g * p[1]);
}
TMK_INLINE V op_gelu(V x, const S *p) { return x * (S)0.5 * (m_erf(x * (S)0.70710678118654752) + 1); }
TMK_INLINE V op_gelu_backward(V g, V x, const S *p)
{
    V cdf = (m_erf(x * (S)0.70710678118654752) + 1) * (S)0.5;
    V pdf = m_exp(x * x * (S)-0.5) * (S)0.39894228040143268;
    return g * F(fma)(x, pdf, cdf);
}
TMK_INLINE V gelu_inner(V x)
{
    return (S)0.79788456080286536 * F(fma)(x * x * x, K(0.044715), x);
}
TMK_INLINE V op_gelu_tanh(V x, const S *p) { return x * (S)0.5 * (m_tanh(gelu_inner(x)) + 1); }
TMK_INLINE V op_gelu_tanh_backward(V g, V x, const S *p)
{
    V t = m_tanh(gelu_inner(x)), left = x * (S)0.5;
    V slope = (S)0.79788456080286536 * F(fma)(x * x, K(3 * 0.044715), K(1));
    return g * F(fma)(left * (1 - t * t), slope, (t + 1) * (S)0.5);
}
TMK_INLINE V op_silu(V x, const S *p) { return x / (m_exp(F(neg)(x)) + 1); }
TMK_INLINE V op_silu_backward(V g, V x, const S *p)
{
    V s = m_sigmoid(x);
    return g * s * F(fma)(x, 1 - s, K(1));
}
/* tanh(softplus(x)) = e (e + 2) / (e (e + 2) + 2) with e = exp(x) */
TMK_INLINE V tanh_softplus(V x)
{
    V e = m_exp(F(min)(K(20), x)), n = e * (e + 2);
    return n / (n + 2);
}
TMK_INLINE V op_mish(V x, const S *p) { return x * tanh_softplus(x); }
TMK_INLINE V op_mish_backward(V g, V x, const S *p)
{
    V t = tanh_softplus(x);
    return g * F(fma)(x * m_sigmoid(x), 1 - t * t, t);
}
TMK_INLINE V op_hardtanh_backward(V g, V x, const S *p) { return SEL(F(le)(x, K(p[0])) | F(ge)(x, K(p[1])), K(0), g); }
TMK_INLINE V op_hardsigmoid(V x, const S *p) { return F(min)(K(6), F(max)(K(0), x + 3)) / 6; }
TMK_INLINE V op_hardsigmoid_backward(V g, V x, const S *p) { return SEL(F(gt)(x, K(-3)) & F(lt)(x, K(3)), g / 6, K(0)); }
TMK_INLINE V op_hardswish(V x, const S *p) { return x * F(min)(K(6), F(max)(K(0), x + 3)) / 6; }
TMK_INLINE V op_hardswish_backward(V g, V x, const S *p)
{
    return SEL(F(le)(x, K(-3)), K(0), SEL(F(lt)(x, K(3)), g * (x / 3 + (S)0.5), g));
}
TMK_INLINE V op_softplus(V x, const S *p)
{
    V z = x * p[0];
    return SEL(F(gt)(z, K(p[1])), x, m_log1p(m_exp(z)) / p[0]);
}
TMK_INLINE V op_softplus_backward(V g, V x, const S *p)
{
    V t = x * p[0], z = m_exp(t);
    return SEL(F(gt)(t, K(p[1])), g, g * z / (z + 1));
}
TMK_INLINE V op_softshrink(V x, const S *p)
{
    V inner = SEL(F(isnan)(x), x, K(0));
    return SEL(F(gt)(x, K(p[0])), x - p[0], SEL(F(lt)(x, K(-p[0])), x + p[0], inner));
}
TMK_INLINE V op_hardshrink(V x, const S *p) { return SEL(F(ge)(x, K(-p[0])) & F(le)(x, K(p[0])), K(0), x); }
TMK_INLINE V op_shrink_backward(V g, V x, const S *p) { return SEL(F(ge)(x, K(-p[0])) & F(le)(x, K(p[0])), K(0), g); }
TMK_INLINE V op_threshold(V x, const S *p) { return SEL(F(le)(x, K(p[0])), K(p[1]), x); }
TMK_INLINE V op_threshold_backward(V g, V x, const S *p) { return SEL(F(le)(x, K(p[0])), K(0), g); }
TMK_INLINE V op_logsigmoid(V x, const S *p) { return F(min)(K(0), x) - m_log1p(m_exp(F(neg)(F(abs)(x)))); }
TMK_INLINE V op_logsigmoid_backward(V g, V x, const S *p) { return g * m_sigmoid(F(neg)(x)); }
TMK_INLINE V op_sigmoid_backward(V g, V y, const S *p) { return g * (1 - y) * y; }
TMK_INLINE V op_tanh_backward(V g, V y, const S *p) { return g * (1 - y * y); }

#undef K
#undef SEL
