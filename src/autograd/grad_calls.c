/* The few operators that the tape itself needs, called by name through the boxed convention, so that they record (create_graph), and are
 * seen by modes, like any other call. */
#include "api.h"

typedef enum which { ADD, CLONE, CAST, REAL, SUM, FULL, ONES_LIKE, AS_STRIDED, COPY, ZERO, VIEW, ISNAN, ANY, N_WHICH } which;

static const struct { const char *name, *overload; } names[N_WHICH] = {
    [ADD] = {"add", "Tensor"}, [CLONE] = {"clone", ""}, [CAST] = {"_to_copy", ""}, [REAL] = {"real", ""}, [SUM] = {"sum", "dim_IntList"},
    [FULL] = {"full", ""}, [ONES_LIKE] = {"ones_like", ""}, [AS_STRIDED] = {"as_strided", ""}, [COPY] = {"copy_", ""}, [ZERO] = {"zero_", ""}, [VIEW] = {"reshape", ""},
    [ISNAN] = {"isnan", ""}, [ANY] = {"any", ""}};

static const tmi_op *_Atomic found[N_WHICH];

static const tmi_op *op_of(which w)
{
    const tmi_op *op = atomic_load_explicit(&found[w], memory_order_relaxed);
    if (op) return op;
    op = tmi_op_find(names[w].name, names[w].overload);
    if (!op) tmi_fail(TM_INTERNAL, "autograd needs the operator %s.%s, which this build has not", names[w].name, names[w].overload);
    atomic_store_explicit(&found[w], op, memory_order_relaxed);
    return op;
}

/* args[n_args] begins with `given` values; defaults fill the rest. */
static void fill_defaults(const tmi_op *op, tmi_value *args, int given)
{
    for (int i = given; i < op->n_args; i++) args[i] = op->args[i].has_default ? op->args[i].def : tmi_v_none();
}

static void set_named(const tmi_op *op, tmi_value *args, const char *name, tmi_value v)
{
    for (int i = 0; i < op->n_args; i++)
        if (strcmp(op->args[i].name, name) == 0) args[i] = v;
}

static tm_tensor *call(const tmi_op *op, const tmi_value *args)
{
    tmi_out out = {0};
    return tmi_call(op, args, &out, TMI_FORM_PLAIN) == TM_OK ? out.t[0] : NULL;
}

static tm_tensor *call_unary(which w, tm_tensor *t)
{
    const tmi_op *op = op_of(w);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t)};
    fill_defaults(op, args, 1);
    return call(op, args);
}

static tm_status call_inplace(which w, tm_tensor *t, tm_tensor *other)
{
    const tmi_op *op = op_of(w);
    if (!op) return tm_error_status();
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t), tmi_v_tensor(other)};
    fill_defaults(op, args, other ? 2 : 1);
    tmi_out out = {.n = 1, .t = {t}};
    return tmi_call(op, args, &out, TMI_FORM_INPLACE);
}

tm_tensor *tmi_do_add(tm_tensor *a, tm_tensor *b)
{
    const tmi_op *op = op_of(ADD);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(a), tmi_v_tensor(b)};
    fill_defaults(op, args, 2);
    return call(op, args);
}

tm_status tmi_do_add_inplace(tm_tensor *a, tm_tensor *b) { return call_inplace(ADD, a, b); }
tm_status tmi_do_copy_inplace(tm_tensor *to, tm_tensor *from) { return call_inplace(COPY, to, from); }
tm_status tmi_do_zero_inplace(tm_tensor *t) { return call_inplace(ZERO, t, NULL); }
tm_tensor *tmi_do_real(tm_tensor *t) { return call_unary(REAL, t); }

tm_tensor *tmi_do_clone(tm_tensor *t, bool contiguous)
{
    const tmi_op *op = op_of(CLONE);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t)};
    fill_defaults(op, args, 1);
    if (contiguous) set_named(op, args, "memory_format", (tmi_value){.tag = TMI_V_FORMAT, .u.i = TM_CONTIGUOUS});
    return call(op, args);
}

static tm_tensor *convert(tm_tensor *t, const char *what, tmi_value v)
{
    const tmi_op *op = op_of(CAST);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t)};
    fill_defaults(op, args, 1);
    set_named(op, args, what, v);
    return call(op, args);
}

tm_tensor *tmi_do_cast(tm_tensor *t, tm_dtype dtype) { return convert(t, "dtype", (tmi_value){.tag = TMI_V_DTYPE, .u.i = dtype}); }
tm_tensor *tmi_do_to_device(tm_tensor *t, tm_device device) { return convert(t, "device", (tmi_value){.tag = TMI_V_DEVICE, .u.device = device}); }

tm_tensor *tmi_do_ones_like(tm_tensor *t)
{
    if (!(t->flags & TMI_INTERCEPTED)) return tmi_do_full(t->ndim, t->sizes, (tm_dtype)t->dtype, t->device, 1);
    const tmi_op *op = op_of(ONES_LIKE);   /* a wrapper's gradient is a wrapper: let its layer make it */
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t)};
    fill_defaults(op, args, 1);
    return call(op, args);
}

tm_tensor *tmi_do_full(int ndim, const int64_t *sizes, tm_dtype dtype, tm_device device, double value)
{
    if (ndim == 0 && device.type == TM_CPU && !(tmi_tls.modes & ~(uint32_t)TMI_MODE_BELOW_AUTOGRAD))
        return tmi_scalar_tensor(tm_f64(value), dtype, false);   /* the seed of nearly every pass */
    const tmi_op *op = op_of(FULL);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_ints(sizes, ndim), tmi_v_scalar(tm_f64(value))};
    fill_defaults(op, args, 2);
    set_named(op, args, "dtype", (tmi_value){.tag = TMI_V_DTYPE, .u.i = dtype});
    set_named(op, args, "device", (tmi_value){.tag = TMI_V_DEVICE, .u.device = device});
    return call(op, args);
}

tm_tensor *tmi_do_as_strided(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    const tmi_op *op = op_of(AS_STRIDED);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t), tmi_v_ints(sizes, ndim), tmi_v_ints(strides, ndim), tmi_v_int(offset)};
    fill_defaults(op, args, 4);
    return call(op, args);
}

static tm_tensor *sum_dims(tm_tensor *t, const tm_int *dims, int n)
{
    const tmi_op *op = op_of(SUM);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t), tmi_v_ints(dims, n), tmi_v_bool(true)};
    fill_defaults(op, args, 3);
    return call(op, args);
}

static tm_tensor *with_sizes(tm_tensor *t, int ndim, const int64_t *sizes)
{
    const tmi_op *op = op_of(VIEW);
    if (!op) return NULL;
    tmi_value args[TMI_MAX_ARGS] = {tmi_v_tensor(t), tmi_v_ints(sizes, ndim)};
    fill_defaults(op, args, 2);
    return call(op, args);
}

/* Sums over the dims that broadcasting from `sizes` added or widened. */
tm_tensor *tmi_do_sum_to(tm_tensor *t, int ndim, const int64_t *sizes)
{
    tm_int dims[TMI_MAX_DIMS];
    int n = 0, lead = t->ndim - ndim;
    for (int i = 0; i < t->ndim; i++)
        if (i < lead || (sizes[i - lead] == 1 && t->sizes[i] != 1)) dims[n++] = i;
    tm_tensor *s = n ? sum_dims(t, dims, n) : (tmi_retain(t), t);
    if (!s || lead == 0) return s;
    tm_tensor *r = with_sizes(s, ndim, sizes);
    tmi_release(s);
    return r;
}

tm_status tmi_do_any_nan(tm_tensor *t, bool *yes)
{
    tm_scalar s = tm_bool(false);
    bool grad_enabled = tmi_tls.grad_enabled;
    tmi_tls.grad_enabled = false;
    tm_tensor *nan = call_unary(ISNAN, t), *any = nan ? call_unary(ANY, nan) : NULL;
    tm_status status = any ? tm_tensor_item(any, &s) : tm_error_status();
    tmi_tls.grad_enabled = grad_enabled;
    tmi_release(nan);
    tmi_release(any);
    *yes = s.tag == TM_SCALAR_BOOL && s.v.b;
    return status;
}
