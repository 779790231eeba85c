"""A checkpoint write that is killed leaves the old file whole."""
import os
import subprocess
import sys

KILLED = """
import os, sys
sys.path.insert(0, "examples/gpt")
import taimatsu
taimatsu.install_alias()
import torch
from model import GPT, Config, save_checkpoint
path = sys.argv[1]
torch.manual_seed(int(sys.argv[2]))
model = GPT(Config(layers=1, heads=1, dim=16, context=8))
if sys.argv[3] == "kill":
    real = os.fsync
    os.fsync = lambda fd: os.kill(os.getpid(), 9)
save_checkpoint(path, model)
print("saved")
"""


def test_killed_write_leaves_the_old_file(root, tmp_path):
    path = str(tmp_path / "model.pt")

    def run(seed, how):
        return subprocess.run([sys.executable, "-c", KILLED, path, str(seed), how], cwd=root, capture_output=True, text=True)

    first = run(1, "whole")
    assert first.stdout == "saved\n", first.stderr
    before = open(path, "rb").read()
    killed = run(2, "kill")
    assert killed.returncode == -9, killed.stderr
    assert open(path, "rb").read() == before
    assert run(2, "whole").stdout == "saved\n"
    assert open(path, "rb").read() != before
    assert os.listdir(tmp_path) == ["model.pt"]
