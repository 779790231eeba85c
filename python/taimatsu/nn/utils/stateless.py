"""Calling a module with other parameters than its own."""
import contextlib


def _owners(module, names):
    """name -> (module that holds it, its dictionary, last part of the name), for parameters and buffers."""
    found = {}
    for path, sub in module.named_modules(remove_duplicate=False):
        for held in (sub._parameters, sub._buffers):
            for name in held:
                found[f"{path}.{name}" if path else name] = (held, name)
    for name in names:
        if name not in found:
            raise RuntimeError(f"Unexpected key(s): {name}.")
    return found


def _with_ties(module, values):
    """``values`` extended to the other names of tied parameters."""
    names = {}
    for kind in (module.named_parameters, module.named_buffers):
        for name, tensor in kind(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    extended = dict(values)
    for group in names.values():
        given = [n for n in group if n in values]
        if given and len({id(values[n]) for n in given}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using tie_weights=False")
        for name in group if given else ():
            extended[name] = values[given[0]]
    return extended


@contextlib.contextmanager
def _replaced(module, values):
    owners = _owners(module, values)
    before = {}
    try:
        for name, value in values.items():
            held, key = owners[name]
            before[name] = held[key]
            held[key] = value
        yield
    finally:
        for name, value in before.items():
            held, key = owners[name]
            held[key] = value


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """``module(*args, **kwargs)`` with the given parameters and buffers in the place of its own."""
    if isinstance(parameter_and_buffer_dicts, dict):
        values = parameter_and_buffer_dicts
    else:
        values = {}
        for d in parameter_and_buffer_dicts:
            repeated = values.keys() & d.keys()
            if repeated:
                raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
            values.update(d)
    if strict:
        own = {n for n, _ in module.named_parameters()} | {n for n, _ in module.named_buffers()}
        missing = own - values.keys()
        if missing:
            raise RuntimeError(f"Error(s) in strict mode: Missing key(s): {', '.join(map(repr, sorted(missing)))}.")
    if tie_weights:
        values = _with_ties(module, values)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, values):
        return module(*args, **(kwargs or {}))
