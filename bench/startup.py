"""Import time and memory over a bare interpreter.   startup.py PYTHON MODULE [PYTHON MODULE ...] prints one JSON object per pair."""
import json
import subprocess
import sys
import time

ROUNDS = 15
MEMORY = "import re; print(re.search(r'VmHWM:\\s*(\\d+)', open('/proc/self/status').read())[1])"


def run(python, code):
    start = time.perf_counter()
    out = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    return time.perf_counter() - start, out


def measure(python, module):
    """Best of turns: bare, with the import, bare, with the import, ..."""
    bare, loaded = [], []
    for _ in range(ROUNDS):
        bare.append(run(python, "pass")[0])
        loaded.append(run(python, f"import {module}")[0])
    rss_bare = int(run(python, f"import re; {MEMORY}")[1])
    rss = int(run(python, f"import {module}; {MEMORY}")[1])
    return {"module": module, "import_ms": 1e3 * (min(loaded) - min(bare)), "rss_mb": (rss - rss_bare) / 1024,
            "numpy_loaded": run(python, f"import {module}, sys; print('numpy' in sys.modules)")[1].strip() == "True"}


def main():
    pairs = sys.argv[1:]
    for python, module in zip(pairs[::2], pairs[1::2]):
        print(json.dumps(measure(python, module)), flush=True)


if __name__ == "__main__":
    main()
