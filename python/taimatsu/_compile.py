"""torch.compile. Arguments are checked as PyTorch checks them; what comes back runs eagerly. Capture comes later."""
import functools

from .nn import Module

_MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
_BACKENDS = ("cudagraphs", "inductor", "openxla", "tvm", "eager", "eager_noexcept", "eager_debug", "aot_eager",
             "aot_eager_decomp_partition", "aot_eager_default_partitioner")


def _check(mode, options, backend):
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if options is not None and not isinstance(options, dict):
        raise RuntimeError(f"options must be a dict, got {type(options)}")
    if backend is not None and not callable(backend) and not isinstance(backend, str):
        raise RuntimeError(f"backend must be a name or a function, got {type(backend)}")


class OptimizedModule(Module):
    """A compiled module; the original one is ``_orig_mod``."""

    def __init__(self, mod):
        super().__init__()
        self._orig_mod = mod
        self.training = mod.training

    def forward(self, *args, **kwargs):
        return self._orig_mod(*args, **kwargs)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)


class InvalidBackend(RuntimeError):
    def __init__(self, name):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


def compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None, name=None, disable=False,
            recompile_limit=None, isolate_recompiles=False, shapes_spec=None):
    """A function or module that computes what ``model`` computes. It runs eagerly for now; the arguments are checked and kept."""
    _check(mode, options, backend)
    if model is None:
        return functools.partial(compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name,
                                 disable=disable, recompile_limit=recompile_limit, isolate_recompiles=isolate_recompiles,
                                 shapes_spec=shapes_spec)
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if isinstance(model, Module):
        return OptimizedModule(model)
    known = backend is None or callable(backend) or backend in _BACKENDS

    @functools.wraps(model)
    def compiled(*args, **kwargs):
        if not known:
            raise InvalidBackend(backend)
        return model(*args, **kwargs)

    compiled._torchdynamo_orig_callable = model
    return compiled
