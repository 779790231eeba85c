/* Choice of kernel, the short way for small straight tensors, copies and fills. */
#include "pointwise.h"

#include <math.h>

#include "base/cpuinfo.h"
#include "base/pool.h"
#include "iterate.h"
#include "kernels/kernel_tables.h"

/* ---------------------------------------------------------------- tables */

typedef enum form { UNARY, BINARY, EACH, TERNARY, TEST, COMPARE, WHERE, PART, PAIR } form;

static const uint8_t forms[TMK_PW_COUNT] = {
#define P(NAME, name, form, F, I, U, B, C) form,
#include "pointwise.def"
#undef P
};
static const char *const names[TMK_PW_COUNT] = {
#define P(NAME, name, form, F, I, U, B, C) #name,
#include "pointwise.def"
#undef P
};

typedef struct tables {
    tmk_loop *const *loops[TM_DTYPE_COUNT];
    tmk_cast_fn *const (*casts)[TM_DTYPE_COUNT];
    void (*stream)(void *dst, const void *src, size_t nbytes);
} tables;

#define LOOPS(isa, ints)                                                                                              \
    {                                                                                                                 \
        .loops = {[TM_BOOL] = tmk_loops_b8_##ints, [TM_U8] = tmk_loops_u8_##ints, [TM_I8] = tmk_loops_i8_##ints,      \
                  [TM_I16] = tmk_loops_i16_##ints, [TM_I32] = tmk_loops_i32_##ints, [TM_I64] = tmk_loops_i64_##ints,  \
                  [TM_U16] = tmk_loops_u16_scalar, [TM_U32] = tmk_loops_u32_scalar, [TM_U64] = tmk_loops_u64_scalar,  \
                  [TM_F32] = tmk_loops_f32_##isa, [TM_F64] = tmk_loops_f64_##isa, [TM_C64] = tmk_loops_c64_scalar,    \
                  [TM_C128] = tmk_loops_c128_scalar},                                                                 \
        .casts = tmk_casts_##isa, .stream = tmk_stream_##isa,                                                         \
    }
static const tables all_tables[TMI_ISA_COUNT] = {
    [TMI_ISA_SCALAR] = LOOPS(scalar, scalar),
#ifdef TMK_HAVE_AVX2
    [TMI_ISA_AVX2] = LOOPS(avx2, avx2),
#endif
#ifdef TMK_HAVE_AVX512
    [TMI_ISA_AVX512] = LOOPS(avx512, avx2),
#endif
#ifdef TMK_HAVE_NEON
    [TMI_ISA_NEON] = LOOPS(neon, neon),
#endif
};

static const tables *chosen;   /* every thread writes the same pointer */

static const tables *get_tables(void)
{
    const tables *t = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
    if (TMI_LIKELY(t != NULL)) return t;
    t = &all_tables[tmi_cpu()->isa];
    __atomic_store_n(&chosen, t, __ATOMIC_RELAXED);
    return t;
}

tmk_loop *tmk_pointwise_loop(int kernel, tm_dtype compute)
{
    tmk_loop *const *loops = get_tables()->loops[compute];
    return loops ? loops[kernel] : NULL;
}

void tmk_stream(void *dst, const void *src, size_t nbytes) { get_tables()->stream(dst, src, nbytes); }

/* ---------------------------------------------------------------- conversion */

static bool small_float(tm_dtype d) { return d == TM_F16 || d == TM_BF16 || d == TM_F8_E4M3FN || d == TM_F8_E5M2; }

/* The type to go through where there is no direct conversion. */
static tm_dtype next_type(tm_dtype from, tm_dtype to)
{
    if (small_float(from) || small_float(to)) return from == TM_C128 ? TM_F64 : TM_F32;
    if (from == TM_C64 || to == TM_C64) return TM_F32;
    return TM_F64;
}

void tmk_cast(void *dst, tm_dtype to, const void *src, tm_dtype from, int64_t n)
{
    tmk_cast_fn *const (*casts)[TM_DTYPE_COUNT] = get_tables()->casts;
    if (from == to) {
        if (dst != src) memcpy(dst, src, (size_t)n * tmi_dtype_size(to));
        return;
    }
    tmk_cast_fn *direct = casts[from][to];
    if (direct) {
        direct(dst, src, n);
        return;
    }
    tm_dtype middle = next_type(from, to);
    _Alignas(64) char tile[2048];
    int64_t step = (int64_t)(sizeof tile / tmi_dtype_size(middle));
    for (int64_t i = 0; i < n; i += step) {
        int64_t m = n - i < step ? n - i : step;
        casts[from][middle](tile, (const char *)src + i * (int64_t)tmi_dtype_size(from), m);
        tmk_cast((char *)dst + i * (int64_t)tmi_dtype_size(to), to, tile, middle, m);
    }
}

/* ---------------------------------------------------------------- types of operands */

static tm_dtype compute_type(tm_dtype common) { return common == TM_F16 || common == TM_BF16 ? TM_F32 : common; }

static tm_dtype output_type(int kernel, tm_dtype compute)
{
    switch (forms[kernel]) {
    case TEST:
    case COMPARE: return TM_BOOL;
    case PART: return compute == TM_C64 ? TM_F32 : compute == TM_C128 ? TM_F64 : compute;
    case PAIR: return compute == TM_F32 ? TM_C64 : TM_C128;
    default: return compute;
    }
}
static tm_dtype input_type(int kernel, int k, tm_dtype compute) { return forms[kernel] == WHERE && k == 0 ? TM_BOOL : compute; }

typedef union number {
    _Alignas(16) char bytes[16];
    double f;
} number;

static void set_param(tmk_param *p, tm_dtype compute, tm_scalar s)
{
    p->im = 0;
    if (tmi_is_float(compute)) {
        p->f = tmi_scalar_f64(s);
    } else if (tmi_is_complex(compute)) {
        p->f = tmi_scalar_f64(s);
        if (s.tag == TM_SCALAR_C128) p->im = s.v.c.im;
    } else {
        p->i = tmi_scalar_i64(s);
    }
}

/* ---------------------------------------------------------------- memory that overlaps */

static bool dense(const tm_tensor *t) { return tmi_contiguous(t) || tmi_is_non_overlapping_and_dense(t); }

/* True where `out` and `in` share memory but are not the same elements in the same order. Undecided for tensors with holes, as in PyTorch. */
static bool partly_overlaps(const tm_tensor *out, const tm_tensor *in)
{
    if (out == in || out->storage != in->storage || !dense(out) || !dense(in)) return false;
    const char *a = tmi_data(out), *b = tmi_data(in);
    const char *a_end = a + out->numel * (int64_t)tmi_dtype_size(out->dtype), *b_end = b + in->numel * (int64_t)tmi_dtype_size(in->dtype);
    if (a == b && a_end == b_end) {
        if (tmi_contiguous(out) && tmi_contiguous(in)) return false;
        return out->ndim != in->ndim || memcmp(out->strides, in->strides, (size_t)out->ndim * sizeof *out->strides) != 0;
    }
    return a < b_end && b < a_end;
}
static tm_status check_memory(const tm_tensor *out, int n, const tmi_operand *in)
{
    TMI_REQUIRE(tmi_contiguous(out) || !tmi_overlaps_itself(out), TM_INVALID,
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the "
                "tensor before performing the operation.");
    for (int k = 0; k < n; k++)
        TMI_REQUIRE(!in[k].t || !partly_overlaps(out, in[k].t), TM_INVALID,
                    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
                    "Please clone() the tensor before performing the operation.");
    return TM_OK;
}

/* ---------------------------------------------------------------- kernels with cheaper relatives, and what PyTorch refuses */

static bool is_number(tm_scalar s, double x) { return s.tag != TM_SCALAR_C128 && tmi_scalar_f64(s) == x; }

static bool is_bool(const tmi_operand *o) { return o->t ? o->t->dtype == TM_BOOL : o->s.tag == TM_SCALAR_BOOL; }

static tm_status check_alpha(tm_dtype common, tm_scalar alpha)
{
    TMI_REQUIRE(alpha.tag != TM_SCALAR_BOOL || common == TM_BOOL, TM_INVALID, "Boolean alpha only supported for Boolean results.");
    TMI_REQUIRE(tmi_is_float(common) || tmi_is_complex(common) || (alpha.tag != TM_SCALAR_F64 && alpha.tag != TM_SCALAR_C128), TM_INVALID,
                "For integral input tensors, argument alpha must not be a floating point number.");
    TMI_REQUIRE(tmi_is_complex(common) || alpha.tag != TM_SCALAR_C128, TM_INVALID,
                "For non-complex input tensors, argument alpha must not be a complex number.");
    return TM_OK;
}
static tm_scalar negative(tm_scalar s)
{
    switch (s.tag) {
    case TM_SCALAR_BOOL: return tm_i64(-(int64_t)s.v.b);
    case TM_SCALAR_F64: return tm_f64(-s.v.f);
    case TM_SCALAR_C128: return tm_c128(-s.v.c.re, -s.v.c.im);
    default: return tm_i64((int64_t)(0 - (uint64_t)s.v.i));
    }
}

/* A call being prepared: kernel and numbers may still change. */
typedef struct call {
    int kernel, n_in;
    tm_dtype common;
    int n_params;
    tm_scalar params[TMK_MAX_PARAMS];
} call;

static tm_status prepare_sum(call *c, const tmi_operand *in)
{
    if (c->kernel == TMK_PW_SUB) {
        bool a = is_bool(&in[0]), b = is_bool(&in[1]);
        TMI_REQUIRE(!(a && b), TM_INVALID,
                    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.");
        TMI_REQUIRE(!(a || b), TM_INVALID,
                    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
                    "`logical_not()` operator instead.");
    }
    if (c->n_params == 0) return TM_OK;
    TMI_TRY(check_alpha(c->common, c->params[0]));
    if (is_number(c->params[0], 1)) {
        c->n_params = 0;
        return TM_OK;
    }
    if (c->kernel == TMK_PW_SUB) c->params[0] = negative(c->params[0]);
    c->kernel = TMK_PW_ADD_SCALED;
    return TM_OK;
}
static tm_status prepare_power(call *c, tm_scalar exponent)
{
    bool whole = !tmi_is_float(c->common) && !tmi_is_complex(c->common);
    TMI_REQUIRE(!whole || tmi_scalar_f64(exponent) >= 0, TM_INVALID, "Integers to negative integer powers are not allowed.");
    int to = is_number(exponent, 2) ? TMK_PW_SQUARE : is_number(exponent, 3) ? TMK_PW_CUBE : TMK_PW_POW;
    if (!whole && to == TMK_PW_POW)
        to = is_number(exponent, 0.5)    ? TMK_PW_SQRT
             : is_number(exponent, -0.5) ? TMK_PW_RSQRT
             : is_number(exponent, -1)   ? TMK_PW_RECIPROCAL
                                         : TMK_PW_POW;
    if (to != TMK_PW_POW) c->n_in = 1;
    c->kernel = to;
    return TM_OK;
}
static tm_status prepare(call *c, const tmi_operand *in)
{
    switch (c->kernel) {
    case TMK_PW_ADD:
    case TMK_PW_SUB: return prepare_sum(c, in);
    case TMK_PW_POW: return in[1].t ? TM_OK : prepare_power(c, in[1].s);
    default: return TM_OK;
    }
}
/* Operators whose result PyTorch does not convert to another type of `out`. */
static tm_status check_output_type(int kernel, tm_dtype common, tm_dtype got)
{
    tm_dtype wanted = output_type(kernel, common);
    if (TMI_LIKELY(got == wanted)) return TM_OK;
    switch (kernel) {
    case TMK_PW_ABS:
    case TMK_PW_CEIL:
    case TMK_PW_FLOOR:
    case TMK_PW_ROUND:
    case TMK_PW_ROUND_DECIMALS:
    case TMK_PW_TRUNC:
    case TMK_PW_SIGN:
    case TMK_PW_NEG:
    case TMK_PW_BITWISE_NOT:
    case TMK_PW_GELU:
    case TMK_PW_GELU_TANH:
    case TMK_PW_SOFTPLUS:
    case TMK_PW_FRAC:
    case TMK_PW_CONJ:
        return tmi_fail(TM_INVALID, "Found dtype %s but expected %s", tmi_dtypes[got].type_name, tmi_dtypes[wanted].type_name);
    case TMK_PW_WHERE:
        return tmi_fail(TM_INVALID, "Expected out type to be %s but got %s", tmi_dtypes[wanted].type_name, tmi_dtypes[got].type_name);
    case TMK_PW_NAN_TO_NUM:
        return tmi_fail(TM_INVALID, "nan_to_num: dtype of out: %s should be same as input: %s", tmi_dtypes[got].type_name, tmi_dtypes[wanted].type_name);
    case TMK_PW_ISPOSINF:
    case TMK_PW_ISNEGINF:
        return tmi_fail(TM_INVALID, "%s does not support non-boolean outputs.", names[kernel]);
    default: return TM_OK;
    }
}
static bool clamps_to_nan(const call *c)
{
    if (c->kernel != TMK_PW_CLAMP && c->kernel != TMK_PW_CLAMP_MIN && c->kernel != TMK_PW_CLAMP_MAX) return false;
    for (int i = 0; i < c->n_params; i++)
        if (tmi_scalar_f64(c->params[i]) != tmi_scalar_f64(c->params[i])) return true;
    return false;
}

/* ---------------------------------------------------------------- the short way */

typedef struct span {
    tmk_loop *loop;
    const tmk_params *params;
    int n;
    char *data[TMK_MAX_OPERANDS];
    int64_t steps[TMK_MAX_OPERANDS];
} span;

static void run_span(void *ctx, int64_t begin, int64_t end)
{
    const span *s = ctx;
    char *data[TMK_MAX_OPERANDS];
    for (int k = 0; k < s->n; k++) data[k] = s->data[k] + begin * s->steps[k];
    s->loop(data, s->steps, end - begin, s->params);
}

/* One value that is repeated: in the native type at `to`. */
static void load_number(number *to, const tmi_operand *in, tm_dtype native)
{
    if (in->t) tmk_cast(to->bytes, native, tmi_data(in->t), in->t->dtype, 1);
    else tmi_store_scalar(to->bytes, native, in->s);
}

/* Results in f32 of a call in f16 or bf16. */
static bool rounds(const call *c, tm_dtype compute) { return compute != c->common && output_type(c->kernel, compute) == compute; }

/* All operands straight, or one value, and in the loop's own types: one call of the loop. False where that is not so. */
static bool run_straight(tmk_loop *loop, const call *c, const tmi_operand *in, tm_tensor *out, tm_dtype compute, const tmk_params *params)
{
    span s;
    s.loop = loop;
    s.params = params;
    s.n = c->n_in + 1;
    number numbers[TMK_MAX_OPERANDS];
    int64_t bytes = (int64_t)tmi_dtype_size(out->dtype);
    if (!tmi_contiguous(out) || out->dtype != output_type(c->kernel, compute) || rounds(c, compute)) return false;
    s.data[0] = tmi_data(out);
    s.steps[0] = bytes;
    for (int k = 0; k < c->n_in; k++) {
        const tm_tensor *t = in[k].t;
        tm_dtype native = input_type(c->kernel, k, compute);
        if (t && t->numel == out->numel && t->dtype == native && tmi_contiguous(t)) {
            s.data[k + 1] = tmi_data(t);
            s.steps[k + 1] = (int64_t)tmi_dtype_size(native);
            bytes += s.steps[k + 1];
        } else if (!t || t->numel == 1) {
            load_number(&numbers[k], &in[k], native);
            s.data[k + 1] = numbers[k].bytes;
            s.steps[k + 1] = 0;
        } else {
            return false;
        }
    }
    int64_t grain = tmi_grain(bytes);
    if (out->numel <= grain) loop(s.data, s.steps, out->numel, params);
    else if (out->numel * s.steps[0] >= tmk_stream_from()) return false;
    else tmi_parallel_for(out->numel, grain, run_span, &s);
    return true;
}

static void run_walk(tmk_loop *loop, const call *c, const tmi_operand *in, tm_tensor *out, tm_dtype compute, const tmk_params *params)
{
    tmk_walk w;
    number numbers[TMK_MAX_OPERANDS];
    w.loop = loop;
    w.params = params;
    w.n_operands = c->n_in + 1;
    w.in_place = false;
    tmk_walk_output(&w, out, output_type(c->kernel, compute));
    if (rounds(c, compute)) w.operand[0].rounded = (uint8_t)c->common;
    for (int k = 0; k < c->n_in; k++) {
        const tm_tensor *t = in[k].t;
        tm_dtype native = input_type(c->kernel, k, compute);
        if (t && t->numel != 1) {
            tmk_walk_input(&w, k + 1, t, native);
            w.in_place |= t->storage == out->storage;
        } else {
            load_number(&numbers[k], &in[k], native);
            tmk_walk_number(&w, k + 1, numbers[k].bytes, native);
        }
    }
    tmk_walk_run(&w);
}

/* No loop for this dtype, in PyTorch's words. */
static tm_status unsupported(int kernel, tm_dtype dtype)
{
    TMI_REQUIRE(kernel != TMK_PW_NEG || dtype != TM_BOOL, TM_INVALID, "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead.");
    const char *name = kernel == TMK_PW_SHIFT_LEFT ? "lshift" : kernel == TMK_PW_SHIFT_RIGHT ? "rshift" : names[kernel];
    return tmi_fail(TM_NOT_IMPLEMENTED, "\"%s_cpu\" not implemented for '%s'", name, tmi_dtypes[dtype].type_name);
}

/* ---------------------------------------------------------------- entry points */

tm_status tmk_pointwise(int kernel, int n_in, const tmi_operand *in, int n_out, tm_tensor *const *outs, tm_dtype common,
                        const tm_scalar *params, int n_params)
{
    tm_tensor *out = outs[0];
    call c;
    c.kernel = kernel;
    c.n_in = n_in;
    c.common = common;
    c.n_params = n_params;
    for (int i = 0; i < n_params; i++) c.params[i] = params[i];
    TMI_TRY(prepare(&c, in));
    tm_dtype compute = compute_type(common);
    tmk_loop *loop = tmk_pointwise_loop(c.kernel, compute);
    if (TMI_UNLIKELY(loop == NULL)) return unsupported(c.kernel, common);
    TMI_TRY(check_output_type(c.kernel, common, out->dtype));
    TMI_TRY(check_memory(out, n_in, in));
    if (out->numel == 0) return TM_OK;
    if (clamps_to_nan(&c)) return tmk_fill(out, tm_f64(NAN));
    tmk_params p;
    p.fault = 0;
    for (int i = 0; i < c.n_params; i++) set_param(&p.p[i], compute, c.params[i]);
    if (!run_straight(loop, &c, in, out, compute, &p)) run_walk(loop, &c, in, out, compute, &p);
    TMI_REQUIRE(!p.fault, TM_INVALID, "ZeroDivisionError");
    return TM_OK;
}

/* The loop of a copy: types are the same on both sides, p[0].i is the element size. */
static void copy_loop(char *const *data, const int64_t *steps, int64_t n, const void *params)
{
    int64_t item = ((const tmk_params *)params)->p[0].i;
    char *d = data[0];
    if (steps[1] || n == 1) {
        memcpy(d, data[1], (size_t)(n * item));
        return;
    }
    if (item == 1) {
        memset(d, *data[1], (size_t)n);
        return;
    }
    memcpy(d, data[1], (size_t)item);
    int64_t done = 1;
    for (; done * 2 <= n && done * item < 2048; done *= 2) memcpy(d + done * item, d, (size_t)(done * item));
    for (; done < n;) {
        int64_t m = done * item > 2048 ? 2048 / item : done;
        if (m > n - done) m = n - done;
        memcpy(d + done * item, d, (size_t)(m * item));
        done += m;
    }
}

tm_status tmk_copy(tm_tensor *dst, const tm_tensor *src)
{
    tmi_operand in = {.t = src};
    if (dst == src || dst->numel == 0) return TM_OK;
    int64_t bytes = dst->numel * (int64_t)tmi_dtype_size(dst->dtype);
    bool straight = tmi_contiguous(dst) && tmi_contiguous(src) && dst->numel == src->numel;
    if (straight && dst->dtype == src->dtype && tmi_data(dst) == tmi_data(src)) return TM_OK;
    TMI_TRY(check_memory(dst, 1, &in));
    if (straight && bytes <= (64 << 10)) {
        tmk_cast(tmi_data(dst), dst->dtype, tmi_data(src), src->dtype, dst->numel);
        return TM_OK;
    }
    tmk_params p = {.p[0].i = (int64_t)tmi_dtype_size(dst->dtype)};
    tmk_walk w;
    w.loop = copy_loop;
    w.params = &p;
    w.n_operands = 2;
    w.in_place = src->storage == dst->storage;
    tmk_walk_output(&w, dst, dst->dtype);
    tmk_walk_input(&w, 1, src, dst->dtype);
    tmk_walk_run(&w);
    return TM_OK;
}

tm_status tmk_fill(tm_tensor *dst, tm_scalar value)
{
    TMI_TRY(check_memory(dst, 0, NULL));
    if (dst->numel == 0) return TM_OK;
    number x;
    tmk_params p = {.p[0].i = (int64_t)tmi_dtype_size(dst->dtype)};
    tmi_store_scalar(x.bytes, dst->dtype, value);
    if (tmi_contiguous(dst) && dst->numel * p.p[0].i <= (64 << 10)) {
        char *data[2] = {tmi_data(dst), x.bytes};
        int64_t steps[2] = {p.p[0].i, 0};
        copy_loop(data, steps, dst->numel, &p);
        return TM_OK;
    }
    tmk_walk w;
    w.loop = copy_loop;
    w.params = &p;
    w.n_operands = 2;
    w.in_place = false;
    tmk_walk_output(&w, dst, dst->dtype);
    tmk_walk_number(&w, 1, x.bytes, dst->dtype);
    tmk_walk_run(&w);
    return TM_OK;
}
