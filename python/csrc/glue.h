/* What the files of the extension module share. The only place besides py_ops.h that includes Python.h.
 *
 * The glue follows the limited API's rules: heap types only, our data behind TMPY_DATA at an offset that is read from the interpreter,
 * no interpreter structs touched. It opens no scope: a result of tmi_call belongs to its wrapper. */
#ifndef TMPY_GLUE_H
#define TMPY_GLUE_H

#include "py_ops.h"

#include "autograd/api.h"
#include "ops/op.h"

#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

/* ---- objects: our data follows what `object` itself needs, whatever that is (read once by tmpy_objects_init) */
extern Py_ssize_t tmpy_object_size;
#define TMPY_DATA(obj, type) ((type *)((char *)(obj) + tmpy_object_size))
PyTypeObject *tmpy_type_new(PyObject *module, PyType_Spec *spec, size_t data_size, PyObject *base); /* adds it to the module */
PyObject *tmpy_alloc(PyTypeObject *type);              /* zero-filled object of a heap type */
void tmpy_free(PyObject *o);                            /* end of a tp_dealloc: frees o and gives its type back */
int tmpy_objects_init(PyObject *module);
const char *tmpy_type_name(PyObject *o);                /* as PyTorch's messages say it: "str", "torch.dtype", "Tensor" */
#define TMPY_NOARGS(f) static PyObject *f(PyObject *self, PyObject *unused)

/* ---- errors (errors.c): the single exit point from C to Python */
/* Turns the thread's error record into a Python exception and clears it. Returns NULL always. */
PyObject *tmpy_raise(void);
/* Called inside a callback after Python raised: puts the exception aside and returns TM_PYTHON, which comes out of tmpy_raise as the
 * same exception object. */
tm_status tmpy_carry(void);
PyObject *tmpy_error(PyObject *type, const char *format, ...);   /* PyErr_Format; returns NULL */
int tmpy_errors_init(PyObject *module);

/* The interpreter lock is given up for calls whose work is large; never for small ones. */
typedef struct tmpy_unlocked { PyThreadState *state; } tmpy_unlocked;
static inline tmpy_unlocked tmpy_unlock(bool large) { return (tmpy_unlocked){large ? PyEval_SaveThread() : NULL}; }
static inline void tmpy_relock(tmpy_unlocked u) { if (u.state) PyEval_RestoreThread(u.state); }

/* ---- tensors (tensor_object.c) */
typedef struct tmpy_tensor {
    tm_tensor *t;          /* owned, never NULL in a finished object */
    PyObject *dict, *weak;
} tmpy_tensor;
extern PyTypeObject *tmpy_Tensor;       /* exact class of results */
extern PyTypeObject *tmpy_Parameter;    /* nn.Parameter, once the package has registered it; else NULL */
static inline tm_tensor *tmpy_t(PyObject *o) { return TMPY_DATA(o, tmpy_tensor)->t; }
/* Tensor or Parameter itself: what needs no look at __torch_function__. */
static inline bool tmpy_is_plain(PyObject *o) { PyTypeObject *t = Py_TYPE(o); return t == tmpy_Tensor || (t == tmpy_Parameter && t); }
static inline bool tmpy_is_tensor(PyObject *o) { return tmpy_is_plain(o) || PyObject_TypeCheck(o, tmpy_Tensor); }
PyObject *tmpy_wrap(tm_tensor *t);                                 /* takes t; NULL raises the pending error */
PyObject *tmpy_wrap_as(PyTypeObject *type, tm_tensor *t);          /* new wrapper of a subclass; takes t, which has no wrapper yet */
PyObject *tmpy_wrap_borrowed(tm_tensor *t);                        /* retains; NULL gives None */
int tmpy_tensor_init(PyObject *module);
extern PyMethodDef tmpy_hand_methods[];                            /* tensor_methods.c */
extern PyGetSetDef tmpy_tensor_getset[];                           /* tensor_props.c */
extern PyMethodDef tmpy_interop_methods[], tmpy_dlpack_methods[], tmpy_hook_methods[], tmpy_engine_methods[], tmpy_convert_methods[];
extern const PyType_Slot tmpy_number_slots[], tmpy_index_slots[];  /* tensor_number.c, subscript.c; end with slot 0 */
extern const int tmpy_n_number_slots, tmpy_n_index_slots;
int tmpy_tensor_traverse(PyObject *o, visitproc visit, void *arg); /* gc_walk.c */
int tmpy_tensor_clear(PyObject *o);
PyObject *tmpy_tensor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs); /* make_tensor.c: Tensor(2, 3), Tensor([1.0]) */
int tmpy_tensor_buffer(PyObject *o, Py_buffer *view, int flags);   /* numpy_interop.c */
void tmpy_tensor_buffer_release(PyObject *o, Py_buffer *view);

/* ---- small objects */
extern PyTypeObject *tmpy_dtype_type, *tmpy_device_type, *tmpy_layout_type, *tmpy_format_type, *tmpy_size_type, *tmpy_generator_type,
    *tmpy_storage_type, *tmpy_node_type;
PyObject *tmpy_dtype(tm_dtype d);                        /* new reference to the singleton */
bool tmpy_as_dtype(PyObject *o, tm_dtype *out);          /* dtype object, or float, int, bool, complex; no exception */
typedef struct tmpy_device { uint8_t kind; int8_t index; } tmpy_device;   /* kind: number in device_object.c's list */
PyObject *tmpy_device_new(tm_device d);
int tmpy_as_device(PyObject *o, tm_device *out);         /* 1 yes, 0 no device, -1 exception set */
tm_device tmpy_default_device(void);
PyObject *tmpy_layout(tm_layout l);
PyObject *tmpy_format(tm_memory_format f);
bool tmpy_as_layout(PyObject *o, int *out);
bool tmpy_as_format(PyObject *o, int *out);
PyObject *tmpy_size(int ndim, const int64_t *sizes);     /* torch.Size */
PyObject *tmpy_ints(int n, const int64_t *v);            /* tuple */
tm_generator *tmpy_as_generator(PyObject *o);            /* NULL: not a generator; no exception */
PyObject *tmpy_storage_new(tm_storage *s);               /* takes s */
tm_storage *tmpy_storage_of(PyObject *o);                /* NULL: not a storage */
PyObject *tmpy_set_(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);
int tmpy_dtype_init(PyObject *m);
int tmpy_device_init(PyObject *m);
int tmpy_size_init(PyObject *m);
int tmpy_generator_init(PyObject *m);
int tmpy_storage_init(PyObject *m);
int tmpy_finfo_init(PyObject *m);

/* ---- numbers (numbers.c) */
/* Python number, numpy scalar, object with __index__/__float__. 1 yes, 0 not a number, -1 exception set. */
int tmpy_as_scalar(PyObject *o, tm_scalar *out);
int tmpy_as_int(PyObject *o, int64_t *out);
int tmpy_as_double(PyObject *o, double *out);
PyObject *tmpy_from_scalar(tm_scalar s);
bool tmpy_is_numpy_scalar(PyObject *o);
bool tmpy_is_numpy_array(PyObject *o);


/* ---- calls (parser.c, parser_*.c) */
enum { TMPY_CALL_BYTES = 640, TMPY_MAX_TEMPS = 8 };
typedef struct tmpy_call {
    tmi_value v[TMI_MAX_ARGS];
    tmi_out out;
    tmi_form form;
    bool requires_grad;                 /* factories: requires_grad=True */
    int n_overloaded;                   /* arguments with a __torch_function__ of their own */
    PyObject *overloaded[TMPY_MAX_TEMPS];  /* borrowed, distinct types, subclasses first */
    PyObject *out_arg;                  /* `out=`, borrowed */
    int n_temps;
    tm_tensor *temps[TMPY_MAX_TEMPS];   /* wrapped numbers: released after the call */
    void *heap;                         /* blocks beyond `buf`, chained */
    size_t used;
    _Alignas(16) char buf[TMPY_CALL_BYTES];
} tmpy_call;
void tmpy_call_begin(tmpy_call *c);
void *tmpy_call_alloc(tmpy_call *c, size_t n);           /* NULL: exception set */
void tmpy_call_end(tmpy_call *c);
PyObject *tmpy_run(const tmi_op *op, tmpy_call *c, PyObject *self);    /* tmi_call and the result as Python objects */
/* An operator by fixed arguments from C; out[0] is a new reference. 0 = ok, -1 = Python exception set. */
tm_tensor *tmpy_op1(const tmi_op *op, const tmi_value *args);
const tmi_op *tmpy_need_op(const char *name, const char *overload);   /* NULL: NotImplementedError set */
const tmpy_name *tmpy_find_name(const char *name);                     /* NULL if no such operator */


/* One parameter as a caller sees it. */
typedef enum tmpy_param_kind { TMPY_P_ARG, TMPY_P_OUT, TMPY_P_PIN_MEMORY, TMPY_P_REQUIRES_GRAD, TMPY_P_LAYOUT } tmpy_param_kind;
typedef struct tmpy_param {
    uint8_t kind;              /* tmpy_param_kind */
    uint8_t arg;               /* index in op->args for TMPY_P_ARG */
    bool kwarg_only, optional, allow_none;
    PyObject *name;            /* interned */
    PyObject *alias[3];        /* numpy's names, interned */
    const tmi_arg *spec;
} tmpy_param;
typedef struct tmpy_sig {
    int n, n_pos;              /* parameters; positional ones, self included */
    int self;                  /* index of self, -1 if none */
    int min_args;              /* required ones, self included */
    bool numbers_as_tensors, hidden;
    tmpy_param p[];
} tmpy_sig;
const tmpy_sig *tmpy_signature(const tmi_op *op);        /* cached; NULL: no memory, exception set */
/* Matching one argument: 1 fits (value filled), 0 does not, -1 exception set. failed: element that did not fit, or -1. */
int tmpy_convert(tmpy_call *c, const tmpy_sig *sig, const tmi_arg *a, PyObject *o, tmi_value *v, int position, Py_ssize_t *failed);
int tmpy_convert_ints(tmpy_call *c, PyObject *const *items, Py_ssize_t n, tmi_value *v, Py_ssize_t *failed);
typedef struct tmpy_args {     /* a call's arguments as given */
    const tmpy_name *name;
    PyObject *self;            /* method's self, or NULL */
    PyObject *const *args;
    Py_ssize_t n, n_kw;
    PyObject *kwnames;
} tmpy_args;
/* Raises the TypeError that PyTorch gives when no overload fits. Returns NULL. */
PyObject *tmpy_no_match(const tmpy_args *a);
const char *tmpy_param_type_name(const tmpy_param *p, const tmi_op *op);

/* Arguments of hand-written functions, with the parser's messages (simple_args.c). kind: 'O' any object (PyObject *), 'T' Tensor (PyObject *),
 * 'd' dtype (tm_dtype; may be None), 'D' device (tm_device; may be None), 'l' layout (int), 'm' memory format (int), 'b' bool (int; None keeps it),
 * 'i' int (int64_t), 's' str (const char *). The place keeps its value when the argument is not given. 0 = ok, -1 exception set. */
typedef struct tmpy_field { const char *name; char kind; bool required, keyword_only; void *place; } tmpy_field;
int tmpy_fields(const char *who, const tmpy_field *fields, int n_fields, PyObject *const *args, Py_ssize_t n, PyObject *kwnames);

/* ---- overrides (override.c) */
extern int tmpy_n_modes;                                  /* open TorchFunctionModes of this process */
bool tmpy_has_torch_function(PyObject *o);                /* for objects that are not plain */
int tmpy_add_overloaded(tmpy_call *c, PyObject *o);
PyObject *tmpy_call_override(tmpy_call *c, const tmpy_args *a);      /* the protocol; func is looked up by name and place */
/* For properties and hand-written methods: true when `self` wants the call (result or NULL in *out). */
bool tmpy_override_method(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t n, PyObject *kwnames, PyObject **out);
bool tmpy_override_property(PyObject *self, const char *name, PyObject *value, PyObject **out);   /* value NULL: get */
int tmpy_override_init(PyObject *m);

/* ---- results (results.c) */
PyObject *tmpy_named_result(const tmi_op *op, PyObject **items, int n);   /* takes items; tuple or torch.return_types.* */
PyObject *tmpy_list_result(tm_tensor_list *l);                             /* takes l */
int tmpy_results_init(PyObject *m);

/* ---- the rest */
int tmpy_creation_init(PyObject *m);
int tmpy_interop_init(PyObject *m);
int tmpy_dlpack_init(PyObject *m);
int tmpy_index_init(PyObject *m);
int tmpy_number_init(PyObject *m);
int tmpy_node_init(PyObject *m);
int tmpy_hooks_init(PyObject *m);
int tmpy_engine_init(PyObject *m);
int tmpy_function_init(PyObject *m);
int tmpy_grad_mode_init(PyObject *m);
int tmpy_module_base_init(PyObject *m);

int tmpy_runtime_init(PyObject *m);
PyObject *tmpy_node(tmi_node *n);                         /* retains n; NULL gives None */
PyObject *tmpy_next_functions(tmi_node *n);
PyObject *tmpy_custom_object(tmi_node *n); /* function.c: the ctx of a Python function's node, new reference; NULL if it is none */
PyObject *tmpy_from_value(const tmi_value *v);
PyObject *tmpy_node_register_hook(PyObject *node, PyObject *f);     /* hooks.c */
PyObject *tmpy_node_register_prehook(PyObject *node, PyObject *f);
tmi_node *tmpy_node_of(PyObject *o);                      /* borrowed; of a node object or a ctx, NULL for others */
tmi_node *tmpy_function_node(PyObject *o);
int tmpy_visit_hook(const tmi_hook *h, visitproc visit, void *arg);     /* hooks.c: the callable of a Python hook */
int tmpy_visit_custom(const tmi_node *n, visitproc visit, void *arg);   /* function.c: the ctx of a Python function */
int tmpy_walk_node(tmi_node *n, visitproc visit, void *arg);            /* gc_walk.c */
/* tensor(data, dtype, device): copies nested sequences, numbers, arrays, tensors. Owned result, NULL with exception set. */
tm_tensor *tmpy_tensor_from_data(PyObject *data, tm_dtype dtype, tm_device device, const char *who);
tm_tensor *tmpy_tensor_from_array(PyObject *array, bool warn_readonly);    /* shares memory through the buffer protocol */
PyObject *tmpy_method_value(PyObject *o, const char *name, PyObject *arg); /* o.name(arg), arg may be NULL */

#endif
