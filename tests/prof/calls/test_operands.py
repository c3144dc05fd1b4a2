"""Gradients that a node repeats, against the strides that torch itself gives them."""

from dataclasses import replace
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from pyprof import marker, ops
from pyprof.marker import Tensor, encode_seq, statement
from pyprof.prof.calls.op_choice import choose
from pyprof.prof.calls.operands import with_expanded_strides
from pyprof.prof.kernels.kernel_context import KernelContext
from tests.ops.torch_calls import Recorder


def _division(shape: tuple[int, ...], *how: Any) -> tuple[marker.Call, Tensor]:  # noqa: ANN401 - as mean
    """Give the division of a mean's backward pass, and the mean's gradient."""
    mean = torch.zeros(shape, requires_grad=True).mean(*how)
    with Recorder() as recorder:
        mean.backward(torch.ones_like(mean))
    call = next(call for _, call, *_ in recorder.made if call.op == "div")
    return call, Tensor(tuple(mean.shape), "float32")


@pytest.mark.parametrize(
    ("shape", "how"),
    [
        ((2, 3, 7, 7), ((-1, -2), True)),
        ((2, 3, 7, 7), ((2, 3),)),
        ((2, 3, 7, 7), ((0,),)),
        ((2, 3, 7), ((1,),)),
        ((5, 4), ()),
        ((1, 4), ((0,), True)),
    ],
)
def test_what_a_mean_repeats_is_read_once(shape: tuple[int, ...], how: tuple[Any, ...]) -> None:
    """As many bytes without the strides as with them."""
    call, gradient = _division(shape, *how)
    first = call.args[0]
    assert isinstance(first, Tensor)
    bare = replace(call, args=(replace(first, stride=None), *call.args[1:]))
    sizes, dtypes = [[*gradient.shape]], [gradient.dtype]
    node = statement(encode_seq("MeanBackward1", sizes=sizes, dtypes=dtypes))
    assert ops.cost(with_expanded_strides(bare, node)).bytes == ops.cost(call).bytes


@pytest.mark.parametrize(
    ("node", "gradient", "repeats"),
    [
        ("MeanBackward1", [8, 16, 1, 1], True),
        ("DivBackward0", [8, 16, 1, 1], False),  # what is divided may be computed
        ("MeanBackward1", [8, 5, 1, 1], False),  # not its gradient
    ],
)
def test_a_row_in_a_means_backward(node: str, gradient: list[int], *, repeats: bool) -> None:
    """The op call that its kernels work for reads the small gradient, and no other call does."""
    seqs = (
        statement(encode_seq(node, seq=3, sizes=[gradient], dtypes=["float32"])),
        statement(encode_seq("aten::div", sizes=[[8, 16, 7, 7], []], dtypes=["float32", "int64"])),
    )
    found = choose(KernelContext(markers=(), seqs=seqs, backward=True)).cost()
    whole = 8 * 16 * 7 * 7
    assert found.bytes == 4 * (whole + (8 * 16 if repeats else whole))
