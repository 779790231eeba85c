/* ctc_loss: forward and backward variables in the logarithm, in double; a thread owns an example.
 *
 * A label sequence l is spread with blanks to z = (-, l1, -, l2, ..., -); alpha[t][s] is the log-probability of all alignments of the first
 * t + 1 steps that end in z[s], beta likewise from the end. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"

typedef struct job {
    const double *probs;            /* [T, N, C] */
    const int64_t *targets;
    const int64_t *start;           /* where each example's labels begin */
    const tm_int *input_lengths, *target_lengths;
    int64_t T, N, C, width, blank;  /* width: of alpha's last dim */
    double *loss, *alpha;           /* [N], [N, T, width] */
    const double *grad;
    double *out;
    bool zero_infinity;
    double *beta;                   /* [N, 2, width] */
} job;

static double log_add(double a, double b)
{
    double hi = a > b ? a : b, lo = a > b ? b : a;
    return hi == -INFINITY ? hi : hi + log1p(exp(lo - hi));
}

static int64_t label(const job *j, int64_t n, int64_t s) { return s % 2 ? j->targets[j->start[n] + s / 2] : j->blank; }
static double prob(const job *j, int64_t t, int64_t n, int64_t c) { return j->probs[(t * j->N + n) * j->C + c]; }
static bool may_skip(const job *j, int64_t n, int64_t s) { return s >= 2 && s % 2 && label(j, n, s) != label(j, n, s - 2); }

static void forward_one(const job *j, int64_t n)
{
    int64_t S = 2 * j->target_lengths[n] + 1, T = j->input_lengths[n];
    double *alpha = j->alpha + n * j->T * j->width;
    for (int64_t i = 0; i < j->T * j->width; i++) alpha[i] = -INFINITY;
    if (T == 0) {
        j->loss[n] = j->target_lengths[n] == 0 ? 0 : INFINITY;
        return;
    }
    alpha[0] = prob(j, 0, n, j->blank);
    if (S > 1) alpha[1] = prob(j, 0, n, label(j, n, 1));
    for (int64_t t = 1; t < T; t++) {
        double *now = alpha + t * j->width;
        const double *before = now - j->width;
        for (int64_t s = 0; s < S; s++) {
            double a = before[s];
            if (s >= 1) a = log_add(a, before[s - 1]);
            if (may_skip(j, n, s)) a = log_add(a, before[s - 2]);
            now[s] = a + prob(j, t, n, label(j, n, s));
        }
    }
    const double *last = alpha + (T - 1) * j->width;
    j->loss[n] = -(S > 1 ? log_add(last[S - 1], last[S - 2]) : last[0]);
}

static void forward_examples(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t n = begin; n < end; n++) forward_one(ctx, n);
}

/* The gradient by the log-probabilities: exp(p) - sum over places of the class of exp(alpha + beta - p + loss). */
static void add_step(const job *j, int64_t n, int64_t t, const double *alpha, const double *beta, int64_t S, double *sums)
{
    for (int64_t c = 0; c < j->C; c++) sums[c] = -INFINITY;
    for (int64_t s = 0; s < S; s++) {
        int64_t c = label(j, n, s);
        sums[c] = log_add(sums[c], alpha[s] + beta[s]);
    }
    for (int64_t c = 0; c < j->C; c++) {
        double p = prob(j, t, n, c);
        sums[c] = (exp(p) - exp(sums[c] + j->loss[n] - p)) * j->grad[n];
    }
}

static void backward_one(const job *j, int64_t n)
{
    int64_t S = 2 * j->target_lengths[n] + 1, T = j->input_lengths[n];
    if (T == 0 || (j->zero_infinity && j->loss[n] == INFINITY)) return;
    double *beta = j->beta + n * 2 * j->width;
    for (int64_t t = T - 1; t >= 0; t--) {
        double *now = beta + t % 2 * j->width, *after = beta + (t + 1) % 2 * j->width;
        for (int64_t s = 0; s < S; s++) {
            double b = -INFINITY;
            if (t == T - 1) {
                if (s >= S - 2) b = 0;
            } else {
                b = after[s];
                if (s + 1 < S) b = log_add(b, after[s + 1]);
                if (s + 2 < S && may_skip(j, n, s + 2)) b = log_add(b, after[s + 2]);
            }
            now[s] = b + prob(j, t, n, label(j, n, s));
        }
        add_step(j, n, t, j->alpha + (n * j->T + t) * j->width, now, S, j->out + (t * j->N + n) * j->C);
    }
}

static void backward_examples(void *ctx, int64_t begin, int64_t end)
{
    for (int64_t n = begin; n < end; n++) backward_one(ctx, n);
}

/* Where each example's labels begin in the contiguous targets: rows of a matrix, or one behind the other. */
static int64_t *starts_of(const tm_tensor *targets, const tm_int *lengths, int64_t N)
{
    int64_t *start = tmi_alloc((size_t)(N + 1) * sizeof *start), at = 0;
    for (int64_t n = 0; start && n < N; n++) {
        start[n] = targets->ndim == 2 ? n * targets->sizes[1] : at;
        at += lengths[n];
    }
    return start;
}

static tm_status set_up(job *j, const tm_tensor *probs, const tm_tensor *targets, const tm_int *in, const tm_int *lengths, int64_t blank)
{
    j->T = probs->sizes[0];
    j->N = probs->sizes[1];
    j->C = probs->sizes[2];
    j->blank = blank;
    j->input_lengths = in;
    j->target_lengths = lengths;
    j->probs = probs->numel ? tmi_data(probs) : NULL;
    j->targets = targets->numel ? tmi_data(targets) : NULL;
    j->start = starts_of(targets, lengths, j->N);
    if (!j->start) return TM_NOMEM;
    for (int64_t n = 0; n < j->N; n++)
        for (int64_t k = 0; k < lengths[n]; k++) {
            int64_t c = j->targets[j->start[n] + k];
            TMI_REQUIRE(c >= 0 && c < j->C, TM_INVALID, "ctc_loss: target %lld is out of range", (long long)c);
        }
    return TM_OK;
}

tm_status tmk_ctc_loss(tm_tensor *loss, tm_tensor *alpha, tm_tensor *log_probs, tm_tensor *targets, const tm_int *input_lengths, int64_t n_in,
                       const tm_int *target_lengths, int64_t n_target, tm_int blank, bool zero_infinity)
{
    tm_tensor *p = tmk_plain(log_probs, TM_F64), *t = tmk_plain(targets, TM_I64), *l = tmk_plain_out(loss, TM_F64), *a = tmk_plain_out(alpha, TM_F64);
    job j = {.width = alpha->sizes[2]};
    tm_status status = tm_error_status();
    if (status == TM_OK) status = set_up(&j, p, t, input_lengths, target_lengths, blank);
    if (status == TM_OK) {
        j.loss = l->numel ? tmi_data(l) : NULL;
        j.alpha = a->numel ? tmi_data(a) : NULL;
        tmi_parallel_for(j.N, 1, forward_examples, &j);
        for (int64_t n = 0; zero_infinity && n < j.N; n++)
            if (j.loss[n] == INFINITY) j.loss[n] = 0;
    }
    if (j.start) tmi_free((void *)j.start, (size_t)(j.N + 1) * sizeof *j.start);
    if (p) tm_release(p);
    if (t) tm_release(t);
    if (a) status = tmk_plain_end(alpha, a, status);
    return tmk_plain_end(loss, l, status);
}

tm_status tmk_ctc_loss_backward(tm_tensor *out, tm_tensor *grad, tm_tensor *log_probs, tm_tensor *targets, const tm_int *input_lengths, int64_t n_in,
                                const tm_int *target_lengths, int64_t n_target, tm_tensor *loss, tm_tensor *alpha, tm_int blank, bool zero_infinity)
{
    tm_tensor *p = tmk_plain(log_probs, TM_F64), *t = tmk_plain(targets, TM_I64), *g = tmk_plain(grad, TM_F64), *a = tmk_plain(alpha, TM_F64);
    tm_tensor *l = tmi_tensor_new(loss->ndim, loss->sizes, NULL, TM_F64, loss->device), *to = tmk_plain_out(out, TM_F64);
    job j = {.width = alpha->sizes[2], .zero_infinity = zero_infinity};
    tm_status status = tm_error_status();
    if (status == TM_OK) status = set_up(&j, p, t, input_lengths, target_lengths, blank);
    size_t bytes = (size_t)(j.N * 2 * j.width + 1) * sizeof(double);
    j.beta = tmi_data_alloc(bytes);
    if (status == TM_OK && j.beta) {
        status = tmk_fill(to, tm_f64(0));
        j.loss = l->numel ? tmi_data(l) : NULL;
        j.alpha = a->numel ? tmi_data(a) : NULL;
        j.grad = g->numel ? tmi_data(g) : NULL;
        j.out = to->numel ? tmi_data(to) : NULL;
        for (int64_t n = 0; n < j.N; n++) {   /* again from alpha: the stored loss may have been zeroed */
            int64_t S = 2 * target_lengths[n] + 1;
            const double *last = j.alpha + (n * j.T + input_lengths[n] - 1) * j.width;
            j.loss[n] = input_lengths[n] == 0 ? 0 : -(S > 1 ? log_add(last[S - 1], last[S - 2]) : last[0]);
        }
        tmi_parallel_for(j.N, 1, backward_examples, &j);
    }
    if (j.start) tmi_free((void *)j.start, (size_t)(j.N + 1) * sizeof *j.start);
    if (j.beta) tmi_data_free(j.beta, bytes);
    tm_tensor *done[] = {p, t, g, a, l};
    for (int i = 0; i < 5; i++)
        if (done[i]) tm_release(done[i]);
    return tmk_plain_end(out, to, status);
}
