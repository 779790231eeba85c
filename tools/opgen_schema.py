"""Operator blocks: the schema notation and the lines under it, parsed and checked."""
import os
import re
from dataclasses import dataclass, field

# schema type -> (tag of tmi_arg_type, C parameter form). Forms: see C_PARAMS in opgen_emit.
TYPES = {
    "Tensor": "TENSOR", "Tensor[]": "TENSORS", "Tensor?[]": "OPT_TENSORS", "int": "INT", "SymInt": "INT", "int[]": "INTS",
    "SymInt[]": "INTS", "bool": "BOOL", "bool[]": "BOOLS", "float": "FLOAT", "float[]": "FLOATS", "Scalar": "SCALAR", "Scalar[]": "SCALARS",
    "ScalarType": "DTYPE", "Device": "DEVICE", "Layout": "LAYOUT", "MemoryFormat": "FORMAT", "str": "STR", "Generator": "GENERATOR",
}
LINES = {"pointwise", "shape", "type", "kernel", "body", "view", "grad", "nondiff", "effects", "mutates", "forms", "python", "node",
         "samples", "doc", "alias", "flags"}
NAMESPACES = {"method", "function", "nn", "linalg", "special", "fft", "none"}
FORMS = {"inplace", "out"}
FLAGS = {"factory", "mixed_device", "multi_view", "internal", "over_self", "exact_out"}


class BlockError(Exception):
    """A block that cannot be understood; the message names file and line."""


@dataclass
class Arg:
    name: str
    type: str                    # tag of tmi_arg_type
    optional: bool = False
    default: str | None = None   # schema text
    kwarg_only: bool = False
    list_size: int = 0
    written: bool = False        # Tensor(a!)

    @property
    def is_tensor(self):
        return self.type in ("TENSOR", "TENSORS", "OPT_TENSORS")


@dataclass
class Op:
    name: str
    overload: str
    args: list
    outs: list                   # names or None
    result: str                  # tensor, tensors (several), list, scalar, none
    where: str
    lines: dict = field(default_factory=dict)
    grads: list = field(default_factory=list)    # (names, formula text, where)
    grad_none: bool = False
    id: int = -1

    @property
    def full_name(self):
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def ident(self):
        return f"{self.name}_{self.overload}" if self.overload else self.name

    @property
    def inplace_only(self):
        return self.name.endswith("_") and not self.name.endswith("__") and self.result == "tensor"

    @property
    def forms(self):
        return ["inplace"] if self.inplace_only else self.lines.get("forms", "").split()

    @property
    def python(self):
        default = "method function" if self.args and self.args[0].name == "self" else "function"
        if self.name.startswith("_"):
            default = "function"
        if self.inplace_only:
            default = "method"
        return self.lines.get("python", default).split()

    def arg(self, name):
        return next((a for a in self.args if a.name == name), None)

    def arg_index(self, name):
        return next(i for i, a in enumerate(self.args) if a.name == name)

    @property
    def transparent(self):
        return "body" in self.lines and not self.grads and not self.grad_none and "kernel" not in self.lines and "pointwise" not in self.lines

    def fail(self, text):
        raise BlockError(f"{self.where}: {self.full_name}: {text}")

    def facts(self):
        return {"name": self.name, "overload": self.overload, "where": self.where, "result": self.result, "outs": self.outs,
                "forms": self.forms, "python": self.python, "differentiable": bool(self.grads) or self.transparent,
                "samples": self.lines.get("samples", ""), "doc": self.lines.get("doc", ""), "alias": self.lines.get("alias", "").split(),
                "args": [{"name": a.name, "type": a.type, "optional": a.optional, "default": a.default, "kwarg_only": a.kwarg_only}
                         for a in self.args]}


def split_top(text, separator=","):
    """Split at separators outside brackets and quotes."""
    parts, depth, quote, start = [], 0, None, 0
    for i, c in enumerate(text):
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if p.strip()]


def parse_type(text, where):
    """'int[2]?' -> (tag, optional, list_size, written)"""
    written = "!" in text
    text = re.sub(r"\([a-z][^)]*\)", "", text)
    size = 0
    optional = text.endswith("?")
    if optional:
        text = text[:-1]
    found = re.fullmatch(r"(.*)\[(\d+)\]", text)
    if found:
        text, size = found[1] + "[]", int(found[2])
    if text not in TYPES:
        raise BlockError(f"{where}: unknown type '{text}'")
    return TYPES[text], optional, size, written


def parse_args(text, where):
    args, kwarg_only = [], False
    for part in split_top(text):
        if part == "*":
            kwarg_only = True
            continue
        found = re.fullmatch(r"(\S+)\s+(\w+)\s*(?:=\s*(.*))?", part)
        if not found:
            raise BlockError(f"{where}: cannot read argument '{part}'")
        tag, optional, size, written = parse_type(found[1], where)
        args.append(Arg(found[2], tag, optional, found[3], kwarg_only, size, written))
    return args


def parse_result(text, where):
    text = re.sub(r"\([a-z]\s*(?:!|->|\|)?[^)]*\)", "", text) if not text.startswith("(Tensor") and text != "()" else re.sub(r"\(([a-z])!?\)", "", text)
    if text == "()":
        return [], "none"
    if text.startswith("("):
        names = []
        for part in split_top(text[1:-1]):
            words = part.split()
            if words[0] != "Tensor":
                raise BlockError(f"{where}: results must be tensors: '{part}'")
            names.append(words[1] if len(words) > 1 else None)
        return names, "tensors"
    words = text.split()
    if words[0] == "Tensor":
        return [words[1] if len(words) > 1 else None], "tensor"
    if words[0] == "Tensor[]":
        return [], "list"
    if words[0] in ("bool", "int", "float", "Scalar"):
        return [], "scalar"
    raise BlockError(f"{where}: unknown result '{text}'")


def read_blocks(paths):
    """All operators of the given files, checked, with ids in a stable order."""
    ops = []
    for path in paths:
        ops += read_file(path)
    ops.sort(key=lambda op: (op.name, op.overload))
    seen = {}
    for i, op in enumerate(ops):
        if op.full_name in seen:
            op.fail(f"already defined at {seen[op.full_name]}")
        seen[op.full_name] = op.where
        op.id = i
        check(op)
    return ops


def read_file(path):
    ops = []
    op, key, base = None, None, os.path.basename(path)
    with open(path, encoding="utf-8") as f:
        text = f.read().splitlines()
    for number, raw in enumerate(text, 1):
        where = f"{base}:{number}"
        line = raw.split(" #")[0].rstrip() if not raw.lstrip().startswith("doc:") else raw.rstrip()
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(line) - len(line.lstrip())
        if indent == 0:
            op, key = parse_head(line, where), None
            ops.append(op)
        elif op is None:
            raise BlockError(f"{where}: a line outside a block")
        elif indent <= 2:
            key = parse_line(op, line.strip(), where)
        elif key == "grad":
            add_grad(op, line.strip(), where)
        elif key:
            op.lines[key] = (op.lines[key] + " " + line.strip()).strip()
    return ops


def parse_head(line, where):
    found = re.fullmatch(r"op\s+(\w+)(?:\.(\w+))?\((.*)\)\s*->\s*(.+)", line)
    if not found:
        raise BlockError(f"{where}: expected 'op name.overload(args) -> result'")
    args = parse_args(re.sub(r"\(a\s*->\s*\*\)", "", found[3]), where)
    outs, result = parse_result(found[4].strip(), where)
    return Op(found[1], found[2] or "", args, outs, result, where)


def parse_line(op, line, where):
    key, _, value = line.partition(":")
    key, value = key.strip(), value.strip()
    if key not in LINES:
        raise BlockError(f"{where}: unknown line '{key}:'")
    if key == "grad":
        if value == "none":
            op.grad_none = True
        elif value:
            add_grad(op, value, where)
        return key
    if key in op.lines:
        raise BlockError(f"{where}: '{key}:' stands twice")
    op.lines[key] = value
    return key


def add_grad(op, text, where):
    found = re.match(r"((?:\w+)(?:\s*,\s*\w+)*)\s*:\s*(.*)", text)
    if found and all(op.arg(n.strip()) for n in found[1].split(",")):
        op.grads.append(([n.strip() for n in found[1].split(",")], found[2], where))
    elif op.grads:
        names, formula, first = op.grads[-1]
        op.grads[-1] = (names, formula + " " + text, first)
    else:
        raise BlockError(f"{where}: {op.full_name}: grad line must start with an argument's name: '{text}'")


def check(op):
    for space in op.python:
        if space not in NAMESPACES:
            op.fail(f"unknown python: word '{space}'")
    for form in op.forms:
        if form not in FORMS:
            op.fail(f"unknown form '{form}'")
    for flag in op.lines.get("flags", "").split():
        if flag not in FLAGS:
            op.fail(f"unknown flag '{flag}'")
    if not {"pointwise", "kernel", "body", "view"} & set(op.lines):
        op.fail("needs one of pointwise:, kernel:, body:, view")
    if "kernel" in op.lines and "shape" not in op.lines and op.result in ("tensor", "tensors"):
        op.fail("a kernel needs a shape: rule")
    if op.grads and op.result == "scalar":
        op.fail("a number has no gradient")
