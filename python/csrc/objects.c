/* Heap types with our data behind what `object` needs: one mechanism for every Python version. */
#include "glue.h"

Py_ssize_t tmpy_object_size;

int tmpy_objects_init(PyObject *module)
{
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__basicsize__");
    if (!size) return -1;
    Py_ssize_t n = PyLong_AsSsize_t(size);
    Py_DECREF(size);
    tmpy_object_size = (n + 15) & ~(Py_ssize_t)15;
    return n < 0 ? -1 : 0;
}

/* Messages of the interpreter show tp_name, which is PyTorch's ("torch.dtype"); pickling needs the module where the class really is. */
static int set_module(PyObject *type, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (strncmp(name, "torch.", 6) || !dot) return 0;
    PyObject *module = PyUnicode_FromFormat("taimatsu%.100s", name + 5);
    if (!module) return -1;
    Py_ssize_t n = PyUnicode_GetLength(module) - (Py_ssize_t)strlen(dot);
    Py_SETREF(module, PyUnicode_Substring(module, 0, n));
    int r = module ? PyObject_SetAttrString(type, "__module__", module) : -1;
    Py_XDECREF(module);
    return r;
}

PyTypeObject *tmpy_type_new(PyObject *module, PyType_Spec *spec, size_t data_size, PyObject *base)
{
    if (data_size) spec->basicsize = (int)(tmpy_object_size + (Py_ssize_t)data_size);
    PyObject *type = PyType_FromModuleAndSpec(module, spec, base);
    if (!type || set_module(type, spec->name) < 0) return NULL;
    const char *dot = strrchr(spec->name, '.');
    if (PyModule_AddObjectRef(module, dot ? dot + 1 : spec->name, type) < 0) Py_CLEAR(type);
    return (PyTypeObject *)type;
}

PyObject *tmpy_alloc(PyTypeObject *type)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return alloc(type, 0);
}

void tmpy_free(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

const char *tmpy_type_name(PyObject *o)
{
    PyTypeObject *t = Py_TYPE(o);
    if (t == tmpy_Tensor) return "Tensor";
    if (t == tmpy_dtype_type) return "torch.dtype";
    if (t == tmpy_device_type) return "torch.device";
    if (t == tmpy_layout_type) return "torch.layout";
    if (t == tmpy_format_type) return "torch.memory_format";
    if (t == tmpy_size_type) return "torch.Size";
    if (t == tmpy_generator_type) return "torch._C.Generator";
#ifdef Py_LIMITED_API
    static __thread char text[128];
    PyObject *name = PyType_GetName(t);
    const char *s = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    snprintf(text, sizeof text, "%s", s ? s : "object");
    Py_XDECREF(name);
    PyErr_Clear();
    return text;
#else
    return t->tp_name;
#endif
}
