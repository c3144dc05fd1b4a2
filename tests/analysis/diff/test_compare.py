"""Metrics of two sides, known to the same extent, and the way from A's time to B's, op by op."""

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from pyprof.analysis.diff.compare import waterfall
from tests.analysis import product
from tests.analysis.captures import training, write_dict
from tests.answers.checked import ask
from tests.builders import Range, Work, nsys_db
from tests.capture_files.ncu import Profiled, ncu_csv
from tests.commands import run


def _parsed(folder: Path, name: str, counters: Path) -> Path:
    target = folder / f"{name}.parquet"
    net = product.capture(folder / f"{name}.sqlite")
    assert run("parse", "-q", "--with", counters, net, "-o", target).code == 0
    return target


def test_measured_traffic_is_compared(tmp_path: Path) -> None:
    sides = [
        _parsed(tmp_path, name, product.counters(tmp_path / f"{name}.csv", factor))
        for name, factor in (("a", 2.0), ("b", 3.0))
    ]
    text = run("diff", "-q", *sides).stdout
    (line,) = [line for line in text.splitlines() if line.startswith("DRAM traffic, measured")]
    assert "+50.0" in line
    gated = run("diff", "-q", "--fail-if", "dram>+5%", *sides)
    assert gated.code == 3
    unknown = run(
        "diff", "-q", "--fail-if", "dram>+5%", sides[0], product.capture(tmp_path / "c.sqlite")
    )
    assert unknown.code == 1
    assert "cannot be checked" in unknown.stderr


def test_metrics_are_compared_if_both_know_them_for_the_same_share(tmp_path: Path) -> None:
    """The traffic of half of the kernels is not half of the traffic."""
    sides = []
    for name, known in (("a", product.STEPS), ("b", 1)):
        metrics = {"dram__bytes.sum": 1e6, "lts__t_sector_hit_rate.pct": 50.0}
        some = {"lts__t_sector_hit_rate.pct": 50.0}
        kernels = [Profiled(product.GEMM, metrics=metrics if at < known else some)
                   for at in range(product.STEPS)]  # fmt: skip
        sides.append(_parsed(tmp_path, name, ncu_csv(tmp_path / f"{name}.csv", kernels)))
    done = run("diff", "-q", "--fail-if", "dram>+5%", *sides)
    assert done.code == 1
    assert "cannot be checked" in done.stderr
    assert "dram is known for different shares of the rows" in done.stderr


def test_traffic_per_step_is_of_as_many_steps_as_each_rank_has(tmp_path: Path) -> None:
    """One rank of A has two more; in each step, each rank's four rows move 1 MB each."""
    sides = []
    for name, steps in (("a", (6, 4)), ("b", (4, 4))):
        sides.append(tmp_path / name)
        sides[-1].mkdir()
        for rank, count in enumerate(steps):
            net = write_dict(sides[-1] / f"rank{rank}.dict", training(count))
            counters = orjson.dumps(json.dumps({"dram_bytes": 10**6, "source": "ncu"})).decode()
            net.write_text(net.read_text().replace('"kind"', f'"counters": {counters}, "kind"'))
    found = ask("diff", "-q", *(side / "*.dict" for side in sides))["metrics"]["dram_bytes"]
    assert (found["a"], found["b"]) == (8e6, 8e6)


def test_communication_that_nothing_hides_is_compared(tmp_path: Path) -> None:
    """As much is sent in B, but while the product runs, so that the steps are shorter."""
    sides = []
    for name, begins in (("a", 500), ("b", 100), ("none", None)):
        work, ranges = [], []
        for at in range(0, 8000, 1000):
            work.append(Work("gemm", (at, at + 500), (at, at + 1)))
            if begins is not None:
                sends = (at + begins, at + begins + 300)
                work += [Work("ncclDevKernel_SendRecv", sends, (at + 2, at + 3), stream=9)]
            ranges.append(Range(f"step {at // 1000}", (at, at + 600)))
        sides.append(nsys_db(tmp_path / f"{name}.sqlite", work, ranges))
    a, b, without = sides
    found = ask("diff", "-q", a, b)["metrics"]["exposed_ns"]
    assert (found["a"], found["b"]) == (300, 0)
    assert "exposed communication" in run("diff", a, b).stdout
    assert "exposed communication" not in run("diff", b, without).stdout
    for hidden in (b, without):
        assert run("diff", "-q", "--fail-if", "exposed>1us", hidden, a).code == 0
        assert run("diff", "-q", "--fail-if", "exposed>1ns", hidden, a).code == 3


ROUND_NS = (100_000, 200_000, 300_000)
ROUNDS = 12


def _capture(path: Path, once_ns: int, *, marked: bool = False) -> Path:
    """Write rounds of three kernels, after work that comes once."""
    work = [Work("once", (5_000, 5_000 + once_ns), (0, 10))]
    ranges, at = [], 5_000 + once_ns
    for number in range(ROUNDS):
        called = 1_000 * (number + 1)
        ranges.append(Range(f"step {number}", (called, called + 999)))
        for place, ns in enumerate(ROUND_NS):
            begin = called + 20 * place
            work.append(Work(f"kernel{place}", (at, at + ns), (begin + 1, begin + 10)))
            at += ns
    return nsys_db(path, work, ranges if marked else [Range("all", (0, 10))])


def _pair(folder: Path, a_once_ns: int, b_once_ns: int, *, marked: bool = False) -> list[Path]:
    once = {"a": a_once_ns, "b": b_once_ns}
    return [_capture(folder / f"{n}.sqlite", ns, marked=marked) for n, ns in once.items()]


def test_whole_captures_are_compared_if_guessed_steps_hold_little(tmp_path: Path) -> None:
    """A 40 % increase outside of them is seen, and limits see it."""
    a, b = _pair(tmp_path, 10_000_000, 20_000_000)
    answer = ask("diff", a, b)
    assert answer["per_step"] is None
    assert answer["why_totals"].startswith("the guessed steps hold only 4")
    assert answer["metrics"]["time_ns"]["change"] == 10_000_000
    assert answer["metrics"]["step_ns"]["a"] is None
    done = run("diff", a, b, "--fail-if", "slower>5%", "--fail-if", "op>10%")
    assert done.code == 3
    assert "totals of both captures (the guessed steps hold only" in done.stdout
    assert "op>10%: once" in done.stderr
    assert "slower>5%: time changed by +10.0 ms" in done.stderr


def test_whole_captures_are_compared_if_the_change_is_outside_of_guessed_steps(
    tmp_path: Path,
) -> None:
    """Even if the steps hold nearly all the time, and it is just over 1 % of A, but not of B."""
    a, b = _pair(tmp_path, 100_000, 173_500)
    for pair, change_ns in (((a, b), 73_500), ((b, a), -73_500)):
        answer = ask("diff", *pair)
        assert answer["why_totals"] == "what changed lies partly outside of the guessed steps"
        assert answer["metrics"]["time_ns"]["change"] == change_ns


def test_guessed_steps_with_most_of_the_time_are_compared(tmp_path: Path) -> None:
    answer = ask("diff", *_pair(tmp_path, 100_000, 110_000))
    assert answer["why_totals"] == ""
    assert 0.8 < answer["per_step"]["b_share"] < answer["per_step"]["a_share"] < 1


def test_marked_steps_are_compared_and_their_share_is_stated(tmp_path: Path) -> None:
    a, b = _pair(tmp_path, 10_000_000, 20_000_000, marked=True)
    text = run("diff", a, b).stdout
    assert "per step: A has 12, B 12; they hold 42 % of A's time, 26 % of B's" in text
    assert ask("diff", a, b)["metrics"]["time_ns"]["change"] == 0


def test_steps_with_all_of_the_time_need_no_remark(tmp_path: Path) -> None:
    a = _capture(tmp_path / "a.sqlite", 0, marked=True)
    assert "hold" not in run("diff", a, a).stdout


_TIMES = st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 99), st.integers(0, 99))


def _changes(taken: list[tuple[str, int, int]]) -> list[Any]:
    return [
        SimpleNamespace(key={"op": name, "shape": "4x4"}, a_ns=a, b_ns=b, change_ns=b - a)
        for name, a, b in taken
    ]


@given(st.lists(_TIMES, max_size=20), st.integers(1, 5))
def test_stages_lead_from_the_time_of_a_to_that_of_b(
    changes: list[tuple[str, int, int]], most: int
) -> None:
    stages = waterfall(_changes(changes), most)
    a_ns, b_ns = sum(a for _, a, _ in changes), sum(b for *_, b in changes)
    edges = [a_ns, *(stage.to_ns for stage in stages)]
    assert edges[:-1] == [stage.from_ns for stage in stages]
    assert [b - a for a, b in pairwise(edges)] == [stage.change_ns for stage in stages]
    assert edges[-1] == b_ns
    assert len(stages) <= most + 1


def test_an_op_of_several_shapes_is_one_stage() -> None:
    (stage,) = waterfall(_changes([("mm", 5, 9), ("mm", 3, 1), ("add", 2, 2)]))
    assert (stage.name, stage.change_ns, stage.op_count) == ("mm", 2, 1)


def test_the_rest_is_one_stage_that_counts_its_ops() -> None:
    *_, rest = waterfall(_changes([("a", 0, 50), ("b", 0, 2), ("c", 3, 0)]), most=1)
    assert (rest.name, rest.op_count, rest.change_ns) == ("all others", 2, -1)
