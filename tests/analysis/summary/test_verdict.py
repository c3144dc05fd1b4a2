"""The verdict says what the capture shows, and nothing that it refutes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyprof.analysis.summary.verdict import verdict
from pyprof.answers.gains import in_order
from pyprof.answers.parts import (
    ChosenRows,
    Finding,
    KnownCost,
    Statement,
    StepUse,
    Suggestion,
    UnknownCost,
)
from pyprof.answers.summary_answer import OpTime, ServingPhase, Summary
from pyprof.inputs.source import load
from pyprof.prof.calls.op_choice import UNLAUNCHED
from tests.analysis.answered import answered
from tests.analysis.captured import capture
from tests.builders import Range, Work, nsys_db
from tests.known import known

ROWS = (Finding(what="linear", line="net.py:3", detail="", count=4, time_ns=900, row_ids=(7, 9)),)
LAUNCHES = Suggestion(
    predicted=None,
    rule="launch_bound",
    title="the GPU waits for the host",
    action="use CUDA graphs",
    gain_ns=5_000_000,
    gain_step_ns=5_000_000.0,
    gain_share=0.5,
    evidence=ROWS,
    once=False,
)


@pytest.fixture
def answer(tmp_path: Path) -> Summary:
    """That of a small capture with even steps, to be changed by each test."""
    found = answered(load(str(capture(tmp_path / "net.sqlite", steps=4))))
    return replace(found, steps=replace(found.steps, mean_ns=10e6, duration_ns=(10_000_000,) * 4))


def use(*, busy: float, span: float = 10e6, communication: float = 0, copies: float = 0,
        **idle: float) -> StepUse:  # fmt: skip
    return StepUse(
        step_count=4,
        gpu_count=1,
        waits_known=True,
        span_ns=span,
        busy_ns=busy,
        compute_ns=busy - communication - copies,
        exposed_communication_ns=communication,
        exposed_copy_ns=copies,
        idle_by_cause_ns=idle,
        late_row_ids=dict.fromkeys(idle, (5, 3)),
    )


def about(subject: str, answer: Summary) -> Statement:
    (found,) = (each for each in verdict(answer) if each.about == subject)
    return found


def silent_about(subject: str, answer: Summary) -> bool:
    return not any(each.about == subject for each in verdict(answer))


def bound(answer: Summary, step: StepUse, **changed: object) -> Statement:
    return about("bound", replace(answer, step=step, **changed))  # type: ignore[arg-type]


def test_idle_time_has_its_cause_and_the_rows_that_came_late(answer: Summary) -> None:
    found = bound(answer, use(busy=2e6, launch=6e6, host=2e6), advice=(LAUNCHES,))
    assert found.text == "GPU idle 80 % of a 10.0 ms step: the host launches too slowly (6.00 ms)."
    assert (found.subject, found.time_ns, found.share) == ("launch", 8e6, 0.8)
    assert found.evidence == ROWS


def test_the_mean_of_ranks_that_differ_has_no_range(answer: Summary) -> None:
    """Each step is then as long as on the slowest rank: the mean of all may be below the least."""
    steps = replace(answer.steps, duration_ns=(10_000_000, 20_000_000) * 2, mean_ns=15e6)
    found = bound(answer, use(span=8e6, busy=8e6), steps=steps)
    assert found.text.startswith("GPU busy 100 % of a mean step of 8.00 ms: ")


def test_a_serving_engine_may_wait_for_requests(answer: Summary) -> None:
    phase = ServingPhase(
        phase="decode", steps=4, time_ns=40, tokens=4, tokens_per_s=1e8, padding_share=0.0
    )
    found = bound(answer, use(busy=2e6, host=8e6), serving=(phase,), advice=())
    assert found.text.endswith("other than launching, or waits for requests (8.00 ms).")


@pytest.mark.parametrize(
    ("took_ms", "expected"),
    [
        ((5, 5, 30, 0), "a mean step of 10.0 ms (0 ns to 30.0 ms, median 5.00 ms)"),
        ((9, 11, 9, 11), "a mean step of 10.0 ms (9.00 ms to 11.0 ms, median 10.0 ms)"),
        ((9.5, 10.5, 10, 10), "a 10.0 ms step"),
        ((), "a 10.0 ms step"),
    ],
)
def test_a_mean_that_few_steps_take_is_called_one(
    answer: Summary, took_ms: tuple[float, ...], expected: str
) -> None:
    """A loader that stalls every tenth step: no step takes the mean."""
    took = tuple(int(ms * 1e6) for ms in took_ms)
    steps = replace(answer.steps, first=0, last=3, mean_ns=10e6, duration_ns=took)
    text = bound(answer, use(busy=2e6, host=8e6), advice=(), steps=steps).text
    assert text.startswith(f"GPU idle 80 % of {expected}: the host does something")


def test_a_file_without_waits_for_the_gpu_says_so(answer: Summary) -> None:
    unsure = replace(use(busy=2e6, launch=8e6), waits_known=False)
    found = bound(answer, unsure, advice=(LAUNCHES,))
    assert found.text.endswith("(8.00 ms); this file lacks waits for the GPU, which count as such.")


def test_the_top_line_is_of_the_time_that_the_first_sentence_judges(answer: Summary) -> None:
    """Steps that were guessed in only a small part of the time have means, but are not judged."""
    whole = replace(answer, step=replace(use(busy=2e6), step_count=None))
    texts = [next(s.text for s in verdict(each) if s.about == "top") for each in (answer, whole)]
    assert ["a step's GPU time" in text for text in texts] == [True, False]


def test_without_advice_the_rows_that_came_late_are_the_evidence(answer: Summary) -> None:
    (device,) = answer.devices or ()
    device = replace(device, idle_by_cause_ns={"queue": 80})
    found = bound(answer, use(busy=2e6, queue=8e6), advice=(), devices=(device,))
    assert found.text.endswith("perhaps behind work that was not recorded (8.00 ms).")
    assert [(each.what, each.row_ids) for each in found.evidence] == [("idle: queue", (5, 3))]


def test_ops_on_the_cpu_are_the_evidence_where_the_gpu_mainly_waits_for_them(
    answer: Summary,
) -> None:
    ops, rest = (replace(LAUNCHES, rule=rule) for rule in ("ops_on_cpu", "host_work"))
    rest = replace(rest, gain_ns=1_000_000, evidence=(replace(ROWS[0], what="copy_"),))
    assert bound(answer, use(busy=2e6, host=8e6), advice=(ops, rest)).evidence == ROWS


def test_a_gpu_that_is_mainly_busy_is_not_called_idle(answer: Summary) -> None:
    found = bound(answer, use(busy=6e6, launch=4e6), advice=(LAUNCHES,))
    assert found.text == (
        "GPU busy 60 % of a 10.0 ms step, but idle 40 % of it:"
        " the host launches too slowly (4.00 ms)."
    )
    assert (found.subject, found.share) == ("launch", 0.4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("span_ns", "words"),
    [(8e6, "an 8.00 ms step"), (11e6, "an 11.0 ms step"), (18e3, "an 18.0 us step"),
     (81e6, "an 81.0 ms step"), (110e6, "a 110 ms step"), (7e6, "a 7.00 ms step")],
)  # fmt: skip
def test_the_article_fits_the_number_as_it_is_read(
    answer: Summary, span_ns: float, words: str
) -> None:
    assert words in bound(answer, use(busy=span_ns, span=span_ns)).text


def test_a_second_cause_is_named_if_it_takes_half_as_long(answer: Summary) -> None:
    found = bound(answer, use(busy=2e6, launch=5e6, host=3e6), advice=(LAUNCHES,))
    assert found.text.endswith("(5.00 ms); the host does something other than launching (3.00 ms).")


LOADING = replace(LAUNCHES, rule="data_loading", gain_step_ns=4e6)


@pytest.mark.parametrize(
    ("step", "advice"),
    [
        (use(busy=9e6, launch=1e6), ()),
        (use(busy=9.5e6, host=0.5e6), (LOADING,)),
        (use(busy=9.8e6, launch=0.2e6, communication=0.3e6), ()),
        (use(busy=9.8e6, launch=0.2e6, copies=0.3e6), ()),
    ],
    ids=["idle", "data, while the GPU had work", "overlapped communication", "overlapped copies"],
)
def test_what_takes_little_time_is_not_a_bottleneck(
    answer: Summary, step: StepUse, advice: tuple[Suggestion, ...]
) -> None:
    found = bound(answer, step, advice=advice)
    assert found.subject == "kernels"
    assert found.text.startswith(f"GPU busy {step.busy_ns / 1e5:.0f} % of a 10.0 ms step: ")


def test_time_in_ranges_of_data_loading_is_a_cause_of_its_own(answer: Summary) -> None:
    loading = replace(LOADING, evidence=(replace(ROWS[0], row_ids=()),))
    found = bound(answer, use(busy=5e6, host=5e6), advice=(loading,))
    assert found.evidence == (replace(ROWS[0], row_ids=(5, 3)),)
    assert found.subject == "loading"
    assert "the next batch is not ready (4.00 ms)" in found.text


def test_compilation_is_a_cause_of_its_own(answer: Summary) -> None:
    compiling = replace(LOADING, rule="compilation")
    found = bound(answer, use(busy=5e6, host=5e6), advice=(compiling,))
    assert found.subject == "compiling"
    assert "torch.compile compiles (4.00 ms)" in found.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "rule"), [("communication", "communication"), ("copies", "exposed_copies")]
)
def test_exposed_work_is_named(answer: Summary, what: str, rule: str) -> None:
    step = use(busy=9.8e6, launch=0.2e6, **{what: 3e6})
    found = bound(answer, step, advice=(replace(LAUNCHES, rule=rule),))
    assert found.subject == what
    assert "98 % of a 10.0 ms step, but" in found.text
    assert "30 % of it (3.00 ms)" in found.text


def test_kernels_are_bound_by_what_bounds_most_of_their_time(answer: Summary) -> None:
    ops = (_op("mm", 0.7, "compute"), _op("relu", 0.3, "memory"))
    found = bound(answer, use(busy=10e6), ops=ops)
    assert found.text == "GPU busy 100 % of a 10.0 ms step: arithmetic bounds 70 % of GPU time."
    assert [each.what for each in found.evidence] == ["mm"]


def test_what_bounds_a_step_is_not_what_bounds_the_warm_up_before_it(answer: Summary) -> None:
    """As kernels that autotuning tries in the first step."""
    tried = replace(_op("fill", 0.9, "memory"), step_ns=0.0)
    steady = replace(_op("mm", 0.1, "compute"), step_ns=10e6)
    found = bound(answer, use(busy=10e6), ops=(tried, steady))
    assert found.text.endswith("arithmetic bounds 100 % of GPU time.")


def test_what_a_step_computes_is_not_what_ran_before_it(tmp_path: Path) -> None:
    """As the initialisation of weights; costs are unknown here."""
    starts = range(10_000_000, 14_000_000, 1_000_000)
    work = [Work("distribution_kernel", (0, 9_000_000), (-20, -10))]
    work += [Work("sgemm", (at, at + 990_000), (at - 50, at - 40)) for at in starts]
    ranges = [Range(f"step {n}", (at - 60, at + 900_000)) for n, at in enumerate(starts)]
    found = answered(load(str(nsys_db(tmp_path / "net.sqlite", work, ranges))))
    stated = about("bound", found)
    assert stated.text.endswith("a 998 us step: GEMM takes 100 % of GPU time.")
    assert [each.what for each in stated.evidence] == ["sgemm"]


@pytest.mark.parametrize(("exposed_ns", "named"), [(0.5e6, "mm"), (2e6, "send")])
def test_communication_that_computation_hides_bounds_nothing(
    answer: Summary, exposed_ns: float, named: str
) -> None:
    """Nor is it the top op, though it takes longest on a stream of its own."""
    send = replace(_op("send", 0.6, None, "net.py:9"), dir="comm", step_ns=6e6)
    product = replace(_op("mm", 0.4, "compute"), step_ns=4e6)
    changed = replace(
        answer, step=use(busy=10e6, communication=exposed_ns),
        ops=(send, product), families_ns={"communication": 10},
    )  # fmt: skip
    texts = [each.text for each in verdict(changed) if each.about in ("bound", "top")]
    assert texts[0].endswith("arithmetic bounds 40 % of GPU time.") == (named == "mm")
    assert f"{named}: " in texts[1] or f"({named})" in texts[1]


@pytest.mark.parametrize(("exposed_ns", "first"), [(0.1e6, "mm"), (0.5e6, "to")])
def test_copies_that_other_work_hides_are_not_the_top(
    answer: Summary, exposed_ns: float, first: str
) -> None:
    """Hidden beside the busy time: of a GPU that mostly idles, short copies may be all it does."""
    copied = replace(_op("to", 0.6, None, None), kernel="[CUDA_memcpy_DtoH]", step_ns=1.2e6)
    product = replace(_op("mm", 0.4, "compute", None), step_ns=0.8e6)
    changed = replace(
        answer, step=use(busy=2e6, copies=exposed_ns, host=8e6), ops=(copied, product)
    )
    assert about("top", changed).subject == first


def test_short_communication_that_nothing_hides_may_be_the_top(answer: Summary) -> None:
    """As of a step of many small ops: it takes longest, and all of it is seen."""
    send = replace(_op("send", 0.14, None, None), dir="comm", step_ns=1.4e6)
    rest = tuple(replace(_op(f"op {n}", 0.1, None, None), step_ns=1e6) for n in range(8))
    step = use(busy=10e6, communication=1.4e6)
    assert about("top", replace(answer, step=step, ops=(send, *rest))).subject == "send"
    beside = replace(step, gpu_count=4)  # as long on each of four: summed up in the op
    on_four = (replace(send, step_ns=5.6e6), *(replace(each, step_ns=4e6) for each in rest))
    assert about("top", replace(answer, step=beside, ops=on_four)).subject == "send"


def test_lines_take_no_time_of_hidden_communication(answer: Summary) -> None:
    ops = (
        replace(_op("send", 0.6, None, "net.py:9"), dir="comm", step_ns=6e6),
        replace(_op("relu", 0.3, None, "net.py:3"), step_ns=3e6),
        replace(_op("add", 0.1, None, "net.py:9"), step_ns=1e6),
    )
    found = about("top", replace(answer, step=use(busy=4e6, communication=0.1e6), ops=ops))
    assert found.text == "Top line net.py:3: 30 % of a step's GPU time (relu)."


@pytest.mark.slow
def test_unknown_bounds_are_not_guessed(answer: Summary) -> None:
    ops = (_op("mm", 0.7, None), _op("relu", 0.3, "memory"))
    found = bound(answer, use(busy=10e6), ops=ops, families_ns={})
    assert found.text.endswith("its kernels bound the work.")


@pytest.mark.slow
def test_without_times_or_for_chosen_rows_idle_time_is_not_mentioned(answer: Summary) -> None:
    assert silent_about("bound", replace(answer, step=None))
    chosen = ChosenRows(where="tc=0", row_count=1, all_row_count=2, time_ns=1, all_time_ns=2)
    assert silent_about("bound", replace(answer, step=use(busy=1e6, host=9e6), chosen=chosen))


def test_with_blocking_launches_idle_time_is_not_mentioned(tmp_path: Path) -> None:
    """Each call lasts until its kernel has ended."""
    work = [Work("k", (t + 10, t + 400), (t, t + 500)) for t in range(1000, 30_000, 1000)]
    assert answered(load(str(nsys_db(tmp_path / "a.sqlite", work)))).step is None


def test_a_step_lasts_from_the_gpus_end_of_the_one_before(tmp_path: Path) -> None:
    """The first step, which is slower, is not included."""
    starts = [0, 40_000, 50_000, 60_000, 70_000]
    work = [Work("k", (at + 6000, at + 8000), (at + 10, at + 20)) for at in starts]
    work[0] = replace(work[0], at=(6000, 38_000))
    ranges = [Range(f"step {n}", (at, at + 9000)) for n, at in enumerate(starts)]
    found = known(answered(load(str(nsys_db(tmp_path / "a.sqlite", work, ranges)))).step)
    assert (found.step_count, found.gpu_count) == (4, 1)
    assert found.span_ns == pytest.approx(10_000)
    assert found.busy_ns == pytest.approx(2_000)
    assert sum(found.idle_by_cause_ns.values()) == pytest.approx(8_000)
    (late,) = filter(None, found.late_row_ids.values())
    assert set(late) <= {2, 3, 4, 5}


@pytest.mark.slow
def test_the_top_line_is_named_with_its_rows(answer: Summary) -> None:
    found = about("top", answer)
    assert found.subject == answer.lines[0].line
    assert all(each.row_ids for each in found.evidence)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({"op": "mm"}, "Top op mm: 70 % of GPU time."),
        ({"kernel": "sgemm", "range": "attention"},
         "Top kernel sgemm: 70 % of GPU time (in attention)."),
        ({"kernel": "relu_kernel"}, "Top kernel relu_kernel: 70 % of GPU time."),
        ({"kernel": "[CUDA_memcpy_HtoD]"}, "Top copy [CUDA"),
        ({"kernel": "[CUDA_memset]"}, "Top fill [CUDA"),
        ({"kernel": "[CUDA_graph_4]"}, "Top CUDA graph [CUDA"),
    ],
    ids=["op", "kernel in a range", "kernel", "copy", "fill", "graph"],
)  # fmt: skip
def test_without_lines_the_top_op_or_kernel_is_named(
    answer: Summary, named: dict[str, str], words: str
) -> None:
    op = replace(_op("", 0.7, None, line=None), **{"op": None, **named})  # type: ignore[arg-type]
    assert about("top", replace(answer, ops=(op,))).text.startswith(words)


def test_the_largest_gain_of_the_loop_has_its_share(answer: Summary) -> None:
    once = replace(LAUNCHES, rule="allocation", gain_ns=9_000_000, gain_step_ns=None, once=True)
    found = about("gain", replace(answer, advice=(LAUNCHES, once)))
    assert found.text == "Largest gain, up to 5.00 ms a step (50 %): use CUDA graphs."
    assert found.evidence == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"gain_share": 0.001}, {"gain_share": None}, {"evidence": ()}])
def test_a_small_or_unknown_gain_or_one_without_evidence_is_not_a_line_of_the_verdict(
    answer: Summary, changed: dict[str, Any]
) -> None:
    assert silent_about("gain", replace(answer, advice=(replace(LAUNCHES, **changed),)))


@pytest.mark.parametrize("gpu", [None, "NVIDIA Thor"])
def test_peaks_are_asked_for_of_a_gpu_without_name_and_of_one_that_no_table_has(
    answer: Summary, gpu: str | None
) -> None:
    """What is said holds for both: the latter is named."""
    found = about("missing", replace(answer, gpus=(gpu,), peaks=()))
    assert found.subject == "gpu"
    assert found.text == (
        "Peaks of the GPU unknown: add --gpu with its name, or flops= and bandwidth=,"
        " for efficiencies and more advice."
    )
    assert answer.peaks
    cost = KnownCost("GPU", 100, 1.0, 1.0, ())
    assert silent_about("missing", replace(answer, known_cost=cost))


def test_costs_unknown_for_much_of_the_time_have_a_remedy(answer: Summary) -> None:
    unknown = (UnknownCost("shapes not recorded", 80, 3),)
    found = about("missing", replace(answer, known_cost=KnownCost("GPU", 100, 0.2, 0.2, unknown)))
    assert found.text == (
        "Costs unknown for 80 % of GPU time (shapes not recorded): capture with pyprof capture,"
        " or with record_shapes=True."
    )
    assert (found.share, found.evidence[0].count) == (0.8, 3)


@pytest.mark.parametrize(("unlaunched_ns", "proposed"), [(80, False), (3, True)])
def test_without_most_launches_no_range_around_steps_is_proposed(
    answer: Summary, unlaunched_ns: int, *, proposed: bool
) -> None:
    """There may be some: which step a kernel is of, only its launch tells."""
    unknown = (UnknownCost(UNLAUNCHED, unlaunched_ns, 3),)
    share = 1 - unlaunched_ns / 100
    found = replace(answer, known_cost=KnownCost("GPU", 100, share, share, unknown), peaks=())
    found = replace(found, steps=replace(answer.steps, first=None))
    assert ("steps" in about("missing", found).text.lower()) == proposed


def test_for_other_libraries_no_call_of_pyprof_is_proposed(answer: Summary) -> None:
    unknown = (UnknownCost("only ranges, no op", 80, 3),)
    cupy = replace(answer, library="CuPy", known_cost=KnownCost("GPU", 100, 0.2, 0.2, unknown))
    assert about("missing", cupy).text == (
        "Costs unknown for 80 % of GPU time: PyProf knows ops of PyTorch, and this is CuPy."
    )


def test_without_work_there_is_no_verdict(answer: Summary) -> None:
    assert verdict(replace(answer, known_cost=KnownCost("GPU", 0, 0.0, None, ()))) == ()


def _op(name: str, share: float, bound: str | None, line: str | None = "net.py:3") -> OpTime:
    return OpTime(
        op=name, dir="fprop", line=line, kernel=f"{name}_kernel", calls=1, kernels=1, time_ns=100,
        step_ns=None, share=share, flops_per_s=None, bytes_per_s=None, efficiency=None,
        bound=bound, tc=None, why=None, above_peak=None, range=None, row_ids=(1,),
    )  # fmt: skip


def test_guessed_steps_with_little_of_the_time_are_not_a_reference(tmp_path: Path) -> None:
    """What repeats takes 0.1 ms, after a second of host work."""
    work = [Work("first", (1000, 2000), (0, 100))]
    for at in range(1_000_000_000, 1_000_100_000, 10_000):
        work += [
            Work(name, (at + by, at + by + 2000), (at + by - 2000, at + by - 1000))
            for name, by in (("a", 2500), ("b", 6000))
        ]
    answer = answered(load(str(nsys_db(tmp_path / "a.sqlite", work))))
    assert answer.steps.guessed
    assert answer.steps.averaged_count
    step = known(answer.step)
    assert step.step_count is None
    found = bound(answer, step)
    assert found.text.startswith("GPU idle 100 % of 1.00 s: the host does something other")


def test_where_no_step_is_known_the_largest_gain_is_listed_first(answer: Summary) -> None:
    """By the verdict, and on the terminal, pages and in notebooks, which list the same order."""
    once = replace(LAUNCHES, rule="x", once=True, gain_ns=9_000_000, gain_step_ns=None)
    both = replace(answer, advice=(LAUNCHES, once))
    unknown_idle = replace(both, step=None)
    no_steps = replace(unknown_idle, steps=replace(both.steps, first=None, last=None))
    for each, first in ((both, "launch_bound"), (unknown_idle, "launch_bound"), (no_steps, "x")):
        advice = in_order(each.advice, per_step=each.is_per_step)
        assert about("gain", replace(each, advice=advice)).subject == advice[0].rule == first


def test_a_one_time_gain_comes_with_the_largest_in_the_loop(answer: Summary) -> None:
    once = replace(LAUNCHES, rule="x", action="load less", once=True, gain_ns=9_000_000,
                   gain_step_ns=None, gain_share=0.9)  # fmt: skip
    guessed = replace(use(busy=1e6, launch=9e6), step_count=None)
    both = replace(answer, step=guessed, advice=(once, LAUNCHES))
    found = about("gain", both)
    assert found.text.startswith("Largest gain, up to 9.00 ms, once (90 %): load less.")
    assert found.text.endswith(" In the loop, up to 5.00 ms: use CUDA graphs.")
    alone = about("gain", replace(both, advice=(once, replace(LAUNCHES, gain_share=0.02))))
    assert "In the loop" not in alone.text
