# Two commands set everything up by themselves: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Many wait for switches: four left two cores idle for an eighth of the time.
PYTEST := $(BIN)/pytest -n 5 --dist loadgroup --no-loadscope-reorder
EXTRAS := ryu,os-ken,http,mininet,plots,analyse,cluster,docs
DEMO_EXTRAS := ryu,mininet,http

# The one list of Debian packages: ovs-vswitchd, mnexec, ip, unshare; for tests only ping, a browser,
# routers, a subnet manager with a fabric to manage, a network simulator, shells, and for long tests
# containers.
DEBIAN_PACKAGES := openvswitch-switch mininet iperf3 iproute2 util-linux
test test-all: DEBIAN_PACKAGES += bird2 chromium chromium-driver etcd-server fish frr iputils-ping opensm ibsim-utils ibutils libumad2sim0 infiniband-diags prometheus \
  g++ libsimgrid-dev strace zsh
test-all: DEBIAN_PACKAGES += podman runc

# The stamp names the checkout: a virtual environment survives neither a move nor a new Python.
# What only tests, checks and the manual need has a stamp of its own: `make demo` goes without.
STAMP := $(VENV)/.made
DEVELOPMENT := $(VENV)/.development
UNFINISHED := $(VENV)/.unfinished
ifneq ($(shell [ ! -e $(UNFINISHED) ] && $(BIN)/python -c 'import pip' 2>/dev/null && cat $(STAMP) 2>/dev/null),$(CURDIR))
STALE := stale
endif

PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-compile --constraint constraints.txt
# In half of pip's time. It reads no settings of pip, such as another index: pip comes after it.
UV_PIP := $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt

# Hundreds of processes import our modules: each compiles them anew where no bytecode may be kept.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-versions docs recording release lint checks clean python debian stale
.NOTPARALLEL:
.ONESHELL:
SHELL := /bin/sh
.SHELLFLAGS := -eu -c

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name says
	do printf '  make %-13s %s\n' "$$name" "$$says"
	done

demo: $(STAMP) | debian ## set up, then bring up a PolarFly fabric of 13 switches and check it (1 to 3 minutes)
	$(BIN)/polarfab emulate first-light-q3 --engine auto

# Compiling the tests once spares every worker doing so for itself.
COLLECTED := $(VENV)/collected.log
COLLECT := { $(BIN)/pytest --collect-only --quiet > $(COLLECTED) || { tail -20 $(COLLECTED); false; }; }

test: $(DEVELOPMENT) | debian ## set up, then run the tests but those marked long (7 minutes)
	@$(COLLECT)
	$(PYTEST) -m 'not long'

test-all: $(DEVELOPMENT) | debian ## the same with the tests marked long
	@$(COLLECT)
	NUMBA_OPT=3 $(PYTEST) -m 'not alone'
	$(BIN)/pytest -m alone

checks: export MANUAL_EXHIBITS := projective
checks: lint docs ## what does not run polarfab: lint, types, import arrows, links of the manual (2 minutes)

# Quick tests that use every dependency, with the lowest versions that pyproject.toml allows on the
# oldest Python that is here, and with the newest that there are on the newest Python and that of
# .venv; then the wheel on all but that one, with the newest: a release that breaks polarfab fails here.
# Loops are in machine code in one test: else each Python translates all of them, which no test looks at.
# It is optimised as for users.
QUICK := $(addprefix tests/,inventory/test_hardware_model.py compilers/topology/test_formats.py \
  compilers/routing/test_routes_by_family.py compilers/tables/test_build_folder.py \
  compilers/drawing/test_plots.py controller/management/test_management.py \
  controller/management/test_http_process.py::test_why_a_short_body_is_refused_is_read_by_its_sender \
  controller/management/test_http_process.py::test_a_client_that_has_ended_its_side_gets_the_answer \
  polarfab/test_minimal_path.py::test_machine_code_follows_the_same_rule[polarfly-parameters0] \
  mininet_scenarios/verdict/test_report.py polarfab/test_cli.py)
test-versions: $(DEVELOPMENT) ## the wheel on every other Python here, quick tests with the lowest and newest dependencies
	@pythons=$(VENV)/pythons.txt lowest=$(VENV)/lowest.txt
	$(BIN)/python -m tests.interpreters > $$pythons
	grep -oE '"[a-z-]+>=[0-9][^"]*"' pyproject.toml | tr -d '"' | sed 's/>=/==/' | sort -u > $$lowest
	quick() {
	  read -r version python
	  echo "Python $$version $$*"
	  "$$python" -m venv --without-pip --clear $(VENV)/python$$version-$$1
	  python=$(VENV)/python$$version-$$1/bin/python
	  shift
	  $(BIN)/uv pip install --quiet --python $$python "$$@" --group test --editable '.[os-ken,http,placement,plots]'
	  POLARFAB_LOOPS=python NUMBA_OPT=3 $$python -m pytest -q -m 'not (live or browser or long)' --ignore-glob '*_page.py' $(QUICK)
	}
	own=$$($(BIN)/python -c 'import sys; print("%d.%d " % sys.version_info[:2])')
	{ tail -n 1 $$pythons; sed '$$d' $$pythons | grep "^$$own" || :; } | while read -r line; do
	  echo "$$line" | quick newest
	done > $(VENV)/newest.log 2>&1 &
	newest=$$!
	head -n 1 $$pythons | quick lowest --constraint $$lowest &
	wait $$! || { wait; exit 1; }
	$(PYTEST) tests/test_packaging.py --other-pythons || { wait; exit 1; }
	wait $$newest || { cat $(VENV)/newest.log; exit 1; }
	cat $(VENV)/newest.log

docs: $(DEVELOPMENT) ## the manual as a site in dist/docs, every link checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet --site-dir dist/docs

recording: $(DEVELOPMENT) | debian ## run commands of the README and a rehearsal, and keep their pictures in docs/pictures (2 minutes)
	$(BIN)/python -m manual.recording

release: $(DEVELOPMENT) ## check the checkout, build and try what would be uploaded, and stop there
	@$(BIN)/python release.py

lint: $(DEVELOPMENT) ## ruff, mypy --strict, import-linter
	$(BIN)/ruff check --quiet .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports > $(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }

clean: ## remove the virtual environment, caches and dist/
	[ ! -L $(VENV) ] || rm $(VENV)
	rm -rf $(BIN) $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@command -v '$(PYTHON)' >/dev/null || {
	  echo "polarfab needs Python 3.11 or newer, and there is no '$(PYTHON)'. Install python3, or name" \
	    "another one: make test PYTHON=/path/to/python3.11" >&2
	  exit 1
	}
	'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
	  echo "polarfab needs Python 3.11 or newer; '$(PYTHON)' is" \
	    "$$('$(PYTHON)' --version 2>&1). Name another one: make test PYTHON=python3.11" >&2
	  exit 1
	}

debian: python
	@command -v apt-get >/dev/null || {
	  echo "Set-up: no apt-get here. For real switches install Open vSwitch, Mininet's mnexec, ip" \
	    "and unshare; without them the packet walker stands in."
	  exit 0
	}
	missing=
	for package in $(DEBIAN_PACKAGES); do
	  dpkg-query -W -f '$${Status}' "$$package" 2>/dev/null | grep -q 'ok installed' \
	    || missing="$$missing $$package"
	done
	'$(PYTHON)' -c 'import ensurepip' 2>/dev/null || missing="$$missing $$(
	  '$(PYTHON)' -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
	[ -n "$$missing" ] || exit 0
	install="apt-get install -y --no-install-recommends$$missing"
	retry="apt-get update && $$install"
	if [ "$$(id -u)" != 0 ]; then
	  echo "Set-up: going on without some Debian packages. To have them, as root: $$retry"
	  exit 0
	fi
	echo "Set-up: installing Debian packages:$$missing"
	export DEBIAN_FRONTEND=noninteractive
	log=$$(mktemp)
	# An earlier run that was interrupted leaves packages half configured, and apt refuses to go on.
	{ dpkg --configure -a; apt-get update && $$install -o DPkg::Lock::Timeout=120; } > "$$log" 2>&1 || {
	  tail -n 15 "$$log"
	  echo "Set-up: that did not work; going on without. To try again: $$retry"
	}
	rm -f "$$log"

$(STAMP): pyproject.toml constraints.txt build-constraints.txt $(STALE) | debian
	@usable() {
	  [ ! -e $(UNFINISHED) ] && $(BIN)/python -c 'import pip' 2>/dev/null \
	    && { [ ! -e $(STAMP) ] || [ "$$(cat $(STAMP))" = '$(CURDIR)' ]; }
	}
	if ! usable; then
	  '$(PYTHON)' -c 'import ensurepip' 2>/dev/null || {
	    echo "'$(PYTHON)' cannot make virtual environments; install Debian's" \
	      "$$('$(PYTHON)' -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])') first." >&2
	    exit 1
	  }
	  echo "Set-up: making $(VENV)"
	  [ ! -L $(VENV) ] || rm $(VENV) # another checkout's: its files are not ours
	  rm -rf $(BIN) $(VENV) # bin first: what an interrupt leaves must not look whole
	  mkdir $(VENV)
	  touch $(UNFINISHED)
	  '$(PYTHON)' -m venv $(VENV)
	fi
	touch $(UNFINISHED)
	echo "Set-up: installing polarfab and what it needs into $(VENV) (a minute or two)"
	$(PIP) --upgrade pip
	$(PIP) --build-constraint build-constraints.txt --editable '.[$(DEMO_EXTRAS)]'
	rm $(UNFINISHED)
	printf '%s\n' '$(CURDIR)' > $(STAMP)

$(DEVELOPMENT): $(STAMP)
	@echo "Set-up: installing what tests and the manual need into $(VENV) (a minute or two)"
	touch $(UNFINISHED)
	$(PIP) uv
	all="--build-constraint build-constraints.txt --group dev --editable .[$(EXTRAS)]"
	$(UV_PIP) $$all || $(PIP) $$all
	rm $(UNFINISHED)
	touch $(DEVELOPMENT)
