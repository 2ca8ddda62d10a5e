"""A child with which a suite converses ends as it should when the suite stops."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "spark"))
from harness.conversation import Broken, Conversation

# Answers `quick` and works on anything else for longer than a test may take.
CHILD = 'while read line; do case "$line" in quick) echo done ;; *) sleep 600 ;; esac; done'


@pytest.fixture
def child(tmp_path):
    talk = Conversation("child", ["sh", "-c", CHILD], tmp_path / "log")
    yield talk
    talk.stop(0)


def test_a_child_that_has_answered_ends_with_its_input(child):
    assert child.ask("quick", 30) == "done"
    child.stop(600)
    assert child.process.returncode == 0


def test_a_child_that_owes_an_answer_is_not_waited_for(child):
    with pytest.raises(Broken, match="no answer within"):
        child.ask("slow", 0.1)
    child.stop(600)
    assert child.process.returncode == -signal.SIGKILL
