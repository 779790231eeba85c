/* One call: its boxed arguments, the memory they point to, and its results as Python objects. */
#include "glue.h"

typedef struct block { struct block *next; } block;

void tmpy_call_begin(tmpy_call *c)
{
    c->out.n = 0;
    c->out.list = NULL;
    c->form = TMI_FORM_PLAIN;
    c->requires_grad = false;
    c->n_overloaded = c->n_temps = 0;
    c->out_arg = NULL;
    c->heap = NULL;
    c->used = 0;
}

void *tmpy_call_alloc(tmpy_call *c, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (TMI_LIKELY(c->used + n <= sizeof c->buf)) {
        void *p = c->buf + c->used;
        c->used += n;
        return p;
    }
    block *b = PyMem_Malloc(16 + n);
    if (!b) return PyErr_NoMemory();
    b->next = c->heap;
    c->heap = b;
    return (char *)b + 16;
}

void tmpy_call_end(tmpy_call *c)
{
    for (int i = 0; i < c->n_temps; i++) tmi_release(c->temps[i]);
    for (block *b = c->heap, *next; b; b = next) {
        next = b->next;
        PyMem_Free(b);
    }
}

/* Work in elements above which other Python threads may run: about 20 us of a streaming kernel. Products count their inner dimension
 * roughly through the size of both operands. */
enum { LARGE = 1 << 15 };
static bool is_large(const tmi_op *op, const tmi_value *v)
{
    int64_t n = 0;
    for (int i = 0; i < op->n_args && i < 4; i++)
        if (v[i].tag == TMI_V_TENSOR) n += v[i].u.t->numel;
    if (n >= LARGE) return true;
    return (op->flags & TMI_OP_FACTORY) && op->n_args && v[0].tag == TMI_V_INTS && v[0].len && v[0].u.ints[0] >= LARGE;
}

static PyObject *several(const tmi_op *op, tmpy_call *c)
{
    PyObject *items[TMI_MAX_OUTS];
    bool failed = false;
    for (int i = 0; i < op->n_outs; i++) {
        items[i] = c->out.t[i] ? tmpy_wrap(c->out.t[i]) : Py_NewRef(Py_None);
        failed |= !items[i];
    }
    if (!failed) return tmpy_named_result(op, items, op->n_outs);
    for (int i = 0; i < op->n_outs; i++) Py_XDECREF(items[i]);
    return NULL;
}

static PyObject *given_outs(const tmi_op *op, tmpy_call *c)
{
    if (op->n_outs == 1) return Py_NewRef(c->out_arg);
    PyObject *items[TMI_MAX_OUTS];
    for (int i = 0; i < op->n_outs; i++) items[i] = tmpy_wrap_borrowed(c->out.t[i]);
    return tmpy_named_result(op, items, op->n_outs);
}

static PyObject *with_requires_grad(PyObject *o)
{
    tm_tensor *t = o ? tmpy_t(o) : NULL;
    if (!t) return NULL;
    if (!tmi_is_float((tm_dtype)t->dtype) && !tmi_is_complex((tm_dtype)t->dtype)) {
        Py_DECREF(o);
        return tmpy_error(PyExc_RuntimeError, "Only Tensors of floating point and complex dtype can require gradients");
    }
    if (tm_tensor_set_requires_grad(t, true) == TM_OK) return o;
    Py_DECREF(o);
    return tmpy_raise();
}

static PyObject *result(const tmi_op *op, tmpy_call *c, PyObject *self)
{
    if (c->form == TMI_FORM_INPLACE) return self ? Py_NewRef(self) : tmpy_wrap_borrowed(c->out.t[0]);
    if (c->form == TMI_FORM_OUT) return given_outs(op, c);
    if (op->flags & TMI_OP_LIST_RESULT) return tmpy_list_result(c->out.list);
    if (op->flags & TMI_OP_SCALAR_RESULT) return tmpy_from_scalar(c->out.scalar);
    if (op->n_outs == 0) Py_RETURN_NONE;
    if (op->n_outs > 1) return several(op, c);
    PyObject *o = tmpy_wrap(c->out.t[0]);
    return TMI_UNLIKELY(c->requires_grad) ? with_requires_grad(o) : o;
}

PyObject *tmpy_run(const tmi_op *op, tmpy_call *c, PyObject *self)
{
    tmpy_unlocked u = tmpy_unlock(is_large(op, c->v));
    tm_status status = tmi_call(op, c->v, &c->out, c->form);
    tmpy_relock(u);
    PyObject *r = TMI_LIKELY(status == TM_OK) ? result(op, c, self) : tmpy_raise();
    tmpy_call_end(c);
    return r;
}

tm_tensor *tmpy_op1(const tmi_op *op, const tmi_value *args)
{
    tmi_out out = {0};
    tmpy_unlocked u = tmpy_unlock(is_large(op, args));
    tm_status status = tmi_call(op, args, &out, TMI_FORM_PLAIN);
    tmpy_relock(u);
    if (status == TM_OK) return out.t[0];
    tmpy_raise();
    return NULL;
}

const tmi_op *tmpy_need_op(const char *name, const char *overload)
{
    const tmi_op *op = tmi_op_find(name, overload);
    if (!op) tmpy_error(PyExc_NotImplementedError, "the operator %s%s%s is not part of this build", name, *overload ? "." : "", overload);
    return op;
}

const tmpy_name *tmpy_find_name(const char *name)
{
    int lo = 0, hi = tmpy_n_names;
    while (lo < hi) {
        int mid = (lo + hi) / 2, order = strcmp(tmpy_names[mid].name, name);
        if (!order) return &tmpy_names[mid];
        if (order < 0) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}
