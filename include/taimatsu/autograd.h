/* Reverse-mode differentiation. Operators record themselves when an argument requires grad and grad mode is on (the default). */
#ifndef TAIMATSU_AUTOGRAD_H
#define TAIMATSU_AUTOGRAD_H

#include "taimatsu/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds d(root)/d(leaf) to .grad of every leaf that requires grad. `grad` NULL: root must have one element, and 1 is used.
 * The graph is freed afterwards (tm_backward_full can keep it). Errors: TM_AUTOGRAD with PyTorch's text. */
TM_API tm_status tm_backward(tm_tensor *root);
TM_API tm_status tm_backward_full(int n, tm_tensor *const *roots, tm_tensor *const *grads, bool retain_graph, bool create_graph);
/* Gradients of the roots with respect to inputs, without touching .grad. out[n_inputs]: results owned by scope or caller; NULL where
 * unused if allow_unused, else an unused input is TM_AUTOGRAD. create_graph implies that the graph is kept. */
TM_API tm_status tm_grad(int n_roots, tm_tensor *const *roots, tm_tensor *const *grads, int n_inputs, tm_tensor *const *inputs,
                         bool retain_graph, bool create_graph, bool allow_unused, tm_tensor **out);
/* Grad mode of the calling thread; the setter returns the previous state. */
TM_API bool tm_grad_enabled(void);
TM_API bool tm_set_grad_enabled(bool on);
/* Inference mode: nothing records, and new tensors can never take part in differentiation. Turning it on turns grad mode off, turning it
 * off turns grad mode on; the setter returns the previous state. */
TM_API bool tm_inference_enabled(void);
TM_API bool tm_set_inference(bool on);

/* ---- single tensors */
TM_API bool tm_tensor_is_leaf(tm_tensor *t);               /* it was not made by a recorded operator */
TM_API const char *tm_tensor_grad_fn_name(tm_tensor *t);   /* "AddBackward0", borrowed; NULL for leaves */
TM_API tm_status tm_retain_grad(tm_tensor *t);             /* keep .grad of a tensor that is no leaf */
TM_API tm_tensor *tm_tensor_detach(tm_tensor *t);          /* the same data without history; owned by scope or caller */
/* hook(ctx, grad) runs when t's gradient is known; it returns a replacement (owned by the caller of the hook), or NULL to leave it.
 * A hook that fails leaves an error pending. `free` (may be NULL) runs when the hook goes; on failure of this call it does not run.
 * `id`: for tm_remove_hook; may be NULL. */
typedef struct tm_hook tm_hook;
TM_API tm_status tm_add_hook(tm_tensor *t, tm_tensor *(*hook)(void *ctx, tm_tensor *grad), void (*free)(void *ctx), void *ctx, tm_hook **handle);
TM_API void tm_remove_hook(tm_hook *handle);               /* also frees the handle; NULL is fine */

/* ---- functions of one's own
 * forward runs without recording and fills out[n_out] (results of operators, or inputs handed back). backward gets the gradients of the
 * results (never NULL: zeros where none came) and fills grad_in[n_in]; NULL means no gradient. Results made there need no release: a scope
 * is open. Both return TM_OK or leave an error pending. */
typedef struct tm_function_call tm_function_call;
typedef struct tm_function {
    const char *name;   /* of grad_fn, "SwishBackward" */
    tm_status (*forward)(tm_function_call *call, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out);
    tm_status (*backward)(tm_function_call *call, int n_out, tm_tensor *const *grad_out, int n_in, tm_tensor **grad_in);
    void (*free)(void *user);   /* may be NULL: when the call is forgotten */
} tm_function;
/* out[n_out]: owned by scope or caller. `user` is handed to `free` in every case, failure included. */
TM_API tm_status tm_function_apply(const tm_function *f, void *user, int n_in, tm_tensor *const *in, int n_out, tm_tensor **out);
TM_API void *tm_call_user(const tm_function_call *call);
TM_API bool tm_call_needs_grad(const tm_function_call *call, int i);            /* does in[i] want a gradient? */
TM_API tm_status tm_call_save(tm_function_call *call, int n, tm_tensor *const *t); /* in forward: inputs, results, or others; at most once */
TM_API tm_tensor *tm_call_saved(tm_function_call *call, int i);                /* in backward; borrowed; NULL with an error recorded */

#ifdef __cplusplus
}
#endif
#endif
