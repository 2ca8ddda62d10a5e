#!/usr/bin/env python3
"""When `make test-all` and `make test-release-candidate` last passed: tests/last-runs.

usage: last_runs.py     fails, and says why, where one is older than what a release is made of

A run that passed adds its line; the file is committed, so that everybody sees how old a full run
is. Documents may be newer than a run, nothing else. A line names the revision that the run began
with, and the phases of which nothing could run on that machine: no release counts on such a line.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "last-runs"
COMMANDS = ("test-all", "test-release-candidate")
HEADER = "# command revision date minutes machine: result"
# In a result, before the phases of which nothing ran.
WITHOUT = ", nothing of "


class State(NamedTuple):
    """What a run tests: a commit, and the files that differ from it."""

    revision: str
    changed: tuple[str, ...]


def git(*words: str) -> str:
    """What git says; nothing where there is no repository or no such revision."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def no_documents(paths: list[str]) -> list[str]:
    """Without what changes nothing that a test sees; pages that tests read are still pages."""
    pages = ("docs/images/", "docs/benchmarks/", "tests/last-runs")
    return [path for path in paths if not path.endswith(".md") and not path.startswith(pages)]


def state() -> State:
    words = ["status", "--porcelain", "--untracked-files=all", "--no-renames"]
    # Git's output begins with two letters for the first file; one of them may be a space.
    changed = no_documents([line[2:].strip() for line in git(*words).splitlines()])
    return State(git("rev-parse", "--short=12", "HEAD") or "unknown", tuple(changed))


def since(revision: str) -> list[str]:
    return no_documents(git("diff", "--name-only", "--no-renames", revision, "HEAD").splitlines())


def lines() -> list[str]:
    text = FILE.read_text() if FILE.is_file() else ""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def last(command: str) -> list[str]:
    """Command, revision, date and the rest of its last run."""
    return next((one.split(" ", 3) for one in lines()[::-1] if one.split(" ")[0] == command), [])


def add(command: str, began: State, minutes: float, result: str, without: list[str]) -> str:
    """Writes the line of a run that passed; what to do with it. `began`: what it began with;
    `without`: the phases of which nothing ran."""
    if changed := {*began.changed, *state().changed, *since(began.revision)}:
        return (
            f"tests/last-runs has no new line: {len(changed)} files differ from {began.revision}, "
            f"or did while the tests ran, such as {min(changed)}; commit them and run "
            f"'make {command}' again"
        )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    machine = f"{os.cpu_count()} cores, {memory:.0f} GiB, {platform.machine()}"
    line = (
        f"{command} {began.revision} {datetime.date.today()} {round(minutes)} {machine}: {result}"
    )
    line += WITHOUT + ", ".join(without) if without else ""
    own = [one for one in lines() if one.split(" ")[0] == command]
    others = [one for one in lines() if one not in own]
    FILE.write_text("\n".join([HEADER, *others, *own[-4:], line]) + "\n")
    return f"tests/last-runs has a new line: commit it ({line})"


def said_of(command: str) -> str:
    """One line for `make test`."""
    if not (run := last(command)):
        return f"make {command} has no run in tests/last-runs"
    count = git("rev-list", "--count", f"{run[1]}..HEAD")
    age = f"{count} commits ago" if count else "of another history"
    return f"make {command} last passed on {run[2]} at {run[1]}, {age}: {run[3].split(': ')[1]}"


def too_old(command: str) -> str:
    """Why a release cannot count on the last run of a command; nothing if it can."""
    if not (run := last(command)):
        return f"make {command} has never passed: tests/last-runs has no line of it"
    _, revision, date, rest = run
    if not git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"):
        return f"make {command} passed at {revision}, which this history does not have"
    if missing := rest.partition(WITHOUT)[2]:
        return f"make {command} at {revision} on {date} could run nothing of {missing}"
    # Also what is not committed: a release is made of it.
    if changed := [*since(revision), *state().changed]:
        return (
            f"make {command} last passed at {revision} on {date}; {len(changed)} files have "
            f"changed since, such as {changed[0]}"
        )
    return ""


def main() -> int:
    reasons = [reason for reason in map(too_old, COMMANDS) if reason]
    for reason in reasons:
        print(f"release: {reason}", file=sys.stderr)
    return 1 if reasons else 0


if __name__ == "__main__":
    sys.exit(main())
