"""Defines the parts on node services, and writes their section of docs/benchmarks.md."""

from dataclasses import dataclass, field

from measure import spread
from report.figures import NAMES, machine, number, table, with_spread

CONF: dict[str, str] = {}
STOCK, STOCK_SERVICE, FARO, SERVICE = "stock", "stock-service", "faro-tcp", "faro-tcp-service"
REPLICAS = "faro-tcp-replicas"
SIDES = [STOCK, STOCK_SERVICE, FARO, SERVICE, REPLICAS]
REPLICATED = [FARO, SERVICE, REPLICAS]
WHAT = {
    "B2": "24 x 8 blocks of narrow rows, lz4, 265 MB remote",
    "A1": "400 x 400 blocks, 80,000 of them remote, of about 200 bytes",
}
# The workload whose executors are killed.
KILLED = "B2"


@dataclass(frozen=True)
class Part:
    executors: int
    memory: int
    sides: list[str]
    # Workloads without faults, and their numbers of warm-ups.
    workloads: dict[str, int] = field(default_factory=dict)
    # Number of executors that are killed.
    victims: int = 0
    # Executors come and go, up to `executors`.
    elastic: bool = False
    # Settings of all sides, and of one.
    conf: dict[str, str] = field(default_factory=dict)
    of_side: dict[str, dict[str, str]] = field(default_factory=dict)
    # It has applications of its own.
    apart: bool = False
    # Each executor has a host of its own, with a link of so many Gbit/s.
    gigabits: float = 0


ALLOCATION = {
    # The driver of a standalone cluster counts an executor for 5 s more after it has ended.
    "spark.standalone.executorRemoveDelayOnDisconnection": "0s",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "4",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
}
TRACKING = "spark.dynamicAllocation.shuffleTracking.enabled"

# Parts with the same number of executors share the applications of the first of them, unless they
# are apart.
PARTS = {
    "plain": Part(2, 2048, SIDES[:4], workloads={"B2": 2, "A1": 1}),
    "killed-1-of-2": Part(2, 2048, [STOCK, STOCK_SERVICE, SERVICE], victims=1),
    "killed-3-of-4": Part(4, 1024, [STOCK, SERVICE], victims=3),
    "replicas": Part(2, 2048, REPLICATED, workloads={"B2": 4, "A1": 2}, apart=True),
    "replicas-10": Part(2, 2048, REPLICATED, workloads={"B2": 4, "A1": 2}, apart=True, gigabits=10),
    "allocation": Part(
        4,
        1024,
        [STOCK, FARO, SERVICE],
        elastic=True,
        conf=ALLOCATION,
        of_side={STOCK: {TRACKING: "true"}, FARO: {TRACKING: "true"}, SERVICE: {TRACKING: "false"}},
        apart=True,
    ),
}


def applications(name):
    """What is the same for parts that share their applications."""
    return name if PARTS[name].apart else PARTS[name].executors


def write(parts):
    text = [
        "## A node service",
        (
            "`faro serve` ([service.md](service.md)) on this host, beside Spark's own shuffle "
            "service and executors that serve by themselves. Executors of one core on one host "
            "(`spark.shuffle.readHostLocalDisk=false`, AQE off, `spark.local.dir` and "
            "`--data-dir` on tmpfs), all blocks over TCP. Each executor has a `faro serve` of its "
            "own, as on several hosts: executors that share one read files that it lends. Spark's "
            "shuffle service is one for all. Each side is a running application, and the "
            "applications take turns. Figures are medians, with the lowest and highest in "
            "parentheses."
        ),
    ]
    for name, part in ((name, parts[name]) for name in PARTS if name in parts):
        if not _has_runs(name, part["result"]):
            continue
        text += [
            machine(part["machine"], part["command"], part["seconds"], False),
            *_text(name, part),
        ]
        text += [
            f"- **{NAMES[side]} did not finish: {why}**" for side, why in part["broken"].items()
        ]
    return "\n\n".join(text)


def _text(name, part):
    if PARTS[name].victims:
        return _killed(name, part)
    if PARTS[name].elastic:
        return _elastic(name, part)
    if REPLICAS in PARTS[name].sides:
        return _plain(part, *_about_copies(PARTS[name].gigabits, part.get("link_gigabits")))
    return _plain(part, "Jobs without faults", "")


def _about_copies(gigabits, speed):
    """Returns the title and a text."""
    title = "Copies on another host"
    about = (
        "With `replicas=1` each `faro serve` copies the map outputs of the other executor while "
        "the job runs; "
    )
    if not gigabits:
        return title, f"{about}both are on this machine."
    return (
        f"{title}, links of {gigabits:g} Gbit/s",
        (
            f"{about}each has a network namespace, shared with its executor, and a link that the "
            f"kernel's token bucket limits in both directions; one TCP connection got {speed:.2f} "
            "Gbit/s. Both hosts and their network share the two cores of this machine."
        ),
    )


def _plain(part, title, about):
    workloads = part["result"]
    runs = _most(each["rounds"] for sides in workloads.values() for each in sides.values())
    text = [
        f"### {title}",
        f"Two executors, {runs} runs each after warm-ups. {about}".strip(),
        "\n".join(f"- {name}: {WHAT[name]}" for name in workloads),
        table(
            [
                "workload",
                "side",
                "job s",
                "executors' CPU s",
                "daemon's CPU s",
                "job vs executors alone",
            ],
            [
                _plain_row(name, side, sides)
                for name, sides in workloads.items()
                for side in sides
                if sides[side]["rounds"]
            ],
        ),
    ]
    served = [row for name, sides in workloads.items() for row in _served(name, sides)]
    if served:
        text += [
            (
                "What the daemons did for it: they served all remote blocks of these runs. Faro's "
                "side has two, one for each executor, as on two hosts; Spark's has one for both. "
                "Resident memory is the sum of a side's daemons after a run, with the shared "
                "memory that they have touched; Spark's has a heap of 1g, as its script gives it."
            ),
            table(
                ["workload", "daemon", "blocks of a run", "CPU, µs for each block", "resident MB"],
                served,
            ),
        ]
    return text


def _has_runs(name, result):
    """A signal may have ended the measurement before."""
    victims = PARTS[name].victims
    if PARTS[name].elastic:
        return any(result.values())
    if victims:
        return any(result.get(str(victims), {}).values())
    return any(side["rounds"] for sides in result.values() for side in sides.values())


def _most(all_runs):
    return max(map(len, all_runs), default=0)


def _plain_row(name, side, sides):
    rounds = sides[side]["rounds"]
    keys = ("job_s", "cpu_s", "daemons_cpu_s")
    cells = [with_spread(spread.of(rounds, key)) for key in keys]
    alone = {STOCK_SERVICE: STOCK, SERVICE: FARO, REPLICAS: FARO}.get(side)
    if not alone:
        cells[2] = "–"
    return [name, NAMES[side], *cells, _ratio(rounds, sides.get(alone, {}).get("rounds"))]


def _served(name, sides):
    rows = []
    for side in (STOCK_SERVICE, SERVICE, REPLICAS):
        rounds = sides.get(side, {}).get("rounds")
        if rounds:
            cpu, blocks, resident = (
                spread.median([r[key] for r in rounds])
                for key in ("daemons_cpu_s", "remote_blocks", "daemons_bytes")
            )
            each = 1e6 * cpu / blocks if blocks else None
            rows.append([name, NAMES[side], number(blocks), number(each), number(resident / 1e6)])
    return rows


def _killed(name, part):
    what = PARTS[name]
    by_victims = part["result"]
    undisturbed, hit = by_victims["0"], by_victims[str(what.victims)]
    return [
        f"### {what.victims} of {what.executors} executors killed",
        (
            f"{KILLED}, {_most(hit.values())} runs each. The executors are killed with SIGKILL "
            "between the map and the reduce stage. Others take their places and run the same job "
            "once, so that neither their start nor a cold JVM is in the figures: the job's time is "
            "that of its two stages."
        ),
        table(
            [
                "side",
                "undisturbed job s",
                "job s",
                "job vs undisturbed",
                "map tasks",
                "computed again",
            ],
            [
                [
                    NAMES[side],
                    with_spread(spread.of(undisturbed[side], "job_s")),
                    with_spread(spread.of(runs, "job_s")),
                    _ratio(runs, undisturbed[side]),
                    _whole(spread.of(runs, "map_tasks")),
                    _whole(spread.of(runs, "again")),
                ]
                for side, runs in hit.items()
                if runs
            ],
        ),
    ]


def _elastic(name, part):
    by_side = part["result"]
    tracked = by_side.get(FARO)
    return [
        "### Dynamic allocation",
        (
            "A job of 64 map tasks of 0.8 s and 8 reduce tasks of 0.5 s, of which one takes 24 s "
            "(they sleep, since four executors share two cores here); "
            f"{_most(by_side.values())} runs each after a warm-up, from 1 up to "
            f"{PARTS[name].executors} executors, each of which is given back when it had nothing "
            "to do for 2 s. Stock Spark and Faro alone track shuffles, so executors with map "
            "outputs stay; with `faro serve` they may go. Executor-seconds are those from the "
            "job's begin to its end; the driver does not count an executor that has ended "
            "(`spark.standalone.executorRemoveDelayOnDisconnection=0s`; default 5 s). Then the "
            "reduce stage runs once more, and the map tasks that this needs again are counted."
        ),
        table(
            [
                "side",
                "job s",
                "executor-seconds",
                "vs Faro with shuffle tracking",
                "executors at most",
                "at the end",
                "map tasks computed again",
            ],
            [
                [
                    NAMES[side],
                    with_spread(spread.of(runs, "job_s")),
                    with_spread(spread.of(runs, "executor_s")),
                    "–" if side == FARO else _ratio(runs, tracked, "executor_s"),
                    *(_whole(spread.of(runs, key)) for key in ("most", "left", "again")),
                ]
                for side, runs in by_side.items()
                if runs
            ],
        ),
    ]


def _whole(figure):
    middle, least, most = figure
    return f"{middle:.0f}" if least == most else f"{middle:.0f} ({least}–{most})"


def _ratio(runs, others, key="job_s"):
    if not runs or not others:
        return "–"
    one, other = (spread.median([r[key] for r in these]) for these in (runs, others))
    return f"{spread.ratio(one, other):.2f}"
