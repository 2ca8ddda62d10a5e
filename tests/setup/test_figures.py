"""README's figures, its picture and the tables of docs/benchmarks.md are made from the results."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = (
    "README.md",
    "docs/benchmarks.md",
    "docs/images/what-to-expect.svg",
    "tests/setup/check-figures",
    "tests/plots/__init__.py",
    "tests/plots/tables.py",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs" / "benchmarks", tmp_path / "docs" / "benchmarks")
    for name in NEEDED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tmp_path / name)
    return tmp_path


def check(tree: Path, *options: str) -> int:
    command = [tree / "tests" / "setup" / "check-figures", *options]
    return subprocess.run(command, capture_output=True, check=False).returncode


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_tree_is_as_made(tree: Path):
    assert check(tree) == 0


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("README.md", "18 % less time", "28 % less time"),
        ("docs/images/what-to-expect.svg", "−58 %", "−68 %"),
        ("docs/benchmarks.md", "| 0.82 |", "| 0.72 |"),
        ("docs/benchmarks/scale.txt", "| 724 (722–726) |", "| 800 (798–802) |"),
    ],
)
def test_a_figure_changed_by_hand_is_found(tree: Path, name: str, old: str, new: str):
    replace(tree / name, old, new)
    assert check(tree) == 1
    assert check(tree, "--write") == 0
    assert check(tree) == 0
