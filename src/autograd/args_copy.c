/* Copies of a call's arguments, for nodes and view rules. */
#include "args_copy.h"

static size_t list_bytes(const tmi_value *v)
{
    switch (v->tag) {
    case TMI_V_INTS: return v->len * sizeof(tm_int);
    case TMI_V_BOOLS: return v->len * sizeof(bool);
    case TMI_V_FLOATS: return v->len * sizeof(double);
    case TMI_V_SCALARS: return v->len * sizeof(tm_scalar);
    case TMI_V_STR: return strlen(v->u.str) + 1;
    default: return 0;
    }
}

static size_t steps(size_t bytes) { return (bytes + 15) & ~(size_t)15; }

size_t tmi_args_payload(const tmi_op *op, const tmi_value *args)
{
    size_t bytes = 0;
    for (int i = 0; i < op->n_args; i++) bytes += steps(list_bytes(&args[i]));
    return bytes;
}

char *tmi_args_copy(const tmi_op *op, const tmi_value *args, tmi_value *to, char *payload)
{
    for (int i = 0; i < op->n_args; i++) {
        to[i] = args[i];
        size_t bytes = list_bytes(&args[i]);
        if (args[i].tag == TMI_V_TENSOR) {
            to[i].u.t = NULL;
        } else if (args[i].tag == TMI_V_TENSORS) {
            to[i].u.tensors = NULL;
        } else if (args[i].tag == TMI_V_GENERATOR) {
            to[i] = tmi_v_none();   /* no formula draws numbers */
        } else if (bytes) {
            memcpy(payload, args[i].u.ints, bytes);
            to[i].u.ints = (const tm_int *)(void *)payload;
            payload += steps(bytes);
        }
    }
    return payload;
}
