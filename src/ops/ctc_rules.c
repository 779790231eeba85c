/* ctc_loss: shape rule and bodies. */
#include "base/alloc.h"
#include "compose.h"
#include "ops/shapes.h"

tm_status tmi_shape__ctc_loss(tmi_meta *m, tm_tensor *log_probs, tm_tensor *targets, const tm_int *in, int64_t n_in, const tm_int *lengths, int64_t n_lengths,
                              tm_int blank, bool zero_infinity)
{
    TMI_REQUIRE(log_probs->ndim == 3, TM_INVALID, "ctc_loss: log_probs must have 3 dimensions (time, batch, classes), but got %d", log_probs->ndim);
    TMI_REQUIRE(log_probs->dtype == TM_F32 || log_probs->dtype == TM_F64, TM_NOT_IMPLEMENTED, "\"ctc_loss_cpu\" not implemented for '%s'",
                tmi_dtypes[log_probs->dtype].type_name);
    tm_int T = log_probs->sizes[0], N = log_probs->sizes[1], C = log_probs->sizes[2], longest = 0, total = 0;
    TMI_REQUIRE(blank >= 0 && blank < C, TM_INVALID, "blank must be in label range");
    TMI_REQUIRE(n_in == N, TM_INVALID, "input_lengths must be of size batch_size");
    TMI_REQUIRE(n_lengths == N, TM_INVALID, "target_lengths must be of size batch_size");
    for (int64_t n = 0; n < N; n++) {
        TMI_REQUIRE(in[n] >= 0 && in[n] <= T, TM_INVALID, "Expected input_lengths to have value at most %lld, but got value %lld", (long long)T, (long long)in[n]);
        TMI_REQUIRE(lengths[n] >= 0, TM_INVALID, "Expected target_lengths to have value at least 0, but got value %lld", (long long)lengths[n]);
        if (lengths[n] > longest) longest = lengths[n];
        total += lengths[n];
    }
    bool fits = targets->ndim == 1 ? targets->numel >= total : targets->ndim == 2 && targets->sizes[0] == N && targets->sizes[1] >= longest;
    TMI_REQUIRE(fits, TM_INVALID, "Expected targets to hold %lld labels in all, at most %lld per example", (long long)total, (long long)longest);
    if (targets->ndim == 2 && targets->sizes[1] > longest) longest = targets->sizes[1];
    tmi_meta_set(&m[0], 1, &N);
    tmi_meta_set(&m[1], 3, (tm_int[]){N, T, 2 * longest + 1});
    return TM_OK;
}

tm_tensor *tmi_ctc_loss(tm_tensor *log_probs, tm_tensor *targets, const tm_int *in, int64_t n_in, const tm_int *lengths, int64_t n_lengths, tm_int blank,
                        tm_int reduction, bool zero_infinity)
{
    bool batch = log_probs->ndim == 3;
    if (!batch && targets->ndim == 1) targets = tm_unsqueeze(targets, 0);
    tm_tensor *loss, *alpha;
    TMI_TRY_PTR(tmo_ctc_loss_full(batch ? log_probs : tm_unsqueeze(log_probs, 1), targets, in, n_in, lengths, n_lengths, blank, zero_infinity, &loss, &alpha));
    if (reduction == 1) {
        tm_tensor *n = tmi_own(tmi_tensor_new(1, &n_lengths, NULL, TM_I64, log_probs->device));
        for (int64_t i = 0; n && i < n_lengths; i++) ((int64_t *)tmi_data(n))[i] = lengths[i] > 1 ? lengths[i] : 1;
        return tm_mean(tm_div(loss, tmi_cast(n, (tm_dtype)loss->dtype)));
    }
    if (reduction == 2) return tm_sum(loss);
    return batch ? loss : tm_squeeze_dim(loss, 0);
}

/* Lengths as numbers; free with tmi_free(p, n * 8). */
static tm_int *numbers(tm_tensor *t)
{
    TMI_REQUIRE_PTR(tmi_is_integral(t->dtype), TM_INVALID, "input_lengths and target_lengths must be integral");
    tm_tensor *plain = tm_contiguous(tmi_cast(t, TM_I64));
    tm_int *p = plain ? tmi_alloc((size_t)plain->numel * sizeof *p) : NULL;
    if (p && plain->numel) memcpy(p, tmi_data(plain), (size_t)plain->numel * sizeof *p);
    return p;
}

tm_tensor *tmi_ctc_loss_tensors(tm_tensor *log_probs, tm_tensor *targets, tm_tensor *in, tm_tensor *lengths, tm_int blank, tm_int reduction, bool zero_infinity)
{
    tm_int *a = numbers(in), *b = a ? numbers(lengths) : NULL;
    tm_tensor *out = b ? tmi_ctc_loss(log_probs, targets, a, in->numel, b, lengths->numel, blank, reduction, zero_infinity) : NULL;
    tmi_free(a, (size_t)in->numel * sizeof *a);
    tmi_free(b, (size_t)lengths->numel * sizeof *b);
    return out;
}
