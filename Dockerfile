# The helper's image: the program as its entry point, built with cgo for the NVIDIA
# driver's library, on a glibc that the driver's libraries find. `make image` builds it.
FROM golang:1.26-bookworm AS build
ARG VERSION=devel
WORKDIR /src
COPY go.mod go.sum ./
RUN GOWORK=off go mod download
COPY cmd cmd
COPY internal internal
RUN GOWORK=off CGO_ENABLED=1 go build -trimpath -tags nvml \
    -ldflags "-s -w -X main.version=${VERSION} -extldflags=-Wl,-z,lazy" -o /dramigrate ./cmd/dramigrate

# No older than the build's: a program needs the glibc it was linked with, or a newer one.
FROM debian:13-slim
COPY --from=build /dramigrate /usr/local/bin/dramigrate
# Pods that ask the kubelet say in their own spec that they run as root.
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/dramigrate"]
