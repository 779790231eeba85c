/* From Python arguments to a call of an operator: overloads in order, positional and keyword arguments, `input` for self, numpy's names,
 * `view(2, 3)` for `view((2, 3))`, and the parameters that out= forms and factories add. */
#include "glue.h"

static PyObject *keyword(const tmpy_args *a, const tmpy_param *p)
{
    for (Py_ssize_t k = 0; k < a->n_kw; k++)
        if (PyTuple_GetItem(a->kwnames, k) == p->name) return a->args[a->n + k];
    for (Py_ssize_t k = 0; k < a->n_kw; k++) {
        PyObject *name = PyTuple_GetItem(a->kwnames, k);
        if (PyUnicode_Compare(name, p->name) == 0) return a->args[a->n + k];
        for (int i = 0; i < 3 && p->alias[i]; i++)
            if (PyUnicode_Compare(name, p->alias[i]) == 0) return a->args[a->n + k];
    }
    return NULL;
}

static int take_outs(tmpy_call *c, const tmi_op *op, PyObject *o)
{
    bool many = op->n_outs > 1;
    if (many ? !PyTuple_Check(o) && !PyList_Check(o) : !tmpy_is_tensor(o)) return 0;
    if (many && PySequence_Size(o) != op->n_outs) return 0;
    for (int i = 0; i < op->n_outs; i++) {
        PyObject *t = many ? PySequence_GetItem(o, i) : Py_NewRef(o);   /* the sequence keeps it alive */
        Py_XDECREF(t);
        if (!t || !tmpy_is_tensor(t)) return t ? 0 : -1;
        if (!tmpy_is_plain(t) && tmpy_has_torch_function(t) && tmpy_add_overloaded(c, t) < 0) return -1;
        c->out.t[i] = tmpy_t(t);
    }
    c->out.n = op->n_outs;
    c->out_arg = o;
    c->form = TMI_FORM_OUT;
    return 1;
}

/* Parameters that are no argument of the operator. */
static int take_extra(tmpy_call *c, const tmi_op *op, const tmpy_param *p, PyObject *o)
{
    int layout;
    if (o == Py_None && p->allow_none) return 1;
    switch (p->kind) {
    case TMPY_P_OUT: return take_outs(c, op, o);
    case TMPY_P_REQUIRES_GRAD:
        c->requires_grad = o == Py_True;
        return PyBool_Check(o);
    case TMPY_P_PIN_MEMORY: return PyBool_Check(o);
    default: return tmpy_as_layout(o, &layout);
    }
}

static bool takes_varargs(const tmpy_sig *s, const tmpy_param *p, bool method)
{
    int n = s->n_pos - (method && s->self >= 0);
    return n == 1 && p->kind == TMPY_P_ARG && p->spec->type == TMI_T_INTS;
}

static void preset(tmpy_call *c, const tmi_op *op, const tmpy_param *p)
{
    if (p->kind != TMPY_P_ARG) return;
    const tmi_arg *a = p->spec;
    c->v[p->arg] = a->has_default ? a->def : tmi_v_none();
    if (a->type == TMI_T_DEVICE && !op->tensor_args) {
        tm_device d = tmpy_default_device();
        if (d.type != TM_CPU) c->v[p->arg] = (tmi_value){.tag = TMI_V_DEVICE, .u.device = d};
    }
}

/* A list whose first element fits decides for this overload; a later one that does not is an error. */
typedef struct bad { const tmpy_param *p; PyObject *element; Py_ssize_t i; } bad;
static int bad_element(const tmpy_args *a, const bad *b)
{
    const tmpy_param *p = b->p;
    PyObject *element = b->element;
    Py_ssize_t i = b->i;
    tmpy_error(PyExc_TypeError, "%s(): argument '%U' failed to unpack the object at pos %zd with error \"type must be %s,but got %s\"",
               a->name->name, p->name, i + 1, tmpy_param_type_name(p, NULL), tmpy_type_name(element));
    return -1;
}

/* Fills c from a for one overload: 1 fits, 0 does not, -1 exception set. */
static int match(tmpy_call *c, const tmi_op *op, const tmpy_sig *s, const tmpy_args *a)
{
    Py_ssize_t pos = 0, used_kw = 0, failed = 0;
    bad wrong = {NULL, NULL, 0};
    bool method = a->self != NULL;
    if (method && s->self < 0) return 0;   /* an overload that takes a number for self is a function only */
    for (int i = 0; i < s->n; i++) {
        const tmpy_param *p = &s->p[i];
        if (method && i == s->self) {
            if (TMI_UNLIKELY(tmpy_convert(c, s, p->spec, a->self, &c->v[p->arg], 0, &failed) != 1)) return PyErr_Occurred() ? -1 : 0;
            continue;
        }
        if (a->self && p->kind == TMPY_P_OUT) continue;   /* methods have no out= */
        PyObject *o = NULL;
        bool by_name = pos >= a->n;
        if (!by_name) {
            if (p->kwarg_only) return 0;
            o = a->args[pos];
        } else if (a->n_kw) {
            o = keyword(a, p);
            used_kw += o != NULL;
        }
        if (!o) {
            if (!p->optional) return 0;
            preset(c, op, p);
            continue;
        }
        if (o == Py_None && p->allow_none && p->kind == TMPY_P_ARG) {
            c->v[p->arg] = tmi_v_none();
            if (p->spec->type == TMI_T_DEVICE || p->spec->type == TMI_T_DTYPE) preset(c, op, p);
            pos += !by_name;
            continue;
        }
        int fits = p->kind == TMPY_P_ARG ? tmpy_convert(c, s, p->spec, o, &c->v[p->arg], i, &failed) : take_extra(c, op, p, o);
        if (fits == 0 && !by_name && pos == 0 && takes_varargs(s, p, method)) {
            fits = tmpy_convert_ints(c, a->args, a->n, &c->v[p->arg], &failed);
            if (fits == 0 && failed > 0) wrong = (bad){p, a->args[failed], failed}, fits = 1;
            pos = a->n - 1;
        }
        if (fits == 0 && failed > 0) {
            wrong = (bad){p, PyTuple_Check(o) ? PyTuple_GetItem(o, failed) : PyList_GetItem(o, failed), failed};
            fits = 1;
        }
        if (fits != 1) return fits;
        pos += !by_name;
    }
    if (pos != a->n || used_kw != a->n_kw) return 0;
    return TMI_UNLIKELY(wrong.p != NULL) ? bad_element(a, &wrong) : 1;
}

/* A factory's dtype must be that of the tensor it writes into. */
static bool fits_out(const tmpy_call *c, const tmi_op *op)
{
    for (int i = 0; c->form == TMI_FORM_OUT && !op->tensor_args && i < op->n_args; i++)
        if (op->args[i].type == TMI_T_DTYPE && c->v[i].tag == TMI_V_DTYPE && c->v[i].u.i != TM_DTYPE_DEFAULT && c->v[i].u.i != c->out.t[0]->dtype)
            return tmpy_error(PyExc_RuntimeError, "dtype %s does not match dtype of out parameter (%s)", tmi_dtypes[c->v[i].u.i].type_name,
                              tmi_dtypes[c->out.t[0]->dtype].type_name) != NULL;
    return true;
}

static PyObject *parse_and_run(const tmpy_args *a)
{
    const tmpy_name *name = a->name;
    tmpy_call c;
    for (int i = 0; i < name->n_overloads; i++) {
        const tmi_op *op = name->overloads[i];
        const tmpy_sig *s = tmpy_signature(op);
        if (TMI_UNLIKELY(!s)) return NULL;
        tmpy_call_begin(&c);
        int fits = match(&c, op, s, a);
        if (fits == 1) {
            if (TMI_UNLIKELY(c.n_overloaded || tmpy_n_modes)) return tmpy_call_override(&c, a);
            if (name->form == TMI_FORM_INPLACE) c.form = TMI_FORM_INPLACE;
            if (TMI_UNLIKELY(c.form == TMI_FORM_OUT) && !fits_out(&c, op)) return tmpy_call_end(&c), NULL;
            return tmpy_run(op, &c, a->self);
        }
        tmpy_call_end(&c);
        if (fits < 0) return NULL;
    }
    return tmpy_no_match(a);
}

/* x.op(y) and op(x, y) with plain tensors and nothing else to look at: straight to the first overload. */
static PyObject *two_tensors(const tmpy_name *name, const tmi_op *op, PyObject *x, PyObject *y, PyObject *self)
{
    tmpy_call c;
    tmpy_call_begin(&c);
    c.form = name->form;
    c.v[0] = (tmi_value){.tag = TMI_V_TENSOR, .u.t = tmpy_t(x)};
    if (y) c.v[1] = (tmi_value){.tag = TMI_V_TENSOR, .u.t = tmpy_t(y)};
    for (int i = y ? 2 : 1; i < op->n_args; i++) c.v[i] = op->args[i].has_default ? op->args[i].def : tmi_v_none();
    return tmpy_run(op, &c, self);
}

/* Whether everything after the first `n` arguments may be left out and those n are tensors. */
static bool takes_just(const tmi_op *op, int n)
{
    for (int i = 0; i < n; i++)
        if (i >= op->n_args || op->args[i].type != TMI_T_TENSOR || op->args[i].kwarg_only) return false;
    return op->n_args == n || op->args[n].has_default;
}

PyObject *tmpy_call_method(const tmpy_name *name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    const tmi_op *op = name->overloads[0];
    if (!kwnames && !tmpy_n_modes && n <= 1 && tmpy_is_plain(self) && (n == 0 || tmpy_is_plain(args[0])) && takes_just(op, (int)n + 1) &&
        op->args[0].name[0] == 's')
        return two_tensors(name, op, self, n ? args[0] : NULL, self);
    tmpy_args a = {name, self, args, n, kwnames ? PyTuple_Size(kwnames) : 0, kwnames};
    return parse_and_run(&a);
}

PyObject *tmpy_call_function(const tmpy_name *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    const tmi_op *op = name->overloads[0];
    if (!kwnames && !tmpy_n_modes && (n == 1 || n == 2) && tmpy_is_plain(args[0]) && (n == 1 || tmpy_is_plain(args[1])) &&
        takes_just(op, (int)n))
        return two_tensors(name, op, args[0], n == 2 ? args[1] : NULL, name->form == TMI_FORM_INPLACE ? args[0] : NULL);
    tmpy_args a = {name, NULL, args, n, kwnames ? PyTuple_Size(kwnames) : 0, kwnames};
    return parse_and_run(&a);
}
