/* What advanced indexing does to sizes: shared by the shape rule and the kernels. */
#ifndef TMI_INDEX_LAYOUT_H
#define TMI_INDEX_LAYOUT_H

#include "core/tensor_state.h"

typedef struct tmi_index_layout {
    int n_before, n_after;                        /* dims of self that are not indexed, around the indexed ones (all after if those are apart) */
    int before[TMI_MAX_DIMS], after[TMI_MAX_DIMS];
    int n_common;
    int64_t common[TMI_MAX_DIMS], count;          /* broadcast sizes of the indices and their product */
    int64_t before_sizes[TMI_MAX_DIMS], after_sizes[TMI_MAX_DIMS];
} tmi_index_layout;

/* indices[d] for d < n: an integer tensor or NULL. TM_INDEX where there are too many or they do not broadcast. */
tm_status tmi_index_layout_of(tmi_index_layout *l, const tm_tensor *self, tm_tensor *const *indices, int64_t n);
/* The result's sizes; returns their number. */
int tmi_index_sizes(const tmi_index_layout *l, int64_t *sizes);

#endif
