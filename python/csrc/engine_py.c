/* Backward from Python, anomaly mode, source lines, saved-tensor hooks. */
#include "glue.h"

/* ---- running */
static __thread long long current_task = -1;
static long long n_tasks;

static int read_tensors(PyObject *o, const char *what, bool none_too, tm_tensor ***out, int *n)
{
    PyObject *tuple = PySequence_Tuple(o);
    if (!tuple) return -1;
    Py_ssize_t count = PyTuple_Size(tuple);
    tm_tensor **t = PyMem_Malloc(sizeof *t * (size_t)(count + 1));
    if (!t) return Py_DECREF(tuple), PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = PyTuple_GetItem(tuple, i);
        bool ok = (x == Py_None && none_too) || tmpy_is_tensor(x);
        if (!ok) {
            PyErr_Format(PyExc_TypeError, "element %zd of %s tuple is not a Tensor%s", i, what, none_too ? " or None" : "");
            PyMem_Free(t);
            Py_DECREF(tuple);
            return -1;
        }
        t[i] = x == Py_None ? NULL : tmpy_t(x);   /* the caller's sequence keeps it */
    }
    Py_DECREF(tuple);
    *out = t;
    *n = (int)count;
    return 0;
}

/* Whether a pass is long enough to let other Python threads run: the first nodes' results tell. */
enum { LOOK_AT = 48, LARGE = 1 << 15 };
static bool is_large(tm_tensor *const *roots, int n)
{
    tmi_node *queue[LOOK_AT];
    int len = 0;
    int64_t total = 0;
    for (int i = 0; i < n && len < LOOK_AT; i++) {
        tmi_node *first = roots[i]->grad_meta ? ((tmi_grad_meta *)roots[i]->grad_meta)->grad_fn : NULL;
        if (first) queue[len++] = first;
    }
    for (int at = 0; at < len; at++) {
        const tmi_node *node = queue[at];
        for (int i = 0; node->arg_info && i < node->n_tensor_args; i++) {
            int64_t size = 1;
            for (int d = 0; d < node->arg_info[i].ndim; d++) size *= node->arg_info[i].sizes[d];
            total += node->arg_info[i].defined ? size : 0;
        }
        for (int i = 0; i < node->n_edges && len < LOOK_AT; i++)
            if (node->edges[i].node) queue[len++] = node->edges[i].node;
    }
    return total >= LARGE;
}

static tm_status run(const tmi_backward_args *a)
{
    long long outer = current_task;
    current_task = n_tasks++;
    tmpy_unlocked u = tmpy_unlock(is_large(a->roots, a->n_roots));
    tm_status s = tmi_backward(a);
    tmpy_relock(u);
    current_task = outer;
    return s;
}

static PyObject *results_tuple(tm_tensor **t, int n)
{
    PyObject *r = PyTuple_New(n);
    for (int i = 0; i < n; i++) {
        PyObject *x = t[i] ? tmpy_wrap(t[i]) : Py_NewRef(Py_None);
        if (r && x) PyTuple_SetItem(r, i, x);
        else Py_CLEAR(r);
    }
    return r;
}

/* _run_backward(tensors, grad_tensors, keep_graph, create_graph, inputs=(), allow_unreachable=False, accumulate_grad=False) */
static PyObject *run_backward(PyObject *m, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"tensors", "grad_tensors",      "keep_graph",      "create_graph",
                            "inputs",  "allow_unreachable", "accumulate_grad", NULL};
    PyObject *tensors, *grads, *inputs = NULL, *r = NULL;
    int keep, create, unreachable = 0, accumulate = 0, n = 0, n_grads = 0, n_inputs = 0;
    tm_tensor **roots = NULL, **g = NULL, **in = NULL, **out = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOpp|Opp:run_backward", names, &tensors, &grads, &keep, &create, &inputs, &unreachable,
                                     &accumulate))
        return NULL;
    if (read_tensors(tensors, "tensors", false, &roots, &n) < 0 || read_tensors(grads, "gradients", true, &g, &n_grads) < 0) goto done;
    if (n != n_grads) {
        PyErr_Format(PyExc_RuntimeError, "got %d tensors and %d gradients", n, n_grads);
        goto done;
    }
    if (inputs && read_tensors(inputs, "inputs", false, &in, &n_inputs) < 0) goto done;
    if (!accumulate && !(out = PyMem_Calloc((size_t)n_inputs + 1, sizeof *out))) goto done;
    tmi_backward_args a = {.roots = roots,
                           .grads = g,
                           .n_roots = n,
                           .inputs = n_inputs ? in : NULL,
                           .n_inputs = n_inputs,
                           .results = accumulate ? NULL : out,
                           .retain_graph = keep,
                           .create_graph = create,
                           .allow_unused = unreachable};
    if (run(&a) != TM_OK) r = tmpy_raise();
    else r = accumulate ? Py_NewRef(Py_None) : results_tuple(out, n_inputs);
done:
    PyMem_Free(roots);
    PyMem_Free(g);
    PyMem_Free(in);
    PyMem_Free(out);
    return r;
}

/* x.backward(gradient=None, retain_graph=None, create_graph=False, inputs=None): the common form goes straight to the engine. */
static PyObject *backward(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    PyObject *gradient = Py_None, *inputs = Py_None, *r;
    int retain = -1, create = 0;
    const tmpy_field fields[] = {{"gradient", 'O', false, false, &gradient},
                                 {"retain_graph", 'b', false, false, &retain},
                                 {"create_graph", 'b', false, false, &create},
                                 {"inputs", 'O', false, false, &inputs}};
    if (tmpy_override_method(self, "backward", args, n, kwnames, &r)) return r;
    if (tmpy_fields("backward", fields, 4, args, n, kwnames) < 0) return NULL;
    if (gradient == Py_None && inputs == Py_None) {
        tm_tensor *root = tmpy_t(self);
        tmi_backward_args a = {.roots = &root, .n_roots = 1, .retain_graph = retain < 0 ? create : retain, .create_graph = create};
        if (run(&a) != TM_OK) return tmpy_raise();
        Py_RETURN_NONE;
    }
    PyObject *module = PyImport_ImportModule("taimatsu.autograd"), *f = module ? PyObject_GetAttrString(module, "backward") : NULL;
    PyObject *kw = f ? Py_BuildValue("{s:O}", "inputs", inputs) : NULL,
             *pos = kw ? Py_BuildValue("(OONO)", self, gradient, retain < 0 ? Py_NewRef(Py_None) : PyBool_FromLong(retain),
                                       create ? Py_True : Py_False)
                       : NULL;
    r = pos ? PyObject_Call(f, pos, kw) : NULL;
    Py_XDECREF(module);
    Py_XDECREF(f);
    Py_XDECREF(kw);
    Py_XDECREF(pos);
    return r;
}

static PyObject *task_id(PyObject *m, PyObject *unused) { return PyLong_FromLongLong(current_task); }

static PyObject *will_execute(PyObject *m, PyObject *o)
{
    tmi_node *n = tmpy_node_of(o);
    if (!n) return tmpy_error(PyExc_TypeError, "_will_engine_execute_node expects a grad_fn, but got %s", tmpy_type_name(o));
    if (current_task < 0) return tmpy_error(PyExc_RuntimeError, "_get_should_execute_nodes should only be called during the backward pass");
    return PyBool_FromLong(tmi_will_run(n));
}

/* ---- callbacks at the end of the pass */
static tm_status call_back(void *ctx)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *r = PyObject_CallNoArgs(ctx);
    tm_status s = r ? TM_OK : tmpy_carry();
    Py_XDECREF(r);
    PyGILState_Release(state);
    return s;
}
static void drop(void *ctx)
{
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF((PyObject *)ctx);
    PyGILState_Release(state);
}
static PyObject *queue_callback(PyObject *m, PyObject *f)
{
    if (tmi_queue_callback(call_back, drop, Py_NewRef(f)) == TM_OK) Py_RETURN_NONE;
    Py_DECREF(f);
    return tmpy_raise();
}

/* ---- source lines and anomaly mode */
static PyObject *places;   /* text -> text: keeps the strings that nodes point to */
static const char *where(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    const char *text = NULL;
#ifndef Py_LIMITED_API
    PyFrameObject *frame = PyEval_GetFrame();
    PyObject *code = frame ? (PyObject *)PyFrame_GetCode(frame) : NULL, *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
    PyObject *place = file ? PyUnicode_FromFormat("%U:%d", file, PyFrame_GetLineNumber(frame)) : NULL;
    PyObject *kept = place ? PyDict_SetDefault(places, place, place) : NULL;
    text = kept ? PyUnicode_AsUTF8AndSize(kept, NULL) : NULL;
    Py_XDECREF(code);
    Py_XDECREF(file);
    Py_XDECREF(place);
    PyErr_Clear();
#endif
    PyGILState_Release(state);
    return text;
}
static void *capture(void)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *traceback = PyImport_ImportModule("traceback"),
             *lines = traceback ? PyObject_CallMethod(traceback, "format_stack", NULL) : NULL;
    PyErr_Clear();
    Py_XDECREF(traceback);
    PyGILState_Release(state);
    return lines;
}
static void report(tmi_node *n, void *captured)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *type, *value, *trace, *empty = PyUnicode_FromString("");
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = captured && empty ? PyUnicode_Join(empty, captured) : NULL;
    const char *lines = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (lines)
        PyErr_WarnFormat(PyExc_UserWarning, 1, "Error detected in %s. Traceback of forward call that caused the error:\n%s",
                         tmi_node_name(n), lines);
    else
        PyErr_WarnFormat(
            PyExc_UserWarning, 1,
            "Error detected in %s. No forward pass information available. Enable detect anomaly during forward pass for more information.",
            tmi_node_name(n));
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
    Py_XDECREF(text);
    Py_XDECREF(empty);
    PyGILState_Release(state);
}
static PyObject *set_anomaly(PyObject *m, PyObject *const *args, Py_ssize_t n)
{
    if (n < 1 || n > 2) return tmpy_error(PyExc_TypeError, "set_anomaly_enabled() takes one or two arguments");
    int on = PyObject_IsTrue(args[0]), check = n > 1 ? PyObject_IsTrue(args[1]) : 1;
    if (on < 0 || check < 0) return NULL;
    tmi_set_anomaly(on, check);
    Py_RETURN_NONE;
}
static PyObject *anomaly_enabled(PyObject *m, PyObject *unused) { return PyBool_FromLong(tmi_anomaly_enabled()); }
static PyObject *anomaly_nan(PyObject *m, PyObject *unused) { return PyBool_FromLong(tmi_anomaly_checks_nan()); }
static PyObject *set_source_lines(PyObject *m, PyObject *on)
{
    int yes = PyObject_IsTrue(on);
    return yes < 0 ? NULL : PyBool_FromLong(tmi_set_source_lines(yes));
}

/* ---- saved-tensor hooks: (pack, unpack) */
static tm_status pack(void *ctx, tm_tensor *t, void **data)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *x = tmpy_wrap_borrowed(t);
    *data = x ? PyObject_CallFunctionObjArgs(PyTuple_GetItem(ctx, 0), x, NULL) : NULL;
    Py_XDECREF(x);
    tm_status s = *data ? TM_OK : tmpy_carry();
    PyGILState_Release(state);
    return s;
}
static tm_status unpack(void *ctx, void *data, tm_tensor **out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *x = PyObject_CallFunctionObjArgs(PyTuple_GetItem(ctx, 1), data, NULL);
    tm_status s = TM_OK;
    if (x && !tmpy_is_tensor(x))
        PyErr_Format(PyExc_TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                     tmpy_type_name(x));
    if (!x || !tmpy_is_tensor(x)) s = tmpy_carry();
    if (s == TM_OK) {
        *out = tmpy_t(x);
        tmi_retain(*out);
    }
    Py_XDECREF(x);
    PyGILState_Release(state);
    return s;
}
static void drop_packed(void *ctx, void *data) { drop(data); }
typedef struct { tmi_saved_hooks h; char text[256]; } hook_pair;
static tmi_saved_hooks *innermost(void) { return tmi_tls.saved_hooks; }
static void free_pair(void *ctx) { drop(ctx); }

static PyObject *push_hooks(PyObject *m, PyObject *args)
{
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO:_push_saved_tensors_default_hooks", &a, &b)) return NULL;
    if (innermost() && innermost()->disabled) return tmpy_error(PyExc_RuntimeError, "%s", innermost()->disabled);
    hook_pair *p = PyMem_RawCalloc(1, sizeof *p);
    PyObject *ctx = PyTuple_Pack(2, a, b);
    if (!p || !ctx) return PyErr_NoMemory();
    p->h = (tmi_saved_hooks){.refs = 1, .pack = pack, .unpack = unpack, .free_data = drop_packed, .free = free_pair, .ctx = ctx};
    if (tmi_saved_hooks_push(&p->h) != TM_OK) return tmpy_raise();
    Py_RETURN_NONE;
}
static PyObject *pop_hooks(PyObject *m, PyObject *unused)
{
    tmi_saved_hooks_pop();
    Py_RETURN_NONE;
}
static PyObject *disable_hooks(PyObject *m, PyObject *text)
{
    const char *s = PyUnicode_AsUTF8AndSize(text, NULL);
    if (!s) return NULL;
    if (innermost() && !innermost()->disabled)
        return tmpy_error(PyExc_RuntimeError, "%s", s);
    hook_pair *p = PyMem_RawCalloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    snprintf(p->text, sizeof p->text, "%s", s);
    p->h = (tmi_saved_hooks){.refs = 1, .disabled = p->text};
    if (tmi_saved_hooks_push(&p->h) != TM_OK) return tmpy_raise();
    Py_RETURN_NONE;
}
static PyObject *enable_hooks(PyObject *m, PyObject *unused)
{
    while (innermost() && innermost()->disabled) tmi_saved_hooks_pop();
    Py_RETURN_NONE;
}
static PyObject *disabled_text(PyObject *m, PyObject *unused)
{
    if (innermost() && innermost()->disabled) return PyUnicode_FromString(innermost()->disabled);
    Py_RETURN_NONE;
}
static PyObject *increment_version(PyObject *m, PyObject *tensors)
{
    PyObject *tuple = tmpy_is_tensor(tensors) ? PyTuple_Pack(1, tensors) : PySequence_Tuple(tensors);
    if (!tuple) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
        if (tmpy_is_tensor(PyTuple_GetItem(tuple, i))) tmi_bump_version(tmpy_t(PyTuple_GetItem(tuple, i)));
    Py_DECREF(tuple);
    Py_RETURN_NONE;
}

PyMethodDef tmpy_engine_methods[] = {{"backward", TMPY_FN(backward), TMPY_FLAGS, NULL}, {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"_run_backward", TMPY_FN(run_backward), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"_current_graph_task_id", task_id, METH_NOARGS, NULL},
                                  {"_queue_callback", queue_callback, METH_O, NULL},
                                  {"_will_engine_execute_node", will_execute, METH_O, NULL},
                                  {"set_anomaly_enabled", TMPY_FN(set_anomaly), METH_FASTCALL, NULL},
                                  {"is_anomaly_enabled", anomaly_enabled, METH_NOARGS, NULL},
                                  {"is_anomaly_check_nan_enabled", anomaly_nan, METH_NOARGS, NULL},
                                  {"_set_source_lines", set_source_lines, METH_O, NULL},
                                  {"_push_saved_tensors_default_hooks", push_hooks, METH_VARARGS, NULL},
                                  {"_pop_saved_tensors_default_hooks", pop_hooks, METH_NOARGS, NULL},
                                  {"_saved_tensors_hooks_disable", disable_hooks, METH_O, NULL},
                                  {"_saved_tensors_hooks_enable", enable_hooks, METH_NOARGS, NULL},
                                  {"_saved_tensors_hooks_get_disabled_error_message", disabled_text, METH_NOARGS, NULL},
                                  {"_increment_version", increment_version, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};

int tmpy_engine_init(PyObject *m)
{
    places = PyDict_New();
    tmi_glue.where = where;
    tmi_glue.capture = capture;
    tmi_glue.report = report;
    tmi_glue.free_captured = drop;
    return places ? PyModule_AddFunctions(m, functions) : -1;
}
