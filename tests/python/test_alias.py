"""The alias: unmodified PyTorch programs run on Taimatsu, in this process and in child processes."""
import subprocess
import sys

import pytest

PROGRAM = """
import importlib.metadata
import os
import subprocess
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim.lr_scheduler
from torch import Tensor
from torch.nn.modules.linear import Linear
from torch.utils.data import DataLoader

assert F is torch.nn.functional is sys.modules["torch.nn.functional"]
assert Linear is nn.Linear and isinstance(torch.ones(1), Tensor)
assert torch.__version__.startswith("2.13.0")
assert importlib.metadata.version("torch").startswith("2.13.0")
assert nn.Linear.__module__ == "torch.nn.modules.linear", nn.Linear.__module__
assert sys.argv[1:] == ["--flag", "x"]
try:
    import torch.no_such_module
except ModuleNotFoundError as error:
    assert error.name == "torch.no_such_module", error.name
else:
    raise AssertionError
if not os.environ.get("CHILD"):
    code = "import torch; print(torch.__version__)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "CHILD": "1"}).stdout.strip())
print("done", torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)
"""


def test_run(run_taimatsu, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    assert run_taimatsu("run", str(path), "--flag", "x").splitlines() == ["2.13.0+taimatsu", "done torch.Size([1, 2])"]


def test_run_passes_the_exit_status_on(tmp_path):
    done = subprocess.run([sys.executable, "-m", "taimatsu", "run", "-c", "import torch, sys; sys.exit(7)"], capture_output=True)
    assert done.returncode == 7
    done = subprocess.run([sys.executable, "-m", "taimatsu", "run", "absent.py"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "taimatsu run: no such file: absent.py\n"


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_install_alias_after_import():
    assert python("import taimatsu; taimatsu.install_alias(); import torch, torch.nn.functional as F; import taimatsu.nn.functional as G; "
                  "print(torch is taimatsu, F is G, torch.nn.Linear is taimatsu.nn.Linear)") == "True True True\n"


@pytest.mark.parametrize("first", ["torch", "taimatsu"])
def test_both_names_are_one_package(first):
    other = {"torch": "taimatsu", "taimatsu": "torch"}[first]
    assert python("import sys; from taimatsu._alias import install_alias; install_alias(); "
                  f"import {first}, {other}; print(torch.Tensor is taimatsu.Tensor, torch.nn is taimatsu.nn)") == "True True\n"


def test_pickles_of_modules_name_torch(tmp_path):
    """A module saved by a program that runs under the alias loads in PyTorch's terms: its classes lie in torch.nn."""
    path = str(tmp_path / "m.pt")
    python(f"import taimatsu; taimatsu.install_alias(); import torch; torch.save(torch.nn.Linear(2, 2), {path!r})")
    assert b"torch.nn.modules.linear\nLinear" in open(path, "rb").read().replace(b"ctaimatsu.", b"ctorch.")
    assert python(f"import taimatsu as t; print(t.load({path!r}, weights_only=False))") == "Linear(in_features=2, out_features=2, bias=True)\n"


def test_import_is_light():
    code = ("import sys, resource; a = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; import taimatsu; "
            "print('numpy' in sys.modules, 'taimatsu.optim' in sys.modules, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - a) < 40000)")
    assert python(code) == "False False True\n"


def test_collect_env(run_taimatsu):
    assert "2.13.0+taimatsu" in run_taimatsu("collect-env")
