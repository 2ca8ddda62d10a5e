"""The two pictures of docs/benchmarks.md."""

from measure import spread

from . import svg
from .figures import NAMES, cell_figure

PANELS = (
    ("blocks_per_second", "blocks per second", None),
    ("mb_per_second", "MB per second", None),
    ("cpu_us_per_block", "CPU of both processes, µs per block", 2.0),
    ("cpu_ms_per_mb", "CPU of both processes, ms per MB", 0.3),
)


def ladder(results, clients, path):
    cells = [c for c in results["cells"] if c["clients"] == clients]
    drawing = svg.Drawing(1000, 760)
    sides = [s for s in results["sides"] if any(c["sides"].get(s) for c in cells)]
    ticks = [(c["block_bytes"], c["shape"]) for c in cells]
    drawing.text(
        60,
        28,
        f"Faro and Spark's own transport, {clients} clients, by block size",
        15,
        "start",
        bold=True,
    )
    svg.legend(drawing, 60, 52, [(NAMES[s], svg.COLOURS[s]) for s in sides])
    for place, (key, title, aim) in enumerate(PANELS):
        box = (60 + place % 2 * 490, 95 + place // 2 * 335, 420, 260)
        series = {
            svg.COLOURS[s]: [
                (c["block_bytes"], cell_figure(c, s, key)) for c in cells if c["sides"].get(s)
            ]
            for s in sides
        }
        svg.log_panel(drawing, box, title, ticks, series, aim)
    drawing.save(path)


def spark(results, path):
    workloads = results["workloads"]
    drawing = svg.Drawing(1000, 340)
    sides = [
        s for s in results["sides"] if any(w.get(s, {}).get("rounds") for w in workloads.values())
    ]
    drawing.text(
        40, 28, "Spark workloads, medians with least and most, seconds", 15, "start", bold=True
    )
    svg.legend(drawing, 40, 52, [(NAMES[s], svg.COLOURS[s]) for s in sides])
    for place, (key, title) in enumerate(
        (("job_s", "job"), ("reduce_s", "reduce stage"), ("cpu_s", "CPU of both executors"))
    ):
        groups = {}
        for name in sorted(workloads):
            groups[name] = [
                (svg.COLOURS[s], spread.of(workloads[name][s]["rounds"], key))
                for s in sides
                if workloads[name].get(s, {}).get("rounds")
            ]
        svg.bar_panel(drawing, (40 + place * 320, 95, 290, 205), title, groups)
    drawing.save(path)
