"""Combines the heats of one kind of cluster into one result."""

from __future__ import annotations

KINDS = {
    "plain": "no limit",
    "one-host": "one host",
}


def named(kind: str) -> str:
    return KINDS.get(kind) or f"{kind.removeprefix('link-')} Gbit/s"


def of_kind(heats: list, kind: str) -> dict:
    """Returns, by name and side, the rounds of all heats, and the sums of Faro's counters."""
    found: dict = {}
    for heat in heats:
        if heat.kind != kind:
            continue
        for name, sides in heat.runs().items():
            for side, run in sides.items():
                into = found.setdefault(name, {}).setdefault(
                    side, {"rounds": [], "faro": {}, "answers": []}
                )
                into["rounds"] += run["rounds"]
                for key, value in run["faro"].items():
                    into["faro"][key] = into["faro"].get(key, 0) + value
                if "answer" in run:
                    into["answers"].append(run["answer"])
    return found


def sides_of(results: dict, order: list[str]) -> list[str]:
    """Returns the sides of any result, stock Spark first."""
    return [side for side in order if any(side in sides for sides in results.values())]


def lots(heats: list, kinds: list[str]) -> list[tuple]:
    """Returns (heat, lot) for all lots of these kinds."""
    return [(heat, lot) for heat in heats if heat.kind in kinds for lot in heat.lots]


def broken(heats: list, kind: str) -> dict:
    """Returns the errors by side. The last attempt of a run counts, so there is an error only if a
    run is missing or its answer differs."""
    wrong: dict = {}
    for heat in heats:
        if heat.kind != kind:
            continue
        found = heat.runs()
        for lot in heat.lots:
            for side, why in lot["broken"].items():
                again = all(side in found[name] for name in lot["runs"])
                if not again or "another answer" in why:
                    wrong[side] = why
    return wrong


def machine_of(heats: list, kinds: list[str]) -> tuple[dict, float]:
    """Returns the machine of all lots with the largest share of other work, and their seconds."""
    measured = [lot for _, lot in lots(heats, kinds)]
    facts = dict(measured[-1]["machine"])
    facts["others"] = max(lot["machine"]["others"] for lot in measured)
    for key in ("revision", "date", "cpu"):
        values = dict.fromkeys(lot["machine"][key] for lot in measured)
        facts[key] = ", ".join(values)
    return facts, sum(lot["seconds"] for lot in measured)
