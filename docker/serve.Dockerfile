# `faro serve` for the chart in faro-serve/, and any other part of the command faro. `make release` makes the image without an
# engine (tests/release/oci.py), from this file. The context has the command: dist/faro-x86_64 as faro.
ARG BASE=debian:bookworm-slim
FROM ${BASE}

# What Faro looks for at run time, if there is RDMA.
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libibverbs1 ibverbs-providers \
 && rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log

COPY faro /usr/local/bin/

# Of executors on Kubernetes.
USER 185
ENTRYPOINT ["/usr/local/bin/faro"]
