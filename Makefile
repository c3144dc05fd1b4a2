# `make demo` and `make test` do all the set-up on a fresh machine that has Python >= 3.10.
# VENV is where packages are installed, PYTHON the interpreter that creates it.

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DEMO = demo
N = 10000
SEED = 0

.PHONY: help demo test test-all fuzz bench lint docs tutorial screenshots site man package clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/torch.done  ## capture a training script on this machine, and show the report
	$(BIN)/python benchmarks/generate.py $(DEMO)/net.sqlite --kernels 30
	$(BIN)/pyprof parse $(DEMO)/net.sqlite -o $(DEMO)/net.dict
	$(BIN)/pyprof prof -w 150 $(DEMO)/net.dict
	$(BIN)/pyprof run -o $(DEMO)/lenet examples/lenet.py

# ARGS come last: "-n0 -x" runs tests one by one in this process, and stops at the first failure.
PYTEST = $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal

test: $(VENV)/test.done  ## run all but the slow and the long tests
	$(PYTEST) $(ARGS)

test-all: $(VENV)/test.done $(VENV)/trainers.done $(VENV)/docs.done  ## run all tests, including the slow and the long ones
	$(PYTEST) -m "" $(ARGS)

fuzz: $(VENV)/test-tools.done  ## test N randomly damaged captures: make fuzz N=100000 SEED=1
	$(BIN)/python -m tests.fuzz.run --seed $(SEED) --count $(N) $(if $(ONLY),--only $(ONLY)) $(ARGS)

bench: $(VENV)/test.done  ## speed and memory beside the least the work can cost: make bench ARGS=kineto
	$(BIN)/python benchmarks/table.py $(ARGS)

lint: $(VENV)/lint.done  ## format, lint, names, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m tests.names
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/package.done  ## regenerate the parts of the documents that follow from the code
	$(BIN)/python docs/readme.py

tutorial: $(VENV)/torch.done  ## run the tutorial on this machine, and write down its output
	$(BIN)/python docs/readme.py --measure

screenshots: $(VENV)/test.done  ## take the pictures of reports again (needs Chromium)
	$(BIN)/python docs/screenshots.py

site: $(VENV)/docs.done  ## build the documentation as a site, strictly, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

man: $(VENV)/package.done  ## write a man page of each command into man/
	$(BIN)/python docs/command_pages.py man

package: $(VENV)/package.done  ## build the sdist and the wheel into dist/, and check them
	$(BIN)/python -m pip install --quiet --group release
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(DEMO) build dist site man .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# Dependency groups need pip 25.1.
$(VENV)/package.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/torch.done: $(VENV)/package.done
	$(BIN)/python -m pip install --quiet --group torch
	touch $@

$(VENV)/test-tools.done: $(VENV)/package.done
	$(BIN)/python -m pip install --quiet --group test
	touch $@

# torch is large and not published for every platform; without it, the tests that need it are skipped.
$(VENV)/test.done: $(VENV)/test-tools.done
	$(BIN)/python -m pip install --quiet --group torch \
	  || echo "torch could not be installed; the tests that need it will skip" >&2
	touch $@

# Lightning and Hugging Face's Trainer, which the long tests of the callbacks run.
$(VENV)/trainers.done: $(VENV)/torch.done
	$(BIN)/python -m pip install --quiet --group trainers \
	  || echo "Lightning or transformers could not be installed; their tests will skip" >&2
	touch $@

$(VENV)/docs.done: $(VENV)/package.done
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

$(VENV)/lint.done: $(VENV)/test.done
	$(BIN)/python -m pip install --quiet --group lint
	touch $@
