/* Counting and searching: shape rules and bodies. */
#include "compose.h"
#include "ops/shapes.h"

tm_status tmi_shape_histc(tmi_meta *m, tm_tensor *self, tm_int bins, tm_scalar lo, tm_scalar hi)
{
    TMI_REQUIRE(bins > 0, TM_INVALID, "torch.histc(): bins must be > 0, but got %lld", (long long)bins);
    TMI_REQUIRE(tmi_is_float(self->dtype), TM_NOT_IMPLEMENTED, "\"histogram_cpu\" not implemented for '%s'", tmi_dtypes[self->dtype].type_name);
    tmi_meta_set(m, 1, &bins);
    return TM_OK;
}

tm_status tmi_shape_searchsorted_Tensor(tmi_meta *m, tm_tensor *sequence, tm_tensor *self, bool out_int32, bool right, const char *side, tm_tensor *sorter)
{
    TMI_REQUIRE(!side || !strcmp(side, "left") || !strcmp(side, "right"), TM_INVALID,
                "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    TMI_REQUIRE(!side || !right || strcmp(side, "left"), TM_INVALID, "torch.searchsorted(): side and right can't be set to opposites, got side of left "
                "while right was True");
    TMI_REQUIRE(sequence->ndim > 0, TM_INVALID, "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension");
    bool same = sequence->ndim == 1 || sequence->ndim == self->ndim;
    for (int d = 0; same && sequence->ndim > 1 && d < self->ndim - 1; d++) same = sequence->sizes[d] == self->sizes[d];
    TMI_REQUIRE(same, TM_INVALID, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and "
                "input value tensor must match");
    TMI_REQUIRE(sequence->dtype == self->dtype || (self->flags & TMI_WRAPPED_NUMBER), TM_INVALID,
                "torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary tensor dtype %s and input value "
                "tensor dtype %s", tmi_dtypes[sequence->dtype].type_name, tmi_dtypes[self->dtype].type_name);
    if (sorter) {
        bool alike = sorter->ndim == sequence->ndim && memcmp(sorter->sizes, sequence->sizes, (size_t)sorter->ndim * sizeof(tm_int)) == 0;
        TMI_REQUIRE(alike, TM_INVALID, "torch.searchsorted(): boundary and sorter must have the same size");
        TMI_REQUIRE(sorter->dtype == TM_I64, TM_INVALID, "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype %s",
                    tmi_dtypes[sorter->dtype].type_name);
    }
    tmi_meta_set(m, self->ndim, self->sizes);
    m->dtype = out_int32 ? TM_I32 : TM_I64;
    return TM_OK;
}

tm_status tmi_shape_isin_Tensor_Tensor(tmi_meta *m, tm_tensor *elements, tm_tensor *test, bool assume_unique, bool invert)
{
    tmi_meta_set(m, elements->ndim, elements->sizes);
    m->dtype = TM_BOOL;
    return TM_OK;
}

tm_tensor *tmi_searchsorted_scalar(tm_tensor *sequence, tm_scalar self, bool out_int32, bool right, const char *side, tm_tensor *sorter)
{
    return tm_searchsorted_full(sequence, tm_full_full(NULL, 0, self, (tm_dtype)sequence->dtype, -1, sequence->device, NULL), out_int32, right, side, sorter);
}

static tm_status boundaries_flat(const tm_tensor *boundaries)
{
    TMI_REQUIRE(boundaries->ndim == 1, TM_INVALID, "boundaries tensor must be 1 dimension, but got dim(%d)", boundaries->ndim);
    return TM_OK;
}
tm_tensor *tmi_bucketize(tm_tensor *self, tm_tensor *boundaries, bool out_int32, bool right)
{
    TMI_TRY_PTR(boundaries_flat(boundaries));
    return tm_searchsorted_full(boundaries, self, out_int32, right, NULL, NULL);
}
tm_tensor *tmi_bucketize_scalar(tm_scalar self, tm_tensor *boundaries, bool out_int32, bool right)
{
    TMI_TRY_PTR(boundaries_flat(boundaries));
    return tmi_searchsorted_scalar(boundaries, self, out_int32, right, NULL, NULL);
}

tm_tensor *tmi_isin_scalar(tm_tensor *elements, tm_scalar test, bool assume_unique, bool invert)
{
    return invert ? tm_ne_scalar(elements, test) : tm_eq_scalar(elements, test);
}
tm_tensor *tmi_isin_number(tm_scalar element, tm_tensor *test, bool assume_unique, bool invert)
{
    tm_tensor *found = tm_any(tm_eq_scalar(test, element));
    return invert ? tm_logical_not(found) : found;
}

tm_tensor_list *tmi_unravel_index(tm_tensor *indices, const tm_int *shape, int64_t n)
{
    tm_tensor_list *out = tmi_own_list(tmi_list_new(n));
    tm_tensor *rest = indices;
    for (int64_t d = n - 1; out && rest && d >= 0; d--) {
        tm_tensor *place = d ? tm_remainder_scalar(rest, tm_i64(shape[d])) : rest;
        if (place) tmi_retain(place);
        out->t[d] = place;
        rest = tm_floor_divide_scalar(rest, tm_i64(shape[d]));
    }
    return out;
}
