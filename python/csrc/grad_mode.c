/* Grad mode and inference mode: the switches, and context managers in C (the package's decorator classes derive from them). */
#include "glue.h"

typedef struct { bool before, mode, saved_grad; } guard;
static PyTypeObject *inference_type, *mode_guard_type;

static PyObject *set_grad_enabled(PyObject *m, PyObject *on)
{
    int yes = PyObject_IsTrue(on);
    if (yes < 0) return NULL;
    tm_set_grad_enabled(yes);
    Py_RETURN_NONE;
}
static PyObject *is_grad_enabled(PyObject *m, PyObject *unused) { return PyBool_FromLong(tm_grad_enabled()); }
static PyObject *is_inference(PyObject *m, PyObject *unused) { return PyBool_FromLong(tm_inference_enabled()); }

static PyObject *guard_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mode", NULL};
    int mode = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p", names, &mode)) return NULL;
    PyObject *o = tmpy_alloc(type);
    if (o) TMPY_DATA(o, guard)->mode = mode;
    return o;
}
TMPY_NOARGS(inference_enter)
{
    guard *g = TMPY_DATA(self, guard);
    g->saved_grad = tm_grad_enabled();
    g->before = tm_set_inference(g->mode);
    tm_set_grad_enabled(!g->mode);
    Py_RETURN_NONE;
}
static PyObject *inference_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    guard *g = TMPY_DATA(self, guard);
    tm_set_inference(g->before);
    tm_set_grad_enabled(g->saved_grad);
    Py_RETURN_NONE;
}
TMPY_NOARGS(mode_enter)
{
    guard *g = TMPY_DATA(self, guard);
    g->before = tm_set_grad_enabled(g->mode);
    Py_RETURN_NONE;
}
static PyObject *mode_exit(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    tm_set_grad_enabled(TMPY_DATA(self, guard)->before);
    Py_RETURN_NONE;
}
static PyObject *get_mode(PyObject *o, void *unused) { return PyBool_FromLong(TMPY_DATA(o, guard)->mode); }
static PyObject *get_prev(PyObject *o, void *unused) { return PyBool_FromLong(TMPY_DATA(o, guard)->before); }

static PyMethodDef functions[] = {{"_set_grad_enabled", set_grad_enabled, METH_O, NULL},
                                  {"is_grad_enabled", is_grad_enabled, METH_NOARGS, NULL},
                                  {"is_inference_mode_enabled", is_inference, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int tmpy_grad_mode_init(PyObject *m)
{
    static PyMethodDef inference_methods[] = {{"__enter__", inference_enter, METH_NOARGS, NULL},
                                              {"__exit__", TMPY_FN(inference_exit), METH_FASTCALL, NULL},
                                              {NULL, NULL, 0, NULL}};
    static PyMethodDef mode_methods[] = {
        {"__enter__", mode_enter, METH_NOARGS, NULL}, {"__exit__", TMPY_FN(mode_exit), METH_FASTCALL, NULL}, {NULL, NULL, 0, NULL}};
    static PyGetSetDef getset[] = {
        {"mode", get_mode, NULL, NULL, NULL}, {"prev", get_prev, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
    static PyType_Slot inference_slots[] = {
        {Py_tp_new, guard_new}, {Py_tp_dealloc, tmpy_free}, {Py_tp_methods, inference_methods}, {Py_tp_getset, getset}, {0, NULL}};
    static PyType_Slot mode_slots[] = {
        {Py_tp_new, guard_new}, {Py_tp_dealloc, tmpy_free}, {Py_tp_methods, mode_methods}, {Py_tp_getset, getset}, {0, NULL}};
    static PyType_Spec a = {"torch._C._InferenceMode", 0, 0, Py_TPFLAGS_DEFAULT, inference_slots};
    static PyType_Spec b = {"torch._C._GradModeGuard", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, mode_slots};
    if (!(inference_type = tmpy_type_new(m, &a, sizeof(guard), NULL)) || !(mode_guard_type = tmpy_type_new(m, &b, sizeof(guard), NULL)))
        return -1;
    return PyModule_AddFunctions(m, functions);
}
