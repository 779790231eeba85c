/* The C base of nn.Module: attribute lookup among parameters, buffers and submodules, and a call that goes straight to forward when no
 * hook is set. Both are methods that a subclass may override; plain attributes never come here. */
#include "glue.h"

static PyObject *name_parameters, *name_buffers, *name_modules, *name_forward, *name_call_impl, *name_compiled;
static PyObject *hook_names[4];
static PyObject *global_hooks;   /* tuple of the dictionaries that hold hooks of every module */

/* d[key] as a new reference; NULL without exception when absent. */
static PyObject *get(PyObject *d, PyObject *key)
{
    PyObject *v = PyDict_GetItemWithError(d, key);
    return Py_XNewRef(v);
}

static PyObject *look_in(PyObject *own, PyObject *kind, PyObject *name)
{
    PyObject *held = get(own, kind), *v = NULL;
    if (held && PyDict_Check(held)) v = get(held, name);
    Py_XDECREF(held);
    return v;
}

static PyObject *get_attribute(PyObject *self, PyObject *name)
{
    PyObject *own = PyObject_GenericGetDict(self, NULL), *v;
    if (!own) return NULL;
    v = look_in(own, name_parameters, name);
    if (!v && !PyErr_Occurred()) v = look_in(own, name_modules, name);
    if (!v && !PyErr_Occurred()) v = look_in(own, name_buffers, name);
    Py_DECREF(own);
    if (v || PyErr_Occurred()) return v;
    PyObject *type = PyType_GetName(Py_TYPE(self));
    tmpy_error(PyExc_AttributeError, "'%U' object has no attribute '%U'", type, name);
    Py_XDECREF(type);
    return NULL;
}

static bool any_hook(PyObject *own)
{
    for (int i = 0; i < 4; i++) {
        PyObject *d = PyDict_GetItemWithError(own, hook_names[i]);
        if (d && (!PyDict_Check(d) || PyDict_Size(d))) return true;
    }
    for (Py_ssize_t i = 0; global_hooks && i < PyTuple_Size(global_hooks); i++) {
        PyObject *d = PyTuple_GetItem(global_hooks, i);
        if (PyDict_Check(d) ? PyDict_Size(d) > 0 : PyObject_IsTrue(d) != 0) return true;
    }
    return false;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *own = PyObject_GenericGetDict(self, NULL);
    if (!own) return NULL;
    PyObject *compiled = PyDict_GetItemWithError(own, name_compiled);
    bool plain = (!compiled || compiled == Py_None) && !any_hook(own) && !PyErr_Occurred();
    PyObject *f = PyErr_Occurred() ? NULL
                                   : PyObject_GetAttr(self, plain                             ? name_forward
                                                            : compiled && compiled != Py_None ? name_compiled
                                                                                              : name_call_impl);
    Py_DECREF(own);
    PyObject *r = f ? PyObject_Call(f, args, kwargs) : NULL;
    Py_XDECREF(f);
    return r;
}

static PyObject *set_global_hooks(PyObject *m, PyObject *o)
{
    PyObject *t = PySequence_Tuple(o);
    if (!t) return NULL;
    Py_XSETREF(global_hooks, t);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"_set_global_module_hooks", set_global_hooks, METH_O, NULL}, {NULL, NULL, 0, NULL}};

int tmpy_module_base_init(PyObject *m)
{
    static PyMethodDef methods[] = {{"__getattr__", get_attribute, METH_O, NULL}, {NULL, NULL, 0, NULL}};
    static PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_call, call}, {0, NULL}};
    static PyType_Spec spec = {"torch._C._ModuleBase", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    static const char *const names[4] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
    for (int i = 0; i < 4; i++) hook_names[i] = PyUnicode_InternFromString(names[i]);
    name_parameters = PyUnicode_InternFromString("_parameters");
    name_buffers = PyUnicode_InternFromString("_buffers");
    name_modules = PyUnicode_InternFromString("_modules");
    name_forward = PyUnicode_InternFromString("forward");
    name_call_impl = PyUnicode_InternFromString("_call_impl");
    name_compiled = PyUnicode_InternFromString("_compiled_call_impl");
    return tmpy_type_new(m, &spec, 0, NULL) ? PyModule_AddFunctions(m, functions) : -1;
}
