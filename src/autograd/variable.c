/* What hangs on a tensor that takes part in differentiation: its gradient, its place in the graph, its flags. */
#include "api.h"
#include "record.h"
#include "base/alloc.h"

tmi_grad_meta *tmi_grad_meta_of(tm_tensor *t)
{
    if (!t->grad_meta) t->grad_meta = tmi_calloc(sizeof *t->grad_meta);
    return t->grad_meta;
}

void tmi_cell_release(tmi_grad_cell *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
    tmi_release(c->grad);
    tmi_free(c, sizeof *c);
}

static void free_leaf_hooks(tmi_hooks_vec *v)
{
    if (!v) return;
    tmi_hooks_free(v);
    tmi_free(v, sizeof *v);
}

/* Core calls this when the last reference to t goes. */
void tmi_grad_meta_free(tm_tensor *t)
{
    tmi_grad_meta *m = t->grad_meta;
    t->grad_meta = NULL;
    t->flags &= ~(uint32_t)(TMI_REQUIRES_GRAD | TMI_IS_VIEW);   /* the garbage collector does this to tensors that still exist */
    tmi_release(m->grad);
    tmi_release(m->tangent);
    tmi_cell_release(m->cell);
    tmi_node_release(m->grad_fn);
    free_leaf_hooks(m->hooks);
    free_leaf_hooks(m->post_accumulate);
    tmi_release(m->base);
    tmi_view_rules_release(m->rules);
    tmi_free(m, sizeof *m);
}

/* ---------------------------------------------------------------- place in the graph */

static tmi_node *live_accumulator(tmi_grad_meta *m)
{
    tmi_lock(&m->lock);
    tmi_node *n = m->accumulator;
    if (n && !tmi_node_try_retain(n)) n = NULL;
    tmi_unlock(&m->lock);
    return n;
}

/* Two threads may make one at the same time: the first to enter it into the leaf wins. */
tmi_node *tmi_grad_accumulator(tm_tensor *t)
{
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    if (!m) return NULL;
    tmi_node *n = live_accumulator(m);
    if (n) return n;
    tmi_node *made = tmi_node_new(TMI_NODE_ACCUMULATE, 0, 1, 0);
    if (!made) return NULL;
    made->name = "AccumulateGrad";
    made->sequence = UINT64_MAX;
    made->variable = t;
    made->has_python = t->pyobj != NULL;
    tmi_retain(t);
    tmi_lock(&m->lock);
    n = m->accumulator;
    if (!n || !tmi_node_try_retain(n)) n = m->accumulator = made;
    tmi_unlock(&m->lock);
    if (n != made) tmi_node_release(made);
    return n;
}

tm_status tmi_grad_edge(tm_tensor *t, tmi_edge *out)
{
    out->node = NULL;
    out->nr = 0;
    if (!tmi_requires_grad(t)) return TM_OK;
    tmi_node *fn = tmi_grad_fn_of(t);
    if (fn) {
        out->node = tmi_node_retain(fn);
        out->nr = t->grad_meta->output_nr;
        return TM_OK;
    }
    if (TMI_UNLIKELY(tmi_tls.error_pending)) return tmi_tls.error_pending;
    out->node = tmi_grad_accumulator(t);
    return out->node ? TM_OK : TM_NOMEM;
}

static void remove_cell(tmi_node *n, tmi_grad_cell *c)
{
    if (!n || !n->hooks) return;
    bool found = false;
    tmi_lock(&n->lock);
    for (int64_t i = 0; i < n->hooks->retains.len && !found; i++) {
        found = n->hooks->retains.data[i] == c;
        if (found) n->hooks->retains.data[i] = n->hooks->retains.data[--n->hooks->retains.len];
    }
    tmi_unlock(&n->lock);
    if (found) tmi_cell_release(c);
}

static tm_status add_cell(tmi_node *n, tmi_grad_cell *c, int nr)
{
    tmi_node_hooks *h = tmi_node_hooks_of(n);
    if (!h) return TM_NOMEM;
    tmi_lock(&n->lock);
    bool ok = tmi_vec_push(&h->retains, c);
    if (ok) {
        atomic_fetch_add(&c->refs, 1);
        c->nr = nr;
    }
    tmi_unlock(&n->lock);
    return ok ? TM_OK : TM_NOMEM;
}

tm_status tmi_set_history(tm_tensor *t, tmi_node *node, int nr)
{
    return tmi_take_history(t, tmi_node_retain(node), nr);
}

tm_status tmi_take_history(tm_tensor *t, tmi_node *node, int nr)
{
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    tmi_node *old = m ? m->grad_fn : NULL;
    tm_status status = !m ? TM_NOMEM : TMI_UNLIKELY(m->cell != NULL) ? add_cell(node, m->cell, nr) : TM_OK;
    if (TMI_UNLIKELY(status != TM_OK)) {
        tmi_node_release(node);
        return status;
    }
    if (m->cell) remove_cell(old, m->cell);
    m->grad_fn = node;
    m->output_nr = nr;
    t->flags |= TMI_REQUIRES_GRAD;
    tmi_node_release(old);
    return TM_OK;
}

bool tmi_is_leaf(tm_tensor *t) { return !tmi_grad_fn_of(t); }
tmi_node *tmi_tensor_grad_fn(tm_tensor *t) { return tmi_grad_fn_of(t); }
int tmi_tensor_output_nr(tm_tensor *t) { return t->grad_meta ? t->grad_meta->output_nr : 0; }
tm_tensor *tmi_tensor_base(const tm_tensor *t) { return t->flags & TMI_IS_VIEW ? t->grad_meta->base : NULL; }

/* ---------------------------------------------------------------- flags */

bool tm_tensor_requires_grad(const tm_tensor *t) { return tmi_requires_grad(t); }

tm_status tmi_set_requires_grad(tm_tensor *t, bool on)
{
    TMI_REQUIRE(!on || tmi_is_float((tm_dtype)t->dtype) || tmi_is_complex((tm_dtype)t->dtype), TM_AUTOGRAD,
                "only Tensors of floating point dtype can require gradients");
    if (tmi_grad_fn_of(t)) {
        TMI_REQUIRE(on, TM_AUTOGRAD,
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that "
                    "doesn't require differentiation use var_no_grad = var.detach().");
        return TM_OK;
    }
    if (tmi_tls.error_pending) return tmi_tls.error_pending;
    TMI_REQUIRE(!on || !(t->flags & TMI_INFERENCE) || tmi_tls.inference, TM_AUTOGRAD,
                "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (on) t->flags |= TMI_REQUIRES_GRAD;
    else t->flags &= ~(uint32_t)TMI_REQUIRES_GRAD;
    return TM_OK;
}

tm_status tm_tensor_set_requires_grad(tm_tensor *t, bool on)
{
    return tmi_tls.error_pending ? (tm_status)tmi_tls.error_pending : tmi_set_requires_grad(t, on);
}

bool tmi_retains_grad(const tm_tensor *t) { return t->grad_meta && t->grad_meta->cell; }

tm_status tmi_retain_grad(tm_tensor *t)
{
    TMI_REQUIRE(tmi_requires_grad(t), TM_AUTOGRAD, "can't retain_grad on Tensor that has requires_grad=False");
    tmi_node *fn = tmi_grad_fn_of(t);
    if (!fn || tmi_retains_grad(t)) return tmi_tls.error_pending;
    tmi_grad_cell *c = tmi_calloc(sizeof *c);
    if (!c) return TM_NOMEM;
    atomic_init(&c->refs, 1);
    tmi_grad_meta *m = t->grad_meta;
    tm_status status = add_cell(fn, c, m->output_nr);
    if (status != TM_OK) {
        tmi_cell_release(c);
        return status;
    }
    c->grad = m->grad;
    m->grad = NULL;
    m->cell = c;
    return TM_OK;
}

/* ---------------------------------------------------------------- .grad */

tm_tensor *tmi_grad_of(const tm_tensor *t)
{
    const tmi_grad_meta *m = t->grad_meta;
    return !m ? NULL : m->cell ? m->cell->grad : m->grad;
}

tm_tensor *tm_tensor_grad(const tm_tensor *t) { return tmi_grad_of(t); }

/* The C++ name of a dtype, which PyTorch's message shows. */
static const char *element_name(tm_dtype d)
{
    static const char *const names[TM_DTYPE_COUNT] = {
        [TM_BOOL] = "bool", [TM_U8] = "unsigned char", [TM_I8] = "signed char", [TM_I16] = "short", [TM_I32] = "int", [TM_I64] = "long",
        [TM_F16] = "c10::Half", [TM_F32] = "float", [TM_F64] = "double", [TM_C64] = "c10::complex<float>", [TM_C128] = "c10::complex<double>",
        [TM_BF16] = "c10::BFloat16", [TM_U16] = "unsigned short", [TM_U32] = "unsigned int", [TM_U64] = "unsigned long",
        [TM_F8_E4M3FN] = "c10::Float8_e4m3fn", [TM_F8_E5M2] = "c10::Float8_e5m2"};
    return names[d];
}

static tm_status check_assigned_grad(const tm_tensor *t, const tm_tensor *grad)
{
    TMI_REQUIRE(grad != t, TM_AUTOGRAD, "can't assign Variable as its own grad");
    TMI_REQUIRE(grad->dtype == t->dtype, TM_AUTOGRAD,
                "attempting to assign a gradient with dtype '%s' to a tensor with grad_dtype '%s'. The gradient must match the tensor's "
                "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
                "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems "
                "that assume they match.",
                element_name((tm_dtype)grad->dtype), tmi_dtypes[t->dtype].type_name);
    TMI_REQUIRE(grad->device.type == t->device.type, TM_AUTOGRAD,
                "attempting to assign a gradient located on device with device type '%s' to a tensor with device type '%s'. Please ensure that "
                "the gradient and the tensor are on the same device",
                grad->device.type == TM_META ? "meta" : "cpu", t->device.type == TM_META ? "meta" : "cpu");
    if (grad->ndim == t->ndim && memcmp(grad->sizes, t->sizes, (size_t)t->ndim * sizeof(int64_t)) == 0) return TM_OK;
    char have[256], want[256];
    tmi_format_sizes(have, sizeof have, grad->ndim, grad->sizes);
    tmi_format_sizes(want, sizeof want, t->ndim, t->sizes);
    return tmi_fail(TM_AUTOGRAD, "attempting to assign a gradient of size '%s' to a tensor of size '%s'. Please ensure that the gradient and the "
                                 "tensor are the same size", have, want);
}

tm_status tmi_set_grad(tm_tensor *t, tm_tensor *grad)
{
    if (grad) TMI_TRY(check_assigned_grad(t, grad));
    if (!grad && !t->grad_meta) return TM_OK;
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    if (!m) return TM_NOMEM;
    tm_tensor **at = m->cell ? &m->cell->grad : &m->grad, *old = *at;
    if (grad) tmi_retain(grad);
    *at = grad;
    tmi_release(old);
    return TM_OK;
}

tm_status tm_tensor_set_grad(tm_tensor *t, tm_tensor *grad)
{
    return tmi_tls.error_pending ? (tm_status)tmi_tls.error_pending : tmi_set_grad(t, grad);
}

/* ---------------------------------------------------------------- detaching */

tm_tensor *tmi_detach(tm_tensor *t) { return tmi_alias(t); }

tm_status tmi_detach_inplace(tm_tensor *t)
{
    TMI_REQUIRE(!(t->flags & TMI_IS_VIEW), TM_AUTOGRAD,
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
                "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution.");
    t->flags &= ~(uint32_t)TMI_REQUIRES_GRAD;
    tmi_grad_meta *m = t->grad_meta;
    if (!m) return TM_OK;
    tmi_node *fn = m->grad_fn;
    if (m->cell) {
        remove_cell(fn, m->cell);
        m->grad = m->cell->grad;
        m->cell->grad = NULL;
        tmi_cell_release(m->cell);
        m->cell = NULL;
    }
    m->grad_fn = NULL;
    m->output_nr = 0;
    tmi_node_release(fn);
    return TM_OK;
}

tm_tensor *tmi_variable_data(tm_tensor *t)
{
    tm_tensor *d = tmi_alias(t);
    if (d && tmi_tensor_own_version(d) != TM_OK) {
        tmi_release(d);
        return NULL;
    }
    return d;
}

tm_status tmi_set_data(tm_tensor *t, tm_tensor *from)
{
    TMI_REQUIRE(from->layout == t->layout, TM_AUTOGRAD,
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.");
    TMI_REQUIRE(!tmi_requires_grad(t) || tmi_is_float((tm_dtype)from->dtype) || tmi_is_complex((tm_dtype)from->dtype), TM_AUTOGRAD,
                "data set to a tensor that requires gradients must be floating point or complex dtype");
    uint64_t version = tm_tensor_version(t);
    TMI_TRY(tmi_tensor_restride(t, from->ndim, from->sizes, from->strides, from->offset));
    if (t->storage != from->storage) {
        TMI_TRY(tmi_tensor_set_storage(t, from->storage));
        TMI_TRY(tmi_tensor_own_version(t));   /* t counts its own changes, as before */
        atomic_store(t->version, version);
    }
    t->dtype = from->dtype;
    t->flags = (t->flags & ~(uint32_t)(TMI_CONJ | TMI_NEG)) | (from->flags & (TMI_CONJ | TMI_NEG));
    return TM_OK;
}

tm_status tmi_version_of(tm_tensor *t, uint64_t *out)
{
    TMI_REQUIRE(!(t->flags & TMI_INFERENCE), TM_AUTOGRAD, "Inference tensors do not track version counter.");
    *out = tm_tensor_version(t);
    return TM_OK;
}
