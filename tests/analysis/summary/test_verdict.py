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


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """That of a small capture with even steps, to be changed by each test."""
    net = capture(tmp_path_factory.mktemp("verdict") / "net.sqlite", steps=4)
    found = answered(load(str(net)))
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


def _op(name: str, share: float, bound: str | None, line: str | None = "net.py:3") -> OpTime:
    return OpTime(
        op=name, dir="fprop", line=line, kernel=f"{name}_kernel", calls=1, kernels=1, time_ns=100,
        step_ns=None, share=share, flops_per_s=None, bytes_per_s=None, efficiency=None,
        bound=bound, tc=None, why=None, above_peak=None, range=None, row_ids=(1,),
    )  # fmt: skip


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


LOADING = replace(LAUNCHES, rule="data_loading", gain_step_ns=4e6)
SERVING = ServingPhase(
    phase="decode", steps=4, time_ns=40, tokens=4, tokens_per_s=1e8, padding_share=0.0
)
EXPOSED = "GPU busy 98 % of a 10.0 ms step, but {} 30 % of it (3.00 ms).".format
BOUNDS: dict[str, tuple[StepUse, dict[str, object], str, str]] = {
    # the step, what else the answer holds, what bounds it, and a part of the sentence
    "a GPU that is mainly busy is not called idle": (
        use(busy=6e6, launch=4e6), {"advice": (LAUNCHES,)}, "launch",
        "GPU busy 60 % of a 10.0 ms step, but idle 40 % of it: the host launches too slowly (4"),
    "a second cause that takes half as long": (
        use(busy=2e6, launch=5e6, host=3e6), {}, "launch",
        "(5.00 ms); the host does something other than launching (3.00 ms)."),
    "a file without waits for the GPU": (
        replace(use(busy=2e6, launch=8e6), waits_known=False), {}, "launch",
        "(8.00 ms); this file lacks waits for the GPU, which count as such."),
    "a serving engine may wait for requests": (
        use(busy=2e6, host=8e6), {"serving": (SERVING,), "advice": ()}, "host",
        "other than launching, or waits for requests (8.00 ms)."),
    "compilation is a cause of its own": (
        use(busy=5e6, host=5e6), {"advice": (replace(LOADING, rule="compilation"),)}, "compiling",
        "torch.compile compiles (4.00 ms)"),
    "exposed communication": (
        use(busy=9.8e6, launch=0.2e6, communication=3e6),
        {"advice": (replace(LAUNCHES, rule="communication"),)}, "communication",
        EXPOSED("communication that nothing overlaps takes")),
    "exposed copies": (
        use(busy=9.8e6, launch=0.2e6, copies=3e6),
        {"advice": (replace(LAUNCHES, rule="exposed_copies"),)}, "copies",
        EXPOSED("copies that nothing overlaps take")),
    "little idle time": (use(busy=9e6, launch=1e6), {"advice": ()}, "kernels", "GPU busy 90 % of"),
    "data, while the GPU had work": (
        use(busy=9.5e6, host=0.5e6), {"advice": (LOADING,)}, "kernels", "GPU busy 95 % of a 10.0"),
    "overlapped communication": (
        use(busy=9.8e6, launch=0.2e6, communication=0.3e6), {}, "kernels", "GPU busy 98 % of a 10"),
    "overlapped copies": (
        use(busy=9.8e6, launch=0.2e6, copies=0.3e6), {}, "kernels", "GPU busy 98 % of a 10.0 ms"),
    "kernels, by what bounds most of their time": (
        use(busy=10e6), {"ops": (_op("mm", 0.7, "compute"), _op("relu", 0.3, "memory"))}, "kernels",
        "GPU busy 100 % of a 10.0 ms step: arithmetic bounds 70 % of GPU time."),
    "kernels of the step, not those that autotuning tried before it": (
        use(busy=10e6), {"ops": (replace(_op("fill", 0.9, "memory"), step_ns=0.0),
                                 replace(_op("mm", 0.1, "compute"), step_ns=10e6))}, "kernels",
        "arithmetic bounds 100 % of GPU time."),
    "kernels of unknown bounds, which are not guessed": (
        use(busy=10e6), {"ops": (_op("mm", 0.7, None), _op("relu", 0.3, "memory")),
                         "families_ns": {}}, "kernels", "its kernels bound the work."),
    **{
        words: (use(busy=ns, span=ns), {}, "kernels", f"GPU busy 100 % of {words}: ")
        for ns, words in ((8e6, "an 8.00 ms step"), (11e6, "an 11.0 ms step"),
                          (18e3, "an 18.0 us step"), (81e6, "an 81.0 ms step"),
                          (110e6, "a 110 ms step"), (7e6, "a 7.00 ms step"))
    },
}  # fmt: skip


@pytest.mark.parametrize(("step", "others", "subject", "text"), BOUNDS.values(), ids=BOUNDS)
def test_the_first_sentence_names_what_bounds_the_step(
    answer: Summary, step: StepUse, others: dict[str, object], subject: str, text: str
) -> None:
    found = bound(answer, step, **others)
    assert found.subject == subject
    assert text in found.text


def test_the_evidence_is_of_the_ops_that_are_bound_so(answer: Summary) -> None:
    ops = (_op("mm", 0.7, "compute"), _op("relu", 0.3, "memory"))
    found = bound(answer, use(busy=10e6), ops=ops)
    assert [each.what for each in found.evidence] == ["mm"]


def test_the_mean_of_ranks_that_differ_has_no_range(answer: Summary) -> None:
    """Each step is then as long as on the slowest rank: the mean of all may be below the least."""
    steps = replace(answer.steps, duration_ns=(10_000_000, 20_000_000) * 2, mean_ns=15e6)
    found = bound(answer, use(span=8e6, busy=8e6), steps=steps)
    assert found.text.startswith("GPU busy 100 % of a mean step of 8.00 ms: ")


@pytest.mark.parametrize(("took_ms", "expected"), [
    ((5, 5, 30, 0), "a mean step of 10.0 ms (0 ns to 30.0 ms, median 5.00 ms)"),
    ((9, 11, 9, 11), "a mean step of 10.0 ms (9.00 ms to 11.0 ms, median 10.0 ms)"),
    ((9.5, 10.5, 10, 10), "a 10.0 ms step"),
    ((), "a 10.0 ms step"),
])  # fmt: skip
def test_a_mean_that_few_steps_take_is_called_one(
    answer: Summary, took_ms: tuple[float, ...], expected: str
) -> None:
    """A loader that stalls every tenth step: no step takes the mean."""
    took = tuple(int(ms * 1e6) for ms in took_ms)
    steps = replace(answer.steps, first=0, last=3, mean_ns=10e6, duration_ns=took)
    text = bound(answer, use(busy=2e6, host=8e6), advice=(), steps=steps).text
    assert text.startswith(f"GPU idle 80 % of {expected}: the host does something")


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


def test_time_in_ranges_of_data_loading_is_a_cause_of_its_own(answer: Summary) -> None:
    loading = replace(LOADING, evidence=(replace(ROWS[0], row_ids=()),))
    found = bound(answer, use(busy=5e6, host=5e6), advice=(loading,))
    assert found.evidence == (replace(ROWS[0], row_ids=(5, 3)),)
    assert found.subject == "loading"
    assert "the next batch is not ready (4.00 ms)" in found.text


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


COPIED = replace(_op("to", 0.6, None, None), kernel="[CUDA_memcpy_DtoH]", step_ns=1.2e6)
PRODUCT = replace(_op("mm", 0.4, "compute", None), step_ns=0.8e6)
SENT = replace(_op("send", 0.14, None, None), dir="comm", step_ns=1.4e6)
OTHERS = [replace(_op(f"op {n}", 0.1, None, None), step_ns=1e6) for n in range(8)]
TOPS = {
    "copies that other work hides": (
        use(busy=2e6, copies=0.1e6, host=8e6), (COPIED, PRODUCT), "mm"),
    "beside the busy time: of a GPU that mostly idles, short copies may be all it does": (
        use(busy=2e6, copies=0.5e6, host=8e6), (COPIED, PRODUCT), "to"),
    "short communication that nothing hides, in a step of many small ops": (
        use(busy=10e6, communication=1.4e6), (SENT, *OTHERS), "send"),
    "the same on each of four GPUs, summed up in the op": (
        replace(use(busy=10e6, communication=1.4e6), gpu_count=4),
        tuple(replace(each, step_ns=4 * known(each.step_ns)) for each in (SENT, *OTHERS)), "send"),
}  # fmt: skip


@pytest.mark.parametrize(("step", "ops", "first"), TOPS.values(), ids=TOPS)
def test_what_other_work_hides_is_not_the_top(
    answer: Summary, step: StepUse, ops: tuple[OpTime, ...], first: str
) -> None:
    assert about("top", replace(answer, step=step, ops=ops)).subject == first


def test_lines_take_no_time_of_hidden_communication(answer: Summary) -> None:
    ops = (
        replace(_op("send", 0.6, None, "net.py:9"), dir="comm", step_ns=6e6),
        replace(_op("relu", 0.3, None, "net.py:3"), step_ns=3e6),
        replace(_op("add", 0.1, None, "net.py:9"), step_ns=1e6),
    )
    found = about("top", replace(answer, step=use(busy=4e6, communication=0.1e6), ops=ops))
    assert found.text == "Top line net.py:3: 30 % of a step's GPU time (relu)."


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


def test_the_top_line_is_named_with_its_rows(answer: Summary) -> None:
    found = about("top", answer)
    assert found.subject == answer.lines[0].line
    assert all(each.row_ids for each in found.evidence)


@pytest.mark.parametrize(("named", "words"), [
    ({"op": "mm"}, "Top op mm: 70 % of GPU time."),
    ({"kernel": "sgemm", "range": "attention"},
     "Top kernel sgemm: 70 % of GPU time (in attention)."),
    ({"kernel": "relu_kernel"}, "Top kernel relu_kernel: 70 % of GPU time."),
    ({"kernel": "[CUDA_memcpy_HtoD]"}, "Top copy [CUDA"),
    ({"kernel": "[CUDA_memset]"}, "Top fill [CUDA"),
    ({"kernel": "[CUDA_graph_4]"}, "Top CUDA graph [CUDA"),
], ids=["op", "kernel in a range", "kernel", "copy", "fill", "graph"])  # fmt: skip
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


@pytest.mark.parametrize("changed", [{"gain_share": 0.001}, {"gain_share": None}, {"evidence": ()}])
def test_a_small_or_unknown_gain_or_one_without_evidence_is_not_a_line_of_the_verdict(
    answer: Summary, changed: dict[str, Any]
) -> None:
    assert silent_about("gain", replace(answer, advice=(replace(LAUNCHES, **changed),)))


def _cost(unknown: str = "", share: float = 1.0) -> KnownCost:
    reasons = (UnknownCost(unknown, round(100 * (1 - share)), 3),) if unknown else ()
    return KnownCost("GPU", 100, share, share, reasons)


NO_PEAKS = (
    "Peaks of the GPU unknown: add --gpu with its name, or flops= and bandwidth=,"
    " for efficiencies and more advice."
)
MISSING: dict[str, tuple[dict[str, object], str, str]] = {
    "a GPU without a name": ({"gpus": (None,), "peaks": ()}, "gpu", NO_PEAKS),
    "a GPU that no table has": ({"gpus": ("NVIDIA Thor",), "peaks": ()}, "gpu", NO_PEAKS),
    "costs, with a remedy": (
        {"known_cost": _cost("shapes not recorded", 0.2)}, "costs",
        ("Costs unknown for 80 % of GPU time (shapes not recorded): capture with pyprof capture,"
         " or with record_shapes=True.")),
    "costs of another library, for which no call of pyprof is proposed": (
        {"library": "CuPy", "known_cost": _cost("only ranges, no op", 0.2)}, "costs",
        "Costs unknown for 80 % of GPU time: PyProf knows ops of PyTorch, and this is CuPy."),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "subject", "text"), MISSING.values(), ids=MISSING)
def test_what_a_better_answer_needs_is_said(
    answer: Summary, changed: dict[str, Any], subject: str, text: str
) -> None:
    found = about("missing", replace(answer, **changed))
    assert (found.subject, found.text) == (subject, text)
    if subject == "costs":
        assert (found.share, found.evidence[0].count) == (0.8, 3)


def test_nothing_is_missing_where_costs_and_peaks_are_known(answer: Summary) -> None:
    assert answer.peaks
    assert silent_about("missing", replace(answer, known_cost=_cost()))


@pytest.mark.parametrize(("unlaunched_ns", "proposed"), [(80, False), (3, True)])
def test_without_most_launches_no_range_around_steps_is_proposed(
    answer: Summary, unlaunched_ns: int, *, proposed: bool
) -> None:
    """There may be some: which step a kernel is of, only its launch tells."""
    found = replace(answer, known_cost=_cost(UNLAUNCHED, 1 - unlaunched_ns / 100), peaks=())
    found = replace(found, steps=replace(answer.steps, first=None))
    assert ("steps" in about("missing", found).text.lower()) == proposed


def test_without_work_there_is_no_verdict(answer: Summary) -> None:
    assert verdict(replace(answer, known_cost=KnownCost("GPU", 0, 0.0, None, ()))) == ()


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
