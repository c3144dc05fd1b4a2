"""Values in markers."""

import pytest

from pyprof.marker import Tensor, is_backward, is_node_name


@pytest.mark.parametrize(
    ("tensor", "sparse"),
    [
        (Tensor((4, 4), stride=(4, 1)), False),
        (Tensor((4, 4)), False),
        (Tensor((4, 4), stride=()), True),
        (Tensor((), stride=()), False),
        (Tensor((4, 4), subclass="sparse_csr"), True),
    ],
)
def test_a_tensor_is_sparse_by_its_layout_or_without_strides(
    tensor: Tensor, *, sparse: bool
) -> None:
    assert tensor.sparse is sparse


@pytest.mark.parametrize(
    ("name", "generated"),
    [
        *(("AddmmBackward0", True), ("NativeLayerNormBackward0", True)),
        *(("MulBackward0_copy", True), ("Backward", False)),
    ],
)
def test_generated_nodes_are_known_by_their_names(name: str, *, generated: bool) -> None:
    assert is_node_name(name) is generated
    assert is_backward(name)
