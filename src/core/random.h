/* Random numbers on the CPU: PyTorch's mt19937 streams, bit for bit (tests/spec/spec_rng.py is the model in Python).
 *
 * Fills write n contiguous elements in memory order; who has a strided tensor fills a contiguous block and copies. `g` NULL is the
 * default generator. Every call holds the generator's lock from start to end. Arguments are checked with PyTorch's messages before
 * anything is drawn or written; a dtype that PyTorch refuses is TM_NOT_IMPLEMENTED. Complex dtypes count as 2n reals where allowed. */
#ifndef TMI_RANDOM_H
#define TMI_RANDOM_H

#include "tensor_state.h"

enum { TMI_GENERATOR_STATE_BYTES = 5056 };

/* [from, to) for floating and complex dtypes. */
tm_status tmi_random_uniform(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double from, double to);
/* `contiguous`: whether the tensor being filled is contiguous; PyTorch's stream differs (blocks of 16, from n = 16 on). Complex: both parts
 * have this mean and std / sqrt(2). */
tm_status tmi_random_normal(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double mean, double std, bool contiguous);
/* exp(normal(mean, std)). */
tm_status tmi_random_log_normal(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double mean, double std);
tm_status tmi_random_exponential(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double lambda);
tm_status tmi_random_geometric(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double p);
tm_status tmi_random_cauchy(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double median, double sigma);

/* Integers in [from, to); `to` NULL: up to the largest number that the dtype holds exactly (random_(from, None)). randint is this. */
tm_status tmi_random_range(tm_generator *g, void *data, int64_t n, tm_dtype dtype, int64_t from, const int64_t *to);
/* random_(): all non-negative numbers that the dtype holds exactly. */
tm_status tmi_random_full(tm_generator *g, void *data, int64_t n, tm_dtype dtype);

/* 1 with probability p, else 0; the second form takes a probability per element. */
tm_status tmi_random_bernoulli(tm_generator *g, void *data, int64_t n, tm_dtype dtype, double p);
tm_status tmi_random_bernoulli_each(tm_generator *g, void *data, int64_t n, tm_dtype dtype, const void *p, tm_dtype p_dtype);

/* A permutation of 0 .. n-1. */
tm_status tmi_random_permutation(tm_generator *g, void *data, int64_t n, tm_dtype dtype);
/* rows x categories weights, contiguous, of a floating dtype -> rows x samples indices. */
tm_status tmi_random_multinomial(tm_generator *g, const void *weights, int64_t rows, int64_t categories, tm_dtype dtype, int64_t samples,
                                 bool replacement, int64_t *out);

/* torch.Generator.get_state's bytes; setting takes exactly TMI_GENERATOR_STATE_BYTES bytes. */
void tmi_generator_get_state(tm_generator *g, uint8_t *out);
tm_status tmi_generator_set_state(tm_generator *g, const uint8_t *bytes, int64_t n);
tm_generator *tmi_generator_retain(tm_generator *g);
tm_generator *tmi_generator_clone(tm_generator *g);   /* same state, a reference of the caller's own; NULL with TM_NOMEM */
uint64_t tmi_generator_reseed(tm_generator *g);       /* seeds from the system's entropy; returns the seed */
/* One 64-bit draw, as random_() on a 0-d int64 tensor uses it (before the remainder). */
uint64_t tmi_random_u64(tm_generator *g);

#endif
