"""Writes the part of docs/design/scaling.md on the suite `load`."""

from measure import spread
from report.figures import number, table, with_spread

OTHERS_BEAR = 0.05
GROUPS = {
    "peers": (
        "clients x readers",
        "### Clients and readers\n\nEvery reader has one request of one block of 20 KiB under way.",
    ),
    "sizes": (
        "reply",
        "### Sizes of replies\n\nOne client, eight readers.",
    ),
    "outputs": (
        "map outputs",
        (
            "### Map outputs\n\nA request asks for one partition, of 1 KiB, of each of 50 map "
            "outputs. Map outputs x partitions of each."
        ),
    ),
    "waiting": (
        "under way at once",
        "### Requests under way at once\n\nOne client, replies of 1 KiB.",
    ),
    "shortage": (
        "case",
        "### More than the arena holds\n\nOne client. All blocks of a pair of lines are the same.",
    ),
    "stopped": (
        "stopped peers",
        (
            "### Peers that stop\n\nEight clients of one reader, blocks of 1 MiB. Beside them no "
            "or eight peers that have asked for 64 MiB each and take no byte."
        ),
    ),
    "crowd": (
        "clients x requests",
        "### Few and many at once\n\nThe same blocks of 1 MiB, by few or by many requests at once.",
    ),
}
INTRODUCTION = """One server, in a process of its own; all clients are endpoints of another
process, each with its own threads and arena. Over {fabric}, both on this machine, with the defaults
of all settings (arena of 256 MiB) where a line does not say otherwise. The data files are sparse
and in the page cache after the first, unmeasured pass. *Held*: the most that blocks and buffers of
one client held. *Busy*: requests that the server had no room for and that were asked for again.
*Longest*: from asking to the last block. *Descriptors*: the most that the server had open.
*Failures* are those of both passes. Median (least–most) of the rounds."""
HEAD = [
    "blocks/s",
    "MB/s",
    "CPU µs/block, client",
    "server",
    "held, MiB",
    "busy",
    "longest, ms",
    "descriptors",
    "failures",
]


def write(results):
    return "\n\n".join(
        [
            "## Measured: one server under load",
            INTRODUCTION.format(fabric=results["fabric"]),
            facts(results),
            "![One server under load](scaling/load.svg)",
            *(group(results, name) for name in GROUPS if has(results, name)),
        ]
    )


def facts(results):
    machine = results["machine"]
    lines = [
        (
            f"- machine: {machine['cpu']}, {machine['cores']} cores, {machine['memory']}, "
            f"Linux {machine['kernel']}"
        ),
        f"- software: Faro {machine['revision']}",
        (
            f"- measured on {machine['date']} by `{results['command']}` in "
            f"{results['seconds'] / 60:.0f} min: {results['rounds']} rounds in which the cells "
            f"take turns; other processes used {machine['others'] * 100:.0f} % of the machine "
            "meanwhile"
        ),
    ]
    if machine["others"] > OTHERS_BEAR:
        lines.append("- **provisional: other work was running on this machine**")
    return "\n".join(lines)


def has(results, name):
    """Returns whether the results have the cell. Results from before a group was added do not."""
    return any(cell["group"] == name for cell in results["cells"])


def group(results, name):
    first, text = GROUPS[name]
    cells = [cell for cell in results["cells"] if cell["group"] == name]
    return text + "\n\n" + table([first, *HEAD], [row(cell) for cell in cells])


def row(cell):
    rounds = [figures(of) for of in cell["rounds"]]

    def of(key):
        return spread.of(rounds, key)

    return [
        cell["name"],
        with_spread(of("blocks_per_second")),
        number(of("megabytes_per_second")[0]),
        number(of("client_us")[0]),
        number(of("server_us")[0]),
        number(max(r["held_mib"] for r in rounds)),
        f"{max(r['busy'] for r in rounds):,}",
        f"{max(r['longest_ms'] for r in rounds):,}",
        f"{max(r['descriptors'] for r in rounds):,}",
        f"{sum(r['failures'] for r in rounds):,}",
    ]


def figures(measured):
    blocks = max(1, measured["blocks"])
    return {
        "blocks_per_second": measured["blocks"] / measured["seconds"],
        "megabytes_per_second": measured["bytes"] / measured["seconds"] / 1e6,
        "client_us": measured["client_cpu_ns"] / blocks / 1e3,
        "server_us": measured["server_cpu_ns"] / blocks / 1e3,
        "held_mib": measured["client_high_bytes"] / (1 << 20),
        "busy": measured["busy"],
        "longest_ms": measured["longest_ms"],
        "descriptors": measured["descriptors"],
        "failures": measured["failures"],
    }
