PORT ?=
HOST = 127.0.0.1
PYTHON ?= python3
JOBS ?= 2
CORPORA ?= $(LOUPE_CORPORA)
OUT ?= assets/checkpoints
WORKERS = 1
BIN := .venv/bin
NODE := node_modules/.bin
SCRIPTS := assets/views assets/notebook tests/js tests/browser/stage.js eslint.config.js
FORMATTED := "assets/views/**/*.js" assets/notebook/widget.js "tests/js/*.js" tests/browser/stage.js eslint.config.js
# Each worker and each process that a test starts would compile the same modules again, where an environment keeps none.
PYTEST := env -u PYTHONDONTWRITEBYTECODE OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
REPORT =

.PHONY: run test test-long wheel durations browsers notebooks lock audit bench load lint docs format checkpoints adapters recordings texts screenshot

run: .venv/installed
	@exec $(BIN)/python asgi.py --host $(HOST) $(if $(PORT),--port $(PORT)) --workers $(WORKERS)

test: .venv/installed-dev node_modules/installed
	$(BIN)/node --test "tests/js/*.test.js"
	$(PYTEST) -m "not long" $(REPORT)

test-long: .venv/installed-dev node_modules/installed
	$(PYTEST) -m long $(REPORT)

# Writes down what each file of the everyday tests takes; tests/test_house.py says how much it may be.
durations: .venv/installed-dev node_modules/installed
	LOUPE_REQUIRE_BROWSER=1 $(PYTEST) -m "not long" --record-durations

# In Chromium, Firefox ESR and WebKitGTK, which Debian has as chromium, firefox-esr, webkit2gtk-driver and xvfb.
browsers: .venv/installed-dev
	$(PIP) -r requirements-browsers.txt
	LOUPE_BROWSERS=all LOUPE_REQUIRE_BROWSER=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/browsers

# In JupyterLab and marimo, in an environment that has what .venv has, and them.
notebooks: .venv/installed-dev
	$(BIN)/python -m venv .venv-notebooks
	site='import sysconfig; print(sysconfig.get_path("purelib"))'; \
		$(BIN)/python -c "$$site" > "$$(.venv-notebooks/bin/python -c "$$site")/loupe.pth"
	.venv-notebooks/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-notebooks.txt
	JUPYTER_PATH="$(CURDIR)/.venv/share/jupyter" LOUPE_REQUIRE_BROWSER=1 OMP_NUM_THREADS=1 \
		.venv-notebooks/bin/python -m pytest tests/browser/test_notebooks.py

# What a package index or a release gets, in dist/.
wheel: $(BIN)/python
	$(PIP) build==1.6.1
	rm -rf build dist
	$(BIN)/python -m build --wheel

lint: .venv/installed-dev node_modules/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy engine views pages server bench loupe app.py asgi.py
	$(BIN)/node $(NODE)/eslint $(SCRIPTS)
	$(BIN)/node $(NODE)/tsc
	$(BIN)/node $(NODE)/prettier --log-level warn --check $(FORMATTED)

# The site of README, CONTRIBUTING.md and docs/, in site/. A link or an anchor that leads nowhere ends it, as does a page outside its menu.
docs: .venv/installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: .venv/installed-dev node_modules/installed
	$(BIN)/ruff format .
	$(BIN)/node $(NODE)/prettier --log-level warn --write $(FORMATTED)

load: .venv/installed-dev
	$(BIN)/python -m bench.load --workers $(WORKERS)
	$(BIN)/python -m bench.class_load --workers $(WORKERS)

bench: .venv/installed-dev
	$(BIN)/python -m bench

# Known faults of what is installed: asks the servers that list them.
audit: .venv/installed-dev node_modules/installed
	$(PIP) pip-audit==2.10.1
	$(BIN)/pip-audit --local --skip-editable --progress-spinner off
	$(BIN)/npm audit --audit-level high

# Recipes that learn from published texts find them in the folder CORPORA; without them they say where they can be had.
# What begins with another model, or is judged by one, after all others.
RESTS_ON := ^(base|judge) = 
checkpoints: .venv/installed
	for recipe in $$(grep -LE "$(RESTS_ON)" assets/recipes/*.toml; grep -lE "$(RESTS_ON)" assets/recipes/*.toml); do name=$$(basename $$recipe .toml); \
		LOUPE_CORPORA="$(CORPORA)" $(BIN)/python -m engine train $$recipe --out runs/$$name --publish $(OUT)/$$name \
			--licence MIT --stored float16 || exit 1; done
	$(BIN)/python -m scripts.compiled $(OUT)
	$(BIN)/python -m scripts.plane $(OUT)

adapters: .venv/installed
	for recipe in assets/adapt/style-*.toml; do name=$$(basename $$recipe .toml); \
		$(BIN)/python -m engine train $$recipe --out runs/$$name || exit 1; \
		cp -r runs/$$name/adapter/$$name assets/adapters/; done

# What the pages show before anybody trains: FOLDERS="assets/adapt/recorded", or all.
recordings: .venv/installed
	$(BIN)/python -m scripts.recordings $(FOLDERS)

# What lessons and their notes state of the shipped models.
texts: .venv/installed-dev
	$(BIN)/python -m scripts.numbers

screenshot: .venv/installed-dev
	$(BIN)/python -m scripts.screenshot

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("expected Python 3.11 or newer, got %d.%d; name one with make PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv .venv

.venv/installed: requirements.txt constraints.txt | $(BIN)/python
	$(PIP) -r requirements.txt
	@touch $@

.venv/installed-dev: requirements.txt requirements-dev.txt constraints.txt | $(BIN)/python
	$(PIP) -r requirements-dev.txt
	@touch $@ .venv/installed

# Notes what a fresh environment takes of all that the files of requirements allow; what torch brings for a GPU it pins itself.
# And the hashes of what the image takes of it, but torch's: each of its builds has others.
lock:
	: > constraints.txt
	$(PYTHON) -m venv --clear .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-browsers.txt -r requirements-replicas.txt -r requirements-sign-in.txt -r requirements-ray.txt -r requirements-store.txt
	.venv-lock/bin/python -m pip freeze | sed 's/+cpu$$//' | grep -Ev '^(cuda|nvidia|triton)' > constraints.txt
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	.venv-lock/bin/uv pip compile --quiet --no-header --no-annotate --generate-hashes --python-version 3.11 --python-platform linux -c constraints.txt requirements-replicas.txt \
		| awk '/^[a-z]/ {kept = !/^(cuda|nvidia|torch|triton)/} kept' > deploy/hashes.txt
	rm -r .venv-lock

# Node.js comes with the Python packages; npm with it brings what checks the JavaScript.
node_modules/installed: package-lock.json .venv/installed-dev
	$(BIN)/npm ci --silent
	@touch $@
