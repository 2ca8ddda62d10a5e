"""The comparison of answers, and the list of queries."""

from __future__ import annotations

import answers
import pytest
import queries

ROWS = ["=1\t~0.5", "=1\t~0.5", "=2\t~9.999999999999999", "=2\t~10.5", "=null\t=null"]


def difference(tmp_path, left, right, **options):
    paths = [tmp_path / "left", tmp_path / "right"]
    for path, rows in zip(paths, (left, right)):
        path.write_text("".join(f"{row}\n" for row in rows))
    return answers.difference(*paths, **options)


@pytest.mark.parametrize(
    "other",
    [ROWS, ROWS[::-1], [*ROWS[:2], "=2\t~10.0", *ROWS[3:]]],
    ids=["same", "another order", "rounding"],
)
def test_equal(tmp_path, other):
    assert difference(tmp_path, ROWS, other) is None


@pytest.mark.parametrize(
    "other",
    [
        ROWS[1:],
        [*ROWS, ROWS[0]],
        [*ROWS[1:], ROWS[2]],
        ["=3\t~0.5", *ROWS[1:]],
        ["=1\t~0.50000001", *ROWS[1:]],
        ["=1\t=null", *ROWS[1:]],
        ["=1\t~NaN", *ROWS[1:]],
        ["=1", *ROWS[1:]],
        [],
    ],
)
def test_different(tmp_path, other):
    assert difference(tmp_path, ROWS, other)
    assert difference(tmp_path, other, ROWS)


def test_empty_answers(tmp_path):
    assert difference(tmp_path, [], []) == "the answer is empty"
    assert difference(tmp_path, [], [], may_be_empty=True) is None


def test_queries():
    assert len(set(queries.NAMES)) == 103
    assert set(queries.HEAVY) < set(queries.NAMES)
    assert queries.without_limit("select 1\nLIMIT 100 ;\n") == "select 1\n"
    assert queries.without_limit("select (select 1 limit 1)\n") == "select (select 1 limit 1)\n"
