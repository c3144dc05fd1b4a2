"""Texts of ops, annotations, frames and modules of a trace, as markers have them."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from pyprof import marker
from pyprof.marker.kind import OWN_NAMES
from pyprof.readers.kineto.columns import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyprof.marker import Value

DTYPES = {
    "float": "float32",
    "double": "float64",
    "bool": "bool",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "short int": "int16",
    "unsigned short": "uint16",
    "short unsigned int": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "long long int": "int64",
    "__int64": "int64",
    "unsigned long": "uint64",
    "long unsigned int": "uint64",
    "unsigned long long": "uint64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "complex<Half>": "complex32",
    "complex<c10::Half>": "complex32",
    "complex<float>": "complex64",
    "complex<double>": "complex128",
    "Float8_e4m3fn": "float8_e4m3fn",
    "Float8_e5m2": "float8_e5m2",
    "Float8_e4m3fnuz": "float8_e4m3fnuz",
    "Float8_e5m2fnuz": "float8_e5m2fnuz",
    "Float8_e8m0fnu": "float8_e8m0fnu",
    "Float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "qint8": "qint8",
    "quint8": "quint8",
    "qint32": "qint32",
}
"""C++ names of element types, as typeid writes them on Linux and Windows, without c10::."""

_COLLECTIVE_DTYPES = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
    "BFloat16": "bfloat16",
    "Bool": "bool",
    "Float8_e4m3fn": "float8_e4m3fn",
    "Float8_e5m2": "float8_e5m2",
}
"""Names of c10::ScalarType, by which collectives state their element type."""

_KERNEL_ATTRIBUTES = (
    "kernel_file",
    "kernel_hash",
    "kernel_kwargs",
    "num_warps",
    "num_stages",
    "grid",
)
"""Arguments of generated kernels that markers keep, under the same name."""
_COLLECTIVE_ATTRIBUTES = {
    "Out msg nelems": "out_numel",
    "Group size": "group_size",
    "Process Group Name": "group",
    "Process Group Description": "group_desc",
    "Process Group Ranks": "ranks",
    "Src Rank": "src",
    "Dst Rank": "dst",
}
"""Arguments of collectives, and their names in markers."""
_OF_OPS = frozenset({"Sequence number", "Collective name", "kernel_backend"})
"""Arguments that ops have, and annotations do not."""
_OWN_NAME = re.compile(OWN_NAMES)
_GENERATED = re.compile(r"(?:^|_)(?:cpp_fused_|triton_)\w{1,400}$")
"""Names of kernels that Inductor made; those for the CPU come without any arguments."""
_CALL_STACK_FRAME = re.compile(r"(.+)\((\d+)\): (.+)", re.DOTALL)
"""`file(line): function`."""


def dtype(name: object) -> str:
    """Return torch's name of a C++ element type; "" if it is not one."""
    return DTYPES.get(str(name).removeprefix("c10::"), "")


def is_op(name: str, args: dict[str, Any]) -> bool:
    """Whether it is an op, not an annotation: until torch 1.12 both have the same category.

    Functions of TorchScript have it, too, with shapes but without a sequence number: like
    annotations, they name a part of the program.
    """
    if "::" in name and "::" in name.partition(" ")[0]:
        return True
    if not _OF_OPS.isdisjoint(args) or marker.is_node_name(name) or is_generated(name):
        return True
    own = _OWN_NAME.fullmatch(name) is not None
    return own or (":" in name and bool(_dims(args)))  # nccl:all_reduce


def is_generated(name: str) -> bool:
    """Whether Inductor generated the kernel, by its name."""
    return _GENERATED.search(name) is not None


def op(name: str, args: dict[str, Any], seq: int | str | None, op_id: int | str | None) -> str:
    """Write an op's range as emit_nvtx would, followed by dtypes, strides and values."""
    if "kernel_backend" in args or (is_generated(name) and not _dims(args)):
        return _generated_kernel(name, args)
    if args.get("Collective name"):
        return _collective(args)
    return marker.encode_seq(
        name,
        seq=seq,
        op_id=op_id,
        sizes=_dims(args),
        dtypes=_dtypes(args),
        strides=args.get("Input Strides"),
        inputs=args.get("Concrete Inputs"),
    )


def _dims(args: dict[str, Any]) -> object:
    dims = args.get("Input Dims", args.get("Input dims"))
    if not isinstance(dims, str):
        return dims
    if not _SPLIT_DIMS.fullmatch(dims):
        return None
    return [[int(size) for size in shape.split(",") if size] for shape in dims.split(";")]


_SPLIT_DIMS = re.compile(r"(?:\d{1,18}(?:,\d{1,18})*|)(?:;(?:\d{1,18}(?:,\d{1,18})*|))*")
"""Shapes as torch_npu writes them: `8,16;;16`."""


def _dtypes(args: dict[str, Any]) -> list[Any] | None:
    types = args.get("Input type")
    if isinstance(types, str):  # torch_npu's
        types = types.split(";")
    return [_element(kind) for kind in types] if isinstance(types, list) else None


def _element(kind: object) -> object:
    if isinstance(kind, list):  # of a list of tensors
        return [_element(item) for item in kind]
    return dtype(kind)


def _generated_kernel(name: str, args: dict[str, Any]) -> str:
    """Write the call of a kernel generated by Inductor: its arguments and where its source is."""
    dims, dtypes, strides, values = (
        listed if isinstance(listed, list) else []
        for listed in (
            _dims(args),
            _dtypes(args),
            args.get("Input Strides"),
            args.get("Concrete Inputs"),
        )
    )
    inputs: list[Value] = []
    described = zip_longest(dims, dtypes, strides, values, fillvalue="")
    for shape, dtype, stride, value in islice(described, len(dims)):
        size = _sizes(shape)
        if dtype and size is not None:
            inputs.append(marker.Tensor(size, str(dtype), _sizes(stride)))
        else:
            inputs.append(_scalar(value))
    attributes = {
        key: args[key] for key in _KERNEL_ATTRIBUTES if isinstance(args.get(key), (str, int))
    }
    backend = args.get("kernel_backend", "cpp" if "cpp_fused_" in name else "triton")
    return marker.encode_op(marker.Call(str(backend), name, tuple(inputs), attributes))


def _sizes(value: object) -> tuple[int, ...] | None:
    if isinstance(value, list) and all(type(size) is int for size in value):
        return tuple(value)
    return None


def _scalar(text: object) -> Value:
    """Parse a concrete input that is a number or a truth value."""
    written = str(text)
    if re.fullmatch(r"-?\d+", written):
        return int(written)
    if re.fullmatch(r"-?\d+\.\d*(?:e[-+]?\d+)?", written):
        return float(written)
    return {"True": True, "False": False}.get(written, marker.Opaque())


def _collective(args: dict[str, Any]) -> str:
    """Write the call of a collective: what each rank puts in, and among how many ranks."""
    kind = _COLLECTIVE_DTYPES.get(str(args.get("dtype")))
    count = whole_number(args.get("In msg nelems"))
    inputs = () if count is None else (marker.Tensor((count,), kind),)
    attributes = {
        name: args[key]
        for key, name in _COLLECTIVE_ATTRIBUTES.items()
        if isinstance(args.get(key), (str, int))
    }
    return marker.encode_op(marker.Call("c10d", str(args["Collective name"]), inputs, attributes))


@lru_cache(maxsize=1 << 18)
def frame(name: str) -> tuple[str, str] | None:
    """Split `path(line): function` into (`path:line`, function); None for a builtin."""
    if name.startswith("<"):
        return None
    match = _CALL_STACK_FRAME.fullmatch(name)
    return (f"{match[1]}:{match[2]}", match[3]) if match else None


def trace(frames: Iterable[tuple[str, str]]) -> str:
    """Write a trace marker of frames, outermost first."""
    listed = list(frames)
    return marker.encode_trace([line for line, _ in listed], [name for _, name in listed])


def call_stack(stack: str) -> str:
    """Write the trace marker of a `Call stack`, which has the innermost frame first."""
    frames = [split_frame for part in stack.split(";") if (split_frame := frame(part.strip()))]
    return trace(reversed(frames)) if frames else ""


def hierarchy(modules: str) -> tuple[str, ...]:
    """Write the layers of a `Module Hierarchy`: `TOP(Net)::forward.conv1(Conv2d)::forward`."""
    names = (part.partition("::")[0] for part in modules.split("."))  # without the method
    return tuple(marker.encode_layer(name) for name in names if name.strip())
