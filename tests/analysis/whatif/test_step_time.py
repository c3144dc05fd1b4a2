"""The time of a step after a change."""

from dataclasses import replace

import numpy as np
import pytest

from pyprof.analysis.advice.rule_context import RuleContext
from pyprof.analysis.back_test import Interval
from pyprof.analysis.whatif.kernels import Kernels, unchanged
from pyprof.analysis.whatif.step_time import StepTime, step_time
from pyprof.answers.whatif_answer import PredictedTime
from pyprof.inputs.source import Source
from tests.analysis.captures import US, Range, Work, capture, table
from tests.analysis.whatif.test_replay import launched_slowly, queued


def source_of(work: list[Work], pids: int = 1) -> Source:
    net = capture(work, pids=pids)
    return Source(table(net), net)


def _halved(source: Source) -> Kernels:
    kernels = unchanged(RuleContext(source.table))
    rows = np.arange(len(kernels.ns))
    return kernels.retimed(rows, kernels.ns / 2, Interval(0.9, 1.1))


def _after(source: Source) -> PredictedTime | str:
    step = step_time(source)
    assert isinstance(step, StepTime)
    return step.after(_halved(source))


def test_a_busy_gpus_step_gains_what_its_kernels_gain() -> None:
    """Ten kernels of 100 us: 1 ms becomes half of that, with the kernels' interval."""
    span = _after(source_of(queued(10)))
    assert isinstance(span, PredictedTime)
    assert span.now == 1000 * US
    assert span.expected == pytest.approx(500 * US, rel=0.01)
    assert span.low == pytest.approx(450 * US, rel=0.02)
    assert span.high == pytest.approx(550 * US, rel=0.02)


def test_a_step_limited_by_the_host_gains_only_its_kernels_share() -> None:
    """Kernels of 10 us at half the time, launched every 100 us: at most 5 % of the span."""
    span = _after(source_of(launched_slowly(10)))
    assert isinstance(span, PredictedTime)
    assert span.low < span.expected <= span.high <= span.now


def test_no_time_is_predicted_if_both_limits_matter() -> None:
    """Kernels of 90 us launched every 100 us."""
    work = [replace(each, at=(each.at[0], each.at[0] + 90 * US)) for each in launched_slowly(10)]
    text = _after(source_of(work))
    assert (
        text
        == "host-bound: 540 us if the GPU idles as long as now, 945 us if the host launches as now"
    )


def test_kernels_side_by_side_gain_what_one_stream_gains() -> None:
    """Four streams of ten kernels of 100 us: their summed time is four times the step."""
    work = [replace(each, stream=stream) for each in queued(10) for stream in range(4)]
    assert _after(source_of(work)) == _after(source_of(queued(10)))


def test_what_cannot_be_replayed_says_why() -> None:
    source = source_of(queued(3))
    assert "no API calls" in str(step_time(replace(source, capture=None)))
    two = queued(2)
    two[1] = replace(two[1], pid=2)
    assert "several processes" in str(step_time(source_of(two, pids=2)))
    instant = capture([*queued(3), Work((US, US), (0, US // 2))], ranges=[Range("step 0", (0, US))])
    assert "takes time" in str(step_time(Source(table(instant), instant)))
    late = [*queued(3), Work((9000 * US, 9020 * US), (14 * US, 15 * US))]
    assert "off its span" in str(step_time(source_of(late)))
