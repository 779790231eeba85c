/* Moving elements by index along a dim: what gather, scatter, index_select, index_add, index_copy and index_fill share. */
#ifndef TMK_PICK_H
#define TMK_PICK_H

#include "core/tensor_state.h"

typedef enum tmk_scatter { TMK_SCATTER_SET, TMK_SCATTER_ADD, TMK_SCATTER_MUL, TMK_SCATTER_MAX, TMK_SCATTER_MIN } tmk_scatter;

/* Where the places come from: int64 or int32 indices with a stride per dim of the walk (0: the same index for all positions of that dim). */
typedef struct tmk_places {
    const void *data;
    bool narrow;                          /* int32 */
    int64_t strides[TMI_MAX_DIMS];
} tmk_places;

/* The walk goes over `sizes`; `wide` is the tensor that is indexed along `dim` (gather reads it, scatter writes it), `slim` the one of the
 * walk's sizes (strides given). */
typedef struct tmk_walk {
    int ndim, dim;
    int64_t sizes[TMI_MAX_DIMS], wide_strides[TMI_MAX_DIMS], slim_strides[TMI_MAX_DIMS];
    int64_t limit;                        /* size of wide along dim */
    tmk_places at;
    char *wide;
    char *slim;
    tm_dtype dtype;
} tmk_walk;

/* All indices in [-limit, limit) if negative ones are allowed, else [0, limit). The first bad one in logical order goes to *bad. */
bool tmk_places_valid(const tmk_walk *w, bool negative, int64_t *bad);
/* slim[...] = wide[... index ...]; indices are valid. */
void tmk_gather_walk(const tmk_walk *w);
/* wide[... index ...] op= slim[...], in logical order of the walk. TM_NOT_IMPLEMENTED where the dtype has no such operation. */
tm_status tmk_scatter_walk(const tmk_walk *w, tmk_scatter op, const char *name);
/* Fills a walk from tensors; `index` has the walk's sizes (or fewer elements: see flat). */
void tmk_walk_tensors(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *index, const tm_tensor *slim);
/* The same with a 1-D (or 0-D) index that counts along dim; the walk has slim's sizes. */
void tmk_walk_flat(tmk_walk *w, const tm_tensor *wide, int64_t dim, const tm_tensor *index, const tm_tensor *slim);

#endif
