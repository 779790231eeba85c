/* The module taimatsu._C: everything in order, and the namespaces of operators (_VariableFunctions, _nn, _linalg, _special, _fft). */
#include "glue.h"

extern PyMethodDef tmpy_nn_extra[], tmpy_torch_extra[];   /* convert_methods.c, tensor_methods.c: names that go before the generated ones */

/* A namespace is a module object of its own that holds one table of functions. */
static int add_namespace(PyObject *m, const char *name, PyMethodDef *a, PyMethodDef *b)
{
    char full[64];
    snprintf(full, sizeof full, "taimatsu._C.%s", name);
    PyObject *space = PyModule_New(full);
    if (!space || PyModule_AddFunctions(space, a) < 0 || (b && PyModule_AddFunctions(space, b) < 0)) return -1;
    int r = PyModule_AddObjectRef(m, name, space);
    Py_DECREF(space);
    return r;
}

static int exec(PyObject *m)
{
    static int (*const steps[])(PyObject *) = {
        tmpy_objects_init,  tmpy_errors_init,    tmpy_dtype_init,     tmpy_device_init,      tmpy_size_init,    tmpy_number_init,
        tmpy_tensor_init,   tmpy_generator_init, tmpy_storage_init,   tmpy_finfo_init,       tmpy_results_init, tmpy_override_init,
        tmpy_creation_init, tmpy_interop_init,   tmpy_dlpack_init,    tmpy_index_init,       tmpy_node_init,    tmpy_hooks_init,
        tmpy_engine_init,   tmpy_function_init,  tmpy_grad_mode_init, tmpy_module_base_init, tmpy_runtime_init};
    static bool done;
    if (done) return PyErr_SetString(PyExc_ImportError, "taimatsu._C can be loaded once per process"), -1;
    done = true;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i](m) < 0) return -1;
    if (add_namespace(m, "_VariableFunctions", tmpy_torch_functions, tmpy_torch_extra) < 0 ||
        add_namespace(m, "_nn", tmpy_nn_functions, tmpy_nn_extra) < 0 || add_namespace(m, "_linalg", tmpy_linalg_functions, NULL) < 0 ||
        add_namespace(m, "_special", tmpy_special_functions, NULL) < 0)
        return -1;
    return add_namespace(m, "_fft", tmpy_fft_functions, NULL);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "taimatsu._C", .m_slots = slots};

PyMODINIT_FUNC PyInit__C(void);
PyMODINIT_FUNC PyInit__C(void) { return PyModuleDef_Init(&definition); }
