/* Attributes of a Tensor. */
#include "glue.h"

/* A property of a subclass goes through its __torch_function__, which sees Tensor.<name>.__get__. */
static bool overridden(PyObject *o, const char *name, PyObject **out)
{
    if (TMI_LIKELY(tmpy_is_plain(o) && !tmpy_n_modes)) return false;
    return tmpy_override_property(o, name, NULL, out);
}

static PyObject *get_shape(PyObject *o, void *name)
{
    PyObject *r;
    tm_tensor *t = tmpy_t(o);
    return overridden(o, name, &r) ? r : tmpy_size(t->ndim, t->sizes);
}
static PyObject *get_dtype(PyObject *o, void *name) { return tmpy_dtype((tm_dtype)tmpy_t(o)->dtype); }
static PyObject *get_device(PyObject *o, void *name) { return tmpy_device_new(tmpy_t(o)->device); }
static PyObject *get_layout(PyObject *o, void *name) { return tmpy_layout(TM_STRIDED); }
static PyObject *get_ndim(PyObject *o, void *name) { return PyLong_FromLong(tmpy_t(o)->ndim); }
static PyObject *get_itemsize(PyObject *o, void *name) { return PyLong_FromLong(tmi_dtypes[tmpy_t(o)->dtype].size); }
static PyObject *get_nbytes(PyObject *o, void *name)
{
    return PyLong_FromLongLong(tmpy_t(o)->numel * (int64_t)tmi_dtypes[tmpy_t(o)->dtype].size);
}
static PyObject *get_false(PyObject *o, void *name) { Py_RETURN_FALSE; }
static PyObject *get_none(PyObject *o, void *name) { Py_RETURN_NONE; }
static PyObject *is_cpu(PyObject *o, void *name) { return PyBool_FromLong(tmpy_t(o)->device.type == TM_CPU); }
static PyObject *is_meta(PyObject *o, void *name) { return PyBool_FromLong(tmpy_t(o)->device.type == TM_META); }

/* ---- gradients */
static PyObject *get_requires_grad(PyObject *o, void *name) { return PyBool_FromLong(tmi_requires_grad(tmpy_t(o))); }
static int set_requires_grad(PyObject *o, PyObject *value, void *name)
{
    tm_tensor *t = tmpy_t(o);
    if (!value || !PyBool_Check(value)) return PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool"), -1;
    bool on = value == Py_True;
    if (on && !tmi_is_float((tm_dtype)t->dtype) && !tmi_is_complex((tm_dtype)t->dtype))
        return PyErr_SetString(PyExc_RuntimeError, "only Tensors of floating point and complex dtype can require gradients"), -1;
    if (on && !tmi_is_leaf(t)) return PyErr_SetString(PyExc_RuntimeError, "you can only change requires_grad flags of leaf variables."), -1;
    if (tmi_set_requires_grad(t, on) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}
static PyObject *get_grad(PyObject *o, void *name)
{
    PyObject *r;
    tm_tensor *t = tmpy_t(o);
    if (overridden(o, name, &r)) return r;
    if (TMI_LIKELY(t->grad_meta && ((tmi_grad_meta *)t->grad_meta)->grad)) return tmpy_wrap_borrowed(((tmi_grad_meta *)t->grad_meta)->grad);
    if (tmi_requires_grad(t) && !tmi_is_leaf(t) && !tmi_retains_grad(t) &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
            "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
            "non-leaf Tensor. If you "
            "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
            "github.com/pytorch/pytorch/pull/30531 for more information.",
            2) < 0)
        return NULL;
    return tmpy_wrap_borrowed(tmi_grad_of(t));
}
static int set_grad(PyObject *o, PyObject *value, void *name)
{
    if (value && value != Py_None && !tmpy_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "assigned grad expected to be a Tensor or None but got grad of type %s",
                            tmpy_type_name(value)),
               -1;
    if (value == o) return PyErr_SetString(PyExc_RuntimeError, "can't assign Variable as its own grad"), -1;
    if (tmi_set_grad(tmpy_t(o), value && value != Py_None ? tmpy_t(value) : NULL) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}
static PyObject *get_grad_fn(PyObject *o, void *name)
{
    tmi_node *n = tmi_grad_fn_of(tmpy_t(o));
    return !n && tm_error_status() != TM_OK ? tmpy_raise() : tmpy_node(n);
}
static int set_grad_fn(PyObject *o, PyObject *value, void *name)
{
    if (value && value != Py_None) return PyErr_SetString(PyExc_TypeError, "_grad_fn can be only set to None"), -1;
    if (tmi_detach_inplace(tmpy_t(o)) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}
static PyObject *get_is_leaf(PyObject *o, void *name) { return PyBool_FromLong(tmi_is_leaf(tmpy_t(o))); }
static PyObject *get_retains_grad(PyObject *o, void *name) { return PyBool_FromLong(tmi_retains_grad(tmpy_t(o))); }
static PyObject *get_output_nr(PyObject *o, void *name) { return PyLong_FromLong(tmi_tensor_output_nr(tmpy_t(o))); }
static PyObject *get_base(PyObject *o, void *name) { return tmpy_wrap_borrowed(tmi_tensor_base(tmpy_t(o))); }
static PyObject *get_version(PyObject *o, void *name)
{
    uint64_t v;
    return tmi_version_of(tmpy_t(o), &v) == TM_OK ? PyLong_FromUnsignedLongLong(v) : tmpy_raise();
}
static PyObject *get_data(PyObject *o, void *name)
{
    tm_tensor *t = tmi_variable_data(tmpy_t(o));
    return t && Py_TYPE(o) != tmpy_Tensor && !tmpy_is_plain(o) ? tmpy_wrap_as(Py_TYPE(o), t) : tmpy_wrap(t);
}
static int set_data(PyObject *o, PyObject *value, void *name)
{
    if (!value || !tmpy_is_tensor(value))
        return PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s", value ? tmpy_type_name(value) : "nothing"), -1;
    if (tmi_set_data(tmpy_t(o), tmpy_t(value)) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}

/* ---- views by attribute */
static PyObject *view_by(const char *op_name, const char *overload, PyObject *o, const tmi_value *more, int n)
{
    const tmi_op *op = tmpy_need_op(op_name, overload);
    if (!op) return NULL;
    tmi_value v[TMI_MAX_ARGS];
    v[0] = tmi_v_tensor(tmpy_t(o));
    for (int i = 0; i < n; i++) v[i + 1] = more[i];
    for (int i = n + 1; i < op->n_args; i++) v[i] = op->args[i].def;
    tm_tensor *t = tmpy_op1(op, v);
    return t ? tmpy_wrap(t) : NULL;
}

static PyObject *get_T(PyObject *o, void *name)
{
    PyObject *r;
    tm_tensor *t = tmpy_t(o);
    if (overridden(o, name, &r)) return r;
    if (t->ndim != 2 && t->ndim != 0 &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
                     "error in a future release. "
                     "Consider `x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the "
                     "dimensions of a tensor.",
                     1) < 0)
        return NULL;
    tm_int dims[TMI_MAX_DIMS];
    for (int i = 0; i < t->ndim; i++) dims[i] = t->ndim - 1 - i;
    tmi_value v = tmi_v_ints(dims, t->ndim);
    return view_by("permute", "", o, &v, 1);
}
static PyObject *swap_last(PyObject *o)
{
    tmi_value v[2] = {tmi_v_int(-2), tmi_v_int(-1)};
    return view_by("transpose", "int", o, v, 2);
}
static PyObject *conjugate(PyObject *swapped)
{
    if (!swapped || !tmi_is_complex((tm_dtype)tmpy_t(swapped)->dtype)) return swapped;
    PyObject *r = PyObject_CallMethod(swapped, "conj", NULL);
    Py_DECREF(swapped);
    return r;
}
static PyObject *get_mT(PyObject *o, void *name)
{
    PyObject *r;
    if (overridden(o, name, &r)) return r;
    if (tmpy_t(o)->ndim < 2)
        return tmpy_error(PyExc_RuntimeError, "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.",
                          (const char *)name, tmpy_t(o)->ndim);
    r = swap_last(o);
    return ((const char *)name)[1] == 'H' ? conjugate(r) : r;
}
static PyObject *get_H(PyObject *o, void *name)
{
    PyObject *r;
    if (overridden(o, name, &r)) return r;
    int n = tmpy_t(o)->ndim;
    if (n == 0) return Py_NewRef(o);
    if (n != 2) return tmpy_error(PyExc_RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.", n);
    return conjugate(swap_last(o));
}
static PyObject *get_real(PyObject *o, void *name)
{
    PyObject *r;
    if (overridden(o, name, &r)) return r;
    if (!tmi_is_complex((tm_dtype)tmpy_t(o)->dtype)) return Py_NewRef(o);
    return view_by("real", "", o, NULL, 0);
}
static PyObject *get_imag(PyObject *o, void *name)
{
    PyObject *r;
    if (overridden(o, name, &r)) return r;
    if (!tmi_is_complex((tm_dtype)tmpy_t(o)->dtype))
        return tmpy_error(PyExc_RuntimeError, "imag is not implemented for tensors with non-complex dtypes.");
    return view_by("imag", "", o, NULL, 0);
}
static int set_part(PyObject *o, PyObject *value, void *name)
{
    PyObject *part = ((const char *)name)[0] == 'r' ? get_real(o, name) : get_imag(o, name);
    PyObject *r = part && value ? PyObject_CallMethod(part, tmpy_is_tensor(value) ? "copy_" : "fill_", "O", value) : NULL;
    Py_XDECREF(part);
    Py_XDECREF(r);
    return r ? 0 : -1;
}
static PyObject *no_cuda_interface(PyObject *o, void *name)
{
    return tmpy_error(PyExc_AttributeError,
                      "Can't get __cuda_array_interface__ on non-CUDA tensor type: torch.%sTensor If CUDA data is required use "
                      "tensor.cuda() to copy tensor "
                      "to device memory.",
                      tmi_dtypes[tmpy_t(o)->dtype].type_name);
}

#define NAME(s) ((void *)(uintptr_t)(s))
PyGetSetDef tmpy_tensor_getset[] = {{"shape", get_shape, NULL, NULL, NAME("shape")},
                                    {"dtype", get_dtype, NULL, NULL, NULL},
                                    {"device", get_device, NULL, NULL, NULL},
                                    {"layout", get_layout, NULL, NULL, NULL},
                                    {"ndim", get_ndim, NULL, NULL, NULL},
                                    {"itemsize", get_itemsize, NULL, NULL, NULL},
                                    {"nbytes", get_nbytes, NULL, NULL, NULL},
                                    {"requires_grad", get_requires_grad, set_requires_grad, NULL, NULL},
                                    {"grad", get_grad, set_grad, NULL, NAME("grad")},
                                    {"_grad", get_grad, set_grad, NULL, NAME("grad")},
                                    {"grad_fn", get_grad_fn, NULL, NULL, NULL},
                                    {"_grad_fn", get_grad_fn, set_grad_fn, NULL, NULL},
                                    {"is_leaf", get_is_leaf, NULL, NULL, NULL},
                                    {"retains_grad", get_retains_grad, NULL, NULL, NULL},
                                    {"output_nr", get_output_nr, NULL, NULL, NULL},
                                    {"_base", get_base, NULL, NULL, NULL},
                                    {"_version", get_version, NULL, NULL, NULL},
                                    {"data", get_data, set_data, NULL, NULL},
                                    {"T", get_T, NULL, NULL, NAME("T")},
                                    {"mT", get_mT, NULL, NULL, NAME("mT")},
                                    {"mH", get_mT, NULL, NULL, NAME("mH")},
                                    {"H", get_H, NULL, NULL, NAME("H")},
                                    {"real", get_real, set_part, NULL, NAME("real")},
                                    {"imag", get_imag, set_part, NULL, NAME("imag")},
                                    {"is_cpu", is_cpu, NULL, NULL, NULL},
                                    {"is_meta", is_meta, NULL, NULL, NULL},
                                    {"is_cuda", get_false, NULL, NULL, NULL},
                                    {"is_xpu", get_false, NULL, NULL, NULL},
                                    {"is_mps", get_false, NULL, NULL, NULL},
                                    {"is_xla", get_false, NULL, NULL, NULL},
                                    {"is_ipu", get_false, NULL, NULL, NULL},
                                    {"is_hpu", get_false, NULL, NULL, NULL},
                                    {"is_maia", get_false, NULL, NULL, NULL},
                                    {"is_mtia", get_false, NULL, NULL, NULL},
                                    {"is_vulkan", get_false, NULL, NULL, NULL},
                                    {"is_sparse", get_false, NULL, NULL, NULL},
                                    {"is_sparse_csr", get_false, NULL, NULL, NULL},
                                    {"is_mkldnn", get_false, NULL, NULL, NULL},
                                    {"is_nested", get_false, NULL, NULL, NULL},
                                    {"is_quantized", get_false, NULL, NULL, NULL},
                                    {"_backward_hooks", get_none, NULL, NULL, NULL},
                                    {"volatile", get_false, NULL, NULL, NULL},
                                    {"name", get_none, NULL, NULL, NULL},
                                    {"__cuda_array_interface__", no_cuda_interface, NULL, NULL, NULL},
                                    {NULL, NULL, NULL, NULL, NULL}};
