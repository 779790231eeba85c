/* What is said when no overload fits: PyTorch's own sentences, since programs and people match them. */
#include "base/strbuf.h"
#include "glue.h"

const char *tmpy_param_type_name(const tmpy_param *p, const tmi_op *op)
{
    static const char *const extra[] = {[TMPY_P_PIN_MEMORY] = "bool", [TMPY_P_REQUIRES_GRAD] = "bool", [TMPY_P_LAYOUT] = "torch.layout"};
    static const char *const names[] = {[TMI_T_TENSOR] = "Tensor",
                                        [TMI_T_TENSORS] = "tuple of Tensors",
                                        [TMI_T_OPT_TENSORS] = "tuple of Tensors",
                                        [TMI_T_INT] = "int",
                                        [TMI_T_INTS] = "tuple of ints",
                                        [TMI_T_BOOL] = "bool",
                                        [TMI_T_BOOLS] = "tuple of bools",
                                        [TMI_T_FLOAT] = "float",
                                        [TMI_T_FLOATS] = "tuple of floats",
                                        [TMI_T_SCALAR] = "Number",
                                        [TMI_T_SCALARS] = "tuple of Scalars",
                                        [TMI_T_DTYPE] = "torch.dtype",
                                        [TMI_T_DEVICE] = "torch.device",
                                        [TMI_T_LAYOUT] = "torch.layout",
                                        [TMI_T_FORMAT] = "torch.memory_format",
                                        [TMI_T_STR] = "str",
                                        [TMI_T_GENERATOR] = "torch.Generator"};
    if (p->kind == TMPY_P_OUT) return op && op->n_outs > 1 ? "tuple of Tensors" : "Tensor";
    return p->kind == TMPY_P_ARG ? names[p->spec->type] : extra[p->kind];
}

static const char *name_of(const tmpy_param *p)
{
    const char *s = PyUnicode_AsUTF8AndSize(p->name, NULL);
    return s ? s : "?";
}

static void add_default(tmi_strbuf *b, const tmpy_param *p)
{
    if (p->kind != TMPY_P_ARG) {
        tmi_str_add(b, p->kind == TMPY_P_PIN_MEMORY || p->kind == TMPY_P_REQUIRES_GRAD ? " = False" : " = None");
        return;
    }
    const tmi_arg *a = p->spec;
    if (!strcmp(a->name, "pin_memory")) {
        tmi_str_add(b, " = False");
        return;
    }
    if (!a->has_default) {
        if (a->optional && a->kwarg_only) tmi_str_add(b, " = None");
        return;
    }
    const tmi_value *v = &a->def;
    switch (v->tag) {
    case TMI_V_BOOL: tmi_str_add(b, v->u.b ? " = True" : " = False"); break;
    case TMI_V_INT: tmi_str_addf(b, " = %lld", (long long)v->u.i); break;
    case TMI_V_FLOAT: tmi_str_addf(b, " = %g", v->u.f); break;
    case TMI_V_STR: tmi_str_addf(b, " = \"%s\"", v->u.str); break;
    case TMI_V_INTS: tmi_str_addf(b, v->len ? " = %lld" : " = None", v->len ? (long long)v->u.ints[0] : 0LL); break;
    case TMI_V_SCALAR:
        if (v->sub == TM_SCALAR_F64) tmi_str_addf(b, " = %g", v->u.f);
        else if (v->sub == TM_SCALAR_BOOL) tmi_str_add(b, v->u.b ? " = True" : " = False");
        else tmi_str_addf(b, " = %lld", (long long)v->u.i);
        break;
    default: tmi_str_add(b, " = None");
    }
}

typedef struct option {   /* one overload as the caller sees it */
    const tmi_op *op;
    const tmpy_sig *sig;
    bool method;
} option;

static bool shown(const option *o, int i)
{
    if (!o->method) return true;
    return i != o->sig->self && o->sig->p[i].kind != TMPY_P_OUT;
}

/* "(Tensor input, tuple of ints dim, *, Tensor out = None)"; returns the number of comma-separated parts. */
static int write_option(tmi_strbuf *b, const option *o)
{
    int parts = 0;
    bool star = false;
    tmi_str_add(b, "(");
    for (int i = 0; i < o->sig->n; i++) {
        const tmpy_param *p = &o->sig->p[i];
        if (!shown(o, i)) continue;
        if (p->kwarg_only && !star) {
            tmi_str_add(b, parts++ ? ", *" : "*");
            star = true;
        }
        tmi_str_addf(b, "%s%s %s", parts++ ? ", " : "", tmpy_param_type_name(p, o->op), name_of(p));
        add_default(b, p);
    }
    tmi_str_add(b, ")");
    return parts ? parts : 1;
}

static PyObject *argument(const tmpy_args *a, Py_ssize_t i) { return a->args[i]; }

static void write_given(tmi_strbuf *b, const tmpy_args *a, const option *mark)
{
    tmi_str_add(b, "(");
    for (Py_ssize_t i = 0; i < a->n + a->n_kw; i++) {
        const char *type = tmpy_type_name(argument(a, i)), *bang = "";
        if (mark && i < a->n) {
            int seen = 0;
            bang = "!";
            for (int k = 0; k < mark->sig->n; k++)
                if (shown(mark, k) && !mark->sig->p[k].kwarg_only && seen++ == i &&
                    !strcmp(tmpy_param_type_name(&mark->sig->p[k], mark->op), type))
                    bang = "";
        }
        tmi_str_add(b, i ? ", " : "");
        if (i >= a->n) {
            const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(a->kwnames, i - a->n), NULL);
            tmi_str_addf(b, "%s=", name ? name : "?");
        }
        tmi_str_addf(b, "%s%s%s", bang, type, bang);
    }
    tmi_str_add(b, ")");
}

/* Keywords that the option does not name. PyTorch reads option texts here, and so misses names that have a default. */
static bool write_unknown_keywords(tmi_strbuf *b, const tmpy_args *a, const option *o)
{
    bool any = false;
    for (Py_ssize_t k = 0; k < a->n_kw; k++) {
        PyObject *name = PyTuple_GetItem(a->kwnames, k);
        bool known = false;
        for (int i = 0; i < o->sig->n; i++) {
            const tmpy_param *p = &o->sig->p[i];
            tmi_strbuf d = {0};
            add_default(&d, p);
            known |= shown(o, i) && PyUnicode_Compare(name, p->name) == 0 && !d.len;
            tmi_str_free(&d);
        }
        if (known) continue;
        tmi_str_addf(b, "%s%s", any ? ", " : "", PyUnicode_AsUTF8AndSize(name, NULL));
        any = true;
    }
    return any;
}

static PyObject *raise_text(tmi_strbuf *b)
{
    PyErr_SetString(PyExc_TypeError, b->data ? b->data : "invalid combination of arguments");
    tmi_str_free(b);
    return NULL;
}

static PyObject *raise_combination(const tmpy_args *a, const option *options, int n)
{
    tmi_strbuf b = {0};
    tmi_str_addf(&b, "%s() received an invalid combination of arguments - got ", a->name->name);
    if (n == 1) {
        tmi_strbuf text = {0};
        bool same = write_option(&text, &options[0]) == a->n + a->n_kw;
        write_given(&b, a, same ? &options[0] : NULL);
        tmi_str_addf(&b, ", but expected %s", text.data);
        tmi_str_free(&text);
        return raise_text(&b);
    }
    write_given(&b, a, NULL);
    tmi_str_add(&b, ", but expected one of:\n");
    for (int i = 0; i < n; i++) {
        tmi_str_add(&b, " * ");
        bool same = write_option(&b, &options[i]) == a->n + a->n_kw;
        tmi_str_add(&b, "\n");
        if (!same) continue;
        tmi_strbuf keys = {0};
        if (write_unknown_keywords(&keys, a, &options[i])) {
            tmi_str_addf(&b, "      didn't match because some of the keywords were incorrect: %s\n", keys.data);
        } else {
            tmi_str_add(&b, "      didn't match because some of the arguments have invalid types: ");
            write_given(&b, a, &options[i]);
            tmi_str_add(&b, "\n");
        }
        tmi_str_free(&keys);
    }
    return raise_text(&b);
}

static void count_params(const option *o, int *least, int *most_positional, int *most)
{
    *least = *most_positional = *most = 0;
    for (int i = 0; i < o->sig->n; i++) {
        if (!shown(o, i)) continue;
        const tmpy_param *p = &o->sig->p[i];
        ++*most;
        *least += !p->optional;
        *most_positional += !p->kwarg_only;
    }
}

static PyObject *find_keyword(const tmpy_args *a, const tmpy_param *p)
{
    for (Py_ssize_t k = 0; k < a->n_kw; k++) {
        PyObject *name = PyTuple_GetItem(a->kwnames, k);
        if (PyUnicode_Compare(name, p->name) == 0) return a->args[a->n + k];
        for (int i = 0; i < 3 && p->alias[i]; i++)
            if (PyUnicode_Compare(name, p->alias[i]) == 0) return a->args[a->n + k];
    }
    return NULL;
}

static PyObject *raise_missing(const tmpy_args *a, const option *o, int from)
{
    tmi_strbuf names = {0};
    int n = 0;
    for (int i = from; i < o->sig->n; i++) {
        const tmpy_param *p = &o->sig->p[i];
        if (!shown(o, i) || p->optional || find_keyword(a, p)) continue;
        tmi_str_addf(&names, "%s\"%s\"", n++ ? ", " : "", name_of(p));
    }
    tmpy_error(PyExc_TypeError, "%s() missing %d required positional arguments: %s", a->name->name, n, names.data ? names.data : "");
    tmi_str_free(&names);
    return NULL;
}

static PyObject *raise_extra(const tmpy_args *a, int least, int most)
{
    if (least != most)
        return tmpy_error(PyExc_TypeError, "%s() takes from %d to %d positional arguments but %zd were given", a->name->name, least, most,
                          a->n);
    return tmpy_error(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", a->name->name, most, most == 1 ? "" : "s",
                      a->n, a->n == 1 ? "was" : "were");
}

static PyObject *raise_keyword(const tmpy_args *a, const option *o)
{
    for (Py_ssize_t k = 0; k < a->n_kw; k++) {
        PyObject *name = PyTuple_GetItem(a->kwnames, k);
        int found = -1, position = 0;
        for (int i = 0; i < o->sig->n; i++) {
            if (!shown(o, i)) continue;
            if (PyUnicode_Compare(name, o->sig->p[i].name) == 0) found = position;
            position++;
        }
        if (found < 0) return tmpy_error(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", a->name->name, name);
        if (found < a->n) return tmpy_error(PyExc_TypeError, "%s() got multiple values for argument '%U'", a->name->name, name);
    }
    return tmpy_error(PyExc_TypeError, "invalid keyword arguments");
}

/* Does this object fit this parameter? Errors of the conversion itself stay set (-1). */
static int fits(const option *o, const tmpy_param *p, PyObject *x, const tmpy_args *a, bool varargs)
{
    tmpy_call c;
    tmi_value v;
    Py_ssize_t failed = 0;
    int layout, r;
    if (x == Py_None && p->allow_none) return 1;
    tmpy_call_begin(&c);
    switch (p->kind) {
    case TMPY_P_OUT: r = o->op->n_outs > 1 ? PyTuple_Check(x) || PyList_Check(x) : tmpy_is_tensor(x); break;
    case TMPY_P_LAYOUT: r = tmpy_as_layout(x, &layout); break;
    case TMPY_P_ARG: r = tmpy_convert(&c, o->sig, p->spec, x, &v, 0, &failed); break;
    default: r = PyBool_Check(x);
    }
    if (r == 0 && varargs) r = tmpy_convert_ints(&c, a->args, a->n, &v, &failed) == 1;
    tmpy_call_end(&c);
    return r == 0 && failed > 0 ? 1 : r;   /* a list is judged by its first element */
}

/* The first thing wrong with the call, if this were the only overload. */
static PyObject *raise_for(const tmpy_args *a, const option *o)
{
    int least, most_positional, most;
    count_params(o, &least, &most_positional, &most);
    Py_ssize_t pos = 0, keywords = a->n_kw;
    int64_t ignored;
    bool varargs = false;
    for (int i = 0; i < o->sig->n && !varargs && most_positional == 1; i++)
        if (shown(o, i))
            varargs =
                o->sig->p[i].kind == TMPY_P_ARG && o->sig->p[i].spec->type == TMI_T_INTS && a->n && tmpy_as_int(a->args[0], &ignored) == 1;
    if (a->n > most_positional && !varargs) return raise_extra(a, least, most_positional);
    for (int i = 0; i < o->sig->n; i++) {
        const tmpy_param *p = &o->sig->p[i];
        if (!shown(o, i)) continue;
        bool by_name = pos >= a->n;
        PyObject *x = by_name ? find_keyword(a, p) : a->args[pos];
        if (!by_name && p->kwarg_only) return raise_extra(a, least, most_positional);
        if (!x && !p->optional) return raise_missing(a, o, i);
        if (!x) continue;
        int ok = fits(o, p, x, a, varargs && !by_name && pos == 0);
        if (ok < 0) return NULL;
        const char *type = tmpy_param_type_name(p, o->op);
        if (!ok && by_name)
            return tmpy_error(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", a->name->name, name_of(p), type,
                              tmpy_type_name(x));
        if (!ok)
            return tmpy_error(PyExc_TypeError, "%s(): argument '%s' (position %zd) must be %s, not %s", a->name->name, name_of(p), pos + 1,
                              type, tmpy_type_name(x));
        if (varargs && !by_name && pos == 0) pos = a->n;
        else if (by_name) keywords--;
        else pos++;
    }
    return keywords > 0 ? raise_keyword(a, o) : raise_combination(a, o, 1);
}

/* Names that have a second, deprecated signature in PyTorch, which is never shown but changes which sentence is used. */
static bool has_hidden_twin(const char *name)
{
    static const char *const names[] = {"add", "sub", "addmm", "addmv", "addr", "baddbmm", "addbmm", "addcmul", "addcdiv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i]);
        if (!strncmp(names[i], name, n) && (!name[n] || !strcmp(name + n, "_"))) return true;
    }
    return false;
}

enum { MAX_OPTIONS = 16 };

PyObject *tmpy_no_match(const tmpy_args *a)
{
    option options[MAX_OPTIONS];
    int n = 0, plausible = -1, n_plausible = 0;
    bool bare = a->self != NULL;
    if (PyErr_Occurred()) return NULL;
    for (int i = 0; i < a->name->n_overloads && n < MAX_OPTIONS; i++) {
        const tmi_op *op = a->name->overloads[i];
        option o = {op, tmpy_signature(op), a->self != NULL};
        if (!o.sig) return NULL;
        bare = bare && op->n_args == 1;
        if (o.sig->hidden || (o.method && o.sig->self < 0)) continue;
        int least, positional, most;
        count_params(&o, &least, &positional, &most);
        if (a->n + a->n_kw >= least && a->n + a->n_kw <= most) plausible = n, n_plausible++;
        options[n++] = o;
    }
    if (bare && a->n) return tmpy_error(PyExc_TypeError, "TensorBase.%s() takes no arguments (%zd given)", a->name->name, a->n);
    if (bare) return tmpy_error(PyExc_TypeError, "TensorBase.%s() takes no keyword arguments", a->name->name);
    if (n == 1 && !has_hidden_twin(a->name->name)) return raise_for(a, &options[0]);
    if (n_plausible == 1) return raise_for(a, &options[plausible]);
    return raise_combination(a, options, n);
}
