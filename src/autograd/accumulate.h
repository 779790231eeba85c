/* Summing gradients, for the engine. */
#ifndef TMI_ACCUMULATE_H
#define TMI_ACCUMULATE_H

#include "tape.h"

/* Adds grad (its reference is taken) to what waits at *at. */
tm_status tmi_buffer_add(tm_tensor **at, tm_tensor *grad);
/* Gives a node's gradients to the results that retain theirs. */
tm_status tmi_retain_gradients(tmi_node *n, tm_tensor **grads);
/* tmi_node_run with a mask of the arguments that want a gradient now. */
tm_status tmi_node_run_for(tmi_node *n, uint32_t needs, tm_tensor **grads, tm_tensor **outs);

#endif
