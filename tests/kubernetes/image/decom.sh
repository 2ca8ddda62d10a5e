#!/bin/bash
# What runs in an executor's pod before it is told to end: Spark hands its shuffle files on, and the
# pod lives until the process has ended or the grace period is over.
set -euo pipefail
executor="$(pgrep -f KubernetesExecutorBackend | tail -n 1)"
kill -PWR "$executor"
tail --pid="$executor" -f /dev/null
