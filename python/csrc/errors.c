/* From the thread's error record to a Python exception and back. */
#include "glue.h"

#include <stdarg.h>

static PyObject *linalg_error, *memory_error;

/* A Python exception that is passing through C on this thread (owned), while the record says TM_PYTHON. */
static __thread PyObject *carried;

static PyObject *take_exception(void)
{
#if PY_VERSION_HEX >= 0x030c0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return value;
#endif
}

static void give_exception(PyObject *e)
{
#if PY_VERSION_HEX >= 0x030c0000
    PyErr_SetRaisedException(e);
#else
    PyErr_Restore(Py_NewRef(Py_TYPE(e)), e, PyException_GetTraceback(e));
#endif
}

tm_status tmpy_carry(void)
{
    PyObject *e = take_exception();
    Py_XSETREF(carried, e);
    return tmi_fail(TM_PYTHON, "a Python exception is passing through");
}

static PyObject *class_of(tm_status status)
{
    switch (status) {
    case TM_VALUE: return PyExc_ValueError;
    case TM_TYPE: return PyExc_TypeError;
    case TM_INDEX: return PyExc_IndexError;
    case TM_ASSERTION: return PyExc_AssertionError;
    case TM_NOT_IMPLEMENTED: return PyExc_NotImplementedError;
    case TM_NOT_FOUND: return PyExc_FileNotFoundError;
    case TM_INTERRUPTED: return PyExc_KeyboardInterrupt;
    case TM_LINALG: return linalg_error;
    case TM_NOMEM: return memory_error;
    default: return PyExc_RuntimeError;
    }
}

PyObject *tmpy_raise(void)
{
    const tm_error *e = tm_get_error();
    if (e->status == TM_PYTHON && carried) {
        give_exception(carried);
        carried = NULL;
    } else if (!PyErr_Occurred()) {
        PyErr_SetString(class_of(e->status), e->status == TM_OK ? "an operator failed without saying why" : e->message);
    }
    tm_error_clear();
    return NULL;
}

PyObject *tmpy_error(PyObject *type, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    PyErr_FormatV(type, format, ap);
    va_end(ap);
    return NULL;
}

static PyObject *add_class(PyObject *module, const char *attribute, const char *name)
{
    PyObject *c = PyErr_NewException(name, PyExc_RuntimeError, NULL);
    if (c && PyModule_AddObjectRef(module, attribute, c) < 0) Py_CLEAR(c);
    return c;
}

int tmpy_errors_init(PyObject *module)
{
    linalg_error = add_class(module, "_LinAlgError", "torch._C._LinAlgError");
    memory_error = add_class(module, "OutOfMemoryError", "torch.OutOfMemoryError");
    return linalg_error && memory_error ? 0 : -1;
}
