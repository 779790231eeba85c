/* What the Python glue and the C API use of the tape. Every pointer is borrowed unless it says otherwise; a status other than TM_OK
 * leaves the thread's error record set with PyTorch's text. */
#ifndef TMI_AUTOGRAD_API_H
#define TMI_AUTOGRAD_API_H

#include "tape.h"
#include "taimatsu/autograd.h"

/* ---- tensors */
bool tmi_is_leaf(tm_tensor *t);
tmi_node *tmi_tensor_grad_fn(tm_tensor *t);            /* = tmi_grad_fn_of */
int tmi_tensor_output_nr(tm_tensor *t);
tm_tensor *tmi_tensor_base(const tm_tensor *t);        /* ._base; NULL if no view */
tm_status tmi_set_requires_grad(tm_tensor *t, bool on);/* requires_grad_ and the attribute */
tm_status tmi_retain_grad(tm_tensor *t);
bool tmi_retains_grad(const tm_tensor *t);
tm_tensor *tmi_detach(tm_tensor *t);                   /* new reference: shares data and version counter */
tm_status tmi_detach_inplace(tm_tensor *t);
tm_tensor *tmi_variable_data(tm_tensor *t);            /* .data: new reference: shares data, a version counter of its own */
tm_status tmi_set_data(tm_tensor *t, tm_tensor *from); /* t.data = from */
tm_status tmi_version_of(tm_tensor *t, uint64_t *out); /* ._version; inference tensors have none */
tm_tensor *tmi_grad_of(const tm_tensor *t);            /* .grad, borrowed */
tm_status tmi_set_grad(tm_tensor *t, tm_tensor *grad); /* checks sizes, dtype and device as PyTorch; NULL clears */
tmi_node *tmi_grad_accumulator(tm_tensor *t);          /* new reference; the leaf's AccumulateGrad node */

/* ---- hooks. On success the hook is added and *handle (if asked for) is a reference of the caller's own: tmi_hook_remove(handle),
 * then tmi_hook_release(handle). The hook's context is freed (free) when it is removed or what it hangs on goes. On failure `free` does not run.
 * A hook function reports a Python exception by returning TM_PYTHON (with the record set so). */
typedef tm_status tmi_hook_fn(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs);
tm_status tmi_tensor_add_hook(tm_tensor *t, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle);
tm_status tmi_tensor_add_post_accumulate_hook(tm_tensor *t, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle);
tm_status tmi_node_add_pre_hook(tmi_node *n, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle);
tm_status tmi_node_add_post_hook(tmi_node *n, tmi_hook_fn *fn, void (*free)(void *), void *ctx, tmi_hook **handle);

/* ---- nodes: read the struct for edges (next_functions), name, sequence */
const char *tmi_node_name(const tmi_node *n);          /* "MulBackward0", "AccumulateGrad" */
/* Saved values by name (`_saved_self`, `_saved_result`): tensor in *out (new reference, NULL if it was not given), or a number in *value.
 * TM_NOT_FOUND without an error recorded if the node saves nothing of this name. */
tm_status tmi_node_saved_value(tmi_node *n, const char *name, tm_tensor **out, const tmi_value **value);

/* ---- custom functions. Order of use: node_new with the inputs; run the user's forward without recording; wrap the outputs. */
typedef struct tmi_custom_spec {
    const char *name;                                  /* copied: "FBackward" */
    tm_status (*backward)(tmi_node *n, tm_tensor **grads, tm_tensor **inputs); /* a call out: grads borrowed, inputs[] new references or NULL */
    void (*release)(tmi_node *n);                      /* may be NULL */
    void (*free)(tmi_node *n);
    void *ctx;
} tmi_custom_spec;
/* NULL with no error pending never happens; *recording says whether anything requires grad (with grad mode on). n_inputs tensors, NULL entries
 * for inputs that are no tensors. A new reference. */
tmi_node *tmi_custom_node_new(const tmi_custom_spec *spec, int n_inputs, tm_tensor *const *inputs, bool *recording);
/* Makes outputs the node's results. outputs[i] owned references, replaced where PyTorch makes a new tensor (an input returned as it is becomes a
 * view of it). nondiff and dirty: lists of tensors that mark_non_differentiable and mark_dirty named. */
typedef struct tmi_custom_marks {
    tm_tensor *const *nondiff, *const *dirty;
    int n_nondiff, n_dirty;
} tmi_custom_marks;
tm_status tmi_custom_wrap(tmi_node *n, bool recording, int n_inputs, tm_tensor *const *inputs, int n_outputs, tm_tensor **outputs,
                          const tmi_custom_marks *marks);
/* Saved tensors of a custom function: t may be an input, an output (pass is_output, after the forward), or anything else. */
tm_status tmi_custom_save(tmi_saved *s, tmi_node *n, tm_tensor *t, int n_outputs, tm_tensor *const *outputs);

/* ---- saved-tensor hooks: innermost pair of the thread packs every value that is saved from now on */
typedef struct tmi_saved_hooks {
    tmi_refcount refs;                                 /* packed values keep it */
    struct tmi_saved_hooks *outer;
    tm_status (*pack)(void *ctx, tm_tensor *t, void **data);        /* t borrowed */
    tm_status (*unpack)(void *ctx, void *data, tm_tensor **out);    /* a new reference */
    void (*free_data)(void *ctx, void *data);
    void (*free)(void *ctx);                           /* when the last packed value is gone */
    void *ctx;
    const char *disabled;                              /* not NULL: a message; saving raises it (disable_saved_tensors_hooks) */
} tmi_saved_hooks;
tm_status tmi_saved_hooks_push(tmi_saved_hooks *h);    /* takes a reference (set refs to 1 before) */
void tmi_saved_hooks_pop(void);

/* ---- what the glue installs */
typedef struct tmi_autograd_glue {
    const char *(*where)(void);                        /* current source line "file.py:12", interned or static; NULL if unknown */
    void *(*capture)(void);                            /* anomaly mode: a traceback of now */
    void (*report)(tmi_node *n, void *captured);       /* anomaly mode: the node failed; warn with the forward's traceback */
    void (*free_captured)(void *captured);
    void (*node_count)(tmi_node *n, int step);         /* as tmi_hooks.pyobj_count, for nodes */
} tmi_autograd_glue;
extern tmi_autograd_glue tmi_glue;
extern _Atomic uint32_t tmi_python_epoch;              /* raised when a Python object is attached to a node that exists */
/* Python garbage collection need not look into the subgraph below n. */
static inline bool tmi_node_skippable(const tmi_node *n) { return !n->has_python && n->epoch == tmi_python_epoch; }
void tmi_node_mark_python(tmi_node *n);

/* ---- modes */
bool tmi_anomaly_enabled(void);
bool tmi_anomaly_checks_nan(void);
void tmi_set_anomaly(bool on, bool check_nan);
bool tmi_set_source_lines(bool on);                    /* record source lines; returns the previous state */
/* More about the pending in-place error than PyTorch's text says: the lines where the value was made, changed, needed. "" if nothing.
 * The glue attaches it to the exception as a note. Valid until the next autograd error on this thread. */
const char *tmi_error_note(void);
/* Called at the end of the running backward, on its thread (queue_callback); TM_AUTOGRAD outside of one. */
tm_status tmi_queue_callback(tm_status (*fn)(void *ctx), void (*free)(void *ctx), void *ctx);
/* Whether the pass that runs on this thread will run n, or hand out its gradient; false outside of a pass. */
bool tmi_will_run(const tmi_node *n);
/* The node that the engine is running on this thread, or NULL. */
tmi_node *tmi_current_node(void);

#endif
