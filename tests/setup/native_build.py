#!/usr/bin/env python3
"""The one build of native code that all tests use: its features, its targets, what it has made.

As a program it brings all of it up to date.

The features `faults` and `research` are both in it. Faults act only where FARO_FAULTS is set, and
the modes for comparison only where they are asked for, so that one build serves every test; two
sets of features would compile `faro-endpoint` and each crate above it twice. What is released has
neither: tests/setup/build-jar.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")
FEATURES = ("faults", "research")
# Each call of cargo for tests has these words. A package by itself (`-p`) gets other features of
# what it depends on, and is compiled again.
WORDS = (
    "--workspace",
    "--features",
    ",".join(f"faro-jni/{name}" for name in FEATURES),
    "--locked",
)
# What Spark's tests use: the library and the program `faro`, and one benchmark that is a test too.
# With a benchmark or a test, cargo chooses the features that dev-dependencies ask for, as for all.
WITHOUT_TESTS = ("--lib", "--bins", "--bench", "alltoall")
TARGETS = (*WITHOUT_TESTS, "--examples", "--tests")


class Program(NamedTuple):
    package: Path
    target: str
    # lib, bin, test, bench or example.
    kind: str
    is_test: bool
    executable: str

    @property
    def name(self) -> str:
        """The package's directory and the target."""
        return f"{self.package.relative_to(ROOT)} {self.target}"


class DoesNotBuild(RuntimeError):
    """Cargo's messages."""


def programs(targets: tuple[str, ...] = TARGETS, show: bool = False) -> list[Program]:
    """The programs of these targets, up to date. `show`: cargo says what it does as it does it."""
    build = subprocess.run(
        [CARGO, "build", "--message-format=json-render-diagnostics", *WORDS, *targets],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if show else subprocess.PIPE,
        text=True,
        check=False,
    )
    if build.returncode:
        raise DoesNotBuild(
            f"cargo could not build the tests\n{(build.stderr or '')[-3000:]}".strip()
        )
    messages = [json.loads(line) for line in build.stdout.splitlines()]
    return [
        Program(
            Path(one["manifest_path"]).parent,
            one["target"]["name"],
            one["target"]["kind"][0],
            one["profile"]["test"],
            one["executable"],
        )
        for one in messages
        if one.get("executable")
    ]


if __name__ == "__main__":
    try:
        print(f"{len(programs(show=True))} programs are up to date")
    except DoesNotBuild as error:
        sys.exit(str(error))
