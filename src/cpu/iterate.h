/* The strided iterator: walks one output and its inputs together, in the output's memory order, and hands straight runs to a loop.
 *
 * Operands whose memory or element type does not suit the loop are brought into tiles of a few KB that stay in the L1 cache: gathered,
 * converted, and the result converted and scattered. Work is cut by problem size only. */
#ifndef TMK_ITERATE_H
#define TMK_ITERATE_H

#include "pointwise.h"

enum { TMK_TILE_BYTES = 4096, TMK_MAX_LOOP_DIMS = TMI_MAX_DIMS };

/* An operand; [0] is the output. */
typedef struct tmk_operand {
    char *data;                    /* first element */
    uint8_t dtype;                 /* in memory */
    uint8_t native;                /* what the loop reads or writes */
    uint8_t rounded;               /* output: the type that results are rounded to before they are converted to `dtype`; else native */
    int64_t stride[TMK_MAX_LOOP_DIMS];   /* bytes per dim, innermost first; 0 where one value is repeated */
} tmk_operand;

typedef struct tmk_walk {
    tmk_loop *loop;
    const tmk_params *params;
    int n_operands;                /* with the output */
    int ndim;                      /* >= 1 after tmk_walk_order */
    int64_t size[TMK_MAX_LOOP_DIMS];
    bool in_place;                 /* the output's memory is also an input's: it is in the cache anyway */
    tmk_operand operand[TMK_MAX_OPERANDS];
} tmk_walk;

/* Sets walk's dims from the output's and operand k's strides from t's, broadcasting. tmk_walk_output comes first. */
void tmk_walk_output(tmk_walk *w, const tm_tensor *out, tm_dtype native);
void tmk_walk_input(tmk_walk *w, int k, const tm_tensor *t, tm_dtype native);
/* A number: `value` holds it in the native type and must stay valid. */
void tmk_walk_number(tmk_walk *w, int k, void *value, tm_dtype native);
/* Sorts and joins dims, then runs the loop over everything, on several threads where that pays. */
void tmk_walk_run(tmk_walk *w);

/* Copies past the cache, for areas larger than it. */
void tmk_stream(void *dst, const void *src, size_t nbytes);
/* Bytes from which an output is written past the cache. */
int64_t tmk_stream_from(void);

#endif
