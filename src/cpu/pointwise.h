/* Elementwise work on the CPU: one entry for every kernel of pointwise.def, copies with conversion, fills. */
#ifndef TMK_POINTWISE_H
#define TMK_POINTWISE_H

#include "core/tensor_state.h"
#include "ops/shapes.h"

enum tmk_pointwise_kernel {
#define P(NAME, name, form, F, I, U, B, C) TMK_PW_##NAME,
#include "pointwise.def"
#undef P
    TMK_PW_COUNT
};

enum { TMK_MAX_OPERANDS = 8, TMK_MAX_PARAMS = 6 };

/* outs[0] = kernel(in...; params...), elementwise. `in` are tensors that broadcast to the output's sizes, or numbers. Computes in `common`
 * (f16 and bf16 in f32, rounded once) and converts the result to the output's dtype. outs[0] may be any strided tensor, and may be
 * one of the inputs with the same strides. params: numbers, converted to the type that is computed in.
 * TM_NOT_IMPLEMENTED where the kernel does not know `common`; TM_INVALID for an integer division by zero ("ZeroDivisionError"), for
 * outputs that overlap themselves or partly overlap an input. */
tm_status tmk_pointwise(int kernel, int n_in, const tmi_operand *in, int n_out, tm_tensor *const *outs, tm_dtype common,
                        const tm_scalar *params, int n_params);

/* dst[...] = src[...] with conversion and broadcasting of src; any strides; src and dst may be the same memory seen alike. */
tm_status tmk_copy(tm_tensor *dst, const tm_tensor *src);
/* Every element of dst becomes `value`, converted to its dtype. */
tm_status tmk_fill(tm_tensor *dst, tm_scalar value);

/* Straight runs, for kernels that work on rows of their own. */
typedef struct tmk_param {       /* a number in the type that is computed in: f for floats, (f, im) for complex, i for integers and bool */
    union { double f; int64_t i; };
    double im;
} tmk_param;
typedef struct tmk_params {
    tmk_param p[TMK_MAX_PARAMS];
    int fault;                   /* set by integer kernels that divide by zero */
} tmk_params;
/* data[0] = output (contiguous), data[1..] = inputs; steps in bytes per operand: an input's is its element size, or 0 for one value
 * repeated. params: tmk_params, NULL where the kernel has none. Output and inputs are the same memory, or disjoint. */
typedef void tmk_loop(char *const *data, const int64_t *steps, int64_t n, const void *params);
/* The loop for kernel and compute type, chosen for this CPU; NULL where there is none. */
tmk_loop *tmk_pointwise_loop(int kernel, tm_dtype compute);
/* n elements of `from` to n of `to`, contiguous, PyTorch's conversions; the areas are disjoint, or equal with equal sizes. */
void tmk_cast(void *dst, tm_dtype to, const void *src, tm_dtype from, int64_t n);

#endif
