"""Puts results between the markers of docs/benchmarks.md."""

import re

HEAD = """# Benchmarks

`make bench` measures the transport ladder, the Spark workloads and the TPC-DS queries,
`make bench-softroce` the RDMA section, and `make bench-memory` the sections on memory. Each command
writes its sections between the markers. `tests/bench/run --ladder`, `--spark`, `--tpcds` and
`--secure` measure one part; `--peers` is `make bench-peers`, and `--cpu` finds out with `perf`
where the workloads' CPU goes. `--quick` is a smoke run that does not change this file. The ladder
is stored by file system and `--peers` by workload; `--report` writes what is stored, and
`--peers --resume` goes on where a run ended.
`make bench-scale` measures TPC-DS at scale factor 10, large shuffles and links of 1 to 25 Gbit/s,
and compares `faro advise` with what was measured; `tests/bench/scale/run --help` says how to do it
in parts. `make bench-service` measures what a node service costs and saves.
`tests/bench/rows/run` measures row blocks by kind of rows.
"""


def put(path, name, text):
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    block = f"{begin}\n{text}\n{end}"
    before = path.read_text() if path.exists() else HEAD
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if pattern.search(before):
        after = pattern.sub(lambda _: block, before)
    else:
        after = before.rstrip("\n") + "\n\n" + block + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(after)
