/* Kernels of reduction operators: each says what is folded in what, and how the folded numbers become the result. */
#include <math.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "op_bodies.h"
#include "pointwise.h"
#include "reduce.h"
#include "scratch.h"

void tmk_acc_store(tm_tensor *t, tmk_acc acc, const void *values)
{
    tm_dtype from = tmk_acc_dtype(acc);
    if (t->numel == 0) return;
    if (tmi_contiguous(t)) {
        if (t->dtype == from) memcpy(tmi_data(t), values, (size_t)t->numel * tmi_dtype_size(from));
        else tmk_cast(tmi_data(t), t->dtype, values, from, t->numel);
        return;
    }
    int64_t index[TMI_MAX_DIMS] = {0}, at = 0;
    size_t size = tmi_dtype_size(t->dtype);
    for (int64_t i = 0; i < t->numel; i++) {
        tmk_cast((char *)tmi_data(t) + at * (int64_t)size, t->dtype, (const char *)values + i * (int64_t)tmi_dtype_size(from), from, 1);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->sizes[d]) break;
            at -= t->sizes[d] * t->strides[d];
            index[d] = 0;
        }
    }
}

/* What happens to folded numbers before they are stored. */
typedef enum finish { FINISH_NONE, FINISH_DIVIDE, FINISH_SQRT, FINISH_ROOT, FINISH_LOG_ADD } finish;

typedef struct final_step {
    finish kind;
    double by;            /* divisor, or the root's exponent */
    const void *added;    /* LOG_ADD: result = log(x) + added */
} final_step;

static void finish_f32(float *x, int64_t n, const final_step *f)
{
    const float *m = f->added;
    float by = (float)f->by;
    for (int64_t i = 0; i < n; i++) {
        switch (f->kind) {
        case FINISH_DIVIDE: x[i] /= by; break;
        case FINISH_SQRT: x[i] = sqrtf(x[i] / by); break;
        case FINISH_ROOT: x[i] = powf(x[i], by); break;
        case FINISH_LOG_ADD: x[i] = logf(x[i]) + (isinf(m[i]) ? 0 : m[i]); break;
        default: break;
        }
    }
}

static void finish_f64(double *x, int64_t n, const final_step *f)
{
    const double *m = f->added;
    for (int64_t i = 0; i < n; i++) {
        switch (f->kind) {
        case FINISH_DIVIDE: x[i] /= f->by; break;
        case FINISH_SQRT: x[i] = sqrt(x[i] / f->by); break;
        case FINISH_ROOT: x[i] = pow(x[i], f->by); break;
        case FINISH_LOG_ADD: x[i] = log(x[i]) + (isinf(m[i]) ? 0 : m[i]); break;
        default: break;
        }
    }
}

static void run_finish(tmk_acc acc, void *x, int64_t n, const final_step *f)
{
    if (f->kind == FINISH_NONE) return;
    if (acc == TMK_ACC_F32) finish_f32(x, n, f);
    else if (acc == TMK_ACC_F64) finish_f64(x, n, f);
    else if (acc == TMK_ACC_C64)
        for (int64_t i = 0; i < n; i++) ((tmi_c64 *)x)[i] /= (float)f->by;
    else if (acc == TMK_ACC_C128)
        for (int64_t i = 0; i < n; i++) ((tmi_c128 *)x)[i] /= f->by;
}

/* fold, finish, store into out (straight into its memory where it looks like the accumulator). */
static tm_status reduce_to(tm_tensor *out, const tm_tensor *in, uint64_t mask, tmk_acc acc, tmk_fold fold, tmk_map map, double power,
                           const void *centre, const final_step *f)
{
    tmk_reduction r = {.acc = acc, .fold = fold, .map = map, .power = power, .centre = centre};
    bool straight = out->dtype == tmk_acc_dtype(acc) && tmi_contiguous(out) && out->numel > 0;
    void *values = straight ? tmi_data(out) : tmk_acc_alloc(acc, out->numel);
    if (!values) return TM_NOMEM;
    tm_status status = tmk_reduce(in, mask, &r, values);
    if (status == TM_OK) {
        run_finish(acc, values, out->numel, f);
        if (!straight) tmk_acc_store(out, acc, values);
    }
    if (!straight) tmk_acc_free(acc, out->numel, values);
    return status;
}

static const final_step no_step = {FINISH_NONE, 1, NULL};
static tm_status fold_to(tm_tensor *out, const tm_tensor *in, uint64_t mask, tmk_fold fold, tmk_map map)
{
    tmk_acc acc = tmk_acc_of(out->dtype);
    return reduce_to(out, in, mask, acc, fold, map, 0, NULL, &no_step);
}

tm_status tmk_sum_dim(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    return fold_to(out, self, tmk_dim_mask(self, dim, n_dim), TMK_FOLD_SUM, TMK_MAP_ID);
}
tm_status tmk_sum(tm_tensor *out, tm_tensor *self, tm_dtype dtype) { return tmk_sum_dim(out, self, NULL, 0, false, dtype); }

tm_status tmk_nansum(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    bool floating = tmi_is_float(self->dtype);
    return fold_to(out, self, tmk_dim_mask(self, dim, n_dim), TMK_FOLD_SUM, floating ? TMK_MAP_NAN_ZERO : TMK_MAP_ID);
}

tm_status tmk_prod_dim_int(tm_tensor *out, tm_tensor *self, tm_int dim, bool keepdim, tm_dtype dtype)
{
    return fold_to(out, self, tmk_dim_mask(self, &dim, 1), TMK_FOLD_PROD, TMK_MAP_ID);
}
tm_status tmk_prod(tm_tensor *out, tm_tensor *self, tm_dtype dtype) { return fold_to(out, self, tmk_dim_mask(self, NULL, 0), TMK_FOLD_PROD, TMK_MAP_ID); }

tm_status tmk_mean_dim(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    uint64_t mask = tmk_dim_mask(self, dim, n_dim);
    final_step divide = {FINISH_DIVIDE, (double)tmk_reduced_count(self, mask), NULL};
    return reduce_to(out, self, mask, tmk_acc_of(out->dtype), TMK_FOLD_SUM, TMK_MAP_ID, 0, NULL, &divide);
}
tm_status tmk_mean(tm_tensor *out, tm_tensor *self, tm_dtype dtype) { return tmk_mean_dim(out, self, NULL, 0, false, dtype); }

/* Unsigned 64-bit numbers do not fit the signed accumulator: they are shifted by 2^63, which keeps their order. */
static tm_status extreme_u64(tm_tensor *out, const tm_tensor *self, uint64_t mask, tmk_fold fold)
{
    tm_tensor *shifted = tmk_plain(self, TM_U64);
    if (!shifted) return tm_error_status();
    if (shifted == self) {
        tmi_release(shifted);
        shifted = tmi_tensor_new(self->ndim, self->sizes, NULL, TM_U64, self->device);
        if (!shifted) return tm_error_status();
        if (self->numel) memcpy(tmi_data(shifted), tmi_data(self), (size_t)self->numel * 8);
    }
    uint64_t *x = tmi_data(shifted);
    for (int64_t i = 0; i < shifted->numel; i++) x[i] ^= UINT64_C(1) << 63;
    int64_t *values = tmk_acc_alloc(TMK_ACC_I64, out->numel);
    tmk_reduction r = {.acc = TMK_ACC_I64, .fold = fold};
    shifted->dtype = TM_I64;
    tm_status status = values ? tmk_reduce(shifted, mask, &r, values) : TM_NOMEM;
    for (int64_t i = 0; values && i < out->numel; i++) values[i] = (int64_t)((uint64_t)values[i] ^ UINT64_C(1) << 63);
    if (status == TM_OK) tmk_acc_store(out, TMK_ACC_I64, values);
    tmk_acc_free(TMK_ACC_I64, out->numel, values);
    shifted->dtype = TM_U64;
    tmi_release(shifted);
    return status;
}

static tm_status extreme(tm_tensor *out, const tm_tensor *self, uint64_t mask, tmk_fold fold)
{
    if (self->dtype == TM_U64) return extreme_u64(out, self, mask, fold);
    tmk_acc acc = self->dtype == TM_BOOL ? TMK_ACC_U8 : tmk_acc_of(self->dtype);
    return reduce_to(out, self, mask, acc, fold, TMK_MAP_ID, 0, NULL, &no_step);
}

tm_status tmk_amax(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return extreme(out, self, tmk_dim_mask(self, dim, n_dim), TMK_FOLD_MAX);
}
tm_status tmk_amin(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return extreme(out, self, tmk_dim_mask(self, dim, n_dim), TMK_FOLD_MIN);
}
tm_status tmk_max(tm_tensor *out, tm_tensor *self) { return extreme(out, self, tmk_dim_mask(self, NULL, 0), TMK_FOLD_MAX); }
tm_status tmk_min(tm_tensor *out, tm_tensor *self) { return extreme(out, self, tmk_dim_mask(self, NULL, 0), TMK_FOLD_MIN); }
tm_status tmk_aminmax(tm_tensor *lo, tm_tensor *hi, tm_tensor *self, const tm_int *dim, bool keepdim)
{
    uint64_t mask = tmk_dim_mask(self, dim, dim ? 1 : 0);
    TMI_TRY(extreme(lo, self, mask, TMK_FOLD_MIN));
    return extreme(hi, self, mask, TMK_FOLD_MAX);
}

static tm_status truth(tm_tensor *out, const tm_tensor *self, uint64_t mask, tmk_fold fold)
{
    return reduce_to(out, self, mask, TMK_ACC_U8, fold, TMK_MAP_ID, 0, NULL, &no_step);
}
tm_status tmk_any(tm_tensor *out, tm_tensor *self) { return truth(out, self, tmk_dim_mask(self, NULL, 0), TMK_FOLD_MAX); }
tm_status tmk_all(tm_tensor *out, tm_tensor *self) { return truth(out, self, tmk_dim_mask(self, NULL, 0), TMK_FOLD_MIN); }
tm_status tmk_any_dim(tm_tensor *out, tm_tensor *self, tm_int dim, bool keepdim) { return truth(out, self, tmk_dim_mask(self, &dim, 1), TMK_FOLD_MAX); }
tm_status tmk_all_dim(tm_tensor *out, tm_tensor *self, tm_int dim, bool keepdim) { return truth(out, self, tmk_dim_mask(self, &dim, 1), TMK_FOLD_MIN); }

/* any and all over an empty (but given) list of dims reduce nothing. */
static tm_status truth_dims(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n, tmk_fold fold)
{
    return truth(out, self, dim && n == 0 ? 0 : tmk_dim_mask(self, dim, n), fold);
}
tm_status tmk_any_dims(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return truth_dims(out, self, dim, n_dim, TMK_FOLD_MAX);
}
tm_status tmk_all_dims(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    return truth_dims(out, self, dim, n_dim, TMK_FOLD_MIN);
}

tm_status tmk_count_nonzero(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim)
{
    uint64_t mask = tmk_dim_mask(self, dim, n_dim);
    if (!tmi_is_integral(self->dtype) && self->dtype != TM_BOOL) {
        /* a flag per element first: fractions would vanish in the integer accumulator */
        tm_tensor *flags = tmi_tensor_new(self->ndim, self->sizes, NULL, TM_BOOL, self->device);
        if (!flags) return tm_error_status();
        tmk_reduction none = {.acc = TMK_ACC_U8, .fold = TMK_FOLD_MAX};
        tm_status status = tmk_reduce(self, 0, &none, tmi_data(flags));
        if (status == TM_OK) status = reduce_to(out, flags, mask, TMK_ACC_I64, TMK_FOLD_SUM, TMK_MAP_ID, 0, NULL, &no_step);
        tmi_release(flags);
        return status;
    }
    return reduce_to(out, self, mask, TMK_ACC_I64, TMK_FOLD_SUM, TMK_MAP_NONZERO, 0, NULL, &no_step);
}

/* ---- moments */

static tmk_acc float_acc(tm_dtype d) { return d == TM_F64 || d == TM_C128 ? TMK_ACC_F64 : TMK_ACC_F32; }

/* Two passes: the mean, then the squared distances from it. */
static tm_status spread(tm_tensor *out, tm_tensor *mean_out, const tm_tensor *self, uint64_t mask, const tm_scalar *correction, finish kind)
{
    tmk_acc acc = float_acc(self->dtype);
    double n = (double)tmk_reduced_count(self, mask), off = correction ? tmi_scalar_f64(*correction) : 1;
    void *mean = tmk_acc_alloc(acc, out->numel);
    if (!mean) return TM_NOMEM;
    tmk_reduction r = {.acc = acc, .fold = TMK_FOLD_SUM, .map = TMK_MAP_ID};
    tm_status status = tmk_reduce(self, mask, &r, mean);
    if (status == TM_OK) {
        final_step divide = {FINISH_DIVIDE, n, NULL}, last = {kind, fmax(n - off, 0), NULL};
        run_finish(acc, mean, out->numel, &divide);
        status = reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_DEV_SQ, 0, mean, &last);
        if (status == TM_OK && mean_out) tmk_acc_store(mean_out, acc, mean);
    }
    tmk_acc_free(acc, out->numel, mean);
    return status;
}

tm_status tmk_var(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return spread(out, NULL, self, tmk_dim_mask(self, dim, n_dim), correction, FINISH_DIVIDE);
}
tm_status tmk_std(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return spread(out, NULL, self, tmk_dim_mask(self, dim, n_dim), correction, FINISH_SQRT);
}
tm_status tmk_var_mean(tm_tensor *var, tm_tensor *mean, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return spread(var, mean, self, tmk_dim_mask(self, dim, n_dim), correction, FINISH_DIVIDE);
}
tm_status tmk_std_mean(tm_tensor *std, tm_tensor *mean, tm_tensor *self, const tm_int *dim, int64_t n_dim, const tm_scalar *correction, bool keepdim)
{
    return spread(std, mean, self, tmk_dim_mask(self, dim, n_dim), correction, FINISH_SQRT);
}

/* ---- norms */

tm_status tmk_vector_norm(tm_tensor *out, tm_tensor *self, tm_scalar ord, const tm_int *dim, int64_t n_dim, bool keepdim, tm_dtype dtype)
{
    uint64_t mask = tmk_dim_mask(self, dim, n_dim);
    double p = tmi_scalar_f64(ord);
    tmk_acc acc = float_acc(out->dtype == TM_F64 ? TM_F64 : self->dtype);
    final_step root = {FINISH_ROOT, 1 / p, NULL}, square_root = {FINISH_SQRT, 1, NULL};
    if (p == INFINITY) return reduce_to(out, self, mask, acc, tmk_reduced_count(self, mask) ? TMK_FOLD_MAX : TMK_FOLD_SUM, TMK_MAP_ABS, 0, NULL, &no_step);
    if (p == -INFINITY) return reduce_to(out, self, mask, acc, TMK_FOLD_MIN, TMK_MAP_ABS, 0, NULL, &no_step);
    if (p == 0) return reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_NONZERO, 0, NULL, &no_step);
    if (p == 1) return reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_ABS, 0, NULL, &no_step);
    if (p == 2) return reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_SQUARE, 0, NULL, &square_root);
    return reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_POW, p, NULL, &root);
}

tm_status tmk_logsumexp(tm_tensor *out, tm_tensor *self, const tm_int *dim, int64_t n_dim, bool keepdim)
{
    uint64_t mask = n_dim == 0 && dim ? tmk_dim_mask(self, NULL, 0) : tmk_dim_mask(self, dim, n_dim);
    tmk_acc acc = float_acc(out->dtype);
    void *top = tmk_acc_alloc(acc, out->numel);
    if (!top) return TM_NOMEM;
    tmk_reduction r = {.acc = acc, .fold = TMK_FOLD_MAX, .map = TMK_MAP_ID};
    tm_status status = tmk_reduce(self, mask, &r, top);
    final_step last = {FINISH_LOG_ADD, 1, top};
    if (status == TM_OK) status = reduce_to(out, self, mask, acc, TMK_FOLD_SUM, TMK_MAP_EXP_DEV, 0, top, &last);
    tmk_acc_free(acc, out->numel, top);
    return status;
}
