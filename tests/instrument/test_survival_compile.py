"""Unchanged by init(): all of torch that reads, traces or compiles the user's code."""

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
import torch._dynamo
import torch.fx
import torch.nn.functional as F  # noqa: N812 - everyone calls it so
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.fx.experimental.proxy_tensor import make_fx

import pyprof
from pyprof.instrument.ops.op import isinstance_op
from tests.instrument.conftest import Recorder

pytestmark = [
    pytest.mark.usefixtures("recorder"),  # which checks that every range is closed
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch.jit, and torch's own imports
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
BEFORE_OR_AFTER = pytest.mark.parametrize(
    "when", [pytest.param("before", marks=pytest.mark.slow), "after"]
)


@pytest.fixture(autouse=True)
def _fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def instrumented(when: str, make: Callable[[], Any]) -> Any:
    """Make something after init() or before it, which then is on."""
    if when == "before":
        pyprof.init(force=True)
    made = make()
    pyprof.init(force=True)
    return made


def annotated() -> AbstractContextManager[object]:
    """Name what is compiled; torch 2.4 traces through no context manager that takes arguments."""
    return nullcontext() if torch.__version__.startswith("2.4") else pyprof.annotate("mixed")


def mixed(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Call ops of every home, and annotate."""
    with annotated():
        y = F.linear(x, w)
        y = torch.relu(y) + x.sum()
        y = F.dropout(y, 0.5, training=False).add(1).contiguous().to(torch.float64)
        y = y[0:1] * 2
        return F.gelu(y), torch.cat([y, y]), F.max_pool2d(x[None, None], 1), torch.linalg.norm(y)


def model() -> nn.Module:
    return nn.Sequential(
        nn.Linear(4, 4),
        nn.ReLU(),
        nn.LayerNorm(4),
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, dropout=0.0),
    )


ARGS = (torch.arange(12.0).view(3, 4), torch.ones(4, 4))


def compiled(function: Callable[..., Any]) -> tuple[Callable[..., Any], CompileCounterWithBackend]:
    """Compile in one piece, counting how often."""
    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(function, backend=counter, fullgraph=True), counter


@pytest.mark.slow
def test_compiled_functions_are_left_alone(recorder: Recorder) -> None:
    expected = mixed(*ARGS)
    pyprof.init(force=True)
    function, counter = compiled(mixed)
    results = [function(*ARGS) for _ in range(3)]
    assert counter.frame_count == 1
    targets = [node.target for graph in counter.graphs for node in graph.graph.nodes]
    assert not [target for target in targets if isinstance_op(target)]
    recorder.clear()
    function(*ARGS)
    assert recorder.calls == []
    for result in results:
        assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))


@pytest.mark.slow
def test_functions_compiled_before_init_are_compiled_once_more(recorder: Recorder) -> None:
    """Guards compare functions by identity."""
    function, counter = compiled(mixed)
    expected = function(*ARGS)
    pyprof.init(force=True)
    function(*ARGS)
    recorder.clear()
    for _ in range(3):
        result = function(*ARGS)
    assert counter.frame_count <= 2
    assert recorder.calls == []
    assert all(torch.equal(a, b) for a, b in zip(result, expected, strict=True))


def broken(x: torch.Tensor) -> torch.Tensor:
    """Break the graph, and call ops in a frame that is not compiled: a generator's."""
    total = x.sum().item()
    return sum(F.softmax(torch.sigmoid(row), -1).mul(total) for row in x)  # type: ignore[return-value]


def test_after_a_graph_break_no_wrapper_is_compiled(recorder: Recorder) -> None:
    expected = broken(ARGS[0])
    frames = []
    for _ in range(2):
        torch._dynamo.reset()
        counter = CompileCounterWithBackend("eager")
        result = torch.compile(broken, backend=counter)(ARGS[0])
        assert torch.equal(result, expected)
        frames.append(counter.frame_count)
        pyprof.init(force=True)
    assert frames[0] == frames[1]
    assert {"item", "softmax", "sigmoid"} <= set(recorder.ops)


@pytest.mark.slow
def test_a_compiled_step_of_an_optimizer() -> None:
    pyprof.init(force=True)
    weight = torch.nn.Parameter(torch.ones(3))
    weight.grad = torch.ones(3)
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def step() -> None:
        optimizer.step()

    torch.compile(step, backend="eager")()
    assert weight.tolist() == [0.5] * 3


@pytest.mark.long
@BEFORE_OR_AFTER
def test_compiled_modules(when: str) -> None:
    net = model()
    x = torch.randn(2, 3, 4)
    expected = net(x)
    if when == "before":
        pyprof.init(force=True)
    net_compiled, counter = compiled(net)
    net_compiled(x)
    if when == "after":
        pyprof.init(force=True)
    for _ in range(3):
        result = net_compiled(x)
    result.sum().backward()
    assert counter.frame_count <= (1 if when == "before" else 2)
    assert torch.allclose(result, expected)


@pytest.mark.slow
def test_dynamic_shapes_stay_dynamic(listening: Recorder) -> None:
    """Describing fake tensors fixes no size: one compilation is enough."""
    function, counter = compiled(lambda x: F.relu(x).sum(0) * x.shape[0])
    for size in (3, 5, 7, 9):
        x = torch.ones(size, 2)
        torch._dynamo.maybe_mark_dynamic(x, 0)
        assert torch.equal(function(x), torch.full((2,), float(size * size)))
    assert counter.frame_count <= 2
    assert listening.depth == 0


@pytest.mark.long
@pytest.mark.parametrize("strict", [True, False])
@BEFORE_OR_AFTER
def test_an_exported_program_is_the_same(when: str, strict: bool) -> None:  # noqa: FBT001 - a parameter
    net = model().eval()
    x = torch.randn(2, 3, 4)

    def exported() -> list[str]:
        program = torch.export.export(net, (x,), strict=strict)
        return [str(node.target) for node in program.graph.nodes]

    expected = exported()
    pyprof.init(force=True)
    found = exported()
    if when == "after":
        pyprof.stop()
        found = exported()
    assert found == expected


def scriptable(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Call builtins, functions of F, a boolean dispatch and methods."""
    y = F.linear(x, w)
    y = F.dropout(torch.relu(y), 0.5, training=False)
    y = F.max_pool2d(y[None, None], [1, 1]).squeeze()
    return torch.cat([y, y.add(1)]).softmax(0) + torch.einsum("ij->ij", [torch.cat([y, y])])


@pytest.mark.slow
@BEFORE_OR_AFTER
def test_jit_script_functions(when: str) -> None:
    expected = scriptable(*ARGS)
    scripted = instrumented(when, lambda: torch.jit.script(scriptable))
    assert torch.equal(scripted(*ARGS), expected)
    pyprof.stop()
    assert torch.equal(torch.jit.script(lambda_free)(ARGS[0]), F.gelu(ARGS[0]))


def lambda_free(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x)


class Recurrent(nn.Module):
    """A module around an LSTM, whose own forward is overloaded."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


@pytest.mark.few(1)
@pytest.mark.slow
@BEFORE_OR_AFTER
def test_jit_script_modules(when: str) -> None:
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.5), nn.Conv1d(3, 3, 1)).eval()
    recurrent = Recurrent()
    x = torch.randn(2, 3, 4)
    expected, expected_recurrent = net(x), recurrent(x)
    both = instrumented(when, lambda: [torch.jit.script(each) for each in (net, recurrent)])
    scripted, scripted_recurrent = both
    assert torch.equal(scripted(x), expected)
    assert torch.equal(scripted_recurrent(x), expected_recurrent)
    stored = io.BytesIO()
    torch.jit.save(scripted, stored)
    stored.seek(0)
    assert torch.equal(torch.jit.load(stored)(x), expected)


@pytest.mark.few(1)
@pytest.mark.slow
@BEFORE_OR_AFTER
def test_jit_trace(when: str) -> None:
    """The same nodes are recorded: reading a shape would add one."""
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Flatten(0))
    x = torch.randn(3, 4)

    def graph_of(traced: torch.jit.ScriptModule) -> list[str]:
        return [node.kind() for node in traced.inlined_graph.nodes()]

    plain = graph_of(torch.jit.trace(net, x))
    traced = instrumented(when, lambda: torch.jit.trace(net, x))
    assert graph_of(traced) == plain
    assert torch.equal(traced(torch.ones(5, 4)), net(torch.ones(5, 4)))


@pytest.mark.few(1)
@pytest.mark.slow
@BEFORE_OR_AFTER
def test_make_fx(when: str) -> None:
    def step(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.softmax(F.linear(x, w), -1).sum()

    for mode in ("real", "fake", "symbolic"):
        expected = make_fx(step, tracing_mode=mode)(*ARGS).code
        graph = instrumented(when, lambda: make_fx(step, tracing_mode=mode)(*ARGS))  # noqa: B023 - at once
        assert graph.code == expected
        assert torch.equal(graph(*ARGS), step(*ARGS))
        pyprof.stop()


@pytest.mark.few(1)
@BEFORE_OR_AFTER
def test_symbolic_trace(when: str) -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([F.relu(self.fc(x)), x.sigmoid()]).sum() + torch.add(x, 1).mean()

    net = Small()
    expected = torch.fx.symbolic_trace(net).code
    graph = instrumented(when, lambda: torch.fx.symbolic_trace(net))
    assert graph.code == expected
    assert torch.equal(graph(ARGS[0]), net(ARGS[0]))
    pyprof.stop()
    assert torch.equal(graph(ARGS[0]), net(ARGS[0]))
