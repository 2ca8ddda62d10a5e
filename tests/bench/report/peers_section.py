"""Writes the part of docs/benchmarks on other shuffles, measured in turn with Faro."""

from measure import spread
from measure.spread import ratio

from . import spark_section
from .figures import NAMES, machine, number, table, with_spread

FIGURES = (
    ("job_s", "job s"),
    ("cpu_s", "executors' CPU s"),
    ("all_cpu_s", "everybody's CPU s"),
)
WHAT = {
    "stock": "Spark's own sort shuffle",
    "faro-auto": "`spark.shuffle.manager=io.faro.spark.FaroShuffleManager`",
    "comet": "Apache DataFusion Comet 0.12 with its own shuffle manager",
    "faro-comet": "the same, and `io.faro.spark.FaroPlugin` in `spark.plugins`",
    "celeborn": "a Celeborn master and a worker on this host; map outputs survive their executors",
    "celeborn-tuned": (
        "the same with 1,024 pushes in flight instead of 32: with 32 the client sleeps 50 ms when "
        "they are used up, which rules its times on one host"
    ),
    "uniffle": "a Uniffle coordinator and a server; map outputs survive their executors",
}
AIM = "faro-comet"
JOBS = {
    "NARROW": "24 million rows of 20 bytes, `repartition(200, h)`",
    "SORT": "4 million rows of a key and a string, sorted by range into 40 partitions",
    "JOIN": (
        "6 million rows joined with 3 million by `SHUFFLE_HASH`, then a count and a sum by group"
    ),
}
# The names in another heat of the sides that are in each heat.
OF_HEAT = {2: {"stock": "stock-2", "faro-auto": "faro-auto-2"}}


def write(results):
    workloads, facts = merged(results["heats"])
    queries = [name for name in workloads if name not in JOBS]
    return "\n\n".join(
        [
            "## Beside other shuffles",
            (
                "All sides read the same Parquet tables, which are in the page cache, on the Spark "
                "that Comet is for: three jobs into the sink `noop`"
                + (f", and TPC-DS ({', '.join(queries)}) at scale factor 10" if queries else "")
                + ". Two executors of one core on one host (`local-cluster[2,1,2048]`, "
                "heaps of 1 GB, `spark.shuffle.readHostLocalDisk=false`, `spark.local.dir` on a "
                "disk), otherwise Spark's defaults, with adaptive execution. Not all sides fit "
                "into the memory of this machine, so they are in two heats, with stock "
                "Spark and Faro in both. Each side is a running application, and the sides of a "
                "heat take turns. Figures are "
                "medians, with the lowest and highest in parentheses. Before it is measured each "
                "side gives its answer to the job or query, which is compared with stock Spark's. "
                "*Everybody's CPU* is that of the executors, the driver and the side's own "
                "servers; *loopback* is what the device `lo` carried in a run, requests and "
                "acknowledgements included, and nothing that travelled in shared memory. "
                "`spark.faro.fallback=never`. *Settings* is how many `--conf` a user needs besides "
                "the jar."
            ),
            "\n".join(f"- {name}: {JOBS[name]}" for name in workloads if name in JOBS),
            *facts,
            table(
                ["side", "what it is", "settings", "here"],
                [
                    [NAMES[side], WHAT[side], settings, "measured" if there else "not here"]
                    for side, settings, there in results["settings"]
                ],
            ),
            "![Beside other shuffles](benchmarks/peers.svg)",
            table(
                [
                    "workload",
                    "side",
                    *[label for _, label in FIGURES],
                    "loopback MB",
                    "job / stock",
                    "CPU / stock",
                ],
                rows(workloads),
            ),
            "### Where another side is faster than Faro, or uses less CPU",
            better(workloads),
            "### Aim: Faro behind Comet is not slower than Comet alone",
            aim(workloads),
            "### Are the answers the same",
            same_answers(workloads, results["broken"]),
            "### Did the bytes go through Faro",
            spark_section.proof(workloads, {}, all_read=False),
            (
                "Celeborn and Uniffle keep map outputs in servers of their own: an executor that "
                "is lost or given back takes no output with it. Faro, like stock Spark, computes "
                "such outputs again, unless an external shuffle service, decommissioning or "
                "`faro serve` (not used here) has saved them. That, not speed on one host, is what "
                "they are for."
            ),
        ]
    )


def merged(heats):
    """Returns the sides of all heats by workload, and a paragraph on each heat's runs."""
    workloads, facts = {}, []
    for which, heat in sorted(heats.items()):
        lots = {}
        for name, one in heat.get("workloads", {}).items():
            for side, measured in one["sides"].items():
                if measured["rounds"]:
                    into = OF_HEAT.get(int(which), {}).get(side, side)
                    workloads.setdefault(name, {})[into] = {**measured, "heat": int(which)}
            lots.setdefault(_same_run(one), []).append((name, one))
        facts += [_facts(which, found) for found in lots.values()]
    order = [*JOBS, *sorted(set(workloads) - set(JOBS))]
    return {name: workloads[name] for name in order if name in workloads}, facts


def _same_run(one):
    where = one["machine"]
    return (where["revision"], where["cpu"], where["date"], one["warm_ups"], one["rounds"])


def _facts(heat, found):
    first = found[0][1]
    # The length of a lot and the share of other processes are given once, not for each of its
    # workloads.
    lots = {tuple(one.get("lot", [name])): one for name, one in found}
    seconds = sum(one.get("seconds", 0) for one in lots.values())
    others = max((one.get("others", 0) for one in lots.values()), default=0)
    said = machine(
        {**first["machine"], "others": others}, first["command"], seconds, first["quick"]
    )
    names = ", ".join(name for name, _ in found)
    return (
        f"Heat {heat}, {names}: after one run for the answer and {first['warm_ups']} more to "
        f"warm up, {first['rounds']} measured.\n\n{said}"
    )


def stock_of(workload, side):
    """Returns stock Spark's results of the same heat."""
    return workload.get("stock-2" if workload[side].get("heat") == 2 else "stock", {})


def faro_of(workload, side):
    return workload.get("faro-auto-2" if workload[side].get("heat") == 2 else "faro-auto", {})


def _median(measured, key):
    figure = spread.of(measured.get("rounds", []), key)
    return figure[0] if figure else None


def _share(measured, other, key):
    value = ratio(_median(measured, key), _median(other, key))
    return "–" if value is None else f"{value:.2f}"


def rows(workloads):
    out = []
    for name, workload in workloads.items():
        for side, measured in workload.items():
            stock = stock_of(workload, side)
            out.append(
                [
                    name,
                    NAMES[side],
                    *[with_spread(spread.of(measured["rounds"], key)) for key, _ in FIGURES],
                    number((_median(measured, "loopback_bytes") or 0) / 1e6),
                    _share(measured, stock, "job_s"),
                    _share(measured, stock, "all_cpu_s"),
                ]
            )
    return out


def aim(workloads):
    out = []
    for name, workload in workloads.items():
        ours, alone = (
            spread.of(workload.get(s, {}).get("rounds", []), "job_s") for s in (AIM, "comet")
        )
        if ours and alone:
            # A difference counts only beyond noise: both the medians and the spreads must differ.
            slower = ours[0] > alone[0] and ours[1] > alone[2]
            out.append(
                [
                    name,
                    with_spread(ours),
                    with_spread(alone),
                    f"{ours[0] / alone[0]:.2f}",
                    "**no**" if slower else "yes" if ours[0] <= alone[0] else "yes, within noise",
                ]
            )
    return table(["workload", "behind Comet, job s", "Comet alone", "ratio", "met"], out)


def better(workloads):
    """Returns a line for each workload, side and figure in which only Faro is worse."""
    said = []
    for name, workload in workloads.items():
        for side, measured in workload.items():
            faro = faro_of(workload, side)
            if measured is faro:
                continue
            for key, label in (("job_s", "job s"), ("all_cpu_s", "everybody's CPU s")):
                theirs, ours = (spread.of(m.get("rounds", []), key) for m in (measured, faro))
                if theirs and ours and theirs[0] < ours[0]:
                    apart = "do not overlap" if theirs[2] < ours[1] else "overlap"
                    said.append(
                        f"- {name}, {label}: {NAMES[side]} {number(theirs[0])}, Faro alone "
                        f"{number(ours[0])} ({theirs[0] / ours[0]:.2f} of Faro's; the spreads "
                        f"{apart})"
                    )
    return "\n".join(said) or "- No side has a lower median than Faro alone."


def same_answers(workloads, broken):
    said = []
    for name, workload in workloads.items():
        found = {side: one["answer"] for side, one in workload.items() if "answer" in one}
        right = [NAMES[side] for side, same in found.items() if same is True]
        if right:
            said.append(f"- {name}, as stock Spark's: {', '.join(right)}")
        said += [
            f"- **{name}, {NAMES[side]}: not stock Spark's answer: {same}**"
            for side, same in found.items()
            if same is not True
        ]
    said += [f"- **{where} did not finish: {why}**" for where, why in broken.items()]
    return "\n".join(said) or "- None was compared."
