"""When make builds the jar again, which all of `make test` uses."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JAR = "target/tests/faro-spark.jar"
OLD = 1_000_000_000


@pytest.fixture
def tree(tmp_path):
    """What the jar is made of, as empty files that are older than it."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    rule = re.search(r"^\$\(TEST_JAR\): (.*?) \|", (ROOT / "Makefile").read_text(), re.M)[1]
    files = [word for word in rule.split() if not word.startswith("$")]
    files += ["Cargo.toml", "Cargo.lock", "pom.xml", "native/a/src/lib.rs", "jvm/src/main/B.java"]
    for name in [*files, "native/a/tests/a.rs"]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (OLD, OLD))
    built(tmp_path)
    return tmp_path


def built(tree):
    """The jar, as `make` would have made it now."""
    is_made_again(tree)
    (tree / JAR).parent.mkdir(parents=True, exist_ok=True)
    (tree / JAR).touch()


def is_made_again(tree):
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    said = subprocess.check_output(["make", "-n", JAR], cwd=tree, env=environment, text=True)
    return "tests/setup/build-jar" in said


def test_what_has_not_changed_is_not_made_again(tree):
    assert not is_made_again(tree)
    (tree / "native/a/tests/a.rs").write_text("of a test")
    assert not is_made_again(tree)


@pytest.mark.parametrize("name", ["native/a/src/lib.rs", "jvm/src/main/B.java"])
def test_a_source_that_changes_or_is_gone_makes_it_again(tree, name):
    (tree / name).write_text("other")
    assert is_made_again(tree)
    built(tree)
    assert not is_made_again(tree)
    (tree / name).unlink()
    assert is_made_again(tree)
    built(tree)
    assert not is_made_again(tree)


def test_a_new_file_that_is_old_makes_it_again(tree):
    other = tree / "jvm" / "src" / "main" / "C.java"
    other.touch()
    os.utime(other, (OLD, OLD))
    assert is_made_again(tree)
