"""Which formula a call finds: spellings, namespaces, users' own ops."""

import subprocess
import sys

import pytest

from pyprof import ops
from pyprof.marker import Call
from pyprof.ops import Args, Work, registry
from pyprof.ops.examples import b8, bf16, f8, f32
from pyprof.ops.registry import FAMILIES, OTHER
from tests.known import known

X = f32(4, 6)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", ("add", False)),
        ("add_", ("add", True)),
        ("__add__", ("add", False)),
        ("__radd__", ("add", False)),
        ("__iadd__", ("add", True)),
        ("__rsub__", ("sub", False)),
        ("__invert__", ("bitwise_not", False)),
        ("__rshift__", ("bitwise_right_shift", False)),
        ("__rrshift__", ("bitwise_right_shift", False)),
        ("__rpow__", ("rpow", False)),
        ("__irshift__", ("bitwise_right_shift", True)),
        ("__iand__", ("bitwise_and", True)),
        ("__itruediv__", ("div", True)),
        ("__rfloordiv__", ("floor_divide", False)),
        ("__imatmul__", ("matmul", True)),
        ("add.Tensor", ("add", False)),
        ("_softmax", ("_softmax", False)),
    ],
)
def test_in_place_reflected_and_overloaded_forms_are_one_op(
    name: str, expected: tuple[str, bool]
) -> None:
    assert registry.plain_name(name) == expected


@pytest.mark.parametrize(
    "mod", ["torch", "Tensor", "torch.Tensor", "torch.nn.functional", "aten", "", "torch._C._nn"]
)
def test_every_torch_namespace_finds_the_formula(mod: str) -> None:
    assert ops.known(Call(mod, "relu", (X,)))
    assert ops.cost(Call(mod, "relu", (X,))).flops == 24


@pytest.mark.parametrize("mod", ["mylib", "Relu", "torch::autograd", "torch.distributed", "c10d"])
def test_other_namespaces_do_not_find_torchs_formulas(mod: str) -> None:
    """Another library's op may have the same name."""
    found = ops.cost(Call(mod, "relu", (X,)))
    assert (found.flops, found.bytes, found.reason) == (None, None, "unknown op relu")
    assert not ops.known(Call(mod, "relu", (X,)))


def test_a_view_is_known_to_move_nothing_and_yet_is_not_an_op_that_counts() -> None:
    """Its cost is zero, not unknown; `known` is false, so the op around it is charged."""
    call = Call("Tensor", "view", (X, 24))
    found = ops.cost(call)
    model = known(ops.find(call))
    assert (found.flops, found.bytes, found.reason) == (0, 0, "")
    assert not model.work
    assert not ops.known(call)


def _nothing(a: Args) -> Work:
    return Work(a.tensor("input").numel)


def _twice(a: Args) -> Work:
    return Work(2 * a.tensor("input").numel)


def test_a_duplicate_name_raises(scratch: None) -> None:  # noqa: ARG001 - it restores
    """Unless the second formula says that it replaces the first."""
    with pytest.raises(ValueError, match=r"has a formula already: pyprof\.ops\.\S+$"):
        ops.op("relu", signature="Tensor input")(_twice)
    ops.op("relu", signature="Tensor input", replaces=True)(_twice)
    assert ops.find(Call("torch", "relu")).formula is _twice  # type: ignore[union-attr]


def test_a_backward_pass_has_the_signature_of_its_forward_op(scratch: None) -> None:  # noqa: ARG001
    """And its example; if there is no single forward op, its own."""
    with pytest.raises(ValueError, match=r"ops mylib::twice: no signature"):
        ops.op("mylib::twice", direction=ops.BPROP)(_twice)
    with pytest.raises(ValueError, match=r"ops linear, relu: no signature"):
        ops.op("linear", "relu", direction=ops.BPROP, replaces=True)(_twice)
    example = Call("mylib", "twice", (X,))
    ops.op("mylib::twice", signature="Tensor input", example=example)(_twice)
    ops.op("mylib::twice", direction=ops.BPROP)(_twice)
    model = known(ops.find(example, ops.BPROP))
    assert (model.signatures, model.example) == (("Tensor input",), example)


def test_a_failing_formula_is_a_reason(scratch: None) -> None:  # noqa: ARG001 - it restores
    @ops.op("mylib::broken", signature="Tensor input")
    def broken(a: Args) -> Work:
        return Work(1 // (a.tensor("input").numel - 24))

    found = ops.cost(Call("mylib", "broken", (X,)))
    assert broken is not None
    assert (found.flops, found.bytes) == (None, None)
    assert found.reason.startswith("failed formula: ZeroDivisionError")


def test_costs_need_no_torch() -> None:
    """Reports are made where torch is not installed."""
    code = (
        "import sys, pyprof.ops; pyprof.ops.models(); "
        "print([name for name in ('torch', 'pandas', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["__bool__", "__float__", "__int__", "__len__"])
def test_python_conversions_are_not_casts(name: str) -> None:
    """`bool(tensor)` reads one element on the host; `tensor.bool()` casts them all."""
    assert not ops.known(Call("Tensor", name, (X,)))
    assert ops.known(Call("Tensor", "bool", (X,)))


def test_equal_numbers_of_different_kinds_are_not_mixed_up() -> None:
    """1, 1.0 and True are equal keys of a cache, but three results in torch."""
    mask = b8(8)
    found = {repr(n): ops.cost(Call("torch", "add", (mask, n))).bytes for n in (True, 1, 1.0)}
    assert found == {"True": 8 + 8, "1": 8 + 64, "1.0": 8 + 32}


def test_libraries_ops_are_not_torchs_of_the_same_name() -> None:
    """The result of vLLM's `_C::rms_norm` comes first; other ops of `_C` are unknown."""
    out, x = f8(4, 6), bf16(4, 6)
    w = bf16(6)
    assert ops.cost(Call("_C", "rms_norm", (out, x, w, 1e-6))).bytes == 24 + 48 + 12
    assert ops.find(Call("_C", "relu", (x,))) is None
    assert ops.find(Call("torch._C._nn", "relu", (x,))) is not None


def test_names_that_are_numbered_anew_in_each_process_are_known() -> None:
    """SGLang's profiler appends a counter to the names of what it wraps."""
    for number in ("", "_100", "_7"):
        assert ops.find(Call("sglang_profiler", f"attention_paged_attention_ragged{number}"))


def test_every_formula_of_the_package_states_its_family() -> None:
    own = [m for m in ops.models() if m.formula.__module__.startswith("pyprof.ops.")]
    assert {m.family for m in own} <= set(FAMILIES)
    assert [m.names for m in own if m.family == OTHER] == []
    called = {
        ("torch", "chain_matmul"): "gemm",
        ("torch", "kron"): "pointwise",
        ("", "triton_tem_fused_mm_0"): "gemm",
        ("", "triton_tem_fused_flex_attention_0"): "attention",
        ("", "triton_tem_fused_convolution_1"): "conv",
        ("", "triton_poi_fused_add_0"): "fused",
        ("torch", "embedding"): "embedding",
    }
    found = {key: ops.find(Call(*key)) for key in called}
    assert {key: model.family for key, model in found.items() if model} == called


def test_a_family_is_stated_by_the_formula_its_module_or_the_forward_op(
    scratch: None,  # noqa: ARG001 - it restores
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def family(name: str, direction: str = ops.FPROP) -> str:
        model = known(ops.find(Call("mylib", name), direction))
        return model.family

    ops.op("mylib::mix", signature="Tensor input")(_nothing)
    ops.op("mylib::fold", signature="Tensor input", family="gemm")(_nothing)
    ops.op("mylib::fold", direction=ops.BPROP)(_nothing)
    assert (family("mix"), family("fold"), family("fold", ops.BPROP)) == ("other", "gemm", "gemm")
    monkeypatch.setattr(sys.modules[__name__], "FAMILY", "moe", raising=False)
    ops.op("mylib::route", signature="Tensor input")(_nothing)
    ops.op("mylib::sort", signature="Tensor input", family="index")(_nothing)
    assert (family("route"), family("sort")) == ("moe", "index")


def test_an_unknown_family_raises(scratch: None) -> None:  # noqa: ARG001 - it restores
    """A misspelt one would silently charge all kernels of the call."""
    with pytest.raises(ValueError, match=r"no family 'gem' of ops; families are gemm, conv, "):
        ops.op("mylib::mix", signature="Tensor input", family="gem")(_nothing)
