"""When tests/setup/loom skips what it would run: only where nothing has changed since a pass."""

from __future__ import annotations

import subprocess
import sys

import pytest
from programs import loaded

PASSED = "test result: ok. 11 passed; 0 failed; 0 ignored\ntest result: ok. 7 passed; 0 failed;"
FAILED = "test result: FAILED. 10 passed; 1 failed; 0 ignored\n"


@pytest.fixture
def loom(tmp_path, monkeypatch):
    """The program with a cache and a source tree of its own, and a result that a test chooses."""
    module = loaded("setup/loom")
    tree = tmp_path / "tree"
    (tree / "native").mkdir(parents=True)
    subprocess.run(["git", "init", "--quiet", tree], check=True)
    (tree / "native" / "pool").write_text("pool")
    key = module.key
    module.result = (0, PASSED + " 0 ignored")
    monkeypatch.setenv("FARO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "key", lambda: key(tree, ["native"]))
    monkeypatch.setattr(module, "run", lambda: module.result)
    module.tree = tree
    return module


def said(module, monkeypatch, capsys, *options):
    monkeypatch.setattr(sys, "argv", ["loom", *options])
    code = module.main()
    return code, capsys.readouterr().out.splitlines()


def test_what_has_passed_is_skipped_until_it_changes(loom, monkeypatch, capsys):
    assert said(loom, monkeypatch, capsys)[1][-1] == "18 passed, 0 failed, 0 skipped"
    code, lines = said(loom, monkeypatch, capsys)
    assert (code, lines[-1]) == (0, "0 passed, 0 failed, 18 skipped")
    assert lines[0].startswith("loom: skipped: pool, region and sync passed as they are on ")
    assert said(loom, monkeypatch, capsys, "--again")[1][-1] == "18 passed, 0 failed, 0 skipped"
    # A file that git does not know yet.
    (loom.tree / "native" / "sync").write_text("sync")
    assert said(loom, monkeypatch, capsys)[1][-1] == "18 passed, 0 failed, 0 skipped"
    (loom.tree / "native" / "pool").write_text("other")
    assert said(loom, monkeypatch, capsys)[1][-1] == "18 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    "result",
    [
        (101, FAILED),
        (101, "error: could not compile"),
        (0, ""),
        # Without its cfg a program has no tests.
        (0, PASSED.replace("7 passed", "0 passed") + " 0 ignored"),
        (0, PASSED.partition("\n")[0]),
    ],
)
def test_what_has_not_passed_runs_again(loom, monkeypatch, capsys, result):
    loom.result = result
    for _ in range(2):
        code, lines = said(loom, monkeypatch, capsys)
        assert code == 1
        assert not lines[-1].endswith(" 0 failed, 0 skipped")
