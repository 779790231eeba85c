/* Summing gradients: into the leaf's .grad, into what a tensor retains, and in the engine's buffers. */
#include "accumulate.h"
#include "api.h"
#include "base/alloc.h"

/* Nobody else can see this gradient's memory, and writing one element changes one element. */
static bool only_ours(const tm_tensor *t, int references)
{
    return tmi_ref_count(t) == (uint64_t)references && !t->pyobj && (t->storage->refs & ~TMI_HAS_PYOBJECT) == 1 &&
           !(t->storage->flags & (TMI_STORAGE_READONLY | TMI_STORAGE_SHARED)) && tmi_is_non_overlapping_and_dense(t);
}

static uint32_t enter_below(void)
{
    uint32_t modes = tmi_tls.modes;
    if (!tmi_tls.grad_enabled) tmi_tls.modes |= TMI_MODE_BELOW_AUTOGRAD;
    return modes;
}

/* ---------------------------------------------------------------- buffers */

static tm_tensor *sum_of(tm_tensor *have, tm_tensor *more)
{
    bool writable = !tmi_tls.grad_enabled && have->dtype == more->dtype && have->ndim == more->ndim &&
                    memcmp(have->sizes, more->sizes, (size_t)have->ndim * sizeof(int64_t)) == 0 && only_ours(have, 1);
    if (!writable) return tmi_do_add(have, more);
    if (tmi_do_add_inplace(have, more) != TM_OK) return NULL;
    tmi_retain(have);
    return have;
}

tm_status tmi_buffer_add(tm_tensor **at, tm_tensor *grad)
{
    if (!*at) {
        *at = grad;
        return TM_OK;
    }
    uint32_t modes = enter_below();
    tm_tensor *have = *at, *sum = sum_of(have, grad);
    tmi_tls.modes = modes;
    tmi_release(grad);
    if (!sum) return tm_error_status();
    *at = sum;
    tmi_release(have);
    return TM_OK;
}

/* ---------------------------------------------------------------- .grad */

static bool same_strides(const tm_tensor *a, const tm_tensor *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] > 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

/* PyTorch's layout contract: a dense leaf's gradient has the leaf's strides, any other is contiguous. */
static bool obeys_layout(const tm_tensor *grad, const tm_tensor *t)
{
    return tmi_is_non_overlapping_and_dense(t) ? same_strides(grad, t) : tmi_contiguous(grad);
}

static tm_tensor *copy_for(const tm_tensor *t, tm_tensor *grad)
{
    const int64_t *strides = tmi_is_non_overlapping_and_dense(t) ? t->strides : NULL;
    tm_tensor *c = tmi_tensor_new(grad->ndim, grad->sizes, strides, (tm_dtype)grad->dtype, grad->device);
    if (c && tmi_do_copy_inplace(c, grad) != TM_OK) {
        tmi_release(c);
        return NULL;
    }
    return c;
}

/* The first gradient: taken over if nobody else holds it, else copied. */
static tm_tensor *first_grad(const tm_tensor *t, tm_tensor *grad)
{
    if (tmi_tls.grad_enabled || !obeys_layout(grad, t) || !only_ours(grad, 1)) return copy_for(t, grad);
    if (grad->grad_meta || (grad->flags & (TMI_REQUIRES_GRAD | TMI_IS_VIEW))) return tmi_alias(grad);
    tmi_retain(grad);
    return grad;
}

static tm_status store_grad(tmi_node *n, tm_tensor *t, tm_tensor *grad)
{
    tmi_grad_meta *m = tmi_grad_meta_of(t);
    if (!m) return TM_NOMEM;
    tmi_lock(&n->lock);
    tm_tensor *old = m->grad, *made = NULL;
    tm_status status = TM_OK;
    if (old && !tmi_tls.grad_enabled) {
        status = tmi_do_add_inplace(old, grad);
    } else {
        made = old ? tmi_do_add(old, grad) : first_grad(t, grad);
        if (made) m->grad = made;
        else status = tm_error_status();
    }
    tmi_unlock(&n->lock);
    if (made) tmi_release(old);
    return status;
}

tm_status tmi_accumulate_grad(tmi_node *n, tm_tensor *grad)
{
    tm_tensor *t = n->variable;
    uint32_t modes = enter_below();
    tm_status status = store_grad(n, t, grad);
    tmi_tls.modes = modes;
    if (status != TM_OK || !t->grad_meta->post_accumulate) return status;
    return tmi_hooks_run(t->grad_meta->post_accumulate, -1, n, &t, 1, NULL, 0);
}

/* ---------------------------------------------------------------- gradients that are retained */

static tm_status retain_in(tmi_grad_cell *c, tm_tensor *grad)
{
    tm_tensor *old = c->grad;
    uint32_t modes = enter_below();
    tm_tensor *made = old ? tmi_do_add(old, grad) : tmi_do_clone(grad, true);
    tmi_tls.modes = modes;
    if (!made) return tm_error_status();
    c->grad = made;
    tmi_release(old);
    return TM_OK;
}

tm_status tmi_retain_gradients(tmi_node *n, tm_tensor **grads)
{
    tm_status status = TM_OK;
    for (int64_t i = 0; i < n->hooks->retains.len && status == TM_OK; i++) {
        tmi_grad_cell *c = n->hooks->retains.data[i];
        if (atomic_load(&c->refs) > 1 && grads[c->nr]) status = retain_in(c, grads[c->nr]);   /* else the tensor is gone */
    }
    return status;
}
