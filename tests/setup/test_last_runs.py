"""What a release counts on: full runs that are not older than what it is made of."""

from __future__ import annotations

import subprocess

import last_runs
import pytest


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A repository with one commit, in the place of this one."""
    monkeypatch.setattr(last_runs, "ROOT", tmp_path)
    monkeypatch.setattr(last_runs, "FILE", tmp_path / "tests" / "last-runs")
    (tmp_path / "tests").mkdir()
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, "code.rs")
    return tmp_path


def git(tree, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True)


def commit(tree, path):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    with (tree / path).open("a") as file:
        file.write("one more line\n")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", path)


def add(command, minutes=60, began=None, without=()):
    """Of a run that has passed."""
    began = began or last_runs.state()
    return last_runs.add(command, began, minutes, "9 passed, 0 failed", list(without))


@pytest.mark.usefixtures("tree")
def test_a_release_refuses_until_both_have_passed(capsys):
    assert last_runs.main() == 1
    said = capsys.readouterr().err
    assert "make test-all has never passed" in said
    assert "make test-release-candidate has never passed" in said
    for command in last_runs.COMMANDS:
        assert "commit it" in add(command, 61.6)
    assert last_runs.main() == 0
    line = last_runs.last("test-all")
    assert (line.minutes, line.result) == (62, "9 passed, 0 failed")


def test_documents_may_be_newer_and_code_may_not(tree):
    add("test-all")
    commit(tree, "docs/page.md")
    assert last_runs.too_old("test-all") == ""
    assert "1 commits ago" in last_runs.said_of("test-all")
    commit(tree, "code.rs")
    assert "1 files have changed since, such as code.rs" in last_runs.too_old("test-all")


def test_a_tree_that_differs_gives_no_line(tree):
    (tree / "code.rs").write_text("changed\n")
    assert "1 files differ" in add("test-all")
    assert last_runs.last("test-all") is None


def test_what_is_committed_while_the_tests_run_was_not_tested(tree):
    began = last_runs.state()
    commit(tree, "docs/page.md")
    assert f"test-all {began.revision} " in add("test-all", began=began)
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "a line")
    assert last_runs.too_old("test-all") == ""
    last_runs.FILE.unlink()
    commit(tree, "code.rs")
    assert "1 files differ" in add("test-all", began=began)
    assert last_runs.last("test-all") is None


def test_what_differed_when_the_tests_began_gives_no_line(tree):
    (tree / "code.rs").write_text("changed\n")
    began = last_runs.state()
    git(tree, "checkout", "--quiet", "code.rs")
    assert "such as code.rs" in add("test-all", began=began)


def test_a_release_of_what_is_not_committed_is_refused(tree):
    add("test-all")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "a line")
    assert last_runs.too_old("test-all") == ""
    (tree / "code.rs").write_text("changed\n")
    assert "such as code.rs" in last_runs.too_old("test-all")


def test_one_run_after_the_other_without_a_commit_between_them(tree):
    add("test-all")
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "a line")
    for command in last_runs.COMMANDS:
        assert "commit it" in add(command)


def test_code_that_becomes_a_document_is_a_change(tree):
    add("test-all")
    git(tree, "mv", "code.rs", "code.md")
    assert last_runs.state().changed == ("code.rs",)
    git(tree, "commit", "--quiet", "--message", "moved")
    assert "such as code.rs" in last_runs.too_old("test-all")


@pytest.mark.usefixtures("tree")
def test_a_run_that_could_not_run_a_phase_is_no_full_run():
    line = add("test-all", without=["guests", "pods"])
    assert "9 passed, 0 failed, nothing of guests, pods" in line
    assert "could run nothing of guests, pods" in last_runs.too_old("test-all")


@pytest.mark.usefixtures("tree")
def test_a_revision_of_another_history_is_named():
    last_runs.FILE.write_text("test-all 0123456789ab 2026-01-01 60 2 cores: 9 passed, 0 failed\n")
    assert "0123456789ab, which this history does not have" in last_runs.too_old("test-all")


@pytest.mark.usefixtures("tree")
def test_five_lines_of_a_command_are_kept():
    for minutes in range(7):
        add("test-all", minutes)
    assert [run.minutes for run in last_runs.runs()] == [2, 3, 4, 5, 6]
