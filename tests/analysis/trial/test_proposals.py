"""Proposed changes: from advice, and combinations of those that helped."""

import pytest

from pyprof.analysis.trial.proposals import proposals, together
from pyprof.analysis.trial.verdict import judge
from pyprof.answers.try_answer import TriedChange
from pyprof.trial.change import parse
from pyprof.trial.experiment import BASELINE, Variant, label
from tests.trial.built import runs


def _together(factors: dict[str, float]) -> str | None:
    """Combine changes with given ratios, for steps of 10 ms."""
    tried: dict[Variant, TriedChange] = {}
    for text, factor in factors.items():
        variant = (parse(text),)
        order = [BASELINE, variant, variant, BASELINE]
        lengths = [(v, [10.0 * (factor if v else 1)] * 9) for v in order]
        tried[variant] = judge(runs(*lengths), variant)
    joined = together(tried)
    return None if joined is None else label(joined)


@pytest.mark.parametrize(
    ("rules", "proposed"),
    [
        (["unfused_optimizer", "launch_bound", "short_ops", "no_such_rule"],
         ["fused-optimizer", "compile"]),
        (["eager_attention"], ["sdpa"]),
        (["unused_gradients"], ["no-grad"]),
        (["double_precision"], ["float32=all"]),
    ],
)  # fmt: skip
def test_advice_proposes_changes_in_its_order_and_once(
    rules: list[str], proposed: list[str]
) -> None:
    assert [*map(str, proposals(rules))] == proposed


_PATCHES = [f"patch={path}" for path in (__file__, judge.__code__.co_filename)]
JOINED: dict[str, tuple[dict[str, float], str | None]] = {
    "those that helped": ({"bf16": 0.5, "compile": 1.2, "sdpa": 0.9}, "bf16 + sdpa"),
    "not a single one": ({"bf16": 0.5, "compile": 1.0}, None),
    "of values of one change, the fastest": (
        {"threads=1": 0.8, "threads=2": 0.6, "threads=3": 0.7, "bf16": 0.9}, "threads=2 + bf16"),
    "variables, which exclude each other by name": (
        {"env=A=1": 0.8, "env=A=2": 0.6, "env=B=1": 0.9}, "env=A=2 + env=B=1"),
    "patch files": (dict(zip(_PATCHES, (0.8, 0.7), strict=True)), " + ".join(_PATCHES)),
}  # fmt: skip


@pytest.mark.parametrize(("factors", "joined"), JOINED.values(), ids=JOINED)
def test_changes_are_joined(factors: dict[str, float], joined: str | None) -> None:
    assert _together(factors) == joined
