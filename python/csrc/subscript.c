/* x[...] and x[...] = v: integers, slices, None and Ellipsis become views; bool and integer tensors (lists, arrays) go to index and
 * index_put_. The basic part is walked from left to right on a view that grows; tensors are recorded at the dimension where they stand. */
#include "glue.h"

static const tmi_op *select_op, *slice_op, *unsqueeze_op, *alias_op, *index_op, *index_put_op, *expand_op, *view_op, *copy_op, *fill_op,
    *fill_tensor_op;

typedef struct walk {
    tm_tensor *t;                        /* the view so far, owned */
    tm_tensor *index[TMI_MAX_DIMS];      /* owned; NULL where there is none */
    int n_index, n_specified;
    int dim, source_dim;                 /* where we stand in the view, and in the tensor as the user sees it */
} walk;

static void end(walk *w)
{
    if (w->t) tmi_release(w->t);
    for (int i = 0; i < w->n_index; i++)
        if (w->index[i]) tmi_release(w->index[i]);
}

/* The view becomes op(view, more...); -1 with an exception set on failure. */
static int step(walk *w, const tmi_op *op, const tmi_value *more, int n)
{
    tmi_value v[8];
    v[0] = tmi_v_tensor(w->t);
    for (int i = 0; i < n; i++) v[i + 1] = more[i];
    for (int i = n + 1; i < op->n_args; i++) v[i] = op->args[i].def;
    tm_tensor *t = tmpy_op1(op, v);
    if (!t) return -1;
    tmi_release(w->t);
    w->t = t;
    return 0;
}

static int select_at(walk *w, int64_t i)
{
    if (w->t->ndim == 0)
        return PyErr_SetString(PyExc_IndexError, "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in "
                                                 "C++ to convert a 0-dim tensor to a number"),
               -1;
    int64_t n = w->t->sizes[w->dim];
    if (TMI_UNLIKELY(i < -n || i >= n))
        return PyErr_Format(PyExc_IndexError, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, w->source_dim,
                            (long long)n),
               -1;
    tmi_value v[2] = {tmi_v_int(w->dim), tmi_v_int(i)};
    return step(w, select_op, v, 2);
}

static int slice_at(walk *w, PyObject *s)
{
    Py_ssize_t start, stop, by;
    if (PySlice_Unpack(s, &start, &stop, &by) < 0) return -1;
    if (by <= 0) return PyErr_SetString(PyExc_ValueError, "step must be greater than zero"), -1;
    if (w->t->ndim == 0) return PyErr_SetString(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor."), -1;
    tmi_value v[4] = {tmi_v_int(w->dim), tmi_v_int(start), tmi_v_int(stop), tmi_v_int(by)};
    return step(w, slice_op, v, 4);
}

static int unsqueeze_at(walk *w)
{
    tmi_value v = tmi_v_int(w->dim);
    return step(w, unsqueeze_op, &v, 1);
}

/* Records an index tensor at the current dimension; takes t. */
static int record(walk *w, tm_tensor *t)
{
    if (!t) return -1;
    if (w->dim >= TMI_MAX_DIMS) return tmi_release(t), PyErr_SetString(PyExc_IndexError, "too many indices"), -1;
    while (w->n_index <= w->dim) w->index[w->n_index++] = NULL;
    w->index[w->dim] = t;
    return 0;
}

static tm_tensor *bool_index(bool on)
{
    int64_t n = on;
    tm_tensor *t = tmi_tensor_new(1, &n, NULL, TM_I64, (tm_device){TM_CPU, -1});
    if (!t) return tmpy_raise(), NULL;
    if (on) tmi_store_scalar(t->storage->data, TM_I64, tm_i64(0));
    return t;
}

static int bool_at(walk *w, bool on)
{
    if (unsqueeze_at(w) < 0 || record(w, bool_index(on)) < 0) return -1;
    w->dim++;
    return 0;
}

static bool is_mask(const tm_tensor *t) { return t->dtype == TM_BOOL || t->dtype == TM_U8; }

static int tensor_at(walk *w, tm_tensor *t)
{
    tm_scalar s;
    if (t->ndim == 0 && (tmi_is_integral((tm_dtype)t->dtype) || t->dtype == TM_BOOL)) {
        if (tm_tensor_item(t, &s) != TM_OK) return tmpy_raise(), -1;
        if (is_mask(t)) return bool_at(w, tmi_scalar_i64(s) != 0);
        if (select_at(w, tmi_scalar_i64(s)) < 0) return -1;
        w->source_dim++;
        return 0;
    }
    tmi_retain(t);
    if (record(w, t) < 0) return -1;
    w->dim += is_mask(t) && t->ndim ? t->ndim : 1;
    w->source_dim += is_mask(t) && t->ndim ? t->ndim : 1;
    return 0;
}

/* A list, range or array as an index tensor: bools stay a mask, everything else is int64. New reference. */
static tm_tensor *from_sequence(PyObject *o)
{
    tm_tensor *t = tmpy_tensor_from_data(o, TM_DTYPE_DEFAULT, (tm_device){TM_CPU, -1}, "new");
    if (!t || is_mask(t) || t->dtype == TM_I64) return t;
    bool array = tmpy_is_numpy_array(o);
    if (array && t->dtype == TM_I32) return t;
    tmi_release(t);
    return tmpy_tensor_from_data(o, TM_I64, (tm_device){TM_CPU, -1}, "new");
}

static int sequence_at(walk *w, PyObject *o)
{
    tm_tensor *t = from_sequence(o);
    if (!t) return -1;
    int r = tensor_at(w, t);
    tmi_release(t);
    return r;
}

static int refuse(PyObject *o)
{
    return PyErr_Format(PyExc_IndexError,
                        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
                        tmpy_type_name(o)),
           -1;
}

/* An integer, by type or through __index__ (numpy's are). */
static int integer_at(walk *w, PyObject *o)
{
    PyObject *number = PyNumber_Index(o);
    if (!number) return -1;
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow) return PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long"), -1;
    if (select_at(w, i) < 0) return -1;
    w->source_dim++;
    return 0;
}

static int apply(walk *w, PyObject *o)
{
    if (PyLong_CheckExact(o)) return integer_at(w, o);
    if (PySlice_Check(o)) {
        if (slice_at(w, o) < 0) return -1;
        w->dim++;
        w->source_dim++;
        return 0;
    }
    if (o == Py_Ellipsis) {
        int skipped = w->t->ndim - w->dim;   /* what is left after this, less what later indices take */
        skipped -= w->n_specified;
        w->dim += skipped > 0 ? skipped : 0;
        w->source_dim += skipped > 0 ? skipped : 0;
        return 0;
    }
    if (o == Py_None) {
        if (unsqueeze_at(w) < 0) return -1;
        w->dim++;
        return 0;
    }
    if (PyBool_Check(o)) return bool_at(w, o == Py_True);
    if (tmpy_is_tensor(o)) return tensor_at(w, tmpy_t(o));
    if (PySequence_Check(o) && !PyIndex_Check(o)) return sequence_at(w, o);
    if (tmpy_is_numpy_array(o)) return sequence_at(w, o);
    if (tmpy_is_numpy_scalar(o) && !PyIndex_Check(o)) {   /* numpy.bool_ */
        int truth = PyObject_IsTrue(o);
        return truth < 0 ? -1 : bool_at(w, truth);
    }
    return PyIndex_Check(o) ? integer_at(w, o) : refuse(o);
}

/* How many dimensions of the tensor this index takes. */
static int taken_by(PyObject *o)
{
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o)) return 0;
    if (!tmpy_is_tensor(o)) return 1;
    tm_tensor *t = tmpy_t(o);
    if (is_mask(t)) return t->ndim;
    return 1;
}

static int apply_tuple(walk *w, PyObject *tuple)
{
    Py_ssize_t n = PyTuple_Size(tuple);
    int total = 0, after = 0;
    for (Py_ssize_t i = 0; i < n; i++) total += taken_by(PyTuple_GetItem(tuple, i));
    if (total > w->t->ndim) return PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d", w->t->ndim), -1;
    after = total;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GetItem(tuple, i);
        after -= taken_by(o);
        w->n_specified = after;
        if (apply(w, o) < 0) return -1;
    }
    return 0;
}

/* A list of up to 31 entries that holds a sequence, slice, tensor, None or Ellipsis counts as a tuple, as numpy once had it. */
static bool counts_as_tuple(PyObject *o)
{
    if (PyTuple_Check(o)) return true;
    if (tmpy_is_tensor(o) || !PySequence_Check(o) || tmpy_is_numpy_array(o) || PyUnicode_Check(o)) return false;
    Py_ssize_t n = PySequence_Size(o);
    if (n < 0 || n >= 32) return PyErr_Clear(), false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = PySequence_GetItem(o, i);
        if (!x) return PyErr_Clear(), false;
        bool yes = tmpy_is_tensor(x) || PySequence_Check(x) || PySlice_Check(x) || x == Py_Ellipsis || x == Py_None;
        Py_DECREF(x);
        if (yes) return true;
    }
    return false;
}

static int resolve(walk *w, PyObject *self, PyObject *key)
{
    *w = (walk){.t = tmpy_t(self)};
    tmi_retain(w->t);
    PyObject *tuple = PyTuple_Check(key) ? Py_NewRef(key) : counts_as_tuple(key) ? PySequence_Tuple(key) : PyTuple_Pack(1, key);
    int r = tuple ? apply_tuple(w, tuple) : -1;
    Py_XDECREF(tuple);
    return r;
}

static tm_tensor *by_tensors(walk *w)
{
    tmi_value v[2] = {tmi_v_tensor(w->t), {.tag = TMI_V_TENSORS, .len = (uint32_t)w->n_index, .u.tensors = w->index}};
    return index_op ? tmpy_op1(index_op, v) : (tmpy_need_op("index", "Tensor"), NULL);
}

/* x[i] and x[i:j] alone: one operator, no walk. */
static PyObject *simple(PyObject *self, PyObject *key)
{
    walk w = {.t = tmpy_t(self)};
    tmi_retain(w.t);
    int r = PySlice_Check(key) ? slice_at(&w, key) : integer_at(&w, key);
    if (r == 0) return tmpy_wrap(w.t);
    tmi_release(w.t);
    return NULL;
}

static PyObject *get(PyObject *self, PyObject *key)
{
    PyObject *r;
    if (tmpy_override_method(self, "__getitem__", &key, 1, NULL, &r)) return r;
    if (PyLong_CheckExact(key) || PySlice_Check(key)) return simple(self, key);
    walk w;
    tm_tensor *t = NULL;
    if (resolve(&w, self, key) == 0) {
        if (w.n_index) {
            t = by_tensors(&w);
        } else if (w.t == tmpy_t(self)) {
            t = step(&w, alias_op, NULL, 0) == 0 ? w.t : NULL;
            if (t) tmi_retain(t);
        } else {
            t = w.t;
            tmi_retain(t);
        }
    }
    end(&w);
    return t ? tmpy_wrap(t) : NULL;
}

/* ---- assignment */
static int run_inplace(const tmi_op *op, tmi_value *v)
{
    tmi_out out = {0};
    if (tmi_call(op, v, &out, TMI_FORM_INPLACE) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}

/* Sizes without leading ones. New reference. */
static tm_tensor *without_leading_ones(tm_tensor *t)
{
    int skip = 0;
    while (skip < t->ndim && t->sizes[skip] == 1) skip++;
    tmi_retain(t);
    if (!skip) return t;
    tmi_value v[2] = {tmi_v_tensor(t), tmi_v_ints(t->sizes + skip, t->ndim - skip)};
    tm_tensor *r = tmpy_op1(view_op, v);
    tmi_release(t);
    return r;
}

static int copy_into(tm_tensor *to, tm_tensor *from)
{
    bool same = to->ndim == from->ndim && !memcmp(to->sizes, from->sizes, (size_t)to->ndim * sizeof *to->sizes);
    tm_tensor *source = from, *expanded = NULL, *stripped = NULL;
    if (!same) {
        if (!(stripped = without_leading_ones(from))) return -1;
        tmi_value v[3] = {tmi_v_tensor(stripped), tmi_v_ints(to->sizes, to->ndim), tmi_v_bool(false)};
        expanded = tmpy_op1(expand_op, v);
        tmi_release(stripped);
        if (!expanded) return -1;
        source = expanded;
    }
    tmi_value v[3] = {tmi_v_tensor(to), tmi_v_tensor(source), tmi_v_bool(false)};
    int r = run_inplace(copy_op, v);
    if (expanded) tmi_release(expanded);
    return r;
}

static int put(walk *w, tm_tensor *value)
{
    tm_tensor *stripped = without_leading_ones(value);
    if (!stripped) return -1;
    if (!index_put_op) return tmi_release(stripped), tmpy_need_op("index_put", ""), -1;
    tmi_value v[4] = {tmi_v_tensor(w->t),
                      {.tag = TMI_V_TENSORS, .len = (uint32_t)w->n_index, .u.tensors = w->index},
                      tmi_v_tensor(stripped),
                      tmi_v_bool(false)};
    int r = run_inplace(index_put_op, v);
    tmi_release(stripped);
    return r;
}

static int fill(tm_tensor *t, tm_scalar s)
{
    tmi_value v[2] = {tmi_v_tensor(t), tmi_v_scalar(s)};
    return run_inplace(fill_op, v);
}

/* The number as a tensor of t's dtype. */
static tm_tensor *number_like(tm_tensor *t, tm_scalar s)
{
    if (s.tag == TM_SCALAR_C128 && !tmi_is_complex((tm_dtype)t->dtype))
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
                            t->dtype == TM_F64   ? "double"
                            : t->dtype == TM_F32 ? "float"
                                                 : tmi_dtypes[t->dtype].name),
               NULL;
    tm_tensor *r = tmi_scalar_tensor(s, (tm_dtype)t->dtype, false);
    if (!r) tmpy_raise();
    return r;
}

static int assign(walk *w, PyObject *self, PyObject *value)
{
    tm_scalar s;
    if (tmpy_is_tensor(value)) {
        tm_tensor *from = tmpy_t(value);
        if (w->n_index) return put(w, from);
        if (from->ndim == 0 && fill_tensor_op && w->t->ndim && from->device.type == TM_CPU) {
            tmi_value v[2] = {tmi_v_tensor(w->t), tmi_v_tensor(from)};
            return run_inplace(fill_tensor_op, v);
        }
        return copy_into(w->t, from);
    }
    int known = tmpy_as_scalar(value, &s);
    if (known < 0) return -1;
    if (!known)
        return PyErr_Format(PyExc_TypeError, "can't assign a %s to a torch.%sTensor", tmpy_type_name(value),
                            tmi_dtypes[tmpy_t(self)->dtype].type_name),
               -1;
    tm_tensor *number = number_like(w->t, s);
    if (!number) return -1;
    int r = w->n_index ? put(w, number) : fill(w->t, s);
    tmi_release(number);
    return r;
}

static int set(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) return PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items"), -1;
    PyObject *args[2] = {key, value}, *r;
    if (tmpy_override_method(self, "__setitem__", args, 2, NULL, &r)) return Py_XDECREF(r), r ? 0 : -1;
    if (!tmpy_is_plain(value) && tmpy_has_torch_function(value) && tmpy_override_method(value, "__setitem__", NULL, 0, NULL, &r)) {
        Py_XDECREF(r);
        return r ? 0 : -1;
    }
    if (key == Py_False) return 0;
    walk w = {.t = NULL};
    int status;
    if (key == Py_True || key == Py_None) {
        w.t = tmpy_t(self);
        tmi_retain(w.t);
        status = unsqueeze_at(&w) < 0 ? -1 : assign(&w, self, value);
    } else {
        status = resolve(&w, self, key) < 0 ? -1 : assign(&w, self, value);
    }
    end(&w);
    return status;
}

/* ---- len, iteration, in */
static Py_ssize_t length(PyObject *o)
{
    tm_tensor *t = tmpy_t(o);
    if (t->ndim == 0) return PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor"), -1;
    return (Py_ssize_t)t->sizes[0];
}

static PyObject *iterate(PyObject *o)
{
    if (tmpy_t(o)->ndim == 0) return tmpy_error(PyExc_TypeError, "iteration over a 0-d tensor");
    PyObject *list = PyObject_CallMethod(o, "unbind", "i", 0), *r = list ? PyObject_GetIter(list) : NULL;
    Py_XDECREF(list);
    return r;
}

static int contains(PyObject *o, PyObject *x)
{
    tm_scalar s;
    int known = tmpy_is_tensor(x) ? 1 : tmpy_as_scalar(x, &s);
    if (known < 0) return -1;
    if (!known)
        return PyErr_Format(PyExc_RuntimeError, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a %R.",
                            (PyObject *)Py_TYPE(x)),
               -1;
    PyObject *same = PyObject_RichCompare(o, x, Py_EQ), *any = same ? PyObject_CallMethod(same, "any", NULL) : NULL;
    int r = any ? PyObject_IsTrue(any) : -1;
    Py_XDECREF(same);
    Py_XDECREF(any);
    return r;
}

const PyType_Slot tmpy_index_slots[] = {
    {Py_mp_subscript, get}, {Py_mp_ass_subscript, set}, {Py_mp_length, length}, {Py_tp_iter, iterate}, {Py_sq_contains, contains}};
const int tmpy_n_index_slots = sizeof tmpy_index_slots / sizeof *tmpy_index_slots;

int tmpy_index_init(PyObject *m)
{
    select_op = tmpy_need_op("select", "int");
    slice_op = tmpy_need_op("slice", "Tensor");
    unsqueeze_op = tmpy_need_op("unsqueeze", "");
    alias_op = tmpy_need_op("alias", "");
    expand_op = tmpy_need_op("expand", "");
    view_op = tmpy_need_op("view", "");
    copy_op = tmpy_need_op("copy_", "");
    fill_op = tmpy_need_op("fill_", "Scalar");
    fill_tensor_op = tmi_op_find("fill_", "Tensor");
    index_op = tmi_op_find("index", "Tensor");
    const tmpy_name *put_name = tmpy_find_name("index_put_");
    index_put_op = put_name ? put_name->overloads[0] : NULL;
    return PyErr_Occurred() ? -1 : 0;
}
