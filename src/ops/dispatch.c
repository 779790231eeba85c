/* A call's way from boxed arguments to a kernel or a body. See op.h for the picture and docs/tour.md for the words. */
#include "op_ids.h"
#include "boxing.h"
#include "resize.h"

const tmi_device_ops *tmi_devices[TM_DEVICE_TYPE_COUNT];
tmi_call_layers tmi_layers;

/* ---------------------------------------------------------------- arguments */

/* Flags of all tensor arguments together. */
static uint32_t tensor_flags(const tmi_op *op, const tmi_value *args)
{
    uint32_t flags = 0;
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        const tmi_value *v = &args[__builtin_ctz(left)];
        if (v->tag == TMI_V_TENSOR) {
            flags |= v->u.t->flags;
        } else if (v->tag == TMI_V_TENSORS) {
            for (uint32_t i = 0; i < v->len; i++)
                if (v->u.tensors[i]) flags |= v->u.tensors[i]->flags;
        }
    }
    return flags;
}

static const char *device_name(tm_device d) { return d.type == TM_META ? "meta" : "cpu"; }

typedef struct { const tm_tensor *first, *scalar; } operands;

static tm_status meet(const tmi_op *op, const tm_tensor *t, operands *seen)
{
    if (t->ndim == 0 && t->device.type == TM_CPU) {
        if (!seen->scalar) seen->scalar = t;
        return TM_OK;
    }
    if (!seen->first) {
        seen->first = t;
    } else if (TMI_UNLIKELY(seen->first->device.type != t->device.type) && !(op->flags & TMI_OP_MIXED_DEVICE)) {
        return tmi_fail(TM_INVALID, "Tensor on device %s is not on the expected device %s!",
                        device_name(seen->first->device.type == TM_META ? seen->first->device : t->device),
                        device_name(seen->first->device.type == TM_META ? t->device : seen->first->device));
    }
    return TM_OK;
}

/* The tensor whose device and dtype the results start from; tensors with dims decide before 0-dim ones. */
static tm_status leading_tensor(const tmi_op *op, const tmi_value *args, const tm_tensor **out)
{
    operands seen = {NULL, NULL};
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        const tmi_value *v = &args[__builtin_ctz(left)];
        if (v->tag == TMI_V_TENSOR) {
            TMI_TRY(meet(op, v->u.t, &seen));
        } else if (v->tag == TMI_V_TENSORS) {
            for (uint32_t i = 0; i < v->len; i++)
                if (v->u.tensors[i]) TMI_TRY(meet(op, v->u.tensors[i], &seen));
        }
    }
    *out = seen.first ? seen.first : seen.scalar;
    return TM_OK;
}

static tm_device call_device(const tmi_op *op, const tmi_value *args, const tm_tensor *lead)
{
    if (op->flags & TMI_OP_FACTORY) {
        for (int i = 0; i < op->n_args; i++)
            if (args[i].tag == TMI_V_DEVICE) return args[i].u.device;
    }
    return lead ? lead->device : (tm_device){TM_CPU, -1};
}

/* ---------------------------------------------------------------- outputs */

static tm_dtype first_dtype(const tmi_op *op, const tmi_value *args, const tm_tensor *lead)
{
    if (!lead) return tm_get_default_dtype();
    const tm_tensor *self = op->tensor_args & 1 ? tmi_as_tensor(&args[0]) : NULL;
    return self ? self->dtype : lead->dtype;
}

static void preset(tmi_meta *m, int n, tm_dtype dtype, tm_device device)
{
    for (int i = 0; i < n; i++) {
        m[i].kind = TMI_META_NEW;
        m[i].dtype = (uint8_t)dtype;
        m[i].contiguous = true;
        m[i].device = device;
        m[i].ndim = 0;
        m[i].base = NULL;
        m[i].offset = 0;
    }
}

static tm_tensor *materialize(const tmi_meta *m)
{
    tm_tensor *t = NULL;
    switch (m->kind) {
    case TMI_META_NEW:
        t = tmi_tensor_new(m->ndim, m->sizes, m->contiguous ? NULL : m->strides, m->dtype, m->device);
        if (t && TMI_UNLIKELY(tmi_tls.inference)) t->flags |= TMI_INFERENCE;
        break;
    case TMI_META_VIEW:
        t = tmi_view_new(m->base, m->ndim, m->sizes, m->strides, m->offset);
        if (t && m->dtype != t->dtype) t->dtype = m->dtype;
        break;
    case TMI_META_SELF:
        tmi_retain(m->base);
        t = m->base;
        break;
    default:
        break;
    }
    return t;
}

static bool same_sizes(const tm_tensor *t, const tmi_meta *m)
{
    return t->ndim == m->ndim && memcmp(t->sizes, m->sizes, (size_t)m->ndim * sizeof(int64_t)) == 0;
}

static tm_status check_castable(tm_dtype from, const tm_tensor *to)
{
    if (from == to->dtype || tmi_can_cast(from, to->dtype)) return TM_OK;
    return tmi_fail(TM_INVALID, "result type %s can't be cast to the desired output type %s", tmi_dtypes[from].type_name,
                    tmi_dtypes[to->dtype].type_name);
}

static tm_status check_inplace_target(const tm_tensor *self, const tmi_meta *m)
{
    if (TMI_UNLIKELY(!same_sizes(self, m))) {
        char have[256], want[256];
        tmi_format_sizes(have, sizeof have, self->ndim, self->sizes);
        tmi_format_sizes(want, sizeof want, m->ndim, m->sizes);
        return tmi_fail(TM_SHAPE, "output with shape %s doesn't match the broadcast shape %s", have, want);
    }
    return check_castable(m->dtype, self);
}

static tm_status check_written(const tm_tensor *t)
{
    TMI_REQUIRE(!tmi_overlaps_itself(t), TM_INVALID,
                "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
                "Please clone() the tensor before performing the operation.");
    return TM_OK;
}

static bool same_view(const tm_tensor *a, const tm_tensor *b)
{
    return a->offset == b->offset && a->ndim == b->ndim && a->dtype == b->dtype &&
           memcmp(a->sizes, b->sizes, (size_t)a->ndim * 8) == 0 && memcmp(a->strides, b->strides, (size_t)a->ndim * 8) == 0;
}

/* First and one past the last byte that a view can touch. */
static void extent(const tm_tensor *t, int64_t *lo, int64_t *hi)
{
    int64_t size = (int64_t)tmi_dtype_size(t->dtype), last = 0;
    for (int i = 0; i < t->ndim; i++) last += (t->sizes[i] - 1) * t->strides[i];
    *lo = t->offset * size;
    *hi = (t->offset + last + 1) * size;
}

enum overlap { OVERLAP_NONE, OVERLAP_FULL, OVERLAP_PARTIAL };

static enum overlap overlap_of(const tm_tensor *a, const tm_tensor *b)
{
    if (a->storage != b->storage || a->numel == 0 || b->numel == 0) return OVERLAP_NONE;
    if (same_view(a, b)) return OVERLAP_FULL;
    int64_t alo, ahi, blo, bhi;
    extent(a, &alo, &ahi);
    extent(b, &blo, &bhi);
    return alo < bhi && blo < ahi ? OVERLAP_PARTIAL : OVERLAP_NONE;
}

/* How the written tensor shares memory with any input. */
static enum overlap overlap_with_inputs(const tmi_op *op, const tmi_value *args, const tm_tensor *t)
{
    enum overlap worst = OVERLAP_NONE;
    for (uint32_t left = op->tensor_args; left; left &= left - 1) {
        const tmi_value *v = &args[__builtin_ctz(left)];
        uint32_t n = v->tag == TMI_V_TENSOR ? 1 : v->tag == TMI_V_TENSORS ? v->len : 0;
        for (uint32_t i = 0; i < n; i++) {
            const tm_tensor *in = v->tag == TMI_V_TENSOR ? v->u.t : v->u.tensors[i];
            enum overlap o = in ? overlap_of(t, in) : OVERLAP_NONE;
            if (o > worst) worst = o;
        }
    }
    return worst;
}

/* ---------------------------------------------------------------- kernels */

static tm_status copy_into(tm_tensor *to, tm_tensor *from)
{
    tmi_out out = {.n = 1, .t = {to}};
    const tmi_value args[3] = {tmi_v_tensor(to), tmi_v_tensor(from), tmi_v_bool(false)};
    return tmi_call(&tmi_ops[TMI_ID_COPY_], args, &out, TMI_FORM_INPLACE);
}

static void release_outs(tm_tensor **t, int n)
{
    for (int i = 0; i < n; i++)
        if (t[i]) tmi_release(t[i]);
}

static tm_status run_plain(const tmi_op *op, const tmi_value *args, tmi_meta *m, tmi_kernel_fn *kernel, tmi_out *out)
{
    bool run = kernel != NULL && m[0].kind != TMI_META_VIEW && m[0].kind != TMI_META_SELF;
    out->n = op->n_outs;
    for (int i = 0; i < op->n_outs; i++) {
        out->t[i] = materialize(&m[i]);
        if (TMI_UNLIKELY(!out->t[i] && m[i].kind != TMI_META_DATA)) {
            release_outs(out->t, i);
            return tmi_tls.error_pending;
        }
    }
    if (op->n_outs == 0) run = kernel != NULL;
    tm_status status = run ? kernel(args, out->t) : TM_OK;
    if (TMI_UNLIKELY(status != TM_OK)) release_outs(out->t, op->n_outs);
    return status;
}

/* The output is args[0] itself, seen alike, and shares memory with no other input. */
static bool only_over_self(const tmi_op *op, const tmi_value *args, const tm_tensor *t)
{
    if (!(op->flags & TMI_OP_OVER_SELF) || args[0].tag != TMI_V_TENSOR || overlap_of(t, args[0].u.t) != OVERLAP_FULL) return false;
    tmi_value others[TMI_MAX_ARGS];
    memcpy(others, args, op->n_args * sizeof *args);
    others[0] = tmi_v_none();
    return overlap_with_inputs(op, others, t) == OVERLAP_NONE;
}

/* Writes results into tensors that exist: directly where the kernel allows it, else through a temporary. */
static tm_status run_into(const tmi_op *op, const tmi_value *args, tmi_meta *m, tmi_kernel_fn *kernel, tm_tensor **given)
{
    tm_tensor *made[TMI_MAX_OUTS], *temporary[TMI_MAX_OUTS] = {NULL};
    for (int i = 0; i < op->n_outs; i++) {
        made[i] = given[i];
        bool pointwise = op->flags & (TMI_OP_POINTWISE | TMI_OP_INPLACE_ONLY);
        bool direct = m[i].kind == TMI_META_NEW &&
                      (pointwise || (m[i].dtype == given[i]->dtype &&
                                     (overlap_with_inputs(op, args, given[i]) == OVERLAP_NONE || only_over_self(op, args, given[i]))));
        if (direct) continue;
        made[i] = temporary[i] = m[i].kind == TMI_META_DATA ? NULL : materialize(&m[i]);
        if (!made[i] && m[i].kind != TMI_META_DATA) {
            release_outs(temporary, i);
            return tmi_tls.error_pending;
        }
    }
    bool run = kernel && m[0].kind != TMI_META_VIEW && m[0].kind != TMI_META_SELF;
    tm_status status = run ? kernel(args, made) : TM_OK;
    for (int i = 0; i < op->n_outs && status == TM_OK; i++) {
        if (made[i] == given[i]) continue;
        temporary[i] = made[i];
        if (m[i].kind == TMI_META_DATA) status = tmi_resize_output(given[i], made[i]->ndim, made[i]->sizes, NULL);
        if (status == TM_OK) status = copy_into(given[i], made[i]);
    }
    release_outs(temporary, op->n_outs);
    return status;
}

static tm_status run_inplace(const tmi_op *op, const tmi_value *args, tmi_meta *m, tmi_kernel_fn *kernel, tmi_out *out)
{
    tm_tensor *self = args[0].u.t;
    out->n = 1;
    out->t[0] = self;
    if (m[0].kind == TMI_META_VIEW) return tmi_tensor_restride(self, m[0].ndim, m[0].sizes, m[0].strides, m[0].offset);
    if (m[0].kind == TMI_META_SELF && m[0].base == self) return TM_OK;
    TMI_TRY(check_inplace_target(self, &m[0]));
    TMI_TRY(check_written(self));
    if ((op->flags & TMI_OP_POINTWISE) && self->storage && overlap_with_inputs(op, args, self) == OVERLAP_PARTIAL)
        return tmi_fail(TM_INVALID, "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                                    "location. Please clone() the tensor before performing the operation.");
    return run_into(op, args, m, kernel, out->t);
}

static tm_status check_exact(const tmi_op *op, tm_dtype dtype, const tm_tensor *out)
{
    TMI_REQUIRE(!(op->flags & TMI_OP_EXACT_OUT) || out->dtype == dtype, TM_INVALID, "Expected out tensor to have dtype %s, but got %s instead",
                tmi_dtypes[dtype].type_name, tmi_dtypes[out->dtype].type_name);
    return TM_OK;
}

static tm_status check_out(const tmi_op *op, const tmi_value *args, const tmi_meta *m, tm_tensor *t)
{
    TMI_TRY(check_exact(op, (tm_dtype)m->dtype, t));
    if (m->kind == TMI_META_DATA) return check_castable(m->dtype, t);
    TMI_REQUIRE(t->device.type == m->device.type, TM_INVALID, "Expected out tensor to have device %s, but got %s instead",
                device_name(m->device), device_name(t->device));
    TMI_TRY(check_castable(m->dtype, t));
    TMI_TRY(tmi_resize_output(t, m->ndim, m->sizes, m->contiguous ? NULL : m->strides));
    TMI_TRY(check_written(t));
    bool clash = (op->flags & TMI_OP_POINTWISE) && overlap_with_inputs(op, args, t) == OVERLAP_PARTIAL;
    TMI_REQUIRE(!clash, TM_INVALID, "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
                                    "location. Please clone() the tensor before performing the operation.");
    return TM_OK;
}

static tm_status run_out(const tmi_op *op, const tmi_value *args, tmi_meta *m, tmi_kernel_fn *kernel, tmi_out *out)
{
    for (int i = 0; i < op->n_outs; i++) TMI_TRY(check_out(op, args, &m[i], out->t[i]));
    return run_into(op, args, m, kernel, out->t);
}

/* Raises the version of what was written. */
static void bump(const tmi_op *op, const tmi_value *args, const tmi_out *out, tmi_form form)
{
    if (form == TMI_FORM_INPLACE) tmi_bump_version(args[0].u.t);
    for (int i = 0; form == TMI_FORM_OUT && i < out->n; i++) tmi_bump_version(out->t[i]);
    for (uint32_t left = op->mutates & ~op->untracked; left; left &= left - 1) {
        const tmi_value *v = &args[__builtin_ctz(left)];
        if (v->tag == TMI_V_TENSOR) tmi_bump_version(v->u.t);
        for (uint32_t i = 0; v->tag == TMI_V_TENSORS && i < v->len; i++)
            if (v->u.tensors[i]) tmi_bump_version(v->u.tensors[i]);
    }
}

static tm_status run_kernel(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form, tmi_kernel_fn *kernel, const tm_tensor *lead,
                            tm_device device)
{
    tmi_meta m[TMI_MAX_OUTS];
    preset(m, op->n_outs, first_dtype(op, args, lead), device);
    if (op->shape) TMI_TRY(op->shape(args, m));
    for (int i = 0; i < op->n_outs; i++)
        TMI_REQUIRE(m[i].kind != TMI_META_DATA || kernel, TM_NOT_IMPLEMENTED,
                    "%s: the result's size depends on the data, which a meta tensor does not have", op->name);
    tm_status status = form == TMI_FORM_PLAIN     ? run_plain(op, args, m, kernel, out)
                       : form == TMI_FORM_INPLACE ? run_inplace(op, args, m, kernel, out)
                                                  : run_out(op, args, m, kernel, out);
    if (status == TM_OK && (form != TMI_FORM_PLAIN || op->mutates)) bump(op, args, out, form);
    return status;
}

/* ---------------------------------------------------------------- bodies */

static void keep_results(tmi_out *r)
{
    for (int i = 0; i < r->n; i++)
        if (r->t[i]) tmi_retain(r->t[i]);
    if (r->list) tmi_list_retain(r->list);
}

static tm_status write_results(const tmi_op *op, tmi_out *r, tm_tensor **given, int n, bool resize)
{
    tm_status status = TM_OK;
    for (int i = 0; i < n && status == TM_OK; i++) {
        status = check_castable(r->t[i]->dtype, given[i]);
        if (status == TM_OK && resize) status = check_exact(op, (tm_dtype)r->t[i]->dtype, given[i]);
        if (status == TM_OK && resize) status = tmi_resize_output(given[i], r->t[i]->ndim, r->t[i]->sizes, NULL);
        if (status == TM_OK && !resize) {
            tmi_meta m = {.ndim = r->t[i]->ndim, .dtype = r->t[i]->dtype};
            memcpy(m.sizes, r->t[i]->sizes, (size_t)m.ndim * sizeof(int64_t));
            status = check_inplace_target(given[i], &m);
        }
        if (status == TM_OK) status = copy_into(given[i], r->t[i]);
    }
    release_outs(r->t, r->n);
    return status;
}

/* A tensor that was filled in place while it was made counts as unchanged, as far as nobody has seen it in between. */
static void forget_changes(tmi_out *r)
{
    for (int i = 0; i < r->n; i++) {
        tm_tensor *t = r->t[i];
        if (t && !t->grad_meta && tmi_ref_count(t) == 1 && t->storage->refs == 1) atomic_store_explicit(t->version, 0, memory_order_relaxed);
    }
}

/* A body runs in a scope of its own, so that no early return leaks. */
static tm_status run_body(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    tmi_out r = {0};
    tm_scope *scope = tm_scope_open();
    if (!scope) return tmi_tls.error_pending;
    tm_status status = op->body(args, &r);
    if (status == TM_OK) keep_results(&r);
    tm_scope_close(scope);
    if (status != TM_OK) return status;
    if (form == TMI_FORM_PLAIN) {
        *out = r;
        forget_changes(&r);
        if (op->mutates) bump(op, args, out, form);
        return TM_OK;
    }
    if (form == TMI_FORM_INPLACE) {
        out->n = 1;
        out->t[0] = args[0].u.t;
        if (r.t[0] == out->t[0]) return tmi_release(r.t[0]), TM_OK;
    }
    return write_results(op, &r, out->t, r.n, form == TMI_FORM_OUT);
}

tm_status tmi_body_failed(void)
{
    return tmi_tls.error_pending ? (tm_status)tmi_tls.error_pending : tmi_fail(TM_INTERNAL, "a composite returned nothing and recorded no error");
}

/* ---------------------------------------------------------------- the whole way */

static bool intercepted(const tmi_op *op, const tmi_value *args)
{
    if (TMI_LIKELY(!tmi_layers.intercept)) return false;
    return (tmi_tls.modes & (TMI_MODE_INTERCEPT | TMI_MODE_CAPTURE)) || (tensor_flags(op, args) & TMI_INTERCEPTED);
}

/* A composite with neither formula nor kernel opens above interception: its parts are what is seen. */
static bool opens(const tmi_op *op) { return (op->flags & TMI_OP_TRANSPARENT) && op->body; }

tm_status tmi_run(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    if (TMI_UNLIKELY(intercepted(op, args)) && !opens(op)) return tmi_layers.intercept(op, args, out, form);
    const tm_tensor *lead;
    tm_status status = leading_tensor(op, args, &lead);
    if (TMI_LIKELY(status == TM_OK)) {
        tm_device device = call_device(op, args, lead);
        const tmi_device_ops *table = device.type < TM_DEVICE_TYPE_COUNT ? tmi_devices[device.type] : NULL;
        tmi_kernel_fn *kernel = table ? table->kernels[op->id] : NULL;
        bool shaped = device.type == TM_META ? op->shape != NULL : kernel || (op->shape && !op->body);
        if (shaped)
            status = run_kernel(op, args, out, form, kernel, lead, device);
        else if (op->body)
            status = run_body(op, args, out, form);
        else
            status = tmi_fail(TM_NOT_IMPLEMENTED, "Could not run '%s' on device %s", op->name, device_name(device));
    }
    if (TMI_UNLIKELY(status != TM_OK)) tmi_error_name_op(op->name);
    return status;
}

/* A call that nobody above the kernel is interested in. */
static bool plain(const tmi_op *op, const tmi_value *args, const tmi_out *out, tmi_form form)
{
    if (tmi_tls.modes & TMI_MODE_BELOW_AUTOGRAD) return true;
    uint32_t flags = tensor_flags(op, args), slow = TMI_SLOW_FLAGS;
    if (form == TMI_FORM_OUT)
        for (int i = 0; i < out->n; i++) flags |= out->t[i]->flags;
    /* a view's base may have come to require grad since; views are tracked in every mode, since that decides what in-place on them may do */
    if (form != TMI_FORM_PLAIN || op->mutates || tmi_tls.grad_enabled) slow |= TMI_IS_VIEW;
    return !(flags & slow) && !tmi_tls.modes && !(op->flags & TMI_OP_VIEW) && !tmi_tls.inference;
}

tm_status tmi_call(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form)
{
    if (TMI_UNLIKELY(tmi_tls.error_pending)) return tmi_tls.error_pending;
    out->list = NULL;
    if (form == TMI_FORM_OUT) out->n = op->n_outs;
    if (TMI_LIKELY(plain(op, args, out, form))) return tmi_run(op, args, out, form);
    tmi_layer_fn *layer = (tmi_tls.modes & TMI_MODE_TRANSFORM) && tmi_layers.transform && !opens(op) ? tmi_layers.transform : tmi_layers.autograd;
    tm_status status = layer ? layer(op, args, out, form) : tmi_run(op, args, out, form);
    if (TMI_UNLIKELY(status != TM_OK)) tmi_error_name_op(op->name);
    return status;
}
