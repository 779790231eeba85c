#include "index_layout.h"

/* " [2], [3]" for the message. */
static void list_shapes(char *buf, size_t size, tm_tensor *const *indices, int64_t n)
{
    size_t used = 0;
    buf[0] = 0;
    for (int64_t i = 0; i < n && used + 64 < size; i++) {
        if (!indices[i]) continue;
        char one[128];
        tmi_format_sizes(one, sizeof one, indices[i]->ndim, indices[i]->sizes);
        size_t len = strlen(one);
        if (used + len + 4 >= size) return;
        memcpy(buf + used, used ? ", " : "", used ? 2 : 0);
        used += used ? 2 : 0;
        memcpy(buf + used, one, len + 1);
        used += len;
    }
}

static tm_status common_sizes(tmi_index_layout *l, tm_tensor *const *indices, int64_t n)
{
    l->n_common = 0;
    l->count = 1;
    for (int64_t i = 0; i < n; i++) {
        if (!indices[i]) continue;
        if (tmi_broadcast_sizes(l->n_common, l->common, indices[i]->ndim, indices[i]->sizes, &l->n_common, l->common) == TM_OK) continue;
        char shapes[512];
        list_shapes(shapes, sizeof shapes, indices, n);
        tm_error_clear();
        return tmi_fail(TM_INDEX, "shape mismatch: indexing tensors could not be broadcast together with shapes %s", shapes);
    }
    for (int d = 0; d < l->n_common; d++) l->count *= l->common[d];
    return TM_OK;
}

tm_status tmi_index_layout_of(tmi_index_layout *l, const tm_tensor *self, tm_tensor *const *indices, int64_t n)
{
    TMI_REQUIRE(n <= self->ndim, TM_INDEX, "too many indices for tensor of dimension %d (got %lld)", self->ndim, (long long)n);
    TMI_TRY(common_sizes(l, indices, n));
    int first = -1, last = -1, given = 0;
    for (int d = 0; d < n; d++) {
        if (!indices[d]) continue;
        if (first < 0) first = d;
        last = d;
        given++;
        TMI_REQUIRE(self->sizes[d] > 0 || l->count == 0, TM_INDEX, "index is out of bounds for dimension with size 0");
    }
    bool together = given > 0 && last - first + 1 == given;
    l->n_before = l->n_after = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (d < n && indices[d]) continue;
        if (together && d < first) {
            l->before_sizes[l->n_before] = self->sizes[d];
            l->before[l->n_before++] = d;
        } else {
            l->after_sizes[l->n_after] = self->sizes[d];
            l->after[l->n_after++] = d;
        }
    }
    return TM_OK;
}

int tmi_index_sizes(const tmi_index_layout *l, int64_t *sizes)
{
    int n = 0;
    for (int d = 0; d < l->n_before; d++) sizes[n++] = l->before_sizes[d];
    for (int d = 0; d < l->n_common; d++) sizes[n++] = l->common[d];
    for (int d = 0; d < l->n_after; d++) sizes[n++] = l->after_sizes[d];
    return n;
}
