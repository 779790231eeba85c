/* The contract between tools/opgen.py and the glue. opgen writes py_methods.c: one tmpy_name per Python-visible operator name, one thunk
 * per name and place, and the method tables below. Everything else (parsing, errors, `out=`, in-place, results) is written once, in parser.c.
 *
 *     static const tmi_op *const o_add[] = {&tmi_ops[TMI_ADD_TENSOR], &tmi_ops[TMI_ADD_SCALAR]};
 *     const tmpy_name tmpy_names[] = {{"add", o_add, 2, TMI_FORM_PLAIN, TMPY_METHOD | TMPY_FUNCTION},
 *                                     {"add_", o_add, 2, TMI_FORM_INPLACE, TMPY_METHOD}, ...};
 *     static PyObject *m_add(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
 *     { return tmpy_call_method(&tmpy_names[0], self, args, n, kwnames); }
 *     static PyObject *f_add(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
 *     { return tmpy_call_function(&tmpy_names[0], args, n, kwnames); }
 *     PyMethodDef tmpy_tensor_methods[] = {{"add", TMPY_FN(m_add), TMPY_FLAGS, "add(self, other, *, alpha=1)\n\n..."}, {NULL, NULL, 0, NULL}};
 */
#ifndef TMPY_OPS_H
#define TMPY_OPS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ops/op.h"

/* Where Python sees a name (`python:` line). Names in the namespaces stay ATen's, as in PyTorch: _C._linalg.linalg_norm, _C._fft.fft_fft. */
enum { TMPY_METHOD = 1, TMPY_FUNCTION = 2, TMPY_NN = 4, TMPY_LINALG = 8, TMPY_SPECIAL = 16, TMPY_FFT = 32 };

typedef struct tmpy_name {
    const char *name;                 /* as Python spells it: "add", or "add_" for the in-place form */
    const tmi_op *const *overloads;   /* tried in this order: one that takes a Tensor goes before one that takes a number at that place */
    uint8_t n_overloads;              /* in-place names list only overloads with TMI_OP_INPLACE_FORM */
    uint8_t form;                     /* TMI_FORM_PLAIN, or TMI_FORM_INPLACE; `out=` is found through TMI_OP_OUT_FORM */
    uint8_t places;                   /* TMPY_* */
} tmpy_name;

/* A call from Python in the vectorcall convention. For methods `self` is the first tensor argument; functions take it as args[0] or as the
 * keyword `input`. New reference, or NULL with a Python exception set. */
PyObject *tmpy_call_method(const tmpy_name *name, PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
PyObject *tmpy_call_function(const tmpy_name *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

#define TMPY_FN(f) ((PyCFunction)(void (*)(void))(f))
#define TMPY_FLAGS (METH_FASTCALL | METH_KEYWORDS)

/* Written by opgen into py_methods.c; the method tables end with a NULL entry. */
extern const tmpy_name tmpy_names[];
extern const int tmpy_n_names;
extern PyMethodDef tmpy_tensor_methods[];
extern PyMethodDef tmpy_torch_functions[];
extern PyMethodDef tmpy_nn_functions[];
extern PyMethodDef tmpy_linalg_functions[];
extern PyMethodDef tmpy_special_functions[];
extern PyMethodDef tmpy_fft_functions[];

#endif
