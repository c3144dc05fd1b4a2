"""Values in markers."""

import pytest

from pyprof.marker import Call, Tensor, is_backward, is_node_name


def test_calls_with_equal_arguments_are_equal_and_hash_alike() -> None:
    one, other = (Call("torch", "add", (Tensor((2,)), 1), {"alpha": 2}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


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
    tensor: Tensor,
    sparse: bool,  # noqa: FBT001 - a case
) -> None:
    assert tensor.sparse is sparse


@pytest.mark.parametrize(
    "name", ["AddmmBackward0", "NativeLayerNormBackward0", "MulBackward0_copy"]
)
def test_generated_nodes_are_known_by_their_names(name: str) -> None:
    assert is_node_name(name)
    assert is_backward(name)


def test_a_users_backward_is_no_generated_node() -> None:
    assert not is_node_name("Backward")
    assert is_backward("Backward")
