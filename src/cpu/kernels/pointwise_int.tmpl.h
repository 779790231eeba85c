/* Pointwise kernels of one integer type or bool. The including file defines TYPE (its short name), T, UT (unsigned, at least
 * 32 bits wide, in which arithmetic wraps), SIGNED, BITS, IS_BOOL and COLUMN (its flag in pointwise.def). Runs are cut in blocks of a fixed length that the compiler turns into
 * vectors; an input that is one repeated value is copied to a block of its own, so each form has one loop. */

#define N(x) TMK_CAT3(x, _, TYPE)
#ifdef TMK_ISA_SCALAR
#define BLOCK (int)(16 / sizeof(T))
#else
#define BLOCK (int)(64 / sizeof(T))
#endif

typedef struct N(source) {
    const T *p;
    int64_t step;
    T fill[BLOCK];
} N(source);

TMK_INLINE void N(open)(N(source) *o, const char *p, int64_t step)
{
    o->p = (const T *)p;
    o->step = BLOCK;
    if (step) return;
    for (int i = 0; i < BLOCK; i++) o->fill[i] = *(const T *)p;
    o->p = o->fill;
    o->step = 0;
}
TMK_INLINE T N(param)(const tmk_params *params, int i) { return params ? (T)params->p[i].i : 0; }

TMK_INLINE void N(loop_UNARY)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T))
{
    T *y = (T *)data[0], p = N(param)(params, 0), q = N(param)(params, 1);
    N(source) a;
    N(open)(&a, data[1], steps[1]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, a.p += a.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(a.p[i], p, q);
    for (int i = 0; i < n; i++) y[i] = op(a.p[i], p, q);
}
TMK_INLINE void N(loop_BINARY)(char *const *data, const int64_t *steps, int64_t n, tmk_params *params, T (*op)(T, T, T, int *))
{
    T *y = (T *)data[0], p = N(param)(params, 0);
    int fault = 0;
    N(source) a, b;
    N(open)(&a, data[1], steps[1]);
    N(open)(&b, data[2], steps[2]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, a.p += a.step, b.p += b.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(a.p[i], b.p[i], p, &fault);
    for (int i = 0; i < n; i++) y[i] = op(a.p[i], b.p[i], p, &fault);
    if (fault && params) __atomic_store_n(&params->fault, 1, __ATOMIC_RELAXED);
}
TMK_INLINE void N(loop_EACH)(char *const *data, const int64_t *steps, int64_t n, tmk_params *params, T (*op)(T, T, T, int *))
{
    T *y = (T *)data[0];
    int fault = 0;
    for (int64_t i = 0; i < n; i++) y[i] = op(*(const T *)(data[1] + i * steps[1]), *(const T *)(data[2] + i * steps[2]), 0, &fault);
    if (fault && params) __atomic_store_n(&params->fault, 1, __ATOMIC_RELAXED);
}
TMK_INLINE void N(loop_TERNARY)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T, T))
{
    T *y = (T *)data[0], p = N(param)(params, 0);
    N(source) a, b, c;
    N(open)(&a, data[1], steps[1]);
    N(open)(&b, data[2], steps[2]);
    N(open)(&c, data[3], steps[3]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, a.p += a.step, b.p += b.step, c.p += c.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(a.p[i], b.p[i], c.p[i], p);
    for (int i = 0; i < n; i++) y[i] = op(a.p[i], b.p[i], c.p[i], p);
}
TMK_INLINE void N(loop_TEST)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, bool (*op)(T))
{
    uint8_t *y = (uint8_t *)data[0];
    N(source) a;
    N(open)(&a, data[1], steps[1]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, a.p += a.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(a.p[i]);
    for (int i = 0; i < n; i++) y[i] = op(a.p[i]);
}
TMK_INLINE void N(loop_COMPARE)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, bool (*op)(T, T, const tmk_params *))
{
    uint8_t *y = (uint8_t *)data[0];
    N(source) a, b;
    N(open)(&a, data[1], steps[1]);
    N(open)(&b, data[2], steps[2]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, a.p += a.step, b.p += b.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(a.p[i], b.p[i], params);
    for (int i = 0; i < n; i++) y[i] = op(a.p[i], b.p[i], params);
}
TMK_INLINE void N(loop_WHERE)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(bool, T, T))
{
    T *y = (T *)data[0];
    const uint8_t *c = (const uint8_t *)data[1];
    uint8_t fill[BLOCK];
    if (!steps[1]) c = memset(fill, *c, BLOCK);
    int64_t step = steps[1] ? BLOCK : 0;
    N(source) a, b;
    N(open)(&a, data[2], steps[2]);
    N(open)(&b, data[3], steps[3]);
    for (; n >= BLOCK; n -= BLOCK, y += BLOCK, c += step, a.p += a.step, b.p += b.step)
        TMK_IVDEP
        for (int i = 0; i < BLOCK; i++) y[i] = op(c[i] != 0, a.p[i], b.p[i]);
    for (int i = 0; i < n; i++) y[i] = op(c[i] != 0, a.p[i], b.p[i]);
}
TMK_INLINE void N(loop_PART)(char *const *data, const int64_t *steps, int64_t n, const tmk_params *params, T (*op)(T, T, T))
{
    N(loop_UNARY)(data, steps, n, params, op);
}

TMK_INLINE bool N(negative)(T a)
{
#if SIGNED
    return a < 0;
#else
    (void)a;
    return false;
#endif
}

/* ---- arithmetic; bool computes as PyTorch does: sum is or, product is and */
TMK_INLINE T N(op_add)(T a, T b, T p, int *fault) { return IS_BOOL ? (T)(a | b) : (T)((UT)a + (UT)b); }
TMK_INLINE T N(op_add_scaled)(T a, T b, T p, int *fault) { return IS_BOOL ? (T)(a | (b & p)) : (T)((UT)a + (UT)b * (UT)p); }
TMK_INLINE T N(op_sub)(T a, T b, T p, int *fault) { return (T)((UT)a - (UT)b); }
TMK_INLINE T N(op_mul)(T a, T b, T p, int *fault) { return (T)((UT)a * (UT)b); }
/* C's quotient, with what would trap put aside: a zero divisor is reported, the most negative number over -1 wraps. */
TMK_INLINE T N(quotient)(T a, T b, int *fault)
{
    if (b == 0) {
        *fault = 1;
        return 0;
    }
    if (SIGNED && b == (T)-1) return (T)(0 - (UT)a);
    return (T)(a / b);
}
TMK_INLINE T N(op_div_trunc)(T a, T b, T p, int *fault) { return N(quotient)(a, b, fault); }
TMK_INLINE T N(op_fmod)(T a, T b, T p, int *fault) { return (T)((UT)a - (UT)N(quotient)(a, b, fault) * (UT)b); }
TMK_INLINE T N(op_div_floor)(T a, T b, T p, int *fault)
{
    T q = N(quotient)(a, b, fault), r = (T)((UT)a - (UT)q * (UT)b);
    return r != 0 && N(negative)(r) != N(negative)(b) ? (T)(q - 1) : q;
}
TMK_INLINE T N(op_remainder)(T a, T b, T p, int *fault)
{
    T r = N(op_fmod)(a, b, p, fault);
    return r != 0 && N(negative)(r) != N(negative)(b) ? (T)(r + b) : r;
}
TMK_INLINE T N(op_pow)(T a, T b, T p, int *fault)
{
    if (N(negative)(b)) return a == 1 ? 1 : a == (T)-1 ? (T)(b & 1 ? -1 : 1) : 0;
    UT base = (UT)a, r = 1;
    for (UT e = (UT)b; e; e >>= 1, base *= base)
        if (e & 1) r *= base;
    return (T)r;
}
TMK_INLINE T N(op_neg)(T a, T p, T q) { return (T)(0 - (UT)a); }
TMK_INLINE T N(op_abs)(T a, T p, T q) { return N(negative)(a) ? (T)(0 - (UT)a) : a; }
TMK_INLINE T N(op_sign)(T a, T p, T q) { return (T)((a != 0) - 2 * N(negative)(a)); }
TMK_INLINE T N(op_sgn)(T a, T p, T q) { return N(op_sign)(a, p, q); }
TMK_INLINE T N(op_square)(T a, T p, T q) { return (T)((UT)a * (UT)a); }
TMK_INLINE T N(op_cube)(T a, T p, T q) { return (T)((UT)a * (UT)a * (UT)a); }
TMK_INLINE T N(op_maximum)(T a, T b, T p, int *fault) { return a > b ? a : b; }
TMK_INLINE T N(op_minimum)(T a, T b, T p, int *fault) { return a < b ? a : b; }
TMK_INLINE T N(op_fmax)(T a, T b, T p, int *fault) { return a > b ? a : b; }
TMK_INLINE T N(op_fmin)(T a, T b, T p, int *fault) { return a < b ? a : b; }
TMK_INLINE T N(op_clamp)(T a, T lo, T hi)
{
    T t = a < lo ? lo : a;
    return t > hi ? hi : t;
}
TMK_INLINE T N(op_clamp_min)(T a, T lo, T q) { return a < lo ? lo : a; }
TMK_INLINE T N(op_clamp_max)(T a, T hi, T q) { return a > hi ? hi : a; }
TMK_INLINE T N(op_clamp_tensor)(T a, T lo, T hi, T p) { return N(op_clamp)(a, lo, hi); }
TMK_INLINE T N(op_addcmul)(T a, T b, T c, T p) { return (T)((UT)a + (UT)p * (UT)b * (UT)c); }
TMK_INLINE T N(op_heaviside)(T a, T b, T p, int *fault) { return a == 0 ? b : (T)(a > 0); }
TMK_INLINE T N(op_gcd)(T a, T b, T p, int *fault)
{
    a = N(op_abs)(a, 0, 0);
    b = N(op_abs)(b, 0, 0);
    while (b) {
        T r = (T)((UT)a % (UT)b);
        a = b;
        b = r;
    }
    return a;
}
TMK_INLINE T N(op_lcm)(T a, T b, T p, int *fault)
{
    T g = N(op_gcd)(a, b, p, fault);
    return g == 0 ? 0 : N(op_abs)((T)((UT)(a / g) * (UT)b), 0, 0);
}
TMK_INLINE T N(op_conj)(T a, T p, T q) { return a; }
TMK_INLINE T N(op_ceil)(T a, T p, T q) { return a; }
TMK_INLINE T N(op_floor)(T a, T p, T q) { return a; }
TMK_INLINE T N(op_round)(T a, T p, T q) { return a; }
TMK_INLINE T N(op_trunc)(T a, T p, T q) { return a; }
TMK_INLINE T N(op_relu)(T a, T p, T q) { return a > 0 ? a : 0; }
TMK_INLINE T N(op_threshold)(T a, T p, T q) { return a <= p ? q : a; }
TMK_INLINE T N(op_threshold_backward)(T g, T a, T p, int *fault) { return a <= p ? 0 : g; }

/* ---- comparison, logic, bits */
TMK_INLINE bool N(op_eq)(T a, T b, const tmk_params *params) { return a == b; }
TMK_INLINE bool N(op_ne)(T a, T b, const tmk_params *params) { return a != b; }
TMK_INLINE bool N(op_lt)(T a, T b, const tmk_params *params) { return a < b; }
TMK_INLINE bool N(op_le)(T a, T b, const tmk_params *params) { return a <= b; }
TMK_INLINE bool N(op_gt)(T a, T b, const tmk_params *params) { return a > b; }
TMK_INLINE bool N(op_ge)(T a, T b, const tmk_params *params) { return a >= b; }
TMK_INLINE bool N(op_logical_and)(T a, T b, const tmk_params *params) { return (a != 0) & (b != 0); }
TMK_INLINE bool N(op_logical_or)(T a, T b, const tmk_params *params) { return (a != 0) | (b != 0); }
TMK_INLINE bool N(op_logical_xor)(T a, T b, const tmk_params *params) { return (a != 0) ^ (b != 0); }
TMK_INLINE bool N(op_logical_not)(T a) { return a == 0; }
TMK_INLINE bool N(op_isnan)(T a) { return false; }
TMK_INLINE bool N(op_isinf)(T a) { return false; }
TMK_INLINE bool N(op_isfinite)(T a) { return true; }
TMK_INLINE bool N(op_isposinf)(T a) { return false; }
TMK_INLINE bool N(op_isneginf)(T a) { return false; }
TMK_INLINE bool N(op_signbit)(T a) { return N(negative)(a); }
TMK_INLINE T N(op_bitwise_and)(T a, T b, T p, int *fault) { return (T)(a & b); }
TMK_INLINE T N(op_bitwise_or)(T a, T b, T p, int *fault) { return (T)(a | b); }
TMK_INLINE T N(op_bitwise_xor)(T a, T b, T p, int *fault) { return (T)(a ^ b); }
TMK_INLINE T N(op_bitwise_not)(T a, T p, T q) { return IS_BOOL ? (T)!a : (T)~a; }
/* A shift by a negative number or by more than there are bits: what is left of the number is its sign. */
TMK_INLINE T N(op_shift_left)(T a, T b, T p, int *fault) { return N(negative)(b) || b >= BITS ? 0 : (T)((UT)a << b); }
TMK_INLINE T N(op_shift_right)(T a, T b, T p, int *fault)
{
    if (N(negative)(b) || b >= BITS) return SIGNED ? (T)(a >> (BITS - 1)) : 0;
    return (T)(a >> b);
}
TMK_INLINE T N(op_where)(bool c, T a, T b) { return c ? a : b; }
/* |a - b| <= atol + |rtol b|, in double as the tolerances are. */
TMK_INLINE bool N(op_isclose)(T a, T b, const tmk_params *params)
{
    return a == b || fabs((double)a - (double)b) <= params->p[1].f + fabs(params->p[0].f * (double)b);
}

#define LOOP(form) N(loop_##form)
#define OPERATOR(name) N(op_##name)
#define TMK_KERNEL(name) TMK_CAT3(tmk_##name, _, TMK_CAT3(TYPE, _, TMK_ISA))
#define KERNEL_TABLE TMK_CAT3(tmk_loops_, TYPE, TMK_CAT3(_, , TMK_ISA))
#include "table.tmpl.h"

#undef N
#undef BLOCK
#undef TYPE
#undef T
#undef UT
#undef SIGNED
#undef BITS
#undef IS_BOOL
