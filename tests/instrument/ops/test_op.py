"""Tests of pyprof.instrument.ops.op: a wrapper passes for what it wraps."""

import contextlib
import copy
import inspect
import math
import pickle
import types
from pkgutil import resolve_name
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch.overrides import TorchFunctionMode

import pyprof
from pyprof.instrument.ops.op import _dispatches_to_itself, isinstance_op
from tests.instrument.conftest import Recorder

FUNCTIONS = ("relu", "nn.functional.linear", "nn.functional.max_pool2d", "linalg.norm")
METHODS = ("Tensor.add", "Tensor.sum")


def wrapper(name: str) -> Any:
    """Find what stands under a name now."""
    return resolve_name(f"torch:{name}")


ORIGINALS: dict[str, Any] = {name: wrapper(name) for name in (*FUNCTIONS, *METHODS)}


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", ORIGINALS)
def test_a_wrapper_equals_the_original(name: str, listening: Recorder) -> None:
    """Tables keyed by function work, whether filled before init() or after it."""
    original, op = ORIGINALS[name], wrapper(name)
    assert isinstance_op(op)
    assert op == original
    assert original == op
    assert hash(op) == hash(original)
    assert {original: 1}[op] == 1
    assert {op: 1}[original] == 1
    assert op != torch.sigmoid
    assert listening.depth == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ORIGINALS)
def test_a_wrapper_looks_like_the_original(name: str, listening: Recorder) -> None:
    original, op = ORIGINALS[name], wrapper(name)
    assert isinstance(op, type(original))
    assert callable(op)
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
        assert getattr(op, attribute, None) == getattr(original, attribute, None)
    assert repr(op) == repr(original)
    assert inspect.isfunction(op) == inspect.isfunction(original)
    if isinstance(original, types.FunctionType):
        assert op.__code__ is original.__code__
        assert inspect.signature(op) == inspect.signature(original)
        assert inspect.getsource(op) == inspect.getsource(original)
    assert listening.depth == 0


@pytest.mark.parametrize("name", ORIGINALS)
def test_a_wrapper_is_copied_and_pickled_by_name(name: str, recorder: Recorder) -> None:
    pyprof.init(force=True)
    op = wrapper(name)
    assert copy.deepcopy(op) is op
    assert copy.copy(op) is op
    pickled = [pickle.dumps(op, protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    assert all(pickle.loads(data) is op for data in pickled)  # noqa: S301 - our own
    pyprof.stop()
    assert all(pickle.loads(data) == ORIGINALS[name] for data in pickled)  # noqa: S301 - our own
    assert recorder.depth == 0


def test_a_builtin_on_a_class_does_not_become_a_method(listening: Recorder) -> None:
    """torch.relu as a class attribute is called without self, as before; F.relu with it."""

    class Holder:
        builtin: Any = torch.sigmoid
        function: Any = F.softsign

    assert Holder().builtin(torch.zeros(1)).item() == 0.5
    assert Holder().function.__self__.__class__ is Holder
    assert torch.zeros(1).add.__name__ == "add"
    assert "sigmoid" in listening.ops


def test_attributes_are_set_on_the_original(recorder: Recorder) -> None:
    pyprof.init(force=True)
    function: Any = F.softsign
    function.mine = 1
    pyprof.stop()
    assert vars(F.softsign)["mine"] == 1
    del vars(F.softsign)["mine"]
    assert recorder.depth == 0


@pytest.mark.slow
def test_a_wrapper_kept_after_stop_only_calls_through(recorder: Recorder) -> None:
    pyprof.init(force=True)
    kept = torch.relu
    pyprof.stop()
    recorder.clear()
    assert kept(torch.tensor(-1.0)).item() == 0
    assert recorder.texts == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_whatever_is_raised_leaves_no_open_range(
    error: type[BaseException], listening: Recorder
) -> None:
    def distance(_a: object, _b: object) -> torch.Tensor:
        raise error("stop here")

    with pytest.raises(error, match="stop here"):
        F.triplet_margin_with_distance_loss(
            torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2), distance_function=distance
        )
    assert listening.depth == 0
    with pytest.raises(RuntimeError):
        torch.ones(2, 3) @ torch.ones(2, 3)


def test_operators_return_not_implemented_as_before(listening: Recorder) -> None:
    class Other:
        def __radd__(self, left: object) -> str:
            return "mine"

    assert torch.ones(1) + Other() == "mine"
    with pytest.raises(TypeError):
        torch.ones(1) + object()  # type: ignore[operator]
    assert listening.depth == 0


def test_builtins_that_torch_does_not_list_are_named_under_a_default_device(
    listening: Recorder,
) -> None:
    x = torch.ones(2)
    with torch.device("cpu"):  # a mode, as of torch.set_default_device
        torch.relu_(x)
        torch.randn_like(x)
        torch._foreach_add_([x], 1)
    assert [call.op for call in listening.calls] == ["ones", "relu_", "randn_like", "_foreach_add_"]


def test_operators_that_torch_writes_in_python_are_named_under_a_default_device(
    listening: Recorder,
) -> None:
    """They pass themselves to the mode, which would call the originals."""
    x = torch.ones(2)
    with torch.device("cpu"):
        y = 3 - x**2
    assert [call.op for call in listening.calls] == ["ones", "__pow__", "__rsub__"]
    assert y.tolist() == [2, 2]


def test_a_mode_sees_an_operator_but_not_the_look_at_its_arguments(listening: Recorder) -> None:
    seen = []

    class Seeing(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Seeing():
        _ = 3 - x
    assert seen == ["__rsub__"]
    assert listening.ops == ["ones", "__rsub__"]


def test_a_function_whose_closure_has_an_empty_cell_does_not_dispatch_to_itself() -> None:
    unset = None

    def read_unset() -> object:
        return unset

    assert isinstance(read_unset, types.FunctionType)
    (cell,) = read_unset.__closure__ or ()
    del cell.cell_contents
    assert not _dispatches_to_itself(read_unset)


class Seen(torch.Tensor):
    """A class that keeps the types that it is asked about."""

    types: list[Any] = []  # noqa: RUF012 - cleared by the test

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.types.append(types)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_tensor_class_is_told_the_types_that_override_only(listening: Recorder) -> None:
    """Plain tensors are left out, as by torch: a class may refuse types that it does not know."""
    Seen.types.clear()
    torch.cat([torch.ones(2), torch.ones(2).as_subclass(Seen)])
    F.linear(torch.ones(2, 2).as_subclass(Seen), torch.nn.Parameter(torch.ones(2, 2)))
    assert Seen.types == [(Seen,), (Seen,)]
    assert listening.ops[-1] == "linear"


def test_a_factory_makes_plain_tensors_of_data_of_another_class(listening: Recorder) -> None:
    seen: Any = torch.tensor(2.0).as_subclass(Seen)
    made = torch.tensor([seen]), torch.full((2,), seen), torch.arange(seen)
    assert [type(each) for each in made] == [torch.Tensor] * 3
    assert listening.ops == ["tensor", "tensor", "full", "arange"]


def test_a_builtin_of_the_user_is_marked_under_a_default_device(listening: Recorder) -> None:
    extension = types.ModuleType("extension")
    vars(extension)["root"] = math.sqrt
    pyprof.wrap(extension, "root")
    with torch.device("cpu"):
        extension.root(4.0)
    assert listening.ops == ["root"]


@pytest.mark.parametrize("function", [F.relu, torch.norm, torch.Tensor.norm])
def test_a_function_written_in_python_is_marked_once_where_it_is_overridden(
    function: Any, listening: Recorder
) -> None:
    x = torch.ones(2)
    quiet = x.as_subclass(torch.nn.Buffer)  # type: ignore[attr-defined]
    listening.clear()
    function(x)
    expected = listening.ops
    for value, mode in ((x, torch.device("cpu")), (quiet, contextlib.nullcontext())):
        listening.clear()
        with mode:
            function(value)
        assert listening.ops == expected


def test_a_mode_does_not_see_what_markers_ask(recorder: Recorder) -> None:
    class Log(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def call() -> list[str]:
        with Log() as log:
            torch.nn.utils.clip_grad_norm_([parameter], 1.0)
            recurrent(x)
            F.relu(x)
        return log.seen

    recurrent, x = torch.nn.RNN(2, 2), torch.ones(1, 1, 2)
    parameter = torch.nn.Parameter(x.clone())
    parameter.grad = x.clone()
    expected = call()
    pyprof.init(force=True)
    assert call() == expected
    assert {"clip_grad_norm_", "forward", "relu"} <= set(recorder.ops)
