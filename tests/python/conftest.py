"""Shared fixtures. Tests that compare with PyTorch run it in its own interpreter, never beside the product."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def find_torch_python():
    """An interpreter that has PyTorch: $TORCH_PYTHON, or .venv-torch; None where there is none."""
    for path in (os.environ.get("TORCH_PYTHON"), os.path.join(ROOT, ".venv-torch", "bin", "python")):
        if path and os.path.exists(path):
            return path
    return None


@pytest.fixture(scope="session")
def torch_python():
    path = find_torch_python()
    if path is None:
        pytest.skip("skipped: no torch (make conformance puts one into .venv-torch)")
    return path


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture
def run_torch(torch_python):
    """run_torch(arguments...) runs PyTorch's interpreter and returns what it printed."""
    def run(*arguments, **options):
        env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_PRELOAD")}
        done = subprocess.run([torch_python, *arguments], capture_output=True, text=True, cwd=ROOT, env=env, timeout=600, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


@pytest.fixture
def run_taimatsu():
    """run_taimatsu(arguments...) runs `python -m taimatsu` on the build under test and returns what it printed."""
    def run(*arguments, **options):
        done = subprocess.run([sys.executable, "-m", "taimatsu", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=600, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout
    return run


def pytest_collection_modifyitems(config, items):
    """TAIMATSU_REDUCED (sanitizer runs): of long parameter lists every tenth row, and nothing that starts PyTorch."""
    if not os.environ.get("TAIMATSU_REDUCED"):
        return
    rows, kept, dropped = {}, [], []
    for item in items:
        rows.setdefault(getattr(item, "originalname", item.name), []).append(item)
    for group in rows.values():
        for number, item in enumerate(group):
            slow = {"torch_python", "run_torch"} & set(getattr(item, "fixturenames", ()))
            (dropped if slow or (len(group) > 20 and number % 10) else kept).append(item)
    order = {id(item): number for number, item in enumerate(items)}
    items[:] = sorted(kept, key=lambda item: order[id(item)])
    config.hook.pytest_deselected(items=dropped)
