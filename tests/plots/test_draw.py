"""Every plot is drawn, and drawing refuses what a reader could not read."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ("benchmarks", "design/scaling")
FIGURE = """
from pathlib import Path
from matplotlib import pyplot
from plots import style

figure, axes = pyplot.subplots(figsize=(3, 2))
{}
style.save(figure, Path("{}"))
"""


def run(command: list[object]) -> subprocess.CompletedProcess:
    tests = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=ROOT, env=tests, capture_output=True, text=True, check=False)


def test_each_plot_is_what_its_results_make(tmp_path: Path):
    for folder in RESULTS:
        shutil.copytree(ROOT / "docs" / folder, tmp_path / folder)
        for plot in (tmp_path / folder).glob("*.svg"):
            plot.unlink()
    drawn = run([ROOT / "tests" / "plots" / "draw", "--docs", tmp_path])
    assert drawn.returncode == 0, drawn.stderr
    for folder in RESULTS:
        names = sorted(path.name for path in (ROOT / "docs" / folder).glob("*.svg"))
        assert sorted(path.name for path in (tmp_path / folder).glob("*.svg")) == names


@pytest.mark.parametrize(
    ("drawing", "wrong"),
    [
        ("axes.set_title('a title that is much longer than the plot is wide' * 3)", "is cut"),
        (
            "for name in ('one', 'other'): axes.plot([1], [1], color='red', label=name)",
            "'one' and 'other' have one colour",
        ),
    ],
)
def test_drawing_refuses(tmp_path: Path, drawing: str, wrong: str):
    python = run([ROOT / "tests" / "setup" / "tools", "matplotlib"]).stdout.strip()
    drawn = run([python, "-c", FIGURE.format(drawing, tmp_path / "plot.svg")])
    assert drawn.returncode != 0
    assert wrong in drawn.stderr
