/* Operators: the boxed value, the operator record that tools/opgen.py writes from *.ops, and a call's way to its kernel.
 *
 * call -> [transforms, autocast] -> autograd -> [interception, capture] -> shape rule -> kernel or body
 *
 * Everything above the kernel is written once against this boxed convention, never per operator. Typed C functions (tm_add) and
 * the Python parser only fill an array of tmi_value. A plain call is one test away from the shape rule. */
#ifndef TMI_OP_H
#define TMI_OP_H

#include "core/tensor_state.h"

typedef enum tmi_tag {
    TMI_V_NONE,      /* an optional argument that was not given */
    TMI_V_TENSOR,    /* u.t, never NULL */
    TMI_V_TENSORS,   /* u.tensors[len]; entries are NULL only in Tensor?[] */
    TMI_V_INT,       /* u.i */
    TMI_V_INTS,      /* u.ints[len] */
    TMI_V_BOOL,      /* u.b */
    TMI_V_BOOLS,     /* u.bools[len] */
    TMI_V_FLOAT,     /* u.f */
    TMI_V_FLOATS,    /* u.floats[len] */
    TMI_V_SCALAR,    /* sub = tm_scalar tag, value in u */
    TMI_V_DTYPE,     /* u.i = tm_dtype */
    TMI_V_DEVICE,    /* u.device */
    TMI_V_LAYOUT,    /* u.i */
    TMI_V_FORMAT,    /* u.i = tm_memory_format */
    TMI_V_STR,       /* u.str */
    TMI_V_GENERATOR, /* u.generator */
    TMI_V_SCALARS,   /* u.scalars[len] */
} tmi_tag;

typedef struct tmi_value {
    uint8_t tag;     /* tmi_tag */
    uint8_t sub;     /* for scalars */
    uint32_t len;    /* for lists */
    union {
        tm_tensor *t;
        tm_tensor *const *tensors;
        tm_int i;
        const tm_int *ints;
        bool b;
        const bool *bools;
        double f;
        const double *floats;
        const tm_scalar *scalars;
        tm_device device;
        const char *str;
        tm_generator *generator;
        struct { double re, im; } c;   /* layout of tm_scalar.v */
    } u;
} tmi_value;

static inline tmi_value tmi_v_none(void) { return (tmi_value){.tag = TMI_V_NONE}; }
static inline tmi_value tmi_v_tensor(tm_tensor *t) { return (tmi_value){.tag = t ? TMI_V_TENSOR : TMI_V_NONE, .u.t = t}; }
static inline tmi_value tmi_v_int(tm_int i) { return (tmi_value){.tag = TMI_V_INT, .u.i = i}; }
static inline tmi_value tmi_v_bool(bool b) { return (tmi_value){.tag = TMI_V_BOOL, .u.b = b}; }
static inline tmi_value tmi_v_float(double f) { return (tmi_value){.tag = TMI_V_FLOAT, .u.f = f}; }
static inline tmi_value tmi_v_ints(const tm_int *p, int64_t n) { return (tmi_value){.tag = TMI_V_INTS, .len = (uint32_t)n, .u.ints = p}; }
static inline tmi_value tmi_v_scalar(tm_scalar s)
{
    /* word by word: a 16-byte load of what was just written as two words waits for both to reach the cache */
    tmi_value v = {.tag = TMI_V_SCALAR, .sub = (uint8_t)s.tag, .u.c = {s.v.c.re, s.v.c.im}};
    return v;
}
static inline tm_scalar tmi_as_scalar(const tmi_value *v)
{
    tm_scalar s;
    s.tag = v->sub;
    s.v.c.re = v->u.c.re;
    s.v.c.im = v->u.c.im;
    return s;
}
static inline tm_tensor *tmi_as_tensor(const tmi_value *v) { return v->tag == TMI_V_TENSOR ? v->u.t : NULL; }

enum { TMI_MAX_ARGS = 24, TMI_MAX_OUTS = 8 };

/* What a call gives back. Tensors in t[0..n); list results in `list`; numbers (item, equal) in `scalar`. References are the caller's
 * own here; typed C functions hand them to the scope. */
typedef struct tmi_out {
    int n;
    tm_tensor *t[TMI_MAX_OUTS];
    tm_tensor_list *list;
    tm_scalar scalar;
} tmi_out;


/* What a shape rule says of one output. */
typedef enum tmi_meta_kind {
    TMI_META_NEW,      /* a fresh tensor of these sizes; strides unless `contiguous` */
    TMI_META_VIEW,     /* a view of `base` with these sizes, strides and offset: no kernel runs */
    TMI_META_SELF,     /* `base` itself is handed back (a reference of its own) */
    TMI_META_DATA,     /* sizes depend on the data: the kernel makes the output */
} tmi_meta_kind;
typedef struct tmi_meta {
    uint8_t kind;
    uint8_t dtype;         /* preset to the first tensor argument's */
    bool contiguous;       /* preset to true: strides are not looked at */
    tm_device device;      /* preset to the arguments' common device */
    int32_t ndim;
    tm_tensor *base;       /* borrowed */
    tm_int offset;
    tm_int sizes[TMI_MAX_DIMS];
    tm_int strides[TMI_MAX_DIMS];
} tmi_meta;

typedef struct tmi_op tmi_op;
typedef struct tmi_node tmi_node;      /* autograd/ */
typedef struct tmi_grad_call tmi_grad_call;

/* Fills out[0..n_outs) from the arguments alone, never from data. */
typedef tm_status tmi_shape_fn(const tmi_value *args, tmi_meta *out);
/* Writes into tensors that already have the shape rule's sizes and dtype. `outs` entries may be any strided tensors of those
 * sizes. For TMI_META_DATA outputs the entry is NULL before and a new reference after. */
typedef tm_status tmi_kernel_fn(const tmi_value *args, tm_tensor **outs);
/* A composite: computes with other operators, in a scope of its own that the dispatcher opens; results it returns are kept. */
typedef tm_status tmi_body_fn(const tmi_value *args, tmi_out *out);
/* Gradient formulas; see autograd/tape.h. */
typedef tm_status tmi_grad_fn(tmi_grad_call *g);

typedef enum tmi_arg_type {
    TMI_T_TENSOR, TMI_T_TENSORS, TMI_T_OPT_TENSORS /* Tensor?[] */, TMI_T_INT, TMI_T_INTS, TMI_T_BOOL, TMI_T_BOOLS, TMI_T_FLOAT, TMI_T_FLOATS,
    TMI_T_SCALAR, TMI_T_SCALARS, TMI_T_DTYPE, TMI_T_DEVICE, TMI_T_LAYOUT, TMI_T_FORMAT, TMI_T_STR, TMI_T_GENERATOR,
} tmi_arg_type;

typedef struct tmi_arg {
    const char *name;
    uint8_t type;          /* tmi_arg_type */
    bool optional;         /* T? : None is allowed */
    bool kwarg_only;
    bool has_default;
    int16_t list_size;     /* int[2]: one number stands for that many; 0 = any length */
    tmi_value def;         /* the default, when has_default */
} tmi_arg;

enum {  /* tmi_op.flags */
    TMI_OP_POINTWISE = 1 << 0,   /* kernel may write over an input of the same layout */
    TMI_OP_VIEW = 1 << 1,        /* outputs are views of args[0] */
    TMI_OP_RANDOM = 1 << 2,
    TMI_OP_TRANSPARENT = 1 << 3, /* composite without grad: its parts record themselves */
    TMI_OP_MUTATES = 1 << 4,     /* writes into args named in mutates_mask (besides in-place and out forms) */
    TMI_OP_SYNC = 1 << 5,        /* needs values now (item, equal) */
    TMI_OP_NONDIFF = 1 << 6,     /* results never require grad (argmax, comparisons) */
    TMI_OP_INPLACE_FORM = 1 << 7,
    TMI_OP_OUT_FORM = 1 << 8,
    TMI_OP_LIST_RESULT = 1 << 9,
    TMI_OP_SCALAR_RESULT = 1 << 10,
    TMI_OP_MULTI_VIEW = 1 << 11, /* split, chunk, unbind: in-place on results is refused */
    TMI_OP_FACTORY = 1 << 12,    /* no tensor argument decides the device */
    TMI_OP_MIXED_DEVICE = 1 << 13, /* arguments may live on different devices (copy_) */
    TMI_OP_INPLACE_ONLY = 1 << 14, /* normal_, copy_: the name itself is the in-place form; called with TMI_FORM_INPLACE only */
    TMI_OP_OVER_SELF = 1 << 15,  /* the kernel may get args[0] itself as its output (scatter_: starts from self) */
    TMI_OP_EXACT_OUT = 1 << 16,  /* out= tensors must have the results' own dtypes */
};

struct tmi_op {
    const char *name;        /* "add" */
    const char *overload;    /* "Tensor", or "" */
    const char *node_name;   /* "AddBackward0" */
    uint16_t id;
    uint8_t n_args, n_outs;
    uint32_t flags;
    uint32_t tensor_args;    /* bit i: args[i] is a Tensor or Tensor[] */
    uint32_t mutates;        /* bit i: args[i] is written by the plain form (mutates: line) */
    uint32_t untracked;      /* bit i: ... without raising its version (running statistics) */
    uint32_t nondiff_outs;   /* bit i: result i never requires grad */
    const tmi_arg *args;
    const char *const *out_names;  /* "values", "indices"; NULL entries when unnamed */
    tmi_shape_fn *shape;     /* NULL: body only */
    tmi_body_fn *body;       /* NULL: every device needs a kernel */
    tmi_grad_fn *grad;       /* NULL: not differentiable (error on backward), or TRANSPARENT, or NONDIFF */
    uint32_t grad_args;      /* bit i: args[i] has a formula */
    const uint32_t *save_args;    /* per argument i with a formula: which args the formula reads (values, not metadata) */
    const uint32_t *save_results; /* likewise results */
};

extern const tmi_op tmi_ops[];          /* generated; index = id */
extern const int tmi_n_ops;
const tmi_op *tmi_op_find(const char *name, const char *overload);

/* In which form an operator is called. */
typedef enum tmi_form { TMI_FORM_PLAIN, TMI_FORM_INPLACE, TMI_FORM_OUT } tmi_form;

/* The whole way. For TMI_FORM_INPLACE args[0] is written and out->t[0] = args[0], borrowed. For TMI_FORM_OUT out->t[] hold the given
 * tensors (borrowed) on entry. Args hold exactly op->n_args values. */
tm_status tmi_call(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form);
/* Below autograd and autocast: shape rule and kernel, or body. */
tm_status tmi_run(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form);

/* Tables that higher layers fill at start. */
typedef struct tmi_device_ops {
    const char *name;
    tmi_kernel_fn *const *kernels;   /* by op id; NULL entry: no kernel, the body runs */
} tmi_device_ops;
extern const tmi_device_ops *tmi_devices[TM_DEVICE_TYPE_COUNT];
typedef tm_status tmi_layer_fn(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form);
typedef struct tmi_call_layers {     /* each may be NULL; in the order a call meets them */
    tmi_layer_fn *transform;         /* vmap and the like: asked when TMI_MODE_TRANSFORM is on; rewrites the call and calls tmi_call again a level below */
    tmi_layer_fn *autograd;          /* asked when an argument or a mode is not plain; runs the call through tmi_run and records it */
    tmi_layer_fn *intercept;         /* dispatch modes, wrappers, capture: asked by tmi_run when a tensor is TMI_INTERCEPTED, or under TMI_MODE_INTERCEPT
                                        or TMI_MODE_CAPTURE. It turns its mode off around what it runs itself */
} tmi_call_layers;
extern tmi_call_layers tmi_layers;

#endif
