"""Nested containers as a list of leaves and a description, and back."""
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

__all__ = ["PyTree", "TreeSpec", "LeafSpec", "register_pytree_node", "tree_flatten", "tree_unflatten", "tree_iter", "tree_leaves",
           "tree_structure", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_all", "tree_any", "tree_all_only",
           "tree_any_only", "treespec_pprint"]

PyTree = object
NodeDef = namedtuple("NodeDef", ["type", "flatten_fn", "unflatten_fn"])
SUPPORTED_NODES = {}


def register_pytree_node(cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None,
                         from_dumpable_context=None, flatten_with_keys_fn=None):
    """Make instances of ``cls`` inner nodes: flatten gives (children, context), unflatten(children, context) the object."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _dict_flatten(d):
    return list(d.values()), list(d.keys())


register_pytree_node(tuple, lambda t: (list(t), None), lambda v, _: tuple(v))
register_pytree_node(list, lambda t: (t, None), lambda v, _: list(v))
register_pytree_node(dict, _dict_flatten, lambda v, keys: dict(zip(keys, v)))
register_pytree_node(OrderedDict, _dict_flatten, lambda v, keys: OrderedDict(zip(keys, v)))
register_pytree_node(defaultdict, lambda d: (list(d.values()), [d.default_factory, list(d.keys())]),
                     lambda v, c: defaultdict(c[0], zip(c[1], v)))
register_pytree_node(deque, lambda d: (list(d), d.maxlen), lambda v, maxlen: deque(v, maxlen=maxlen))
register_pytree_node(namedtuple, lambda t: (list(t), type(t)), lambda v, kind: kind(*v))


def _is_namedtuple(tree):
    return isinstance(tree, tuple) and hasattr(type(tree), "_fields")


def _node_type(tree):
    return namedtuple if _is_namedtuple(tree) and type(tree) not in SUPPORTED_NODES else type(tree)


def _is_leaf(tree, is_leaf=None):
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


@dataclass(frozen=True)
class TreeSpec:
    """The shape of a tree: the type of its root, what rebuilding needs, and the shapes of its children."""

    type: object
    context: object
    children_specs: list

    @property
    def num_leaves(self):
        return 1 if self.type is None else sum(c.num_leaves for c in self.children_specs)

    @property
    def num_nodes(self):
        return 1 + sum(c.num_nodes for c in self.children_specs)

    @property
    def num_children(self):
        return len(self.children_specs)

    def is_leaf(self):
        return self.type is None

    def __repr__(self):
        if self.type is None:
            return "*"
        inner = ", ".join(map(repr, self.children_specs))
        name = "namedtuple" if self.type is namedtuple else self.type.__name__
        return f"TreeSpec({name}, {self.context}, [{inner}])"

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree):
        """The subtrees of ``tree`` at the places of this shape's leaves."""
        out = []
        _flatten_up_to(self, tree, out)
        return out


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    def __init__(self):
        super().__init__(None, None, [])

    def __repr__(self):
        return "*"


_LEAF = LeafSpec()


def _flatten_up_to(spec, tree, out):
    if spec.is_leaf():
        out.append(tree)
        return
    if _node_type(tree) is not spec.type:
        raise ValueError(f"Type mismatch; expected {spec.type!r}, but got {type(tree)!r}.")
    children, context = SUPPORTED_NODES[spec.type].flatten_fn(tree)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if context != spec.context:
        raise ValueError(f"Node context mismatch; expected {spec.context!r}, but got {context!r}.")
    for s, child in zip(spec.children_specs, children):
        _flatten_up_to(s, child, out)


def _flatten(tree, leaves, is_leaf):
    if _is_leaf(tree, is_leaf):
        leaves.append(tree)
        return _LEAF
    kind = _node_type(tree)
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """(leaves, TreeSpec)."""
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of this shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but got item of type {type(treespec)}.")
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
                         f"{treespec.num_leaves} items ({treespec}).")
    values = iter(leaves)

    def build(spec):
        if spec.is_leaf():
            return next(values)
        return SUPPORTED_NODES[spec.type].unflatten_fn([build(c) for c in spec.children_specs], spec.context)

    return build(treespec)


def tree_iter(tree, is_leaf=None):
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of ``func(leaf, ...)``."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(spec.flatten_up_to(r) for r in rests)]
    return tree_unflatten([func(*row) for row in zip(*columns)], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` on every leaf; returns the tree as it was."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests)):
        func(*row)
    return tree


def map_only(types, func):
    """``func`` for instances of ``types``; other values pass."""
    match = types if callable(types) and not isinstance(types, type) else lambda x: isinstance(x, types)
    return lambda x: func(x) if match(x) else x


def tree_map_only(types, func, tree, is_leaf=None):
    return tree_map(map_only(types, func), tree, is_leaf=is_leaf)


def tree_map_only_(types, func, tree, is_leaf=None):
    return tree_map_(map_only(types, func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(types, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, types))


def tree_any_only(types, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, types))


def treespec_pprint(treespec):
    """The shape with * for leaves."""
    class _Star:
        def __repr__(self):
            return "*"

    return repr(tree_unflatten([_Star() for _ in range(treespec.num_leaves)], treespec))
