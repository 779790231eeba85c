/* Copies of a call's arguments: numbers and lists by value, tensors as tags only. */
#ifndef TMI_ARGS_COPY_H
#define TMI_ARGS_COPY_H

#include "ops/op.h"

/* Bytes that the lists and strings among args need. */
size_t tmi_args_payload(const tmi_op *op, const tmi_value *args);
/* Fills to[n_args] and the payload; returns the first byte after what was written (16-byte steps). */
char *tmi_args_copy(const tmi_op *op, const tmi_value *args, tmi_value *to, char *payload);

#endif
