/* The attention operators' kernels: tensors to the description that flash.c runs. */
#include "op_bodies.h"

#include "base/cpuinfo.h"
#include "flash.h"

static const tmk_attention_rows *rows_in_use(void)
{
    switch (tmi_cpu()->isa) {
#if defined(TMK_HAVE_AVX2)
    case TMI_ISA_AVX2: return &tmk_attention_rows_avx2;
    case TMI_ISA_AVX512: return &tmk_attention_rows_avx512;
#endif
#if defined(TMK_HAVE_NEON)
    case TMI_ISA_NEON: return &tmk_attention_rows_neon;
#endif
    default: return &tmk_attention_rows_scalar;
    }
}

static flash_tensor describe(const tm_tensor *t)
{
    return (flash_tensor){.data = tmi_data(t), .bs = t->strides[0], .hs = t->strides[1], .ss = t->strides[2], .ds = t->ndim > 3 ? t->strides[3] : 0,
                          .dtype = t->dtype};
}

/* Strides of the mask broadcast to [batch, heads, q_len, k_len]. */
static flash_tensor describe_mask(const tm_tensor *mask)
{
    int64_t s[4] = {0};
    for (int i = 0; i < 4 && i < mask->ndim; i++) s[3 - i] = mask->sizes[mask->ndim - 1 - i] == 1 ? 0 : mask->strides[mask->ndim - 1 - i];
    return (flash_tensor){.data = tmi_data(mask), .bs = s[0], .hs = s[1], .ss = s[2], .ds = s[3], .dtype = mask->dtype};
}

static flash_run describe_run(const tm_tensor *q, const tm_tensor *k, const tm_tensor *v, const tm_tensor *mask, bool causal, const double *scale)
{
    flash_run r = {.batch = q->sizes[0], .heads = q->sizes[1], .kv_heads = k->sizes[1], .q_len = q->sizes[2], .k_len = k->sizes[2], .d = q->sizes[3],
                   .dv = v->sizes[3], .q = describe(q), .k = describe(k), .v = describe(v), .causal = causal, .rows = rows_in_use()};
    if (mask) r.mask = describe_mask(mask);
    r.scale = scale ? *scale : 1 / __builtin_sqrt((double)r.d);
    r.q_blocks = (r.q_len + FLASH_Q_BLOCK - 1) / FLASH_Q_BLOCK;
    r.k_blocks = (r.k_len + FLASH_K_BLOCK - 1) / FLASH_K_BLOCK;
    return r;
}

tm_status tmk_flash_attention(tm_tensor *output, tm_tensor *logsumexp, tm_tensor *query, tm_tensor *key, tm_tensor *value, double dropout_p,
                              bool is_causal, tm_tensor *attn_mask, const double *scale)
{
    flash_run r = describe_run(query, key, value, attn_mask, is_causal, scale);
    if (output->numel == 0) return TM_OK;
    r.out = describe(output);
    r.lse = describe(logsumexp);
    return query->dtype == TM_F64 ? tmi_flash_forward_f64(&r) : tmi_flash_forward_f32(&r);
}

static void fill_zero(tm_tensor *t)
{
    if (t->numel) memset(tmi_data(t), 0, (size_t)t->numel * tmi_dtype_size(t->dtype));
}

tm_status tmk_flash_attention_backward(tm_tensor *grad_query, tm_tensor *grad_key, tm_tensor *grad_value, tm_tensor *grad_out, tm_tensor *query,
                                       tm_tensor *key, tm_tensor *value, tm_tensor *out, tm_tensor *logsumexp, double dropout_p, bool is_causal,
                                       tm_tensor *attn_mask, const double *scale)
{
    flash_run r = describe_run(query, key, value, attn_mask, is_causal, scale);
    if (query->numel == 0 || key->numel == 0 || value->numel == 0) {
        fill_zero(grad_query), fill_zero(grad_key), fill_zero(grad_value);
        return TM_OK;
    }
    r.out = describe(out), r.lse = describe(logsumexp), r.dout = describe(grad_out);
    r.dq = describe(grad_query), r.dk = describe(grad_key), r.dv_ = describe(grad_value);
    return query->dtype == TM_F64 ? tmi_flash_backward_f64(&r) : tmi_flash_backward_f32(&r);
}
