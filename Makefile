# The commands of this repository; `make` alone lists them.
# Everything runs from .venv, which the first command that needs it makes (requirements/install).

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
export PYTHON
export PATH := $(PATH):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

bin := .venv/bin
stamp := .venv/.installed
pytest_arguments ?=
servers ?= embedded
workers ?= 4
seconds ?= 60
seed ?= random
faults ?=
jobs ?= 0
chaos_arguments ?=
key ?=

# Most tests wait for processes of theirs, so there are more workers than cores.  Tests of one file stay together, since
# they want the pool that a worker's scenarios share with the same settings; tests/scheduling.py says who takes which.
in_parallel = $(if $(filter-out 0,$(workers)),-n $(workers) --dist loadfile --no-loadscope-reorder)

.PHONY: help venv demo test test-quick check check-style check-mypy check-pyright bench chaos fmt lock clean docs-check \
	site changelog release compose-demo image-wheels

help:  ## this list
	@echo 'Kettle: high-throughput computing.  New here?  Try `make demo`, then `make test`.'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo 'One test:           make test pytest_arguments="tests/unit/classad -k undefined"'
	@echo 'Tests in turn:      make test workers=0'
	@echo 'Look for examples:  make test pytest_arguments="--hypothesis-profile=search tests/unit tests/properties"'
	@echo 'Half an hour of faults:  make chaos seconds=1800   (everything it can do: make chaos chaos_arguments=--help)'
	@echo 'On other servers:   make test servers=external (at KETTLE_NATS_URL, KETTLE_DATABASE_URL), cluster or containers'
	@echo 'Another Python:     make venv PYTHON=/path/to/python3.11'

venv: $(stamp)  ## make .venv with everything in it; the other targets do this themselves

$(stamp): pyproject.toml requirements/dev.txt requirements/tools.txt requirements/install
	@echo 'kettle: installing into .venv ...' >&2
	@requirements/install .venv
	@touch $@

demo: $(stamp)  ## start a throw-away pool, run a sweep of real jobs through a crash, check the answer
	@$(bin)/kettle demo

test: $(stamp)  ## the whole test suite, against real embedded NATS and PostgreSQL
	KETTLE_TEST_SERVERS=$(servers) $(bin)/python -m pytest --ignore=tests/performance $(in_parallel) $(pytest_arguments)

# Whatever has no servers, properties with few examples, and one small pool.
test-quick: $(stamp)  ## what a change is likely to break first
	KETTLE_TEST_EVALUATIONS=2000 $(bin)/python -m pytest -q --hypothesis-profile=quick $(in_parallel) -m 'not slow' -k 'not [nats' \
		--ignore-glob='*/contract/*_permissions.py' --ignore-glob='*/contract/test_permissions.py' \
		tests/unit tests/packaging tests/contract tests/properties tests/scenario/test_private.py $(pytest_arguments)

check: check-style check-mypy check-pyright  ## format, lint, import contracts, mypy, pyright, spelling (`-j` as well)

check-style: $(stamp)
	$(bin)/ruff format --check
	$(bin)/ruff check
	$(bin)/lint-imports --no-logo
	$(bin)/codespell

check-mypy: $(stamp)
	$(bin)/mypy

check-pyright: $(stamp)
	$(bin)/basedpyright

bench: $(stamp)  ## measure latency, throughput and memory (PART=table BEFORE=old.json: side by side); prints JSON
	@$(bin)/python -m tests.performance.bench $(foreach part,$(PART),--part $(part)) $(if $(BEFORE),--before $(BEFORE))

chaos: $(stamp)  ## break a pool on purpose, from a seed, and prove that it kept its promises (seconds=60 seed=random)
	@$(bin)/python -m kettle.testing.chaos --seconds $(seconds) --seed $(seed) --jobs $(jobs) \
		--faults '$(faults)' $(chaos_arguments)

fmt: $(stamp)  ## format, and mend what can be mended safely
	$(bin)/ruff format
	$(bin)/ruff check --fix

image-wheels: $(stamp)  ## what images are built from, so that their build needs no network
	PYTHON=$(bin)/python infra/images/fetch-wheels

compose-demo: $(stamp)  ## a pool in containers, which runs jobs and is thrown away (needs an engine)
	@infra/compose/demo $(bin)/kettle

docs-check: $(stamp)  ## every relative link in docs/ leads somewhere
	$(bin)/python -m pytest -q tests/packaging/test_docs.py

site:  ## the documentation as web pages, in dist/site; its links are checked
	infra/release/site

changelog: $(stamp)  ## what the news fragments will be in CHANGELOG.md
	@$(bin)/python infra/release/changelog.py "$$($(bin)/python -c 'from kettle import VERSION; print(VERSION)')" "$$(date +%F)"

release: $(stamp)  ## everything of a release in dist/, from the commit that is checked out (key=FILE signs it)
	infra/release/build $(key)

# Exact versions and hashes of every file of every release, and no address of where they came from.
# Every extra of pyproject.toml; an image has neither servers of its own nor what reads archives.
extras := $(foreach each,archive ec2 embedded fast ssh yaml,--extra $(each))
of_images := $(foreach each,ec2 fast ssh yaml,--extra $(each))
compile := uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header

lock: $(stamp)  ## pin the newest allowed releases in requirements/
	@command -v uv >/dev/null || $(bin)/python -m pip --quiet install --require-hashes -r requirements/tools.txt
	PATH="$$PATH:$(bin)" $(compile) --upgrade $(extras) pyproject.toml -o requirements/run.txt
	PATH="$$PATH:$(bin)" $(compile) --upgrade $(of_images) --constraints requirements/run.txt \
		pyproject.toml -o requirements/services.txt
	PATH="$$PATH:$(bin)" $(compile) --upgrade $(extras) --group dev \
		--constraints requirements/run.txt pyproject.toml -o requirements/dev.txt
	printf 'mkdocs>=1.6,<2\n' | PATH="$$PATH:$(bin)" $(compile) --upgrade - -o requirements/docs.txt
	printf 'uv\nhatchling\neditables\nsetuptools\n' | PATH="$$PATH:$(bin)" $(compile) \
		--upgrade --constraints requirements/dev.txt - -o requirements/tools.txt

clean:  ## remove what was made here: .venv, caches, builds
	rm -rf .venv .venv-docs dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find libs schemas services tests -name __pycache__ -type d -prune -exec rm -rf {} +
