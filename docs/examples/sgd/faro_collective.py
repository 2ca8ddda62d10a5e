"""PySpark's side of Faro's collectives: barrier stages whose Python tasks all-reduce arrays.

    import faro_collective

    def train(team, records):
        weights = array.array("f", ...)          # or a numpy array of float32 or float64
        for ...:
            team.mean(weights)                   # in place
        yield ...

    faro_collective.map_partitions(rdd, train, mode="dssync").collect()

Needs Faro's jar and spark.shuffle.manager=io.faro.spark.FaroShuffleManager, as any other job, and
this file on the workers (spark-submit --py-files).

A Python worker has no gateway to its executor's JVM. The JVM's half of the task joins the team,
opens a port on the loopback interface for this one task, and sends the worker port and token as the
first record of its input. A round so takes two more copies through the kernel than one in the JVM.
"""

import socket
import struct

_SUM, _MEAN, _MEAN_OF_ALL = 1, 2, 3


class CollectiveError(Exception):
    """A round that did not come about; the text names the rank. The task should fail with it."""


class Team:
    """This task's end of the team. Every task calls the same methods equally often."""

    def __init__(self, port, token):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(token.encode("ascii"))
        self.rank, self.ranks = struct.unpack("<II", self._read(bytearray(8)))

    def mean(self, values):
        """Replaces the values by their mean over the team, or the round's group."""
        self._reduce(_MEAN, values)

    def sum(self, values):
        """Replaces the values by their sum."""
        self._reduce(_SUM, values)

    def mean_of_all(self, values):
        """Replaces the values by their exact mean over the team, whatever the mode: after the last
        round of mode dssync, all tasks have the same values."""
        self._reduce(_MEAN_OF_ALL, values)

    def close(self):
        """Leaves the team; the end of the task does so too."""
        self._socket.close()

    def _reduce(self, operation, values):
        view = memoryview(values)
        if view.format not in ("f", "d") or view.readonly or not view.c_contiguous:
            raise ValueError(
                f"values are {view.format!r}, read-only {view.readonly}, contiguous "
                f"{view.c_contiguous}; allowed: writable contiguous floats of 4 or 8 "
                "bytes (array.array 'f' or 'd', numpy float32 or float64)"
            )
        element = 1 if view.format == "f" else 2
        data = view.cast("B")
        self._socket.sendall(
            struct.pack("<BBHI", operation, element, 0, data.nbytes // view.itemsize)
        )
        self._socket.sendall(data)
        (length,) = struct.unpack("<I", self._read(bytearray(4)))
        if length:
            raise CollectiveError(bytes(self._read(bytearray(length))).decode("utf-8"))
        self._read(data)

    def _read(self, into):
        view = memoryview(into)
        while view.nbytes:
            count = self._socket.recv_into(view)
            if not count:
                raise CollectiveError("the executor's JVM closed the connection")
            view = view[count:]
        return into


def map_partitions(
    rdd,
    function,
    mode="grid",
    group=0,
    seed=0,
    nan_policy="fail",
    timeout_ms=60_000,
    slow_apart=False,
):
    """`rdd.barrier().mapPartitions(...)` with `function(team, records)`; see the module's text.

    mode: "dssync" (mean within small groups, shuffled every round), "grid" (exact, four steps),
    "full" (exact, a ring). group: members of a dssync group, 0: about the square root of all.
    slow_apart: mode "dssync" keeps tasks behind slow links apart.
    """
    # Imported here: the workers need none of it.
    from pyspark.rdd import RDD  # noqa: PLC0415

    context = rdd.ctx
    plain = rdd._pickled()
    teams = context._jvm.io.faro.spark.collective.PythonTeams
    joined = teams.joinTeams(plain._jrdd, mode, group, seed, nan_policy, timeout_ms, slow_apart)

    def run(records):
        records = iter(records)
        name, port, token = next(records)
        assert name == "faro", name
        team = Team(port, token)
        try:
            yield from function(team, records)
        finally:
            team.close()

    return RDD(joined, context, plain._jrdd_deserializer).barrier().mapPartitions(run)
