/* nll_loss over [N, C, positions]: picks the target class's number, weighted. Sums run in order, in double. */
#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "scratch.h"

typedef struct job {
    const void *x, *w;
    const int64_t *target;
    void *out;
    const void *grad;
    int64_t C, S, ignore;
    double scale;                  /* of the one gradient, for mean and sum */
    bool each, is_double;
} job;

static double number_at(const void *p, int64_t i, bool is_double) { return is_double ? ((const double *)p)[i] : ((const float *)p)[i]; }
static void set_number(void *p, int64_t i, bool is_double, double v)
{
    if (is_double) ((double *)p)[i] = v;
    else ((float *)p)[i] = (float)v;
}

static int64_t place(const job *j, int64_t i) { return (i / j->S * j->C + j->target[i]) * j->S + i % j->S; }
static double weight_of(const job *j, int64_t i) { return j->w ? number_at(j->w, j->target[i], j->is_double) : 1; }

static tm_status check_targets(const int64_t *target, int64_t n, int64_t C, int64_t ignore)
{
    for (int64_t i = 0; i < n; i++)
        if (target[i] != ignore && (target[i] < 0 || target[i] >= C)) return tmi_fail(TM_INDEX, "Target %lld is out of bounds.", (long long)target[i]);
    return TM_OK;
}

static void sum_up(const job *j, int64_t n, double *loss, double *weight)
{
    *loss = *weight = 0;
    for (int64_t i = 0; i < n; i++) {
        if (j->target[i] == j->ignore) continue;
        double w = weight_of(j, i);
        *weight += w;
        *loss -= w * number_at(j->x, place(j, i), j->is_double);
    }
}

typedef struct operands { tm_tensor *x, *target, *weight; } operands;

static void release_all(operands *o)
{
    if (o->x) tmi_release(o->x);
    if (o->target) tmi_release(o->target);
    if (o->weight) tmi_release(o->weight);
}

/* Shape of the problem: [C], [N, C] or [N, C, positions]. */
static void set_job(job *j, const tm_tensor *self, const operands *o, int64_t ignore)
{
    j->C = self->ndim == 1 ? self->sizes[0] : self->sizes[1];
    j->S = 1;
    for (int d = 2; d < self->ndim; d++) j->S *= self->sizes[d];
    j->ignore = ignore;
    j->is_double = self->dtype == TM_F64;
    j->target = o->target->numel ? tmi_data(o->target) : NULL;
    j->w = o->weight ? tmi_data(o->weight) : NULL;
    j->x = o->x && o->x->numel ? tmi_data(o->x) : NULL;
}

tm_status tmk_nll(tm_tensor *out, tm_tensor *total, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index)
{
    tm_dtype compute = self->dtype == TM_F64 ? TM_F64 : TM_F32;
    operands o = {tmk_plain(self, compute), tmk_plain(target, TM_I64), weight ? tmk_plain(weight, compute) : NULL};
    tm_tensor *to = reduction == 0 ? tmk_plain_out(out, compute) : NULL;
    tm_status status = tm_error_status();
    job j = {0};
    if (status == TM_OK) {
        set_job(&j, self, &o, ignore_index);
        status = check_targets(j.target, target->numel, j.C, ignore_index);
    }
    if (status == TM_OK && reduction == 0) {
        for (int64_t i = 0; i < target->numel; i++) {
            bool skip = j.target[i] == ignore_index;
            set_number(tmi_data(to), i, j.is_double, skip ? 0 : -weight_of(&j, i) * number_at(j.x, place(&j, i), j.is_double));
        }
        status = tmk_fill(total, tm_f64(0));
    } else if (status == TM_OK) {
        double loss, sum;
        sum_up(&j, target->numel, &loss, &sum);
        status = tmk_fill(out, tm_f64(reduction == 1 ? loss / sum : loss));
        if (status == TM_OK) status = tmk_fill(total, tm_f64(sum));
    }
    release_all(&o);
    return to ? tmk_plain_end(out, to, status) : status;
}

/* Rows of the gradient: zeros, and one number per position. */
static void backward_rows(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    size_t size = j->is_double ? 8 : 4;
    for (int64_t n = begin; n < end; n++) {
        memset((char *)j->out + (size_t)(n * j->C * j->S) * size, 0, (size_t)(j->C * j->S) * size);
        for (int64_t i = n * j->S; i < (n + 1) * j->S; i++) {
            if (j->target[i] == j->ignore) continue;
            double g = j->each ? number_at(j->grad, i, j->is_double) : j->scale;
            set_number(j->out, place(j, i), j->is_double, -weight_of(j, i) * g);
        }
    }
}

tm_status tmk_nll_backward(tm_tensor *out, tm_tensor *grad, tm_tensor *self, tm_tensor *target, tm_tensor *weight, tm_int reduction, tm_int ignore_index,
                           tm_tensor *total)
{
    if (self->numel == 0) return TM_OK;
    tm_dtype compute = self->dtype == TM_F64 ? TM_F64 : TM_F32;
    operands o = {tmk_plain(grad, compute), tmk_plain(target, TM_I64), weight ? tmk_plain(weight, compute) : NULL};
    tm_tensor *to = tmk_plain_out(out, compute), *sum = tmk_plain(total, TM_F64);
    tm_status status = tm_error_status();
    if (status == TM_OK) {
        job j = {.each = reduction == 0 && self->ndim > 1, .out = tmi_data(to), .grad = tmi_data(o.x)};
        set_job(&j, self, &o, ignore_index);
        j.scale = number_at(j.grad, 0, j.is_double);
        if (reduction == 1) j.scale /= *(double *)tmi_data(sum);
        status = check_targets(j.target, target->numel, j.C, ignore_index);
        if (status == TM_OK) tmi_parallel_for(self->numel / (j.C * j.S), 1 + 32768 / (j.C * j.S), backward_rows, &j);
    }
    release_all(&o);
    if (sum) tmi_release(sum);
    return tmk_plain_end(out, to, status);
}
