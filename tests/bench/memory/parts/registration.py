"""Measures the cost of a registration alone."""

import suite
from measure import spread
from report.figures import number, table, with_spread

from parts import guest

NAME = "registration"
TITLE = "Registering memory"
ABOUT = (
    "`ibv_reg_mr` and `ibv_dereg_mr` of ordinary memory that was written before, on the RDMA "
    "device of the SoftRoCE guest (`tests/softroce/run`), which is software in a user-mode "
    "kernel. The cost of every device has this shape, a fixed part and a part for each page "
    "of the operating system, but the figures say nothing about a NIC. One round registers "
    "each size once, in turn. Figures are medians of the rounds, with the lowest and highest "
    "in parentheses."
)
MORE_ROUNDS = 4


def measure(root, _target, options):
    program = suite.built("faro-fabric", "memory")
    return guest.on_device(
        root, [program, "registration", options.rounds * MORE_ROUNDS], memory="8G"
    )


def section(cells):
    rows, refused = [], []
    for size in sorted({cell["bytes"] for cell in cells}):
        these = [cell for cell in cells if cell["bytes"] == size and "refused" not in cell]
        if not these:
            why = [cell["refused"] for cell in cells if cell["bytes"] == size]
            refused.append(f"{guest.size(size)} was refused: {why[0]}")
            continue
        register, away = spread.of(these, "register_us"), spread.of(these, "deregister_us")
        rows.append(
            [
                guest.size(size),
                with_spread(register),
                with_spread(away),
                number((register[0] + away[0]) / (size / (1 << 20))),
            ]
        )
    text = table(["bytes", "register, µs", "de-register, µs", "both, µs for 1 MB"], rows)
    return "\n\n".join([text, *refused])
