"""Which argument is which: binds a call's values to the parameters that a formula names.

A signature is written much as torch writes its own schemas:

    Tensor input, Tensor weight, Tensor? bias, int[] stride, *, dtype dtype

A `Tensor` must be given, any other may be missing. Types: Tensor, Tensor?, Tensor[], Index (a
tensor, int64 where its dtype is not known), Mask (likewise bool), Tensor! (a tensor and no number
that may stand for one), Number (a tensor or a number),
int, int[] (a list, or a number for all of it), Size (a list, or all the numbers that follow),
float, bool, str, dtype, any; Value[] takes all that is left, named ones last; attribute
is a statement about the call, by name alone.

Old Python-level markers left out what was neither tensor nor scalar, flattened lists of tensors
and wrote tensors without dimensions as numbers; so values are matched by type, and a value that
does not fit an optional parameter is offered to the next. ATen-level calls hold every argument in
its place, often with its value unknown; those are matched by position alone.
"""

from dataclasses import dataclass, replace
from functools import cache

from pyprof.marker import UNTYPED, Call, Opaque, Summary, Tensor, Value
from pyprof.ops import dtypes

_DEFAULT_DTYPES = {"Index": "int64", "Mask": "bool"}
_REQUIRED = {"Tensor", "Tensor!", "Index", "Mask"}
_TENSORS = {"Tensor", "Tensor!", "Tensor?", "Index", "Index?", "Mask", "Mask?", "Number"}
_NO_OPERANDS = {"out", "alpha", "dtype", "value", "rounding_mode", "inplace", "approximate"}
_SAME_NAME = {"input": "self", "self": "input", "p": "ord"}

MISSING = Opaque("missing")
"""What an argument that was not given is bound to."""


class Unknown(Exception):  # noqa: N818 - an unknown value, not an error
    """A cost is unknown; the text is the reason that the report shows."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a signature."""

    name: str
    type: str
    keyword_only: bool = False


@cache
def parse(text: str) -> tuple[Parameter, ...]:
    """Read a signature. Raises ValueError unless it is a list of `type name`."""
    parameters = []
    keyword_only = False
    for part in (piece.strip() for piece in text.split(",") if piece.strip()):
        if part == "*":
            keyword_only = True
            continue
        kind, _, name = part.partition(" ")
        if not name.isidentifier():
            raise ValueError(f"not `type name` in a signature: {part!r}")
        parameters.append(Parameter(name, kind, keyword_only))
    return tuple(parameters)


def bind(call: Call, signature: str, *, by_position: bool) -> dict[str, Value]:
    """Return each parameter's value, MISSING if not given. Raises Unknown on a misfit."""
    rest = list(call.args)
    named = dict(call.kwargs)
    bound: dict[str, Value] = {}
    parameters = parse(signature)
    for place, parameter in enumerate(parameters, 1):
        name = parameter.name if parameter.name in named else _SAME_NAME.get(parameter.name, "")
        if parameter.type == "Value[]":
            bound[parameter.name] = (
                *rest,
                *(named.pop(key) for key in list(named) if key not in _NO_OPERANDS),
            )
            rest.clear()
        elif name in named:
            bound[parameter.name] = _named(named.pop(name), parameter)
        elif parameter.type == "attribute" or (parameter.keyword_only and not by_position):
            bound[parameter.name] = MISSING
        elif by_position:
            bound[parameter.name] = _take_next(rest, parameter, parameters[place:])
        else:
            bound[parameter.name] = _take_fitting(rest, parameter)
        if parameter.type in _REQUIRED and bound[parameter.name] is MISSING:
            raise Unknown(_why_missing(call, parameter))
    if not by_position and any(isinstance(value, (Tensor, Summary)) for value in rest):
        raise Unknown("arguments do not fit the op")
    bound.update({name: value for name, value in named.items() if name not in bound})
    return bound


def _why_missing(call: Call, parameter: Parameter) -> str:
    if not call.args and not call.kwargs:
        return "shapes not recorded"
    if not call.whole:
        return "marker cut short"
    return f"argument {parameter.name} is not a tensor of known shape"


def _named(value: Value, parameter: Parameter) -> Value:
    if parameter.type != "Tensor[]":
        return _as(value, parameter.type) if parameter.type in _TENSORS else value
    if isinstance(value, Tensor):
        return (value,)
    return value if isinstance(value, (tuple, Summary)) else MISSING


def _take_next(rest: list[Value], parameter: Parameter, following: tuple[Parameter, ...]) -> Value:
    if not rest:
        return MISSING
    if parameter.type == "Tensor[]" and isinstance(rest[0], Tensor):
        return _take_flattened(rest, following)
    value = rest.pop(0)
    if parameter.type == "dtype" and value == Opaque(UNTYPED):
        return None  # where types are recorded, that of a dtype is Scalar
    unsized = isinstance(value, Opaque) and value.may_be_unsized
    if unsized and parameter.type in _REQUIRED and parameter.type != "Tensor!":
        value = Tensor(())  # emit_nvtx writes a tensor without dimensions as it writes a number
    return _named(value, parameter)


def _take_flattened(rest: list[Value], following: tuple[Parameter, ...]) -> Value:
    """Take the tensors of a list that emit_nvtx wrote as so many arguments."""
    if following and following[0].type == "Tensor[]":
        raise Unknown("lists of tensors not told apart")
    taken = rest[: max(1, len(rest) - len(following))]
    while not isinstance(taken[-1], Tensor):
        taken.pop()  # of parameters that the signature leaves out
    del rest[: len(taken)]
    # between tensors, [] is one without dimensions, or none at all
    return tuple(taken) if all(isinstance(value, Tensor) for value in taken) else MISSING


def _take_fitting(rest: list[Value], parameter: Parameter) -> Value:
    if not rest:
        return MISSING
    kind = parameter.type
    if kind == "Tensor[]":
        if isinstance(rest[0], (tuple, Summary)):
            return rest.pop(0)
        operands: list[Value] = []
        while rest and isinstance(rest[0], Tensor):
            operands.append(rest.pop(0))
        return tuple(operands) if operands else MISSING
    if kind == "Size" and _is_int(rest[0]):
        numbers: list[Value] = []
        while rest and _is_int(rest[0]):
            numbers.append(rest.pop(0))
        return tuple(numbers)
    return _named(rest.pop(0), parameter) if _fits(rest[0], kind) else MISSING


def _is_int(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _fits(value: Value, kind: str) -> bool:  # noqa: PLR0911 - one line a type
    if kind in _TENSORS:
        return _fits_tensor(value, kind)
    if isinstance(value, Opaque):
        return kind != "dtype" or "dtype" in value.type
    if kind == "int":
        return value is None or _is_int(value)
    if kind in ("int[]", "Size"):
        listed = isinstance(value, tuple) and all(map(_is_int, value))
        return value is None or _is_int(value) or listed
    if kind == "float":
        return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "str":
        return isinstance(value, str)
    if kind == "dtype":
        return value is None or (isinstance(value, str) and dtypes.canonical(value) is not None)
    return not isinstance(value, (Tensor, Summary))


def _fits_tensor(value: Value, kind: str) -> bool:
    if isinstance(value, Tensor):
        return True
    if kind == "Tensor!":
        return False
    if kind.endswith("?"):
        return value is None
    is_number = isinstance(value, (bool, int, float))
    return is_number or (kind == "Number" and isinstance(value, Opaque))


def _as(value: Value, kind: str) -> Value:
    default = _DEFAULT_DTYPES.get(kind.rstrip("?"))
    if isinstance(value, Tensor) and value.dtype is None and default is not None:
        return replace(value, dtype=default)
    if kind in _REQUIRED and kind != "Tensor!" and isinstance(value, (bool, int, float)):
        return Tensor((), default)  # an old marker's tensor without dimensions
    if kind in _REQUIRED and not isinstance(value, Tensor):
        return MISSING
    return value
