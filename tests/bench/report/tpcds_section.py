"""Writes the TPC-DS queries' part of docs/benchmarks.md."""

from measure import spread
from measure.spread import ratio

from . import spark_section
from .figures import NAMES, machine, number, table, with_spread

FIGURES = (("job_s", "job s"), ("cpu_s", "executors' CPU s"))
SUM = "**sum**"
# The share of stock Spark's sum that Faro aims at.
AIM = 0.9


def write(results):
    queries, broken = results["workloads"], results["broken"]
    sides = [side for side in results["sides"] if side not in broken]
    totals = {side: sums(queries, side) for side in sides}
    parts = [
        "## TPC-DS queries",
        (
            f"Ten heavy queries, scale factor {results['scale']}, Parquet tables that are in the "
            "page cache. Two executors of one core (`local-cluster[2,1,2048]`, heaps of 1 GB, "
            "`spark.shuffle.readHostLocalDisk=false`, `spark.local.dir` on tmpfs), otherwise "
            "Spark's defaults, with adaptive execution and broadcast joins. Each side is a running "
            "application, and the applications take turns with each query. Runs to warm up: "
            f"{results['warm_ups']}. Figures are medians of {results['rounds']} runs, "
            "with the lowest and highest in parentheses; a run's sum is that of all queries. Faro "
            "runs with `spark.faro.fallback=never`. *Spark's reader* "
            "is `spark.faro.reader=spark`. CPU is the sum of both executor processes, with their "
            "compilers."
        ),
        machine(results["machine"], results["command"], results["seconds"], results["quick"]),
    ]
    for key, label in FIGURES:
        parts += [f"### By query: {label}", figures(queries, totals, sides, key)]
    parts += [
        f"### Aim: the sum at most {AIM} of stock Spark's",
        aim(totals, sides),
        "### Did the queries' bytes go through Faro",
        spark_section.proof(queries, broken, all_read=False),
        "### Where Faro is worse than stock Spark with these queries",
        spark_section.losses({**queries, "sum": totals}, broken, FIGURES),
    ]
    return "\n\n".join(parts)


def sums(queries, side):
    """Returns a side's rounds, each summed over all queries as if they were one workload."""
    rounds = [queries[name][side]["rounds"] for name in queries if side in queries[name]]
    count = min(map(len, rounds), default=0)
    keys = [
        key
        for key in (rounds[0][0] if count else {})
        if all(one.get(key) is not None for runs in rounds for one in runs)
    ]
    return {
        "rounds": [{key: sum(one[i][key] for one in rounds) for key in keys} for i in range(count)]
    }


def figures(queries, totals, sides, key):
    """Returns a row for each query and one for the sum."""
    head = ["query", *(NAMES[side] for side in sides)]
    head += [f"{NAMES[side]} / stock" for side in sides[1:]] + ["remote MB"]
    rows = []
    for name, sides_of in [*queries.items(), (SUM, totals)]:
        measured = [sides_of.get(side, {}).get("rounds", []) for side in sides]
        found = [spread.of(rounds, key) for rounds in measured]
        remote = spread.of(measured[0], "remote_bytes")
        ratios = [ratio(one and one[0], found[0] and found[0][0]) for one in found[1:]]
        rows.append(
            [
                name,
                *map(with_spread, found),
                *("–" if value is None else f"{value:.2f}" for value in ratios),
                number(remote and remote[0] / 1e6),
            ]
        )
    return table(head, rows)


def aim(totals, sides):
    rows = []
    for side in sides[1:]:
        for key, label in FIGURES:
            ours, stock = (spread.of(totals[s]["rounds"], key) for s in (side, sides[0]))
            value = ratio(ours and ours[0], stock and stock[0])
            if value is not None:
                met = "yes" if value <= AIM else "**no**"
                rows.append([NAMES[side], label, f"{value:.2f}", met])
    return table(["side", "figure", "sum / stock", "met"], rows)
