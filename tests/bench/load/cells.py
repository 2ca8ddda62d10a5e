"""The cells of the suite `load`: the work of one server and its clients in each."""

from dataclasses import dataclass, field

KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Cell:
    """One cell: a row of a table, and the options of the driver."""

    group: str
    name: str
    options: dict = field(hash=False)

    def words(self, fabric):
        return [f"{name}={value}" for name, value in {"fabric": fabric, **self.options}.items()]


def cells():
    return [*peers(), *sizes(), *outputs(), *waiting(), *shortage(), *stopped(), *crowd()]


def peers():
    """Returns cells by number of clients, with as many readers each; at least two requests for each
    reader."""
    for count in (1, 10, 100, 1000):
        for readers in (1, 8, 32):
            requests = max(20_000, 2 * count * readers)
            options = {"peers": count, "readers": readers, "requests": requests}
            yield Cell("peers", f"{count:,} x {readers}", options)


def sizes():
    """Returns cells by reply size, with replies of one block and about 400 MB in all, within
    bounds."""
    for size in (KIB, 4 * KIB, 20 * KIB, 64 * KIB, 256 * KIB, MIB, 20 * MIB):
        options = {
            "readers": 8,
            "block": size,
            "partitions": max(4, min(400, 400 * MIB // size)),
            "requests": max(24, min(20_000, 400 * MIB // size)),
        }
        yield Cell("sizes", bytes_name(size), options)


def outputs():
    """Returns cells whose requests are those of a reduce task: one partition of 1 KiB of each of 50
    map outputs."""
    for count, partitions in (
        (100, 200),
        (1_000, 200),
        (5_000, 200),
        (20_000, 200),
        (50_000, 200),
        (1_000, 50_000),
    ):
        options = {
            "outputs": count,
            "partitions": partitions,
            "block": KIB,
            "blocks": 50,
            "readers": 8,
            "requests": max(1_000, 2 * count // 50),
        }
        yield Cell("outputs", f"{count:,} of {partitions:,}", options)


def waiting():
    """Returns cells by the number of requests that one client has in flight."""
    for at_once in (100, 1_000, 4_000, 16_000):
        options = {
            "window": at_once,
            "block": KIB,
            "partitions": 4_000,
            "requests": 32_000,
        }
        yield Cell("waiting", f"{at_once:,}", options)


def shortage():
    """Returns cells that ask for more at once than the arena holds; the cells of a pair move the
    same bytes."""
    whole = {"block": 20 * MIB, "partitions": 8, "requests": 32, "limit": 64}
    yield Cell("shortage", "20 MiB, one after the other, limit 64m", {**whole, "readers": 1})
    yield Cell("shortage", "20 MiB, 8 at once, limit 64m", {**whole, "readers": 8})
    many = {"block": MIB, "partitions": 300, "requests": 900, "limit": 64}
    yield Cell("shortage", "1 MiB, one after the other, limit 64m", {**many, "readers": 1})
    yield Cell("shortage", "1 MiB, 300 at once, limit 64m", {**many, "readers": 300})
    tasks = {"block": MIB, "window": 48, "partitions": 400, "requests": 3_200}
    for readers in (4, 8, 32):
        yield Cell(
            "shortage", f"{readers} tasks x 48 MiB, limit 256m", {**tasks, "readers": readers}
        )


def stopped():
    """Returns cells of eight clients beside eight more that ask for 64 MiB each and then take
    nothing."""
    for limit in (64, 256):
        options = {"peers": 8, "block": MIB, "partitions": 300, "requests": 4_000, "limit": limit}
        for beside in (0, 8):
            yield Cell(
                "stopped", f"{beside} stopped, limit {limit}m", {**options, "stopped": beside}
            )


def crowd():
    """Returns cells that ask for the same blocks, few or many of them at once. One client's 48
    requests hold all that they may hold, and none of them waits."""
    options = {"block": MIB, "partitions": 300, "requests": 4_000, "limit": 64}
    for peers, at_once in ((1, (16, 48, 800)), (8, (2, 100))):
        for readers in at_once:
            name = f"{peers} x {readers} at once, limit 64m"
            yield Cell("crowd", name, {**options, "peers": peers, "readers": readers})


def bytes_name(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"
