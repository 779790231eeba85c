"""Same seed, same loss curve: the example trains on Taimatsu as on PyTorch."""
import os
import signal
import subprocess
import sys
import time

import pytest

ARGUMENTS = ["examples/gpt/train.py", "--seed", "7", "--layers", "3", "--heads", "4", "--dim", "64", "--context", "64", "--batch", "8",
             "--lr", "1e-3", "--warmup", "20", "--sample", "0", "--eval-batches", "0", "--corpus-bytes", "2000000"]


def losses_of(run, prefix, tmp_path, name, *more):
    path = tmp_path / name
    run(*prefix, *ARGUMENTS, "--log-losses", str(path), *more)
    return [float(line) for line in path.read_text().split()]


def spread(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def test_same_losses_for_50_steps(run_torch, run_taimatsu, tmp_path):
    ours = losses_of(run_taimatsu, ["run"], tmp_path, "ours", "--steps", "50")
    theirs = losses_of(run_torch, [], tmp_path, "theirs", "--steps", "50")
    moved = losses_of(run_torch, [], tmp_path, "moved", "--steps", "50", "--perturb", "1e-7")
    print(f"largest difference {spread(ours, theirs):.2e}; PyTorch's own, from weights changed by 1e-7: {spread(theirs, moved):.2e}")
    assert len(ours) == 50 and ours[-1] < ours[0] - 1
    assert spread(ours, theirs) < 1e-4


def test_training_lowers_the_loss(run_taimatsu, tmp_path):
    losses = losses_of(run_taimatsu, ["run"], tmp_path, "losses", "--steps", "40")
    assert losses[0] == pytest.approx(5.545, abs=0.3)   # ln 256: nothing is known yet
    assert losses[-1] < losses[0] - 1.3
    again = losses_of(run_taimatsu, ["run"], tmp_path, "again", "--steps", "40")
    assert losses == again


@pytest.mark.parametrize("threads", ["1", "3"])
def test_thread_count_changes_nothing(run_taimatsu, tmp_path, threads):
    two = losses_of(run_taimatsu, ["run"], tmp_path, "two", "--steps", "8", "--threads", "2")
    other = losses_of(run_taimatsu, ["run"], tmp_path, "other", "--steps", "8", "--threads", threads)
    assert two == other


def test_interrupt_keeps_what_was_learnt(root, tmp_path):
    save = tmp_path / "gpt.pt"
    command = [sys.executable, "-m", "taimatsu", "run", *ARGUMENTS, "--steps", "100000", "--save", str(save), "--log-losses", str(tmp_path / "log")]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()   # printed just before training starts
        assert "parameters" in line, process.stderr.read()
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "stopped" in err and "checkpoint" in out
    assert os.path.getsize(save) > 100_000
