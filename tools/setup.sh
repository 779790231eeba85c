#!/bin/sh
# Makes the machine ready for the build: Debian packages where they are missing, then a virtual environment with pinned packages.
#   setup.sh [--venv DIR] SET...     SET: build, test, lint, torch (the files requirements/SET.txt)
# Does nothing, and needs no network, when everything is there already. PYTHON names the interpreter (default python3).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=.venv
[ "${1:-}" = --venv ] && { venv=$2; shift 2; }
cc=${CC:-cc}
command -v "${cc##* }" >/dev/null 2>&1 || cc=gcc

# ---- Debian packages
compiles() { echo "#include <$1>
int main(void) { return 0; }" | $cc -x c - -fsyntax-only $2 >/dev/null 2>&1; }
include() { "$python" -c 'import sysconfig; print("-I" + sysconfig.get_path("include"))'; }
missing() {
    command -v "${cc##* }" >/dev/null 2>&1 || echo gcc
    compiles stdio.h "" || echo libc6-dev
    "$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || echo python3-venv
    compiles Python.h "$(include)" || echo python3-dev
    case " $* " in *" test "*) compiles cmocka.h "-include stdarg.h -include stddef.h -include stdint.h -include setjmp.h" || echo libcmocka-dev;; esac
}
command -v "$python" >/dev/null 2>&1 || { echo "setup: $python is missing: install python3 (3.11 or newer)" >&2; exit 1; }
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "setup: Python 3.11 or newer is needed, $python is $("$python" -V)" >&2; exit 1; }
need=$(missing "$@" | tr '\n' ' ')
if [ -n "$need" ]; then
    root=
    [ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && root="sudo -n"; } || root=no
    command -v apt-get >/dev/null 2>&1 || root=no
    if [ "$root" != no ]; then
        echo "setup: installing $need"
        $root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
        $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $need >/dev/null
    fi
    need=$(missing "$@" | tr '\n' ' ')
    [ -z "$need" ] || { echo "setup: these are missing (Debian's names): $need
setup: install them, for example with:  sudo apt-get install $need" >&2; exit 1; }
fi

# ---- the virtual environment
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "$venv/bin/python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
    echo "setup: making $venv (Python $version)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
for set in "$@"; do
    stamp="$venv/.installed-$set"
    cmp -s "requirements/$set.txt" "$stamp" && continue
    echo "setup: installing requirements/$set.txt into $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -r "requirements/$set.txt"
    cp "requirements/$set.txt" "$stamp"
done
