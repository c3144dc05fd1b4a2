"""Unchanged by init(): autograd, transforms, subclasses, modes, and results to the bit."""

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention.bias import causal_lower_right
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import pyprof
from pyprof import marker
from tests.instrument.conftest import Recorder
from tests.known import known


def training_run() -> list[torch.Tensor]:
    """Train a small net with everything that draws random numbers; return all results."""
    torch.manual_seed(7)
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(),
        nn.Linear(144, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    found = []
    for _ in range(3):
        x = torch.randn(2, 1, 8, 8)
        x[:, :, 0] += 1
        loss = F.cross_entropy(net(x), torch.randint(10, (2,)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        found.append(loss.detach())
    return [*found, *(p.detach() for p in net.parameters()), torch.get_rng_state()]


def test_results_and_random_state_are_equal_to_the_bit(recorder: Recorder) -> None:
    expected = training_run()
    pyprof.init(force=True)
    found = training_run()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert recorder.depth == 0


def test_no_value_is_read(listening: Recorder) -> None:
    seen: list[str] = []

    class Spy(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, _types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    scalar, x = torch.tensor(2.0), torch.ones(2, 3)
    with Spy():
        torch.mul(x, scalar)
        torch.cat([x, x.t().contiguous().t()])
    assert seen == ["aten.mul.Tensor", "aten.t.default", "aten.clone.default", "aten.t.default",
                    "aten.cat.default"]  # fmt: skip
    assert "mul" in listening.ops


@pytest.mark.parametrize(
    "scope", [torch.no_grad, torch.inference_mode, torch.enable_grad], ids=lambda s: s.__name__
)
def test_grad_modes_are_kept(scope: Callable[[], Any], listening: Recorder) -> None:
    x = torch.ones(2, requires_grad=True)
    with scope():
        enabled = torch.is_grad_enabled()
        y = torch.sigmoid(x) * 2
        assert torch.is_grad_enabled() is enabled
    assert y.requires_grad is enabled
    assert y.is_inference() is (scope is torch.inference_mode)
    assert "sigmoid" in listening.ops


def test_autocast_is_kept(listening: Recorder) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        result = F.linear(torch.ones(2, 3), torch.ones(4, 3))
    assert result.dtype == torch.bfloat16
    weight = listening.calls[-1].args[1]
    assert weight == marker.Tensor((4, 3), "float32")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit")  # its own use of it
def test_transforms(recorder: Recorder) -> None:
    net = nn.Linear(3, 3)
    x = torch.arange(6.0).view(2, 3)

    def loss(weights: dict[str, torch.Tensor], row: torch.Tensor) -> torch.Tensor:
        return F.gelu(torch.func.functional_call(net, weights, (row,))).pow(2).sum()

    def everything() -> list[torch.Tensor]:
        weights: dict[str, Any] = dict(net.named_parameters())
        per_row = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, x)
        pushed = torch.func.jvp(lambda row: F.softmax(row, -1).sin(), (x,), (x,))
        jacobian = torch.func.jacrev(lambda row: torch.cumsum(row, 0))(x[0])
        return [*per_row.values(), *pushed, jacobian]

    expected = everything()
    pyprof.init(force=True)
    found = everything()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert "gelu" in recorder.ops


@pytest.mark.filterwarnings("ignore:.*autocast.*is deprecated")  # its own use of it
def test_activation_checkpointing(listening: Recorder) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
    x = torch.ones(2, 4, requires_grad=True)
    for reentrant in (True, False):
        listening.clear()
        checkpoint(net, x, use_reentrant=reentrant).sum().backward()
        assert listening.ops.count("gelu") == 2
        assert listening.depth == 0


def test_custom_autograd_functions(listening: Recorder) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
            return grad.mul(2)

    x = torch.ones(2, requires_grad=True)
    y = Double.apply(x)
    assert type(y.grad_fn).__name__ == "DoubleBackward"
    y.sum().backward()
    assert known(x.grad).tolist() == [2, 2]
    assert {"__mul__", "mul"} <= set(listening.ops)


def test_meta_and_fake_tensors(listening: Recorder) -> None:
    """Both work; fake ones, which launch nothing, have no markers."""
    result = F.conv2d(torch.ones(1, 3, 8, 8, device="meta"), torch.ones(4, 3, 3, 3, device="meta"))
    assert result.shape == (1, 4, 6, 6)
    assert "conv2d" in listening.ops
    listening.clear()
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2, 3))
        assert torch.relu(fake).shape == (2, 3)
        assert nn.Linear(3, 3)(fake).shape == (2, 3)
    assert not {"relu", "linear"} & set(listening.ops)
    assert (fake + 1).shape == (2, 3)
    assert listening.calls[-1].args[0] == marker.Tensor((2, 3), "float32", subclass="FakeTensor")


class Quiet(torch.Tensor):
    """A subclass that overrides nothing."""


class Loud(torch.Tensor):
    """A subclass with tables of its own, filled before init."""

    seen: list[Any] = []  # noqa: RUF012 - cleared by the test
    table = {torch.relu: "relu", torch.Tensor.add: "add", F.linear: "linear", F.dropout: "drop"}  # noqa: RUF012 - constant

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        is_linear = func is F.linear or func is F.dropout or func is torch.relu
        cls.seen.append((cls.table.get(func), is_linear))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_subclasses_find_the_functions_that_they_know(recorder: Recorder) -> None:
    def calls(x: torch.Tensor) -> list[Any]:
        Loud.seen.clear()
        weight = torch.ones(3, 3)
        for result in (torch.relu(x), F.linear(x, weight), F.dropout(x, 0.0)):
            assert type(result) is Loud
        x.add(1)
        torch.cat([x, x])
        return list(Loud.seen)

    loud = torch.ones(2, 3).as_subclass(Loud)
    expected = calls(loud)
    assert ("linear", True) in expected
    pyprof.init(force=True)
    assert calls(loud) == expected
    assert "linear" in recorder.ops
    pyprof.stop()
    assert calls(loud) == expected
    pyprof.init(emit="profiler")  # none records
    assert calls(loud) == expected


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("recorded", [False, True])
def test_attention_takes_masks_and_nested_tensors(recorded: bool) -> None:  # noqa: FBT001 - a parameter
    """Torch's own classes tell attention by the function's identity, at two homes."""

    def attend() -> list[torch.Tensor]:
        query, key = torch.ones(1, 1, 2, 4), torch.arange(12.0).view(1, 1, 3, 4)
        parts = [torch.ones(2, 2, 4), torch.ones(3, 2, 4)]
        jagged = torch.nested.nested_tensor(parts, layout=torch.jagged).transpose(1, 2)
        masked = F.scaled_dot_product_attention(query, key, key, causal_lower_right(2, 3))
        nested = F.scaled_dot_product_attention(jagged, jagged, jagged)
        return [masked, nested.transpose(1, 2).contiguous().values()]

    expected = attend()
    pyprof.init(emit="profiler")
    with torch.profiler.profile() if recorded else nullcontext():
        found = attend()
    assert all(map(torch.equal, found, expected))


def test_a_subclass_that_overrides_nothing_is_marked_once(listening: Recorder) -> None:
    quiet = torch.ones(2, 3).as_subclass(Quiet)
    listening.clear()
    assert type(torch.relu(quiet)) is Quiet
    assert type(quiet.add(1)) is Quiet
    assert listening.ops == ["relu", "add"]
    assert listening.calls[0].args == (marker.Tensor((2, 3), "float32", subclass="Quiet"),)


def test_function_modes_see_the_same_functions(recorder: Recorder) -> None:
    class Log(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[Any] = []

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append((func.__name__, func is torch.relu, func == torch.zeros))
            return func(*args, **(kwargs or {}))

    def calls() -> list[Any]:
        with Log() as log:
            torch.relu(torch.zeros(2)).add(1)
        return log.seen

    expected = calls()
    pyprof.init(force=True)
    recorder.clear()
    assert calls() == expected
    assert recorder.ops == ["zeros", "relu", "add"]


@pytest.mark.slow
def test_default_devices(recorder: Recorder) -> None:
    pyprof.init(force=True)
    with torch.device("meta"):
        assert torch.zeros(2).device.type == "meta"
        assert nn.Linear(2, 2).weight.device.type == "meta"
    pyprof.stop()
    with torch.device("meta"):
        assert torch.ones(2).device.type == "meta"
    assert recorder.depth == 0


def test_nested_sparse_and_quantized_tensors(listening: Recorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # prototypes, say torch's own warnings
        nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)])
        jagged = torch.nested.nested_tensor(
            [torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged
        )
        quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    sparse = torch.eye(3).to_sparse()
    listening.clear()
    torch.relu(nested)
    torch.sin(jagged)
    torch.sparse.mm(sparse, torch.ones(3, 2)).relu()
    sparse.mul(2)
    quantized.dequantize()
    args = {call.op: call.args[0] for call in listening.calls}
    assert args["relu"] != ()
    assert args["mul"] == marker.Tensor(
        (3, 3), "float32", subclass="sparse_coo", nnz=3, nbytes=3 * (4 + 2 * 8)
    )
    assert args["mm"] == args["mul"]
    assert args["dequantize"] == marker.Tensor((2,), "quint8")
    assert any("'class': 'NestedTensor'" in text for text in listening.texts)


@pytest.mark.slow
def test_a_model_that_keeps_a_function_is_pickled(recorder: Recorder) -> None:
    layer = nn.TransformerEncoderLayer(4, 1, 4, activation=F.silu)
    pyprof.init(force=True)
    kept_later = nn.TransformerEncoderLayer(4, 1, 4, activation=F.leaky_relu)
    twins = pickle.loads(pickle.dumps([layer, kept_later]))  # noqa: S301 - our own
    assert twins[0].activation is F.silu
    twins[0](torch.ones(1, 4))
    assert "silu" in recorder.ops
    pickled = pickle.dumps(kept_later)
    pyprof.stop()
    assert pickle.loads(pickled).activation is F.leaky_relu  # noqa: S301 - our own


@pytest.mark.slow
def test_copies_and_pickles_of_modules(listening: Recorder) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.TransformerEncoderLayer(3, 1, 4))
    net(torch.ones(1, 3))
    twin = pickle.loads(pickle.dumps(copy.deepcopy(net)))  # noqa: S301 - our own
    stored = io.BytesIO()
    torch.save(net.state_dict(), stored)
    stored.seek(0)
    twin.load_state_dict(torch.load(stored, weights_only=True))
    assert b"pyprof" not in pickle.dumps(net)
    net.eval(), twin.eval()
    assert torch.equal(net(torch.ones(1, 3)), twin(torch.ones(1, 3)))
    assert "0" in listening.layers
