/* Functions of the user's own: nodes whose gradient is a callback, and PyTorch's rules for what their forward returned. */
#include "api.h"
#include "base/alloc.h"

/* ---------------------------------------------------------------- the node */

static tm_status custom_edges(tmi_node *n, int n_inputs, tm_tensor *const *inputs)
{
    for (int i = 0; i < n_inputs; i++) {
        tmi_edge e;
        if (!inputs[i]) continue;
        TMI_TRY(tmi_grad_edge(inputs[i], &e));
        tmi_node_set_edge(n, i, e);
        if (e.node && i < 32) n->needs |= 1u << i;
    }
    return TM_OK;
}

tmi_node *tmi_custom_node_new(const tmi_custom_spec *spec, int n_inputs, tm_tensor *const *inputs, bool *recording)
{
    bool any = false;
    for (int i = 0; i < n_inputs; i++) any |= inputs[i] && tmi_requires_grad(inputs[i]);
    *recording = any && tmi_tls.grad_enabled;
    tmi_node *n = tmi_node_new(TMI_NODE_CUSTOM, n_inputs, 0, 0);
    if (!n) return NULL;
    n->name = tmi_strdup(spec->name);
    n->owns_name = n->name != NULL;
    n->materialize = true;
    tm_status status = n->name ? TM_OK : TM_NOMEM;
    if (status == TM_OK && *recording) status = custom_edges(n, n_inputs, inputs);
    if (status != TM_OK) {
        tmi_node_release(n);   /* spec->free does not run: the context is still the caller's */
        return NULL;
    }
    n->custom = spec->backward;
    n->custom_release = spec->release;
    n->custom_free = spec->free;
    n->custom_ctx = spec->ctx;
    return n;
}

/* ---------------------------------------------------------------- outputs */

static int find(tm_tensor *const *list, int n, const tm_tensor *t)
{
    for (int i = 0; i < n; i++)
        if (list[i] == t) return i;
    return -1;
}

static bool differentiable(const tm_tensor *t)
{
    return tmi_is_float((tm_dtype)t->dtype) || tmi_is_complex((tm_dtype)t->dtype);
}

static tm_status replace(tm_tensor **at, tm_tensor *made)
{
    if (!made) return tm_error_status();
    tmi_release(*at);
    *at = made;
    return TM_OK;
}

/* A tensor that was changed in place: its history (or its base's) becomes this node. */
static tm_status wrap_dirty(tmi_node *n, bool recording, tm_tensor *t, int input, int nr)
{
    tmi_bump_version(t);
    if (!recording || !differentiable(t)) return TM_OK;
    if (t->flags & TMI_IS_VIEW) {
        TMI_TRY(tmi_check_inplace(t, true));
        TMI_REQUIRE(n->n_results == 1, TM_AUTOGRAD,
                    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more than one Tensor. This "
                    "is not supported by the current autograd engine. You should either make sure the input is not a view (using .clone() for "
                    "example) or make your Function only return one Tensor (potentially splitting it into two Functions: one doing the inplace that "
                    "returns a single Tensor and a second one that does the other operations). You can ask on the forum https://discuss.pytorch.org/ "
                    "if you need help to do this change.");
    } else {
        TMI_REQUIRE(!tmi_requires_grad(t) || tmi_grad_fn_of(t), TM_AUTOGRAD,
                    "a leaf Variable that requires grad has been used in an in-place operation.");
    }
    tmi_rebase r;
    TMI_TRY(tmi_rebase_prepare(&r, t, n, input));
    return tmi_rebase_commit(&r, nr);
}

/* An input that came back as it is: a new view of it, so that the input keeps its own history. */
static tm_status wrap_returned_input(tmi_node *n, tm_tensor **at, int nr)
{
    tm_tensor *of = *at, *v = tmi_alias(of);
    if (!v) return tm_error_status();
    tm_status status = tmi_track_view(v, of, NULL, NULL, 0, TMI_VIEW_CUSTOM);
    if (status == TM_OK) status = tmi_set_history(v, n, nr);
    if (status == TM_OK) return replace(at, v);
    tmi_release(v);
    return status;
}

static tm_status wrap_result(tmi_node *n, tm_tensor *t, int nr)
{
    if (t->flags & TMI_IS_VIEW) t->grad_meta->creation = TMI_VIEW_CUSTOM;
    return tmi_set_history(t, n, nr);
}

static tm_status wrap_one(tmi_node *n, bool recording, int n_inputs, tm_tensor *const *inputs, tm_tensor **at, int nr, const tmi_custom_marks *m)
{
    tm_tensor *t = *at;
    int input = find(inputs, n_inputs, t);
    bool dirty = find(m->dirty, m->n_dirty, t) >= 0, nondiff = find(m->nondiff, m->n_nondiff, t) >= 0;
    if (nondiff) {
        TMI_REQUIRE(!dirty || !tmi_requires_grad(t), TM_AUTOGRAD,
                    "Some elements marked as dirty during the forward method also require gradient and were marked non-differentiable");
        return input >= 0 && !dirty ? replace(at, tmi_detach(t)) : TM_OK;
    }
    if (dirty) return wrap_dirty(n, recording, t, input, nr);
    if (!recording || !differentiable(t)) return TM_OK;
    return input >= 0 ? wrap_returned_input(n, at, nr) : wrap_result(n, t, nr);
}

static tm_status check_dirty(const tmi_custom_marks *m, int n_outputs, tm_tensor *const *outputs)
{
    for (int i = 0; i < m->n_dirty; i++)
        TMI_REQUIRE(find(outputs, n_outputs, m->dirty[i]) >= 0, TM_AUTOGRAD,
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be "
                    "outputs of the Function.");
    return TM_OK;
}

tm_status tmi_custom_wrap(tmi_node *n, bool recording, int n_inputs, tm_tensor *const *inputs, int n_outputs, tm_tensor **outputs,
                          const tmi_custom_marks *marks)
{
    static const tmi_custom_marks none;
    const tmi_custom_marks *m = marks ? marks : &none;
    TMI_TRY(check_dirty(m, n_outputs, outputs));
    if (n_outputs && !(n->results = tmi_calloc((size_t)n_outputs * sizeof *n->results))) return TM_NOMEM;
    n->n_results = n_outputs;
    for (int i = 0; i < n_outputs; i++) {
        if (!outputs[i]) continue;
        TMI_TRY(tmi_info_fill(&n->results[i], outputs[i]));
        TMI_TRY(wrap_one(n, recording, n_inputs, inputs, &outputs[i], i, m));
    }
    return TM_OK;
}

tm_status tmi_custom_save(tmi_saved *s, tmi_node *n, tm_tensor *t, int n_outputs, tm_tensor *const *outputs)
{
    int nr = find(outputs, n_outputs, t);
    bool own = nr >= 0 && t->grad_meta && t->grad_meta->grad_fn == n;
    return tmi_save(s, t, own ? t->grad_meta->output_nr : -1);
}
