/* One backward pass: the nodes it reaches, their gradients in waiting, and the order they run in. */
#ifndef TMI_GRAPH_TASK_H
#define TMI_GRAPH_TASK_H

#include "tape.h"

typedef struct tmi_slot {
    tmi_node *node;        /* borrowed: the roots keep the graph */
    int32_t deps;          /* edges into this node whose gradient has not come yet */
    int32_t first_edge;    /* its edges' slots stand at tmi_task.next[first_edge...] */
    int32_t capture;       /* first in tmi_task.captures, -1: none */
    bool wanted;           /* its gradient is asked for, or leads to one that is */
    bool runs;             /* some edge leads to a wanted node, or it accumulates */
    tm_tensor *one;        /* gradients of its results, owned: `one` if there is one result */
    tm_tensor **many;
} tmi_slot;

typedef struct tmi_capture {
    int32_t nr, input, next;
} tmi_capture;

typedef struct tmi_callback {
    tm_status (*fn)(void *ctx);
    void (*free)(void *ctx);
    void *ctx;
} tmi_callback;

/* Small graphs fit into the struct and allocate nothing. */
enum { TMI_TASK_SLOTS = 24, TMI_TASK_EDGES = 64, TMI_TASK_TABLE = 64 };

typedef struct tmi_task {
    tmi_slot *slots;
    int32_t *next, *heap, *table;
    int64_t n_slots, cap_slots, n_next, cap_next, n_heap, cap_heap, n_table;
    TMI_VEC(tmi_capture) captures;
    TMI_VEC(tmi_callback) callbacks;
    tm_tensor **results;
    bool create_graph, retain_graph, all;   /* all: no inputs were named */
    struct tmi_task *outer;                 /* the pass that called this one from a hook */
    tmi_slot few_slots[TMI_TASK_SLOTS];
    int32_t few_next[TMI_TASK_EDGES], few_heap[TMI_TASK_SLOTS], few_table[TMI_TASK_TABLE];
} tmi_task;

void tmi_task_init(tmi_task *k);
void tmi_task_free(tmi_task *k);                            /* also gradients that still wait */
int32_t tmi_task_add(tmi_task *k, tmi_node *n);             /* slot of n, new or known; -1 with TM_NOMEM */
int32_t tmi_task_find(const tmi_task *k, const tmi_node *n);/* -1: not reached */
tm_status tmi_task_discover(tmi_task *k);                   /* everything that the slots so far lead to; counts dependencies */
tm_status tmi_task_select(tmi_task *k);                     /* from captures and marked slots: what is wanted, what runs */
tm_status tmi_task_push(tmi_task *k, int32_t slot);         /* ready */
int32_t tmi_task_pop(tmi_task *k);                          /* the latest recorded among the ready; -1: none */
tm_tensor **tmi_slot_grads(tmi_slot *s);                    /* NULL with TM_NOMEM */

#endif
