/* What generated code calls: boxing of the remaining kinds of values, the last step of typed C functions, small helpers of gradient formulas. */
#ifndef TMI_BOXING_H
#define TMI_BOXING_H

#include "autograd/tape.h"
#include "op.h"

#define TMI_NO_DEVICE ((tm_device){TM_DEVICE_DEFAULT, -1})

static inline tmi_value tmi_v_dtype(tm_dtype d) { return d == TM_DTYPE_DEFAULT ? tmi_v_none() : (tmi_value){.tag = TMI_V_DTYPE, .u.i = d}; }
static inline tmi_value tmi_v_device(tm_device d) { return d.type == TM_DEVICE_DEFAULT ? tmi_v_none() : (tmi_value){.tag = TMI_V_DEVICE, .u.device = d}; }
static inline tmi_value tmi_v_layout(int l) { return l < 0 ? tmi_v_none() : (tmi_value){.tag = TMI_V_LAYOUT, .u.i = l}; }
static inline tmi_value tmi_v_format(int f) { return f < 0 ? tmi_v_none() : (tmi_value){.tag = TMI_V_FORMAT, .u.i = f}; }
static inline tmi_value tmi_v_str(const char *s) { return s ? (tmi_value){.tag = TMI_V_STR, .u.str = s} : tmi_v_none(); }
static inline tmi_value tmi_v_generator(tm_generator *g) { return g ? (tmi_value){.tag = TMI_V_GENERATOR, .u.generator = g} : tmi_v_none(); }
static inline tm_dtype tmi_as_dtype(const tmi_value *v) { return v->tag == TMI_V_NONE ? TM_DTYPE_DEFAULT : (tm_dtype)v->u.i; }
static inline tm_device tmi_as_device(const tmi_value *v) { return v->tag == TMI_V_NONE ? TMI_NO_DEVICE : v->u.device; }

/* Typed C functions end here: the call, then the result goes to the scope. */
tm_tensor *tmi_call_tensor(const tmi_op *op, const tmi_value *args);
tm_status tmi_call_tensors(const tmi_op *op, const tmi_value *args, tm_tensor **out[]);
tm_tensor_list *tmi_call_list(const tmi_op *op, const tmi_value *args);
tm_status tmi_call_scalar(const tmi_op *op, const tmi_value *args, tm_scalar *value);
tm_status tmi_call_none(const tmi_op *op, const tmi_value *args);
tm_tensor *tmi_call_inplace(const tmi_op *op, const tmi_value *args);
tm_status tmi_call_outs(const tmi_op *op, const tmi_value *args, int n, tm_tensor *const *outs);
tm_status tmi_null_argument(const tmi_op *op);   /* an earlier operand failed, or the caller passed NULL */
tm_status tmi_body_failed(void);                 /* a body returned NULL: the pending status, or TM_INTERNAL if there is none */

/* Formulas. The accessors tolerate NULL (an operand that failed while an error is pending). */
tm_tensor *tmi_conj_for_grad(tm_tensor *t);      /* t itself for real types */
tm_scalar tmi_scalar_add(tm_scalar a, tm_scalar b);
tm_scalar tmi_scalar_sub(tm_scalar a, tm_scalar b);
tm_scalar tmi_scalar_mul(tm_scalar a, tm_scalar b);
tm_scalar tmi_scalar_div(tm_scalar a, tm_scalar b);
tm_scalar tmi_scalar_pow(tm_scalar a, tm_scalar b);
tm_scalar tmi_scalar_neg(tm_scalar a);
static inline tm_scalar tmi_scalar_conj(tm_scalar a)
{
    if (a.tag == TM_SCALAR_C128) a.v.c.im = -a.v.c.im;
    return a;
}
static inline const tm_int *tmi_sizes_of(const tm_tensor *t) { return t ? t->sizes : NULL; }
static inline int64_t tmi_ndim_of(const tm_tensor *t) { return t ? t->ndim : 0; }
static inline int64_t tmi_numel_of(const tm_tensor *t) { return t ? t->numel : 0; }
static inline tm_dtype tmi_dtype_of(const tm_tensor *t) { return t ? (tm_dtype)t->dtype : TM_F32; }
static inline tm_device tmi_device_of(const tm_tensor *t) { return t ? t->device : (tm_device){TM_CPU, -1}; }
static inline tm_int tmi_size_at(const tm_int *sizes, int64_t n, tm_int dim) { return n == 0 ? 1 : sizes[dim < 0 ? dim + n : dim]; }
static inline tm_int tmi_info_numel(const tmi_result_info *info)
{
    tm_int n = 1;
    for (int i = 0; i < info->ndim; i++) n *= info->sizes[i];
    return n;
}

#endif
