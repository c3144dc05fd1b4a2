"""Remedies for unknown costs."""

import re

import pytest

from pyprof import ops
from pyprof.answers.remedies import _ELSE, explained
from pyprof.ops.libraries.experts.expert_layers import ELSEWHERE
from pyprof.ops.model_config import LAYER_TYPES, REMEDY
from pyprof.prof.calls.op_choice import UNSEEN
from tests.programs import TOP


def reasons() -> list[str]:
    sources = [file.read_text(encoding="utf-8") for file in (TOP / "pyprof" / "ops").glob("*.py")]
    return sorted({*re.findall(r'Unknown\(f?"([^"]+)"', "\n".join(sources))})


@pytest.mark.parametrize("reason", reasons())
def test_every_reason_of_a_formula_has_a_remedy(reason: str) -> None:
    """None falls through to the general one, except those that only name something."""
    assert explained(reason)[1] != _ELSE or reason.startswith("{")


@pytest.mark.parametrize(
    "reason", [*sorted({model.unrecorded for model in ops.models()} - {""}), ELSEWHERE]
)
def test_no_recording_is_advised_for_what_no_capture_holds(reason: str) -> None:
    assert "only the run itself" in explained(reason)[1]


@pytest.mark.parametrize("reason", [UNSEEN, f"kinds of layers not recorded: {LAYER_TYPES}"])
def test_a_reason_is_split_into_cause_and_remedy(reason: str) -> None:
    why, remedy = explained(reason)
    assert f"{why}: {remedy}" == reason
    assert remedy.startswith(("call pyprof", "give --with", "capture "))
    assert ":" not in remedy, "the first lines of a summary end at one"


def test_a_short_remedy_is_kept_in_full() -> None:
    remedy = "give --with config.json, the model's configuration"
    assert explained(f"widths not recorded: {REMEDY}") == ("widths not recorded", remedy)


@pytest.mark.parametrize("reason", ["no marker", "only ranges, no op"])
def test_work_without_an_op_needs_the_instrumentation(reason: str) -> None:
    assert "pyprof.init()" in explained(reason)[1]


def test_a_backward_pass_without_markers_needs_a_capture_with_them() -> None:
    """pyprof.init() marks what the script calls, not what the engine runs."""
    assert "for backward passes, use pyprof capture" in explained("no marker")[1]
