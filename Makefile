# Taimatsu. A thin layer over Meson and ninja; everything is built under build/, Python packages go to .venv.
#
#   make            library, Python extension and command
#   make demo       train a small GPT on the Python standard library's own sources and let it write
#   make test       build if needed, run all tests
#   make asan tsan  the tests under sanitizers        make lint         warnings as errors, style, layers, exports
#   make conformance  score against PyTorch 2.13      make bench        figures, paired with PyTorch
#   make install    library, headers, package (PREFIX=/usr/local, DESTDIR=)
#
# PYTHON=python3.12, CC=clang and JOBS=2 choose interpreter, compiler and parallel jobs.

PYTHON ?= python3
BUILD ?= build
PREFIX ?= /usr/local
ifeq ($(origin CC),default)
CC := gcc
endif
export PYTHON CC
PY := .venv/bin/python

.PHONY: all demo test asan tsan lint bench conformance install clean setup setup-test setup-torch build-only

all: build-only
	@echo "built: $(BUILD)/libtaimatsu.so, $(BUILD)/python/taimatsu, $(BUILD)/taimatsu. Next: make demo, make test"

setup:
	@tools/setup.sh build
setup-test:
	@tools/setup.sh build test
setup-torch:
	@tools/setup.sh --venv .venv-torch torch

build-only: setup
	@tools/build.sh $(BUILD)

demo: build-only
	@$(BUILD)/taimatsu run examples/gpt/train.py --demo --save out/gpt.pt

test: setup-test
	@tools/build.sh $(BUILD)
	@$(PY) tools/run_tests.py --build $(BUILD)

asan: setup-test
	@tools/sanitize.sh asan
tsan: setup-test
	@tools/sanitize.sh tsan

lint: setup-test
	@tools/setup.sh lint
	@tools/lint.sh

bench: build-only setup-torch
	@tools/setup.sh test
	@PYTHONPATH=$(BUILD)/python $(PY) bench/run.py --build $(BUILD)

conformance: build-only setup-torch
	@tools/conformance.sh $(BUILD)

install: build-only
	@.venv/bin/meson configure $(BUILD) -Dprefix=$(PREFIX)
	@PATH=$$PWD/.venv/bin:$$PATH DESTDIR=$(DESTDIR) .venv/bin/meson install -C $(BUILD)

clean:
	rm -rf build build-*
