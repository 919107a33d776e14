# Three commands: `make demo`, `make test-fast` and `make test`. They set up all they need in .venv first.
PYTHON ?= python3
PYTEST_ARGS ?= -n 2 --timeout 600
VENV := .venv
BIN := $(VENV)/bin
RUN_INSTALLED := $(VENV)/.installed-run
TEST_INSTALLED := $(VENV)/.installed-test

.PHONY: demo test test-fast check check-ui coverage fix ui chromium bench clean help

help: ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: $(RUN_INSTALLED) ## record a small training that has a fault, and show what Strobe finds
	$(BIN)/strobe demo

test: $(TEST_INSTALLED) check check-ui chromium ## every check and every test
	@$(BIN)/python -m tests.frameworks.environment
	@$(BIN)/python scripts/run_tests.py $(PYTEST_ARGS)

test-fast: $(TEST_INSTALLED) check check-ui ## every check, and the tests that start no other process
	@$(BIN)/python scripts/run_tests.py -m "not slow" $(PYTEST_ARGS)

check: $(TEST_INSTALLED) ## format, lint, types, the directions of imports, and plain English
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python scripts/prose.py

check-ui: $(TEST_INSTALLED) ## format, types and unit tests of the web pages
	@$(BIN)/python scripts/check_ui.py

fix: $(TEST_INSTALLED) ## format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ui: $(TEST_INSTALLED) ## build the web pages from ui/ (commit what changes in src/strobe/web/static)
	$(BIN)/python scripts/build_ui.py

chromium: ## the browser of the browser tests; without it they are skipped, and say so
	@test -n "$$STROBE_CHROMIUM" || command -v chromium || command -v chromium-browser || \
	command -v google-chrome || \
	{ test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y chromium; } || \
	echo "no Chromium: tests of the pages in a browser are skipped (apt-get install chromium)"

# The report is printed even if a test fails.
coverage: $(TEST_INSTALLED) ## the lines that tests reach, child processes included: PYTEST_ARGS='-m "not slow"'
	@$(BIN)/coverage erase
	-@$(BIN)/coverage run -m pytest $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

bench: $(TEST_INSTALLED) ## all benchmarks (slow; not part of the tests)
	$(BIN)/python -m benchmarks

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "the pinned versions of a checkout need Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(RUN_INSTALLED): requirements/run.txt pyproject.toml | $(BIN)/python
	$(BIN)/pip install -qq --disable-pip-version-check -r requirements/run.txt
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --editable .
	touch $@

$(TEST_INSTALLED): requirements/test.txt $(RUN_INSTALLED)
	$(BIN)/pip install -qq --disable-pip-version-check -r requirements/test.txt
	command -v npm >/dev/null || $(BIN)/pip install -qq --disable-pip-version-check -r requirements/node.txt
	touch $@

clean: ## remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
