# dramigrate: `make demo` shows the tool at work, `make test` is the whole proof.
# Needed: Go, a C compiler (for -race), git, make; Linux and root for the cluster.
# Everything else is built from pinned Go modules into $(CACHE).

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
LDFLAGS     := -s -w -X main.version=$(VERSION)
CLUSTER     := go run ./test/cluster

# The Kubernetes version of `make truth`.
K8S         ?= 1.37.2

# Both modules of the workspace, each by the folder it lives in.
MODULES := . ./test/cluster

.PHONY: help
help: ## Show the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/dramigrate, static
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/dramigrate ./cmd/dramigrate

# The linker flag is for C compilers that have all symbols resolved at the start: those
# of the driver's library are resolved when it is loaded.
.PHONY: node-helper
node-helper: ## Build bin/dramigrate-node, which sees the hardware of nodes; needs cgo, Linux
	CGO_ENABLED=1 go build -trimpath -tags nvml -ldflags '$(LDFLAGS) -extldflags=-Wl,-z,lazy' -o bin/dramigrate-node ./cmd/dramigrate

# The name of the helper's image, and what builds it.
IMAGE       ?= dramigrate-helper:$(VERSION)
CONTAINERS  ?= $(shell command -v docker || command -v podman)

.PHONY: image
image: ## Build the helper's image, by docker or podman
	@test -n "$(CONTAINERS)" || { echo "image: neither docker nor podman is here; make node-helper builds the program alone"; exit 1; }
	$(CONTAINERS) build --build-arg VERSION='$(VERSION)' -t '$(IMAGE)' .

.PHONY: docs
docs: ## Write docs/reference and docs/schema anew, from the code
	go run ./internal/gendocs docs

.PHONY: demo
demo: build ## The main job on a local cluster, start to rollback
	go -C test/cluster run ./demo --dramigrate $(CURDIR)/bin/dramigrate

.PHONY: by-hand
by-hand: build ## The same job by hand with kubectl and by dramigrate, measured; see docs/by-hand
	go -C test/cluster run ./byhand --dramigrate $(CURDIR)/bin/dramigrate

.PHONY: test
test: check test-unit test-e2e ## Everything: static checks, unit and script tests, end to end on real kubelets

.PHONY: test-fast
test-fast: check test-unit ## Static checks, unit, golden and script tests

.PHONY: test-slow
test-slow: build ## What takes real minutes: the kubelet's own 5-minute grace, Kubernetes 1.36.3
	go -C test/cluster test -tags slow -timeout 60m -count=1 -parallel 4 ./e2e -run 'TestSlow'

.PHONY: check
check: ## gofmt, vet, staticcheck, tidy modules
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt: these files are not formatted:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy -diff); done
	for m in $(MODULES); do go -C $$m vet -tags nvml ./... ; done
	for m in $(MODULES); do (cd $$m && go run $(STATICCHECK) -tags nvml ./...); done

.PHONY: test-unit
test-unit: ## Unit, golden and script tests, with the race detector
	go test -race -count=1 -tags nvml -ldflags=-extldflags=-Wl,-z,lazy ./...
	go -C test/cluster test -race -count=1 -tags nvml -ldflags=-extldflags=-Wl,-z,lazy ./internal/... ./manifests/... ./truth

.PHONY: test-html
test-html: ## The HTML plan in headless Chromium, $$DRAMIGRATE_CHROMIUM or the one in PATH
	@browser="$${DRAMIGRATE_CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}"; \
	test -n "$$browser" || { echo "test-html: no Chromium found; install it (Debian: the package chromium) or set DRAMIGRATE_CHROMIUM"; exit 1; }; \
	DRAMIGRATE_CHROMIUM="$$browser" go test -count=1 -run TestHTMLInBrowser -v ./internal/report

# A cluster of four nodes takes about 36 of the 128 inotify instances that a user has by
# default (kubelet 6, plugin and driver, control plane 9): three fit, four do not.
.PHONY: test-e2e
test-e2e: build ## End to end on a real control plane and real kubelets
	go -C test/cluster test -count=1 -p 1 -timeout 75m -parallel 3 ./cluster ./e2e

.PHONY: node-e2e
node-e2e: ## What nodes say of themselves, on real kubelets with a stand-in for the driver's library; part of test-e2e
	go -C test/cluster test -count=1 -timeout 20m -v ./e2e -run '^TestProbe$$'

.PHONY: truth
truth: ## Prove what the checks rest on, K8S=1.37.2 or 1.36.3, on a real cluster; see docs/truth.md
	go -C test/cluster run ./truth --kubernetes $(K8S)

.PHONY: cluster-up
cluster-up: ## Start the local cluster and leave it running
	$(CLUSTER) up

.PHONY: cluster-down
cluster-down: ## Stop the local cluster
	$(CLUSTER) down

.PHONY: cluster-status
cluster-status: ## Say what runs
	$(CLUSTER) status
