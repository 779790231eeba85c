/* All thread-local state of the library in one struct. The caller's part travels with work to pool and engine threads. */
#ifndef TMI_THREAD_STATE_H
#define TMI_THREAD_STATE_H

#include "taimatsu/base.h"

struct tm_tensor;
struct tm_scope;

/* Why a call cannot take the plain way: any bit set sends it through the layers above the kernel. */
enum {
    TMI_MODE_TRANSFORM = 1 << 0, /* vmap, grad, jvp levels are open */
    TMI_MODE_AUTOCAST = 1 << 1,
    TMI_MODE_INTERCEPT = 1 << 2, /* a dispatch mode is on */
    TMI_MODE_CAPTURE = 1 << 3,   /* calls are recorded instead of run */
    TMI_MODE_BELOW_AUTOGRAD = 1 << 4, /* inside a node's body: nothing records */
};

typedef struct tmi_thread_state {
    int32_t error_pending;   /* status of the pending error, 0 if none; the record itself is tmi_error_record() */
    uint32_t modes;          /* TMI_MODE_* */
    bool grad_enabled;       /* false under no_grad */
    bool inference;          /* inside inference_mode */
    bool flush_denormal;
    bool in_parallel;        /* inside a pool task: nested runs are inline */
    uint8_t autocast_dtype;
    struct tm_scope *scope;  /* innermost open scope, or NULL */
    void *free_tensors;      /* free list of tensor structs */
    void *free_storages;
    int32_t n_free_tensors, n_free_storages;
    void *call_stack;        /* transforms and modes: owned by the layer that opens them */
    void *saved_hooks;       /* innermost saved-tensor hooks */
} tmi_thread_state;

extern __thread tmi_thread_state tmi_tls __attribute__((tls_model("initial-exec")));

#endif
