/* The last step of typed C functions, list results, and the arithmetic of gradient formulas. */
#include <complex.h>
#include <math.h>

#include "boxing.h"
#include "op_ids.h"

/* ---------------------------------------------------------------- typed calls */

tm_tensor *tmi_call_tensor(const tmi_op *op, const tmi_value *args)
{
    tmi_out out;
    if (TMI_UNLIKELY(tmi_call(op, args, &out, TMI_FORM_PLAIN) != TM_OK)) return NULL;
    return tmi_own(out.t[0]);
}

tm_status tmi_call_tensors(const tmi_op *op, const tmi_value *args, tm_tensor **out[])
{
    tmi_out r;
    TMI_TRY(tmi_call(op, args, &r, TMI_FORM_PLAIN));
    for (int i = 0; i < op->n_outs; i++) *out[i] = tmi_own(r.t[i]);
    return TM_OK;
}

tm_tensor_list *tmi_call_list(const tmi_op *op, const tmi_value *args)
{
    tmi_out out;
    if (tmi_call(op, args, &out, TMI_FORM_PLAIN) != TM_OK) return NULL;
    return tmi_own_list(out.list);
}

tm_status tmi_call_scalar(const tmi_op *op, const tmi_value *args, tm_scalar *value)
{
    tmi_out out;
    TMI_TRY(tmi_call(op, args, &out, TMI_FORM_PLAIN));
    *value = out.scalar;
    return TM_OK;
}

tm_status tmi_call_none(const tmi_op *op, const tmi_value *args)
{
    tmi_out out;
    return tmi_call(op, args, &out, TMI_FORM_PLAIN);
}

tm_tensor *tmi_call_inplace(const tmi_op *op, const tmi_value *args)
{
    tmi_out out = {.n = 1, .t = {args[0].u.t}};
    return tmi_call(op, args, &out, TMI_FORM_INPLACE) == TM_OK ? args[0].u.t : NULL;
}

tm_status tmi_call_outs(const tmi_op *op, const tmi_value *args, int n, tm_tensor *const *outs)
{
    tmi_out out = {.n = n};
    memcpy(out.t, outs, (size_t)n * sizeof *outs);
    return tmi_call(op, args, &out, TMI_FORM_OUT);
}

tm_status tmi_null_argument(const tmi_op *op)
{
    if (tmi_tls.error_pending) return tmi_tls.error_pending;
    tmi_fail(TM_INVALID, "%s: a tensor argument is NULL", op->name);
    tmi_error_name_op(op->name);
    return TM_INVALID;
}

const tmi_op *tmi_op_find(const char *name, const char *overload)
{
    for (int i = 0; i < tmi_n_ops; i++)
        if (strcmp(tmi_ops[i].name, name) == 0 && strcmp(tmi_ops[i].overload, overload) == 0) return &tmi_ops[i];
    return NULL;
}

/* ---------------------------------------------------------------- numbers in formulas */

static bool is_int(tm_scalar s) { return s.tag == TM_SCALAR_I64 || s.tag == TM_SCALAR_BOOL; }

static double _Complex value_of(tm_scalar s)
{
    union { double part[2]; double _Complex z; } v = {{tmi_scalar_f64(s), 0}};
    if (s.tag == TM_SCALAR_C128) v.part[0] = s.v.c.re, v.part[1] = s.v.c.im;
    return v.z;
}

static tm_scalar number(tm_scalar a, tm_scalar b, double _Complex z)
{
    if (a.tag == TM_SCALAR_C128 || b.tag == TM_SCALAR_C128) return tm_c128(creal(z), cimag(z));
    return tm_f64(creal(z));
}

tm_scalar tmi_scalar_add(tm_scalar a, tm_scalar b)
{
    if (is_int(a) && is_int(b)) return tm_i64((int64_t)((uint64_t)tmi_scalar_i64(a) + (uint64_t)tmi_scalar_i64(b)));
    return number(a, b, value_of(a) + value_of(b));
}

tm_scalar tmi_scalar_neg(tm_scalar a)
{
    if (is_int(a)) return tm_i64((int64_t)-(uint64_t)tmi_scalar_i64(a));
    return number(a, a, -value_of(a));
}

tm_scalar tmi_scalar_sub(tm_scalar a, tm_scalar b) { return tmi_scalar_add(a, tmi_scalar_neg(b)); }

tm_scalar tmi_scalar_mul(tm_scalar a, tm_scalar b)
{
    if (is_int(a) && is_int(b)) return tm_i64((int64_t)((uint64_t)tmi_scalar_i64(a) * (uint64_t)tmi_scalar_i64(b)));
    if (a.tag != TM_SCALAR_C128 && b.tag != TM_SCALAR_C128) return tm_f64(tmi_scalar_f64(a) * tmi_scalar_f64(b));
    return number(a, b, value_of(a) * value_of(b));
}

tm_scalar tmi_scalar_div(tm_scalar a, tm_scalar b)
{
    if (a.tag != TM_SCALAR_C128 && b.tag != TM_SCALAR_C128) return tm_f64(tmi_scalar_f64(a) / tmi_scalar_f64(b));
    return number(a, b, value_of(a) / value_of(b));
}

tm_scalar tmi_scalar_pow(tm_scalar a, tm_scalar b)
{
    if (a.tag != TM_SCALAR_C128 && b.tag != TM_SCALAR_C128) return tm_f64(pow(tmi_scalar_f64(a), tmi_scalar_f64(b)));
    return number(a, b, cpow(value_of(a), value_of(b)));
}

tm_tensor *tmi_conj_for_grad(tm_tensor *t)
{
    if (!t || !tmi_is_complex(t->dtype)) return t;
    return tm_conj(t);
}
