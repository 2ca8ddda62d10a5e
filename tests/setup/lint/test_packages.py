"""Whether check-packages sees what a package uses, and refuses a cycle."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .java_packages import Module

CHECK = Path(__file__).resolve().parents[1] / "check-packages"


@pytest.fixture
def module(tmp_path):
    """A function that makes a module of classes, by package and name."""

    def make(classes: dict[str, str]) -> Module:
        for name, body in classes.items():
            package, _, simple = name.rpartition(".")
            path = tmp_path / "sample/src/main/java" / package.replace(".", "/") / f"{simple}.java"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"package {package};\n{body}\n")
        return Module(tmp_path / "sample")

    return make


def edges(module: Module) -> set[tuple[str, str]]:
    return {(user, used) for user, uses in module.graph().edges.items() for used in uses}


def check(module: Module, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, CHECK, module.folder, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_imports_and_full_names_are_uses_and_comments_are_none(module):
    sample = module(
        {
            "a.Main": "import a.b.One;\nimport static a.c.Two.X;\nclass Main {}",
            "a.b.One": '/** {@link a.c.Two} */ class One { String s = "a.c.Two"; } // a.c.Two',
            "a.c.Two": "class Two { a.d.Three.Inner x; }",
            "a.d.Three": "class Three {}",
        }
    )
    assert edges(sample) == {("a", "b"), ("a", "c"), ("c", "d")}
    assert check(sample).returncode == 0


def test_a_cycle_is_named_with_the_places(module):
    done = check(module({"a.Main": "", "a.b.One": "a.c.Two x;", "a.c.Two": "\na.b.One x;"}))
    assert done.returncode == 1
    assert "b uses c" in done.stdout
    assert "Two.java:3" in done.stdout


def test_a_package_for_the_entrance_alone(module):
    sample = module({"a.Main": "a.ui.Page x;", "a.b.One": "a.ui.Page x;", "a.ui.Page": ""})
    done = check(sample, "--only-entrance", "ui")
    assert done.returncode == 1
    assert "b uses ui; only a may" in done.stdout
    assert check(sample).returncode == 0


def test_the_graph_in_a_document(module, tmp_path):
    sample = module({"a.Main": "a.b.One x;", "a.b.One": ""})
    page = tmp_path / "page.md"
    page.write_text("<!-- module graph: sample -->\n<!-- /module graph -->\n")
    assert check(sample, "--check-doc", str(page)).returncode == 1
    assert check(sample, "--write-doc", str(page)).returncode == 0
    assert "a --> b" in page.read_text()
    assert check(sample, "--check-doc", str(page)).returncode == 0
