/* Attention: PyTorch's checks, the choice between the tiled kernel and the plain formula, and the formula itself. */
#include "op_bodies.h"
#include "ops.h"

#include "boxing.h"
#include "op_ids.h"
#include "shapes.h"

static const char *c_name(const tm_tensor *t)
{
    switch (t->dtype) {
    case TM_F32: return "float";
    case TM_F64: return "double";
    case TM_F16: return "c10::Half";
    case TM_BF16: return "c10::BFloat16";
    case TM_I64: return "long int";
    case TM_I32: return "int";
    case TM_BOOL: return "bool";
    default: return tmi_dtypes[t->dtype].name;
    }
}

static tm_status check(const tm_tensor *q, const tm_tensor *k, const tm_tensor *v, const tm_tensor *mask, double dropout_p, bool gqa)
{
    TMI_REQUIRE(q->dtype == k->dtype && q->dtype == v->dtype, TM_INVALID,
                "Expected query, key, and value to have the same dtype, but got query.dtype: %s key.dtype: %s and value.dtype: %s instead.", c_name(q),
                c_name(k), c_name(v));
    TMI_REQUIRE(q->ndim >= 2 && k->ndim >= 2 && v->ndim >= 2, TM_SHAPE,
                "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: %d key.dim: %d and value.dim: %d instead.", q->ndim,
                k->ndim, v->ndim);
    if (mask)
        TMI_REQUIRE(mask->dtype == TM_BOOL || mask->dtype == TM_F32 || mask->dtype == q->dtype, TM_INVALID,
                    "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: %s and  query.dtype: %s instead.",
                    c_name(mask), c_name(q));
    TMI_REQUIRE(dropout_p >= 0 && dropout_p <= 1, TM_INVALID, "dropout probability has to be between 0 and 1, but got %g", dropout_p);
    if (gqa && q->ndim >= 3 && k->ndim >= 3 && v->ndim >= 3) {
        tm_int hq = q->sizes[q->ndim - 3], hk = k->sizes[k->ndim - 3], hv = v->sizes[v->ndim - 3];
        TMI_REQUIRE(hk > 0 && hv > 0 && hq % hk == 0 && hq % hv == 0, TM_INVALID, "Number of heads in key and value must divide the number of heads in ");
    }
    return TM_OK;
}

static bool mask_fits(const tm_tensor *mask, const tm_tensor *q, const tm_tensor *k)
{
    tm_int want[4] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
    if (mask->ndim > 4 || mask->flags & TMI_REQUIRES_GRAD) return false;
    for (int i = 0; i < mask->ndim; i++)
        if (mask->sizes[mask->ndim - 1 - i] != 1 && mask->sizes[mask->ndim - 1 - i] != want[3 - i]) return false;
    return true;
}

/* What the tiled kernel takes: four dims, no dropout, sizes that agree. Everything else, errors included, goes the plain way. */
static bool tiled(const tm_tensor *q, const tm_tensor *k, const tm_tensor *v, const tm_tensor *mask, double dropout_p, bool causal, bool gqa)
{
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4 || dropout_p != 0 || q->numel == 0 || k->numel == 0 || v->numel == 0) return false;
    if (!tmi_is_float(q->dtype) || q->dtype >= TM_F8_E4M3FN || (mask && causal)) return false;
    bool heads = gqa ? k->sizes[1] == v->sizes[1] : q->sizes[1] == k->sizes[1] && k->sizes[1] == v->sizes[1];
    bool sizes = q->sizes[0] == k->sizes[0] && k->sizes[0] == v->sizes[0] && k->sizes[2] == v->sizes[2] && q->sizes[3] == k->sizes[3] &&
                 q->sizes[3] == v->sizes[3];
    return heads && sizes && (!mask || mask_fits(mask, q, k));
}

/* Heads of keys repeated to the number of query heads. */
static tm_tensor *repeat_heads(tm_tensor *t, tm_int heads)
{
    int d = t->ndim - 3;
    tm_int n = t->sizes[d], sizes[TMI_MAX_DIMS], flat[TMI_MAX_DIMS];
    if (n == heads) return t;
    for (int i = 0; i < t->ndim + 1; i++) sizes[i] = i <= d ? t->sizes[i] : i == d + 1 ? heads / n : t->sizes[i - 1];
    for (int i = 0; i < t->ndim; i++) flat[i] = i == d ? heads : t->sizes[i];
    return tm_reshape(tm_expand(tm_unsqueeze(t, d + 1), sizes, t->ndim + 1), flat, t->ndim);
}

/* true becomes 0, false -inf. */
static tm_tensor *additive_mask(tm_tensor *mask, tm_tensor *q)
{
    if (mask->dtype != TM_BOOL) return mask;
    tm_tensor *zeros = tm_zeros_full(mask->sizes, mask->ndim, q->dtype, -1, q->device, NULL);
    return tm_masked_fill_scalar(zeros, tm_logical_not(mask), tm_f64(-__builtin_inf()));
}

static tm_tensor *causal_mask(tm_tensor *q, tm_tensor *k)
{
    tm_int sizes[] = {q->sizes[q->ndim - 2], k->sizes[k->ndim - 2]};
    return tm_tril(tm_ones_full(sizes, 2, TM_BOOL, -1, q->device, NULL));
}

/* Softmax whose fully masked rows are zeros. */
static tm_tensor *safe_softmax(tm_tensor *scores, bool masked)
{
    tm_tensor *weights = tm_softmax_int(scores, -1);
    if (!masked || !weights) return weights;
    tm_tensor *hidden = tm_all_dim_full(tm_eq_scalar(scores, tm_f64(-__builtin_inf())), -1, true);
    return tm_masked_fill_scalar(weights, hidden, tm_f64(0));
}

static tm_tensor *plain(tm_tensor *q, tm_tensor *k, tm_tensor *v, tm_tensor *mask, double dropout_p, bool causal, double scale, bool gqa)
{
    if (q->dtype == TM_BF16 || q->dtype == TM_F16) {   /* computed in float */
        tm_tensor *wide_mask = mask && mask->dtype != TM_BOOL ? tm_to_dtype(mask, TM_F32) : mask;
        tm_tensor *wide_q = tm_to_dtype(q, TM_F32), *wide_k = tm_to_dtype(k, TM_F32), *wide_v = tm_to_dtype(v, TM_F32);
        if (tm_error_status()) return NULL;
        return tm_to_dtype(plain(wide_q, wide_k, wide_v, wide_mask, dropout_p, causal, scale, gqa), q->dtype);
    }
    if (gqa && q->ndim >= 3) {
        k = repeat_heads(k, q->sizes[q->ndim - 3]);
        v = repeat_heads(v, q->sizes[q->ndim - 3]);
        if (!k || !v) return NULL;
    }
    if (causal) {
        TMI_REQUIRE_PTR(!mask, TM_INVALID, "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
        mask = causal_mask(q, k);
    }
    if (mask) mask = additive_mask(mask, q);
    if (tm_error_status()) return NULL;
    double root = __builtin_sqrt(scale < 0 ? -scale : scale);   /* spread over both sides: less overflow in half precision */
    tm_tensor *left = tm_mul_scalar(q, tm_f64(scale < 0 ? -root : root)), *right = tm_mul_scalar(tm_transpose_int(k, -2, -1), tm_f64(root));
    tm_tensor *scores = tm_matmul(left, right);
    if (mask) scores = tm_add(scores, mask);
    tm_tensor *weights = safe_softmax(scores, mask != NULL);
    if (dropout_p > 0) weights = tm_dropout(weights, dropout_p, true);
    if (weights && weights->dtype != v->dtype) weights = tm_to_dtype(weights, v->dtype);
    return tm_matmul(weights, v);
}

tm_tensor *tmi_scaled_dot_product_attention(tm_tensor *query, tm_tensor *key, tm_tensor *value, tm_tensor *attn_mask, double dropout_p, bool is_causal,
                                            const double *scale, bool enable_gqa)
{
    TMI_TRY_PTR(check(query, key, value, attn_mask, dropout_p, enable_gqa));
    if (tiled(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)) {
        tm_tensor *out = NULL, *lse = NULL;
        TMI_TRY_PTR(tmo_scaled_dot_product_flash_attention_for_cpu_full(query, key, value, 0, is_causal, attn_mask, scale, &out, &lse));
        return out;
    }
    tm_int d = query->sizes[query->ndim - 1];
    return plain(query, key, value, attn_mask, dropout_p, is_causal, scale ? *scale : d ? 1 / __builtin_sqrt((double)d) : 1, enable_gqa);
}

tm_status tmi_shape__scaled_dot_product_flash_attention_for_cpu(tmi_meta *m, tm_tensor *query, tm_tensor *key, tm_tensor *value, double dropout_p,
                                                                bool is_causal, tm_tensor *attn_mask, const double *scale)
{
    TMI_REQUIRE(query->ndim == 4 && key->ndim == 4 && value->ndim == 4, TM_SHAPE, "attention: query, key and value must have four dimensions");
    TMI_REQUIRE(dropout_p == 0, TM_INVALID, "attention: the tiled kernel has no dropout");
    TMI_REQUIRE(tmi_is_float(query->dtype) && query->dtype == key->dtype && query->dtype == value->dtype, TM_INVALID,
                "attention: query, key and value must have one floating dtype");
    bool fits = query->sizes[0] == key->sizes[0] && key->sizes[0] == value->sizes[0] && key->sizes[1] == value->sizes[1] && key->sizes[1] > 0 &&
                query->sizes[1] % key->sizes[1] == 0 && key->sizes[2] == value->sizes[2] && query->sizes[3] == key->sizes[3] &&
                (!attn_mask || mask_fits(attn_mask, query, key) || attn_mask->flags & TMI_REQUIRES_GRAD);
    TMI_REQUIRE(fits, TM_SHAPE, "attention: sizes of query, key, value and mask do not fit");
    TMI_TRY(tmi_shape_same(&m[0], query));
    if (value->sizes[3] != query->sizes[3]) {
        tm_int sizes[4] = {query->sizes[0], query->sizes[1], query->sizes[2], value->sizes[3]};
        tmi_meta_set(&m[0], 4, sizes);
    }
    tmi_meta_set(&m[1], 3, query->sizes);
    m[1].dtype = query->dtype == TM_F64 ? TM_F64 : TM_F32;
    return TM_OK;
}

tm_status tmi_shape__scaled_dot_product_flash_attention_for_cpu_backward(tmi_meta *m, tm_tensor *grad_out, tm_tensor *query, tm_tensor *key,
                                                                         tm_tensor *value, tm_tensor *out, tm_tensor *logsumexp, double dropout_p,
                                                                         bool is_causal, tm_tensor *attn_mask, const double *scale)
{
    TMI_TRY(tmi_shape_same(&m[0], query));
    TMI_TRY(tmi_shape_same(&m[1], key));
    return tmi_shape_same(&m[2], value);
}
