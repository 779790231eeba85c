/* Shape and type rules shared by many operators. */
#include "shapes.h"
#include "types.h"

#include <string.h>

void tmi_meta_set(tmi_meta *m, int ndim, const tm_int *sizes)
{
    m->ndim = ndim;
    if (ndim) memcpy(m->sizes, sizes, (size_t)ndim * sizeof *sizes);
    m->contiguous = true;
}

void tmi_meta_view(tmi_meta *m, tm_tensor *base, int ndim, const tm_int *sizes, const tm_int *strides, tm_int offset)
{
    m->kind = TMI_META_VIEW;
    m->base = base;
    m->dtype = base->dtype;
    tmi_meta_set(m, ndim, sizes);
    if (ndim) memcpy(m->strides, strides, (size_t)ndim * sizeof *strides);
    m->contiguous = false;
    m->offset = offset;
}

void tmi_meta_self(tmi_meta *m, tm_tensor *base)
{
    m->kind = TMI_META_SELF;
    m->base = base;
    m->dtype = base->dtype;
    tmi_meta_set(m, base->ndim, base->sizes);
}

void tmi_meta_options(tmi_meta *m, tm_dtype dtype, tm_device device)
{
    if (dtype != TM_DTYPE_DEFAULT) m->dtype = (uint8_t)dtype;
    if (device.type != TM_DEVICE_DEFAULT) m->device = device;
}

tm_status tmi_shape_sizes(tmi_meta *m, const tm_int *sizes, int64_t n)
{
    TMI_REQUIRE(n <= TMI_MAX_DIMS, TM_INVALID, "a tensor can have at most %d dimensions, but got %lld", TMI_MAX_DIMS, (long long)n);
    tmi_meta_set(m, (int)n, sizes);
    return TM_OK;
}

/* ---------------------------------------------------------------- memory order */

/* Whether the inputs want dim a (outer so far) inside dim b, by their strides: 1 yes, -1 no, 0 undecided. As in PyTorch's iterator:
 * the first operand that tells decides; broadcast dims (stride 0) do not tell. */
static int should_swap(int n, const tm_tensor *const *t, int ndim, int a, int b)
{
    for (int i = 0; i < n; i++) {
        if (!t[i]) continue;
        int da = a - (ndim - t[i]->ndim), db = b - (ndim - t[i]->ndim);
        int64_t sa = da < 0 || t[i]->sizes[da] == 1 ? 0 : t[i]->strides[da];
        int64_t sb = db < 0 || t[i]->sizes[db] == 1 ? 0 : t[i]->strides[db];
        if (sa == 0 || sb == 0) continue;
        if (sa < sb) return -1;
        if (sa > sb) return 1;
        if (t[i]->sizes[da] > t[i]->sizes[db]) return 1;
    }
    return 0;
}

/* Dense strides in the inputs' common order. */
static void ordered_strides(tmi_meta *m, int n, const tm_tensor *const *t)
{
    int perm[TMI_MAX_DIMS], ndim = m->ndim;
    for (int i = 0; i < ndim; i++) perm[i] = ndim - 1 - i;   /* innermost first */
    for (int i = 1; i < ndim; i++) {
        int at = i;
        for (int j = i - 1; j >= 0; j--) {
            int order = should_swap(n, t, ndim, perm[j], perm[at]);
            if (order < 0) break;
            if (order > 0) {
                int swap = perm[at];
                perm[at] = perm[j];
                perm[j] = swap;
                at = j;
            }
        }
    }
    tm_int step = 1;
    for (int i = 0; i < ndim; i++) {
        m->strides[perm[i]] = step;
        step *= m->sizes[perm[i]] > 1 ? m->sizes[perm[i]] : 1;
    }
    m->contiguous = false;
}

static bool all_contiguous(int n, const tm_tensor *const *t)
{
    for (int i = 0; i < n; i++)
        if (t[i] && !tmi_contiguous(t[i])) return false;
    return true;
}

tm_status tmi_shape_same(tmi_meta *m, const tm_tensor *t)
{
    tmi_meta_set(m, t->ndim, t->sizes);
    if (tmi_contiguous(t)) return TM_OK;
    if (tmi_is_non_overlapping_and_dense(t)) {
        memcpy(m->strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
        m->contiguous = false;
    } else {
        ordered_strides(m, 1, &t);
    }
    return TM_OK;
}

tm_status tmi_shape_broadcast(tmi_meta *m, int n, const tm_tensor *const *t)
{
    int ndim = 0;
    int64_t sizes[TMI_MAX_DIMS];
    for (int i = 0; i < n; i++)
        if (t[i]) TMI_TRY(tmi_broadcast_sizes(ndim, sizes, t[i]->ndim, t[i]->sizes, &ndim, sizes));
    tmi_meta_set(m, ndim, sizes);
    if (!all_contiguous(n, t)) ordered_strides(m, n, t);
    return TM_OK;
}

/* ---------------------------------------------------------------- pointwise */

/* All tensors of one dtype and no numbers: the common case. */
static bool one_dtype(int n, const tmi_operand *in, tm_dtype *out)
{
    for (int i = 0; i < n; i++)
        if (!in[i].t || in[i].t->dtype != in[0].t->dtype || (in[i].t->flags & TMI_WRAPPED_NUMBER)) return false;
    *out = in[0].t->dtype;
    return true;
}

/* One tensor and numbers of no higher category. */
static bool tensor_and_numbers(int n, const tmi_operand *in, tm_dtype *out)
{
    if (!in[0].t || tmi_dtypes[in[0].t->dtype].category != 'F') return false;
    for (int i = 1; i < n; i++)
        if (in[i].t || in[i].s.tag == TM_SCALAR_C128 || in[i].s.tag == TM_SCALAR_SYMBOL) return false;
    *out = in[0].t->dtype;
    return true;
}

tm_status tmi_pointwise_dtype(int n, const tmi_operand *in, int mode, tm_dtype *out)
{
    if (mode == 2) {
        *out = in[0].t ? in[0].t->dtype : tmi_scalar_dtype(in[0].s);
        return TM_OK;
    }
    if (!one_dtype(n, in, out) && !tensor_and_numbers(n, in, out)) {
        tmi_promotion p = TMI_PROMOTION_INIT;
        for (int i = 0; i < n; i++) TMI_TRY(in[i].t ? tmi_promote_tensor(&p, in[i].t) : tmi_promote_scalar(&p, in[i].s));
        TMI_TRY(tmi_promoted(&p, out));
    }
    if (mode == 1 && (tmi_is_integral(*out) || *out == TM_BOOL)) *out = tm_get_default_dtype();
    return TM_OK;
}

static bool same_contiguous(int n, const tmi_operand *in)
{
    const tm_tensor *first = in[0].t;
    if (!first || !tmi_contiguous(first)) return false;
    for (int i = 1; i < n; i++) {
        const tm_tensor *t = in[i].t;
        if (t && (t->ndim != first->ndim || !tmi_contiguous(t) || memcmp(t->sizes, first->sizes, (size_t)first->ndim * sizeof(int64_t)))) return false;
    }
    return true;
}

tm_status tmi_shape_pointwise(tmi_meta *m, int n, const tmi_operand *in, int mode, tm_dtype *common)
{
    TMI_TRY(tmi_pointwise_dtype(n, in, mode, common));
    if (TMI_LIKELY(same_contiguous(n, in))) {
        tmi_meta_set(m, in[0].t->ndim, in[0].t->sizes);
        return TM_OK;
    }
    const tm_tensor *t[8];
    int n_tensors = 0;
    for (int i = 0; i < n; i++)
        if (in[i].t) t[n_tensors++] = in[i].t;
    if (n_tensors == 1) return tmi_shape_same(m, t[0]);
    return tmi_shape_broadcast(m, n_tensors, t);
}

/* ---------------------------------------------------------------- reductions */

static tm_status reduced_dims(const tm_tensor *t, const tm_int *dims, int64_t n, bool *reduced)
{
    for (int i = 0; i < t->ndim; i++) reduced[i] = n == 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t d = dims[i];
        TMI_TRY(tmi_wrap_dim(&d, t->ndim));
        if (t->ndim == 0) continue;
        TMI_REQUIRE(!reduced[d], TM_INVALID, "dim %lld appears multiple times in the list of dims", (long long)d);
        reduced[d] = true;
    }
    return TM_OK;
}

tm_status tmi_shape_reduce(tmi_meta *m, const tm_tensor *t, const tm_int *dims, int64_t n_dims, bool keepdim)
{
    bool reduced[TMI_MAX_DIMS];
    int ndim = 0;
    TMI_TRY(reduced_dims(t, dims, dims ? n_dims : 0, reduced));
    for (int i = 0; i < t->ndim; i++) {
        if (!reduced[i])
            m->sizes[ndim++] = t->sizes[i];
        else if (keepdim)
            m->sizes[ndim++] = 1;
    }
    m->ndim = ndim;
    m->contiguous = true;
    return TM_OK;
}

tm_status tmi_shape_reduce_one(tmi_meta *m, const tm_tensor *t, tm_int dim, bool keepdim)
{
    return tmi_shape_reduce(m, t, &dim, 1, keepdim);
}

/* ---------------------------------------------------------------- types */

tm_status tmi_type_set(tmi_meta *m, tm_dtype dtype)
{
    if (dtype != TM_DTYPE_DEFAULT) m->dtype = (uint8_t)dtype;
    return TM_OK;
}

tm_status tmi_type_bool(tmi_meta *m) { return tmi_type_set(m, TM_BOOL); }
tm_status tmi_type_int64(tmi_meta *m) { return tmi_type_set(m, TM_I64); }

tm_status tmi_type_floating(tmi_meta *m, const tm_tensor *t)
{
    bool integer = tmi_is_integral(t->dtype) || t->dtype == TM_BOOL;
    return tmi_type_set(m, integer ? tm_get_default_dtype() : (tm_dtype)t->dtype);
}

tm_status tmi_type_sum(tmi_meta *m, const tm_tensor *t, tm_dtype dtype)
{
    if (dtype != TM_DTYPE_DEFAULT) return tmi_type_set(m, dtype);
    bool integer = tmi_is_integral(t->dtype) || t->dtype == TM_BOOL;
    return tmi_type_set(m, integer ? TM_I64 : (tm_dtype)t->dtype);
}

tm_status tmi_type_promote_list(tmi_meta *m, tm_tensor *const *t, int64_t n)
{
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    for (int64_t i = 0; i < n; i++)
        if (t[i]) TMI_TRY(tmi_promote_tensor(&p, t[i]));
    TMI_TRY(tmi_promoted(&p, &dtype));
    return tmi_type_set(m, dtype);
}

tm_status tmi_type_promote(tmi_meta *m, const tm_tensor *a, const tm_tensor *b)
{
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype dtype;
    TMI_TRY(tmi_promote_tensor(&p, a));
    TMI_TRY(tmi_promote_tensor(&p, b));
    TMI_TRY(tmi_promoted(&p, &dtype));
    return tmi_type_set(m, dtype);
}

tm_status tmi_type_real(tmi_meta *m, const tm_tensor *t) { return tmi_type_set(m, tmi_real_dtype(t->dtype)); }

tm_status tmi_type_default(tmi_meta *m, tm_dtype dtype)
{
    return tmi_type_set(m, dtype != TM_DTYPE_DEFAULT ? dtype : tm_get_default_dtype());
}
