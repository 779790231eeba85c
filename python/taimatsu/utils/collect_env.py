"""What a bug report should say about the machine."""
import os
import platform
import sys

from .. import _core as core, version


def _cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                if line.startswith(("model name", "Hardware")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _memory():
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError):
        return "unknown"


def _quota():
    """The cgroup's limit on processors, where there is one."""
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="utf-8") as f:
            quota, period = f.read().split()
        return "none" if quota == "max" else f"{int(quota) / int(period):g}"
    except (OSError, ValueError):
        return "none"


def get_pretty_env_info():
    """The report as text."""
    call = getattr(core._C, "_get_cpu_capability", None)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    numpy = sys.modules.get("numpy")
    if numpy is None:
        try:
            import numpy
        except ImportError:
            numpy = None
    rows = [("Taimatsu", version.taimatsu_version), ("API of PyTorch", str(version.__version__)),
            ("Package", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), ("Python", sys.version.replace("\n", " ")),
            ("Platform", platform.platform()), ("Libc", " ".join(platform.libc_ver())), ("Processor", _cpu_name()),
            ("Instruction set", call() if call else "unknown"), ("Processors usable", f"{cores} (cgroup limit: {_quota()})"),
            ("Threads", str(core.get_num_threads())), ("Memory", _memory()), ("numpy", numpy.__version__ if numpy else "not installed"),
            ("GPU", "none: this build drives no GPU")]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name + ':':{width + 1}} {value}" for name, value in rows)


def main():
    print(get_pretty_env_info())
    return 0
