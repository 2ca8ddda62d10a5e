"""One process of a team, without torch and numpy: `team_process.py CASE`, with the variables of a
launcher. Its last line is the case's result as JSON."""

from __future__ import annotations

import json
import sys
import threading
from array import array

from faro.collective import CollectiveError, FaroUnavailableError, Team
from faro.rendezvous import Rendezvous

# Of many pages, the last of which is not full, and no multiple of the ranks.
LONG = 300_003
# Beyond the first look for slow members.
ROUNDS = 12


def start(rank: int, count: int, kind: str = "d") -> array:
    """Whole numbers, so that sums are exact in any order."""
    return array(kind, ((rank * 7919 + i * 31) % 1009 - 500 for i in range(count)))


def digest(values: array) -> list:
    return [len(values), values.tobytes().hex()[:64], sum(values)]


def means(rendezvous: Rendezvous) -> dict:
    """Every mode and fabric of this host."""
    found = {}
    for fabric in ("tcp", "shm", "sealed"):
        for mode in ("grid", "full"):
            settings = {"fabric": fabric, "memory.limit": 48 << 20}
            if fabric == "sealed":
                settings.update(fabric="tcp", protection="sealed")
            team = Team.join(rendezvous.gather, rendezvous.rank, mode, settings=settings)
            for kind, count in (("d", 1001), ("f", 3), ("d", 0), ("f", LONG)):
                values = start(team.rank, count, kind)
                team.mean(values)
                found[f"{fabric} {mode} {kind} {count}"] = digest(values)
            values = start(team.rank, 10)
            team.sum(values)
            found[f"{fabric} {mode} sum"] = list(values)
            team.close()
    return found


def groups(rendezvous: Rendezvous) -> dict:
    """Rounds of DS-Sync in pairs, and the exact mean at the end."""
    # Racks and looks for slow members change groups, and not what groups keep.
    words = {"group": 2, "seed": 5, "rack": f"rack-{rendezvous.rank % 2}", "slow_apart": True}
    team = Team.join(rendezvous.gather, rendezvous.rank, "dssync", **words)
    values = array("d", [float(team.rank)])
    rounds = []
    for _ in range(ROUNDS):
        team.mean(values)
        rounds.append(values[0])
    team.mean_of_all(values)
    team.close()
    return {"rounds": rounds, "final": values[0]}


def mistakes(rendezvous: Rendezvous) -> dict:
    """What goes wrong names a rank at every member; the team is over then."""
    found = {}
    rank = rendezvous.rank
    for name, values in (
        ("length", array("d", [0.0] * (10 + (rank == 2)))),
        ("type", array("f" if rank == 1 else "d", [0.0] * 10)),
        ("nan", array("d", [float("nan") if rank == 3 else 0.0] * 5)),
    ):
        team = Team.join(rendezvous.gather, rank)
        texts = []
        for _ in range(2):
            try:
                team.mean(values)
            except CollectiveError as error:
                texts.append(str(error))
        assert texts[0] == texts[1]
        found[name] = texts[0]
        # One that is gone cannot say why any more.
        rendezvous.gather(b"")
        team.close()
    return found


def refused(rendezvous: Rendezvous) -> dict:
    """Arguments that never reach another process."""
    found = {}
    team = Team.join(rendezvous.gather, rendezvous.rank)
    for name, values in (("integers", array("i", [1])), ("read-only", b"1234")):
        try:
            team.mean(values)
        except ValueError as error:
            found[name] = str(error)
    team.close()
    team.close()
    try:
        team.mean(array("d", [1.0]))
    except CollectiveError as error:
        found["closed"] = str(error)
    for name, words in (("mode", {"mode": "ring"}), ("group", {"mode": "dssync", "group": 9})):
        try:
            Team.join(rendezvous.gather, rendezvous.rank, **words)
        except ValueError as error:
            found[name] = str(error)
    try:
        Team.join(rendezvous.gather, rendezvous.rank, settings={"fabric": "pigeon"})
    except ValueError as error:
        found["setting"] = str(error)
    return found


def differ(rendezvous: Rendezvous) -> str:
    """Rank 1 has another seed, and rank 2 a mode that there is not: the first text is of that."""
    texts = []
    for mode in ("ring" if rendezvous.rank == 2 else "grid", "grid"):
        try:
            Team.join(rendezvous.gather, rendezvous.rank, mode, seed=int(rendezvous.rank == 1))
        except ValueError as error:
            texts.append(str(error))
    return " / ".join(texts)


def unavailable(rendezvous: Rendezvous) -> str:
    try:
        Team.join(rendezvous.gather, rendezvous.rank)
    except FaroUnavailableError as error:
        return str(error)
    return "joined"


def absent(rendezvous: Rendezvous) -> str:
    """Rank 1 runs no round; the test ends it, or interrupts rank 0."""
    team = Team.join(rendezvous.gather, rendezvous.rank, "full", timeout=3600.0)
    print("joined", flush=True)
    if rendezvous.rank == 1:
        threading.Event().wait()
    try:
        team.mean(start(rendezvous.rank, 1000))
    except (CollectiveError, KeyboardInterrupt) as error:
        return f"{type(error).__name__}: {error}"
    return "a mean"


CASES = {
    case.__name__: case for case in (means, groups, mistakes, refused, differ, unavailable, absent)
}


def main() -> None:
    with Rendezvous.from_environment() as rendezvous:
        print(json.dumps(CASES[sys.argv[1]](rendezvous)), flush=True)


if __name__ == "__main__":
    main()
