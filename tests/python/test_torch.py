"""faro.torch under torchrun: four processes that average one model, by Faro and by Gloo.

Skipped where there is no PyTorch to fetch (tests/setup/tools torch).
"""

from __future__ import annotations

import json
import math
import struct
import subprocess

import native_build
import processes
import pytest
from processes import HERE, RANKS, environment


@pytest.fixture(scope="module")
def python():
    """A Python that has torch."""
    words = [native_build.ROOT / "tests" / "setup" / "tools", "torch"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Of each run of torchrun. A process group is made once only: with one case by the averager. A case
# that ends with processes apart is the last one.
RUNS = [
    ("faro", "exact"),
    ("faro", "dssync", "errors", "team", "values", "apart", "nan", "late"),
    ("gloo", "exact", "dssync", "refused", "values", "apart", "nan", "stopped"),
]


@pytest.fixture(scope="module")
def results(python, tmp_path_factory):
    """The results by rank of each case, with Faro and with Gloo."""
    found = {}
    for transport, *cases in RUNS:
        place = tmp_path_factory.mktemp(transport)
        words = [python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node"]
        # Its own defaults do not work with torch 1.13 on Python 3.11.
        words += [str(RANKS), "--redirects", "1", "--tee", "1", "--log_dir", place / "logs"]
        words += [HERE / "torch_process.py", transport, place, *cases]
        given = {**environment(processes.library()), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            words,
            env=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=processes.GUARD_SECONDS,
        )
        assert done.returncode == 0, done.stderr
        ranks = [json.loads((place / f"{rank}.json").read_text()) for rank in range(RANKS)]
        for case in cases:
            found[transport, case] = [one[case] for one in ranks]
    return found


def assert_mean(results, of, end, names):
    """`end` of each process is the mean of what all had at `of`."""
    for name in names:
        columns = zip(*(result[of][name] for result in results))
        means = [sum(column) / RANKS for column in columns]
        for result in results:
            pairs = zip(result[end][name], means)
            assert all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in pairs), name


def floats(result):
    return [name for name in result["end"] if not name.endswith("num_batches_tracked")]


@pytest.mark.parametrize("transport", ["faro", "gloo"])
def test_local_steps_and_an_exact_mean(results, transport):
    results = results[transport, "exact"]
    names = floats(results[0])
    for result in results:
        assert result["transport"] == transport
        assert result["begun"] == results[0]["begun"], "all begin with rank 0's model"
        assert result["averaged"] == [False, True, False, True, False]
        assert all(result["end"][name] == results[0]["end"][name] for name in names)
        assert result["before"] != results[0]["before"] or result is results[0]
    assert_mean(results, "before", "end", names)
    if transport == "faro":
        assert not any(result["log"] for result in results)
    else:
        reason = "rank 2: cannot load /nonexistent/libfaro_jni.so"
        for result in results:
            (line,) = result["log"]
            assert line.startswith(f"Gloo averages the models, because Faro cannot: {reason}")


@pytest.mark.parametrize("transport", ["faro", "gloo"])
def test_pairs_have_one_model_after_each_step(results, transport):
    results = results[transport, "dssync"]
    names = floats(results[0])
    # With buffers="own" each process has its own until the end.
    shared = [name for name in names if "running" not in name]
    models = [json.dumps({name: one["before"][name] for name in shared}) for one in results]
    assert sorted(models.count(model) for model in models) == [2, 2, 2, 2]
    assert len({json.dumps(one["before"]) for one in results}) == RANKS
    for result in results:
        assert all(result["end"][name] == results[0]["end"][name] for name in names)
    assert_mean(results, "before", "end", names)


def test_a_model_that_is_refused_is_refused_everywhere(results):
    results = results["faro", "errors"]
    assert all(result == results[0] for result in results)
    found = results[0]
    same = "every process needs the same model"
    weight = "parameter weight of"
    assert found["sizes"] == (
        f"rank 2 has {weight} 2 x 4 float32, rank 0 has {weight} 1 x 4 float32: {same}"
    )
    assert found["shapes"] == (
        f"rank 3 has {weight} 4 x 8 float32, rank 0 has {weight} 8 x 4 float32: {same}"
    )
    more = "parameter 1.weight of 4 x 4 float32"
    assert found["more"] == f"rank 1 has {more}, rank 0 has nothing more: {same}"
    allowed = "allowed: torch.float32, torch.float64"
    assert found["type"] == f"rank 1: parameter weight is torch.float16; {allowed}"
    assert f"rank 3 has {weight} 2 x 4 float64" in found["mixed"]
    assert found["device"].startswith("rank 0: parameter weight is on meta: faro.torch averages")
    assert found["empty"] == "rank 0: the model has no parameters (and 3 others)"
    assert "allowed: a torch.nn.Module" in found["no model"]
    assert "parameter weight has no shape yet" in found["lazy"]
    # Of one element in that dimension, so it is refused because rank 0 has another model.
    assert found["stride 0"].startswith("rank 1 has parameter weight of 1 x 1 float32, rank 0 has")
    for name in ("expanded", "sparse", "inference"):
        assert "is sparse, of inference mode, or has elements that share memory" in found[name]


def test_an_argument_that_is_refused_is_refused_everywhere(results):
    found = results["faro", "errors"][0]
    assert found["mode"] == "rank 1: mode is 'ring', allowed: dssync, grid, full"
    assert found["modes"] == (
        "rank 2 has mode 'full', rank 0 has mode 'dssync': every process needs the same"
    )
    assert found["every"].startswith("rank 0: every is '4', allowed: a whole number from 1 to ")
    assert found["everies"].startswith("rank 1 has every 2, rank 0 has every 1: ")
    assert found["group"] == "group is 9, allowed: 0, and 2 to the number of processes, 4"
    assert found["seed"].startswith("rank 0: seed is 1.5, allowed: a whole number from 0 to ")
    assert found["timeout"] == "rank 1: timeout is 0, allowed: seconds, 0.1 to 1000000"
    assert found["flag"].startswith("rank 0: slow_apart is 1, allowed: True, False")
    assert "there is no setting 'colour', allowed: name, " in found["setting"]
    assert found["size"] == (
        "rank 3: spark.faro.memory.limit is '64m', allowed: a number of bytes, 1 or more"
    )
    assert "spark.faro.port is '99999', allowed: 0 to 65535" in found["port"]
    assert "spark.faro.fabric is 'pigeon', allowed: auto, verbs" in found["fabric"]


def test_a_team_is_asked_whether_its_processes_agree(results):
    results = results["faro", "team"]
    for rank, found in enumerate(results):
        differ = f"the tasks differ in their models or arguments; rank {rank} has "
        every = 2 if rank == 2 else 1
        assert found["every"].startswith(f"{differ}every {every}, buffers 'mean', parameter 0.wei")
        shape = f"{8 - rank} x {4 + rank}"
        assert f"{differ}every 1, buffers 'mean', parameter weight of {shape}" in found["shapes"]
        assert found["mode"].startswith("a team has its own mode, ")
        assert found["end"] == results[0]["end"]


@pytest.mark.parametrize("transport", ["faro", "gloo"])
def test_a_nan_fails_everywhere_and_leaves_the_models(results, transport):
    for found in results[transport, "nan"]:
        assert found["kept"], "also of what was averaged before"
        assert found["first"] == found["second"] == found["finish"]
        assert "rank 3" in found["first"]


@pytest.mark.parametrize("transport", ["faro", "gloo"])
def test_large_values_and_tensors_that_change(results, transport):
    for rank, found in enumerate(results[transport, "values"]):
        weight, mask, cache = found["begun"]
        assert (weight, cache) == (results[transport, "values"][0]["begun"][0], 1 + rank)
        assert mask[1] == struct.unpack("f", struct.pack("f", 1e-45))[0]
        assert found["replaced"] == 1.5
        assert found["lowest"]
        added = "the model has parameter more of 3 float32; when the averager was made it had"
        assert found["added"].startswith(added)
        assert found["then"] == found["added"]


@pytest.mark.parametrize("transport", ["faro", "gloo"])
def test_processes_that_make_different_averages_are_told(results, transport):
    for rank, found in enumerate(results[transport, "apart"]):
        what = "finish" if rank == 1 else "step"
        assert found["error"].startswith(f"average 2, by `{what}` in rank {rank}, is not the same")
        assert found["kept"]


def test_a_process_that_does_not_come_or_stops_is_an_error(results):
    late = results["faro", "late"]
    assert late[1] == "late"
    assert all(
        late[rank].startswith("the processes do not meet, in waits of 2 s: ") for rank in (0, 2, 3)
    ), late
    stopped = results["gloo", "stopped"]
    assert stopped[1] == "stopped"
    waits = [
        stopped[rank].startswith(f"Gloo: rank {rank} waits for another: ") for rank in (0, 2, 3)
    ]
    assert all(waits), stopped


def test_without_a_fallback_the_reason_is_the_error(results):
    results = results["gloo", "refused"]
    assert len(set(results)) == 1
    assert results[0].startswith("FaroUnavailableError: rank 2: cannot load /nonexistent/")
