/* Tensors: making, sharing, freeing, and the public getters. Structs come from the allocator's per-thread lists (base/alloc.c). */
#include <stdlib.h>

#include "base/alloc.h"
#include "tensor_state.h"

tmi_core_hooks tmi_hooks;

/* A version counter of a tensor's own, shared by views of it. */
typedef struct own_version {
    _Atomic uint64_t value;   /* first: tm_tensor.version points here */
    tmi_refcount refs;
} own_version;

/* ---- the struct */

static inline void point_inline(tm_tensor *t)
{
    t->sizes = t->inline_dims;
    t->strides = t->inline_dims + TMI_INLINE_DIMS;
}

static tm_status place_dims(tm_tensor *t, int ndim)
{
    if (TMI_LIKELY(ndim <= TMI_INLINE_DIMS)) {
        point_inline(t);
        return TM_OK;
    }
    int64_t *block = tmi_alloc((size_t)ndim * 2 * sizeof *block);
    if (!block) return TM_NOMEM;
    t->sizes = block;
    t->strides = block + ndim;
    return TM_OK;
}

static inline void free_dims(tm_tensor *t)
{
    if (TMI_UNLIKELY(t->ndim > TMI_INLINE_DIMS)) tmi_free(t->sizes, (size_t)t->ndim * 2 * sizeof *t->sizes);
}

/* Everything but shape, storage, version and home. */
static inline void init_struct(tm_tensor *t, int ndim, tm_dtype dtype, tm_device device)
{
    atomic_init(&t->refs, 1);
    t->offset = 0;
    t->ndim = ndim;
    t->dtype = (uint8_t)dtype;
    t->layout = TM_STRIDED;
    t->device = device;
    t->flags = 0;
    t->grad_meta = NULL;
    t->ext = NULL;
    t->pyobj = NULL;
}

/* A struct in a block of its own. On failure nothing is left allocated. */
static tm_tensor *new_struct(int ndim, tm_dtype dtype, tm_device device)
{
    tm_tensor *t = tmi_alloc(sizeof *t);
    if (TMI_UNLIKELY(!t)) return NULL;
    init_struct(t, ndim, dtype, device);
    t->home = NULL;
    if (TMI_LIKELY(place_dims(t, ndim) == TM_OK)) return t;
    tmi_free(t, sizeof *t);
    return NULL;
}

static bool strides_are_contiguous(const tm_tensor *t)
{
    int64_t expected = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->sizes[i] == 1) continue;
        if (t->strides[i] != expected) return false;
        expected *= t->sizes[i];
    }
    return true;
}

/* Copies the shape in; numel is known. strides NULL: contiguous. */
static inline void set_shape(tm_tensor *t, const int64_t *sizes, const int64_t *strides, int64_t numel)
{
    for (int i = 0; i < t->ndim; i++) t->sizes[i] = sizes[i];
    t->numel = numel;
    bool contiguous = true;
    if (!strides) {
        tmi_contiguous_strides(t->ndim, t->sizes, t->strides);
    } else {
        for (int i = 0; i < t->ndim; i++) t->strides[i] = strides[i];
        contiguous = numel == 0 || strides_are_contiguous(t);
    }
    t->flags = contiguous ? t->flags | TMI_CONTIGUOUS : t->flags & ~(uint32_t)TMI_CONTIGUOUS;
}

static int64_t product(int ndim, const int64_t *sizes)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= sizes[i];
    return n;
}

static inline void take_storage(tm_tensor *t, tm_storage *s)
{
    t->storage = s;
    t->version = &s->version;
}

static void drop_version(tm_tensor *t)
{
    if (!(t->flags & TMI_OWN_VERSION)) return;
    own_version *v = (own_version *)(void *)t->version;
    if (atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) == 1) tmi_free(v, sizeof *v);
    t->flags &= ~(uint32_t)TMI_OWN_VERSION;
    t->version = NULL;
}

static void share_version(tm_tensor *t, const tm_tensor *from)
{
    t->version = from->version;
    if (!(from->flags & TMI_OWN_VERSION)) return;
    own_version *v = (own_version *)(void *)from->version;
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    t->flags |= TMI_OWN_VERSION;
}

/* The struct's own memory goes last: with its home storage, or by itself. */
void tmi_tensor_free(tm_tensor *t)
{
    if (TMI_UNLIKELY(t->grad_meta && tmi_hooks.free_grad_meta)) tmi_hooks.free_grad_meta(t);
    if (TMI_UNLIKELY(t->ext && tmi_hooks.free_ext)) tmi_hooks.free_ext(t);
    if (TMI_UNLIKELY(t->flags & TMI_OWN_VERSION)) drop_version(t);
    free_dims(t);
    tm_storage *storage = t->storage, *home = t->home;
    if (TMI_LIKELY(home == storage)) {
        tmi_storage_release(storage);
        return;
    }
    if (home) tmi_storage_release(home);
    else tmi_free(t, sizeof *t);
    tmi_storage_release(storage);
}

void tmi_wrapper_count(tm_tensor *t, int step)
{
    if (tmi_hooks.pyobj_count) tmi_hooks.pyobj_count(t, step);
}

/* ---- making */

/* Bytes from the storage's start to the end of the farthest element. Negative sizes and overflow are errors. */
static tm_status bytes_needed(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset, tm_dtype dtype, size_t *out)
{
    int64_t last = 0, span;
    bool over = false, empty = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) empty = true;
        over |= __builtin_mul_overflow(sizes[i] - 1, strides[i], &span) || __builtin_add_overflow(last, span, &last);
        over |= sizes[i] > 1 && strides[i] < 0;
    }
    int64_t bytes = 0;
    if (!empty && !over) {
        over |= __builtin_add_overflow(last, 1, &last) || __builtin_add_overflow(last, offset, &last);
        over |= last < 0 || __builtin_mul_overflow(last, (int64_t)tmi_dtypes[dtype].size, &bytes);
    }
    if (TMI_LIKELY(empty || !over)) {
        *out = (size_t)bytes;
        return TM_OK;
    }
    char a[480], b[480];
    tmi_format_sizes(a, sizeof a, ndim, sizes);
    tmi_format_sizes(b, sizeof b, ndim, strides);
    return tmi_fail(TM_INVALID, "Storage size calculation overflowed with sizes=%s and strides=%s", a, b);
}

static tm_status check_dtype_device(tm_dtype dtype, tm_device device)
{
    TMI_REQUIRE((unsigned)dtype < TM_DTYPE_COUNT, TM_INVALID, "%d is no dtype", (int)dtype);
    TMI_REQUIRE(device.type == TM_CPU || device.type == TM_META, TM_INVALID, "device type %d is not available", device.type);
    return TM_OK;
}

static tm_tensor *new_strided(int ndim, const int64_t *sizes, const int64_t *strides, tm_dtype dtype, tm_device device)
{
    int64_t numel;
    TMI_TRY_PTR(tmi_check_sizes(ndim, sizes, dtype, &numel));
    size_t nbytes = (size_t)numel * tmi_dtypes[dtype].size;
    if (strides) TMI_TRY_PTR(bytes_needed(ndim, sizes, strides, 0, dtype, &nbytes));
    tm_tensor *t;
    tm_storage *s = tmi_storage_with_tensor(nbytes, device, &t);
    if (TMI_UNLIKELY(!s)) return NULL;
    init_struct(t, ndim, dtype, device);
    if (TMI_UNLIKELY(place_dims(t, ndim) != TM_OK)) {
        if (!t->home) tmi_free(t, sizeof *t);
        tmi_storage_release(s);
        return NULL;
    }
    set_shape(t, sizes, strides, numel);
    take_storage(t, s);
    return t;
}

/* Strides and element count of a contiguous tensor in one pass; false where something is odd (a negative size, too many elements), which
 * new_strided then looks at closely. `most`: elements that fit. */
static inline bool quick_shape(int ndim, const int64_t *sizes, int64_t *strides, int64_t most, int64_t *numel)
{
    int64_t n = 1, negative = 0;
    bool over = false, zero = false;
    for (int i = ndim - 1; i >= 0; i--) {
        int64_t size = sizes[i];
        strides[i] = n;
        negative |= size;
        zero |= size == 0;
        over |= __builtin_mul_overflow(n, size + (size == 0), &n);
    }
    *numel = zero ? 0 : n;
    return !over && negative >= 0 && n <= most;
}

/* The way of nearly every new tensor: contiguous, at most 8 dims. */
tm_tensor *tmi_tensor_new(int ndim, const int64_t *sizes, const int64_t *strides, tm_dtype dtype, tm_device device)
{
    TMI_TRY_PTR(check_dtype_device(dtype, device));
    int64_t numel, dense[TMI_INLINE_DIMS], size = tmi_dtypes[dtype].size;
    if (TMI_UNLIKELY(strides || (unsigned)ndim > TMI_INLINE_DIMS || !quick_shape(ndim, sizes, dense, INT64_MAX >> 4, &numel)))
        return new_strided(ndim, sizes, strides, dtype, device);
    tm_tensor *t;
    tm_storage *s = tmi_storage_with_tensor((size_t)(numel * size), device, &t);
    if (TMI_UNLIKELY(!s)) return NULL;
    init_struct(t, ndim, dtype, device);
    point_inline(t);
    for (int i = 0; i < ndim; i++) {
        t->inline_dims[i] = sizes[i];
        t->inline_dims[TMI_INLINE_DIMS + i] = dense[i];
    }
    t->numel = numel;
    t->flags = TMI_CONTIGUOUS;
    take_storage(t, s);
    return t;
}

tm_tensor *tmi_tensor_on(tm_storage *storage, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset, tm_dtype dtype)
{
    int64_t numel;
    TMI_TRY_PTR(check_dtype_device(dtype, storage->device));
    TMI_TRY_PTR(tmi_check_sizes(ndim, sizes, dtype, &numel));
    tm_tensor *t = new_struct(ndim, dtype, storage->device);
    if (!t) return NULL;
    set_shape(t, sizes, strides, numel);
    t->offset = offset;
    take_storage(t, tmi_storage_retain(storage));
    return t;
}

enum { INHERITED_BY_VIEWS = TMI_CONJ | TMI_NEG | TMI_INFERENCE };

tm_tensor *tmi_view_new(tm_tensor *base, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    TMI_REQUIRE_PTR(ndim >= 0 && ndim <= TMI_MAX_DIMS, TM_INVALID, "a tensor has at most %d dimensions, got %d", TMI_MAX_DIMS, ndim);
    tm_tensor *t = new_struct(ndim, base->dtype, base->device);
    if (TMI_UNLIKELY(!t)) return NULL;
    set_shape(t, sizes, strides, product(ndim, sizes));
    t->offset = offset;
    t->storage = tmi_storage_retain(base->storage);
    t->flags |= base->flags & INHERITED_BY_VIEWS;
    share_version(t, base);
    return t;
}

tm_tensor *tmi_alias(tm_tensor *t)
{
    return tmi_view_new(t, t->ndim, t->sizes, t->strides, t->offset);
}

tm_tensor *tmi_scalar_tensor(tm_scalar s, tm_dtype dtype, bool wrapped)
{
    tm_tensor *t = tmi_tensor_new(0, NULL, NULL, dtype, (tm_device){TM_CPU, -1});
    if (!t) return NULL;
    tmi_store_scalar(t->storage->data, dtype, s);
    if (wrapped) t->flags |= TMI_WRAPPED_NUMBER;
    return t;
}

/* ---- changing a tensor's own view */

tm_status tmi_tensor_restride(tm_tensor *t, int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset)
{
    int64_t numel, copy[2 * TMI_MAX_DIMS];   /* the arguments may be t's own arrays */
    TMI_TRY(tmi_check_sizes(ndim, sizes, (tm_dtype)t->dtype, &numel));
    for (int i = 0; i < ndim; i++) {
        copy[i] = sizes[i];
        copy[TMI_MAX_DIMS + i] = strides ? strides[i] : 0;
    }
    if (ndim != t->ndim && (ndim > TMI_INLINE_DIMS || t->ndim > TMI_INLINE_DIMS)) {
        tm_tensor place;
        TMI_TRY(place_dims(&place, ndim));
        free_dims(t);
        if (ndim > TMI_INLINE_DIMS) t->sizes = place.sizes, t->strides = place.strides;
        else point_inline(t);
    }
    t->ndim = ndim;
    t->offset = offset;
    set_shape(t, copy, strides ? copy + TMI_MAX_DIMS : NULL, numel);
    return TM_OK;
}

/* The reference to the storage that the struct lies in stays with the struct. */
tm_status tmi_tensor_set_storage(tm_tensor *t, tm_storage *storage)
{
    tm_storage *old = t->storage;
    drop_version(t);
    take_storage(t, storage == t->home ? storage : tmi_storage_retain(storage));
    t->device = storage->device;
    if (old != t->home) tmi_storage_release(old);
    return TM_OK;
}

tm_status tmi_tensor_own_version(tm_tensor *t)
{
    own_version *v = tmi_alloc(sizeof *v);
    if (!v) return TM_NOMEM;
    atomic_init(&v->value, 0);
    atomic_init(&v->refs, 1);
    drop_version(t);
    t->version = &v->value;
    t->flags |= TMI_OWN_VERSION;
    return TM_OK;
}

/* ---- public making. Pending errors: these make nothing */

tm_tensor *tm_tensor_empty(int ndim, const int64_t *sizes, tm_dtype dtype)
{
    if (tmi_tls.error_pending) return NULL;
    return tmi_own(tmi_tensor_new(ndim, sizes, NULL, dtype, (tm_device){TM_CPU, -1}));
}

tm_tensor *tm_tensor_from_data(int ndim, const int64_t *sizes, tm_dtype dtype, const void *data)
{
    if (tmi_tls.error_pending) return NULL;
    tm_tensor *t = tmi_tensor_new(ndim, sizes, NULL, dtype, (tm_device){TM_CPU, -1});
    if (!t) return NULL;
    if (t->numel) memcpy(t->storage->data, data, (size_t)t->numel * tmi_dtypes[dtype].size);
    return tmi_own(t);
}

tm_tensor *tm_tensor_wrap(int ndim, const int64_t *sizes, const int64_t *strides, tm_dtype dtype, void *data, void (*deleter)(void *),
                          void *ctx)
{
    if (tmi_tls.error_pending) return NULL;
    int64_t numel;
    tm_device cpu = {TM_CPU, -1};
    TMI_TRY_PTR(check_dtype_device(dtype, cpu));
    TMI_TRY_PTR(tmi_check_sizes(ndim, sizes, dtype, &numel));
    size_t nbytes = (size_t)numel * tmi_dtypes[dtype].size;
    if (strides) TMI_TRY_PTR(bytes_needed(ndim, sizes, strides, 0, dtype, &nbytes));
    tm_storage *s = tmi_storage_wrap(data, nbytes, cpu, NULL, NULL);
    if (!s) return NULL;
    tm_tensor *t = tmi_tensor_on(s, ndim, sizes, strides, 0, dtype);
    tmi_storage_release(s);
    if (t && !tmi_own(t)) return NULL;   /* no deleter yet: a failure must not run it */
    if (!t) return NULL;
    s->deleter = deleter;
    s->deleter_ctx = ctx;
    return t;
}

tm_tensor *tm_tensor_scalar(tm_scalar value, tm_dtype dtype)
{
    if (tmi_tls.error_pending) return NULL;
    return tmi_own(tmi_scalar_tensor(value, dtype, false));
}

/* ---- public getters */

int tm_tensor_ndim(const tm_tensor *t) { return t->ndim; }
const int64_t *tm_tensor_sizes(const tm_tensor *t) { return t->sizes; }
const int64_t *tm_tensor_strides(const tm_tensor *t) { return t->strides; }
int64_t tm_tensor_offset(const tm_tensor *t) { return t->offset; }
int64_t tm_tensor_numel(const tm_tensor *t) { return t->numel; }
tm_dtype tm_tensor_dtype(const tm_tensor *t) { return (tm_dtype)t->dtype; }
tm_device tm_tensor_device(const tm_tensor *t) { return t->device; }
bool tm_tensor_is_contiguous(const tm_tensor *t) { return tmi_contiguous(t); }
uint64_t tm_tensor_version(const tm_tensor *t) { return atomic_load_explicit(t->version, memory_order_relaxed); }

int64_t tm_tensor_size(const tm_tensor *t, int dim)
{
    int64_t d = dim;
    return tmi_wrap_dim(&d, t->ndim) == TM_OK && d < t->ndim ? t->sizes[d] : -1;
}

void *tm_tensor_data(const tm_tensor *t)
{
    return t->numel == 0 || tmi_is_meta(t) || !t->storage->data ? NULL : tmi_data(t);
}

/* The value that flags conj and neg describe. */
static tm_scalar resolve(tm_scalar s, uint32_t flags)
{
    if (s.tag == TM_SCALAR_C128) {
        if (flags & TMI_CONJ) s.v.c.im = -s.v.c.im;
        if (flags & TMI_NEG) s.v.c.re = -s.v.c.re, s.v.c.im = -s.v.c.im;
    } else if (flags & TMI_NEG) {
        if (s.tag == TM_SCALAR_F64) s.v.f = -s.v.f;
        else s.v.i = (int64_t)-(uint64_t)s.v.i;
    }
    return s;
}

tm_status tm_tensor_item(const tm_tensor *t, tm_scalar *out)
{
    TMI_REQUIRE(t->numel == 1, TM_INVALID, "a Tensor with %lld elements cannot be converted to Scalar", (long long)t->numel);
    TMI_REQUIRE(!tmi_is_meta(t), TM_INVALID, "Tensor.item() cannot be called on meta tensors");
    *out = resolve(tmi_load_scalar(tmi_data(t), (tm_dtype)t->dtype), t->flags);
    return TM_OK;
}
