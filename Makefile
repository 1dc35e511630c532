# Everything runs inside .venv. PYTHONSAFEPATH keeps the folders of this root from shadowing installed modules.
export PYTHONSAFEPATH := 1
# Hundreds of processes read the same modules: each is compiled once, also where Python is told to keep none.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/compiled
PYTHON ?= python3
BIN := .venv/bin
DEMO := runs/demo

.PHONY: dev all demo docs study history replays test test-slow endurance mutants check clean

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -qq --upgrade pip

# Each goes its whole way with one call of pip, which prints errors only; modules are compiled when first imported.
.venv/installed: pyproject.toml | .venv/bin/python
	@echo "installing Fabula and its libraries into .venv, which takes minutes"
	$(BIN)/python -m pip install -qq --no-compile --editable .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	@echo "installing Fabula and its libraries into .venv, which takes minutes"
	$(BIN)/python -m pip install -qq --no-compile --editable '.[dev]'
	mkdir -p .venv/typing && ln -sfn "$(CURDIR)" .venv/typing/fabula
	touch .venv/installed $@

.venv/installed-all: pyproject.toml | .venv/bin/python
	@echo "installing Fabula and its libraries into .venv, which takes minutes"
	$(BIN)/python -m pip install -qq --no-compile --editable '.[dev,all]'
	mkdir -p .venv/typing && ln -sfn "$(CURDIR)" .venv/typing/fabula
	touch .venv/installed .venv/installed-dev $@

dev: .venv/installed-dev
	@echo "ready: $(BIN)/fabula --help"

all: .venv/installed-all
	@echo "ready, with every extra: $(BIN)/fabula --help"

# Build, validate, package and verify the sample benchmark, offline.
demo: .venv/installed
	rm -rf $(DEMO) dist/demo-0.1.0 dist/demo-0.1.0-hidden dist/demo-0.1.0-hidden.salt
	$(BIN)/fabula build stories builders/katha/samples/stories.jsonl --records builders/katha/samples/gold.jsonl \
		--planner rules --out $(DEMO) --created-at 2026-01-01T00:00:00Z
	$(BIN)/fabula run status $(DEMO)
	$(BIN)/fabula validate $(DEMO)
	$(BIN)/fabula release pack $(DEMO) --version 0.1.0 --license CC-BY-4.0 --allow-drafts --out dist/demo-0.1.0 \
		--name fabula-sample-fables --title "Fabula sample fables" --creator "The Fabula developers"
	$(BIN)/fabula release verify dist/demo-0.1.0
	@echo "run report:   $(CURDIR)/$(DEMO)/report.json"
	@echo "release:      $(CURDIR)/dist/demo-0.1.0"
	@echo "dataset card: $(CURDIR)/dist/demo-0.1.0/dataset_card.md"

# The documentation site, in build/site: texts of docs/, and reference pages made from code. It loads nothing from elsewhere.
docs: .venv/installed-dev
	rm -rf build/docs build/site
	mkdir -p build/docs/releases && cp -r docs/. examples build/docs && cp -r releases/history build/docs/releases
	for page in CONTRIBUTING CHANGELOG SECURITY; do cp $$page.md build/docs/$$(echo $$page | tr A-Z a-z).md; done
	sed -i -E 's#\]\((docs|\.\.)/#](#g; s#\]\((CONTRIBUTING|CHANGELOG|SECURITY)\.#](\L\1.#g' build/docs/*.md
	sed -i -E 's#\]\(\.\./\.\./(CONTRIBUTING|CHANGELOG|SECURITY)\.#](../\L\1.#g' build/docs/*/*.md
	$(BIN)/python -m fabula.cli.reference build/docs/reference
	$(BIN)/zensical build --strict
	@echo "documentation: $(CURDIR)/build/site/index.html"

# Make the versions 0.1.0 and 0.2.0 of the sample benchmark and keep their manifests.
history: .venv/installed
	$(BIN)/python -m fabula.testing.sample_history releases/history

# Make the small runs, releases and evaluations anew that later code is tried on. They stand for what users have on
# their disks: only where these may become invalid.
replays: .venv/installed-all
	$(BIN)/python -m fabula.testing.golden_runs tests/golden/replays

# Many tests wait for processes, servers and pages: one worker more than there are cores, of one thread each.
export PYTEST_XDIST_AUTO_NUM_WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
test test-slow endurance mutants: export OMP_NUM_THREADS = 1
PYTEST := $(BIN)/python -m pytest -c tests/pytest.ini --rootdir tests -n auto

# PYTEST_ARGS narrows the run, as in: make test PYTEST_ARGS="-k journal"
# `test` is what a change is tried on; it needs the extra `dev` alone. `test-slow` is what is marked `slow`: kills, pages
# in a browser, typed pages of docs/, networks. Both are held to budgets of processor seconds: see tests/budgets.py.
# A file is one worker's, so that what its tests share is made once; tests/conftest.py has the longest begin first.
# Tests write many small files and have each put on the disk: in memory where 6 GB of it can be spared.
test: TIER = not slow
test-slow: TIER = slow
test: .venv/installed-dev
test-slow: .venv/installed-all
test test-slow:
	@memory() { awk '/MemAvailable/ {print int($$2 / 2)}' /proc/meminfo; df -k --output=avail /dev/shm; }; \
	least=$$(memory 2>/dev/null | grep '^ *[0-9]' | sort -n | head -1); \
	if [ "$${least:-0}" -gt 6000000 ]; then \
		TMPDIR=$$(mktemp -d -p /dev/shm fabula-tests-XXXXXX); export TMPDIR; \
		trap 'rm -rf "$$TMPDIR"' EXIT; trap 'exit 130' INT TERM HUP; \
	fi; \
	$(PYTEST) -m "$(TIER)" --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS) tests

# Kills, faults, load and hostile input at full count: hours, not minutes. The figures are in docs/reliability.md.
endurance: .venv/installed-all
	FABULA_ENDURANCE=1 $(PYTEST) --dist worksteal -m endurance $(PYTEST_ARGS) tests

# Change lines at random in copies of the tree and print which changes no test sees; another SEED draws others.
COUNT := 120
SEED := 0
mutants: .venv/installed-all
	$(BIN)/python benchmarks/mutants.py --count $(COUNT) --seed $(SEED)

check: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p fabula
	$(BIN)/vulture --version  # what nothing names; what strings and libraries alone name is listed in pyproject.toml
	@! $(BIN)/vulture | grep -v '^tests/' | grep -E 'unused (class|function|method|property)'

clean:
	rm -rf .venv build dist runs *.egg-info

# The sample study, offline: a toy generator, a toy judge, Semantic Compass, evaluators, planted losses, tables, page.
STUDY := runs/study
study: demo
	@$(BIN)/python -m fabula.testing.model_server --port 8123 --handler fabula.testing.drawn_service:study_service >/dev/null & \
	server=$$!; trap 'kill $$server' EXIT; sleep 5; \
	$(BIN)/fabula experiment run examples/study.toml --out $(STUDY)
	@echo "page: $(abspath $(STUDY))/index.html"
