/* Storage: one block of bytes, reference-counted. Blocks of up to 512 bytes lie in the same allocation as the struct, behind it: a small
 * tensor then costs two allocations instead of three. */
#include "base/alloc.h"
#include "tensor_state.h"

enum { HEAD = 128 /* the struct, rounded up so that data is 64-byte aligned */, INLINE_MAX = 512 };
_Static_assert(sizeof(tm_storage) <= HEAD, "storage struct outgrew its place in front of inline data");

/* AddressSanitizer shall see each end of a data block, so there data is always apart. */
#if defined(__SANITIZE_ADDRESS__)
#define INLINE_LIMIT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define INLINE_LIMIT 0
#endif
#endif
#ifndef INLINE_LIMIT
#define INLINE_LIMIT INLINE_MAX
#endif

static inline char *inline_data(tm_storage *s) { return (char *)s + HEAD; }

static inline void init(tm_storage *s, void *data, size_t nbytes, tm_device device, uint32_t flags)
{
    *s = (tm_storage){.data = data, .nbytes = nbytes, .capacity = nbytes, .device = device, .flags = flags};
    atomic_init(&s->refs, 1);
    atomic_init(&s->version, 0);
}

static void *data_for(size_t nbytes, tm_device device)
{
    return device.type == TM_CPU ? tmi_data_alloc(nbytes) : NULL;
}

static tm_storage *new_inline(size_t nbytes, tm_device device)
{
    size_t room = (nbytes + 63) & ~(size_t)63;
    tm_storage *s = tmi_data_alloc(HEAD + room);
    if (!s) return NULL;
    init(s, inline_data(s), nbytes, device, TMI_STORAGE_INLINE);
    s->inline_bytes = (uint32_t)room;
    s->capacity = room;
    return s;
}

tm_storage *tmi_storage_new(size_t nbytes, tm_device device)
{
    if (device.type == TM_CPU && nbytes && nbytes <= INLINE_LIMIT) return new_inline(nbytes, device);
    tm_storage *s = tmi_alloc(sizeof *s);
    if (!s) return NULL;
    void *data = data_for(nbytes, device);
    if (!data && device.type == TM_CPU) {
        tmi_free(s, sizeof *s);
        return NULL;
    }
    init(s, data, nbytes, device, 0);
    return s;
}

tm_storage *tmi_storage_wrap(void *data, size_t nbytes, tm_device device, void (*deleter)(void *), void *ctx)
{
    tm_storage *s = tmi_alloc(sizeof *s);
    if (!s) return NULL;
    init(s, data, nbytes, device, TMI_STORAGE_FIXED | TMI_STORAGE_FOREIGN);
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
    } else if (s->data && s->data != inline_data(s)) {
        tmi_data_free(s->data, s->capacity);
    }
}

static void free_storage(tm_storage *s)
{
    if (s->flags & TMI_STORAGE_INLINE) {
        if (TMI_UNLIKELY(s->data != inline_data(s))) free_data(s);
        tmi_data_free(s, HEAD + s->inline_bytes);
        return;
    }
    free_data(s);
    tmi_free(s, sizeof *s);
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
    bool fits = nbytes <= s->capacity && (nbytes >= s->capacity / 2 || s->data == inline_data(s));
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
