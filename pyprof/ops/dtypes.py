"""Element types: their sizes, their many spellings, and what two of them promote to."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIZES = {
    name: size
    for size, names in {
        1: (
            "bool uint8 int8 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
            "float8_e8m0fnu float4_e2m1fn_x2 qint8 quint8 quint4x2 quint2x4 opaque1"
        ),
        2: "uint16 int16 float16 bfloat16 opaque2",
        4: "uint32 int32 float32 complex32 qint32 opaque4",
        8: "uint64 int64 float64 complex64 opaque8",
        16: "complex128 opaque16",
    }.items()
    for name in names.split()
}
"""Bytes of an element; those of float4_e2m1fn_x2 and quint4x2 hold two values, of an opaque type
only the width is known."""

_ALIASES = {
    # torch's own short names
    "half": "float16", "float": "float32", "double": "float64", "bfloat": "bfloat16",
    "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "chalf": "complex32", "cfloat": "complex64", "cdouble": "complex128",
    # how C++ spells them in a trace
    "c10::half": "float16", "c10::bfloat16": "bfloat16", "short int": "int16",
    "long int": "int64", "unsigned char": "uint8", "signed char": "int8",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
    "c10::float8_e4m3fn": "float8_e4m3fn", "c10::float8_e5m2": "float8_e5m2",
}  # fmt: skip

_SCALAR_TYPES = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32",
    7: "float64", 8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 12: "qint8",
    13: "quint8", 14: "qint32", 15: "bfloat16", 16: "quint4x2", 17: "quint2x4",
    23: "float8_e5m2", 24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz",
    27: "uint16", 28: "uint32", 29: "uint64", 44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2",
}  # fmt: skip
"""By the number that a trace holds for a dtype argument; c10/core/ScalarType.h."""

_RANK = {
    name: rank
    for rank, names in enumerate(
        (
            *("bool", "uint8 int8", "int16 uint16", "int32 uint32", "int64 uint64"),
            *("float16 bfloat16", "float32", "float64", "complex32", "complex64", "complex128"),
        )
    )
    for name in names.split()
}
"""What torch promotes; 8-bit and 4-bit floats meet only their own kind."""

_WIDER = {
    frozenset(("float16", "bfloat16")): "float32",
    frozenset(("uint8", "int8")): "int16",  # wider unsigned types do not promote with signed ones
}
_UNSIGNED = {"uint16", "uint32", "uint64"}
_PLAIN_FLOATS = {"float16", "bfloat16", "float32", "float64"}
_COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
_PARTS = {wide: narrow for narrow, wide in _COMPLEX.items()}


def canonical(dtype: object) -> str | None:
    """Return torch's name of a dtype in any spelling (`torch.half`, `c10::Half`, 5); else None."""
    if isinstance(dtype, bool):
        return None
    if isinstance(dtype, int):
        return _SCALAR_TYPES.get(dtype)
    if not isinstance(dtype, str):
        return None
    name = dtype.removeprefix("torch.").lower()
    name = _ALIASES.get(name, name)
    return name if name in _SIZES else None


def item_size(dtype: str | None) -> int | None:
    """Return the bytes of one element; None if the dtype is unknown."""
    name = canonical(dtype)
    return None if name is None else _SIZES[name]


def is_complex(dtype: str | None) -> bool:
    """Whether elements have an imaginary part. Unknown counts as real."""
    return (canonical(dtype) or "").startswith("complex")


def complex_of(dtype: str | None) -> str | None:
    """Return the complex dtype with parts of this dtype; integers become float32 first."""
    if dtype is None or is_complex(dtype):
        return dtype
    return _COMPLEX.get(dtype, "complex64")


def real(dtype: str | None) -> str | None:
    """Return the dtype of a complex number's parts; any other dtype unchanged."""
    return _PARTS.get(canonical(dtype) or "", dtype)


def is_floating(dtype: str | None) -> bool:
    """Whether a gradient can flow through it. Unknown counts as floating."""
    name = canonical(dtype)
    return name is None or "float" in name or name.startswith("complex")


def promote(first: str | None, second: str | None) -> str | None:
    """Return the dtype of first + second as tensors with dimensions: torch.promote_types.

    None if either is unknown or torch refuses the pair.
    """
    a, b = canonical(first), canonical(second)
    if a == b:
        return a
    apart = {a, b} & _UNSIGNED and not {a, b} & _PLAIN_FLOATS
    if a not in _RANK or b not in _RANK or apart:
        return None
    low, high = sorted((a, b), key=_RANK.__getitem__)
    if is_complex(high):
        half = _COMPLEX.get("float32" if low == "bfloat16" else low, high)
        return max(half, high, key=_RANK.__getitem__)
    return high if _RANK[low] != _RANK[high] else _WIDER.get(frozenset((low, high)))


def of_number(value: object) -> str | None:
    """Return the default dtype that torch gives a Python number; None for anything else."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    return "float32" if isinstance(value, float) else None


def _category(dtype: str) -> int:
    if dtype == "bool":
        return 0
    return 3 if is_complex(dtype) else 2 if is_floating(dtype) else 1


def result(
    dimensioned: Iterable[str | None],
    zero_dim: Iterable[str | None] = (),
    numbers: Iterable[str | None] = (),
) -> str | None:
    """Return the result's dtype: torch.result_type.

    Tensors with dimensions decide; those without count only if their kind (bool, int, float,
    complex) is higher, and Python numbers after them. None if it depends on an unknown dtype.
    """
    dtype: str | None = None
    for names in map(list, (dimensioned, zero_dim, numbers)):
        if not names:
            continue
        merged = reduce(promote, names[1:], canonical(names[0]))
        if merged is not None and dtype is not None:
            merged = promote(dtype, merged) if _category(merged) > _category(dtype) else dtype
        if merged is None:
            return None
        dtype = merged
    return dtype
