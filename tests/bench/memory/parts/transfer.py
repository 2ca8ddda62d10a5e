"""End to end: who registers when."""
from measure import spread
from parts import guest
from report.figures import number, table, with_spread

NAME = "transfer"
TITLE = "Registering, end to end"
ABOUT = (
    "64 objects of a sender, each written 8 times into a peer's memory by RDMA WRITE over the "
    "verbs fabric, 16 under way; both ends in one process of the SoftRoCE guest. *Per block*: the "
    "sender's own memory, registered for each write and de-registered after it. *Lazy*: memory of "
    "its own for each object, registered when it is first written from. *Eager, per object*: the "
    "same, registered when it is made. *Eager, slab*: leases of the arena, whose slabs are "
    "registered already. All make and fill their objects first. The modes take turns in every "
    "round; microseconds for one write or one object, the median of the rounds, in the last columns "
    "with least and most. Every mode's writes end in the same device, so that the difference is what "
    "registering costs.")
WRITES = 64 * 8
MODES = ["per block", "lazy, per object", "eager, per object", "eager, slab"]


def measure(root, _target, options):
    program = guest.bench(root, "faro-fabric", "memory")
    return guest.on_device(root, [program, "transfer", options.rounds])


def section(cells):
    rows = []
    for size in sorted({cell["bytes"] for cell in cells}):
        slab = None
        for mode in reversed(MODES):
            these = [c for c in cells if (c["bytes"], c["mode"]) == (size, mode)]
            figures = {key: spread.of(these, key) for key in
                       ("prepare_us", "first_us", "later_us", "release_us", "registrations",
                        "all_us")}
            slab = slab or figures["all_us"][0]
            spent = [c["registration_us"] / WRITES for c in these]
            rows.append([guest.size(size), mode,
                         *(number(figures[key][0]) for key in
                           ("prepare_us", "first_us", "later_us", "release_us")),
                         int(figures["registrations"][0]), number(spread.median(spent)),
                         with_spread(figures["all_us"]),
                         f"{figures['all_us'][0] / slab:.2f}x"])
    return "\n\n".join([
        table(["bytes", "mode", "make, fill", "first write", "later writes", "let go",
               "registrations", "of it registering, for one write", "all, for one write",
               "against slab"], rows),
        "*Later writes* is steady state: a slab needs no registration there, and neither do lazy "
        "and eager objects that stay."])
