"""Steps: from ranges, from the optimizer, from repetition; warm-up; choosing."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pytest

from pyprof import schema
from pyprof.analysis.time import steps
from pyprof.analysis.time.steps import Steps, chosen_bounds, find_steps
from pyprof.arrays import MISSING
from pyprof.inputs.source import Source, load
from pyprof.marker import ServingStep, encode_layer, serving_step
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.records import Records
from pyprof.render.text import first_screen, summary_text
from tests.analysis.answered import answered
from tests.analysis.captures import (  # fmt: skip
    ADD,
    GEMM,
    US,
    Api,
    Range,
    Work,
    capture,
    copy,
    moved,
    one_step,
    records,
    training,
)


def _loop(periods: int, kernels: int = 5) -> list[Work]:
    """Launch kernels of different names 10 us apart, and pause for 50 us after each iteration."""
    length = 10 * kernels + 50
    begins = [(period * length + 10 * k) * US for period in range(periods) for k in range(kernels)]
    return [
        Work((at + 5 * US, at + 9 * US), (at, at + 2 * US), f"{GEMM}_{place % kernels}")
        for place, at in enumerate(begins)
    ]


def _steps_of(work: Sequence[Work], ranges: Sequence[Range] = (), api: Sequence[Api] = ()) -> Steps:
    net = capture(work, api, ranges)
    return find_steps(parse(net), net)


def _of_a_range(text: str) -> Steps:
    return _steps_of([Work((20, 30), (12, 14))], [Range(text, (10, 20))])


def test_ranges_that_name_iterations_are_steps() -> None:
    """A row belongs to the step that launched it; the outermost ranges count."""
    net = training(4)
    found = find_steps(parse(net), net)
    assert (found.origin, len(found)) == ('ranges "step N"', 4)
    assert found.of_row.tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert found.duration_ns.tolist() == [222 * US, 400 * US, 400 * US, 400 * US]


def test_pyprof_step_ends_a_step() -> None:
    """It takes precedence over ranges of frameworks; the first step begins with the capture."""
    launches = [0, 10, 20, 30, 40, 50]
    work = [Work((at * US, (at + 5) * US), (at * US, (at + 1) * US), GEMM) for at in launches]
    ends = [Range("pyprof.step", (at * US - 10, at * US)) for at in (15, 35)]
    found = _steps_of(work, [*ends, Range("step 0", (0, 60 * US))])
    assert (found.origin, found.of_row.tolist()) == ("pyprof.step", [0, 0, 1, 1, -1, -1])


def _paused(stop: int, start: int) -> list[Api]:
    """Stop the profiler and start it again, at times in us."""
    return [
        Api("cudaProfilerStop", (stop * US, (stop + 1) * US)),
        Api("cudaProfilerStart", (start * US, (start + 1) * US)),
    ]


def test_a_pause_of_the_profiler_is_not_part_of_a_step() -> None:
    """Stopped after step 0 and started 9 ms later: the next step is measured like the first."""
    first, second = one_step(0, "step 0"), one_step(10_000 * US, "step 1")
    api = [*first[1], *_paused(300, 9_400), *second[1]]
    found = _steps_of(first[0] + second[0], first[2] + second[2], api)
    assert found.duration_ns.tolist() == [222 * US] * 2


def test_a_step_does_not_reach_over_a_pause() -> None:
    """Work launched before it, after the last optimizer's step, is in no step."""
    ranges = [Range("Optimizer.step#Adam.step", (at, at + 10)) for at in (100, 900)]
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 120, 820, 906)]
    pause = [Api("cudaProfilerStop", (190, 200)), Api("cudaProfilerStart", (800, 801))]
    found = _steps_of(work, ranges, pause)
    assert found.of_row.tolist() == [0, 0, MISSING, 1, 1]
    assert found.start_ns.tolist() == [15, 815]
    assert found.duration_ns.tolist() == [95, 95]


@pytest.mark.parametrize("other", [[], _loop(9)], ids=["alone", "beside a process without pause"])
def test_a_round_with_a_pause_in_it_is_not_a_step(other: list[Work]) -> None:
    """The profiler pauses in the third of seven iterations, after two of its kernels."""
    work = _loop(7)
    work = [*work[:12], *(moved(late, 9_000 * US) for late in work[12:])]
    beside = [moved(more, 20_000 * US, pid=2) for more in other]
    net = capture([*work, *beside], _paused(219, 9_205), pids=2)
    found = find_steps(records(net))
    assert found.of_row[:35].tolist() == [n for n in (0, 1, MISSING, 2, 3, 4, 5) for _ in range(5)]
    if not other:
        assert found.duration_ns.tolist() == [44 * US, 100 * US, 44 * US, *[100 * US] * 3]


_NAMES = ["step 3", "Iteration 12", "iter_7", "ProfilerStep#4", "batch=3", "train_step 5", "batch",
          "layer:step", "training step: 9", "[pl][profile]run_training_batch", "training_step",
          "train_iter", "DeepSpeedEngine.train_batch"]  # fmt: skip
_OTHER_NAMES = ["stepper motor", "epoch 3", "batch_norm, seq = 4", "aten::batch_norm", "iterate"]


@pytest.mark.parametrize("text", [*_NAMES, *_OTHER_NAMES, "x"])
def test_ranges_with_names_of_iterations_are_steps(text: str) -> None:
    """As people and frameworks call them, with a number or without; batch_norm is no batch."""
    assert len(_of_a_range(text)) == (text in _NAMES)


@pytest.mark.parametrize(
    ("text", "name"),
    [(encode_layer("step: 3"), "layer:step: N"), ("step 3, op_id = 17", "step N")],
    ids=["an annotation", "a number that emit_nvtx adds"],
)
def test_a_range_s_steps_have_its_name_without_the_number(text: str, name: str) -> None:
    assert _of_a_range(text).origin == f'ranges "{name}"'


def test_optimizer_steps_end_steps() -> None:
    """Without iteration ranges; the optimizer that steps least often counts."""
    ranges = [Range("Optimizer.step#Adam.step", (at, at + 10)) for at in (100, 200, 300)]
    ranges += [Range("Optimizer.step#SGD.step", (at, at + 5)) for at in range(50, 350, 20)]
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 120, 250, 320)]
    found = _steps_of(work, ranges)
    assert (found.origin, found.end_ns.tolist()) == ("Optimizer.step", [110, 210, 310])
    assert found.of_row.tolist() == [0, 0, 1, 2, MISSING]


@pytest.mark.parametrize("names", [("Adam", "SGD"), ("SGD", "Adam")])
def test_of_optimizers_that_step_as_often_the_last_ends_the_step(names: tuple[str, str]) -> None:
    """Whatever their names, both are in it."""
    ranges = [
        Range(f"Optimizer.step#{name}.step", (at + 50 * place, at + 50 * place + 10))
        for at in (100, 200, 300) for place, name in enumerate(names)
    ]  # fmt: skip
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 156, 206, 256, 306, 356)]
    assert _steps_of(work, ranges).of_row.tolist() == [0, 0, 0, 1, 1, 2, 2]


def _without(lacking: str, records: Records) -> Records:
    """Drop a column, as records of NVIDIA's PyProf lack those of times and steps."""
    columns = {name: column for name, column in records.columns.items() if name != lacking}
    return Records(records.rows, columns)


def test_optimizer_rows_end_steps_in_records() -> None:
    """Each run of the optimizer's kernels ends one."""
    ranges = [Range("Optimizer.step#Adam.step", (at, at + 20)) for at in (100, 200, 300)]
    work = [Work((at, at + 9), (at - 5, at - 2)) for at in (50, 110, 115, 150, 215, 250, 315)]
    found = find_steps(_without("step", parse(capture(work, ranges=ranges))))
    assert found.origin == "Optimizer.step"
    assert found.of_row.tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_updates_without_a_backward_pass_between_them_are_of_one_step() -> None:
    """Gradients are clipped, other work is launched, then the optimizer updates."""
    ranges, work = [], []
    for at in (100, 200, 300):
        ranges += [
            Range("MulBackward0, seq = 1", (at, at + 9)),
            Range("aten::_foreach_norm, op_id = 4", (at + 10, at + 19)),
            Range("aten::stack, op_id = 5", (at + 20, at + 29)),
            Range("Optimizer.step#Adam.step", (at + 30, at + 39)),
        ]
        launches = [at + 2, at + 12, at + 22, at + 32]
        work += [Work((start + 2, start + 3), (start, start + 1)) for start in launches]
    records = parse(capture(work, ranges=ranges))
    for found in map(find_steps, (records, _without("step", records))):
        assert found.origin == "Optimizer.step"
        assert found.of_row.tolist() == [0] * 4 + [1] * 4 + [2] * 4


@pytest.mark.parametrize("periods", [4, 7])
def test_kernels_that_repeat_are_steps(periods: int) -> None:
    """Each begins after its longest pause."""
    found = find_steps(records(capture(_loop(periods))))
    assert (found.origin, len(found)) == ("repetition of 5 kernels", periods)
    assert found.of_row.tolist() == [n for n in range(periods) for _ in range(5)]


def test_initialisation_is_in_no_step() -> None:
    before = [Work((n * US, n * US + 500), (n * US, n * US + 100), f"init_{n}") for n in range(7)]
    found = find_steps(records(capture([*before, *(moved(w, 20 * US) for w in _loop(6))])))
    assert found.of_row.tolist() == [MISSING] * 7 + [n for n in range(6) for _ in range(5)]


def _beside_much_else(length: int) -> list[Work]:
    """Write six iterations, 120 us of work, after three other kernels of some us each."""
    before = [
        Work((n * length * US, (n + 1) * length * US), (n * US, n * US + 100), f"other_{n}")
        for n in range(3)
    ]
    return [*before, *(moved(work, 3 * length * US) for work in _loop(6))]


def test_guessed_steps_with_little_of_the_time_give_no_means() -> None:
    """Nearly all work would take 0 ms a step: times are totals, and the summary says so."""
    net = capture(_beside_much_else(500))
    table = Table(parse(net))
    answer = answered(Source(table, net))
    assert (answer.steps.count, answer.steps.averaged_count) == (6, None)
    assert answer.steps.covered_share == pytest.approx(120 / 1620)
    assert {op.step_ns for op in answer.ops} == {None}
    text = "\n".join([*summary_text.head(answer), *first_screen.ops_and_lines(answer, 15)])
    assert "guessed: may be layers of a step; 7.4 % of the time), so times are totals" in " ".join(
        text.split()
    )
    assert "ms/step" not in text
    assert "Trend" not in text
    chosen = answered(Source(table, net), "1:3").steps
    assert (chosen.first, chosen.last) == (1, 2)


def test_guessed_steps_with_most_of_the_time_give_means() -> None:
    """Three other kernels, 27 us next to 120, do not change that."""
    net = capture(_beside_much_else(9))
    found = find_steps(records(net))
    assert found.averaged == found.steady == (0, 6)
    steps = answered(Source(Table(parse(net)), net)).steps
    assert steps.described_origin.endswith("(guessed: may be layers of a step)")


def _replays(count: int, begin: int, kernels: int) -> list[Work]:
    """Launch a graph every 100 us."""
    at = [begin + n * 100 * US for n in range(count)]
    graph = [
        [replace(moved(w, t), call=(t, t + US), api="cudaGraphLaunch") for w in _loop(1, kernels)]
        for t in at
    ]
    return [work for replay in graph for work in replay]


@pytest.mark.parametrize(
    ("replays", "kernels", "kind"),
    [(8, 5, "repetition"), (2, 5, "Optimizer.step"), (20, 4, "Optimizer.step")],
    ids=["whole steps", "few replays", "an evaluation, without the optimizer's kernel"],
)
def test_optimizer_steps_that_warm_up_a_graph_are_not_steps(
    replays: int, kernels: int, kind: str
) -> None:
    """A replay is a whole step, in which Python calls no optimizer."""
    work = [*_loop(3), *_replays(replays, 300 * US, kernels)]
    begins = range(39 * US, 300 * US, 100 * US)
    steps = [Range("Optimizer.step#SGD.step", (at, at + 5 * US)) for at in begins]
    assert _steps_of(work, steps).kind == kind


def test_a_graph_launched_once_a_step_is_part_of_it() -> None:
    """As one row it may be nearly all of a step: the last step has one, too."""
    work = []
    for step in range(5):
        at = step * 1000 * US
        graph = Work((at, at + 900 * US), (at, at + 2 * US), "[CUDA graph 4]", schema.GRAPH)
        queued = [replace(w, call=(at + 3 * US, at + 4 * US)) for w in _loop(1, kernels=3)]
        work += [graph, *(replace(w, at=moved(w, at + 900 * US).at) for w in queued)]
    found = find_steps(records(capture(work)))
    assert len(found) == 5
    assert np.bincount(found.of_row).tolist() == [4] * 5
    assert found.duration_ns.min() > 900 * US


def test_a_last_step_without_work_is_dropped() -> None:
    """A profiler opens one when it stops; one in between is kept, as an iteration of the loop."""
    marks = [Range(f"ProfilerStep#{n}", (100 * n * US, (100 * n + 99) * US)) for n in range(5)]
    work = [
        Work(((at + 20) * US, (at + 70) * US), ((at + 10) * US, (at + 12) * US), GEMM)
        for at in (0, 100, 300)
    ]
    net = capture(work, ranges=marks)
    for found in (find_steps(parse(net), net), find_steps(parse(net))):
        assert found.duration_ns.tolist() == [50 * US, 100 * US, 0, 200 * US]


def test_ranges_without_launches_are_not_steps() -> None:
    """Such as a loop that only loads data: the optimizer's steps count then."""
    ranges = [Range(f"step {n}", (at, at + 9)) for n, at in enumerate((0, 200, 400))]
    ranges += [Range("Optimizer.step#Adam.step", (at, at + 10)) for at in (100, 300)]
    found = _steps_of([Work((at, at + 9), (at - 5, at - 2)) for at in (20, 106, 306)], ranges)
    assert (found.origin, found.of_row.tolist()) == ("Optimizer.step", [0, 0, 1])


def test_layers_within_a_step_are_not_steps() -> None:
    """Of two periods the one that covers everything counts: 12 layers and a head, five times."""
    names = [*[f"{GEMM}_{k}" for _ in range(6) for k in range(3)], "head_a", "head_b", "head_c"]
    work = [
        Work((at + 500, at + 900), (at, at + 100), names[place % len(names)])
        for place, at in enumerate(range(0, 5 * len(names) * US, US))
    ]
    found = find_steps(records(capture(work)))
    assert found.origin == f"repetition of {len(names)} kernels"


@pytest.mark.parametrize("work", [
    [Work((0, 10), (0, 5))],
    [Work((n, n + 1), (n, n + 1), f"k{n % 7}_{n * n % 11}") for n in range(30)],
    [Work((n, n + 1), (n, n + 1), ADD) for n in range(30)],
    [copy((n, n + 1), (n, n + 1)) for n in range(30)],
], ids=["one kernel", "no period", "one kernel again and again", "copies only"])  # fmt: skip
def test_a_capture_without_steps_has_none(work: list[Work]) -> None:
    found = find_steps(records(capture(work)))
    assert (found.origin, len(found), found.median_ns, found.warm_up) == ("", 0, None, 0)


def test_records_without_times_have_no_steps() -> None:
    assert len(find_steps(_without("start", records(capture(_loop(4)))))) == 0


def _with_first(first: int) -> Steps:
    ranges = [Range("step 0", (0, first))]
    ranges += [Range(f"step {n}", (first + 100 * (n - 1), first + 100 * n)) for n in range(1, 6)]
    work = [Work((0, first), (0, 1))]
    work += [Work((first + 100 * n, first + 100 * n + 100), (first + 100 * n, first + 100 * n + 1))
             for n in range(5)]  # fmt: skip
    return _steps_of(work, ranges)


@pytest.mark.parametrize(("ends", "saved"), [(95, (0,)), (390, (0,)), (160, (0, 2))])
def test_copies_that_outlast_their_step_do_not_end_it(ends: int, saved: tuple[int, ...]) -> None:
    """A checkpoint is written meanwhile; else it would take the time of the steps after it, too."""
    ranges = [Range(f"step {n}", (100 * n, 100 * n + 100)) for n in range(4)]
    work = [Work((100 * n + 10, 100 * n + 100), (100 * n, 100 * n + 1)) for n in range(4)]
    work += [
        replace(copy((100 * n + 20, 100 * n + ends), (100 * n + 2, 100 * n + 3)), stream=9)
        for n in saved
    ]
    assert _steps_of(work, ranges).duration_ns.tolist() == [90, 100, 100, 100]


def test_copies_of_most_steps_end_them() -> None:
    """Results, copied while the host, and with it the kernels of later steps, run ahead."""
    ranges = [Range(f"step {n}", (10 * n, 10 * n + 10)) for n in range(4)]
    work = [Work((100 + 10 * n, 110 + 10 * n), (10 * n, 10 * n + 1)) for n in range(4)]
    work += [
        replace(copy((110 + 90 * n, 200 + 90 * n), (10 * n + 2, 10 * n + 3), way="DtoH"), stream=9)
        for n in range(4)
    ]
    assert _steps_of(work, ranges).duration_ns.tolist() == [100, 90, 90, 90]


def test_slow_leading_steps_are_warm_up() -> None:
    """A first step of more than 1.5 times the median is not in the median."""
    assert (_with_first(1000).warm_up, _with_first(1000).median_ns) == (1, 100)
    assert (_with_first(120).warm_up, _with_first(120).median_ns) == (0, 100)


@pytest.mark.parametrize(("took", "prefill", "expected"), [
    ([400, 100, 400, 100, 100], None, 0),  # large batches among small ones
    ([405, 100, 100, 400, 100, 100], None, 0),
    ([1000, 950, 100, 100, 100, 100], None, 2),  # compiled twice
    ([1000, 160, 100, 100, 170, 100], None, 1),
    ([1000, *[100] * 20, 1200], None, 1),  # a checkpoint is written
    ([100], None, 0),
    ([], None, 0),
    ([800, 20, 20, 20], 50, 0),
    ([800, 20, 90, 20], 50, 1),
    ([45, 800, 20, 20, 20], 50, 1),
])  # fmt: skip
def test_steps_as_long_as_later_ones_are_not_warm_up(
    took: list[int], prefill: int | None, expected: int
) -> None:
    """Nor is a prefill, which takes longer than decodes do."""
    ns = np.array(took, np.int64)
    stated = [ServingStep("prefill" if prefill and n > prefill else "decode") for n in took]
    steps = Steps(origin="", start_ns=ns, end_ns=ns, duration_ns=ns, of_row=ns)
    assert replace(steps, stated=tuple(stated) if prefill else ()).warm_up == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("3:", (3, 10)), ("3:7", (3, 7)), (":7", (0, 7)), ("3", (3, 4)), ("-2:", (8, 10)),
     ("-1", (9, 10)), (":", (0, 10)), ("8:99", (8, 10))],
)  # fmt: skip
def test_steps_are_chosen_by_slices_or_numbers(text: str, expected: tuple[int, int]) -> None:
    assert chosen_bounds(10, text) == expected


@pytest.mark.parametrize("text", ["10:", "10", "-11", "5:5", "7:3", "x", "1:y", "1.5", "", "2:3:4"])
def test_an_invalid_choice_of_steps_raises(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"there are 10|write 3:"):
        chosen_bounds(10, text)


def test_choosing_without_steps_says_how_to_mark_them() -> None:
    with pytest.raises(click.BadParameter, match=r"pyprof\.annotate"):
        chosen_bounds(0, "0:")


def test_each_process_steps_on_its_own_clock() -> None:
    """The clocks of two ranks' hosts differ: the nth step is of both, and as long as the slower."""
    skew, slower = 10_000_000 * US, 3
    first = _loop(5)
    second = [
        replace(w, pid=2, at=(skew + slower * w.at[0], skew + slower * w.at[1]),
                call=w.call and (skew + slower * w.call[0], skew + slower * w.call[1]))
        for w in first
    ]  # fmt: skip
    alone = [find_steps(records(capture(work, pids=2))) for work in (first, second)]
    both = find_steps(records(capture([*first, *second], pids=2)))
    assert both.origin == alone[0].origin
    assert both.of_row.tolist() == alone[0].of_row.tolist() + alone[1].of_row.tolist()
    assert both.duration_ns.tolist() == alone[1].duration_ns.tolist()


_VLLM = (
    "execute_16_context_1(sq16sk16sqsq256sqsk256)_generation_0(sq0sk0sqsq0sqsk0)",
    "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_3(sq3sk51sqsq3sqsk51)",
    "execute_32_context_1(sq16sk16sqsq256sqsk256)_generation_4(sq4sk71sqsq4sqsk71)",
)
_SGLANG = ("step[EXTEND bs=2 toks=16]", "step[DECODE bs=3]", "step[DECODE bs=4]")
_ATOM = ("prefill[bs=2 tok=16 ctx=[9, 7]]", "decode[bs=3/4 tok=3 d=3]", "eager_decode[bs=2 tok=2]")
_TRTLLM = tuple(
    f"[Executor] _forward_step {n}: {n % 2} ctx reqs, {90 * (n % 2)} ctx tokens, 8 gen reqs"
    for n in (7, 8, 9)
)


@pytest.mark.parametrize("texts", [_VLLM, _SGLANG, _ATOM, _TRTLLM])
def test_executions_of_a_serving_engine_are_steps(texts: tuple[str, ...]) -> None:
    """Prefill and decode; repeated layers inside are none, nor is a longer range around."""
    work = _loop(30)
    ends = [0, 1000 * US, 2000 * US, 3000 * US]
    ranges = [Range(text, pair) for text, pair in zip(texts, pairwise(ends), strict=True)]
    found = _steps_of(work, [Range("ProfilerStep#1", (0, 3000 * US)), *ranges])
    assert (len(found), found.kind, found.guessed) == (3, "ranges", False)
    assert found.stated == tuple(map(serving_step, texts))
    assert sorted({*found.of_row.tolist()}) == [0, 1, 2]


_NOW_CALLED = tuple(f"gpu_model_runner: {name}" for name in ("preprocess", "forward", "sample"))


@pytest.mark.parametrize(("names", "are_steps"), [
    (_NOW_CALLED, True),
    (("Preprocess", "Forward", "Bookkeep"), True),
    (("Preprocess", "Forward", "Sample"), False),
], ids=["now", "before, by plain words", "without the word that nobody else uses"])  # fmt: skip
def test_a_step_of_vllm_lasts_until_its_next_model_run(
    names: tuple[str, ...], *, are_steps: bool
) -> None:
    """Its ranges cover parts of the step."""
    begins = zip(names * 3, (at + n for n in (0, 1000, 2000) for at in (0, 100, 700)), strict=True)
    ranges = [Range(name, (at * US, (at + 90) * US)) for name, at in begins]
    found = _steps_of(_loop(29), ranges)
    assert (found.origin == f'ranges "{names[0]}"') == are_steps
    assert (found.start_ns.tolist() == [0, 1000 * US, 2000 * US]) == are_steps


def test_repetitions_within_one_graph_launch_are_not_steps() -> None:
    """They are layers, launched at one instant."""
    work = [replace(w, call=(0, 2 * US), api="cudaGraphLaunch") for w in _loop(8)]
    assert not len(_steps_of(work))


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["sglang-decode", "vllm-piecewise"])
def test_real_serving_engines_have_one_step(captures: Path, name: str) -> None:
    """In captures of one execution, with 36 and 24 layers."""
    found = load(str(captures / f"kineto-mi300x-{name}-graph" / "replay.pt.trace.json.gz"))
    assert len(find_steps(found.table.records, found.capture)) == 1


def test_steps_are_looked_for_in_a_limited_number_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those with most rows."""
    work = [Work((10 * n, 10 * n + 5), pid=1 + n % 3) for n in range(8)]
    monkeypatch.setattr(steps, "MAX_PROCESSES", 1)
    assert len(steps.find_steps(records(capture(work)))) == 0
