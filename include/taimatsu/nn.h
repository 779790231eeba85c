/* Layers over a named list of parameters. Every layer draws its first values from the default generator in PyTorch's order, so the same seed
 * gives the same weights as the PyTorch module of that name.
 *
 *     tm_params *p = tm_params_new();
 *     tm_nn_linear fc;
 *     tm_nn_linear_init(&fc, p, "fc", 784, 10, true);          // adds fc.weight and fc.bias to p
 *     tm_tensor *y = tm_nn_linear_forward(&fc, x);              // an operator: result owned by scope or caller
 *
 * The list owns the parameters; layers borrow them and need no freeing. A list is not thread-safe; forward functions are. */
#ifndef TAIMATSU_NN_H
#define TAIMATSU_NN_H

#include "taimatsu/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a list of named parameters, in order of addition */
typedef struct tm_params tm_params;
TM_API tm_params *tm_params_new(void);                            /* NULL with TM_NOMEM */
TM_API void tm_params_free(tm_params *p);                         /* NULL is fine */
/* Adds t under a name of its own, with a reference of its own; the caller keeps what it had. TM_VALUE if the name is taken.
 * The same tensor may stand under two names (tied weights): it is trained and counted once. */
TM_API tm_status tm_params_add(tm_params *p, const char *name, tm_tensor *t);
TM_API int64_t tm_params_len(const tm_params *p);
TM_API const char *tm_params_name(const tm_params *p, int64_t i);  /* borrowed */
TM_API tm_tensor *tm_params_get(const tm_params *p, int64_t i);    /* borrowed; NULL with TM_INDEX out of range */
TM_API tm_tensor *tm_params_find(const tm_params *p, const char *name); /* borrowed; NULL if absent, no error recorded */
TM_API int64_t tm_params_numel(const tm_params *p);                /* elements of all, tied ones once */
/* Forgets every gradient. */
TM_API tm_status tm_params_zero_grad(tm_params *p);
/* Scales all gradients together so that their 2-norm is at most max_norm; total (may be NULL) gets the norm before. */
TM_API tm_status tm_params_clip_grad_norm(tm_params *p, double max_norm, double *total);

/* ---- layers. `name` prefixes the parameters' names: "fc" gives fc.weight, fc.bias */
typedef struct tm_nn_linear {
    tm_tensor *weight;   /* [out, in] */
    tm_tensor *bias;     /* [out], or NULL */
} tm_nn_linear;
TM_API tm_status tm_nn_linear_init(tm_nn_linear *l, tm_params *p, const char *name, int64_t in, int64_t out, bool bias);
TM_API tm_tensor *tm_nn_linear_forward(const tm_nn_linear *l, tm_tensor *x);      /* [..., in] -> [..., out] */

typedef struct tm_nn_embedding {
    tm_tensor *weight;   /* [count, dim] */
} tm_nn_embedding;
TM_API tm_status tm_nn_embedding_init(tm_nn_embedding *l, tm_params *p, const char *name, int64_t count, int64_t dim);
TM_API tm_tensor *tm_nn_embedding_forward(const tm_nn_embedding *l, tm_tensor *ids);  /* int64 or int32 [...] -> [..., dim] */

typedef struct tm_nn_layer_norm {
    int64_t dim;
    double eps;
    tm_tensor *weight, *bias;   /* [dim]; bias may be NULL */
} tm_nn_layer_norm;
TM_API tm_status tm_nn_layer_norm_init(tm_nn_layer_norm *l, tm_params *p, const char *name, int64_t dim, bool bias);
TM_API tm_tensor *tm_nn_layer_norm_forward(const tm_nn_layer_norm *l, tm_tensor *x);  /* over the last dimension */

/* Zeroes elements with probability p and scales the others by 1 / (1 - p) while `training`; else hands x back. */
typedef struct tm_nn_dropout {
    double p;
    bool training;
} tm_nn_dropout;
TM_API tm_tensor *tm_nn_dropout_forward(const tm_nn_dropout *l, tm_tensor *x);

/* ---- first values, written into a tensor under no_grad; PyTorch's functions of the same name */
TM_API tm_status tm_nn_init_normal(tm_tensor *t, double mean, double std);
TM_API tm_status tm_nn_init_uniform(tm_tensor *t, double low, double high);
TM_API tm_status tm_nn_init_zeros(tm_tensor *t);
TM_API tm_status tm_nn_init_ones(tm_tensor *t);
TM_API tm_status tm_nn_init_kaiming_uniform(tm_tensor *t, double a);   /* fan_in of a [out, in, ...] weight, leaky_relu gain */

#ifdef __cplusplus
}
#endif
#endif
