/* __torch_function__ and TorchFunctionMode: who else wants a say in a call.
 *
 * Plain Tensors and Parameters never get here: one pointer compare per argument tells. For others the types are collected in order,
 * subclasses before their bases, and asked in turn. */
#include "glue.h"

int tmpy_n_modes;
static PyObject *modes;                      /* open TorchFunctionModes, outermost first */
static __thread int subclass_disabled;        /* DisableTorchFunctionSubclass */
static __thread int all_disabled;             /* DisableTorchFunction, and while a mode's handler runs */
static PyObject *name_torch_function, *disabled_impl;

bool tmpy_has_torch_function(PyObject *o)
{
    if (subclass_disabled || all_disabled) return false;
    PyTypeObject *type = Py_TYPE(o);
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type || type == &PyBool_Type || o == Py_None ||
        type == &PyTuple_Type || type == &PyList_Type || type == &PyComplex_Type || tmpy_is_plain(o) || PyType_Check(o))
        return false;
    PyObject *f = PyObject_GetAttr((PyObject *)type, name_torch_function);
    if (!f) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(f);
    return f != disabled_impl;
}

int tmpy_add_overloaded(tmpy_call *c, PyObject *o)
{
    int at = c->n_overloaded;
    for (int i = 0; i < c->n_overloaded; i++)
        if (Py_TYPE(c->overloaded[i]) == Py_TYPE(o)) return 1;
    if (at == TMPY_MAX_TEMPS)
        return tmpy_error(PyExc_TypeError, "more than %d types with __torch_function__ in one call", (int)TMPY_MAX_TEMPS), -1;
    for (int i = c->n_overloaded - 1; i >= 0; i--)
        if (PyType_IsSubtype(Py_TYPE(o), Py_TYPE(c->overloaded[i]))) at = i;
    for (int i = c->n_overloaded; i > at; i--) c->overloaded[i] = c->overloaded[i - 1];
    c->overloaded[at] = o;
    c->n_overloaded++;
    return 1;
}

static PyObject *types_of(const tmpy_call *c)
{
    PyObject *t = PyTuple_New(c->n_overloaded);
    for (int i = 0; t && i < c->n_overloaded; i++) PyTuple_SetItem(t, i, Py_NewRef((PyObject *)Py_TYPE(c->overloaded[i])));
    return t;
}

static PyObject *ask_modes(PyObject *func, PyObject *types, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyList_Size(modes);
    PyObject *mode = PyList_GetItem(modes, n - 1);
    Py_INCREF(mode);
    /* the handler runs with this mode off: its own calls go to the modes below */
    if (PyList_SetSlice(modes, n - 1, n, NULL) < 0) return NULL;
    tmpy_n_modes--;
    PyObject *r = PyObject_CallMethod(mode, "__torch_function__", "OOOO", func, types, args, kwargs);
    PyList_Append(modes, mode);
    tmpy_n_modes++;
    Py_DECREF(mode);
    return r;
}

static PyObject *ask_types(const tmpy_call *c, PyObject *func, PyObject *types, PyObject *args, PyObject *kwargs)
{
    for (int i = 0; i < c->n_overloaded; i++) {
        PyObject *f = PyObject_GetAttr((PyObject *)Py_TYPE(c->overloaded[i]), name_torch_function);
        PyObject *r = f ? PyObject_CallFunctionObjArgs(f, func, types, args, kwargs, NULL) : NULL;
        Py_XDECREF(f);
        if (r != Py_NotImplemented) return r;
        Py_DECREF(r);
    }
    PyObject *names = PyList_New(0);
    for (int i = 0; names && i < c->n_overloaded; i++) PyList_Append(names, (PyObject *)Py_TYPE(c->overloaded[i]));
    tmpy_error(PyExc_TypeError, "no implementation found for '%R' on types that implement __torch_function__: %R", func, names);
    Py_XDECREF(names);
    return NULL;
}

static PyObject *dispatch(const tmpy_call *c, PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *types = types_of(c), *r = NULL;
    if (types && func && args && kwargs) {
        r = tmpy_n_modes ? ask_modes(func, types, args, kwargs) : ask_types(c, func, types, args, kwargs);
        if (r == Py_NotImplemented && tmpy_n_modes && c->n_overloaded) Py_SETREF(r, ask_types(c, func, types, args, kwargs));
    }
    Py_XDECREF(types);
    return r;
}

/* The function object that the protocol hands on: the method of Tensor, or the function of its namespace. */
static PyObject *function_object(const tmpy_name *name, bool method)
{
    if (method) return PyObject_GetAttrString((PyObject *)tmpy_Tensor, name->name);
    static const struct { int place; const char *module; } places[] = {
        {TMPY_FUNCTION, "_VariableFunctions"}, {TMPY_NN, "_nn"}, {TMPY_LINALG, "_linalg"}, {TMPY_SPECIAL, "_special"}, {TMPY_FFT, "_fft"}};
    PyObject *c = PyImport_ImportModule("taimatsu._C"), *f = NULL;
    for (size_t i = 0; c && !f && i < sizeof places / sizeof *places; i++) {
        if (!(name->places & places[i].place)) continue;
        PyObject *m = PyObject_GetAttrString(c, places[i].module);
        f = m ? PyObject_GetAttrString(m, name->name) : NULL;
        Py_XDECREF(m);
    }
    Py_XDECREF(c);
    return f;
}

static PyObject *pack(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    Py_ssize_t first = self != NULL;
    PyObject *t = PyTuple_New(n + first);
    if (t && self) PyTuple_SetItem(t, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; t && i < n; i++) PyTuple_SetItem(t, i + first, Py_NewRef(args[i]));
    return t;
}

static PyObject *pack_keywords(PyObject *const *values, PyObject *kwnames)
{
    PyObject *d = PyDict_New();
    for (Py_ssize_t k = 0; d && kwnames && k < PyTuple_Size(kwnames); k++)
        if (PyDict_SetItem(d, PyTuple_GetItem(kwnames, k), values[k]) < 0) Py_CLEAR(d);
    return d;
}

PyObject *tmpy_call_override(tmpy_call *c, const tmpy_args *a)
{
    PyObject *func = function_object(a->name, a->self != NULL), *args = pack(a->self, a->args, a->n),
             *kwargs = pack_keywords(a->args + a->n, a->kwnames);
    PyObject *r = dispatch(c, func, args, kwargs);
    Py_XDECREF(func);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    tmpy_call_end(c);
    return r;
}

bool tmpy_override_method(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **out)
{
    if (TMI_LIKELY(tmpy_is_plain(self) && !tmpy_n_modes)) return false;
    bool own = !tmpy_is_plain(self) && tmpy_has_torch_function(self);
    if (!own && (!tmpy_n_modes || all_disabled)) return false;
    tmpy_call c;
    tmpy_call_begin(&c);
    if (own) tmpy_add_overloaded(&c, self);
    PyObject *func = PyObject_GetAttrString((PyObject *)tmpy_Tensor, name), *tuple = pack(self, args, n),
             *kwargs = pack_keywords(args + n, kwnames);
    *out = dispatch(&c, func, tuple, kwargs);
    Py_XDECREF(func);
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    return true;
}

bool tmpy_override_property(PyObject *self, const char *name, PyObject *value, PyObject **out)
{
    bool own = !tmpy_is_plain(self) && tmpy_has_torch_function(self);
    if (!own && (!tmpy_n_modes || all_disabled)) return false;
    tmpy_call c;
    tmpy_call_begin(&c);
    if (own) tmpy_add_overloaded(&c, self);
    PyObject *descriptor = PyObject_GetAttrString((PyObject *)tmpy_Tensor, name);
    PyObject *func = descriptor ? PyObject_GetAttrString(descriptor, value ? "__set__" : "__get__") : NULL;
    PyObject *args = pack(self, &value, value != NULL), *kwargs = PyDict_New();
    *out = dispatch(&c, func, args, kwargs);
    Py_XDECREF(descriptor);
    Py_XDECREF(func);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return true;
}

/* ---- what Python sees */
typedef struct guard { int saved; } guard;   /* DisableTorchFunctionSubclass, DisableTorchFunction */
static PyTypeObject *disable_subclass_type, *disable_all_type;
static int *counter_of(PyObject *o) { return Py_TYPE(o) == disable_all_type ? &all_disabled : &subclass_disabled; }
TMPY_NOARGS(guard_enter)
{
    ++*counter_of(self);
    return Py_NewRef(self);
}
static PyObject *guard_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    --*counter_of(self);
    Py_RETURN_NONE;
}
static PyMethodDef guard_methods[] = {
    {"__enter__", guard_enter, METH_NOARGS, NULL}, {"__exit__", TMPY_FN(guard_exit), METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};

static PyObject *push_mode(PyObject *m, PyObject *mode)
{
    if (PyList_Append(modes, mode) < 0) return NULL;
    tmpy_n_modes++;
    Py_RETURN_NONE;
}
static PyObject *pop_mode(PyObject *m, PyObject *unused)
{
    Py_ssize_t n = PyList_Size(modes);
    if (!n) return tmpy_error(PyExc_RuntimeError, "no TorchFunctionMode is open");
    PyObject *mode = PySequence_GetItem(modes, n - 1);
    if (PyList_SetSlice(modes, n - 1, n, NULL) < 0) Py_CLEAR(mode);
    tmpy_n_modes--;
    return mode;
}
static PyObject *len_modes(PyObject *m, PyObject *unused) { return PyLong_FromSsize_t(PyList_Size(modes)); }
static PyObject *disabled_torch_function(PyObject *m, PyObject *args) { return Py_NewRef(Py_NotImplemented); }
static PyObject *is_enabled(PyObject *m, PyObject *unused) { return PyBool_FromLong(!subclass_disabled && !all_disabled); }

/* _C._has_torch_function(iterable), and the cheap test for one object. */
static PyObject *has_unary(PyObject *m, PyObject *o) { return PyBool_FromLong(tmpy_n_modes || tmpy_has_torch_function(o)); }
static PyObject *has_any(PyObject *m, PyObject *items)
{
    if (tmpy_n_modes) Py_RETURN_TRUE;
    PyObject *list = PySequence_Tuple(items);
    if (!list) return NULL;
    bool any = false;
    for (Py_ssize_t i = 0; i < PyTuple_Size(list) && !any; i++) any = tmpy_has_torch_function(PyTuple_GetItem(list, i));
    Py_DECREF(list);
    return PyBool_FromLong(any);
}
static PyObject *has_variadic(PyObject *m, PyObject *const *args, Py_ssize_t n)
{
    bool any = tmpy_n_modes > 0;
    for (Py_ssize_t i = 0; i < n && !any; i++) any = tmpy_has_torch_function(args[i]);
    return PyBool_FromLong(any);
}

/* _C._handle_torch_function(func, relevant_args, args, kwargs) for functions written in Python. */
static PyObject *handle(PyObject *m, PyObject *args)
{
    PyObject *func, *relevant, *call_args, *kwargs;
    if (!PyArg_ParseTuple(args, "OOOO:_handle_torch_function", &func, &relevant, &call_args, &kwargs)) return NULL;
    PyObject *list = PySequence_Tuple(relevant);
    if (!list) return NULL;
    tmpy_call c;
    tmpy_call_begin(&c);
    for (Py_ssize_t i = 0; i < PyTuple_Size(list); i++)
        if (tmpy_has_torch_function(PyTuple_GetItem(list, i)) && tmpy_add_overloaded(&c, PyTuple_GetItem(list, i)) < 0) break;
    PyObject *r = PyErr_Occurred() ? NULL : dispatch(&c, func, call_args, kwargs);
    Py_DECREF(list);
    return r;
}

static PyMethodDef functions[] = {{"_push_on_torch_function_stack", push_mode, METH_O, NULL},
                                  {"_pop_torch_function_stack", pop_mode, METH_NOARGS, NULL},
                                  {"_len_torch_function_stack", len_modes, METH_NOARGS, NULL},
                                  {"_disabled_torch_function_impl", TMPY_FN(disabled_torch_function), METH_VARARGS, NULL},
                                  {"_is_torch_function_enabled", is_enabled, METH_NOARGS, NULL},
                                  {"_has_torch_function", has_any, METH_O, NULL},
                                  {"_has_torch_function_unary", has_unary, METH_O, NULL},
                                  {"_has_torch_function_variadic", TMPY_FN(has_variadic), METH_FASTCALL, NULL},
                                  {"_handle_torch_function", handle, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int tmpy_override_init(PyObject *m)
{
    static PyType_Slot slots[] = {{Py_tp_dealloc, tmpy_free}, {Py_tp_methods, guard_methods}, {0, NULL}};
    static PyType_Spec a = {"taimatsu._C.DisableTorchFunctionSubclass", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    static PyType_Spec b = {"taimatsu._C.DisableTorchFunction", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    name_torch_function = PyUnicode_InternFromString("__torch_function__");
    modes = PyList_New(0);
    if (!name_torch_function || !modes || !(disable_subclass_type = tmpy_type_new(m, &a, sizeof(guard), NULL)) ||
        !(disable_all_type = tmpy_type_new(m, &b, sizeof(guard), NULL)) || PyModule_AddFunctions(m, functions) < 0)
        return -1;
    disabled_impl = PyObject_GetAttrString(m, "_disabled_torch_function_impl");
    return disabled_impl ? 0 : -1;
}
