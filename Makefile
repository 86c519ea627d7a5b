# Everything a newcomer needs is `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-long coverage check golden docs screenshot mutation calibrate fuzz serve clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(READY) ## set up, then run a simulated fleet with pages, verdicts and a webhook (Ctrl-C ends it)
	$(BIN)/leverwatch demo $(ARGS)

test: $(READY) check ## set up, lint, type-check and test
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -rs -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-long: $(READY) ## run the tests that take minutes or hours: hosts in network namespaces (as root), the wheel on each Python, soak, mutants, calibration
	$(BIN)/pytest -rs -n 0 --long -m long $(ARGS)

coverage: $(READY) ## the tests again, counting the lines of our packages that they run; under 90 % fails (half an hour)
	rm -rf build/coverage && mkdir -p build/coverage
	$(BIN)/coverage run -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: $(READY) ## lint and type-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

golden: $(READY) ## rewrite the golden files that tests compare with
	$(BIN)/pytest --update-golden tests/test_queries_metric_sql.py tests/test_leverwatch_config_page.py tests/test_collectors_engine_docs.py \
	  tests/test_leverwatch_observe_docs.py tests/test_pipeline_metric_docs.py tests/test_pipeline_trap_docs.py tests/test_alerts_policy_docs.py tests/test_queries_question_docs.py \
	  tests/test_collectors_engine_matrix.py tests/test_leverwatch_commands_page.py

docs: $(READY) ## build the pages as a site into build/site; a dead link fails
	$(BIN)/sphinx-build -q -W --keep-going -n -c docs -d build/doctrees . build/site

screenshot: $(READY) ## take the README's picture from the demo (minutes, Chromium)
	PYTHONPATH=tests $(BIN)/python docs/screenshot.py

mutation: $(READY) ## change lines of 60 functions of pipeline/ and alerts/, one at a time, and tell which changes no test notices (an hour)
	$(BIN)/python benchmarks/mutation.py --show --out build/mutation.json $(ARGS)

calibrate: $(READY) ## measure false alarms and delays: 500 simulated days each, and the demo's scenarios over 20 seeds (hours)
	PYTHONPATH=tests $(BIN)/python benchmarks/calibrate.py --days 500 $(ARGS)
	PYTHONPATH=tests $(BIN)/python benchmarks/calibrate_tails.py --days 500 $(ARGS)
	PYTHONPATH=tests $(BIN)/python benchmarks/calibrate_quiet.py --streams 200
	PYTHONPATH=tests $(BIN)/python benchmarks/calibrate_scenarios.py --seeds 20 --out build/scenarios.json

fuzz: $(READY) ## ask every route of the API with hundreds of made-up calls (minutes)
	PYTHONPATH=tests $(BIN)/python benchmarks/fuzz_api.py --examples 300 $(ARGS)

serve: $(READY) ## run the server on ./leverwatch-data
	$(BIN)/leverwatch serve $(ARGS)

clean: ## remove what set-up and builds made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed, this is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[dev]'
	$(BIN)/python -m collectors.warm
	touch $(READY)
