"""Stores results in one JSON file for each kind of cluster and heat, so that a run can continue."""

from __future__ import annotations

import json
import re
from pathlib import Path


class Heat:
    """Lots, each with the runs of some names by all sides: {name: {side: {"rounds": [...]}}}."""

    def __init__(self, target: Path, kind: str, number: int):
        self.kind = kind
        self.number = number
        self.path = target / f"{kind}-heat-{number}.json"
        self.lots = json.loads(self.path.read_text())["lots"] if self.path.is_file() else []

    def add(self, lot: dict) -> None:
        self.lots.append(lot)
        content = {"kind": self.kind, "heat": self.number, "lots": self.lots}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(content, indent=1))
        part.rename(self.path)

    def has(self, name: str, sides: list[str]) -> bool:
        return set(sides) <= set(self.runs().get(name, {}))

    def runs(self) -> dict:
        """Returns the runs by name and side; later measurements replace earlier ones."""
        found: dict = {}
        for lot in self.lots:
            for name, sides in lot["runs"].items():
                found.setdefault(name, {}).update(sides)
        return found


def all_heats(target: Path) -> list[Heat]:
    heats = []
    for path in sorted(target.glob("*-heat-*.json")):
        kind, number = re.fullmatch(r"(.+)-heat-(\d+)", path.stem).groups()
        heats.append(Heat(target, kind, int(number)))
    return heats
