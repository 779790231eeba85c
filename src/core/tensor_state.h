/* The tensor and storage structs, and how the library makes and reads them. docs/decisions.md says why they look so.
 *
 * A tensor never caches its data pointer: storage can be resized. Sizes and strides are inline up to 8 dims, 64 dims at most. */
#ifndef TMI_TENSOR_STATE_H
#define TMI_TENSOR_STATE_H

#include <stdatomic.h>

#include "base/fail.h"
#include "base/thread_state.h"
#include "dtype.h"

enum { TMI_MAX_DIMS = 64, TMI_INLINE_DIMS = 8 };

/* Counts of tensors, storages and nodes: the number in the low 62 bits, the top bit says that a Python object wraps this. */
typedef _Atomic uint64_t tmi_refcount;
#define TMI_HAS_PYOBJECT (UINT64_C(1) << 63)

enum {
    TMI_STORAGE_MAPPED = 1,
    TMI_STORAGE_READONLY = 2,
    TMI_STORAGE_SHARED = 4,
    TMI_STORAGE_FIXED = 8,        /* cannot be resized */
    TMI_STORAGE_FOREIGN = 16,     /* data came from outside (tmi_storage_wrap): `deleter`, if any, gives it back */
};

typedef struct tm_storage {
    tmi_refcount refs;
    void *data;
    size_t nbytes, capacity;
    tm_device device;
    uint32_t flags;
    uint32_t block_bytes;         /* of the block that starts with this struct: a tensor struct and small data may lie behind it */
    uint32_t inline_at;           /* where in the block that data is */
    void (*deleter)(void *ctx);
    void *deleter_ctx;
    void *pyobj;
    _Atomic uint64_t version;     /* the version counter of tensors that view this storage, unless they carry their own */
} tm_storage;

enum {
    TMI_REQUIRES_GRAD = 1 << 0,   /* a leaf that wants a gradient, or a result with grad_fn */
    TMI_HAS_TANGENT = 1 << 1,
    TMI_IS_VIEW = 1 << 2,         /* has a base known to autograd */
    TMI_CONJ = 1 << 3,
    TMI_NEG = 1 << 4,
    TMI_WRAPPED_NUMBER = 1 << 5,  /* a Python number that became a 0-d tensor: weak in promotion */
    TMI_INFERENCE = 1 << 6,
    TMI_KNOWN_ZERO = 1 << 7,
    TMI_INTERCEPTED = 1 << 8,     /* a wrapper, batched or captured value: ext says which */
    TMI_OWN_VERSION = 1 << 9,     /* `version` is its own allocation, not the storage's */
    TMI_CONTIGUOUS = 1 << 10,     /* kept up to date by tmi_tensor_restride */
    TMI_IS_PARAMETER = 1 << 11,
    TMI_IN_SCOPE = 1 << 12,       /* some scope owns a reference: retain and release look for it there */
};
/* Any of these sends a call through the layers above the kernel. */
#define TMI_SLOW_FLAGS (TMI_REQUIRES_GRAD | TMI_HAS_TANGENT | TMI_CONJ | TMI_NEG | TMI_INFERENCE | TMI_INTERCEPTED)

struct tmi_grad_meta;   /* autograd/ */
struct tmi_ext;         /* layouts and wrappers */

struct tm_tensor {
    tmi_refcount refs;
    tm_storage *storage;          /* owned reference */
    tm_storage *home;             /* the storage whose block this struct lies in, kept alive by it; NULL: a block of its own */
    int64_t offset;               /* elements */
    int64_t numel;
    int64_t *sizes, *strides;     /* point at `inline_dims` or, beyond 8 dims, at one heap block */
    int32_t ndim;
    uint8_t dtype;                /* tm_dtype */
    uint8_t layout;
    tm_device device;
    uint32_t flags;
    _Atomic uint64_t *version;    /* &storage->version, or its own */
    struct tmi_grad_meta *grad_meta;
    struct tmi_ext *ext;
    void *pyobj;                  /* the Python wrapper, set by the glue */
    int64_t inline_dims[2 * TMI_INLINE_DIMS];
};

static inline void *tmi_data(const tm_tensor *t)
{
    return (char *)t->storage->data + t->offset * (int64_t)tmi_dtypes[t->dtype].size;
}
static inline bool tmi_contiguous(const tm_tensor *t) { return t->flags & TMI_CONTIGUOUS; }
static inline bool tmi_is_meta(const tm_tensor *t) { return t->device.type == TM_META; }
static inline void tmi_bump_version(tm_tensor *t) { atomic_fetch_add_explicit(t->version, 1, memory_order_relaxed); }

/* ---- making. All return a reference that belongs to the C caller, outside every scope (the dispatcher hands results to scopes). */
tm_tensor *tmi_tensor_new(int ndim, const int64_t *sizes, const int64_t *strides /* NULL: contiguous */, tm_dtype dtype, tm_device device);
tm_tensor *tmi_view_new(tm_tensor *base, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset); /* shares storage and version */
tm_tensor *tmi_alias(tm_tensor *t);                        /* same view, shares storage and version; no autograd data (detach) */
tm_tensor *tmi_tensor_on(tm_storage *storage, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset, tm_dtype dtype);
tm_tensor *tmi_scalar_tensor(tm_scalar s, tm_dtype dtype, bool wrapped);
tm_status tmi_tensor_restride(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset); /* t's own view changes (as_strided_, resize_) */
tm_status tmi_tensor_set_storage(tm_tensor *t, tm_storage *storage);   /* takes a reference of its own; t's version counter becomes the storage's */
tm_status tmi_tensor_own_version(tm_tensor *t);            /* t counts its changes alone from now on (x.data); views made of t later share that counter */

tm_storage *tmi_storage_new(size_t nbytes, tm_device device);
tm_storage *tmi_storage_wrap(void *data, size_t nbytes, tm_device device, void (*deleter)(void *), void *ctx);
tm_storage *tmi_storage_with_tensor(size_t nbytes, tm_device device, tm_tensor **place);  /* and room for the tensor struct, `home` set */
tm_storage *tmi_storage_retain(tm_storage *s);
void tmi_storage_release(tm_storage *s);
tm_status tmi_storage_resize(tm_storage *s, size_t nbytes);

/* References inside the library. tmi_release gives one back and looks at no scope: use it for references that the library holds (fields,
 * saved values, results of tmi_call). tm_release is for users: it takes a tensor that the innermost scope owns out of that scope. */
void tmi_wrapper_count(tm_tensor *t, int step);            /* the count of a wrapped tensor went 1 -> 2 (+1) or 2 -> 1 (-1) */
void tmi_tensor_free(tm_tensor *t);                        /* the last reference is gone */
static inline void tmi_retain(tm_tensor *t)
{
    uint64_t before = atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    if (TMI_UNLIKELY(before == (TMI_HAS_PYOBJECT | 1))) tmi_wrapper_count(t, 1);
}
static inline void tmi_release(tm_tensor *t)
{
    if (!t) return;
    /* the only owner needs no locked instruction: nobody else can take a reference */
    if (atomic_load_explicit(&t->refs, memory_order_acquire) == 1) {
        tmi_tensor_free(t);
        return;
    }
    uint64_t before = atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel);
    if (TMI_UNLIKELY(before == (TMI_HAS_PYOBJECT | 2))) tmi_wrapper_count(t, -1);
    else if ((before & ~TMI_HAS_PYOBJECT) == 1) tmi_tensor_free(t);
}
/* Only the count, no hook: for the wrapper itself, and for who knows what the wrapper holds. */
static inline uint64_t tmi_ref_count(const tm_tensor *t) { return atomic_load_explicit(&t->refs, memory_order_acquire) & ~TMI_HAS_PYOBJECT; }

/* ---- checks and arithmetic on shapes; all record an error on failure */
tm_status tmi_check_sizes(int ndim, const int64_t *sizes, tm_dtype dtype, int64_t *numel); /* negative, > 2^63 bytes */
tm_status tmi_wrap_dim(int64_t *dim, int64_t ndim);        /* "Dimension out of range (expected to be in range of [-2, 1], but got 2)"; ndim 0 acts as 1 */
void tmi_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
tm_status tmi_broadcast_sizes(int na, const int64_t *a, int nb, const int64_t *b, int *n, int64_t *out);
bool tmi_is_contiguous_as(const tm_tensor *t, tm_memory_format f);
bool tmi_is_non_overlapping_and_dense(const tm_tensor *t);
bool tmi_overlaps_itself(const tm_tensor *t);              /* two indices share memory by a stride of 0 (expand) */
void tmi_format_sizes(char *buf, size_t n, int ndim, const int64_t *sizes); /* "[2, 3]" */

/* ---- scopes: see tensor.h */
tm_tensor *tmi_own_slow(tm_tensor *result);
static inline tm_tensor *tmi_own(tm_tensor *result)        /* hands a fresh result to the innermost scope, if one is open; returns it; NULL stays NULL */
{
    return TMI_LIKELY(!tmi_tls.scope) ? result : tmi_own_slow(result);
}

/* Every call out to someone else's code (hook, custom function, deleter) stands between these two: the error record is put aside and
 * no scope is open, so results made there belong to that code. Scopes it leaves open are closed; an error it leaves pending wins. */
typedef struct tmi_barrier {
    tm_scope *scope;
    tm_error error;
} tmi_barrier;
void tmi_barrier_enter(tmi_barrier *b);
void tmi_barrier_leave(tmi_barrier *b);

/* ---- lists of tensors: what split and the like give back */
struct tm_tensor_list {
    tmi_refcount refs;
    int64_t len;
    tm_tensor_list *next_in_scope;
    tm_tensor *t[];   /* owned references */
};
tm_tensor_list *tmi_list_new(int64_t len);                 /* entries NULL; belongs to the caller */
tm_tensor_list *tmi_list_retain(tm_tensor_list *l);
tm_tensor_list *tmi_own_list(tm_tensor_list *l);           /* as tmi_own */

/* ---- hooks that higher layers install at start */
typedef struct tmi_core_hooks {
    void (*free_grad_meta)(tm_tensor *t);                  /* autograd: last reference is going */
    void (*free_ext)(tm_tensor *t);
    void (*pyobj_count)(tm_tensor *t, int step);           /* glue: count went 1 -> 2 (+1) or 2 -> 1 (-1) while a wrapper exists */
} tmi_core_hooks;
extern tmi_core_hooks tmi_hooks;

/* ---- promotion */
typedef struct tmi_promotion { uint8_t dim, zero, wrapped; } tmi_promotion;  /* result type per rank of operand; TM_DTYPE_DEFAULT = none */
#define TMI_PROMOTION_INIT {TM_DTYPE_DEFAULT, TM_DTYPE_DEFAULT, TM_DTYPE_DEFAULT}
tm_status tmi_promote_tensor(tmi_promotion *p, const tm_tensor *t);
tm_status tmi_promote_scalar(tmi_promotion *p, tm_scalar s);
tm_status tmi_promoted(const tmi_promotion *p, tm_dtype *out);
bool tmi_can_cast(tm_dtype from, tm_dtype to);             /* PyTorch's rule for in-place and out= results */

#endif
