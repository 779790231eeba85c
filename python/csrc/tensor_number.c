/* Python's operators on tensors. Each knows its operator records from the start: x + y and x * 2.0 go to the dispatcher without a look
 * at names. Everything unusual takes the parser's way, and a TypeError there means "not for me", as Python's protocol wants. */
#include "glue.h"

typedef struct binary {
    const char *name, *inplace;
    const tmpy_name *forward, *changing;
    const tmi_op *tensor, *scalar;     /* overloads (Tensor, Tensor) and (Tensor, Scalar); NULL where there is none */
} binary;

enum { ADD, SUB, MUL, DIV, FLOORDIV, MOD, POW, MATMUL, AND, OR, XOR, LSHIFT, RSHIFT, LT, LE, EQ, NE, GT, GE, RSUB, N_BINARY };
static binary binaries[N_BINARY] = {[ADD] = {.name = "add", .inplace = "add_"},
                                    [SUB] = {.name = "sub", .inplace = "sub_"},
                                    [MUL] = {.name = "mul", .inplace = "mul_"},
                                    [DIV] = {.name = "div", .inplace = "div_"},
                                    [FLOORDIV] = {.name = "floor_divide", .inplace = "floor_divide_"},
                                    [MOD] = {.name = "remainder", .inplace = "remainder_"},
                                    [POW] = {.name = "pow", .inplace = "pow_"},
                                    [MATMUL] = {.name = "matmul"},
                                    [AND] = {.name = "bitwise_and", .inplace = "bitwise_and_"},
                                    [OR] = {.name = "bitwise_or", .inplace = "bitwise_or_"},
                                    [XOR] = {.name = "bitwise_xor", .inplace = "bitwise_xor_"},
                                    [LSHIFT] = {.name = "__lshift__", .inplace = "__ilshift__"},
                                    [RSHIFT] = {.name = "__rshift__", .inplace = "__irshift__"},
                                    [LT] = {.name = "lt"},
                                    [LE] = {.name = "le"},
                                    [EQ] = {.name = "eq"},
                                    [NE] = {.name = "ne"},
                                    [GT] = {.name = "gt"},
                                    [GE] = {.name = "ge"},
                                    [RSUB] = {.name = "rsub"}};
static const tmpy_name *neg, *absolute, *invert, *positive, *reciprocal;

static bool takes(const tmi_op *op, tmi_arg_type second)
{
    if (op->n_args < 2 || op->args[0].type != TMI_T_TENSOR || op->args[1].type != second || strcmp(op->args[0].name, "self")) return false;
    return op->n_args == 2 || op->args[2].has_default;
}

static void resolve(binary *b)
{
    b->forward = tmpy_find_name(b->name);
    b->changing = b->inplace ? tmpy_find_name(b->inplace) : NULL;
    for (int i = 0; b->forward && i < b->forward->n_overloads; i++) {
        const tmi_op *op = b->forward->overloads[i];
        if (!b->tensor && takes(op, TMI_T_TENSOR)) b->tensor = op;
        if (!b->scalar && takes(op, TMI_T_SCALAR)) b->scalar = op;
    }
}

/* TypeError becomes NotImplemented. */
static PyObject *or_not_implemented(PyObject *r)
{
    if (r || !PyErr_ExceptionMatches(PyExc_TypeError)) return r;
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
}

/* The number of an exact float, int or bool; other kinds take the long way. */
static inline bool quick_scalar(PyObject *o, tmi_value *v)
{
    if (PyFloat_CheckExact(o)) {
        *v = tmi_v_scalar(tm_f64(PyFloat_AsDouble(o)));
        return true;
    }
    if (!PyLong_CheckExact(o)) return false;
    int overflow;
    long long x = PyLong_AsLongLongAndOverflow(o, &overflow);
    *v = tmi_v_scalar(tm_i64(x));
    return !overflow;
}

static PyObject *run(const tmi_op *op, tmpy_call *c, tmi_form form, PyObject *self)
{
    c->form = form;
    for (int i = 2; i < op->n_args; i++) c->v[i] = op->args[i].def;
    return tmpy_run(op, c, self);
}

static PyObject *forward(const binary *b, PyObject *x, PyObject *y, tmi_form form)
{
    tmpy_call c;
    if (TMI_LIKELY(tmpy_is_plain(x) && !tmpy_n_modes)) {
        if (tmpy_is_plain(y) && b->tensor) {
            tmpy_call_begin(&c);
            c.v[0] = tmi_v_tensor(tmpy_t(x));
            c.v[1] = tmi_v_tensor(tmpy_t(y));
            return run(b->tensor, &c, form, x);
        }
        if (b->scalar && quick_scalar(y, &c.v[1])) {
            tmpy_call_begin(&c);
            c.v[0] = tmi_v_tensor(tmpy_t(x));
            return run(b->scalar, &c, form, x);
        }
    }
    const tmpy_name *name = form == TMI_FORM_INPLACE ? b->changing : b->forward;
    if (!name) Py_RETURN_NOTIMPLEMENTED;
    return or_not_implemented(tmpy_call_method(name, x, &y, 1, NULL));
}

static PyObject *by_function(const binary *b, PyObject *x, PyObject *y)
{
    PyObject *args[2] = {x, y};
    if (!b->forward) Py_RETURN_NOTIMPLEMENTED;
    return or_not_implemented(tmpy_call_function(b->forward, args, 2, NULL));
}

/* y is the tensor, x is not. */
static PyObject *reflected(int which, PyObject *x, PyObject *y)
{
    const binary *b = &binaries[which];
    switch (which) {
    case ADD: case MUL: case AND: case OR: case XOR: return forward(b, y, x, TMI_FORM_PLAIN);
    case SUB: return forward(&binaries[RSUB], y, x, TMI_FORM_PLAIN);
    case DIV: {
        PyObject *inverse = reciprocal ? tmpy_call_method(reciprocal, y, NULL, 0, NULL) : NULL;
        PyObject *r = inverse ? forward(&binaries[MUL], inverse, x, TMI_FORM_PLAIN) : NULL;
        Py_XDECREF(inverse);
        return r;
    }
    case MATMUL: Py_RETURN_NOTIMPLEMENTED;
    default: return by_function(b, x, y);
    }
}

static PyObject *operate(int which, PyObject *x, PyObject *y)
{
    return tmpy_is_tensor(x) ? forward(&binaries[which], x, y, TMI_FORM_PLAIN) : reflected(which, x, y);
}
static PyObject *change(int which, PyObject *x, PyObject *y) { return forward(&binaries[which], x, y, TMI_FORM_INPLACE); }

static PyObject *add(PyObject *a, PyObject *b) { return operate(ADD, a, b); }
static PyObject *subtract(PyObject *a, PyObject *b) { return operate(SUB, a, b); }
static PyObject *multiply(PyObject *a, PyObject *b) { return operate(MUL, a, b); }
static PyObject *true_divide(PyObject *a, PyObject *b) { return operate(DIV, a, b); }
static PyObject *floor_divide(PyObject *a, PyObject *b) { return operate(FLOORDIV, a, b); }
static PyObject *remainder_of(PyObject *a, PyObject *b) { return operate(MOD, a, b); }
static PyObject *matmul(PyObject *a, PyObject *b) { return operate(MATMUL, a, b); }
static PyObject *bit_and(PyObject *a, PyObject *b) { return operate(AND, a, b); }
static PyObject *bit_or(PyObject *a, PyObject *b) { return operate(OR, a, b); }
static PyObject *bit_xor(PyObject *a, PyObject *b) { return operate(XOR, a, b); }
static PyObject *left_shift(PyObject *a, PyObject *b) { return operate(LSHIFT, a, b); }
static PyObject *right_shift(PyObject *a, PyObject *b) { return operate(RSHIFT, a, b); }
static PyObject *power(PyObject *a, PyObject *b, PyObject *mod)
{
    if (mod != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return operate(POW, a, b);
}
static PyObject *add_to(PyObject *a, PyObject *b) { return change(ADD, a, b); }
static PyObject *subtract_from(PyObject *a, PyObject *b) { return change(SUB, a, b); }
static PyObject *multiply_by(PyObject *a, PyObject *b) { return change(MUL, a, b); }
static PyObject *divide_by(PyObject *a, PyObject *b) { return change(DIV, a, b); }
static PyObject *floor_divide_by(PyObject *a, PyObject *b) { return change(FLOORDIV, a, b); }
static PyObject *reduce_modulo(PyObject *a, PyObject *b) { return change(MOD, a, b); }
static PyObject *and_with(PyObject *a, PyObject *b) { return change(AND, a, b); }
static PyObject *or_with(PyObject *a, PyObject *b) { return change(OR, a, b); }
static PyObject *xor_with(PyObject *a, PyObject *b) { return change(XOR, a, b); }
static PyObject *shift_left_by(PyObject *a, PyObject *b) { return change(LSHIFT, a, b); }
static PyObject *shift_right_by(PyObject *a, PyObject *b) { return change(RSHIFT, a, b); }
static PyObject *raise_to(PyObject *a, PyObject *b, PyObject *mod) { return change(POW, a, b); }

static PyObject *unary(const tmpy_name *name, PyObject *x)
{
    return name ? tmpy_call_method(name, x, NULL, 0, NULL)
                : tmpy_error(PyExc_NotImplementedError, "this operator is not part of this build");
}
static PyObject *negative(PyObject *x) { return unary(neg, x); }
static PyObject *plus(PyObject *x) { return positive ? unary(positive, x) : Py_NewRef(x); }
static PyObject *absolute_of(PyObject *x) { return unary(absolute, x); }
static PyObject *inverted(PyObject *x)
{
    tm_dtype d = (tm_dtype)tmpy_t(x)->dtype;
    if (d != TM_BOOL && !tmi_is_integral(d))
        return tmpy_error(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return unary(invert, x);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    static const int which[] = {[Py_LT] = LT, [Py_LE] = LE, [Py_EQ] = EQ, [Py_NE] = NE, [Py_GT] = GT, [Py_GE] = GE};
    return forward(&binaries[which[op]], a, b, TMI_FORM_PLAIN);
}

/* ---- as a Python number */
static int one_element(PyObject *o, PyObject *error, const char *text, tm_scalar *out)
{
    if (tmpy_t(o)->numel != 1) return PyErr_SetString(error, text), -1;
    if (tm_tensor_item(tmpy_t(o), out) == TM_OK) return 0;
    tmpy_raise();
    return -1;
}

static int as_bool(PyObject *o)
{
    tm_scalar s;
    const char *text = tmpy_t(o)->numel ? "Boolean value of Tensor with more than one value is ambiguous"
                                        : "Boolean value of Tensor with no values is ambiguous";
    if (one_element(o, PyExc_RuntimeError, text, &s) < 0) return -1;
    switch (s.tag) {
    case TM_SCALAR_BOOL: return s.v.b;
    case TM_SCALAR_F64: return s.v.f != 0;
    case TM_SCALAR_C128: return s.v.c.re != 0 || s.v.c.im != 0;
    default: return s.v.i != 0;
    }
}

static const char only_one[] = "only one element tensors can be converted to Python scalars";

static int real_value(PyObject *o, tm_scalar *s, const char *type)
{
    if (one_element(o, PyExc_ValueError, only_one, s) < 0) return -1;
    if (s->tag == TM_SCALAR_C128 && s->v.c.im != 0)
        return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow", type), -1;
    if (s->tag == TM_SCALAR_C128) *s = tm_f64(s->v.c.re);
    return 0;
}
static PyObject *as_float(PyObject *o)
{
    tm_scalar s;
    return real_value(o, &s, "double") < 0 ? NULL : PyFloat_FromDouble(tmi_scalar_f64(s));
}
static PyObject *as_int(PyObject *o)
{
    tm_scalar s;
    if (real_value(o, &s, "int64_t") < 0) return NULL;
    if (s.tag == TM_SCALAR_F64) return PyLong_FromDouble(s.v.f);
    return s.tag == TM_SCALAR_U64 ? PyLong_FromUnsignedLongLong(s.v.u) : PyLong_FromLongLong(tmi_scalar_i64(s));
}
static PyObject *as_index(PyObject *o)
{
    tm_tensor *t = tmpy_t(o);
    tm_scalar s;
    static const char text[] = "only integer tensors of a single element can be converted to an index";
    if (!tmi_is_integral((tm_dtype)t->dtype) && t->dtype != TM_BOOL) return tmpy_error(PyExc_TypeError, text);
    if (one_element(o, PyExc_TypeError, text, &s) < 0) return NULL;
    return s.tag == TM_SCALAR_BOOL ? PyLong_FromLong(s.v.b) : tmpy_from_scalar(s);
}

const PyType_Slot tmpy_number_slots[] = {{Py_nb_add, add},
                                         {Py_nb_subtract, subtract},
                                         {Py_nb_multiply, multiply},
                                         {Py_nb_true_divide, true_divide},
                                         {Py_nb_floor_divide, floor_divide},
                                         {Py_nb_remainder, remainder_of},
                                         {Py_nb_power, power},
                                         {Py_nb_matrix_multiply, matmul},
                                         {Py_nb_and, bit_and},
                                         {Py_nb_or, bit_or},
                                         {Py_nb_xor, bit_xor},
                                         {Py_nb_lshift, left_shift},
                                         {Py_nb_rshift, right_shift},
                                         {Py_nb_inplace_add, add_to},
                                         {Py_nb_inplace_subtract, subtract_from},
                                         {Py_nb_inplace_multiply, multiply_by},
                                         {Py_nb_inplace_true_divide, divide_by},
                                         {Py_nb_inplace_floor_divide, floor_divide_by},
                                         {Py_nb_inplace_remainder, reduce_modulo},
                                         {Py_nb_inplace_power, raise_to},
                                         {Py_nb_inplace_and, and_with},
                                         {Py_nb_inplace_or, or_with},
                                         {Py_nb_inplace_xor, xor_with},
                                         {Py_nb_inplace_lshift, shift_left_by},
                                         {Py_nb_inplace_rshift, shift_right_by},
                                         {Py_nb_negative, negative},
                                         {Py_nb_positive, plus},
                                         {Py_nb_absolute, absolute_of},
                                         {Py_nb_invert, inverted},
                                         {Py_nb_bool, as_bool},
                                         {Py_nb_int, as_int},
                                         {Py_nb_float, as_float},
                                         {Py_nb_index, as_index},
                                         {Py_tp_richcompare, compare}};
const int tmpy_n_number_slots = sizeof tmpy_number_slots / sizeof *tmpy_number_slots;

static void resolve_or(binary *b, const char *name, const char *inplace)
{
    if (b->forward) return;
    b->name = name;
    b->inplace = inplace;
    resolve(b);
}

int tmpy_number_init(PyObject *m)
{
    for (int i = 0; i < N_BINARY; i++) resolve(&binaries[i]);
    resolve_or(&binaries[LSHIFT], "bitwise_left_shift", "bitwise_left_shift_");
    resolve_or(&binaries[RSHIFT], "bitwise_right_shift", "bitwise_right_shift_");
    neg = tmpy_find_name("neg");
    absolute = tmpy_find_name("abs");
    invert = tmpy_find_name("bitwise_not");
    positive = tmpy_find_name("positive");
    reciprocal = tmpy_find_name("reciprocal");
    return 0;
}
