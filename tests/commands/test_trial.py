"""A whole trial, with runs of given times."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof.answers.try_answer import Try
from pyprof.capture.script import Target
from pyprof.commands import _trial
from pyprof.errors import PyprofError
from pyprof.marker import Tensor
from pyprof.render.text import try_text
from pyprof.trial import processes
from pyprof.trial.change import parse
from pyprof.trial.experiment import Trial
from pyprof.trial.ranks import Ranks
from pyprof.trial.run_files import RunRequest, RunResult
from tests.analysis.captures import US, Work, capture, op, write_dict

FACTORS = {"bf16": 0.8, "fused-optimizer": 0.5, "compile": 1.5, "threads=2": 0.7, "threads=4": 0.6}
Runner = Callable[[RunRequest], RunResult]


def _timed(request: RunRequest) -> RunResult:
    """Return steps of 10 ms, shorter by a factor for each change."""
    lengths = [10e6] * 12
    for chosen in request.changes:
        lengths = [FACTORS[str(chosen)] * each for each in lengths]
    return RunResult(
        step_ns=lengths, compiling=[False] * 12, steps_of="optimizer 1 of SGD",
        capture=request.capture, device="CPU, 2 threads",
    )  # fmt: skip


@pytest.fixture
def perform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Try]:
    """Perform a trial of changes by name, of runs that the given function does."""
    rules = ("half_precision", "python_loop", "unfused_optimizer", "launch_bound")
    monkeypatch.setattr(
        _trial, "_advice_by_rule", lambda _: {rule: f"{rule} it is" for rule in rules}
    )

    def perform_trial(*texts: str, runner: Runner = _timed, combine: bool = False) -> Try:
        monkeypatch.setattr(processes, "perform", lambda request, *_: runner(request))
        trial = Trial(
            target=Target("a.py"), folder=tmp_path / "out", ranks=Ranks(0, 1, ""), steps=0,
            seed=True, report=lambda _: None,
        )  # fmt: skip
        trial.begin()
        return _trial.perform_trial(trial, [*map(parse, texts)], 1, combine=combine)

    return perform_trial


def test_advised_changes_are_tried_and_then_combined(perform: Callable[..., Try]) -> None:
    answer = perform()
    assert answer.not_tried == ("python_loop it is",)
    assert "for you to write: python_loop it is;" in " ".join(try_text.trial(answer))
    found = {each.change: each for each in answer.changes}
    assert {name: each.verdict for name, each in found.items()} == {
        "bf16": "faster", "fused-optimizer": "faster", "compile": "slower",
        "bf16 + fused-optimizer": "faster",
    }  # fmt: skip
    both = found["bf16 + fused-optimizer"]
    assert both.time_ratio is not None
    assert both.time_ratio.mid == pytest.approx(0.4)
    assert "autocast" in both.code
    assert "fused=True" in both.code
    assert both.capture is not None


def test_named_changes_are_combined_on_request(perform: Callable[..., Try]) -> None:
    texts = ("threads=2", "threads=4", "bf16")
    assert [each.change for each in perform(*texts).changes] == [*texts]
    together = perform(*texts, combine=True).changes[-1]
    assert together.change == "threads=4 + bf16"
    assert together.time_ratio is not None
    assert together.time_ratio.mid == pytest.approx(0.48)


def test_a_single_helpful_change_is_not_combined(perform: Callable[..., Try]) -> None:
    tried = perform("bf16", "compile", combine=True).changes
    assert [each.change for each in tried] == ["bf16", "compile"]


def test_a_prediction_stands_beside_the_measurement(tmp_path: Path) -> None:
    """Kernel time by the rule of whatif; null if it refuses, or without a rule."""
    work = [Work((10 * US, 10_010 * US), (0, 5 * US), "ampere_sgemm_128x64_tn")]
    square = Tensor((4096, 4096), "float32")
    product = op("matmul", (-100, 6 * US), square, square)
    net = write_dict(tmp_path / "net.dict", capture(work, (), [product]))
    ratios = [
        _trial._predict_ratio(str(net), (parse(text),)) for text in ("tf32", "compile", "bf16")
    ]
    assert ratios == [pytest.approx(19.5 / 156, rel=1e-3), None, None]
    assert _trial._predict_ratio(None, (parse("tf32"),)) is None


def test_a_script_without_advice_says_how_to_go_on(
    perform: Callable[..., Try], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_trial, "_advice_by_rule", lambda _: {})
    answer = perform()
    assert not answer.changes
    assert "name a change with --change" in " ".join(try_text.trial(answer))


def test_a_profiled_run_that_fails_is_not_taken_for_one_without_advice(
    perform: Callable[..., Try],
) -> None:
    def fails(request: RunRequest) -> RunResult:
        profiled = request.mode == "profile"
        return RunResult(code=1, error="no kernels") if profiled else _timed(request)

    with pytest.raises(PyprofError, match="failed: no kernels; name the changes with --change"):
        perform(runner=fails)
    assert perform("bf16", runner=fails).changes[0].verdict == "faster"


def test_what_was_measured_before_ctrl_c_is_reported(perform: Callable[..., Try]) -> None:
    numbers = iter(range(100))

    def interrupted(request: RunRequest) -> RunResult:
        if next(numbers) == 4:  # baseline, bf16, bf16, baseline
            raise KeyboardInterrupt
        return _timed(request)

    answer = perform("bf16", "compile", runner=interrupted)
    assert not answer.complete
    assert [(each.change, each.verdict) for each in answer.changes] == [("bf16", "faster")]
