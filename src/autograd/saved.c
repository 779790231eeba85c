/* Saved values: references with a version check, or what a pair of saved-tensor hooks made of them. */
#include <stdio.h>

#include "api.h"
#include "base/alloc.h"
#include "record.h"

/* A value that hooks packed. Its place in the graph is kept, since the unpacked tensor is a new one. */
struct tmi_packed {
    tmi_saved_hooks *hooks;   /* owned */
    void *data;
    tmi_edge edge;            /* where the original's gradient goes; node NULL if it needs none, or is the owner's own result */
    bool requires_grad;
};

/* ---------------------------------------------------------------- the thread's stack of hooks */

static void hooks_release(tmi_saved_hooks *h)
{
    if (atomic_fetch_sub(&h->refs, 1) != 1 || !h->free) return;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    h->free(h->ctx);
    tmi_call_out_end(&c);
}

tm_status tmi_saved_hooks_push(tmi_saved_hooks *h)
{
    tmi_saved_hooks *top = tmi_tls.saved_hooks;
    TMI_REQUIRE(!top || !top->disabled || h->disabled, TM_AUTOGRAD, "%s", top->disabled);
    h->outer = top;
    tmi_tls.saved_hooks = h;
    return TM_OK;
}

void tmi_saved_hooks_pop(void)
{
    tmi_saved_hooks *h = tmi_tls.saved_hooks;
    if (!h) return;
    tmi_tls.saved_hooks = h->outer;
    hooks_release(h);
}

/* ---------------------------------------------------------------- saving */

static tm_status call_pack(tmi_saved_hooks *h, tm_tensor *t, void **data)
{
    uint64_t version = tm_tensor_version(t);
    bool grad_enabled = tmi_tls.grad_enabled;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    tmi_tls.grad_enabled = false;
    tmi_tls.saved_hooks = NULL;
    tm_status status = h->pack(h->ctx, t, data);
    tmi_tls.saved_hooks = h;
    tmi_tls.grad_enabled = grad_enabled;
    tmi_call_out_end(&c);
    TMI_TRY(status);
    TMI_REQUIRE(version == tm_tensor_version(t), TM_AUTOGRAD,
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by in-place "
                "operations as this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the "
                "input to a pack hook.");
    return TM_OK;
}

static tm_status pack(tmi_saved *s, tm_tensor *t, tmi_saved_hooks *h)
{
    tmi_packed *p = tmi_calloc(sizeof *p);
    if (!p) return TM_NOMEM;
    atomic_fetch_add(&h->refs, 1);
    p->hooks = h;
    s->packed = p;
    p->requires_grad = s->result >= 0 || tmi_requires_grad(t);
    if (s->result < 0) TMI_TRY(tmi_grad_edge(t, &p->edge));
    tm_tensor *plain = tmi_alias(t);
    if (!plain) return tmi_tls.error_pending;
    tm_status status = call_pack(h, plain, &p->data);
    tmi_release(plain);
    return status;
}

/* For self_reference.c. */
static void mark_saved(tm_tensor *t)
{
    tmi_grad_meta *m = t->grad_meta;
    if (!m) return;
    if (!m->saved_since) m->saved_since = tmi_latest_sequence();
    if (m->base && m->base->grad_meta && !m->base->grad_meta->saved_since) m->base->grad_meta->saved_since = m->saved_since;
}

tm_status tmi_save(tmi_saved *s, tm_tensor *t, int result)
{
    TMI_REQUIRE(!(t->flags & TMI_INFERENCE) || tmi_tls.inference, TM_AUTOGRAD,
                "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by "
                "autograd. To work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
                "instead of `torch.inference_mode()`.");
    s->result = result;
    s->version = atomic_load_explicit(t->version, memory_order_relaxed);
    tmi_saved_hooks *h = tmi_tls.saved_hooks;
    if (TMI_UNLIKELY(h && !h->disabled && !(t->flags & TMI_WRAPPED_NUMBER))) return pack(s, t, h);
    if (result >= 0) {
        s->t = tmi_alias(t);
        return s->t ? TM_OK : (tm_status)tmi_tls.error_pending;
    }
    mark_saved(t);
    tmi_retain(t);
    s->t = t;
    return TM_OK;
}

static void free_packed(tmi_packed *p)
{
    tmi_node_release(p->edge.node);
    if (p->data && p->hooks->free_data) {
        tmi_call_out c;
        tmi_call_out_begin(&c);
        p->hooks->free_data(p->hooks->ctx, p->data);
        tmi_call_out_end(&c);
    }
    hooks_release(p->hooks);
    tmi_free(p, sizeof *p);
}

void tmi_saved_clear(tmi_saved *s)
{
    tm_tensor *t = s->t;
    tmi_packed *p = s->packed;
    s->t = NULL;
    s->packed = NULL;
    tmi_release(t);
    if (p) free_packed(p);
}

/* ---------------------------------------------------------------- unpacking */

const char *tmi_error_note(void) { return tmi_error_note_buffer(); }

/* "Exp" of "ExpBackward0". */
static int short_name(const char *name)
{
    const char *tail = strstr(name, "Backward");
    return tail ? (int)(tail - name) : (int)strlen(name);
}

/* Where the value was made, changed and needed, as far as source lines were recorded. */
static void write_note(const tmi_saved *s, const tmi_node *owner, const tmi_node *made)
{
    const char *changed = tmi_changed_where(s->t);
    char *note = tmi_error_note_buffer();
    note[0] = 0;
    if (!owner->where && !changed) {
        snprintf(note, TMI_NOTE_BYTES, "autograd.set_source_lines(True) adds the lines where the value was made, changed and needed.");
        return;
    }
    snprintf(note, TMI_NOTE_BYTES, "needed by %s at %s; changed in place at %s; made %s%s", owner->name, owner->where ? owner->where : "an unknown line",
             changed ? changed : "an unknown line", made && made->where ? "at " : "by the caller", made && made->where ? made->where : "");
}

static tm_status fail_version(const tmi_saved *s, tmi_node *owner, uint64_t now)
{
    char sizes[200], which[120] = "";
    tmi_format_sizes(sizes, sizeof sizes, s->t->ndim, s->t->sizes);
    const tmi_grad_meta *m = s->t->grad_meta;
    const tmi_node *made = s->result >= 0 ? owner : m ? m->grad_fn : NULL;
    if (made)
        snprintf(which, sizeof which, ", which is output %d of %s%.*s,", s->result >= 0 ? s->result : m->output_nr,
                 made->kind == TMI_NODE_COPY_SLICES ? "torch::autograd::" : "", short_name(made->name), made->name);
    write_note(s, owner, made);
    const char *hint = tmi_anomaly_enabled()
                           ? "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was "
                             "changed in there or anywhere later. Good luck!"
                           : "enable anomaly detection to find the operation that failed to compute its gradient, with "
                             "torch.autograd.set_detect_anomaly(True, check_nan=False).";
    return tmi_fail(TM_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation: [torch.%sTensor %s]%s "
                                 "is at version %llu; expected version %llu instead. Hint: %s",
                    tmi_dtypes[s->t->dtype].type_name, sizes, which, (unsigned long long)now, (unsigned long long)s->version, hint);
}

static tm_status fail_released(void)
{
    return tmi_fail(TM_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
                                 "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
                                 "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
                                 "after calling backward.");
}

/* A tensor with the data of t as result nr of node, for higher derivatives. Takes t's reference. */
static tm_status attach(tm_tensor *t, tmi_node *node, int nr, tm_tensor **out)
{
    tm_tensor *a = tmi_alias(t);
    tm_status status = a ? tmi_set_history(a, node, nr) : (tm_status)tmi_tls.error_pending;
    tmi_release(t);
    if (status == TM_OK) *out = a;
    else tmi_release(a);
    return status;
}

static tm_status unpack_packed(const tmi_saved *s, tmi_packed *p, tmi_node *owner, tm_tensor **out)
{
    tm_tensor *t = NULL;
    tmi_call_out c;
    tmi_call_out_begin(&c);
    tm_status status = p->hooks->unpack(p->hooks->ctx, p->data, &t);
    tmi_call_out_end(&c);
    TMI_TRY(status);
    if (s->result >= 0) return attach(t, owner, s->result, out);
    if (p->edge.node) return attach(t, p->edge.node, p->edge.nr, out);
    *out = t;
    return TM_OK;
}

/* The lock keeps a second backward on another thread from freeing the value between reading it and taking a reference. */
tm_status tmi_unpack_saved(tmi_saved *s, tmi_node *owner, tm_tensor **out)
{
    *out = NULL;
    tmi_lock(&owner->lock);
    tm_tensor *t = s->t;
    tmi_packed *p = s->packed;
    if (t) tmi_retain(t);
    tmi_unlock(&owner->lock);
    if (p) return unpack_packed(s, p, owner, out);
    if (TMI_UNLIKELY(!t)) return owner->released ? fail_released() : TM_OK;
    uint64_t now = atomic_load_explicit(t->version, memory_order_relaxed);
    if (TMI_UNLIKELY(now != s->version)) {
        tm_status status = fail_version(s, owner, now);
        tmi_release(t);
        return status;
    }
    if (s->result >= 0 && tmi_tls.grad_enabled && !(tmi_tls.modes & TMI_MODE_BELOW_AUTOGRAD)) return attach(t, owner, s->result, out);
    *out = t;
    return TM_OK;
}
