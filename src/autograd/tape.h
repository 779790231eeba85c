/* The tape: nodes, edges, saved values, and what hangs on a tensor that takes part in differentiation.
 *
 * tape.c nodes | variable.c what hangs on a tensor | saved.c saved values | node_hooks.c | view_history.c views and in-place | record.c the layer that
 * records | engine.c the backward pass | accumulate.c sums gradients | api.h what the Python glue and custom functions use. */
#ifndef TMI_TAPE_H
#define TMI_TAPE_H

#include "base/vec.h"
#include "ops/op.h"

typedef struct tmi_packed tmi_packed;   /* saved.c: what saved-tensor hooks made of a value */
struct tmi_view_rule;                   /* view_history.c */
struct tmi_slices;

/* A value that a formula will read. An input is kept as a reference with the version it had; an output of the node itself is kept as a
 * detached alias (same storage and version counter) that is attached again when unpacked, so no cycle arises. */
typedef struct tmi_saved {
    tm_tensor *t;          /* owned; NULL if not saved, or packed */
    uint64_t version;
    int32_t result;        /* >= 0: the node's own result of this number; -1: an input */
    tmi_packed *packed;    /* owned */
} tmi_saved;

/* What the engine and formulas need to know of a tensor without keeping it: to check, sum and cast a gradient, to make zeros. */
typedef struct tmi_result_info {
    int32_t ndim;
    uint8_t dtype;
    bool defined;          /* false: an optional argument that was not given */
    tm_device device;
    int64_t offset;
    int64_t *sizes;        /* in the node's block */
    int64_t *strides;
} tmi_result_info;

typedef struct tmi_edge {
    tmi_node *node;        /* owned reference; NULL: this input needs no gradient */
    int32_t nr;            /* which result of `node` */
} tmi_edge;

/* A hook, shared by the list that runs it and the handle that can take it away. `fn` is called with
 *   tensor hook:           grads[0] the gradient (n = 1), outs NULL
 *   node pre-hook:         grads[n] the gradients of the node's results
 *   node post-hook:        grads as received, outs[n_outs] what the node computed
 *   post-accumulate hook:  grads[0] the leaf itself (not replaceable)
 * Entries of the last array given (outs if there are any) may be replaced: the hook releases the old reference and stores one of its own.
 * Entries may be NULL (no gradient), except a tensor hook's. */
typedef struct tmi_hook {
    tmi_refcount refs;
    uint64_t id;                   /* unique in the process */
    int32_t nr;                    /* tensor hooks that sit on a node: which result */
    _Atomic bool removed, freed;
    _Atomic int32_t running;
    tm_status (*fn)(void *ctx, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs);
    void (*free)(void *ctx);
    void *ctx;
} tmi_hook;
typedef TMI_VEC(tmi_hook *) tmi_hooks_vec;

typedef struct tmi_node_hooks {    /* made with the first one */
    tmi_hooks_vec tensor;          /* of the node's results */
    tmi_hooks_vec pre, post;
    TMI_VEC(struct tmi_grad_cell *) retains; /* owned: gradients of results that are retained */
} tmi_node_hooks;

/* The .grad of a tensor that is no leaf but retains its gradient: shared by the tensor and its grad_fn, so that neither keeps the other. */
typedef struct tmi_grad_cell {
    tmi_refcount refs;
    int32_t nr;
    tm_tensor *grad;               /* owned */
} tmi_grad_cell;

typedef enum tmi_node_kind { TMI_NODE_OP, TMI_NODE_ACCUMULATE, TMI_NODE_CUSTOM, TMI_NODE_COPY_SLICES, TMI_NODE_ERROR, TMI_NODE_ZERO } tmi_node_kind;

/* One block: the struct, then edges, results, arg_info, args, saved_args, saved_results, sizes and lists. */
struct tmi_node {
    tmi_refcount refs;
    uint8_t kind;
    _Atomic bool lock;             /* guards saved values, hooks and accumulation; never held across a call out */
    bool released;                 /* saved values were freed: a second backward is an error */
    bool has_python;               /* this node or what it leads to may hold Python objects (tmi_node_skippable) */
    bool owns_name;
    bool materialize;              /* TMI_NODE_CUSTOM: absent gradients arrive as zeros */
    uint32_t epoch;                /* tmi_python_epoch at creation */
    uint32_t nbytes;               /* of the block */
    int32_t n_edges, n_results, n_tensor_args;
    uint32_t needs;                /* bit i: args[i] wants a gradient */
    const tmi_op *op;              /* TMI_NODE_OP, TMI_NODE_ERROR */
    const char *name;              /* "AddBackward0"; borrowed for ops, owned for custom nodes */
    uint64_t sequence;             /* order of creation on its thread: later nodes run first */
    tmi_edge *edges;               /* one per tensor among the arguments that have a formula, Tensor[] flattened, in argument order */
    tmi_result_info *results;
    tmi_value *args;               /* the call's arguments: numbers and lists copied, tensors NULL (see saved_args) */
    tmi_result_info *arg_info;     /* every tensor argument, Tensor[] flattened */
    tmi_saved *saved_args;         /* like arg_info; NULL if none is saved */
    tmi_saved *saved_results;      /* n_results; NULL if none is saved */
    tm_tensor *variable;           /* TMI_NODE_ACCUMULATE: the leaf (owned by the node; the leaf holds the node weakly) */
    struct tmi_slices *slices;     /* TMI_NODE_COPY_SLICES */
    tmi_node_hooks *hooks;
    /* TMI_NODE_CUSTOM: grads[n_results] (NULL where none came), fills inputs[n_edges] with new references */
    tm_status (*custom)(tmi_node *n, tm_tensor **grads, tm_tensor **inputs);
    void (*custom_release)(tmi_node *n);   /* free saved values after a backward that keeps no graph; may be NULL */
    void (*custom_free)(tmi_node *n);
    void *custom_ctx;
    const char *where;             /* source line of the forward call, interned; NULL if unknown */
    void *anomaly;                 /* what tmi_autograd_glue.capture gave */
    void *pyobj;                   /* the glue's wrapper; count bit as for tensors */
    tmi_node *next_dying;          /* list of nodes that wait to be freed */
};

/* How a view was made; decides what in-place on it may do. */
typedef enum tmi_creation { TMI_VIEW_DEFAULT, TMI_VIEW_NO_GRAD, TMI_VIEW_MULTI_OUTPUT, TMI_VIEW_CUSTOM, TMI_VIEW_INFERENCE } tmi_creation;

typedef struct tmi_grad_meta {
    tm_tensor *grad;               /* owned; read it through tmi_grad_of */
    tm_tensor *tangent;            /* owned: forward mode */
    tmi_node *grad_fn;             /* owned; NULL for leaves. Read it through tmi_grad_fn_of */
    tmi_node *accumulator;         /* weak: the node clears it when it dies */
    int32_t output_nr;
    uint8_t creation;              /* tmi_creation */
    _Atomic bool lock;
    tmi_grad_cell *cell;           /* owned; not NULL: retain_grad was called, and .grad is the cell's */
    tmi_hooks_vec *hooks;          /* a leaf's tensor hooks (those of other tensors sit on their grad_fn) */
    tmi_hooks_vec *post_accumulate;
    /* views */
    tm_tensor *base;               /* owned; NULL if this is no view that autograd tracks */
    uint64_t version_seen;         /* version at which grad_fn was made: if the counter moved, it is made again from base's */
    uint64_t saved_since;          /* sequence number of the first node that saved this tensor or a view of it; 0: none */
    struct tmi_view_rule *rules;   /* chain that rebuilds this view from base; NULL: its sizes, strides and offset say it all */
} tmi_grad_meta;

/* A call of a gradient formula. Everything is borrowed; outs belong to the open scope or are borrowed too. */
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
tm_tensor *tmi_grad_or_zeros(const tmi_grad_call *g, int i);   /* owned by the open scope, or borrowed */

/* ---- tape.c */
/* A node with room for its edges and results; `extra` bytes follow them (tmi_node_extra). Result sizes: tmi_node_set_result. */
tmi_node *tmi_node_new(tmi_node_kind kind, int n_edges, int n_results, size_t extra);
uint64_t tmi_latest_sequence(void);            /* of the node made last on this thread */
void *tmi_node_extra(tmi_node *n);
tmi_node *tmi_node_retain(tmi_node *n);
void tmi_node_release(tmi_node *n);            /* iterative: a chain of 1,000,000 nodes is freed without recursion */
bool tmi_node_try_retain(tmi_node *n);         /* false if its count is already zero */
void tmi_node_release_saved(tmi_node *n);      /* after a backward that keeps no graph */
void tmi_node_set_edge(tmi_node *n, int i, tmi_edge e); /* takes e's reference */
tm_status tmi_info_fill(tmi_result_info *info, const tm_tensor *t); /* heap sizes if info has none or too few */
void tmi_lock(_Atomic bool *lock);
void tmi_unlock(_Atomic bool *lock);

/* ---- node_hooks.c */
tmi_hook *tmi_hook_new(tm_status (*fn)(void *, tmi_node *, tm_tensor **, int, tm_tensor **, int), void (*free)(void *), void *ctx);
void tmi_hook_release(tmi_hook *h);
void tmi_hook_remove(tmi_hook *h);             /* runs no more; its context is freed now unless it is running */
void tmi_hooks_free(tmi_hooks_vec *v);
tmi_node_hooks *tmi_node_hooks_of(tmi_node *n); /* made on demand; NULL with TM_NOMEM */
/* Runs hooks of a vector in order; `nr` >= 0: only those of that result. Callbacks see no scope, no pending error, no internal mode. */
tm_status tmi_hooks_run(tmi_hooks_vec *v, int nr, tmi_node *node, tm_tensor **grads, int n, tm_tensor **outs, int n_outs);

/* Every call out to someone else's code (hooks, custom functions): an empty barrier scope, the error record put aside, plain modes. */
typedef struct tmi_call_out {
    tmi_barrier barrier;
    uint32_t modes;
} tmi_call_out;
void tmi_call_out_begin(tmi_call_out *c);
void tmi_call_out_end(tmi_call_out *c);

/* ---- variable.c */
tmi_grad_meta *tmi_grad_meta_of(tm_tensor *t); /* made on demand; NULL with TM_NOMEM */
tm_status tmi_grad_edge(tm_tensor *t, tmi_edge *out); /* where t's gradient goes: grad_fn, or the leaf's accumulator; remakes a stale view's. A reference of its own */
tm_status tmi_set_history(tm_tensor *t, tmi_node *node, int nr); /* t becomes result nr of node; retained gradients follow */
tm_status tmi_take_history(tm_tensor *t, tmi_node *node, int nr); /* the same, and the caller's reference to node goes to t, or is given back on failure */
/* The flag, or for a view the flag of its base, which an in-place change may have set since. */
static inline bool tmi_requires_grad(const tm_tensor *t)
{
    return (t->flags & TMI_REQUIRES_GRAD) || ((t->flags & TMI_IS_VIEW) && (t->grad_meta->base->flags & TMI_REQUIRES_GRAD));
}
void tmi_cell_release(tmi_grad_cell *c);
/* grad_fn, remade if a view's base was changed in place; borrowed; NULL for leaves (or error pending). */
tmi_node *tmi_grad_fn_of(tm_tensor *t);

/* ---- saved.c */
tm_status tmi_save(tmi_saved *s, tm_tensor *t, int result); /* result >= 0: own output of that number */
tm_status tmi_unpack_saved(tmi_saved *s, tmi_node *owner, tm_tensor **out /* new reference */);
void tmi_saved_clear(tmi_saved *s);

/* ---- view_history.c */
/* Errors that PyTorch gives before an in-place change: leaf, view of a leaf, multi-output views, no_grad views, inference tensors.
 * `recording`: grad mode is on and some argument requires grad. */
tm_status tmi_check_inplace(tm_tensor *t, bool recording);
/* Marks `view` as a view of `of` (or of what that views). out: which result of the call it is. op NULL: exactly the same view. */
tm_status tmi_track_view(tm_tensor *view, tm_tensor *of, const tmi_op *op, const tmi_value *args, int out, tmi_creation creation);
/* In-place: everything that can fail happens in prepare, before data is written; commit makes `node` the history of t (and of its base). */
typedef struct tmi_rebase {
    tm_tensor *t;
    tmi_node *node;    /* borrowed */
    tmi_node *slices;  /* owned; NULL when t is no view */
    bool unknown;      /* t had no data of autograd before: whether some node saved it is not known */
} tmi_rebase;
tm_status tmi_rebase_prepare(tmi_rebase *r, tm_tensor *t, tmi_node *node, int nr);
tm_status tmi_rebase_commit(tmi_rebase *r, int nr);
void tmi_rebase_cancel(tmi_rebase *r);
tm_status tmi_copy_slices_run(tmi_node *n, tm_tensor *grad, tm_tensor **outs);
void tmi_slices_free(tmi_node *n);
void tmi_slices_release_saved(tmi_node *n);
void tmi_view_rules_release(struct tmi_view_rule *r);

/* ---- record.c */
void tmi_autograd_init(void);                  /* fills tmi_layers.autograd and core's hooks; called once by the library's start */
tm_status tmi_autograd_call(const tmi_op *op, const tmi_value *args, tmi_out *out, tmi_form form);

/* ---- engine.c */
typedef struct tmi_backward_args {
    tm_tensor *const *roots;        /* n_roots */
    tm_tensor *const *grads;        /* per root; NULL or NULL entry: ones for a one-element root, else "grad can be implicitly created only for scalar outputs" */
    int n_roots;
    tm_tensor *const *inputs;       /* NULL: accumulate into every leaf's .grad; else gradients of these are returned in `results` */
    int n_inputs;
    tm_tensor **results;            /* n_inputs new references (NULL where unused); NULL with inputs: accumulate into those leaves only */
    bool retain_graph, create_graph, allow_unused;
} tmi_backward_args;
tm_status tmi_backward(const tmi_backward_args *a);
/* Runs one node: grads[n_results] borrowed; outs[n_edges] get new references or NULL. */
tm_status tmi_node_run(tmi_node *n, tm_tensor **grads, tm_tensor **outs);
/* Sums, casts and checks a gradient for result nr of node `to`; *grad is an owned reference and may be replaced. */
tm_status tmi_fit_gradient(tmi_node *from, int index, tmi_node *to, int nr, tm_tensor **grad);
tm_status tmi_accumulate_grad(tmi_node *n, tm_tensor *grad); /* accumulate.c: into the leaf's .grad; takes nothing */

/* ---- grad_calls.c: the few operators that the tape itself needs. New references, outside every scope; NULL on failure. */
tm_tensor *tmi_do_add(tm_tensor *a, tm_tensor *b);
tm_status tmi_do_add_inplace(tm_tensor *a, tm_tensor *b);
tm_tensor *tmi_do_clone(tm_tensor *t, bool contiguous);
tm_tensor *tmi_do_cast(tm_tensor *t, tm_dtype dtype);
tm_tensor *tmi_do_real(tm_tensor *t);
tm_tensor *tmi_do_sum_to(tm_tensor *t, int ndim, const int64_t *sizes);
tm_tensor *tmi_do_ones_like(tm_tensor *t);
tm_tensor *tmi_do_full(int ndim, const int64_t *sizes, tm_dtype dtype, tm_device device, double value);
tm_tensor *tmi_do_as_strided(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset);
tm_status tmi_do_copy_inplace(tm_tensor *to, tm_tensor *from);
tm_status tmi_do_zero_inplace(tm_tensor *t);
tm_tensor *tmi_do_to_device(tm_tensor *t, tm_device device);
tm_status tmi_do_any_nan(tm_tensor *t, bool *yes);

#endif
