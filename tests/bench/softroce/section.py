"""Writes the part of docs/benchmarks on RDMA on SoftRoCE."""

from measure import spread
from measure.spread import ratio
from report.figures import number, table, with_spread, without_spark

NAMES = {"perftest": "perftest", "ucx": "UCX", "faro": "Faro", "faro-spin": "Faro `--spin`"}
SIZES = {4096: "4 KB", 65536: "64 KB", 1048576: "1 MB"}
LARGE = 65536
BANDWIDTH_AIM, LATENCY_AIM = 0.95, 1.1
KEYS = {"bandwidth": "mb_per_second", "latency": "us"}
COUNTERS = ("posts", "work_requests", "completions", "wakeups", "poll_calls")


def write(results):
    cells = results["cells"]
    return "\n\n".join(
        [
            "## RDMA on SoftRoCE",
            (
                "Two hosts, each with an RDMA device, in one user-mode Linux guest "
                "(`tests/softroce/run`). The device is software (rdma_rxe), so it shares the "
                "guest's two processors with the tools, and a system call takes several times "
                "as long as elsewhere. The figures compare the software above the device. "
                "They say nothing about a NIC.\n\n"
                "- *perftest*: `ib_write_bw`, `ib_read_bw`, `ib_write_lat`, `ib_read_lat` "
                "with default depth; it polls without sleeping.\n"
                "- *UCX*: `ucx_perftest` (`ucp_put_bw`, `ucp_get`, `ucp_put_lat`, "
                "`UCX_TLS=rc`); it polls without sleeping.\n"
                "- *Faro*: `faro perf`, which drives the fabric as an endpoint does, with 64 "
                "transfers in flight. It sleeps between completions; `--spin` does not sleep. "
                "Faro's writes carry an immediate, which tells the owner of the memory about "
                "each write, and are at most 256 KiB: 1 MB is four writes.\n\n"
                "A figure is the median of the rounds, with the lowest and highest in "
                "parentheses. In a round the tools take turns at each size. Latency is the "
                "median of a round's transfers: half of the round trip for writes, all of it "
                "for reads."
            ),
            without_spark(results, "; guest of 2 processors and 4 GiB"),
            "### Aims",
            aims(cells),
            "### Where Faro is behind",
            losses(cells),
            "### Bandwidth, MB/s",
            figures(cells, "bandwidth"),
            "### Latency, µs",
            figures(cells, "latency"),
            "### What the software adds",
            (
                "Per transfer, client / server, with Faro asleep between completions. A post "
                "passes one or more work requests to the device. A poll is at least one "
                "system call."
            ),
            costs(cells),
        ]
    )


def rounds(cells, tool, operation, mode, size):
    wanted = (tool, operation, mode, size)
    return [
        cell
        for cell in cells
        if "failed" not in cell
        and (cell["tool"], cell["operation"], cell["mode"], cell["size"]) == wanted
    ]


def figure(cells, tool, operation, mode, size):
    return spread.of(rounds(cells, tool, operation, mode, size), KEYS[mode])


def against(cells, tool, other, operation, mode, size):
    """Returns the ratio of the tool's median bandwidth or latency to the other's."""
    pair = [figure(cells, name, operation, mode, size) for name in (tool, other)]
    return ratio(pair[0][0], pair[1][0]) if all(pair) else None


def aims(cells):
    wanted = [
        (
            "at least 0.95 of perftest's bandwidth at 64 KB and more",
            "bandwidth",
            "perftest",
            LARGE,
            lambda x: x >= BANDWIDTH_AIM,
            min,
        ),
        (
            "at most 1.1 times perftest's latency",
            "latency",
            "perftest",
            0,
            lambda x: x <= LATENCY_AIM,
            max,
        ),
        ("at least UCX's bandwidth", "bandwidth", "ucx", 0, lambda x: x >= 1, min),
        ("at most UCX's latency", "latency", "ucx", 0, lambda x: x <= 1, max),
    ]
    rows = []
    for text, mode, other, least, meets, worst in wanted:
        for tool in ("faro", "faro-spin"):
            found = {}
            for operation in ("write", "read"):
                for size, name in SIZES.items():
                    value = against(cells, tool, other, operation, mode, size)
                    if size >= least and value is not None:
                        found[value] = [*found.get(value, []), f"{operation} {name}"]
            if not found:
                rows.append([text, NAMES[tool], "–", "–", f"{NAMES[other]} gave no figure"])
                continue
            all_values = [value for value, names in found.items() for _ in names]
            good = sum(map(meets, all_values))
            bad = worst(found)
            verdict = "yes" if good == len(all_values) else "**in part**" if good else "**no**"
            rows.append(
                [
                    text,
                    NAMES[tool],
                    f"{bad:.2f}x ({', '.join(found[bad])})",
                    f"{good} of {len(all_values)}",
                    verdict,
                ]
            )
    return table(["aim", "side", "worst cell", "cells that meet it", "met"], rows)


def losses(cells):
    lines = []
    for other in ("perftest", "ucx"):
        for mode, behind, word in (
            ("bandwidth", lambda x: x < 1, "bandwidth"),
            ("latency", lambda x: x > 1, "latency"),
        ):
            lost = [
                f"{operation} {SIZES[size]} ({value:.2f}x)"
                for operation in ("write", "read")
                for size in SIZES
                if (value := against(cells, "faro", other, operation, mode, size)) is not None
                and behind(value)
            ]
            if lost:
                lines.append(f"- {word} against {NAMES[other]}: {', '.join(lost)}")
    failed = {}
    for cell in cells:
        if "failed" in cell:
            failed.setdefault(cell["tool"], []).append(cell["failed"])
    lines = lines or ["- in no cell that was measured"]
    for tool, reasons in failed.items():
        lines.append(
            f"- {NAMES[tool]} gave no figure {len(reasons)} times, the first with: "
            f"`{reasons[0].replace('`', '')}`"
        )
    return "\n".join(lines)


def figures(cells, mode):
    rows = []
    for operation in ("write", "read"):
        for size, name in SIZES.items():
            row = [f"{operation} {name}"]
            row += [with_spread(figure(cells, tool, operation, mode, size)) for tool in NAMES]
            for other in ("perftest", "ucx"):
                value = against(cells, "faro", other, operation, mode, size)
                row.append("–" if value is None else f"{value:.2f}x")
            rows.append(row)
    return table(["transfer", *NAMES.values(), "Faro / perftest", "Faro / UCX"], rows)


def costs(cells):
    rows = []
    for mode in KEYS:
        for operation in ("write", "read"):
            for size, name in SIZES.items():
                found = rounds(cells, "faro", operation, mode, size)
                if not found:
                    continue
                row = [f"{operation} {mode} {name}"]
                for counter in COUNTERS:
                    sides = [
                        spread.median([cell["cost"][side].get(counter, 0) for cell in found])
                        for side in ("client", "server")
                    ]
                    row.append(
                        " / ".join(number(value) if value >= 0.005 else "0" for value in sides)
                    )
                rows.append(row)
    return table(["transfer", "posts", "work requests", "completions", "wake-ups", "polls"], rows)
