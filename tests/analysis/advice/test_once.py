"""What happens once is separated from what every step could gain."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pyprof import schema
from pyprof.analysis.advice import AdviceSums, RuleContext, advise
from pyprof.analysis.advice.finding import Advice
from pyprof.analysis.time.steady import find_loop
from pyprof.analysis.time.steps import find_steps
from pyprof.analysis.time.timeline import timeline
from pyprof.parse import parse
from pyprof.prof.table import Table
from pyprof.records.merging import merge_sums
from tests.analysis.captures import ADD, NCCL, US, Range, Work, capture, copy
from tests.known import known

LOOP = 100_000 * US
"""When the loop begins."""
STEP = 1000 * US


def _advice(work: Sequence[Work], ranges: Sequence[Range]) -> list[Advice]:
    net = capture(work, ranges=ranges)
    table = Table(parse(net))
    steps = find_steps(table.records, net)
    return advise(RuleContext(table, timeline(table.records, net), net), steps)


def _held(begin: int, length: int) -> Work:
    """Return a copy that blocks the host for some us."""
    at = begin + 10 * US, begin + (10 + length) * US
    return copy(at, (begin, at[1] + US), 1 << 30)


def _steps(
    names: Sequence[str], count: int = 6, begin: int = LOOP
) -> tuple[list[Work], list[Range]]:
    """Return steps of 1 ms: kernels that fill a quarter of the SMs, launched in time."""
    work, ranges = [], []
    for step in range(count):
        start = begin + step * STEP
        ranges.append(Range(f"step {step}", (start, start + STEP)))
        for place, name in enumerate(names):
            at = start + place * 300 * US
            call = at + (place + 1) * US, at + (place + 2) * US
            work.append(Work((at + 10 * US, at + 310 * US), call, name, grid=(27, 1, 1)))
    return work, ranges


NAMES = (ADD, "kernel_of_mine", "other_kernel")


def _told(entries: Sequence[Advice]) -> list[tuple[str, bool]]:
    return [(entry.rule, entry.once) for entry in entries]


def test_gains_are_per_marked_step_however_little_of_the_time_steps_hold() -> None:
    """As the verdict and the table of ops: six steps of 1 ms beside a copy of 80 ms."""
    work, ranges = _steps(NAMES)
    entries = _advice([*work, _held(LOOP + 6 * STEP, 80_000)], ranges)
    assert {entry.steps for entry in entries if not entry.once} == {6}
    assert known(entries[0].gain_ns) <= 6 * STEP


@pytest.mark.parametrize("marked", [True, False], ids=["marked steps", "guessed steps"])
def test_copies_before_the_loop_are_separate_advice(marked: bool) -> None:  # noqa: FBT001
    """They come last, however long they took, and are not part of the loop's gain."""
    work, ranges = _steps(NAMES)
    entries = _advice([_held(0, 80_000), *work], ranges if marked else [])
    assert _told(entries)[0] == ("low_occupancy", False)
    once = {entry.rule: entry for entry in entries if entry.once}
    assert once["pageable_copies"].gain_ns == 80_000 * US
    assert once["pageable_copies"].title.startswith("once, not in every step: ")
    assert "DataLoader" not in once["pageable_copies"].action
    assert not any(entry.rule == "pageable_copies" for entry in entries if not entry.once)


def test_copies_in_every_step_are_part_of_the_loop() -> None:
    work, ranges = _steps(NAMES[:2])
    work += [_held(LOOP + step * STEP + 620 * US, 300) for step in range(6)]
    entries = _advice(work, ranges)
    assert ("pageable_copies", False) in _told(entries)
    assert not any(entry.once for entry in entries)


def test_guessed_steps_of_a_small_part_separate_nothing() -> None:
    """Kernels that repeat briefly are not a loop if most kernels are others."""
    work, _ = _steps(NAMES, begin=0)
    single = [Work((LOOP, LOOP + 50_000 * US), (LOOP - 5 * US, LOOP - US), "single_kernel",
                   grid=(27, 1, 1))]  # fmt: skip
    entries = _advice([*work, *single], [])
    assert ("low_occupancy", False) in _told(entries)
    assert not any(entry.once for entry in entries)


def test_an_interrupted_series_of_guessed_steps_is_one_loop() -> None:
    """Steps are the longest series, but the same kernels before it are not start-up."""
    work, _ = _steps(NAMES)
    other = Work((LOOP - 4000 * US, LOOP - 3000 * US), (LOOP - 4005 * US, LOOP - 4004 * US), "x")
    before, _ = _steps(NAMES, 4, LOOP - 9000 * US)
    entries = _advice([*before, other, *work], [])
    shown = next(entry for entry in entries if entry.rule == "low_occupancy")
    assert len(shown.rows) == len(work) + len(before)


def test_an_interrupted_series_on_a_cpu_is_one_loop() -> None:
    """Such as batches of inference, one of which calls another op, too."""
    names = [*NAMES * 4, "aten::sort", *NAMES * 6]
    work = [Work(at, at, name, schema.CPU, grid=None)
            for number, name in enumerate(names)
            for at in [(1000 * number * US, 1000 * number * US + 900 * US)]]  # fmt: skip
    run = parse(capture(work, ranges=[Range("model", (0, work[-1].at[1] + US))]))
    loop = known(find_loop(run, find_steps(run)))
    assert loop.rows.all()


def test_a_gain_per_step_of_guessed_steps_is_only_of_the_steps_that_it_is_divided_by() -> None:
    """What repeats around them would make the gain longer than the step that it shortens."""
    work, _ = _steps(NAMES, 20)
    other = Work((LOOP - 1900 * US, LOOP - 1800 * US), (LOOP - 1905 * US, LOOP - 1904 * US), "x")
    before, _ = _steps(NAMES, 1, LOOP - 2900 * US)
    entries = _advice([*before, other, *work], [])
    shown = next(entry for entry in entries if entry.rule == "low_occupancy")
    assert (shown.steps, len(shown.rows)) == (20, len(work))


def test_communication_before_the_loop_is_not_a_gain_of_the_loop() -> None:
    work, ranges = _steps(NAMES)
    broadcast = Work((10 * US, 50_000 * US), (0, 5 * US), NCCL, stream=20)
    told = {entry.rule: entry for entry in _advice([broadcast, *work], ranges)}
    assert told["communication"].once
    assert told["communication"].gain_ns == 49_990 * US


def test_once_and_per_step_stay_separate_in_several_captures() -> None:
    work, ranges = _steps(NAMES[:2])
    work += [_held(LOOP + step * STEP + 620 * US, 300) for step in range(6)]
    entries = _advice([_held(0, 80_000), *work], ranges)
    found = AdviceSums(tuple(entries), 9)
    merged = merge_sums(found, found).entries
    copies = [entry for entry in merged if entry.rule == "pageable_copies"]
    assert [entry.once for entry in copies] == [False, True]
    other = AdviceSums((replace(copies[1], gain_ns=0),), 9)
    assert merge_sums(found, other).entries[-1].once


def test_a_slow_first_step_repeats_no_advice_of_the_loop() -> None:
    """Even if it lost most, for the same cause; what came before it is listed."""
    work, ranges = _steps(NAMES[:2])
    work += [_held(LOOP + step * STEP + 620 * US, 300) for step in range(6)]
    slow = _held(LOOP - 20_000 * US, 19_000)
    first = Range("step 100", (LOOP - 20_500 * US, LOOP))
    entries = _advice([slow, *work], [first, *ranges])
    assert ("pageable_copies", False) in _told(entries)
    assert not any(entry.once for entry in entries if entry.rule == "pageable_copies")
    before = _held(0, 70_000)
    told = _told(_advice([before, slow, *work], [first, *ranges]))
    assert ("pageable_copies", True) in told


def test_one_step_after_warm_up_gains_its_own_time() -> None:
    """What the first step, of 50 ms, could gain is not a gain of the second, of 0.9 ms."""
    work, ranges = _steps(NAMES, 2)
    begin = LOOP - 50_000 * US
    slow = Work((begin, LOOP), (begin - 5 * US, begin), "x", grid=(27, 1, 1))
    ranges[0] = replace(ranges[0], at=(begin - 10 * US, LOOP + STEP))
    (found,) = (each for each in _advice([slow, *work], ranges) if each.rule == "low_occupancy")
    assert (found.steps, found.gain_ns) == (1, 675 * US)


def test_idle_time_of_the_warm_up_is_not_a_gain_of_the_loop() -> None:
    """The host runs ahead: it begins the other steps while the first one's work still waits."""
    work, ranges = _steps(NAMES)
    by = 60_000 * US
    behind = [replace(each, at=(each.at[0] + by, each.at[1] + by)) for each in work[1:]]
    entries = _advice([work[0], *behind], ranges)
    assert [entry.once for entry in entries if entry.rule == "late_start"] == [True]


def test_communication_beside_the_warm_up_is_not_a_gain_of_the_loop() -> None:
    """The first all-reduce of the loop runs while another stream is still in the warm-up."""
    work, ranges = _steps(NAMES)
    slow = replace(work[2], at=(work[2].at[0], LOOP + 60_910 * US), device=1)
    first = Work((LOOP + 1200 * US, LOOP + 50_000 * US), (LOOP + 1100 * US, LOOP + 1101 * US),
                 NCCL, stream=20)  # fmt: skip
    by = 60_000 * US
    behind = [replace(each, at=(each.at[0] + by, each.at[1] + by)) for each in work[3:]]
    entries = _advice([*work[:2], slow, first, *behind], ranges)
    assert ("communication", False) not in _told(entries)
