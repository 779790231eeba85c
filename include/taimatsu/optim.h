/* Optimisers over a list of parameters. They compute as PyTorch's optimisers of the same name, with the same defaults. Not thread-safe. */
#ifndef TAIMATSU_OPTIM_H
#define TAIMATSU_OPTIM_H

#include "taimatsu/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tm_optimizer tm_optimizer;

typedef struct tm_sgd_options {
    double lr, momentum, dampening, weight_decay;
    bool nesterov;
} tm_sgd_options;
typedef struct tm_adamw_options {
    double lr, beta1, beta2, eps, weight_decay;
} tm_adamw_options;
static inline tm_sgd_options tm_sgd_defaults(void) { tm_sgd_options o = {1e-3, 0, 0, 0, false}; return o; }
static inline tm_adamw_options tm_adamw_defaults(void) { tm_adamw_options o = {1e-3, 0.9, 0.999, 1e-8, 1e-2}; return o; }

/* The optimiser keeps a reference to each tensor of the list as it is now (tied ones once), not to the list. TM_VALUE for options outside
 * their range. NULL on failure. */
TM_API tm_optimizer *tm_sgd_new(const tm_params *p, tm_sgd_options options);
TM_API tm_optimizer *tm_adamw_new(const tm_params *p, tm_adamw_options options);
TM_API void tm_optimizer_free(tm_optimizer *o);                       /* NULL is fine */

/* One step; parameters without a gradient are left alone. On failure the step may be half done and the error says where. */
TM_API tm_status tm_optimizer_step(tm_optimizer *o);
TM_API tm_status tm_optimizer_zero_grad(tm_optimizer *o);
TM_API tm_status tm_optimizer_set_lr(tm_optimizer *o, double lr);
TM_API double tm_optimizer_lr(const tm_optimizer *o);
/* Another weight decay for the parameters with fewer than two dimensions (biases and norm weights), usually 0. */
TM_API tm_status tm_optimizer_set_vector_decay(tm_optimizer *o, double weight_decay);
/* Adds the optimiser's state to a list, to be saved with the parameters: PARAMETER.exp_avg, PARAMETER.step, ... after `prefix`; and takes it
 * from one. TM_NOT_FOUND if an entry is missing, TM_SHAPE if it does not fit. */
TM_API tm_status tm_optimizer_save_state(const tm_optimizer *o, tm_params *into, const char *prefix);
TM_API tm_status tm_optimizer_load_state(tm_optimizer *o, const tm_params *from, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
