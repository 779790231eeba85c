#!/bin/sh
# The tests under a sanitizer, in a build folder of its own.
#   sanitize.sh asan [PYTEST_ARGUMENT ...]   ASan + UBSan: all C tests, and a reduced set of Python tests with the runtime preloaded
#   sanitize.sh tsan                         TSan: all C tests (an interpreter that is not built with it reports falsely)
set -eu
cd "$(dirname "$0")/.."
kind=$1; shift
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
case $kind in
asan)
    tools/build.sh build-asan -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized -Dc_args=-fno-sanitize-recover=all
    export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1
    runtime=$(${CC:-gcc} -print-file-name=libasan.so)
    # The interpreter itself keeps memory until its end: leaks are looked for in the C tests.
    .venv/bin/python tools/run_tests.py --build build-asan --python-env "LD_PRELOAD=$runtime" \
        --python-env "ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1" --python-env TAIMATSU_REDUCED=1 "$@"
    ;;
tsan)
    tools/build.sh build-tsan -Db_sanitize=thread -Db_lundef=false -Dbuildtype=debugoptimized -Dextension=false
    export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
    .venv/bin/python tools/run_tests.py --build build-tsan --c-only
    ;;
*) echo "sanitize.sh asan|tsan" >&2; exit 2;;
esac
