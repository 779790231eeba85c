/* torch.Generator, and the functions on the default one. */
#include "core/random.h"
#include "glue.h"

PyTypeObject *tmpy_generator_type;

typedef struct { tm_generator *g; PyObject *weak; } generator;
static tm_generator *g_of(PyObject *o) { return TMPY_DATA(o, generator)->g; }

tm_generator *tmpy_as_generator(PyObject *o) { return PyObject_TypeCheck(o, tmpy_generator_type) ? g_of(o) : NULL; }

static const uint64_t default_seed = 67280421310721;   /* what a fresh torch.Generator() starts from */

/* Takes g. */
static PyObject *make(PyTypeObject *type, tm_generator *g)
{
    if (!g) return tmpy_raise();
    PyObject *o = tmpy_alloc(type);
    if (o) TMPY_DATA(o, generator)->g = g;
    else tm_generator_release(g);
    return o;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", NULL};
    PyObject *device = NULL;
    tm_device d = {TM_CPU, -1};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &device)) return NULL;
    if (device && device != Py_None) {
        int known = tmpy_as_device(device, &d);
        if (known < 0) return NULL;
        if (!known)
            return tmpy_error(PyExc_TypeError, "Generator(): argument 'device' (position 1) must be torch.device, not %s",
                              tmpy_type_name(device));
    }
    if (d.type != TM_CPU) return tmpy_error(PyExc_RuntimeError, "Device type META is not supported for torch.Generator() api.");
    return make(type, tm_generator_new(default_seed));
}
static void generator_dealloc(PyObject *o)
{
    generator *d = TMPY_DATA(o, generator);
    if (d->weak) PyObject_ClearWeakRefs(o);
    if (d->g) tm_generator_release(d->g);
    tmpy_free(o);
}

/* Seeds: -2^63 .. 2^64 - 1, negative ones wrap. */
static int as_seed(PyObject *o, uint64_t *out)
{
    long long i = PyLong_AsLongLong(o);
    if (i != -1 || !PyErr_Occurred()) return *out = (uint64_t)i, 0;
    PyErr_Clear();
    *out = PyLong_AsUnsignedLongLong(o);
    if (!PyErr_Occurred()) return 0;
    PyErr_Clear();
    PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
    return -1;
}
static PyObject *manual_seed(PyObject *self, PyObject *o)
{
    uint64_t seed;
    if (!PyLong_Check(o) || PyBool_Check(o))
        return tmpy_error(PyExc_RuntimeError, "manual_seed expected a long, but got %s", tmpy_type_name(o));
    if (as_seed(o, &seed) < 0) return NULL;
    tm_generator_seed(g_of(self), seed);
    return Py_NewRef(self);
}
TMPY_NOARGS(initial_seed) { return PyLong_FromUnsignedLongLong(tm_generator_initial_seed(g_of(self))); }
TMPY_NOARGS(reseed) { return PyLong_FromUnsignedLongLong(tmi_generator_reseed(g_of(self))); }

static PyObject *state_of(tm_generator *g)
{
    int64_t n = TMI_GENERATOR_STATE_BYTES;
    tm_tensor *t = tmi_tensor_new(1, &n, NULL, TM_U8, (tm_device){TM_CPU, -1});
    if (t) tmi_generator_get_state(g, t->storage->data);
    return tmpy_wrap(t);
}
static PyObject *set_state_of(tm_generator *g, PyObject *state)
{
    if (!tmpy_is_tensor(state)) return tmpy_error(PyExc_TypeError, "expected a torch.ByteTensor, but got %s", tmpy_type_name(state));
    tm_tensor *t = tmpy_t(state);
    if (t->dtype != TM_U8 || t->device.type != TM_CPU || !tmi_contiguous(t))
        return tmpy_error(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
    return tmi_generator_set_state(g, tmi_data(t), t->numel) == TM_OK ? Py_NewRef(Py_None) : tmpy_raise();
}
TMPY_NOARGS(get_state) { return state_of(g_of(self)); }
static PyObject *set_state(PyObject *self, PyObject *state)
{
    PyObject *r = set_state_of(g_of(self), state);
    if (!r) return NULL;
    Py_DECREF(r);
    return Py_NewRef(self);
}
TMPY_NOARGS(clone_state) { return make(tmpy_generator_type, tmi_generator_clone(g_of(self))); }
static PyObject *get_device(PyObject *self, void *unused) { return tmpy_device_new((tm_device){TM_CPU, -1}); }
TMPY_NOARGS(reduce)
{
    PyObject *state = state_of(g_of(self));
    PyObject *seed = PyLong_FromUnsignedLongLong(tm_generator_initial_seed(g_of(self)));
    if (!state || !seed) return NULL;
    return Py_BuildValue("(O(s)(NONN))", (PyObject *)tmpy_generator_type, "cpu", seed, Py_None, Py_NewRef(Py_None), state);
}
static PyObject *restore(PyObject *self, PyObject *tuple)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != 4) return tmpy_error(PyExc_ValueError, "invalid generator state");
    return set_state(self, PyTuple_GetItem(tuple, 3));
}

static PyMethodDef methods[] = {{"manual_seed", manual_seed, METH_O, NULL},
                                {"initial_seed", initial_seed, METH_NOARGS, NULL},
                                {"seed", reseed, METH_NOARGS, NULL},
                                {"get_state", get_state, METH_NOARGS, NULL},
                                {"set_state", set_state, METH_O, NULL},
                                {"clone_state", clone_state, METH_NOARGS, NULL},
                                {"__reduce__", reduce, METH_NOARGS, NULL},
                                {"__setstate__", restore, METH_O, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef getset[] = {{"device", get_device, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyMemberDef members[] = {{"__weaklistoffset__", Py_T_PYSSIZET, 0, Py_READONLY, NULL}, {NULL, 0, 0, 0, NULL}};

int tmpy_generator_init(PyObject *m)
{
    members[0].offset = tmpy_object_size + (Py_ssize_t)offsetof(generator, weak);
    static PyType_Slot slots[] = {{Py_tp_new, generator_new}, {Py_tp_dealloc, generator_dealloc}, {Py_tp_methods, methods},
                                  {Py_tp_getset, getset},     {Py_tp_members, members},           {0, NULL}};
    static PyType_Spec spec = {"torch._C.Generator", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
    if (!(tmpy_generator_type = tmpy_type_new(m, &spec, sizeof(generator), NULL))) return -1;
    PyObject *g = make(tmpy_generator_type, tmi_generator_retain(tm_default_generator()));
    int r = g ? PyModule_AddObjectRef(m, "default_generator", g) : -1;
    Py_XDECREF(g);
    return r;
}
