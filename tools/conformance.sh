#!/bin/sh
# Scores the package in a build folder against PyTorch 2.13 and writes the score into the repository.
#   conformance.sh BUILD [--quick]
# --quick: fewer samples, and nothing is written; fails when a unit that the stored score calls passed fails now.
set -eu
cd "$(dirname "$0")/.."
build=$1
python=${TORCH_PYTHON:-.venv-torch/bin/python}
score=tests/conform/score
export PYTHONPATH="$PWD/$build/python"
mkdir -p $score out

# One name per line; '#' starts a comment.
ops="^($(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' tests/conform/foundation.txt | paste -s -d '|' -))\$"
run() {
    out=$1; shift
    if [ "$quick" = 1 ]; then
        "$python" tests/conform/run.py --max-samples 6 --out "out/$out" --show 10 "$@" || true   # judged below
        "$python" tools/conform_regressed.py "$score/$out" "out/$out"
    else
        "$python" tests/conform/run.py --out "$score/$out" "$@" || true   # the score is the result, not the status
    fi
}
quick=0
[ "${2:-}" != --quick ] || quick=1
run ops_float32.json ops --ops "$ops" --dtypes float32 --checks fwd,grad
run ops_other.json ops --ops "$ops" --dtypes int64,bool,float64 --checks fwd
if [ $quick = 0 ]; then
    run errors.json errors --ops "$ops"
    run modules.json modules
    run optims.json optims
fi
