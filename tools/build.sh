#!/bin/sh
# Configures a build folder where that is needed, and builds it.
#   build.sh DIR [MESON_OPTION ...]
# Configures anew when the options, the compiler or the interpreter changed, and again when files came or went.
set -eu
cd "$(dirname "$0")/.."
dir=$1; shift
PATH="$PWD/.venv/bin:$PATH"; export PATH

tools_key="$* ${CC:-} $(.venv/bin/python -V) $([ -e /usr/include/cmocka.h ] && echo cmocka || true)"
files_key=$(find src python tests/c -name '*.[cS]' -o -name '*.ops' -o -name meson.build | LC_ALL=C sort)
how=none
if [ ! -e "$dir/build.ninja" ] || [ "$(cat "$dir/.key-tools" 2>/dev/null)" != "$tools_key" ]; then
    how=
    [ ! -e "$dir/meson-private/coredata.dat" ] || how=--wipe
elif [ "$(cat "$dir/.key-files" 2>/dev/null)" != "$files_key" ]; then
    how=--reconfigure
fi
if [ "$how" != none ]; then
    mkdir -p "$dir"
    log=$(mktemp)
    if ! meson setup $how "$dir" -Dpython="$PWD/.venv/bin/python" "$@" >"$log" 2>&1; then
        cat "$log"; rm -f "$log"; exit 1
    fi
    mv "$log" "$dir/setup.log"
    echo "$tools_key" >"$dir/.key-tools"
    echo "$files_key" >"$dir/.key-files"
fi
.venv/bin/python tools/link_package.py "$dir/python"
exec ninja -C "$dir" -j "${JOBS:-$(nproc)}"
