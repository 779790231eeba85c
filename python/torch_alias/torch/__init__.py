"""Makes ``import torch`` mean Taimatsu. On the import path only on request: ``taimatsu run``, or ``taimatsu.install_alias()``.

Imported before taimatsu, this module becomes the package itself: its files are loaded under the name torch, so that classes say
torch.nn.modules.linear.Linear, and ``taimatsu`` is a second name for the same modules. Imported after taimatsu, it is a second name for
what is there already.
"""
import importlib
import importlib.machinery
import importlib.util
import os
import sys


class _OtherName:
    """Finder and loader: modules below ``name`` are the modules below ``real``, the very same objects."""

    def __init__(self, name, real):
        self.name, self.real = name, real

    def find_spec(self, fullname, path=None, target=None):
        if fullname != self.name and not fullname.startswith(self.name + "."):
            return None
        real = self.real + fullname[len(self.name):]
        if real not in sys.modules:
            try:
                if importlib.util.find_spec(real) is None:
                    return None
            except ModuleNotFoundError:
                return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        module = importlib.import_module(self.real + spec.name[len(self.name):])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module):
        """Nothing to run; the import system has just overwritten the module's own spec."""
        module.__spec__ = importlib.util.find_spec(module.__name__) if module.__spec__ is None else module.__spec__.loader_state


def _package_folder():
    """Where taimatsu's files are: beside this folder, or around it when installed."""
    above = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    beside = os.path.join(os.path.dirname(above), "taimatsu")
    return beside if os.path.exists(os.path.join(beside, "__init__.py")) else os.path.dirname(above)


def _become(module, folder):
    """Run the package's __init__ in this module, under the name torch."""
    path = os.path.join(folder, "__init__.py")
    module.__file__ = path
    module.__path__ = [folder]
    module.__doc__ = None
    loader = importlib.machinery.SourceFileLoader("torch", path)
    spec = importlib.util.spec_from_file_location("torch", path, loader=loader, submodule_search_locations=[folder])
    module.__spec__, module.__loader__ = spec, loader
    code = loader.get_code("torch")
    sys.modules["taimatsu"] = module
    for name in list(vars(module)):   # from here on nothing of this file is left
        if not name.startswith("__"):
            delattr(module, name)
    exec(code, vars(module))


if "taimatsu" in sys.modules:
    sys.modules["torch"] = sys.modules["taimatsu"]
    sys.meta_path.insert(0, _OtherName("torch", "taimatsu"))
else:
    sys.meta_path.insert(0, _OtherName("taimatsu", "torch"))
    _become(sys.modules["torch"], _package_folder())
