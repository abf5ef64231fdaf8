# `make` alone lists the targets. They need Python 3.11 or later with its headers, and a C compiler.
#
# PYTHON=...   another Python than the first one found; it gets an environment of its own, .venv-X.Y
# SLOW=1       the slow tests, too, and more examples of generated ones
# STATS=1      a hook that counts its slow paths, in an environment of its own (.venv-stats)
# ARGS=...     more arguments for pytest (some tests run at a time; -n 0: one, as --pdb needs), or
#              for the benchmarks

ifdef PYTHON
VENV ?= .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
else
PYTHON = $(shell .ci/python)
VENV ?= .venv
endif

ifdef STATS
override VENV := $(VENV)-stats
export PYTRACE_STATS = 1
endif

SOURCES := setup.py pyproject.toml pytrace.py \
	$(shell find csrc dumper pytracer reader \( -type d ! -name __pycache__ \) -o \
		\( -name '*.[ch]' ! -name unprintable.h \) -o -name '*.py' -o -name '*.sql' -o -name '*.pth')

.PHONY: help demo test test-all test-lowest wheels test-wheels lint sanitize fuzz dap-client bench suites cpython clean
.DELETE_ON_ERROR:

help:            ## this list
	@awk -F ' *## *' '/^[a-z-]+:.*##/ { sub(/:.*/, "", $$1); printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.installed $(VENV)/.demo  ## record a real program, and look at what it did
	@examples/demo.sh $(VENV)/bin

# SLOW=tests: the slow ones, too; SLOW=1: and as many examples of the generated ones as can be
QUICK := $(if $(SLOW),,-m 'not slow') $(if $(filter 1,$(SLOW)),,--hypothesis-profile quick)

# one more than there are processors, as some tests wait; each has to import all tests
JOBS := $(shell n=$$(($$(nproc) + 1)); echo $$((n < 8 ? n : 8)))

test: $(VENV)/.installed $(VENV)/.test  ## the tests, on one Python; some are slow, and need SLOW=1
	$(VENV)/bin/pytest -n $(JOBS) --dist worksteal $(QUICK) $(ARGS)

test-all:        ## the tests on 3.11 to 3.15; if root, on those of Debian 12, 13 and sid
	.ci/test-all $(ARGS)

test-lowest:     ## the tests beside the oldest libraries that pyproject.toml allows, on the oldest Python
	.ci/test-lowest $(ARGS)

wheels: $(VENV)/.wheels  ## manylinux wheels in dist/, for each Python that is here
	.ci/wheels $(VENV)

test-wheels: wheels  ## install them where there is no compiler (a bare Debian), record and read there; root only
	.ci/try-wheels

lint: $(VENV)/.installed $(VENV)/.lint  ## ruff, mypy --strict, and the C compilers' warnings as errors
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	.ci/types $(VENV)/bin/python
	.ci/warnings $(VENV)/bin/python

sanitize: $(VENV)/.installed $(VENV)/.test  ## the C tests under the address, undefined behaviour and thread sanitizers
	PYTRACE_TEST_DAMAGES=all $(VENV)/bin/pytest -n 2 tests/ring tests/query/test_sql_damage.py tests/query/test_scan_c.py $(ARGS)

fuzz: $(VENV)/.installed  ## clang looks a minute for inputs that break the C code; ARGS=SECONDS=600: longer, each of four
	$(MAKE) -s -C tests/c fuzz BUILD=$(CURDIR)/build/c $(ARGS)

dap-client: $(VENV)/.installed  ## drive a replay through VS Code's own client of the protocol; needs npm and a network
	mkdir -p build/dap && cp tests/dap/* build/dap/
	npm install --prefix build/dap --no-audit --no-fund --silent
	node build/dap/client.js $(abspath $(VENV)/bin/pytrace)

bench: $(VENV)/.installed $(VENV)/.bench  ## measure the costs, side by side with other tracers
	$(VENV)/bin/python -m benchmarks $(ARGS)

suites: $(VENV)/.installed $(VENV)/.suites  ## the tests of other projects bare and under pytrace, side by side
	$(VENV)/bin/python tests/suites/projects.py $(ARGS)

cpython: $(VENV)/.installed  ## CPython's own tests bare and under pytrace, side by side; takes an hour
	$(VENV)/bin/python tests/suites/cpython.py $(ARGS)

clean:           ## remove everything that was made here
	rm -rf .venv .venv-* build dist *.egg-info traces.sqlite* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f pytracer/*.so csrc/query/unprintable.h
	find . -name __pycache__ -prune -exec rm -rf {} +

# Each step leaves a stamp, so that only changed steps are done again.

# not $(PYTHON) from the shell, as there may be no Python yet
.PHONY: needs
needs:
	@.ci/needs $(if $(filter command line environment,$(origin PYTHON)),$(PYTHON))

$(VENV)/.environment: | needs
	@test -n "$(PYTHON)"  # else .ci/python has said what is missing
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --upgrade pip
	@touch $@

# a group of tools in pyproject.toml: build, test, lint, bench, demo, wheels, ...
$(VENV)/.%: pyproject.toml | $(VENV)/.environment
	$(VENV)/bin/pip install --quiet --group $*
	@touch $@

# build/ is removed, because setuptools would install files from there that have left the tree
$(VENV)/.installed: $(SOURCES) $(VENV)/.build
	rm -rf build/lib* build/bdist*
	$(VENV)/bin/pip install --quiet --no-build-isolation .
	@touch $@
