"""A small training capture whose ops, layers, lines and times are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyprof.marker import Call, Tensor, encode_layer, encode_op, encode_trace
from tests.builders import Range, Work, nsys_db

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "k<</script><img src=x onerror=alert(1)>|`*>"
"""A kernel's name that a page or a table could mistake for its own text."""


def op(name: str, *shape: int, dtype: str = "float32", mod: str = "torch") -> str:
    """Write the text of an op on one tensor."""
    return encode_op(Call(mod, name, (Tensor(shape, dtype),)))


def capture(path: Path, *, slower: float = 1, hostile: str = HOSTILE) -> Path:
    """Write two layers' kernels on one stream, a copy on another, and one kernel of nobody.

    `slower` multiplies the duration of the first layer's op.
    """
    relu = int(100 * slower)
    work = [
        Work("relu_kernel", (1000, 1000 + relu), call=(110, 120), stream=7),
        Work("relu_kernel", (2000, 2000 + relu), call=(130, 140), stream=7),
        Work("exp_kernel", (3000, 3300), call=(310, 320), stream=7),
        Work(hostile, (3400, 3450), call=(910, 920), stream=7),
        Work("copy", (1050, 1250), call=(510, 520), kind="memcpy", stream=8),
    ]
    ranges = [
        Range(encode_layer("net"), (100, 400)),
        Range(encode_layer("net.first"), (101, 200)),
        Range(encode_trace(("/home/me/train.py:7", "/home/me/model.py:12")), (102, 150)),
        Range(op("relu", 16, 8), (103, 125)),
        Range(op("relu", 16, 8), (126, 149)),
        Range(encode_layer("net.second"), (300, 390)),
        Range(encode_trace(("/home/me/train.py:7", "/home/me/model.py:30")), (302, 350)),
        Range(op("exp", 16, 8), (303, 330)),
    ]
    return nsys_db(path, work, ranges)
