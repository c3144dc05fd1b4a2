"""Windows of images and columns, compared with torch."""

import itertools
from typing import Any

import pytest

from pyprof import ops
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.nn.image_columns")

NN = "torch.nn.functional"
IMAGE = (2, 3, 9, 8)
WINDOWS = [
    {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
    for kernel, dilation, padding, stride in itertools.product(
        (2, (3, 2)), (1, 2), (0, (2, 1)), (1, (2, 3))
    )
]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_bytes_are_those_of_torchs_tensors(window: dict[str, Any]) -> None:
    """With padding, dilation and strides; both directions of a copy have the same size."""
    torch: Any = pytest.importorskip("torch")
    from tests.ops.torch_calls import python_call  # noqa: PLC0415 - needs torch

    image = torch.zeros(IMAGE)
    columns = torch.nn.functional.unfold(image, **window)
    moved = (image.numel() + columns.numel()) * 4
    unfold = ops.cost(python_call(NN, "unfold", image, **window))
    fold = ops.cost(python_call(NN, "fold", columns, IMAGE[2:], **window))
    assert (unfold.flops, unfold.bytes) == (0, moved)
    assert (fold.flops, fold.bytes) == (columns.numel(), moved)
