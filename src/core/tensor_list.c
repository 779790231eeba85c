/* Lists of tensors, owned like a tensor. */
#include "base/alloc.h"
#include "tensor_state.h"

static size_t list_bytes(int64_t len) { return sizeof(tm_tensor_list) + (size_t)len * sizeof(tm_tensor *); }

tm_tensor_list *tmi_list_new(int64_t len)
{
    tm_tensor_list *l = tmi_calloc(list_bytes(len));
    if (!l) return NULL;
    atomic_init(&l->refs, 1);
    l->len = len;
    return l;
}

tm_tensor_list *tmi_list_retain(tm_tensor_list *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void tm_tensor_list_release(tm_tensor_list *l)
{
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1) return;
    for (int64_t i = 0; i < l->len; i++) tmi_release(l->t[i]);
    tmi_free(l, list_bytes(l->len));
}

int64_t tm_tensor_list_len(const tm_tensor_list *l) { return l ? l->len : 0; }
tm_tensor *tm_tensor_list_get(const tm_tensor_list *l, int64_t i) { return l && i >= 0 && i < l->len ? l->t[i] : NULL; }
