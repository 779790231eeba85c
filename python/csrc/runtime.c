/* Threads, denormals, memory, and questions about tensors that are functions in torch. */
#include "base/cpuinfo.h"
#include "glue.h"

static PyObject *get_threads(PyObject *m, PyObject *unused) { return PyLong_FromLong(tm_num_threads()); }
static PyObject *set_threads(PyObject *m, PyObject *o)
{
    if (!PyLong_Check(o)) return tmpy_error(PyExc_TypeError, "set_num_threads expects an int, but got %s", tmpy_type_name(o));
    long n = PyLong_AsLong(o);
    if (n == -1 && PyErr_Occurred()) return NULL;
    if (n <= 0) return tmpy_error(PyExc_RuntimeError, "set_num_threads expects a positive integer");
    if (tm_set_num_threads((int)n) != TM_OK) return tmpy_raise();
    Py_RETURN_NONE;
}
static PyObject *interop_threads(PyObject *m, PyObject *unused) { return PyLong_FromLong(1); }
static PyObject *flush_denormal(PyObject *m, PyObject *o)
{
    int on = PyObject_IsTrue(o);
    return on < 0 ? NULL : PyBool_FromLong(tm_set_flush_denormal(on));
}
static PyObject *memory_stats(PyObject *m, PyObject *unused)
{
    tm_memory_stats s;
    tm_get_memory_stats(&s);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "in_use", s.in_use, "peak", s.peak, "reserved", s.reserved, "allocations",
                         s.allocations, "frees", s.frees, "reused", s.reused);
}
static PyObject *empty_cache(PyObject *m, PyObject *unused)
{
    tm_empty_cache();
    Py_RETURN_NONE;
}
static PyObject *cpu_capability(PyObject *m, PyObject *unused)
{
    static const char *const names[] = {
        [TMI_ISA_SCALAR] = "DEFAULT", [TMI_ISA_AVX2] = "AVX2", [TMI_ISA_AVX512] = "AVX512", [TMI_ISA_NEON] = "NEON"};
    return PyUnicode_FromString(names[tmi_cpu()->isa]);
}
static PyObject *version(PyObject *m, PyObject *unused) { return PyUnicode_FromString(tm_version()); }

/* ---- torch.is_floating_point(x) and such */
static tm_tensor *one(const char *who, PyObject *o)
{
    if (tmpy_is_tensor(o)) return tmpy_t(o);
    tmpy_error(PyExc_TypeError, "%s(): argument 'input' (position 1) must be Tensor, not %s", who, tmpy_type_name(o));
    return NULL;
}
static PyObject *is_floating_point(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_floating_point", o);
    return t ? PyBool_FromLong(tmi_is_float((tm_dtype)t->dtype)) : NULL;
}
static PyObject *is_complex(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_complex", o);
    return t ? PyBool_FromLong(tmi_is_complex((tm_dtype)t->dtype)) : NULL;
}
static PyObject *is_signed(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_signed", o);
    return t ? PyBool_FromLong(tmi_dtypes[t->dtype].category != 'U' && tmi_dtypes[t->dtype].category != 'B') : NULL;
}
static PyObject *is_conj(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_conj", o);
    return t ? PyBool_FromLong(t->flags & TMI_CONJ) : NULL;
}
static PyObject *is_neg(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_neg", o);
    return t ? PyBool_FromLong(t->flags & TMI_NEG) : NULL;
}
static PyObject *is_inference(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("is_inference", o);
    return t ? PyBool_FromLong(t->flags & TMI_INFERENCE) : NULL;
}
static PyObject *numel(PyObject *m, PyObject *o)
{
    tm_tensor *t = one("numel", o);
    return t ? PyLong_FromLongLong(t->numel) : NULL;
}
static PyObject *is_tensor(PyObject *m, PyObject *o) { return PyBool_FromLong(tmpy_is_tensor(o)); }
static PyObject *detach(PyObject *m, PyObject *o) { return one("detach", o) ? PyObject_CallMethod(o, "detach", NULL) : NULL; }

/* torch.result_type(a, b): of tensors and numbers. */
static int weigh(tmi_promotion *p, PyObject *o)
{
    tm_scalar s;
    tm_status status;
    if (tmpy_is_tensor(o)) {
        status = tmi_promote_tensor(p, tmpy_t(o));
    } else {
        int known = tmpy_as_scalar(o, &s);
        if (known < 0) return -1;
        if (!known) return PyErr_Format(PyExc_TypeError, "result_type(): argument must be Tensor or Number, not %s", tmpy_type_name(o)), -1;
        status = tmi_promote_scalar(p, s);
    }
    if (status != TM_OK) tmpy_raise();
    return status == TM_OK ? 0 : -1;
}
static PyObject *result_type(PyObject *m, PyObject *const *args, Py_ssize_t n)
{
    tmi_promotion p = TMI_PROMOTION_INIT;
    tm_dtype d;
    if (n != 2) return tmpy_error(PyExc_TypeError, "result_type() takes 2 positional arguments but %zd were given", n);
    if (weigh(&p, args[0]) < 0 || weigh(&p, args[1]) < 0) return NULL;
    return tmi_promoted(&p, &d) == TM_OK ? tmpy_dtype(d) : tmpy_raise();
}
static PyObject *set_parameter_class(PyObject *m, PyObject *type)
{
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, tmpy_Tensor))
        return tmpy_error(PyExc_TypeError, "the class of parameters must derive from Tensor");
    Py_INCREF(type);
    tmpy_Parameter = (PyTypeObject *)type;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"get_num_threads", get_threads, METH_NOARGS, NULL},
                                  {"set_num_threads", set_threads, METH_O, NULL},
                                  {"get_num_interop_threads", interop_threads, METH_NOARGS, NULL},
                                  {"set_flush_denormal", flush_denormal, METH_O, NULL},
                                  {"_memory_stats", memory_stats, METH_NOARGS, NULL},
                                  {"_empty_cache", empty_cache, METH_NOARGS, NULL},
                                  {"_get_cpu_capability", cpu_capability, METH_NOARGS, NULL},
                                  {"_library_version", version, METH_NOARGS, NULL},
                                  {"is_floating_point", is_floating_point, METH_O, NULL},
                                  {"is_complex", is_complex, METH_O, NULL},
                                  {"is_signed", is_signed, METH_O, NULL},
                                  {"is_conj", is_conj, METH_O, NULL},
                                  {"is_neg", is_neg, METH_O, NULL},
                                  {"is_inference", is_inference, METH_O, NULL},
                                  {"numel", numel, METH_O, NULL},
                                  {"is_tensor", is_tensor, METH_O, NULL},
                                  {"detach", detach, METH_O, NULL},
                                  {"result_type", TMPY_FN(result_type), METH_FASTCALL, NULL},
                                  {"_set_parameter_class", set_parameter_class, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
int tmpy_runtime_init(PyObject *m) { return PyModule_AddFunctions(m, functions); }
