#!/usr/bin/env python3
"""Runs the C tests (meson, TAP) and the Python tests (pytest), and closes with one line: N passed, N failed.

    run_tests.py [--build DIR] [--c-only | --python-only] [PYTEST_ARGUMENT ...]

Skipped tests count neither way and are listed with their reasons. The exit status is 1 when anything failed, or when nothing ran.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TAP_LINE = re.compile(r"^(ok|not ok)\b\s*\d*\s*(?:-\s*)?([^#]*)(#\s*(?:SKIP|TODO)\b.*)?", re.I)


def count_tap(text):
    """(passed, failed, skipped, planned or None) of one program's TAP output."""
    passed = failed = skipped = 0
    planned = None
    for line in text.splitlines():
        if plan := re.match(r"^1\.\.(\d+)", line):
            planned = int(plan[1])
        elif m := TAP_LINE.match(line):
            if m[3]:
                skipped += 1
            elif m[1] == "ok":
                passed += 1
            else:
                failed += 1
    return passed, failed, skipped, planned


def run_c(build, wrapper_env):
    """Runs every C test program; a program that dies, hangs or reports fewer tests than planned counts as one failure more."""
    venv = os.path.join(ROOT, ".venv", "bin")
    env = dict(os.environ, PATH=venv + os.pathsep + os.environ["PATH"], **wrapper_env)
    log = os.path.join(build, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    status = subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs"], env=env).returncode
    passed = failed = 0
    if os.path.exists(log):
        with open(log, encoding="utf-8") as f:
            for entry in map(json.loads, f):
                ok, bad, skipped, planned = count_tap(entry.get("stdout", ""))
                complete = planned is None or ok + bad + skipped >= planned
                if not bad and (entry["result"] not in ("OK", "SKIP") or not complete or ok + skipped == 0):
                    bad += 1
                    print(f"FAILED {entry['name']}: {entry['result']}, {ok} of {planned} tests reported")
                passed, failed = passed + ok, failed + bad
    return passed, failed + (1 if status and not failed else 0)


def run_python(build, extra, wrapper_env):
    """Runs pytest against the package in the build folder."""
    path = os.pathsep.join(p for p in (os.path.join(build, "python"), os.environ.get("PYTHONPATH")) if p)
    env = dict(os.environ, PYTHONPATH=path, **wrapper_env)
    with tempfile.TemporaryDirectory() as tmp:
        report = os.path.join(tmp, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-rsfE", "--junitxml", report] + (extra or ["tests/python"])
        status = subprocess.run(command, env=env, cwd=ROOT).returncode
        if not os.path.exists(report):
            return 0, 1
        suite = ET.parse(report).getroot().find("testsuite")
        total, bad, skipped = (int(suite.get(k)) for k in ("tests", "failures", "skipped"))
        errors = int(suite.get("errors"))
    failed = bad + errors
    return total - failed - skipped, failed + (1 if status not in (0, 5) and not failed else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--c-only", action="store_true")
    parser.add_argument("--python-only", action="store_true")
    parser.add_argument("--python-env", action="append", default=[], metavar="NAME=VALUE", help="set for the Python tests only")
    parser.add_argument("--c-env", action="append", default=[], metavar="NAME=VALUE", help="set for the C tests only")
    args, extra = parser.parse_known_args()
    build = os.path.abspath(args.build)
    passed = failed = 0
    if not args.python_only:
        passed, failed = run_c(build, dict(e.split("=", 1) for e in args.c_env))
    if not args.c_only:
        ok, bad = run_python(build, extra, dict(e.split("=", 1) for e in args.python_env))
        passed, failed = passed + ok, failed + bad
    sys.stderr.flush()
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
