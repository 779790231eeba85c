"""The README's programs run as they stand there."""
import os
import re
import shutil
import subprocess
import sys

import pytest
import taimatsu


def block(root, language):
    with open(os.path.join(root, "README.md"), encoding="utf-8") as f:
        return re.search(rf"```{language}\n(.*?)```", f.read(), re.S)[1]


def build_folder():
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(taimatsu.__file__))))


def test_python_program(root, tmp_path):
    path = tmp_path / "first.py"
    path.write_text(block(root, "python"))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) < 1e-2
    assert "requires_grad=True" in done.stdout


def test_c_program(root, tmp_path):
    build, compiler = build_folder(), shutil.which("gcc") or shutil.which("cc")
    if not os.path.exists(os.path.join(build, "libtaimatsu.so")) or compiler is None:
        pytest.skip("skipped: no build folder or no compiler here")
    source, program = tmp_path / "first.c", tmp_path / "first"
    source.write_text(block(root, "c"))
    subprocess.run([compiler, str(source), "-Wall", "-Werror", f"-I{root}/include", f"-I{build}/include", f"-L{build}", "-ltaimatsu",
                    f"-Wl,-rpath,{build}", "-o", str(program)], check=True)
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    numbers = [float(x) for x in done.stdout.split()]
    assert numbers == pytest.approx([0.927671, 1.09078, 1.08810, 1.05266], abs=2e-5)   # sigmoid(x) + x sigmoid'(x)


def test_links_lead_somewhere(root):
    for name in ["README.md"] + [os.path.join("docs", n) for n in os.listdir(os.path.join(root, "docs")) if n.endswith(".md")]:
        with open(os.path.join(root, name), encoding="utf-8") as f:
            for target in re.findall(r"\]\(([^)#:]+)\)", f.read()):
                assert os.path.exists(os.path.join(root, os.path.dirname(name), target)), f"{name}: {target}"
