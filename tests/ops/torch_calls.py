"""Torch's own calls as `Call`s, as an instrumented program would record them."""

from typing import Any

import pytest

from pyprof.marker import Call, Opaque, Tensor, Value

torch: Any = pytest.importorskip("torch")
_Mode: Any = pytest.importorskip("torch.utils._python_dispatch").TorchDispatchMode


def value(given: object) -> Value:
    if isinstance(given, torch.Tensor):
        strided = given.layout == torch.strided
        return Tensor(
            tuple(given.shape),
            str(given.dtype).removeprefix("torch."),
            tuple(given.stride()) if strided else None,
        )
    if isinstance(given, (list, tuple)):
        return tuple(map(value, given))
    if isinstance(given, torch.dtype):
        return str(given)
    if given is None or isinstance(given, (bool, int, float, str)):
        return given
    return Opaque(type(given).__name__)


def python_call(mod: str, name: str, *args: object, **kwargs: object) -> Call:
    """Describe a call of a function of torch as Python spells it."""
    named = {key: value(given) for key, given in kwargs.items()}
    return Call(mod, name, tuple(map(value, args)), named)


def aten_call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:  # noqa: ANN401 - torch's own
    """Describe a call as a trace of ATen does: every argument of the schema in its place."""
    full: list[Value] = []
    for at, argument in enumerate(func._schema.arguments):
        if argument.is_out:
            continue
        if at < len(args):
            full.append(value(args[at]))
        elif argument.name in kwargs:
            full.append(value(kwargs[argument.name]))
        else:
            full.append(value(argument.default_value) if argument.has_default_value() else None)
    return Call("aten", func._schema.name.partition("::")[2], tuple(full))


def tensors(result: object) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for item in result for tensor in tensors(item)]
    return []


class Recorder(_Mode):  # type: ignore[misc]  # torch may be absent
    """Keeps every ATen call that is made inside it, with its result and arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Any, Call, Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch's own
        types: Any,  # noqa: ANN401 - torch's own
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - torch's own
        result = func(*args, **(kwargs or {}))
        if func.namespace == "aten" and "out" not in (kwargs or {}):
            self.made.append(
                (func, aten_call(func, args, kwargs or {}), result, args, kwargs or {})
            )
        return result
