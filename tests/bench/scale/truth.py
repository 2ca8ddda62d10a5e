"""Compares the predictions of `faro advise`, from the event logs of stock Spark's runs, with what
Faro saved."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import combined
import parts
from measure import spread
from report.figures import NAMES, table

# A smaller share of the time does not count as a gain (constants.rs).
NOTICEABLE = 0.04
AIM_POINTS = 5
# The sides whose time may count as Faro's. One counts for a query: the one that ran more often, and
# of two the first, which is what Faro chooses itself.
FARO = ["faro-auto", "faro-tcp"]


def write(target: Path, heats: list, root: Path) -> str:
    """Returns the section, or an empty text if there is nothing to compare."""
    plain = [heat for heat in heats if heat.kind == parts.PLAIN]
    program = advisor(root)
    predicted: dict = {}
    measured_by = ""
    for heat in plain:
        for lot in heat.lots:
            folder = target / lot["events"].get("stock", "-")
            if folder.is_dir():
                said = asked(program, folder)
                measured_by = said["measured"]
                for group in said["groups"]:
                    if group["name"] in lot["runs"]:
                        predicted.setdefault(group["name"], []).append(group["gain"])
    rows = compared(predicted, combined.of_kind(heats, parts.PLAIN))
    if not rows:
        return ""
    return "\n\n".join(
        [
            "## `faro advise` against what was measured",
            (
                "The event logs of stock Spark's runs of the section on scale factor 10 were given "
                "to `faro advise`. Its constants for rows are fitted to these and to earlier runs "
                "of these queries, the others are of other workloads. *Predicted*, "
                "*expected* and *saved* are parts of the job's time; the error is expected less "
                "saved, in points. Single runs differ by some points from each other."
            ),
            f"- constants: {measured_by}",
            table(
                [
                    "job",
                    "side",
                    "stock s",
                    "Faro s",
                    "saved",
                    "predicted",
                    "expected",
                    "error",
                    "range",
                ],
                [_cells(row) for row in rows],
            ),
            _summary(rows),
        ]
    )


def advisor(root: Path) -> Path:
    command = ["cargo", "build", "--release", "--locked", "-p", "faro-cli"]
    subprocess.run(command, cwd=root, check=True)
    return root / "target" / "release" / "faro"


def asked(program: Path, log: Path) -> dict:
    done = subprocess.run(
        [program, "advise", "--json", log], stdout=subprocess.PIPE, text=True, check=False
    )
    found = json.loads(done.stdout)["applications"]
    if not found:
        raise RuntimeError(f"faro advise read nothing of {log}")
    return found[0]


def compared(predicted: dict, results: dict) -> list[dict]:
    rows = []
    for name, gains in predicted.items():
        sides = results.get(name, {})
        measured = [side for side in FARO if side in sides]
        if not measured or "stock" not in sides:
            continue
        side = max(measured, key=lambda s: len(sides[s]["rounds"]))
        stock, faro = (spread.of(sides[s]["rounds"], "job_s")[0] for s in ("stock", side))
        gain = {k: spread.median([one[k] for one in gains]) for k in ("low", "expected", "high")}
        row = {"name": name, "side": side, "stock": stock, "faro": faro}
        rows.append({**row, "saved": 1 - faro / stock, **gain})
    if len(rows) > 1:
        rows.append(_sum(rows))
    return rows


def _sum(rows: list[dict]) -> dict:
    stock = sum(row["stock"] for row in rows)
    faro = sum(row["faro"] for row in rows)
    weighed = {
        key: sum(row[key] * row["stock"] for row in rows) / stock
        for key in ("low", "expected", "high")
    }
    row = {"name": "**all**", "side": rows[0]["side"], "stock": stock, "faro": faro}
    return {**row, "saved": 1 - faro / stock, **weighed}


def _points(part: float) -> str:
    return f"{100 * part:.0f} %"


def _cells(row: dict) -> list:
    error = 100 * (row["expected"] - row["saved"])
    inside = row["low"] <= row["saved"] <= row["high"]
    side = "inside" if inside else "below" if row["saved"] < row["low"] else "above"
    return [
        row["name"],
        NAMES[row["side"]],
        f"{row['stock']:.1f}",
        f"{row['faro']:.1f}",
        _points(row["saved"]),
        f"{100 * row['low']:.0f} to {100 * row['high']:.0f} %",
        _points(row["expected"]),
        f"{error:+.0f}",
        side,
    ]


def _summary(rows: list[dict]) -> str:
    single = [row for row in rows if row["name"] != "**all**"]
    close = [r for r in single if abs(r["expected"] - r["saved"]) <= AIM_POINTS / 100]
    promised = [r["name"] for r in single if r["low"] >= NOTICEABLE and r["saved"] < NOTICEABLE]
    lines = [
        f"- within {AIM_POINTS} points: {len(close)} of {len(single)} jobs"
        + ("" if len(close) == len(single) else "; **the aim, all of them, is missed**"),
        "- a gain promised (*helps*) where there was none: "
        + (f"**{', '.join(promised)}**" if promised else "nowhere"),
    ]
    return "\n".join(lines)
