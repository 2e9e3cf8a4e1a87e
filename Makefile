# Everything runs from .venv, which is made on first use from requirements/lock.txt. Needed: make and Python 3.11 to 3.14.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-changed test-long test-kills test-all coverage mutation fuzz lint docs docs-test dist audit newcomer lock bench soak clean

# The first of these that really starts and is a supported version; choose another with `make PYTHON=/path/to/python`.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1 \
	&& echo "$$python" && break; done)

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check

DEMO_FLAGS ?=
PYTEST_FLAGS ?=
BENCH_FLAGS ?=
WORKERS ?= 2

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|' 2>/dev/null \
	|| grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST)

demo: $(READY)  ## run the demonstration (DEMO_FLAGS=--quick for a short one)
	@$(BIN)/bellief demo $(DEMO_FLAGS)

# The fast tests spend most of their time compiling: most of XLA's optimisations, the new emitters of fused loops and
# source lines in what is compiled are left out, which takes two thirds of it away. Each worker has one core, so that
# BLAS's threads would only wait for one another. A file's tests stay in one worker, where they share what is compiled;
# compiled programs are kept in .pytest_cache for the next time. `test-all` compiles as users do.
QUICK := JAX_DISABLE_MOST_OPTIMIZATIONS=1 JAX_TRACEBACK_IN_LOCATIONS_LIMIT=0 OPENBLAS_NUM_THREADS=1 \
	XLA_FLAGS="--xla_cpu_use_fusion_emitters=false $(XLA_FLAGS)"
test: $(READY)  ## run the fast tests (PYTEST_FLAGS=..., WORKERS=2)
	@$(QUICK) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_FLAGS)

test-changed: $(READY)  ## run the fast and long tests of what changed since main (SINCE=main)
	@tools/changed_tests $(or $(SINCE),main) > .pytest-changed && if test -s .pytest-changed; \
		then $(QUICK) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not kills" $(PYTEST_FLAGS) \
		$$(cat .pytest-changed); \
		else echo "Nothing changed that has tests."; fi; code=$$?; rm -f .pytest-changed; exit $$code

test-long: $(READY)  ## run the tests of whole programs and trainings, which take seconds each
	@$(QUICK) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "long and not slow and not kills" $(PYTEST_FLAGS)

test-kills: $(READY)  ## kill sweeps, workers and nodes of Ray, fill disks: the same bytes afterwards (two minutes)
	@$(QUICK) $(BIN)/python -m pytest -n 0 -m kills $(PYTEST_FLAGS)

# Compiled as users do. First everything that computes, and then, alone on the machine, what is killed: on busy cores a
# process may be over before it is killed.
test-all: $(READY)  ## run all tests, the slow statistical ones too (PYTEST_FLAGS=..., WORKERS=2)
	@code=0; export JAX_TRACEBACK_IN_LOCATIONS_LIMIT=0; \
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not kills" --durations=20 $(PYTEST_FLAGS) || code=$$?; \
	$(BIN)/python -m pytest -n 0 -m kills --durations=10 $(PYTEST_FLAGS) || code=$$?; exit $$code

COVERAGE_FLAGS ?= -m "not slow and not kills"
coverage: $(READY)  ## lines and branches that the fast and the long tests reach (COVERAGE_FLAGS='-m ""' for all tests)
	@rm -f .coverage .coverage.*
	@$(QUICK) $(BIN)/python -m coverage run -m pytest -n $(WORKERS) $(COVERAGE_FLAGS)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage report --fail-under=90

mutation: $(READY)  ## break lines of the maths one at a time and see the tests fail
	@$(BIN)/python tools/mutate.py $(MUTATION_FLAGS)

# Atheris is only in the extra `fuzz`, in an environment of its own: it has wheels for few systems. The fuzzers begin with what
# the tests refuse, and therefore import them.
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?= logs json_lines tally folded query archives policy spec
.venv-fuzz/.ready: pyproject.toml
	@rm -rf .venv-fuzz && $(PYTHON) -m venv .venv-fuzz
	@.venv-fuzz/bin/pip install -qq --disable-pip-version-check -e '.[fuzz,test]'
	@touch $@
fuzz: .venv-fuzz/.ready  ## fuzz the readers of files (FUZZ_SECONDS=600 each, FUZZ_TARGETS=...)
	@for target in $(FUZZ_TARGETS); do JAX_PLATFORMS=cpu .venv-fuzz/bin/python fuzz/run.py $$target --seconds $(FUZZ_SECONDS) || exit 1; done

lint: $(READY)  ## check style, types and the import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(READY)  ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

docs-test: $(READY)  ## run every code block of the documentation and every example of the reference
	@$(QUICK) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "" tests/test_docs.py tests/test_examples.py $(PYTEST_FLAGS)

dist: $(READY)  ## build the wheel and the source distribution into dist/
	@rm -rf dist && $(BIN)/python -m hatchling build

audit: $(READY)  ## look for known weaknesses in the locked dependencies (needs the network)
	@tools/audit

newcomer:  ## follow the README in a bare environment, timed
	@tools/newcomer

soak: $(READY)  ## ten million steps, then an hour of random commands (SOAK_MINUTES=60)
	@$(BIN)/python benchmarks/soak.py
	@$(BIN)/python benchmarks/soak_commands.py --minutes $(or $(SOAK_MINUTES),60)

bench: $(READY)  ## run the benchmarks (BENCH_FLAGS=...), then those of logs in new processes
	@$(BIN)/python benchmarks/run.py $(BENCH_FLAGS)
	@$(BIN)/python benchmarks/log_commands.py
	@$(BIN)/python benchmarks/fold.py --rows 20000000 100000000 --rounds 3

clean:  ## remove the environment, the caches and what was built (runs/ is kept)
	rm -rf $(VENV) .venv-lock .venv-bench .venv-fuzz build dist docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis .coverage htmlcov bellief-demo
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last: a set-up that stops half-way leaves none, and the next one starts from an empty folder.
$(READY): pyproject.toml requirements/lock.txt
	@test -n "$(PYTHON)" || { echo "No Python from 3.11 to 3.14 was found: install one, or name it with 'make PYTHON=/path/to/python'." >&2; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) (a few minutes the first time)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "$(PYTHON) could not make a virtual environment: install its venv module (Debian: python3-venv)." >&2; exit 1; }
	@$(PIP) install -qq --require-hashes -r requirements/lock.txt
	@$(PIP) install -qq --no-deps --no-build-isolation -e .
	@touch $@

# Resolved on the oldest supported Python, from the public index alone: local mirrors and wheel folders would leave
# their own hashes in the file.
LOCK_PYTHON ?= python3.11
LOCK_EXTRAS := nn ray tensorboard app data test docs dev
lock:  ## resolve requirements/lock.txt again (LOCK_FLAGS=--upgrade for newer versions)
	@test -x .venv-lock/bin/pip-compile || { rm -rf .venv-lock; $(LOCK_PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install -qq "pip-tools==7.6.2"; }
	@.venv-lock/bin/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' \
		|| { echo "The lock file must be resolved with Python 3.11: name one with 'make lock LOCK_PYTHON=...'." >&2; exit 1; }
	@mkdir -p .venv-lock/out && cp requirements/lock.txt .venv-lock/out/lock.txt 2>/dev/null || true
	env -u PIP_FIND_LINKS -u PIP_EXTRA_INDEX_URL PIP_CONFIG_FILE=/dev/null .venv-lock/bin/pip-compile --quiet \
		$(LOCK_EXTRAS:%=--extra %) --generate-hashes --strip-extras --allow-unsafe --no-header --no-emit-index-url \
		--no-emit-find-links --no-emit-trusted-host $(LOCK_FLAGS) -o .venv-lock/out/lock.txt pyproject.toml
	@{ echo "# Versions of everything Bellief is developed and tested with. Regenerate with: make lock"; \
		grep -v -e '^# Versions of everything' -e '^# The following packages' -e '^$$' .venv-lock/out/lock.txt; } > requirements/lock.txt
