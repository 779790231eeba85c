#!/bin/sh
# Style, warnings as errors with every compiler at hand, layers, exports, headers. Fails at the first fault.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/ruff check .
.venv/bin/python tools/check_layers.py
for cc in gcc clang; do
    if ! command -v $cc >/dev/null 2>&1; then
        [ -z "${CI:-}" ] || { echo "lint: $cc is missing"; exit 1; }
        echo "lint: no $cc here, skipped"
        continue
    fi
    echo "lint: warnings as errors, $($cc --version | head -n 1)"
    CC=$cc tools/build.sh "build-lint-$cc" -Dwerror=true >"build-lint-$cc.log" 2>&1 ||
        { grep -E 'error|warning|FAILED' -A4 "build-lint-$cc.log" | head -n 60; exit 1; }
    rm -f "build-lint-$cc.log"
    .venv/bin/python tools/check_exports.py "build-lint-$cc"
    CC=$cc .venv/bin/python tools/check_headers.py "build-lint-$cc"
done
.venv/bin/python tools/sizes.py --build build-lint-gcc
