/* Storage: one block of bytes, reference-counted. Data of up to 512 bytes lies in the same block as the struct, behind it, and so does the
 * tensor that is made with it (tmi_storage_with_tensor): a small tensor then costs one allocation instead of three. */
#include "base/alloc.h"
#include "tensor_state.h"

enum { INLINE_MAX = 512 };

/* AddressSanitizer shall see the end of each piece, so there nothing is put together. */
#if defined(__SANITIZE_ADDRESS__)
#define TOGETHER 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TOGETHER 0
#endif
#endif
#ifndef TOGETHER
#define TOGETHER 1
#endif

static inline size_t round64(size_t n) { return (n + 63) & ~(size_t)63; }
static inline char *inline_data(tm_storage *s) { return (char *)s + s->inline_at; }
static inline bool is_inline(const tm_storage *s) { return s->inline_at && s->data == (const char *)s + s->inline_at; }

/* Field by field: clearing the struct first would cost more than all of this. */
static inline void init(tm_storage *s, size_t nbytes, size_t capacity, tm_device device, uint32_t flags, size_t block_bytes)
{
    atomic_init(&s->refs, 1);
    atomic_init(&s->version, 0);
    s->nbytes = nbytes;
    s->capacity = capacity;
    s->device = device;
    s->flags = flags;
    s->block_bytes = (uint32_t)block_bytes;
    s->inline_at = 0;
    s->deleter = NULL;
    s->deleter_ctx = NULL;
    s->pyobj = NULL;
}

/* A storage with `extra` bytes kept free right behind the struct. */
static inline tm_storage *new_storage(size_t nbytes, tm_device device, size_t extra)
{
    size_t head = round64(sizeof(tm_storage) + extra);
    bool with_data = TOGETHER && device.type == TM_CPU && nbytes && nbytes <= INLINE_MAX;
    size_t room = with_data ? round64(nbytes) : 0;
    tm_storage *s = tmi_data_alloc(head + room);
    if (TMI_UNLIKELY(!s)) return NULL;
    init(s, nbytes, room ? room : nbytes, device, 0, head + room);
    if (with_data) {
        s->inline_at = (uint32_t)head;
        s->data = inline_data(s);
        return s;
    }
    s->data = device.type == TM_CPU ? tmi_data_alloc(nbytes) : NULL;
    if (TMI_LIKELY(s->data || device.type != TM_CPU)) return s;
    tmi_data_free(s, head);
    return NULL;
}

tm_storage *tmi_storage_new(size_t nbytes, tm_device device) { return new_storage(nbytes, device, 0); }

tm_storage *tmi_storage_with_tensor(size_t nbytes, tm_device device, tm_tensor **place)
{
    tm_storage *s = new_storage(nbytes, device, TOGETHER ? sizeof(tm_tensor) : 0);
    if (TMI_UNLIKELY(!s)) return NULL;
    *place = TOGETHER ? (tm_tensor *)(void *)(s + 1) : tmi_alloc(sizeof(tm_tensor));
    if (*place) {
        (*place)->home = TOGETHER ? s : NULL;
        return s;
    }
    tmi_storage_release(s);
    return NULL;
}

tm_storage *tmi_storage_wrap(void *data, size_t nbytes, tm_device device, void (*deleter)(void *), void *ctx)
{
    tm_storage *s = tmi_data_alloc(sizeof *s);
    if (!s) return NULL;
    init(s, nbytes, nbytes, device, TMI_STORAGE_FIXED | TMI_STORAGE_FOREIGN, sizeof *s);
    s->data = data;
    s->deleter = deleter;
    s->deleter_ctx = ctx;
    return s;
}

tm_storage *tmi_storage_retain(tm_storage *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

static void call_deleter(tm_storage *s)
{
    tmi_barrier b;
    tmi_barrier_enter(&b);
    s->deleter(s->deleter_ctx);
    tmi_barrier_leave(&b);
}

static void free_data(tm_storage *s)
{
    if (s->flags & TMI_STORAGE_FOREIGN) {
        if (s->deleter) call_deleter(s);
    } else if (s->data && !is_inline(s)) {
        tmi_data_free(s->data, s->capacity);
    }
}

static inline void free_storage(tm_storage *s)
{
    if (!is_inline(s)) free_data(s);
    tmi_data_free(s, s->block_bytes);
}

void tmi_storage_release(tm_storage *s)
{
    if (!s) return;
    if (atomic_load_explicit(&s->refs, memory_order_acquire) == 1
        || (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) & ~TMI_HAS_PYOBJECT) == 1)
        free_storage(s);
}

/* Shrinking to no less than half keeps the block; anything else moves the data, so that resize_(0) really gives memory back. */
tm_status tmi_storage_resize(tm_storage *s, size_t nbytes)
{
    TMI_REQUIRE(!(s->flags & (TMI_STORAGE_FIXED | TMI_STORAGE_MAPPED)), TM_INVALID, "Trying to resize storage that is not resizable");
    bool fits = nbytes <= s->capacity && (nbytes >= s->capacity / 2 || is_inline(s));
    if (fits || s->device.type != TM_CPU) {
        s->nbytes = nbytes;
        if (!fits) s->capacity = nbytes;
        return TM_OK;
    }
    void *data = tmi_data_alloc(nbytes);
    if (!data) return TM_NOMEM;
    size_t keep = nbytes < s->nbytes ? nbytes : s->nbytes;
    if (keep) memcpy(data, s->data, keep);
    free_data(s);
    s->data = data;
    s->nbytes = s->capacity = nbytes;
    return TM_OK;
}
