"""Definitions in docs/numbers.md are those of the formulas, with sources."""

import re

import pytest

from pyprof import ops
from pyprof.marker import Call, Tensor
from pyprof.ops.examples import c64, f32
from tests.programs import TOP

TEXT = (TOP / "docs" / "numbers.md").read_text(encoding="utf-8")
_FUNCTIONAL = "torch.nn.functional"


def _half(*shape: int) -> Tensor:
    return Tensor(shape, "float16")


def _attention(**named: bool) -> Call:
    heads = (_half(2, 4, 64, 32),) * 3
    return Call(_FUNCTIONAL, "scaled_dot_product_attention", heads, dict(named))


def _conv(side: int, padding: int) -> Call:
    given = (_half(1, 3, side, side), _half(8, 3, 3, 3), None, (1, 1), (padding, padding))
    return Call(_FUNCTIONAL, "conv2d", given)


EXPANDED = Tensor((64, 64), "float16", (1, 0))

DEFINITIONS = [
    # words of the document, a call, and its FLOPs and bytes by arithmetic
    ("fused multiply-add | 2 |", Call("torch", "mm", (_half(3, 5), _half(5, 7))),
     2 * 3 * 5 * 7, 2 * (15 + 35 + 21)),
    ("20: exp, log", Call("torch", "exp", (_half(10),)), 200, 40),
    ("a multiply-add is 8", Call("torch", "mm", (c64(3, 5),
                                                 c64(5, 7))),
     8 * 3 * 5 * 7, 8 * (15 + 35 + 21)),
    ("copies, casts", Call("Tensor", "to", (_half(10),), {"dtype": "float32"}), 0, 20 + 40),
    ("A causal mask halves it", _attention(is_causal=True),
     2 * 2 * 4 * 64 * 64 * 32, 4 * 2 * 2 * 4 * 64 * 32),
    ("2 B H Sq Sk (D + Dv)", _attention(), 4 * 2 * 4 * 64 * 64 * 32, 4 * 2 * 2 * 4 * 64 * 32),
    ("A dimension of stride 0", Call("torch", "add", (_half(64, 64), EXPANDED)),
     64 * 64, 2 * (2 * 64 * 64 + 64)),
    ("In place: read and written", Call("Tensor", "mul_", (_half(10), 2.0)), 10, 40),
    ("zeros around a convolution's image are multiplied, but not read", _conv(8, 1),
     2 * 8 * 27 * 8 * 8, 2 * (3 * 64 + 8 * 27 + 8 * 64)),
    ("numbers and tensors written as numbers | 0 bytes", Call("torch", "add", (_half(10), 2.0)),
     10, 40),
]  # fmt: skip


@pytest.mark.parametrize(("words", "call", "flops", "moved"), DEFINITIONS)
def test_definitions_in_the_document_are_those_of_the_formulas(
    words: str, call: Call, flops: int, moved: int
) -> None:
    found = ops.cost(call)
    assert words in TEXT
    assert (found.flops, found.bytes) == (flops, moved), found


@pytest.mark.parametrize(
    ("name", "tensors", "words", "bus"),
    [
        # of 4 ranks: nccl-tests' algorithm bytes are 96 each
        ("all_reduce", (f32(24),), "all-reduce 2 S (n-1)/n", 2 * 96 * 3 // 4),
        ("all_gather_into_tensor", (f32(24), f32(6)),
         "S (n-1)/n", 96 * 3 // 4),
        ("reduce_scatter_tensor", (f32(6), f32(24)),
         "S (n-1)/n", 96 * 3 // 4),
        ("all_to_all_single", (f32(24),) * 2, "all-to-all S (n-1)/n", 96 * 3 // 4),
        ("broadcast", (f32(24), 0), "nccl-tests (doc/PERFORMANCE.md)", 96),
    ],
)  # fmt: skip
def test_bus_bytes_are_those_of_nccl_tests(
    name: str, tensors: tuple[Tensor, ...], words: str, bus: int
) -> None:
    found = ops.cost(Call("torch.distributed", name, tensors, {"world_size": 4})).params
    assert words in TEXT
    assert (found["algo_bytes"], found["ranks"], found["bus_bytes"]) == (96, 4, bus)


def test_every_definition_for_all_ops_has_a_source() -> None:
    table = TEXT.partition("## For all ops")[2].partition("\n\n**Backward")[0]
    rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\| .+ \|$", table, re.MULTILINE)]
    assert len(rows) > 10
    assert all(len(row) == 3 and all(cell.strip() for cell in row) for row in rows), rows
