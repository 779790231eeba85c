/* One Python object against one parameter. Rules are those of PyTorch's parser: what fits decides which overload is called, so nothing
 * here is more generous than PyTorch is. Values go straight into the boxed form. */
#include "glue.h"

static int fit_tensor(tmpy_call *c, const tmpy_sig *sig, PyObject *o, tmi_value *v)
{
    if (TMI_LIKELY(tmpy_is_plain(o))) {
        *v = (tmi_value){.tag = TMI_V_TENSOR, .u.t = tmpy_t(o)};
        return 1;
    }
    if (tmpy_has_torch_function(o)) {
        *v = tmi_v_none();
        return tmpy_add_overloaded(c, o);
    }
    if (PyObject_TypeCheck(o, tmpy_Tensor)) {
        *v = tmi_v_tensor(tmpy_t(o));
        return 1;
    }
    tm_scalar s;
    if (!sig || !sig->numbers_as_tensors) return 0;
    int known = tmpy_as_scalar(o, &s);
    if (known != 1) return known;
    if (c->n_temps == TMPY_MAX_TEMPS) return 0;
    tm_tensor *t = tmi_scalar_tensor(s, tmi_scalar_dtype(s), true);
    if (!t) return tmpy_raise(), -1;
    c->temps[c->n_temps++] = t;
    *v = tmi_v_tensor(t);
    return 1;
}

static bool is_list(PyObject *o) { return PyTuple_Check(o) || PyList_Check(o); }
static PyObject *item_of(PyObject *list, Py_ssize_t i) { return PyTuple_Check(list) ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i); }
static Py_ssize_t length_of(PyObject *list) { return PyTuple_Check(list) ? PyTuple_Size(list) : PyList_Size(list); }

static int fit_tensors(tmpy_call *c, const tmi_arg *a, PyObject *o, tmi_value *v, int position)
{
    if (!is_list(o)) return 0;
    Py_ssize_t n = length_of(o);
    tm_tensor **t = tmpy_call_alloc(c, (size_t)n * sizeof *t);
    if (!t) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = item_of(o, i);
        tmi_value one = {0};
        if (x == Py_None && a->type == TMI_T_OPT_TENSORS) {
            t[i] = NULL;
            continue;
        }
        int fits = fit_tensor(c, NULL, x, &one);
        if (fits < 0) return -1;
        if (!fits)
            return tmpy_error(PyExc_TypeError, "expected Tensor as element %zd in argument %d, but got %s", i, position, tmpy_type_name(x)),
                   -1;
        t[i] = one.u.t;
    }
    *v = (tmi_value){.tag = TMI_V_TENSORS, .len = (uint32_t)n, .u.tensors = t};
    return 1;
}

int tmpy_convert_ints(tmpy_call *c, PyObject *const *items, Py_ssize_t n, tmi_value *v, Py_ssize_t *failed)
{
    tm_int *p = tmpy_call_alloc(c, (size_t)n * sizeof *p);
    if (!p) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int known = tmpy_as_int(items[i], &p[i]);
        if (known == 1) continue;
        if (known == 0 && i > 0) *failed = i;
        return known;
    }
    *v = tmi_v_ints(p, n);
    return 1;
}

static int fit_ints(tmpy_call *c, const tmi_arg *a, PyObject *o, tmi_value *v, Py_ssize_t *failed)
{
    if (!is_list(o)) {
        int64_t one;
        int known = a->list_size > 0 ? tmpy_as_int(o, &one) : 0;
        if (known != 1) return known;
        tm_int *p = tmpy_call_alloc(c, (size_t)a->list_size * sizeof *p);
        if (!p) return -1;
        for (int i = 0; i < a->list_size; i++) p[i] = one;
        *v = tmi_v_ints(p, a->list_size);
        return 1;
    }
    Py_ssize_t n = length_of(o);
    tm_int *p = tmpy_call_alloc(c, (size_t)n * sizeof *p);
    if (!p) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = item_of(o, i);
        int known = tmpy_as_int(x, &p[i]);
        if (known == 1) continue;
        if (known == 0 && i > 0) *failed = i;
        return known;
    }
    *v = tmi_v_ints(p, n);
    return 1;
}

static int fit_floats(tmpy_call *c, PyObject *o, tmi_value *v)
{
    if (!is_list(o)) return 0;
    Py_ssize_t n = length_of(o);
    double *p = tmpy_call_alloc(c, (size_t)n * sizeof *p);
    if (!p) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int known = tmpy_as_double(item_of(o, i), &p[i]);
        if (known != 1) return known;
    }
    *v = (tmi_value){.tag = TMI_V_FLOATS, .len = (uint32_t)n, .u.floats = p};
    return 1;
}

static int fit_bools(tmpy_call *c, PyObject *o, tmi_value *v)
{
    if (!is_list(o)) return 0;
    Py_ssize_t n = length_of(o);
    bool *p = tmpy_call_alloc(c, (size_t)n);
    if (!p) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (!PyBool_Check(item_of(o, i))) return 0;
        p[i] = item_of(o, i) == Py_True;
    }
    *v = (tmi_value){.tag = TMI_V_BOOLS, .len = (uint32_t)n, .u.bools = p};
    return 1;
}

static int fit_scalars(tmpy_call *c, PyObject *o, tmi_value *v)
{
    if (!is_list(o)) return 0;
    Py_ssize_t n = length_of(o);
    tm_scalar *p = tmpy_call_alloc(c, (size_t)n * sizeof *p);
    if (!p) return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        int known = tmpy_as_scalar(item_of(o, i), &p[i]);
        if (known != 1) return known;
    }
    *v = (tmi_value){.tag = TMI_V_SCALARS, .len = (uint32_t)n, .u.scalars = p};
    return 1;
}

static int fit_scalar(PyObject *o, tmi_value *v)
{
    tm_scalar s;
    int known = tmpy_as_scalar(o, &s);
    if (known == 1) *v = tmi_v_scalar(s);
    return known;
}

static int fit_int(PyObject *o, tmi_value *v)
{
    int64_t i;
    int known = tmpy_as_int(o, &i);
    if (known == 1) *v = tmi_v_int(i);
    return known;
}

static int fit_float(PyObject *o, tmi_value *v)
{
    double x;
    int known = tmpy_as_double(o, &x);
    if (known == 1) *v = tmi_v_float(x);
    return known;
}

static int fit_bool(PyObject *o, tmi_value *v)
{
    if (PyBool_Check(o)) return *v = tmi_v_bool(o == Py_True), 1;
    if (!tmpy_is_numpy_scalar(o)) return 0;
    tm_scalar s;
    int known = tmpy_as_scalar(o, &s);
    if (known != 1 || s.tag != TM_SCALAR_BOOL) return known < 0 ? -1 : 0;
    *v = tmi_v_bool(s.v.b);
    return 1;
}

static int fit_named(const tmi_arg *a, PyObject *o, tmi_value *v)
{
    int i;
    tm_dtype d;
    tm_device device;
    switch (a->type) {
    case TMI_T_DTYPE:
        if (!tmpy_as_dtype(o, &d)) return 0;
        *v = (tmi_value){.tag = TMI_V_DTYPE, .u.i = d};
        return 1;
    case TMI_T_LAYOUT:
        if (!tmpy_as_layout(o, &i)) return 0;
        *v = (tmi_value){.tag = TMI_V_LAYOUT, .u.i = i};
        return 1;
    case TMI_T_FORMAT:
        if (!tmpy_as_format(o, &i)) return 0;
        *v = (tmi_value){.tag = TMI_V_FORMAT, .u.i = i};
        return 1;
    default: break;
    }
    int known = tmpy_as_device(o, &device);
    if (known == 1) *v = (tmi_value){.tag = TMI_V_DEVICE, .u.device = device};
    return known;
}

static int fit_text(PyObject *o, tmi_value *v)
{
    if (!PyUnicode_Check(o)) return 0;
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text) return -1;
    *v = (tmi_value){.tag = TMI_V_STR, .u.str = text};
    return 1;
}

int tmpy_convert(tmpy_call *c, const tmpy_sig *sig, const tmi_arg *a, PyObject *o, tmi_value *v, int position, Py_ssize_t *failed)
{
    switch (a->type) {
    case TMI_T_TENSOR: return fit_tensor(c, sig, o, v);
    case TMI_T_TENSORS: case TMI_T_OPT_TENSORS: return fit_tensors(c, a, o, v, position);
    case TMI_T_INT: return fit_int(o, v);
    case TMI_T_INTS: return fit_ints(c, a, o, v, failed);
    case TMI_T_BOOL: return fit_bool(o, v);
    case TMI_T_BOOLS: return fit_bools(c, o, v);
    case TMI_T_FLOAT: return fit_float(o, v);
    case TMI_T_FLOATS: return fit_floats(c, o, v);
    case TMI_T_SCALAR: return fit_scalar(o, v);
    case TMI_T_SCALARS: return fit_scalars(c, o, v);
    case TMI_T_STR: return fit_text(o, v);
    case TMI_T_GENERATOR:
        *v = (tmi_value){.tag = TMI_V_GENERATOR, .u.generator = tmpy_as_generator(o)};
        return v->u.generator != NULL;
    default: return fit_named(a, o, v);
    }
}
