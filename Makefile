# make run   set everything up and serve the demo
# make test  set everything up, then lint, types and the whole test suite
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PEERS  := nsd unbound dnsmasq-base bind9-dnsutils knot-dnsutils dnsperf fstrm-bin dnstap-ldns
CONFIG ?= conf/conduit.yaml

.PHONY: run test lint types unit peers bench clean

run: $(VENV)/.installed
	$(BIN)/conduit -c $(CONFIG) --demo

test: $(VENV)/.installed-test peers
	$(MAKE) --no-print-directory lint types unit

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

unit: $(VENV)/.installed-test
	$(BIN)/python -m pytest $(PYTEST_ARGS)

bench: $(VENV)/.installed-test
	$(BIN)/python tools/bench/run

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "Python 3.10 or newer is needed")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-test: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[lmdb,otlp,test]'
	touch $(VENV)/.installed $@

# The servers and tools that the end-to-end tests talk to, from Debian packages; RUNLEVEL=1 keeps
# the packages from starting them as services.
peers:
	@missing=; for package in $(PEERS); do \
	  dpkg-query -W -f='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$package"; \
	done; \
	if [ -n "$$missing" ]; then \
	  if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
	  echo "installing$$missing"; \
	  $$sudo apt-get update -qq && \
	  $$sudo env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	    apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	fi

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
