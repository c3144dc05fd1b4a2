"""Products with a sparse factor: by its stored elements or unknown, never as if dense."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import pyprof
from pyprof import marker, ops
from pyprof.answers.remedies import explained
from pyprof.marker import Call, Tensor
from pyprof.ops.examples import f32
from tests.known import known
from tests.ops.contract import contract_of

test_formulas_keep_the_contract = contract_of("torch.linalg.gemm")

_CSR = Tensor((40, 60), "float32", subclass="sparse_csr")
_STORED = replace(_CSR, nnz=10, nbytes=10 * (4 + 8) + 41 * 8)
_DENSE, _LEFT = f32(60, 5), f32(7, 40)
_OUT = f32(40, 5)
_REASON = "sparse: how many elements are stored is not recorded"


def test_a_sparse_product_has_a_multiply_add_per_stored_element() -> None:
    """From either side; of the dense factor at most one row per stored element is read."""
    found = ops.cost(Call("Tensor", "__matmul__", (_STORED, _DENSE)))
    assert (found.flops, found.bytes) == (2 * 10 * 5, 448 + 4 * (10 * 5 + 40 * 5))
    assert found.params["nnz"] == 10
    found = ops.cost(Call("torch", "mm", (_LEFT, _STORED)))
    assert (found.flops, found.bytes) == (2 * 10 * 7, 448 + 4 * (10 * 7 + 7 * 60))
    vector = f32(60)
    found = ops.cost(Call("torch", "mv", (_STORED, vector)))
    assert (found.flops, found.bytes) == (2 * 10, 448 + 4 * (10 + 40))
    full = replace(_CSR, nnz=2400, nbytes=2400 * 12 + 41 * 8)
    found = ops.cost(Call("torch.sparse", "mm", (full, _DENSE)))
    assert (found.flops, found.bytes) == (2 * 40 * 60 * 5, 2400 * 12 + 328 + 4 * (300 + 200))


@pytest.mark.parametrize(
    "call",
    [
        Call("torch", "mm", (_CSR, _DENSE)),
        Call("torch", "matmul", (_LEFT, _CSR)),
        Call("torch", "addmm", (_OUT, _CSR, _DENSE)),
        Call("torch.sparse", "sampled_addmm", (_CSR, _LEFT, _DENSE)),
        Call("torch", "mul", (_CSR, 2)),
        Call("Tensor", "to_dense", (_STORED,)),
        Call("torch", "sum", (_CSR,)),
        Call("torch", "stack", ((_CSR, _CSR),)),
        Call("torch.nn.functional", "linear", (_LEFT, replace(_CSR, shape=(60, 40)))),
        Call("aten", "_sparse_mm", (Tensor((40, 60)), Tensor((60, 5)))),  # emit_nvtx: no layouts
        Call("aten", "_sparse_addmm", (_OUT, Tensor((40, 60)), Tensor((60, 5)))),
        Call("aten", "sparse_sampled_addmm", (Tensor((40, 5)), _LEFT, _DENSE)),
    ],
    ids=lambda call: f"{call.mod}.{call.op}",
)
@pytest.mark.parametrize("direction", ["fprop", "bprop"])
def test_sparse_tensors_never_count_as_dense(call: Call, direction: str) -> None:
    """Neither in FLOPs nor in bytes, and `why` says so; backward passes have no formula yet."""
    model = ops.find(call, direction)
    if model is not None and not model.work:
        return  # views cost nothing, of whatever
    found = ops.cost(call, direction)
    assert (found.flops, found.bytes) == (None, None)
    if call.op != "to_dense" and (direction == "fprop" or model):
        assert found.reason == _REASON


def test_a_product_of_two_sparse_tensors_is_unknown() -> None:
    """The indices decide how many elements meet."""
    square = replace(_STORED, shape=(40, 40))
    found = ops.cost(Call("torch", "mm", (square, _STORED)))
    assert (found.flops, found.bytes) == (None, None)
    assert "depends on the data" in found.reason


def test_what_is_stored_is_not_missing_where_only_a_formula_is() -> None:
    """SparseAdam adds a sparse tensor to a dense one."""
    dense, unstored = f32(40, 60), replace(_STORED, nnz=None, nbytes=None)
    assert ops.cost(Call("Tensor", "add_", (dense, unstored))).reason == _REASON
    reason = ops.cost(Call("Tensor", "add_", (dense, _STORED))).reason
    assert reason == "no formula for sparse tensors of add_"
    assert ops.cost(Call("torch", "add", (_STORED, _STORED))).flops is None
    assert "formula" in explained(reason)[1]
    assert "record_shapes" not in explained(_REASON)[1]  # it does not record it


def test_a_trace_writes_a_sparse_tensor_without_strides() -> None:
    """torch.profiler writes no layout; tensors without dimensions have no strides either."""
    text = marker.encode_seq(
        "aten::mm", sizes=[[40, 60], [60, 5]], dtypes=["float32", "float32"], strides=[[], [5, 1]]
    )
    call = known(marker.decode_seq(text).call)
    assert ops.cost(call).reason == _REASON
    assert not Tensor((), "float32", ()).sparse
    assert not Tensor((40, 60), "float32", None).sparse


def test_torchs_own_trace_of_sparse_products(tmp_path: Path) -> None:
    """No product in it is charged as a dense one."""
    torch = pytest.importorskip("torch")
    dense = torch.ones(60, 5)
    whole = torch.eye(40, 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a beta state, says torch
        factors = [whole.to_sparse(), whole.to_sparse_csr(), whole]
        with torch.profiler.profile(record_shapes=True) as made:
            torch.sparse.mm(factors[0], dense)
            for factor in factors[1:]:
                factor @ dense
    made.export_chrome_trace(str(tmp_path / "cpu.json"))
    rows = pyprof.load(tmp_path / "cpu.json")
    assert rows.flops.sum() == 2 * 40 * 60 * 5  # of the dense one alone
    assert (rows.why == _REASON).sum() >= 2


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_products_equal_brute_force(layout: str) -> None:
    torch = pytest.importorskip("torch")
    from pyprof.instrument.ops import payload  # noqa: PLC0415 - needs torch

    whole = torch.zeros(40, 60)
    whole[::7, ::11] = 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sparse = whole.to_sparse() if layout == "coo" else getattr(whole, f"to_sparse_{layout}")()
    text = payload.op_text(payload.op_head("torch", "mm"), (sparse, torch.ones(60, 5)), {})
    call = known(marker.decode_op(text))
    products = sum(2 for row in whole.tolist() for x in row if x for _ in range(5))
    assert ops.cost(call).flops == products
