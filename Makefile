# Everything runs inside .venv. PYTHONSAFEPATH keeps the folders of this root from shadowing installed modules.
export PYTHONSAFEPATH := 1
PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/demo

.PHONY: dev demo test check clean

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	mkdir -p .venv/typing && ln -sfn "$(CURDIR)" .venv/typing/fabula
	touch $@

dev: .venv/installed-dev
	@echo "ready: $(BIN)/fabula --help"
