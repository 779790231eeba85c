/* A contiguous tensor seen as [outer, length, inner] around one dim: what dim-wise kernels (scans, sorts, softmax ...) walk over. */
#ifndef TMK_LINES_H
#define TMK_LINES_H

#include "core/tensor_state.h"

typedef struct tmk_lines {
    int64_t outer, length, inner;
} tmk_lines;

static inline tmk_lines tmk_lines_of(const tm_tensor *t, int64_t dim)
{
    tmk_lines l = {1, 1, 1};
    if (t->ndim == 0) return l;
    if (dim < 0) dim += t->ndim;
    for (int64_t d = 0; d < t->ndim; d++) *(d < dim ? &l.outer : d == dim ? &l.length : &l.inner) *= t->sizes[d];
    return l;
}

#endif
