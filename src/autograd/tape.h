/* The tape: nodes, edges, saved values, and what hangs on a tensor that takes part in differentiation. The engine is engine.c. */
#ifndef TMI_TAPE_H
#define TMI_TAPE_H

#include "base/map.h"
#include "base/vec.h"
#include "ops/op.h"

/* A value that a formula will read. An input is kept as a reference with the version it had; an output of the node itself is kept as a
 * detached alias (same storage and version counter) that is attached again when unpacked, so no cycle arises. */
typedef struct tmi_saved {
    tm_tensor *t;          /* owned; NULL if not saved */
    uint64_t version;
    int16_t result;        /* >= 0: this is the node's own result number; the alias is re-attached on unpacking */
    void *hook_data;       /* saved-tensor hooks: what pack returned; unpack makes the tensor */
} tmi_saved;

/* What the engine needs to know of a result: to check, sum and cast an incoming gradient, and to make zeros. */
typedef struct tmi_result_info {
    int32_t ndim;
    uint8_t dtype;
    tm_device device;
    bool defined;
    int64_t sizes_inline[TMI_INLINE_DIMS];
    int64_t *sizes;        /* = sizes_inline, or heap beyond */
} tmi_result_info;

typedef struct tmi_edge {
    tmi_node *node;        /* owned reference; NULL: this input needs no gradient */
    int32_t nr;            /* which result of `node` */
} tmi_edge;

typedef struct tmi_hook {   /* tensor hooks, node pre and post hooks */
    uint64_t id;
    tm_status (*fn)(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs); /* may replace entries (owned references) */
    void (*free)(void *ctx);
    void *ctx;
} tmi_hook;

typedef enum tmi_node_kind { TMI_NODE_OP, TMI_NODE_ACCUMULATE, TMI_NODE_CUSTOM, TMI_NODE_COPY_SLICES, TMI_NODE_ERROR } tmi_node_kind;

struct tmi_node {
    tmi_refcount refs;
    uint8_t kind;
    bool released;                 /* saved values were freed: a second backward is an error */
    bool has_python;               /* subgraph may reach Python objects: traversal must enter */
    const tmi_op *op;              /* TMI_NODE_OP */
    const char *name;              /* "AddBackward0"; borrowed for ops, owned for custom nodes */
    uint64_t sequence;             /* order of creation on this thread: later nodes run first */
    uint64_t topological;          /* 1 + maximum over inputs: bounds searches */
    int32_t n_edges, n_results;
    tmi_edge *edges;               /* one per differentiable tensor input, Tensor[] flattened in argument order */
    tmi_result_info *results;
    /* TMI_NODE_OP: the call's arguments. Tensors among them are replaced by saved[]; numbers and lists are copied. */
    tmi_value *args;
    tmi_saved *saved_args;         /* per flattened tensor argument */
    tmi_result_info *arg_info;     /* metadata of every flattened tensor argument, for formulas that read only sizes or dtype */
    int32_t n_tensor_args;
    tmi_saved saved_results[TMI_MAX_OUTS];
    uint32_t needs;                /* bit i: args[i] wants a gradient */
    tm_status (*custom)(tmi_node *n, tm_tensor **grads, tm_tensor **inputs); /* TMI_NODE_CUSTOM: grads[n_results] may be NULL, fills inputs[n_edges] */
    void (*custom_free)(tmi_node *n);
    void *custom_ctx;
    tm_tensor *variable;           /* TMI_NODE_ACCUMULATE: the leaf (owned by the node; the leaf holds the node weakly) */
    TMI_VEC(tmi_hook) pre_hooks;
    TMI_VEC(tmi_hook) post_hooks;
    struct tmi_slices *slices;     /* TMI_NODE_COPY_SLICES */
    const char *where;             /* source line of the forward call, interned; NULL if unknown */
    void *pyobj;
};

/* How a view was made; decides what in-place on it may do. */
typedef enum tmi_creation { TMI_VIEW_DEFAULT, TMI_VIEW_NO_GRAD, TMI_VIEW_MULTI_OUTPUT, TMI_VIEW_CUSTOM, TMI_VIEW_INFERENCE } tmi_creation;

typedef struct tmi_grad_meta {
    tm_tensor *grad;               /* owned */
    tm_tensor *tangent;            /* owned: forward mode */
    tmi_node *grad_fn;             /* owned; NULL for leaves */
    int32_t output_nr;
    tmi_node *accumulator;         /* weak: the node clears it when it dies */
    bool retains_grad;
    TMI_VEC(tmi_hook) hooks;
    TMI_VEC(tmi_hook) post_accumulate_hooks;
    /* views */
    tm_tensor *base;               /* owned; NULL if this is no view that autograd tracks */
    uint8_t creation;              /* tmi_creation */
    uint64_t version_seen;         /* version at which grad_fn was made: if the counter moved, it is made again from base's */
    struct tmi_view_rule *rules;   /* chain of (operator, arguments) that rebuilds this view from base */
} tmi_grad_meta;

/* A call of a gradient formula. Everything is borrowed; outs are new references that belong to the open scope until kept. */
struct tmi_grad_call {
    tmi_node *node;
    const tmi_value *args;         /* as in the forward call; tensors are unpacked saved values (NULL where not saved) */
    tm_tensor *const *grads;       /* one per result; NULL: no gradient came. Single-result nodes never see NULL */
    tm_tensor *const *results;     /* unpacked, NULL where not saved */
    uint32_t needs;                /* bit i: args[i] wants a gradient */
    tm_tensor **out;               /* to fill: one per args[i] that is a Tensor, indexed by argument number */
    tm_tensor ***out_lists;        /* one array per args[i] that is a Tensor[] (length = list length), else NULL */
};
/* Metadata of argument i (element j of a Tensor[]) and zeros shaped as result i, for formulas. */
const tmi_result_info *tmi_grad_arg(const tmi_grad_call *g, int i, int j);
tm_tensor *tmi_grad_or_zeros(const tmi_grad_call *g, int i);

/* ---- tape.c */
tmi_node *tmi_node_new(tmi_node_kind kind, int n_edges, int n_results);
tmi_node *tmi_node_retain(tmi_node *n);
void tmi_node_release(tmi_node *n);            /* iterative: a chain of 1,000,000 nodes is freed without recursion */
void tmi_node_release_saved(tmi_node *n);      /* after a backward that keeps no graph */
tmi_grad_meta *tmi_grad_meta_of(tm_tensor *t); /* made on demand; NULL with TM_NOMEM */
tm_status tmi_grad_edge(tm_tensor *t, tmi_edge *out); /* where t's gradient goes: grad_fn, or the leaf's accumulator; remakes a stale view's */
tm_status tmi_set_history(tm_tensor *t, tmi_node *node, int nr);
tm_status tmi_autograd_call(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form);
/* grad_fn, remade if a view's base was changed in place; borrowed; NULL for leaves (or error pending). */
tmi_node *tmi_grad_fn_of(tm_tensor *t);
/* Errors that PyTorch gives before an in-place change: leaf, view of a leaf, multi-output views, no_grad views, inference tensors. */
tm_status tmi_check_inplace(tm_tensor *t, bool recording);
tm_status tmi_unpack_saved(const tmi_saved *s, tmi_node *owner, tm_tensor **out /* new reference */);

/* ---- engine.c */
typedef struct tmi_backward_args {
    tm_tensor *const *roots;        /* n_roots */
    tm_tensor *const *grads;        /* per root; NULL entry: ones for a one-element root, else "grad can be implicitly created only for scalar outputs" */
    int n_roots;
    tm_tensor *const *inputs;       /* NULL: accumulate into every leaf's .grad; else gradients of these are returned in `results` */
    int n_inputs;
    tm_tensor **results;            /* n_inputs new references (NULL where unused); NULL with inputs: accumulate into those leaves only */
    bool retain_graph, create_graph, allow_unused;
} tmi_backward_args;
tm_status tmi_backward(const tmi_backward_args *a);

#endif
