"""Which changes are predicted, and why others are refused."""

from dataclasses import replace
from itertools import permutations

import pytest

from pyprof import schema
from pyprof.analysis.whatif import predictions
from pyprof.prof.table import Override, Table
from tests.analysis.test_attention_calls import attention, story, told
from tests.analysis.whatif.test_fusion import chain, context


@pytest.mark.parametrize(("gpu", "count"), [("NVIDIA A100-SXM4-40GB", 1), ("MI300X", 0)])
def test_other_vendors_are_refused(gpu: str, count: int) -> None:
    """No pair of captures has shown that a rule holds there."""
    records = context(*chain(3)).table.source
    predicted, refused = predictions(Table(records, Override(gpu=gpu)), ["--fuse pointwise"])
    assert (len(predicted), len(refused)) == (count, 1 - count)


def test_of_a_cpu_nothing_is_predicted() -> None:
    """Fused attention is faster there in float32, unlike what a GPU's rule would say."""
    work, ranges = told(*attention(64, 1024, 1024), dtype="float32")
    ops = [replace(each, kind=schema.CPU, grid=None) for each in work]
    predicted, refused = predictions(context(ops, ranges).table)
    assert not predicted
    assert {each.why for each in refused} == {"no GPU work was captured"}


def test_the_combination_of_all_changes_comes_last() -> None:
    """Fused attention is refused in float32 but possible after bfloat16; one type of several."""
    case = story(*attention(64, 1024, 1024), dtype="float32")
    predicted, refused = predictions(case.table)
    assert predicted[-1].change == "--dtype bf16 --fuse attention"
    assert [each.change for each in refused if "float32" in each.why] == ["--fuse attention"]
    alone = [each.kernels.span.expected for each in predicted[:-1]]
    assert alone == sorted(alone)
    assert predicted[-1].kernels.span.expected < alone[0]


def test_an_unknown_change_is_an_error() -> None:
    with pytest.raises(ValueError, match="'--fuse all' is none of --dtype tf32"):
        predictions(story(*attention()).table, ["--fuse all"])


def test_changes_with_a_value_are_predicted_on_request() -> None:
    """Another GPU comes last in a combination, which a single change does not have."""
    asked = ["--gpu H100", "--fuse pointwise"]
    predicted, refused = predictions(context(*chain(3)).table, asked)
    assert predicted[-1].change == "--fuse pointwise --gpu H100"
    assert (len(predicted), refused) == (3, ())
    (alone,) = predictions(context(*chain(3)).table, asked[:1])[0]
    assert alone.change == "--gpu H100"


def test_changes_in_any_order_and_asked_for_twice_are_combined_alike() -> None:
    case = story(*attention(64, 1024, 1024), dtype="float32")
    asked = ("--dtype bf16", "--fuse attention", "--fuse pointwise")
    combined = {
        (predicted[-1].change, predicted[-1].kernels.span)
        for order in [*permutations(asked), asked * 2]
        for predicted, _ in [predictions(case.table, order)]
    }
    assert len(combined) == 1
