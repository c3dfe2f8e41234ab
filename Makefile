# graphveil: 'make demo' shows it working, 'make test' checks it. Both set up what they need in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
WORKERS ?= 2

.PHONY: setup demo test long docs fuzz lint bench clean

setup: $(STAMP)

# torch first and pinned: an open range would pull in gigabytes that a CPU does not need.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	-$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps graphdatascience
	touch $@

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: $(STAMP) lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# every sound mode in every world, planted bugs, clusters
long: $(STAMP)
	$(BIN)/python -m pytest -m long -n $(WORKERS) --dist worksteal

docs: $(STAMP)
	$(BIN)/python -m pytest -m docs -n $(WORKERS) --dist worksteal

# broken files of every kind, so many inputs to each test
fuzz: $(STAMP)
	GRAPHVEIL_FUZZ=$(or $(INPUTS),2000) $(BIN)/python -m pytest tests/fuzz -n $(WORKERS) --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/ruff format --check src tests examples benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/graphveil bench dp-gradients

clean:
	rm -rf $(VENV) build dist demo-output
