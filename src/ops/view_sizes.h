/* Size arithmetic that view rules and their composites share. */
#ifndef TMI_VIEW_SIZES_H
#define TMI_VIEW_SIZES_H

#include "op.h"

/* `size` with its -1 (if any) filled in for `numel` elements; PyTorch's errors. out has n entries. */
tm_status tmi_infer_size(int64_t n, const tm_int *size, int64_t numel, tm_int *out);
/* Strides that show t's elements under `size` without a copy; false if that is impossible. */
bool tmi_view_strides(const tm_tensor *t, int64_t n, const tm_int *size, tm_int *strides);

#endif
