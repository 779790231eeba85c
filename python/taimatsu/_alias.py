"""Switching the alias on: ``import torch`` then means this package."""
import importlib
import os
import sys


def alias_folder():
    """The folder that holds the alias package: beside the package in a checkout, inside it when installed."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.path.join(os.path.dirname(here), "torch_alias"), os.path.join(here, "torch_alias")):
        if os.path.isdir(folder):
            return folder
    raise ImportError("the folder torch_alias is missing from this installation")


def alias_environment(environ):
    """A copy of ``environ`` in which Python programs get the alias: PYTHONPATH starts with it and with this package."""
    environ = dict(environ)
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = [alias_folder(), package]
    paths += [p for p in environ.get("PYTHONPATH", "").split(os.pathsep) if p and p not in paths]
    environ["PYTHONPATH"] = os.pathsep.join(paths)
    return environ


def install_alias():
    """Make ``import torch`` mean this package, here and in child processes. PyTorch itself must not have been imported."""
    found = sys.modules.get("torch")
    ours = sys.modules[__name__.partition(".")[0]]
    if found is ours:
        return
    if found is not None:
        raise ImportError("torch has been imported already; install_alias() must come first")
    folder = alias_folder()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = alias_environment(os.environ)["PYTHONPATH"]
    importlib.invalidate_caches()
    importlib.import_module("torch")
