#include "compose.h"

#include "boxing.h"

tm_tensor *tmi_cast(tm_tensor *t, tm_dtype dtype)
{
    if (!t || t->dtype == dtype) return t;
    return tm_to_dtype(t, dtype);
}

tm_tensor *tmi_make_zeros(const tm_int *sizes, int64_t n, tm_dtype dtype, tm_device device)
{
    return tm_zeros_full(sizes, n, dtype, -1, device, NULL);
}

tm_tensor *tmi_make_zeros_as(const tm_tensor *like, const tm_int *sizes, int64_t n)
{
    return like ? tmi_make_zeros(sizes, n, (tm_dtype)like->dtype, like->device) : NULL;
}

tm_tensor *tmi_number_as(const tm_tensor *like, double value)
{
    return like ? tm_full_full(NULL, 0, tm_f64(value), (tm_dtype)like->dtype, -1, like->device, NULL) : NULL;
}

tm_tensor *tmi_unreduce(tm_tensor *t, const tm_int *dim, int64_t n_dim, bool keepdim, int64_t ndim)
{
    if (!t || keepdim || ndim == 0 || n_dim == 0 || !dim) return t;
    bool reduced[TMI_MAX_DIMS] = {false};
    for (int64_t i = 0; i < n_dim; i++) reduced[tmi_wrapped(dim[i], ndim)] = true;
    for (int64_t d = 0; d < ndim; d++)
        if (reduced[d]) t = tm_unsqueeze(t, d);
    return t;
}

tm_tensor *tmi_sum_to_keep(tm_tensor *t, const tm_int *dim, int64_t n_dim)
{
    return tm_sum_dim_intlist_full(t, dim, n_dim, true, TM_DTYPE_DEFAULT);
}

tm_tensor *tmi_apply_reduction(tm_tensor *loss, tm_int reduction)
{
    return reduction == 1 ? tm_mean(loss) : reduction == 2 ? tm_sum(loss) : loss;
}

bool tmi_is_complex_tensor(const tm_tensor *t) { return t && tmi_is_complex(t->dtype); }
