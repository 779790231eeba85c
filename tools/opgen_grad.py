"""Gradient formulas: Python expression syntax over operators, typed and turned into C.

Every expression has one of these types: T tensor, S number of any kind, I tm_int, F double, B bool, L list of ints (pointer and length),
Q list of tensors (pointer and length), D dtype, V device, M list of bools, N absent.
"""
import ast
from dataclasses import dataclass

ARG_KIND = {"TENSOR": "T", "TENSORS": "Q", "OPT_TENSORS": "Q", "INT": "I", "INTS": "L", "BOOL": "B", "BOOLS": "M", "FLOAT": "F", "SCALAR": "S",
            "DTYPE": "D", "DEVICE": "V", "STR": "Z", "FORMAT": "I", "LAYOUT": "I", "GENERATOR": "G", "FLOATS": "X", "SCALARS": "Y"}
C_TYPE = {"T": "tm_tensor *{n}", "S": "tm_scalar {n}", "I": "tm_int {n}", "F": "double {n}", "B": "bool {n}",
          "L": "const tm_int *{n}, int64_t n_{n}", "Q": "tm_tensor *const *{n}, int64_t n_{n}", "D": "tm_dtype {n}", "V": "tm_device {n}",
          "M": "const bool *{n}, int64_t n_{n}", "Z": "const char *{n}", "G": "tm_generator *{n}",
          "S?": "const tm_scalar *{n}", "I?": "const tm_int *{n}", "F?": "const double *{n}", "B?": "const bool *{n}", "X": "const double *{n}, int64_t n_{n}"}
BINARY = {ast.Add: ("add", "+"), ast.Sub: ("sub", "-"), ast.Mult: ("mul", "*"), ast.Div: ("div", "/"), ast.Pow: ("pow", None)}
COMPARE = {ast.Eq: ("eq", "=="), ast.NotEq: ("ne", "!="), ast.Lt: ("lt", "<"), ast.LtE: ("le", "<="), ast.Gt: ("gt", ">"), ast.GtE: ("ge", ">=")}
METADATA = {"sizes": "L", "ndim": "I", "numel": "I", "dtype": "D", "device": "V", "strides": "L", "offset": "I"}


@dataclass
class Gradients:
    """What the operator's record says of its formulas."""
    mask: str
    save_args: list
    save_results: list


class Formula:
    """Turns one formula into C. Collects which arguments and results it reads."""

    def __init__(self, op, groups, text, where):
        self.op, self.groups, self.where, self.text = op, groups, where, text
        self.args, self.results = set(), set()
        self.helpers = set()

    def fail(self, why):
        self.op.fail(f"gradient '{self.text}': {why}")

    def parse(self):
        try:
            return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            self.fail(str(error))

    # -- names
    def name(self, name):
        op = self.op
        if name == "grad":
            return "T", "g->grads[0]"
        if name == "result":
            self.results.add(0)
            return "T", "g->results[0]"
        if name == "grads":
            return "Q", "g->grads, (int64_t)g->node->n_results"
        if name == "needs":
            return "M", "needs, " + str(len(op.args))
        arg = op.arg(name)
        if arg is None:
            if name in op.outs:
                i = op.outs.index(name)
                self.results.add(i)
                return "T", f"g->results[{i}]"
            self.fail(f"unknown name '{name}'")
        i = op.arg_index(name)
        if arg.is_tensor:
            self.args.add(i)
        kind = ARG_KIND[arg.type]
        if arg.optional and kind in "SIFB":
            kind += "?"
        return kind, self.unboxed(arg, i)

    def unboxed(self, arg, i):
        from opgen_emit import c_form
        return c_form(arg)[2].format(i=i).replace("a[", "g->args[")

    def metadata(self, node):
        """self.sizes, self.ndim ...: read without saving the value."""
        attr = node.attr
        if attr not in METADATA:
            self.fail(f"unknown attribute '.{attr}'")
        if isinstance(node.value, ast.Name) and self.op.arg(node.value.id) and self.op.arg(node.value.id).is_tensor:
            info = f"tmi_grad_arg(g, {self.op.arg_index(node.value.id)}, 0)"
            return METADATA[attr], {"sizes": f"{info}->sizes, {info}->ndim", "ndim": f"(tm_int){info}->ndim", "numel": f"tmi_info_numel({info})",
                                    "dtype": f"(tm_dtype){info}->dtype", "device": f"{info}->device",
                                    "strides": f"{info}->strides, {info}->ndim", "offset": f"(tm_int){info}->offset"}[attr]
        if isinstance(node.value, ast.Name) and attr not in ("strides", "offset") and node.value.id in ("result", *[o for o in self.op.outs if o]):
            i = 0 if node.value.id == "result" else self.op.outs.index(node.value.id)
            info = f"(&g->node->results[{i}])"
            return METADATA[attr], {"sizes": f"{info}->sizes, {info}->ndim", "ndim": f"(tm_int){info}->ndim", "numel": f"tmi_info_numel({info})",
                                    "dtype": f"(tm_dtype){info}->dtype", "device": f"{info}->device"}[attr]
        kind, c = self.expr(node.value)
        if kind != "T" or attr in ("strides", "offset"):
            self.fail(f".{attr} of something that is no argument")
        return METADATA[attr], {"sizes": f"tmi_sizes_of({c}), tmi_ndim_of({c})", "ndim": f"(tm_int)tmi_ndim_of({c})", "numel": f"tmi_numel_of({c})",
                                "dtype": f"tmi_dtype_of({c})", "device": f"tmi_device_of({c})"}[attr]

    # -- expressions
    def expr(self, node):
        if isinstance(node, ast.Name):
            return self.name(node.id)
        if isinstance(node, ast.Constant):
            return self.constant(node.value)
        if isinstance(node, ast.Attribute):
            return self.metadata(node)
        if isinstance(node, ast.Subscript):
            return self.subscript(node)
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare):
            return self.compare(node)
        if isinstance(node, ast.BoolOp):
            word = " && " if isinstance(node.op, ast.And) else " || "
            return "B", "(" + word.join(self.expr(v)[1] for v in node.values) + ")"
        if isinstance(node, ast.IfExp):
            return self.conditional(node)
        if isinstance(node, ast.Call):
            return self.call(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            items = [self.coerce(self.expr(e), "I") for e in node.elts]
            return "L", f"(tm_int[]){{{', '.join(items) or '0'}}}, {len(items)}"
        self.fail(f"cannot express {ast.dump(node)[:40]}")

    def constant(self, value):
        if value is None:
            return "N", "NULL"
        if isinstance(value, bool):
            return "B", str(value).lower()
        if isinstance(value, int):
            return "I", str(value)
        if isinstance(value, float):
            return "F", repr(value)
        return "Z", '"' + value + '"'

    def subscript(self, node):
        index = ast.literal_eval(node.slice)
        if isinstance(node.value, ast.Name) and node.value.id == "grads":
            return "T", f"tmi_grad_or_zeros(g, {index})"
        if isinstance(node.value, ast.Name) and node.value.id == "results":
            self.results.add(index)
            return "T", f"g->results[{index}]"
        kind, c = self.expr(node.value)
        if kind not in "LM":
            self.fail("only grads, results and lists of numbers have elements")
        pointer, length = c.rsplit(", ", 1)
        at = str(index) if index >= 0 else f"{length} - {-index}"
        return {"L": "I", "M": "B"}[kind], f"({pointer})[{at}]"

    def binary(self, node):
        if type(node.op) not in BINARY:
            self.fail("unknown operator")
        name, symbol = BINARY[type(node.op)]
        left, right = self.expr(node.left), self.expr(node.right)
        if left[0] == "T" or right[0] == "T":
            return self.tensor_binary(name, left, right)
        if left[0] == "S" or right[0] == "S" or symbol is None:
            return "S", f"tmi_scalar_{name}({self.coerce(left, 'S')}, {self.coerce(right, 'S')})"
        kind = "F" if "F" in (left[0], right[0]) or name == "div" else "I"
        a, b = (self.coerce(left, "F"), self.coerce(right, "F")) if name == "div" else (left[1], right[1])
        return kind, f"({a} {symbol} {b})"

    def tensor_binary(self, name, left, right):
        if left[0] == "T":
            return self.operator(name, [left, right], {})
        if name in ("add", "mul"):
            return self.operator(name, [right, left], {})
        if name == "sub":
            return self.operator("rsub", [right, left], {})
        if name == "div":
            return self.operator("mul", [self.operator("reciprocal", [right], {}), left], {})
        return self.operator("pow", [left, right], {})

    def unary(self, node):
        kind, c = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return "B", f"!({c})"
        if not isinstance(node.op, ast.USub):
            self.fail("unknown operator")
        if kind == "T":
            return self.operator("neg", [(kind, c)], {})
        return (kind, f"(-{c})") if kind in "IF" else ("S", f"tmi_scalar_neg({c})")

    def compare(self, node):
        name, symbol = COMPARE[type(node.ops[0])] if type(node.ops[0]) in COMPARE else ("is", None)
        left, right = self.expr(node.left), self.expr(node.comparators[0])
        if name == "is":
            test = "==" if isinstance(node.ops[0], ast.Is) else "!="
            return "B", f"({left[1].rsplit(', ', 1)[0] if left[0] in 'LQM' else left[1]} {test} NULL)"
        if "T" in (left[0], right[0]):
            return self.operator(name, [left, right], {})
        return "B", f"({self.coerce(left, 'F')} {symbol} {self.coerce(right, 'F')})" if "S" in left[0] + right[0] else f"({left[1]} {symbol} {right[1]})"

    def conditional(self, node):
        test = self.expr(node.test)
        a, b = self.expr(node.body), self.expr(node.orelse)
        if a[0] != b[0]:
            kind = "T" if "T" in (a[0], b[0]) and "N" in (a[0], b[0]) else "S" if "S" in (a[0], b[0]) else "F"
            a, b = (kind, self.coerce(a, kind)), (kind, self.coerce(b, kind))
        return a[0], f"({self.coerce(test, 'B')} ? {a[1]} : {b[1]})"

    def call(self, node):
        if not isinstance(node.func, ast.Name):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
                kind, c = self.metadata(ast.Attribute(node.func.value, "sizes"))
                pointer, length = c.rsplit(", ", 1)
                return "I", f"tmi_size_at({pointer}, {length}, {self.expr(node.args[0])[1]})"
            self.fail("only functions can be called")
        name = node.func.id
        args = [self.expr(a) for a in node.args]
        kwargs = {k.arg: self.expr(k.value) for k in node.keywords}
        if name == "conj" and args[0][0] == "S":
            return "S", f"tmi_scalar_conj({args[0][1]})"
        if name == "conj":
            return "T", f"tmi_conj_for_grad({args[0][1]})"
        if name == "float":
            return "F", self.coerce(args[0], "F")
        if name in self.groups:
            return self.operator(name, args, kwargs)
        if name.startswith("_"):
            return self.helper(name, args)
        self.fail(f"no operator '{name}'")

    def helper(self, name, args, first=""):
        types = ", ".join(C_TYPE.get(k, "tm_tensor *{n}").format(n=f"p{i}") for i, (k, _) in enumerate(args))
        result = "tm_status " if first else "tm_tensor *"
        given = ", ".join(c for _, c in args)
        self.helpers.add(f"{result}tmi_grad{name}({', '.join(x for x in (first and first[0], types) if x)});")
        return "T", f"tmi_grad{name}({', '.join(x for x in (first and first[1], given) if x)})"

    # -- operators
    def operator(self, name, args, kwargs):
        for op in self.groups.get(name, []):
            filled = self.match(op, args, kwargs)
            if filled is not None:
                if op.result == "tensor":
                    return "T", f"{op.c_name}{self.full(op)}({', '.join(filled)})"
                if op.result == "list":
                    return "P", f"{op.c_name}{self.full(op)}({', '.join(filled)})"
        kinds = ", ".join(k for k, _ in args)
        self.fail(f"no overload of '{name}' takes ({kinds})")

    @staticmethod
    def full(op):
        return "_full" if any(a.default is not None for a in op.args) else ""

    def match(self, op, args, kwargs):
        from opgen_emit import c_default
        positional = list(op.args)
        if len(args) > len(positional):
            return None
        out = []
        for i, arg in enumerate(positional):
            given = args[i] if i < len(args) else kwargs.get(arg.name)
            if given is None:
                if arg.default is None:
                    return None
                out.append(c_default(arg))
                continue
            want = ARG_KIND[arg.type] + ("?" if arg.optional and ARG_KIND[arg.type] in "SIFB" else "")
            value = self.convert(given, want, arg)
            if value is None:
                return None
            out.append(value)
        if any(k not in [a.name for a in positional] for k in kwargs):
            return None
        return out

    def convert(self, given, want, arg):
        """C for `given` as a parameter of kind `want`, or None if it does not fit."""
        kind, c = given
        if kind == want:
            return c
        if kind == "N":
            return {"L": "NULL, 0", "Q": "NULL, 0", "D": "TM_DTYPE_DEFAULT", "V": "TM_NO_DEVICE"}.get(want, "NULL") if arg.optional else None
        if want == "S" and kind in "IFB":
            return self.coerce(given, "S")
        if want == "F" and kind in "I":
            return c
        if want == "I" and kind == "B":
            return c
        if want == "L" and kind == "I":
            return f"(tm_int[]){{{c}}}, 1"
        if want == "M" and kind == "M":
            return c
        if want.endswith("?"):
            inner = self.convert(given, want[0], arg)
            ctype = {"S": "tm_scalar", "I": "tm_int", "F": "double", "B": "bool"}[want[0]]
            return None if inner is None else f"(const {ctype}[]){{{inner}}}"
        return None

    def coerce(self, given, kind):
        have, c = given
        if have == kind:
            return c
        if kind == "S":
            return {"I": f"tm_i64({c})", "F": f"tm_f64({c})", "B": f"tm_bool({c})"}.get(have) or self.fail(f"{have} is no number")
        if kind == "F":
            return f"tmi_scalar_f64({c})" if have == "S" else f"(double)({c})"
        if kind == "T" and have == "N":
            return "NULL"
        if kind in ("I", "B") and have in ("I", "B", "F"):
            return c
        if kind == "B" and have == "S":
            return f"(tmi_scalar_f64({c}) != 0)"
        if kind == "B" and have in ("T", "L", "Q"):
            return f"({c.rsplit(', ', 1)[0]} != NULL)"
        self.fail(f"a {have} where a {kind} is needed")


def emit_grads(ops, head):
    """({full name: Gradients}, helper prototypes, text of op_grads.c)"""
    groups = {}
    for op in ops:
        groups.setdefault(op.name, []).append(op)
    lines = [head, "#include <math.h>\n", '#include "op_bodies.h"\n#include "ops/boxing.h"\n', '#pragma GCC diagnostic ignored "-Wunused-variable"\n']
    facts, helpers = {}, set()
    for op in ops:
        if not op.grads:
            continue
        text, facts[op.full_name], more = gradient_function(op, groups)
        helpers |= more
        lines.append(text)
    return facts, helpers, "\n".join(lines)


def gradient_function(op, groups):
    body, mask, helpers = [], 0, set()
    save_args, save_results = ["0"] * len(op.args), ["0"] * len(op.args)
    uses_needs = False
    for names, text, where in op.grads:
        formula = Formula(op, groups, text, where)
        indices = [op.arg_index(n) for n in names]
        code = joint(op, formula, names, indices) if len(names) > 1 else single(op, formula, indices[0])
        body.append(code)
        uses_needs |= "needs" in code and len(names) == 1
        helpers |= formula.helpers
        saved = sum(1 << i for i in formula.args)
        results = sum(1 << i for i in formula.results)
        for i in indices:
            mask |= 1 << i
            save_args[i], save_results[i] = f"0x{saved:x}u", f"0x{results:x}u"
    head = f"tm_status tmi_gradients_of_{op.ident}(tmi_grad_call *g);\ntm_status tmi_gradients_of_{op.ident}(tmi_grad_call *g)\n{{\n"
    flags = ""
    if uses_needs:
        flags = "    bool needs[] = {" + ", ".join(f"(g->needs >> {i}) & 1" for i in range(len(op.args))) + "};\n"
    return head + flags + "\n".join(body) + "\n    return tm_error_status();\n}\n", Gradients(f"0x{mask:x}u", save_args, save_results), helpers


def single(op, formula, i):
    node = formula.parse()
    if op.args[i].type in ("TENSORS", "OPT_TENSORS"):
        return list_gradient(op, formula, i, node)
    kind, c = formula.expr(node)
    if kind == "N":
        return f"    /* {op.args[i].name}: no gradient */"
    if kind != "T":
        formula.fail("must give a tensor")
    return f"    if (g->needs & (1u << {i}))\n        g->out[{i}] = {c};"


def list_gradient(op, formula, i, node):
    """A Tensor[] input: the helper fills one entry per element."""
    if not (isinstance(node, ast.Call) and node.func.id.startswith("_")):
        formula.fail("the gradient of a list comes from a helper")
    args = [formula.expr(a) for a in node.args]
    first = ("tm_tensor **out, int64_t n, const tmi_grad_call *g, int arg", f"g->out_lists[{i}], (int64_t)g->args[{i}].len, g, {i}")
    _, c = formula.helper(node.func.id, args, first)
    return f"    if (g->needs & (1u << {i}))\n        TMI_TRY({c});"


def joint(op, formula, names, indices):
    """Several inputs from one call: an operator with that many results, or a helper that gets an array to fill."""
    node = formula.parse()
    if not isinstance(node, ast.Call):
        formula.fail("several inputs need one call that computes them")
    name, args = node.func.id, [formula.expr(a) for a in node.args]
    test = " || ".join(f"(g->needs & (1u << {i}))" for i in indices)
    needs = "bool needs[] = {" + ", ".join(f"(g->needs >> {i}) & 1" for i in indices) + "};"
    args = [("M", f"needs, {len(indices)}") if k == "M" and c.startswith("needs,") else (k, c) for k, c in args]
    fill = "\n        ".join(f"if (needs[{j}]) g->out[{i}] = o[{j}];" for j, i in enumerate(indices))
    for target in formula.groups.get(name, []):
        filled = formula.match(target, args, {})
        if filled is not None and target.result == "tensors" and len(target.outs) == len(indices):
            outs = ", ".join(f"&o[{j}]" for j in range(len(indices)))
            call = f"{target.c_name}{formula.full(target)}({', '.join(filled + [outs])})"
            break
    else:
        if name in formula.groups:
            formula.fail(f"no overload of '{name}' fits the {len(indices)} inputs")
        _, call = formula.helper(name, args, ("tm_tensor **out", "o"))
    return (f"    if ({test}) {{\n        {needs}\n        tm_tensor *o[{len(indices)}] = {{NULL}};\n        (void)needs;\n"
            f"        TMI_TRY({call});\n        {fill}\n    }}")
