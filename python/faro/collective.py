"""All-reduce of arrays of floats between processes, without a JVM.

    from faro.collective import Team
    from faro.rendezvous import Rendezvous

    with Rendezvous.from_environment() as rendezvous:
        team = Team.join(rendezvous.gather, rendezvous.rank)
        weights = array.array("f", ...)       # or numpy, float32 or float64
        team.mean(weights)                    # in place
        team.close()

The arrays travel over the same endpoints as Spark's blocks: RDMA, shared memory or TCP, depending
on the pair of processes. faro.torch averages whole models with it.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import socket
import threading
from collections.abc import Callable, Iterable

from . import native
from .native import FaroUnavailableError

__all__ = ["CollectiveError", "FaroUnavailableError", "Team"]

# The codes of Java's Mode and TeamNative.
MODES = {"dssync": 1, "grid": 2, "full": 3}
SUM, MEAN = 1, 2
ELEMENTS = {"f": 1, "d": 2}
NAN_POLICIES = {"fail": 1, "propagate": 0}
# Settings of an endpoint; any of docs/user/configuration.md without `spark.faro.`, in bytes and
# milliseconds. The arena takes memory as it needs it.
SETTINGS = {"memory.limit": 64 << 20}
# Most that the first round may take: a port that a firewall closes shows here.
FIRST_ROUND_SECONDS = 20.0
# The first byte of what the processes tell each other: a result, that Faro cannot be used, that an
# argument is not allowed.
GOOD, BAD, REFUSED = b"+", b"-", b"!"
# The seconds that a round may be given.
MIN_TIMEOUT, MAX_TIMEOUT = 0.1, 1_000_000


class CollectiveError(Exception):
    """A round that did not come about; the text names the rank. The team cannot be used again."""


class Team:
    """This process's end of the team. Every process calls the same methods equally often."""

    def __init__(
        self,
        endpoint: int,
        handle: int,
        rank: int,
        gather: Callable[[bytes], list[bytes]],
        round_: _Round,
    ):
        self._endpoint, self._team, self._gather = endpoint, handle, gather
        self._round, self._failed = round_, ""
        self.rank, self.ranks = rank, round_.ranks

    @classmethod
    def join(
        cls,
        gather: Callable[[bytes], list[bytes]],
        rank: int,
        mode: str = "grid",
        group: int = 0,
        seed: int = 0,
        nan_policy: str = "fail",
        timeout: float = 60.0,
        settings: dict[str, object] | None = None,
        rack: str = "",
        slow_apart: bool = False,
    ) -> Team:
        """Joins the processes that call this together. All give the same arguments, but for rank,
        settings and rack.

        gather: gives each process the bytes of all, by rank.
        mode: "grid" (exact), "full" (exact, a ring) or "dssync" (within groups of `group`, 0 for
            about the square root of all, drawn anew in every round from `seed`).
        nan_policy: "fail" (a NaN fails the round) or "propagate".
        timeout: seconds of one round.
        settings: of the endpoint, such as {"fabric": "tcp"}, in bytes and milliseconds.
        rack: where this process is; those of one rack exchange with each other where they can.
        slow_apart: mode "dssync" keeps processes behind slow links apart.

        If one process gives an argument that is not allowed, or another one than rank 0, all raise
        ValueError with one text. If one cannot take part, all raise FaroUnavailableError with its
        reason.
        """

        def arguments() -> dict[str, object]:
            check_word("nan_policy", nan_policy, NAN_POLICIES)
            check_own_arguments(settings, rack)
            found = round_arguments(mode, group, seed, timeout, slow_apart)
            return {**found, "nan_policy": nan_policy}

        ranks = same_everywhere(gather, rank, arguments)
        round_ = _Round(mode, group, seed, nan_policy, timeout, ranks)
        opened, own = _Opened(), {**_own_settings(), **(settings or {})}
        try:
            ids = _agree(gather, rank, lambda: opened.open(own, rack))
            _agree(gather, rank, lambda: opened.join(rank, ids, round_, slow_apart))
        except BaseException:
            opened.close()
            raise
        return cls(opened.endpoint, opened.team, rank, gather, round_)

    def mean(self, values: object) -> None:
        """Replaces the values by their mean over the team, or over the round's group."""
        self._reduce(MEAN, values, self._round.mode)

    def sum(self, values: object) -> None:
        """Replaces the values by their sum."""
        self._reduce(SUM, values, self._round.mode)

    def mean_of_all(self, values: object) -> None:
        """Replaces the values by their exact mean over the whole team, whatever the mode: after the
        last round of mode "dssync", all processes have the same values."""
        self._reduce(MEAN, values, self._round.exact_mode)

    def close(self) -> None:
        """Leaves the team once all processes are here, since one that ends first takes what it has
        sent with it. After a failed round it does not wait."""
        if not self._endpoint:
            return
        try:
            if not self._failed:
                self._gather(GOOD)
        finally:
            self.leave()

    def leave(self) -> None:
        """Leaves the team at once; the others' next rounds fail."""
        endpoint, self._endpoint = self._endpoint, 0
        if endpoint:
            native.library().faro_team_leave(self._team)
            native.library().faro_endpoint_close(endpoint)

    def _reduce(self, operation: int, values: object, mode: str) -> None:
        view = memoryview(values)
        if view.format not in ELEMENTS or view.readonly or not view.c_contiguous:
            raise ValueError(
                f"values are {view.format!r}, read-only {view.readonly}, contiguous "
                f"{view.c_contiguous}; allowed: writable contiguous floats of 4 or 8 "
                "bytes (array.array 'f' or 'd', numpy float32 or float64)"
            )
        if self._failed or not self._endpoint:
            raise CollectiveError(self._failed or "the team was closed")
        try:
            self._failed = self._interruptible(operation, view, mode)
        except BaseException:
            self._failed = "a round was interrupted"
            raise
        if self._failed:
            raise CollectiveError(self._failed)

    def _interruptible(self, operation: int, view: memoryview, mode: str) -> str:
        """Runs a round, and returns why it failed. A signal, such as that of Ctrl-C, is only
        handled where the main thread runs Python; so that one waits for another, which has the
        round."""
        if threading.current_thread() is not threading.main_thread():
            return self._round.run(self._team, operation, view, mode)
        outcome: list[str] = []

        def run() -> None:
            outcome.append(self._round.run(self._team, operation, view, mode))

        thread = threading.Thread(target=run, name="faro-round", daemon=True)
        thread.start()
        try:
            thread.join()
        except BaseException:
            # Ends the round.
            native.library().faro_team_leave(self._team)
            thread.join()
            raise
        return outcome[0] if outcome else "the round's thread ended"


class _Round:
    """What all rounds of a team have in common."""

    def __init__(
        self, mode: str, group: int, seed: int, nan_policy: str, timeout: float, ranks: int
    ):
        # One process alone, as in a first trial, has nothing to group.
        good = ranks == 1 or not group or 2 <= group <= ranks
        check_argument("group", group, good, f"0, and 2 to the number of processes, {ranks}")
        self.mode, self.exact_mode = mode, "grid" if mode == "dssync" else mode
        self.group = group or max(2, math.isqrt(ranks))
        self.seed, self.ranks = seed, ranks
        self.fail_on_nan = NAN_POLICIES[nan_policy]
        self.seconds = timeout

    def run(
        self, team: int, operation: int, view: memoryview, mode: str, seconds: float = 0.0
    ) -> str:
        """Returns why the round failed, or nothing. On the same thread as the error."""
        # Keeps the memory in place as long as it is referred to.
        held = (ctypes.c_char * view.nbytes).from_buffer(view.cast("B")) if view.nbytes else None
        failed = native.library().faro_team_reduce(
            team,
            ctypes.addressof(held) if held else None,
            view.nbytes // view.itemsize,
            ELEMENTS[view.format],
            MODES[mode],
            self.group,
            self.seed,
            operation,
            self.fail_on_nan,
            int(1000 * (seconds or self.seconds)),
        )
        return native.last_error() if failed else ""


class _Opened:
    """What a process has opened while it joins."""

    def __init__(self) -> None:
        self.endpoint = self.member = self.team = 0

    def open(self, settings: dict[str, object], rack: str) -> bytes:
        """An endpoint and a member; returns the bootstrap id."""
        faro = native.library()
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.endpoint = _checked(faro.faro_endpoint_open(text.encode()))
        self.member = _checked(faro.faro_member_open(self.endpoint, rack.encode()))
        buffer = ctypes.create_string_buffer(native.MAX_TEXT)
        length = faro.faro_bootstrap_id(self.member, buffer, native.MAX_TEXT)
        return buffer.raw[: _checked(max(0, length))]

    def join(self, rank: int, ids: list[bytes], round_: _Round, slow_apart: bool) -> bytes:
        """The team, and a first round, which shows whether all reach each other."""
        texts = (ctypes.c_char_p * len(ids))(*ids)
        self.team = _checked(native.library().faro_team_join(self.member, rank, texts, len(ids)))
        if slow_apart:
            native.library().faro_team_keep_slow_apart(self.team)
        value = memoryview(bytearray(8)).cast("d")
        seconds = min(FIRST_ROUND_SECONDS, round_.seconds)
        failed = round_.run(self.team, SUM, value, round_.exact_mode, seconds)
        if failed:
            raise FaroUnavailableError(f"the first round failed: {failed}")
        return b""

    def close(self) -> None:
        if self.endpoint:
            faro = native.library()
            faro.faro_team_leave(self.team)
            faro.faro_member_release(self.member)
            faro.faro_endpoint_close(self.endpoint)
            self.endpoint = 0


def _checked(handle: int) -> int:
    if not handle:
        error = ValueError if native.last_error_is_argument() else FaroUnavailableError
        raise error(native.last_error())
    return handle


def _agree(
    gather: Callable[[bytes], list[bytes]], rank: int, step: Callable[[], bytes]
) -> list[bytes]:
    """Does the step here and in all others: its results by rank, or one error for everyone."""
    try:
        told = GOOD + step()
    except FaroUnavailableError as error:
        told = BAD + f"rank {rank}: {error}".encode()
    except ValueError as error:
        told = REFUSED + f"rank {rank}: {error}".encode()
    told = gather(told)
    for kind, error in ((REFUSED, ValueError), (BAD, FaroUnavailableError)):
        reasons = [one[1:].decode("utf-8", "replace") for one in told if one[:1] == kind]
        if reasons:
            more = f" (and {len(reasons) - 1} others)" if len(reasons) > 1 else ""
            raise error(reasons[0] + more)
    return [one[1:] for one in told]


def same_everywhere(
    gather: Callable[[bytes], list[bytes]], rank: int, look: Callable[[], dict[str, object]]
) -> int:
    """The number of processes, if all of them have the same arguments, which `look` checks and
    returns; otherwise one ValueError for everyone."""
    told = _agree(gather, rank, lambda: json.dumps(look()).encode())
    first, *others = [json.loads(one) for one in told]
    for at, other in enumerate(others, 1):
        for name, value in first.items():
            if other.get(name) != value:
                raise ValueError(
                    f"rank {at} has {name} {other.get(name)!r}, rank 0 has {name} {value!r}: "
                    "every process needs the same"
                )
    return len(told)


def check_argument(name: str, value: object, good: bool, allowed: str) -> None:
    if not good:
        raise ValueError(f"{name} is {value!r}, allowed: {allowed}")


def check_word(name: str, value: object, words: Iterable[str]) -> None:
    words = list(words)
    check_argument(name, value, value in words, ", ".join(words))


def check_number(name: str, value: object, least: int, most: int) -> None:
    # True is a whole number of Python's.
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    check_argument(name, value, good, f"a whole number from {least} to {most}")


def check_flag(name: str, value: object) -> None:
    check_argument(name, value, isinstance(value, bool), "True, False")


def round_arguments(
    mode: str, group: int, seed: int, timeout: float, slow_apart: bool
) -> dict[str, object]:
    """Checks the arguments of a round that all processes need to have the same of."""
    check_word("mode", mode, MODES)
    check_number("group", group, 0, 2**31 - 1)
    check_number("seed", seed, 0, 2**64 - 1)
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    good = number and MIN_TIMEOUT <= timeout <= MAX_TIMEOUT
    check_argument("timeout", timeout, good, f"seconds, {MIN_TIMEOUT} to {MAX_TIMEOUT}")
    check_flag("slow_apart", slow_apart)
    named = {"mode": mode, "group": group, "seed": seed}
    return {**named, "timeout": float(timeout), "slow_apart": slow_apart}


def check_own_arguments(settings: object, rack: object) -> None:
    """Checks the arguments that may differ between processes. The library knows the settings."""
    good = isinstance(rack, str) and rack.isprintable()
    check_argument("rack", rack, good, "a text of one line")
    check_argument("settings", settings, settings is None or isinstance(settings, dict), "a dict")
    for name, value in (settings or {}).items():
        good = isinstance(value, (str, int)) and not isinstance(value, bool)
        good = good and f"{name}{value}".isprintable()
        allowed = "names and values of one line; a value is a text or a whole number"
        check_argument("settings", {name: value}, good, allowed)


def _own_settings() -> dict[str, object]:
    """Those of this process: its name in errors, and the address at which others reach it."""
    address = _own_address(os.environ.get("MASTER_ADDR", "localhost"))
    name = f"{socket.gethostname()}-{os.getpid()}"
    return {**SETTINGS, "name": name, "bindAddress": address, "advertisedAddress": address}


def _own_address(master: str) -> str:
    """The source address of the route to the first process."""
    try:
        family, _, _, _, target = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    except OSError:
        family, target = socket.AF_INET, ("192.0.2.1", 9)
    address = _source(family, target)
    # The name of the own host often is a loopback address, as of Debian's /etc/hosts. Nothing is
    # sent to TEST-NET-1 (RFC 5737): its route is the default one.
    if address.startswith("127.") and master not in ("localhost", "127.0.0.1"):
        address = _source(socket.AF_INET, ("192.0.2.1", 9)) or address
    return address or "127.0.0.1"


def _source(family: int, target: tuple) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(target)
        except OSError:
            return ""
        return probe.getsockname()[0]
