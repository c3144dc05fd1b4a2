"""Collectives by every name, and their bytes by the definitions of nccl-tests."""

from collections.abc import Callable

import pytest

from pyprof.marker import Call
from pyprof.ops import cost
from pyprof.ops.examples import f32
from pyprof.ops.torch.collectives import (
    FUNCTIONAL,
    FUNCTIONAL_OPS,
    bus_bytes,
    bus_factor,
    kind,
    message_bytes,
)
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.collectives")

SPELLINGS = {
    "all_reduce": "allreduce_ nccl:all_reduce c10d::allreduce_ AllReduce all_reduce_coalesced",
    "all_gather": "_allgather_base_ all_gather_into_tensor allgather_into_tensor_coalesced_",
    "reduce_scatter": "ReduceScatter _reduce_scatter_base_ reduce_scatter_tensor_coalesced",
    "all_to_all": "alltoall_base_ nccl:all_to_all all_to_allv all_to_all_single AllToAll",
    "send_recv": "SendRecv send isend irecv recv_ batch_isend_irecv",
    "broadcast": "broadcast_ _broadcast_oop",
    "reduce": "Reduce _reduce_oop reduce_",
    "barrier": "barrier monitored_barrier",
}
FACTORS: dict[str, Callable[[int], float]] = {
    # doc/PERFORMANCE.md of nccl-tests, "Bus Bandwidth", for n ranks
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "gather": lambda n: (n - 1) / n,
    "scatter": lambda n: (n - 1) / n,
    "broadcast": lambda _: 1,
    "reduce": lambda _: 1,
    "send_recv": lambda _: 1,
}


@pytest.mark.parametrize(("expected", "spellings"), SPELLINGS.items(), ids=SPELLINGS)
def test_a_collective_is_known_by_all_of_its_names(expected: str, spellings: str) -> None:
    assert {kind(name) for name in spellings.split()} == {expected}


@pytest.mark.parametrize("name", ["wait", "aten::add", "", "gemm"])
def test_other_names_are_not_collectives(name: str) -> None:
    assert kind(name) is None


@pytest.mark.parametrize("ranks", [2, 3, 4, 8, 64])
@pytest.mark.parametrize("name", FACTORS)
def test_bus_bytes_are_those_of_nccl_tests(name: str, ranks: int) -> None:
    """Algorithm bytes times the factor, which is bus bandwidth divided by algorithm bandwidth."""
    assert bus_factor(name, ranks) == pytest.approx(FACTORS[name](ranks))
    assert bus_bytes(name, 3 << 20, ranks) == round(FACTORS[name](ranks) * (3 << 20))


@pytest.mark.parametrize(
    ("name", "given", "got"),
    [
        ("all_gather", 256, 1024), ("gather", 256, 1024),
        ("reduce_scatter", 1024, 256), ("scatter", 1024, 256),
        ("all_to_all", 1024, 1024), ("all_reduce", 1024, 1024), ("broadcast", 1024, 1024),
    ],
)  # fmt: skip
def test_algorithm_bytes_are_what_all_ranks_hold_together(name: str, given: int, got: int) -> None:
    """As nccl-tests count: the pieces of all n ranks; c10d counts so on every rank."""
    assert message_bytes(name, given, got) == 1024


@pytest.mark.parametrize(
    ("name", "size"),
    [("all_reduce", 96), ("all_gather_tensor", 768), ("reduce_scatter_tensor", 96)],
)
def test_a_marker_gives_the_number_of_ranks(name: str, size: int) -> None:
    """Bus bytes and the result of a functional collective follow from it."""
    call = Call(FUNCTIONAL, name, (f32(24), "sum"), collective={"size": 8})
    params = cost(call).params
    assert (params["algo_bytes"], params["ranks"]) == (size, 8)
    assert params["bus_bytes"] == FACTORS[kind(name) or ""](8) * size
    assert "bus_bytes" not in cost(Call(FUNCTIONAL, name, call.args)).params
    alone = cost(Call(FUNCTIONAL, name, call.args, collective={"size": 1})).params
    assert (alone["ranks"], alone["bus_bytes"]) == (1, 0)


def test_tensors_may_be_named() -> None:
    tensors = {"output_tensor": f32(64), "input_tensor": f32(8)}
    found = cost(Call("torch.distributed", "all_gather_single", (), tensors))
    assert (found.bytes, found.params["ranks"]) == (4 * (64 + 8), 8)


@pytest.mark.parametrize("mod", [FUNCTIONAL, FUNCTIONAL_OPS])
def test_waiting_for_a_functional_collective_moves_nothing(mod: str) -> None:
    found = cost(Call(mod, "wait_tensor", (f32(4, 6),)))
    assert (found.flops, found.bytes) == (0, 0)
