"""Texts of pyprof.instrument.ops.payload equal those of pyprof.marker."""

import enum
import math
import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pyprof import marker
from pyprof.instrument.ops import payload
from tests.known import known

HEAD = payload.op_head("torch", "relu")


def described(*args: object, **kwargs: object) -> marker.Call:
    call = known(marker.decode_op(payload.op_text(HEAD, args, kwargs)))
    assert call.whole
    return call


def value(given_value: object) -> Any:
    return described(given_value).args[0]


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False),
    st.text(max_size=payload.MAX_STRING),
)
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=5).map(tuple), max_leaves=12)
SHAPES = st.lists(st.integers(0, 5), max_size=5).map(tuple)
DTYPES = st.sampled_from(["float32", "bfloat16", "int64", "bool", "complex64", "float8_e4m3fn"])


NAMED = st.dictionaries(st.from_regex(r"[a-z_]+", fullmatch=True), VALUES, max_size=3)


@given(st.lists(VALUES, max_size=4), NAMED)
def test_plain_arguments_decode_to_what_encode_op_writes(
    args: list[Any], kwargs: dict[str, Any]
) -> None:
    expected = marker.Call("torch", "relu", tuple(args), kwargs)
    assert described(*args, **kwargs) == marker.decode_op(marker.encode_op(expected))


@given(st.lists(st.tuples(SHAPES, DTYPES), max_size=4))
def test_tensors_decode_to_what_encode_op_writes(known: list[tuple[tuple[int, ...], str]]) -> None:
    tensors = [torch.empty(shape, dtype=getattr(torch, dtype)) for shape, dtype in known]
    expected = tuple(marker.Tensor(shape, dtype) for shape, dtype in known)
    call = marker.Call("torch", "relu", (*expected, expected), {"out": expected})
    assert described(*tensors, tensors, out=tensors) == marker.decode_op(marker.encode_op(call))


@pytest.mark.parametrize(
    ("tensor", "layout"),
    [
        (torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last), "channels_last"),
        (torch.ones(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d), "channels_last_3d"),
        (torch.ones(3, 4).t(), "transposed"),
        (torch.ones(5, 3, 4).mT, "transposed"),
        (torch.ones(3, 1).expand(3, 4), "expanded"),
        (torch.ones(4, 6)[:, ::2], "strided"),
        (torch.ones(4, 6)[:, :3], "strided"),
        (torch.ones(4), ""),
        (torch.tensor(1.0), ""),
    ],
)
def test_strides_of_non_contiguous_tensors_are_written(tensor: torch.Tensor, layout: str) -> None:
    stride = tensor.stride() if layout else None
    assert value(tensor) == marker.Tensor(tuple(tensor.shape), "float32", stride, layout)


@pytest.mark.parametrize(
    ("given_value", "expected"),
    [
        (torch.float16, "float16"),
        (torch.device("cuda", 1), "cuda:1"),
        (torch.channels_last, "channels_last"),
        (torch.strided, "strided"),
        (slice(1, None, 2), "1::2"),
        (slice(None), "::"),
        (Ellipsis, "..."),
        ((slice(None, 3), None, Ellipsis, 2), (":3:", None, "...", 2)),
        (np.ones((2, 3), "float32"), marker.Tensor((2, 3), "float32")),
        (np.float64(0.5), 0.5),
        (torch.Size([2, 3]), (2, 3)),
        ([[1, 2], [3]], ((1, 2), (3,))),
        ((), ()),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
        (torch.Generator(), marker.Opaque("Generator")),
        (1 + 2j, marker.Opaque("complex")),
        (enum.Enum("Colour", "RED").RED, marker.Opaque("Colour")),  # type: ignore[attr-defined]
        (2**70, marker.Opaque("int")),
    ],
    ids=lambda given: re.sub(r" at 0x\w+", "", repr(given)),
)
def test_other_arguments_are_written_by_value_or_type(
    given_value: object, expected: object
) -> None:
    assert value(given_value) == expected


def test_nan_and_infinity_are_written() -> None:
    assert math.isnan(value(math.nan))


def test_a_long_list_of_tensors_is_summarised() -> None:
    found = value([torch.empty(2, 3)] * 10_000)
    assert found == marker.Summary(
        10_000, 60_000, "float32", (marker.Tensor((2, 3), "float32"),) * 4
    )
    mixed = value([torch.empty(2), torch.empty(3, dtype=torch.int64)] * 50)
    assert (mixed.length, mixed.numel, mixed.dtype) == (100, 250, None)


def test_texts_are_bounded() -> None:
    deep: Any = torch.ones(1)
    for _ in range(100):
        deep = [deep]
    text = payload.op_text(HEAD, ["x" * 10_000, list(range(10_000)), deep, *range(1000)], {})
    assert len(text) < 8000
    assert marker.decode_op(text) is not None
    numbers = described(list(range(10_000))).args[0]
    assert isinstance(numbers, marker.Summary)
    assert numbers.length == 10_000


def test_an_argument_that_lies_about_itself_is_named_by_its_type() -> None:
    class Trap:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise AssertionError("nobody asked")

        def __repr__(self) -> str:
            raise AssertionError("nobody asked")

        def __getattr__(self, name: str) -> Any:
            raise AssertionError("nobody asked")

    assert value(Trap()) == marker.Opaque("Trap")


def test_names_with_quotes_are_kept_readable() -> None:
    for text in ("it's", 'say "x"', "back\\slash", "\ud800", "\0", "é"):
        assert value(text) == text
        assert payload.op_text(HEAD, (text,), {}).encode()


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapes of a program may never repeat."""
    monkeypatch.setattr(payload, "_MAX_TEXTS", 10)
    payload.forget()
    for size in range(50):
        assert value(torch.empty(size)) == marker.Tensor((size,), "float32")
    assert len(payload._texts) <= 10


_ARGUMENT = st.sampled_from([
    None, 0, 1, 2, True, False, 0.0, -0.0, 1.0, "x", "relu", (1,), [1], (1, 2), torch.Size([1]),
    torch.ones(1), torch.ones(2), torch.ones(1, dtype=torch.int64), torch.ones(2, 3).T,
])  # fmt: skip
_CALL = st.tuples(
    st.lists(_ARGUMENT, max_size=4), st.dictionaries(st.sampled_from("xyz"), _ARGUMENT, max_size=3)
)


@given(st.lists(_CALL))
def test_a_cached_marker_is_that_of_the_call(calls: list[tuple[list[Any], dict[str, Any]]]) -> None:
    payload.forget()
    for args, kwargs in calls:
        assert payload.op_text(HEAD, args, kwargs) == payload._write(HEAD, args, kwargs)


def test_any_number_of_arguments_is_possible() -> None:
    assert len(described(*[1] * 100_000).args) == payload.MAX_ARGS


def test_calls_with_equal_arguments_of_other_types_differ() -> None:
    x, t = torch.ones(2, 2), torch.ones(2, 2).t()
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}), ((True,), {}), ((1.0,), {}), (("1",), {}), ((None,), {}), ((1, 1), {}),
        (((1,),), {}), (((True,),), {}), (([1],), {}), ((), {"a": 1}), ((), {"b": 1}),
        ((1,), {"a": 1}), ((x,), {}), ((t,), {}), ((x, t), {}), ((t, x), {}), ((x,), {"a": t}),
        ((x.double(),), {}), ((x, (2, 1)), {}), ((), {}), ((), {"a": "b"}), (("a", "b"), {}),
        ((0,), {}), ((False,), {}), ((0.0,), {}), ((-0.0,), {}), (((1.0,),), {}),
    ]  # fmt: skip
    for _ in range(2):
        texts = [payload.op_text(HEAD, args, kwargs) for args, kwargs in calls]
        assert len(set(texts)) == len(calls)
    payload.forget()
    assert [payload.op_text(HEAD, *call) for call in reversed(calls)] == texts[::-1]


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
@pytest.mark.parametrize("index", [torch.int64, torch.int32])
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")  # some layouts are in a beta state
def test_a_sparse_tensor_has_its_stored_size(layout: str, index: torch.dtype) -> None:
    """Elements, zeros of blocks included, and bytes, those of indices included."""
    dense = torch.zeros(6, 8, dtype=torch.float16)
    dense[0, 0] = dense[3, 5] = dense[4, 1] = 1
    block = ((2, 2),) if layout.startswith("bs") else ()
    sparse = dense.to_sparse() if layout == "coo" else getattr(dense, f"to_sparse_{layout}")(*block)
    if layout in ("csr", "bsr"):
        members = [sparse.crow_indices().to(index), sparse.col_indices().to(index)]
        make: Any = torch.sparse_compressed_tensor
        sparse = make(*members, sparse.values(), (6, 8), layout=sparse.layout)
    elif layout == "coo":
        members = [sparse.indices()]
    else:
        members = [sparse.ccol_indices(), sparse.row_indices()]
    values = sparse.values()
    total = sum(member.numel() * member.element_size() for member in (*members, values))
    assert value(sparse) == marker.Tensor(
        (6, 8), "float16", subclass=f"sparse_{layout}", nnz=values.numel(), nbytes=total
    )
    assert values.numel() == (12 if block else 3)


class _Quantized(torch.Tensor):
    """Says float32, and stores a byte per element and a scale per row, as torchao's tensors."""

    quantized: torch.Tensor
    scale: torch.Tensor

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["quantized", "scale"], None

    @classmethod
    def __torch_dispatch__(cls, *_: object) -> None:
        raise AssertionError("an op was called")


def test_a_wrapper_has_the_size_of_the_tensors_inside() -> None:
    inner = torch.zeros(8, 6, dtype=torch.int8), torch.ones(8, 1)
    make: Any = torch.Tensor._make_wrapper_subclass
    wrapper = make(_Quantized, (8, 6), dtype=torch.float32)
    wrapper.quantized, wrapper.scale = inner
    assert value(wrapper) == marker.Tensor(
        (8, 6), "float32", subclass="_Quantized", nbytes=8 * 6 + 8 * 4
    )


@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_a_sparse_parameter_is_described_outside_its_graph() -> None:
    sparse = torch.eye(3).to_sparse_csr().requires_grad_()
    before = known(torch.ones(1, requires_grad=True).exp().grad_fn)
    assert value(sparse).nnz == 3
    after = known(torch.ones(1, requires_grad=True).exp().grad_fn)
    assert after._sequence_nr() - before._sequence_nr() == 1


class DTensor(torch.Tensor):
    """Stands for torch's, which needs a process group."""

    _local_tensor: torch.Tensor


def test_of_a_distributed_tensor_the_part_of_the_rank_is_told() -> None:
    whole = torch.ones(8, 4).as_subclass(DTensor)
    whole._local_tensor = torch.ones(4, 4)
    assert value(whole) == marker.Tensor((4, 4), "float32", subclass="DTensor")
