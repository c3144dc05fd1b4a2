"""What a recorded subscript reads and writes, compared with torch."""

from typing import Any

import pytest

from pyprof import marker, ops
from pyprof.instrument.ops.payload import op_head, op_text
from pyprof.marker import Call, Opaque, Tensor, Value
from pyprof.ops.examples import f32, i64
from tests.known import known
from tests.ops.contract import contract_of
from tests.ops.test_bytes import written_bytes

torch: Any = pytest.importorskip("torch")
test_formulas_keep_the_contract = contract_of("torch.tensors.indexing")
ROWS = torch.tensor([[0, 1, 2]])
COLUMNS = torch.tensor([1])
PICKING: list[Any] = [
    ROWS,
    (0, ROWS),
    (ROWS, -1),
    (slice(None), ROWS),
    (slice(1, 5, 2), ROWS),
    (slice(-2, None), ROWS),
    (None, ROWS),
    (ROWS, None),
    (..., ROWS),
    (ROWS, ...),
    (0, ..., ROWS),
    (ROWS, ..., COLUMNS),
    (ROWS, slice(None), COLUMNS),
    (ROWS, COLUMNS),
]


def _call(name: str, *args: object) -> marker.Call:
    return known(marker.decode_op(op_text(op_head("Tensor", name), args, {})))


@pytest.mark.parametrize("where", PICKING, ids=str)
def test_index_tensors_pick_as_many_elements_as_in_torch(where: Any) -> None:  # noqa: ANN401 - any subscript
    x = torch.zeros(5, 4, 6)
    picked = x[where]
    call = _call("__getitem__", x, where)
    given = where if isinstance(where, tuple) else (where,)
    indices = sum(item.nbytes for item in given if isinstance(item, torch.Tensor))
    assert written_bytes(call) == picked.nbytes
    assert ops.cost(call).bytes == indices + 2 * picked.nbytes
    assert ops.cost(call, "bprop").flops == picked.numel()


@pytest.mark.parametrize(
    "where", [*PICKING, 0, slice(1, 3), (..., 0), (None, slice(1, None), 2)], ids=str
)
def test_an_assignment_writes_what_its_subscript_selects(where: Any) -> None:  # noqa: ANN401 - any subscript
    x = torch.zeros(5, 4, 6)
    for value in (1.0, torch.ones(())):
        x[where] = value
        assert written_bytes(_call("__setitem__", x, where, value)) == x[where].nbytes


@pytest.mark.parametrize("where", [torch.zeros(5, dtype=torch.bool), (0, [True] * 4), "name", 2.5])
def test_results_that_depend_on_data_are_unknown(where: object) -> None:
    """A mask picks as many elements as it has ones."""
    found = ops.cost(_call("__getitem__", torch.zeros(5, 4), where))
    assert found.bytes is None
    assert found.reason


@pytest.mark.parametrize(("indices", "index_bytes"), [(i64(2), 16), (Opaque(), 0)])
def test_indices_that_were_not_recorded_are_not_counted(indices: Value, index_bytes: int) -> None:
    """The result's shape, known from elsewhere, is enough for what is picked."""
    found = ops.cost(Call("aten", "index", (f32(5, 6), (indices,))), output=(2, 6))
    assert found.bytes == index_bytes + 2 * 4 * 12


def test_a_repeated_table_is_read_once() -> None:
    """At most one row is read from a table whose rows are one in memory."""
    table = Tensor((5, 5), "float32", (0, 1))
    places = i64(5, 2)
    assert ops.cost(Call("torch", "gather", (table, 1, places))).bytes == 10 * 8 + 4 * (5 + 10)
