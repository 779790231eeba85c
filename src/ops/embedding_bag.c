/* embedding_bag: rows by index, then a reduction by bag. Written with embedding, index_add and scatter_reduce, so gradients follow. */
#include "compose.h"

typedef struct bags {
    tm_tensor *bag;           /* which bag each index belongs to */
    tm_int n;
} bags;

static tm_status check_bags(const tm_tensor *weight, const tm_tensor *indices, const tm_tensor *offsets, const tm_tensor *weights, tm_int mode)
{
    TMI_REQUIRE(weight->ndim == 2, TM_INVALID, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
    TMI_REQUIRE(indices->ndim == 1, TM_INVALID, "input has to be a 1D or 2D Tensor, but got Tensor of dimension %d", indices->ndim);
    TMI_REQUIRE(offsets->ndim == 1, TM_INVALID, "offsets has to be a 1D Tensor, but got Tensor of dimension %d", offsets->ndim);
    TMI_REQUIRE(tmi_is_integral(indices->dtype) && tmi_is_integral(offsets->dtype), TM_INVALID, "embedding_bag: indices and offsets must be integers");
    TMI_REQUIRE(!weights || mode == 0, TM_INVALID, "embedding_bag: per_sample_weights was not None: per_sample_weights is only supported for mode='sum'");
    TMI_REQUIRE(!weights || (weights->ndim == 1 && weights->numel == indices->numel), TM_INVALID, "expected per_sample_weights to be 1D and of the size of input");
    TMI_REQUIRE(!weights || weights->dtype == weight->dtype, TM_INVALID, "expected weight and per_sample_weights to have the same dtype");
    return TM_OK;
}

/* offsets say where each bag starts; the last one may be the end of all. */
static tm_status bags_of(bags *b, tm_tensor *indices, tm_tensor *offsets, bool include_last)
{
    tm_tensor *starts = tm_contiguous(tmi_cast(offsets, TM_I64)), *bag = tmi_own(tmi_tensor_new(1, indices->sizes, NULL, TM_I64, indices->device));
    if (!starts || !bag) return tm_error_status();
    int64_t n = starts->numel - (include_last ? 1 : 0), *to = bag->numel ? tmi_data(bag) : NULL;
    const int64_t *start = starts->numel ? tmi_data(starts) : NULL;
    TMI_REQUIRE(!include_last || starts->numel >= 1, TM_INVALID, "include_last_offset: number of offset should be at least 1");
    TMI_REQUIRE(n <= 0 || start[0] == 0, TM_INVALID, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got %lld",
                (long long)start[0]);
    for (int64_t k = 0; k < n; k++) {
        int64_t end = k + 1 < starts->numel ? start[k + 1] : indices->numel;
        TMI_REQUIRE(start[k] <= end && end <= indices->numel, TM_INVALID, "offsets[-1] can not be greater than input's length of %lld", (long long)indices->numel);
        for (int64_t i = start[k]; i < end; i++) to[i] = k;
    }
    *b = (bags){bag, n};
    return TM_OK;
}

static tm_tensor *reduced(tm_tensor *rows, const bags *b, tm_int mode, tm_tensor *counted, tm_tensor **counts)
{
    tm_int sizes[2] = {b->n, rows->sizes[1]};
    tm_tensor *zeros = tmi_make_zeros_as(rows, sizes, 2);
    *counts = tm_index_add(tmi_make_zeros((tm_int[]){b->n}, 1, TM_I64, rows->device), 0, b->bag, counted);
    if (mode == 2) {
        tm_tensor *at = tm_expand(tm_unsqueeze(b->bag, 1), (tm_int[]){rows->sizes[0], rows->sizes[1]}, 2);
        return tm_scatter_reduce_two_full(zeros, 0, at, rows, "amax", false);
    }
    tm_tensor *sum = tm_index_add(zeros, 0, b->bag, rows);
    if (mode == 0) return sum;
    return tm_div(sum, tmi_cast(tm_unsqueeze(tm_clamp_min(*counts, tm_i64(1)), 1), (tm_dtype)rows->dtype));
}

static tm_status embedding_bag(tm_tensor *weight, tm_tensor *indices, tm_tensor *offsets, bool scale, tm_int mode, tm_tensor *weights, bool include_last,
                               tm_int padding, tm_tensor **out)
{
    TMI_TRY(check_bags(weight, indices, offsets, weights, mode));
    bags b = {NULL, 0};
    TMI_TRY(bags_of(&b, indices, offsets, include_last));
    if (padding >= 0) {
        tm_tensor *kept = tm_select_int(tm_nonzero(tm_ne_scalar(indices, tm_i64(padding))), 1, 0);
        indices = tm_index_select(indices, 0, kept);
        b.bag = tm_index_select(b.bag, 0, kept);
        if (weights) weights = tm_index_select(weights, 0, kept);
    }
    tm_tensor *rows = tm_embedding_full(weight, indices, -1, scale, false);
    if (!rows || !b.bag) return tm_error_status();
    if (weights) rows = tm_mul(rows, tm_unsqueeze(weights, 1));
    out[0] = reduced(rows, &b, mode, tm_ones_like(b.bag), &out[2]);
    out[1] = b.bag;
    out[3] = tmi_make_zeros((tm_int[]){b.n}, 1, TM_I64, weight->device);
    return tm_error_status();
}

tm_status tmi_embedding_bag_padded(tm_tensor *weight, tm_tensor *indices, tm_tensor *offsets, bool scale, tm_int mode, bool sparse, tm_tensor *weights,
                                   bool include_last, const tm_int *padding, tm_tensor **out, tm_tensor **bag, tm_tensor **size, tm_tensor **most)
{
    tm_tensor *o[4] = {NULL};
    TMI_REQUIRE(!padding || (*padding >= -weight->sizes[0] && *padding < weight->sizes[0]), TM_INVALID, "padding_idx must be within the number of embeddings, "
                "-%lld through %lld, but got %lld", (long long)weight->sizes[0], (long long)weight->sizes[0] - 1, (long long)(padding ? *padding : 0));
    tm_int pad = padding ? *padding + (*padding < 0 ? weight->sizes[0] : 0) : -1;
    TMI_TRY(embedding_bag(weight, indices, offsets, scale, mode, weights, include_last, pad, o));
    *out = o[0];
    *bag = o[1];
    *size = o[2];
    *most = o[3];
    return TM_OK;
}

tm_status tmi_embedding_bag(tm_tensor *weight, tm_tensor *indices, tm_tensor *offsets, bool scale, tm_int mode, bool sparse, tm_tensor *weights,
                            bool include_last, tm_tensor **out, tm_tensor **bag, tm_tensor **size, tm_tensor **most)
{
    return tmi_embedding_bag_padded(weight, indices, offsets, scale, mode, sparse, weights, include_last, NULL, out, bag, size, most);
}
