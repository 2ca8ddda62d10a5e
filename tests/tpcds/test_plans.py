"""The comparison of plans."""

from __future__ import annotations

import plans

PLAN = """\
SortMergeJoin [k#12L], [j#30], Inner
 Sort [k#12L ASC NULLS FIRST], false, 0
  Exchange hashpartitioning(k#12L, 12), ENSURE_REQUIREMENTS, [plan_id=77]
   Filter (isnotnull(k#12L) AND (v#13 > Subquery subquery#5, [id=#88]))
 ReusedExchange of Exchange hashpartitioning(j#30, 12), ENSURE_REQUIREMENTS, [plan_id=80]
reads 3 1
"""


def difference(tmp_path, left, right):
    paths = [tmp_path / "left", tmp_path / "right"]
    for path, text in zip(paths, (left, right)):
        path.write_text(text)
    return plans.difference(*paths)


def test_equal(tmp_path):
    other = PLAN.replace("#12L", "#112L").replace("77", "8").replace("#5", "#6").replace("88", "9")
    assert difference(tmp_path, PLAN, PLAN) == (None, None)
    assert difference(tmp_path, PLAN, other) == (None, None)


def test_which_of_two_is_reused(tmp_path):
    one = "Union\n Exchange a, [plan_id=1]\n  Scan\n ReusedExchange of Exchange a, [plan_id=1]\n"
    other = "Union\n ReusedExchange of Exchange a, [plan_id=2]\n Exchange a, [plan_id=2]\n  Scan\n"
    assert difference(tmp_path, one, other) == (None, None)
    twice = "Union\n Exchange a, [plan_id=1]\n  Scan\n Exchange a, [plan_id=2]\n  Scan\n"
    assert difference(tmp_path, one, twice)[0]


def test_partitions_are_a_note(tmp_path):
    problem, note = difference(tmp_path, PLAN, PLAN.replace("3 1", "2 1"))
    assert problem is None
    assert "[3, 1] against [2, 1]" in note


def test_different(tmp_path):
    for other in (
        PLAN.replace("SortMergeJoin", "BroadcastHashJoin"),
        PLAN.replace("ReusedExchange of ", ""),
        PLAN.replace("12)", "24)"),
        PLAN.replace("Inner", "LeftOuter"),
    ):
        problem, _ = difference(tmp_path, PLAN, other)
        assert "lines of the plans differ" in problem


def test_which_side_was_first_is_a_note(tmp_path):
    one = """\
BroadcastHashJoin [k#1L], [j#2L], Inner, BuildRight, false, false
 AQEShuffleRead local
  Exchange hashpartitioning(k#1L, 12), [plan_id=1]
 BroadcastExchange HashedRelationBroadcastMode(List(input[0, bigint, true]),false), [plan_id=2]
  Exchange hashpartitioning(j#2L, 12), [plan_id=3]
"""
    other = """\
BroadcastHashJoin [k#1L], [j#2L], Inner, BuildLeft, false, false
 BroadcastExchange HashedRelationBroadcastMode(List(input[1, bigint, true]),false), [plan_id=2]
  Exchange hashpartitioning(k#1L, 12), [plan_id=1]
 Scan
"""
    scans = one + " Scan\n"
    assert difference(tmp_path, scans, other) == (None, "the other side of a join was first")
    assert difference(tmp_path, one, other)[0]
    sorted_join = one.replace("BroadcastHashJoin", "SortMergeJoin")
    assert difference(tmp_path, sorted_join, sorted_join.replace(" AQEShuffleRead local\n", ""))[0]


def test_which_side_a_nested_loop_builds_is_a_note(tmp_path):
    one = """\
BroadcastNestedLoopJoin BuildRight, Inner
 Scan a
 BroadcastExchange IdentityBroadcastMode
"""
    other = one.replace("BuildRight", "BuildLeft")
    assert difference(tmp_path, one, other) == (None, "the other side of a join was first")
    assert difference(tmp_path, one, other.replace("Inner", "Cross"))[0]
