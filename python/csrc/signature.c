/* What a caller may write for an operator: its parameters in order, with the ones that every factory or every `out=` form adds. Built at
 * first use from the operator record and kept. */
#include "glue.h"

static const tmpy_sig **cache;

/* Functions whose Tensor parameters also take Python numbers, as 0-d tensors that are weak in promotion. */
static const char *const number_friendly[] = {"add",      "add_",        "sub",         "sub_",         "subtract",     "subtract_",
                                              "mul",      "mul_",        "multiply",    "multiply_",    "div",          "div_",
                                              "divide",   "divide_",     "true_divide", "true_divide_", "floor_divide", "floor_divide_",
                                              "arctan2_", "bitwise_and", "bitwise_or",  "bitwise_xor"};
static bool takes_numbers(const char *name)
{
    for (size_t i = 0; i < sizeof number_friendly / sizeof *number_friendly; i++)
        if (!strcmp(name, number_friendly[i])) return true;
    return false;
}

static const struct { const char *name, *alias[3]; } aliases[] = {
    {"dim", {"axis", NULL, NULL}}, {"keepdim", {"keepdims", NULL, NULL}}, {"input", {"x", "a", "x1"}}, {"other", {"x2", NULL, NULL}}};

static void set_name(tmpy_param *p, const char *name)
{
    p->name = PyUnicode_InternFromString(name);
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        for (int k = 0; k < 3 && !strcmp(aliases[i].name, name); k++)
            if (aliases[i].alias[k]) p->alias[k] = PyUnicode_InternFromString(aliases[i].alias[k]);
}

static void add_extra(tmpy_sig *s, tmpy_param_kind kind, const char *name)
{
    tmpy_param *p = &s->p[s->n++];
    *p = (tmpy_param){.kind = (uint8_t)kind,
                      .kwarg_only = true,
                      .optional = true,
                      .allow_none = kind != TMPY_P_REQUIRES_GRAD && kind != TMPY_P_PIN_MEMORY};
    set_name(p, name);
}

static void add_arg(tmpy_sig *s, const tmi_op *op, int i)
{
    const tmi_arg *a = &op->args[i];
    tmpy_param *p = &s->p[s->n];
    *p = (tmpy_param){
        .kind = TMPY_P_ARG, .arg = (uint8_t)i, .kwarg_only = a->kwarg_only, .optional = a->has_default || a->optional, .spec = a};
    p->allow_none = a->optional || (a->has_default && a->def.tag == TMI_V_NONE);
    if (!a->has_default && a->optional && !a->kwarg_only) p->optional = false;
    bool is_self = !strcmp(a->name, "self") && a->type == TMI_T_TENSOR;
    if (is_self) s->self = s->n;
    set_name(p, is_self ? "input" : a->name);
    if (!a->kwarg_only) s->n_pos++;
    if (!p->optional) s->min_args++;
    s->n++;
}

static bool has_arg(const tmi_op *op, tmi_arg_type type, const char *name)
{
    for (int i = 0; i < op->n_args; i++)
        if (op->args[i].type == type && op->args[i].kwarg_only && !strcmp(op->args[i].name, name)) return true;
    return false;
}

static tmpy_sig *build(const tmi_op *op)
{
    tmpy_sig *s = PyMem_Calloc(1, sizeof *s + (size_t)(op->n_args + 5) * sizeof(tmpy_param));
    if (!s) return (tmpy_sig *)PyErr_NoMemory();
    s->self = -1;
    bool options = has_arg(op, TMI_T_DEVICE, "device"), out_done = !(op->flags & TMI_OP_OUT_FORM);
    for (int i = 0; i < op->n_args; i++) {
        /* PyTorch's order: out stands before a factory's dtype, layout, device */
        if (options && !out_done && op->args[i].kwarg_only && op->args[i].type == TMI_T_DTYPE)
            add_extra(s, TMPY_P_OUT, "out"), out_done = true;
        if (!strcmp(op->args[i].name, "pin_memory")) options = false;
        add_arg(s, op, i);
        if (options && op->args[i].type == TMI_T_DTYPE && !has_arg(op, TMI_T_LAYOUT, "layout")) add_extra(s, TMPY_P_LAYOUT, "layout");
    }
    if (!out_done) add_extra(s, TMPY_P_OUT, "out");
    if (options) add_extra(s, TMPY_P_PIN_MEMORY, "pin_memory");
    if (has_arg(op, TMI_T_DEVICE, "device") && !has_arg(op, TMI_T_BOOL, "requires_grad") && strcmp(op->name, "to") &&
        strcmp(op->name, "_to_copy"))
        add_extra(s, TMPY_P_REQUIRES_GRAD, "requires_grad");
    s->numbers_as_tensors = takes_numbers(op->name);
    s->hidden = s->numbers_as_tensors && !strncmp(op->overload, "Scalar", 6);
    return s;
}

const tmpy_sig *tmpy_signature(const tmi_op *op)
{
    if (TMI_UNLIKELY(!cache)) {
        cache = PyMem_Calloc((size_t)tmi_n_ops, sizeof *cache);
        if (!cache) return (const tmpy_sig *)PyErr_NoMemory();
    }
    if (TMI_UNLIKELY(!cache[op->id])) cache[op->id] = build(op);
    return cache[op->id];
}
