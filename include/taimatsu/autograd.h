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
 * unused if allow_unused, else an unused input is TM_AUTOGRAD. */
TM_API tm_status tm_grad(int n_roots, tm_tensor *const *roots, tm_tensor *const *grads, int n_inputs, tm_tensor *const *inputs,
                         bool retain_graph, bool create_graph, bool allow_unused, tm_tensor **out);
/* Grad mode of the calling thread; the setter returns the previous state. */
TM_API bool tm_grad_enabled(void);
TM_API bool tm_set_grad_enabled(bool on);
TM_API bool tm_inference_enabled(void);
TM_API bool tm_set_inference(bool on);

#ifdef __cplusplus
}
#endif
#endif
