"""The tree's own checks find what they are for."""
import os
import runpy
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def small_tree(root, tmp_path):
    """A copy of the check beside a tree of its own."""
    (tmp_path / "tools").mkdir()
    shutil.copy(os.path.join(root, "tools", "check_layers.py"), tmp_path / "tools")

    def check(**files):
        for path, text in files.items():
            path = tmp_path / path.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, str(tmp_path / "tools" / "check_layers.py")], capture_output=True, text=True)
        return done.returncode, done.stdout
    return check


def test_lower_layers_and_equals_may_be_included(small_tree):
    status, out = small_tree(src__core__a_dot_c='#include "base/pool.h"\n#include "b.h"\n#include <stdio.h>\n#include "taimatsu/tensor.h"\n')
    assert status == 0, out


@pytest.mark.parametrize("line", ['#include "core/x.h"', '#include "ops/op.h"', '#include "taimatsu/tensor.h"', '#include <taimatsu/nn.h>',
                                  '#  include "../core/x.h"', '#include "ops.h"', "#include <Python.h>"])
def test_upward_includes_are_found(small_tree, line):
    status, out = small_tree(src__base__a_dot_c=line + "\n")
    assert status == 1 and "src/base/a.c" in out


def test_repeated_names_are_found(small_tree):
    status, out = small_tree(src__base__a_dot_c="", src__cpu__a_dot_c="")
    assert status == 1 and "a.c" in out


def test_tap_counting(root):
    count = runpy.run_path(os.path.join(root, "tools", "run_tests.py"), run_name="loaded")["count_tap"]
    assert count("1..5\nok 1 - a\nnot ok 2 - b\nok 3 - c # SKIP why\n# ok 9\nok 4 - d\n") == (2, 1, 1, 5)
    assert count("") == (0, 0, 0, None)
