"""The original's acceptance suite, re-made: each of its op calls, in three dtypes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch

import pyprof
from pyprof import marker
from tests.instrument.ops_of_the_original import FAMILIES, Tensors

if TYPE_CHECKING:
    from tests.instrument.conftest import Recorder
    from tests.instrument.ops_of_the_original import Made

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def outcome(made: Made) -> Any:
    """Call it; give the result, or the class of what was raised (half on a CPU lacks a few)."""
    torch.manual_seed(3)
    args, kwargs = copy.deepcopy((made.args, made.kwargs))
    try:
        return getattr(made.home, made.name)(*args, **kwargs)
    except RuntimeError as error:
        return type(error)


def expected_args(made: Made) -> tuple[Any, ...]:
    return tuple(
        marker.Tensor(tuple(arg.shape), str(arg.dtype).removeprefix("torch."))
        if isinstance(arg, torch.Tensor)
        else tuple(arg)
        if isinstance(arg, (tuple, list))
        else arg
        for arg in made.args
    )


def same(a: Any, b: Any) -> bool:
    if isinstance(a, tuple):
        return all(same(x, y) for x, y in zip(a, b, strict=True))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a is b


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.__name__)
def test_each_call_is_marked_and_gives_what_it_gave(
    family: Callable[[Tensors], Iterator[Made]], dtype: str, recorder: Recorder
) -> None:
    """One marker at the outside, its own: op, arguments in order, keywords by name."""
    calls = list(family(Tensors(getattr(torch, dtype))))
    before = [outcome(made) for made in calls]
    pyprof.init(force=True)
    for made, result in zip(calls, before, strict=True):
        recorder.clear()
        found = outcome(made)
        assert same(found, result)
        assert recorder.depth == 0
        own = [call for call in recorder.calls if call.op == made.name]
        assert own, made.name
        assert own[0].args == expected_args(made)
        assert set(own[0].kwargs) == set(made.kwargs)
        for name, value in made.kwargs.items():
            if not isinstance(value, torch.Tensor):
                assert own[0].kwargs[name] == value


def test_the_suite_is_as_large_as_the_original() -> None:
    """Ninety different ops, or more."""
    names = {made.name for family in FAMILIES for made in family(Tensors(torch.float32))}
    assert len(names) >= 90


def test_every_op_runs_in_float32() -> None:
    """What half precision may lack on a CPU, single precision has."""
    for family in FAMILIES:
        for made in family(Tensors(torch.float32)):
            assert outcome(made) is not RuntimeError, made
