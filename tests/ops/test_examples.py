"""A worked example names its formula's op unless it names another."""

import pytest

from pyprof.marker import Call
from pyprof.ops.examples import Example, bf16


@pytest.mark.parametrize(
    ("name", "mod", "op"),
    [
        ("relu", "torch", "relu"),
        ("aten::addmm", "aten", "addmm"),
        ("torch.linalg.qr", "torch.linalg", "qr"),
        ("mylib.inner::mix", "mylib.inner", "mix"),
    ],
)
def test_an_examples_namespace_is_that_of_its_name(name: str, mod: str, op: str) -> None:
    x = bf16(2, 3)
    assert Example((x,)).call(name) == Call(mod, op, (x,))
    assert Example((x,), mod="aten", op="relu_").call(name) == Call("aten", "relu_", (x,))
