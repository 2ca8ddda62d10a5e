"""The names of types that several files of Rust crates declare."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .rust_source import read_binaries, read_crate


def problems(crates: Iterable[Path]) -> list[str]:
    """A message for each name that production code of these crates declares in more than one file:
    types, traits and aliases. Two declarations in one file, such as the arms of a `cfg`, are one.
    `crates` are folders with a `src`."""
    places: dict[str, dict[Path, int]] = {}
    for crate in crates:
        source = crate / "src"
        for module in [*read_crate(source), *read_binaries(source)]:
            for name, line in module.types:
                places.setdefault(name, {}).setdefault(module.file, line)
    found = []
    for name, files in sorted(places.items()):
        if len(files) > 1:
            declared = [f"{file}:{line}" for file, line in sorted(files.items())]
            found.append(
                f"{declared[0]}: type `{name}` is also declared in {', '.join(declared[1:])}; "
                "all but one need a name that says whose it is"
            )
    return found
