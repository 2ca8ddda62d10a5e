"""Writes the part of docs/benchmarks on TPC-DS at scale factor 10 and on large shuffles."""

from __future__ import annotations

import combined
import parts
from measure import spread
from report import spark_section, tpcds_section
from report.figures import NAMES, details, machine, number, table, with_spread

ORDER = ["stock", "faro-tcp", "faro-tcp-lz4", "faro-auto", "faro-lz4"]
FIGURES = tpcds_section.FIGURES
# The shares of stock Spark's sums that Faro aims at: issue 27 for Faro as it is, issue 28 for row
# blocks.
AIMS = {"job_s": 0.75, "cpu_s": 0.8, "written_bytes": 0.5}
LABELS = {**dict(FIGURES), "written_bytes": "bytes of shuffle", "remote_bytes": "remote bytes"}
# A side, and the same side without row blocks.
PAIRS = [("faro-tcp", "faro-tcp-lz4"), ("faro-auto", "faro-lz4")]


def write(heats: list, quick: bool) -> str:
    results = combined.of_kind(heats, parts.PLAIN)
    if not results:
        return "## Scale factor 10\n\nNot measured."
    broken = combined.broken(heats, parts.PLAIN)
    sides = combined.sides_of(results, ORDER)
    queries = {name: results[name] for name in sorted(results, key=_rank) if _is_query(name)}
    others = {name: results[name] for name in parts.WORKLOADS if name in results}
    facts, seconds = combined.machine_of(heats, [parts.PLAIN])
    tables = combined.lots(heats, [parts.PLAIN])[-1][1]["tables"]
    text = [
        "## Scale factor 10",
        (
            f"TPC-DS ({tables}), tables in Parquet that are in the page cache. Two executors "
            "of one core and a heap of 1 GB on one host (`local-cluster[2,1,2048]`), "
            "`spark.local.dir` on a disk, otherwise Spark's defaults: adaptive execution, "
            "broadcast joins, 200 partitions. `spark.shuffle.readHostLocalDisk=false` stands "
            "for two hosts: what an executor reads of the other one goes through the "
            "transport, here without a network. The sides take turns with lots of a few "
            "queries, each side in a new application that first answers a small query (q3) "
            "and does a repartition, and then each query once; the order of the sides is below. "
            "So classes that a query is the first to use are compiled in its "
            "time. Event logs are written on all sides. Faro runs with "
            "`spark.faro.fallback=never`. A figure is the median of the heats, with the "
            "lowest and highest in parentheses where there are several. CPU is the sum of "
            "both executor processes, with their compilers."
        ),
        machine(facts, "make bench SUITE=scale", seconds, quick),
        _heats(heats),
    ]
    most = max(sum(side in s for s in queries.values()) for side in sides if side != "stock")
    wide = [side for side in sides if sum(side in s for s in queries.values()) >= most]
    totals, complete = {}, _complete(queries, wide)
    if complete:
        totals = {side: tpcds_section.sums(complete, side) for side in wide}
        text += _by_query(complete, totals, wide, "")
    # The other sides were measured with some of the queries only.
    every = _complete(queries, sides)
    if wide != sides and every:
        some = {side: tpcds_section.sums(every, side) for side in sides}
        text += _by_query(every, some, sides, ", where all sides were measured")
    if others:
        text += [
            "### Large shuffles, and the workloads with adaptive execution",
            large(others, sides),
        ]
    text += [
        "### Scale factor 10: answers, and did the bytes go through Faro",
        _answers(results),
        details("By query", spark_section.proof(results, {}, all_read=False)),
        "### Where Faro is worse than stock Spark at scale factor 10",
        "\n".join(f"- **{NAMES[side]}: {why}**" for side, why in broken.items()),
        spark_section.losses({**complete, **others, "sum": totals}, {}, FIGURES),
    ]
    return "\n\n".join(part for part in text if part)


def _complete(queries: dict, sides: list[str]) -> dict:
    return {name: s for name, s in queries.items() if all(side in s for side in sides)}


def _by_query(queries: dict, totals: dict, sides: list[str], which: str) -> list[str]:
    text = []
    for key, label in FIGURES:
        body = tpcds_section.figures(queries, totals, sides, key)
        text += [f"### Scale factor 10, by query{which}: {label}", body]
    text += [f"### Scale factor 10, what was shuffled{which}", shuffled(queries, totals, sides)]
    return [*text, f"### Scale factor 10, aims{which}", aims(queries, totals, sides)]


def _rank(name: str) -> tuple:
    return (int("".join(c for c in name if c.isdigit()) or 0), name)


def _is_query(name: str) -> bool:
    return name not in parts.WORKLOADS


def _heats(heats: list) -> str:
    rows = []
    for heat, lot in combined.lots(heats, [parts.PLAIN]):
        rows.append(
            [
                heat.number,
                " ".join(lot["runs"]),
                ", ".join(NAMES[side] for side in lot["order"]),
                number(lot["seconds"]),
                f"{lot['machine']['others'] * 100:.0f} %",
                f"`{lot['command']}`",
            ]
        )
    head = ["heat", "queries", "order of the sides", "s in all", "other work", "command"]
    return details("The parts of the run", table(head, rows))


def shuffled(queries: dict, totals: dict, sides: list[str]) -> str:
    columns = [("MB written", "written_bytes", 1e6), ("fetch wait s", "fetch_wait_s", 1.0)]
    columns += [("MB spilled to disk", "spilled_bytes", 1e6)]
    head = ["query", *(f"{NAMES[side]}: {label}" for label, _, _ in columns for side in sides)]
    rows = []
    for name, measured in [*queries.items(), (tpcds_section.SUM, totals)]:
        cells = (
            number(_middle(measured, side, key, by)) for _, key, by in columns for side in sides
        )
        rows.append([name, *cells])
    return table(head, rows)


def _middle(measured: dict, side: str, key: str, by: float = 1.0):
    figure = spread.of(measured.get(side, {}).get("rounds", []), key)
    return figure and figure[0] / by


def aims(queries: dict, totals: dict, sides: list[str]) -> str:
    rows = []
    for side in sides[1:]:
        for key, aim in AIMS.items():
            if key == "written_bytes" and side.endswith("lz4"):
                continue
            value = spread.ratio(_middle(totals, side, key), _middle(totals, "stock", key))
            if value is not None:
                met = "yes" if value <= aim else "**no**"
                rows.append(
                    [NAMES[side], f"{LABELS[key]} / stock", f"≤ {aim}", f"{value:.2f}", met]
                )
        slower = [name for name in queries if _slower(queries[name], side)]
        met = "yes" if not slower else f"**no**: {', '.join(slower)}"
        few = min(len(queries[n][side]["rounds"]) for n in queries) < 2
        what = "queries that are slower" + (" (one run: no spread)" if few else ", spreads apart")
        rows.append([NAMES[side], what, "0", str(len(slower)), met])
    for ours, plain in PAIRS:
        if ours in sides and plain in sides:
            for key, label in [*FIGURES, ("written_bytes", LABELS["written_bytes"])]:
                value = spread.ratio(_middle(totals, ours, key), _middle(totals, plain, key))
                if value is not None:
                    aim = "≤ 1" if key != "written_bytes" else "–"
                    met = "–" if aim == "–" else "yes" if value <= 1.0 else "**no**"
                    what = f"{label} / the same without row blocks"
                    rows.append([NAMES[ours], what, aim, f"{value:.2f}", met])
    return table(["side", "sum of the queries", "aim", "measured", "met"], rows)


def _slower(measured: dict, side: str) -> bool:
    ours = spread.of(measured[side]["rounds"], "job_s")
    stock = spread.of(measured["stock"]["rounds"], "job_s")
    return ours[1] > stock[2]


def large(workloads: dict, sides: list[str]) -> str:
    rows = []
    for name, measured in workloads.items():
        for side in sides:
            if side not in measured:
                continue
            rounds = measured[side]["rounds"]
            row = [name, NAMES[side]]
            row += [with_spread(spread.of(rounds, key)) for key, _ in FIGURES]
            row += [number(_middle(measured, side, "written_bytes", 1e6))]
            row += [number(_middle(measured, side, "spilled_bytes", 1e6))]
            for key, _ in FIGURES:
                ratio = spread.ratio(_middle(measured, side, key), _middle(measured, "stock", key))
                row.append("–" if side == "stock" or ratio is None else f"{ratio:.2f}")
            rows.append(row)
    head = ["workload", "side", "job s", "executors' CPU s", "MB written", "MB spilled"]
    return table([*head, "job / stock", "CPU / stock"], rows)


def _answers(results: dict) -> str:
    compared = [a for sides in results.values() for run in sides.values() for a in run["answers"]]
    wrong = [a for a in compared if a is not True]
    said = f"- {len(compared)} answers of Faro were compared with stock Spark's; "
    return said + (f"**{len(wrong)} differ: {wrong[0]}**" if wrong else "all are the same")
