"""Writes the Spark workloads' part of docs/benchmarks.md."""

from measure import spread
from measure.spread import ratio

from .figures import NAMES, machine, number, table, with_spread

FIGURES = (("job_s", "job s"), ("reduce_s", "reduce stage s"), ("cpu_s", "executors' CPU s"))
# The head of the table that `rows` fills.
HEAD = [
    "workload",
    "side",
    *[label for _, label in FIGURES],
    "reduce vs stock",
    "reduce vs free",
    "remote blocks per run",
    "remote MB per run",
]
WHAT = {
    "A1": "`range(0,1600000,1,400)`, `repartition(400)`: 80,000 remote blocks of about 200 bytes",
    "B1": "24 x 8, uncompressed kilobyte strings, 404 MB remote",
    "B2": "24 x 8, narrow rows, lz4, 265 MB remote",
    "S": "range sort of 4 million rows, 40 x 40: a sampling job, the shuffle, sorts",
    "J": "shuffled hash join of 6 with 3 million rows, then a count by group, 64 partitions",
}
FREE_AIM = 1.05
# The maximum shares of stock Spark's figures that Faro aims at, in the order of FIGURES.
AIMS = {
    "A1": (0.55, 0.35, 0.5),
    "B1": (0.6, 0.55, 0.55),
    "B2": (0.5, 0.4, 0.5),
    "J": (0.75, 0.75, 0.75),
    "S": (0.75, 0.75, 0.75),
}


def write(results):
    workloads = dict(sorted(results["workloads"].items()))
    broken = results["broken"]
    parts = [
        "## Spark workloads",
        (
            "Two executors of one core (`local-cluster[2,1,2048]`, heaps of 1 GB, "
            "`spark.shuffle.readHostLocalDisk=false`, AQE off, `spark.local.dir` on tmpfs), "
            "sink `noop`. Each side is a running application, and the applications take "
            f"turns, after {results['warm_ups']} warm-up runs each. Figures are medians of "
            f"{results['rounds']} runs, with the lowest and highest in parentheses. Faro runs "
            "with `spark.faro.fallback=never`. *free* is Spark's own shuffle with a block "
            "client that maps the peer's file: no transport can be faster with Spark's "
            "reader. *Spark's reader* is `spark.faro.reader=spark`. CPU is the sum of both "
            "executor processes."
        ),
        machine(results["machine"], results["command"], results["seconds"], results["quick"]),
        "\n".join(f"- {name}: {WHAT[name]}" for name in workloads),
        "![Spark workloads](benchmarks/spark.svg)",
        table(
            HEAD,
            rows(workloads),
        ),
        "### Did the bytes go through Faro",
        proof(workloads, broken),
        "### Aims: parts of stock Spark's figures",
        aims(workloads),
        *free_aim(workloads),
        "### Where Faro is worse than stock Spark",
        losses(workloads, broken),
    ]
    return "\n\n".join(parts)


def _median(workload, side, key):
    figure = spread.of(workload.get(side, {}).get("rounds", []), key)
    return figure[0] if figure else None


def _percent(ours, theirs):
    value = ratio(ours, theirs)
    return "–" if value is None else f"{(value - 1) * 100:+.0f} %"


def rows(workloads):
    out = []
    for name in workloads:
        workload = workloads[name]
        for side, measured in workload.items():
            reduce_s = _median(workload, side, "reduce_s")
            rounds = measured["rounds"]
            out.append(
                [
                    name,
                    NAMES[side],
                    *[with_spread(spread.of(rounds, key)) for key, _ in FIGURES],
                    _percent(reduce_s, _median(workload, "stock", "reduce_s")),
                    _percent(reduce_s, _median(workload, "free", "reduce_s")),
                    number(_median(workload, side, "remote_blocks")),
                    number((_median(workload, side, "remote_bytes") or 0) / 1e6),
                ]
            )
    return out


def proof(workloads, broken, all_read=True):
    """Returns lines that prove that blocks came through Faro. `all_read` says that Faro's counts
    must equal Spark's."""
    same = "as many blocks and bytes as" if all_read else "no fewer blocks and bytes than"
    lines = []
    for name in workloads:
        for side, measured in workloads[name].items():
            counted = measured["faro"]
            if not counted or side in broken:
                continue
            ways = [
                f"{counted[key]:,.0f} blocks by {key.split('.')[1]}"
                for key in sorted(counted)
                if key.startswith("remoteBlocks.") and counted[key]
            ]
            lines.append(
                f"- {name}, {NAMES[side]}: {', '.join(ways) or 'nothing'}; {same} "
                "Spark's own metrics count as remote; "
                f"{counted.get('fallbacks', 0):.0f} fall-backs, "
                f"{counted.get('crcErrors', 0):.0f} CRC errors, "
                f"{counted.get('retries', 0):.0f} retries"
            )
    lines += [f"- **{NAMES[side]} did not finish: {why}**" for side, why in broken.items()]
    return "\n".join(lines) or "- Faro was not measured."


def aims(workloads):
    out = []
    for name, workload in workloads.items():
        for side in ("faro-spark", "faro-lz4", "faro-auto"):
            if side not in workload:
                continue
            row = [name, NAMES[side]]
            for (key, _), goal in zip(FIGURES, AIMS[name], strict=True):
                value = ratio(_median(workload, side, key), _median(workload, "stock", key))
                row.append("–" if value is None else f"{value:.2f}")
                if side != "faro-auto":
                    row.append("")
                elif value is None:
                    row.append(f"≤ {goal}")
                else:
                    row.append(f"≤ {goal}: {'met' if value <= goal else '**missed**'}")
            out.append(row)
    head = ["workload", "side"]
    for _, label in FIGURES:
        head += [f"{label.removesuffix(' s')} / stock", "aim"]
    return table(head, out)


def free_aim(workloads):
    """Returns a list of parts, which is empty if *free* was not among the sides."""
    out = []
    for name, workload in workloads.items():
        if "free" not in workload or "faro-spark" not in workload:
            continue
        values = [
            ratio(_median(workload, "faro-spark", key), _median(workload, "free", key))
            for key, _ in FIGURES
        ]
        good = [value is not None and value <= FREE_AIM for value in values]
        out.append(
            [
                name,
                NAMES["faro-spark"],
                *("–" if value is None else f"{(value - 1) * 100:+.1f} %" for value in values),
                "yes" if all(good) else "**in part**" if any(good) else "**no**",
            ]
        )
    if not out:
        return []
    head = ["workload", "side", *[f"{label[:-2]} vs free" for _, label in FIGURES], "met"]
    return ["### Transport alone: within 5 % of free", table(head, out)]


def losses(workloads, broken, compared=FIGURES):
    said = []
    for name in workloads:
        workload = workloads[name]
        for side in workload:
            if not side.startswith("faro") or side in broken:
                continue
            for key, label in compared:
                ours = spread.of(workload[side]["rounds"], key)
                stock = spread.of(workload.get("stock", {}).get("rounds", []), key)
                if ours and stock and ours[0] > stock[0]:
                    overlap = (
                        "; the spreads overlap"
                        if ours[1] <= stock[2]
                        else "; the spreads do not overlap"
                    )
                    if len(workload[side]["rounds"]) < 3:
                        overlap = "; too few runs for a spread"
                    said.append(
                        f"- {name}, {NAMES[side]}: {label} {number(ours[0])} against "
                        f"{number(stock[0])} ({_percent(ours[0], stock[0])}{overlap})"
                    )
    said += [f"- **{NAMES[side]} did not finish: {why}**" for side, why in broken.items()]
    return "\n".join(said) or "- Faro is not worse in any median figure."
