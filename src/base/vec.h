/* Growable arrays of one element type. `TMI_VEC(int) v = {0};` then push, index v.data[i], free. */
#ifndef TMI_VEC_H
#define TMI_VEC_H

#include "alloc.h"
#include "fail.h"

#define TMI_VEC(T)                                                                                                    \
    struct {                                                                                                          \
        T *data;                                                                                                      \
        int64_t len, cap;                                                                                             \
    }

/* Makes room for one more element; TM_NOMEM recorded and false on failure. */
bool tmi_vec_grow(void **data, int64_t *cap, int64_t need, size_t elem);

/* Appends; evaluates to false (error recorded) when memory ran out. */
#define tmi_vec_push(v, x)                                                                                            \
    (((v)->len < (v)->cap || tmi_vec_grow((void **)&(v)->data, &(v)->cap, (v)->len + 1, sizeof *(v)->data))            \
         ? ((v)->data[(v)->len++] = (x), true)                                                                        \
         : false)
#define tmi_vec_free(v)                                                                                               \
    (tmi_free((v)->data, (size_t)(v)->cap * sizeof *(v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)

#endif
