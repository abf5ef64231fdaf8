# `make` alone says what there is to make. Needs Python 3.11 or later with its headers, and a C compiler.
#
# PYTHON=...   another Python than the first one found; it gets an environment of its own, .venv-X.Y
# ARGS=...     more arguments for pytest (two tests run at a time; -n 0: one, as --pdb needs), or for the benchmarks

ifdef PYTHON
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
else
PYTHON = $(shell .ci/python)
VENV ?= .venv
endif

SOURCES := setup.py pyproject.toml pytrace.py \
	$(shell find csrc dumper proto pytracer reader \( -type d ! -name __pycache__ \) -o \
		\( -name '*.[ch]' ! -name unprintable.h \) -o \( -name '*.py' ! -name trace_pb2.py \) \
		-o -name '*.sql' -o -name '*.proto' -o -name '*.pth')

.PHONY: help demo test test-all lint sanitize fuzz bench suites cpython clean
.DELETE_ON_ERROR:

help:            ## this list
	@awk -F ' *## *' '/^[a-z-]+:.*##/ { sub(/:.*/, "", $$1); printf "make %-10s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed $(VENV)/.demo  ## record a real program, and look at what it did
	@examples/demo.sh $(VENV)/bin

test: $(VENV)/.installed $(VENV)/.test  ## the tests, on one Python
	$(VENV)/bin/pytest -n 3 --dist worksteal $(ARGS)

test-all:        ## the tests on 3.11 to 3.15; those that the machine lacks come from Debian, if root
	.ci/test-all $(ARGS)

lint: $(VENV)/.installed $(VENV)/.lint  ## ruff, mypy --strict, and the C compilers' warnings as errors
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	.ci/types $(VENV)/bin/python
	.ci/warnings $(VENV)/bin/python

sanitize: $(VENV)/.installed $(VENV)/.test  ## the C tests under the address, undefined behaviour and thread sanitizers
	$(VENV)/bin/pytest tests/unit -k "ring_c or fuzz" $(ARGS)

fuzz: $(VENV)/.installed  ## clang looks a minute for inputs that break the C code; ARGS=SECONDS=600: longer, each of four
	$(MAKE) -s -C tests/c fuzz BUILD=$(CURDIR)/build/c $(ARGS)

bench: $(VENV)/.installed $(VENV)/.bench  ## measure the costs, side by side with other tracers
	$(VENV)/bin/python -m benchmarks $(ARGS)

suites: $(VENV)/.installed $(VENV)/.suites  ## the tests of other projects bare and under pytrace, side by side
	$(VENV)/bin/python tests/suites/projects.py $(ARGS)

cpython: $(VENV)/.installed  ## CPython's own tests bare and under pytrace, side by side; takes an hour
	$(VENV)/bin/python tests/suites/cpython.py $(ARGS)

clean:           ## remove whatever was made here
	rm -rf .venv .venv-* build dist *.egg-info traces.sqlite* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f pytracer/*.so pytracer/trace_pb2.py csrc/unprintable.h
	find . -name __pycache__ -prune -exec rm -rf {} +

# Each step leaves a stamp, so that only what has changed is done again.

$(VENV)/.environment:
	@test -n "$(PYTHON)"  # else .ci/python has said what is missing
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	@touch $@

# a group of tools in pyproject.toml: build, test, lint, bench, demo
$(VENV)/.%: pyproject.toml | $(VENV)/.environment
	$(VENV)/bin/pip install --quiet --group $*
	@touch $@

# build/ is removed because setuptools installs from there even what is no longer in the tree
$(VENV)/.installed: $(SOURCES) $(VENV)/.build
	rm -rf build/lib* build/bdist*
	$(VENV)/bin/pip install --quiet --no-build-isolation .
	@touch $@
