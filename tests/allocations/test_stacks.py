"""The user's line and the op, from a stack."""

from pathlib import Path

import pytest

from pyprof.allocations import read
from tests.allocations import built

_OPS_ADD = ("at::_ops::add_Tensor::call(at::Tensor const&, at::Tensor const&)", "??", 0)
_OPS_EMPTY = ("at::_ops::empty_memory_format::call(c10::ArrayRef<c10::SymInt>)", "??", 0)
_METHOD = ("torch::autograd::THPVariable_add(_object*, _object*, _object*)", "??", 0)


@pytest.mark.parametrize(
    ("stack", "line", "op"),
    [
        ((built.CALL, built.user(10), built.user(2)), "/home/user/train.py:10", None),
        ((_OPS_EMPTY, _OPS_ADD, _METHOD, built.user(4)), "/home/user/train.py:4", "add"),
        ((_OPS_EMPTY, _OPS_ADD, built.user(4)), "/home/user/train.py:4", "add_Tensor"),
        ((_OPS_EMPTY, built.NODE, built.ENGINE), None, "MmBackward0"),
        ((), None, None),
    ],
)
def test_a_stack_gives_line_and_op(
    tmp_path: Path, stack: tuple[built.Frame, ...], line: str | None, op: str | None
) -> None:
    """The user's innermost line; the op as called in Python, else in autograd or torch."""
    device = built.Device()
    device.alloc(1, built.user(99))
    device.alloc(2, *stack)
    (recorded,) = read.read(built.write(tmp_path / "x.pickle", device)).devices
    labels = recorded.history.labels
    row = recorded.history.blocks.bytes.tolist().index(2)
    assert [labels[name].at([row])[0] for name in ("line", "op")] == [line, op]  # type: ignore[arg-type]
