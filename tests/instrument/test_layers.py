import gc
import sys
import types
from typing import Any

import pytest
import torch
from torch import nn

from pyprof import marker
from pyprof.instrument import layers
from pyprof.instrument.layers import Names
from tests.instrument.conftest import Recorder


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.rest = nn.ModuleList([nn.ReLU(), nn.Sequential(nn.Tanh(), nn.Tanh())])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(self.first(x))
        for child in self.rest:
            x = child(x)
        return x


class Two(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = Block()
        self.decoder = Block()
        self.decoder.first = self.encoder.first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(x))


def test_a_module_that_outlives_our_globals_ends_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the end of Python, which reports what fails in a weak reference's callback."""
    names, module = Names(), nn.Identity()
    names.name(module, None)
    monkeypatch.setattr(layers, "_drop", None)
    del module
    gc.collect()
    assert not names.outermost


def test_layers_are_full_paths_and_nest_as_calls_do(listening: Recorder) -> None:
    """Also through lists, which are never called."""
    Two()(torch.ones(1, 2))
    assert listening.layers == [
        "Two",
        "encoder", "encoder.first", "encoder.first", "encoder.rest.0", "encoder.rest.1",
        "encoder.rest.1.0", "encoder.rest.1.1",
        "decoder", "decoder.first", "decoder.first", "decoder.rest.0", "decoder.rest.1",
        "decoder.rest.1.0", "decoder.rest.1.1",
    ]  # fmt: skip
    depth = {text: deep for deep, text in listening.pushed}
    outer = ("Two", "encoder", "encoder.rest.1", "encoder.rest.1.0")
    assert [depth[f"layer:{name}"] for name in outer] == [0, 1, 2, 4]


def test_a_container_of_torch_has_one_trace_for_all_inside(listening: Recorder) -> None:
    """No line of the user's is between."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    x = torch.ones(1, 2)
    listening.clear()
    net(x)
    layer, trace, op = marker.Kind.LAYER, marker.Kind.TRACE, marker.Kind.OP
    kinds = [marker.classify(text) for text in listening.texts]
    assert kinds == [layer, trace, layer, op, layer, op]


def test_a_model_of_a_library_has_one_trace_for_all_inside(
    listening: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for ops that the library took hold of before we replaced them."""
    library = types.ModuleType("library")
    library.__file__ = "/venv/lib/python3.12/site-packages/library/__init__.py"
    monkeypatch.setitem(sys.modules, "library", library)
    monkeypatch.setattr(Two, "__module__", "library")
    monkeypatch.setattr(Block, "__module__", "library")
    net, x = Two(), torch.ones(1, 2)
    listening.clear()
    net(x)
    layer, trace = marker.Kind.LAYER, marker.Kind.TRACE
    kinds = [marker.classify(text) for text in listening.texts[:4]]
    assert kinds == [layer, trace, layer, layer]


def test_modules_in_a_shared_container_have_a_name_per_parent(listening: Recorder) -> None:
    shared = nn.Sequential(nn.Identity())
    nn.Sequential(nn.Sequential(shared), nn.Sequential(shared))(torch.ones(1))
    assert listening.layers == ["Sequential", "0", "0.0", "0.0.0", "1", "1.0", "1.0.0"]


def test_a_part_called_from_user_code_has_its_path(listening: Recorder) -> None:
    net = Two()
    net.decoder(torch.ones(1, 2))
    net.encoder.rest[1](torch.ones(1, 2))
    assert listening.layers[0] == "decoder"
    assert listening.layers[2] == "decoder.first"
    assert listening.layers[-3:] == ["encoder.rest.1", "encoder.rest.1.0", "encoder.rest.1.1"]


def test_a_module_that_nobody_holds_goes_by_its_class(listening: Recorder) -> None:
    nn.GELU()(torch.ones(1))

    class Calls(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.Sigmoid()(x)

    Calls()(torch.ones(1))
    assert listening.layers == ["GELU", "Calls", "Sigmoid"]


@pytest.mark.slow
def test_an_exception_closes_every_layer(listening: Recorder) -> None:
    class Fails(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyboardInterrupt

    net = nn.Sequential(nn.Linear(2, 2), Fails())
    with pytest.raises(KeyboardInterrupt):
        net(torch.ones(1, 2))
    assert listening.depth == 0
    net[0](torch.ones(1, 2))
    assert listening.layers[-1] == "0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "args"),
    [
        (nn.LSTM(3, 4, num_layers=2), (torch.ones(5, 2, 3),)),
        (nn.GRU(3, 4), (torch.ones(5, 2, 3), torch.ones(1, 2, 4))),
        (nn.RNN(3, 4), (torch.ones(5, 2, 3),)),
        (nn.LSTMCell(3, 4), (torch.ones(2, 3), (torch.ones(2, 4), torch.ones(2, 4)))),
        (nn.GRUCell(3, 4), (torch.ones(2, 3),)),
        (nn.RNNCell(3, 4), (torch.ones(2, 3),)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_recurrent_modules_have_module_and_op_markers(
    module: nn.Module, args: tuple[Any, ...], listening: Recorder
) -> None:
    module(*args)
    kinds = [marker.classify(text) for text in listening.texts[:4]]
    assert kinds == [marker.Kind.LAYER, marker.Kind.TRACE, marker.Kind.MODULE, marker.Kind.OP]
    assert module.extra_repr() in listening.texts[2]
    call = listening.calls[0]
    assert (call.mod, call.op) == (type(module).__name__, "forward")
    assert call.args[0] == marker.Tensor(tuple(args[0].shape), "float32")
    assert len(call.args) == len(args)


@pytest.mark.slow
def test_keyword_inputs_of_recurrent_modules_keep_their_names(listening: Recorder) -> None:
    module, x = nn.LSTM(3, 4), torch.ones(5, 2, 3)
    listening.clear()
    module(input=x)
    assert listening.calls[0].kwargs == {"input": marker.Tensor((5, 2, 3), "float32")}


@pytest.mark.slow
def test_a_module_with_a_reused_id_has_its_own_name(listening: Recorder) -> None:
    class Makes(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for kind in (nn.ReLU, nn.Tanh, nn.Identity):
                x = kind()(x)
            return x

    x = torch.ones(1)
    for _ in range(3):
        Makes()(x)
    for kind in (nn.ReLU, nn.Tanh, nn.Identity) * 3:
        kind()(x)  # type: ignore[abstract]
    names = ["ReLU", "Tanh", "Identity"]
    assert listening.layers == ["Makes", *names] * 3 + names * 3


@pytest.mark.slow
def test_names_are_dropped_with_their_modules() -> None:
    known, net = Names(), nn.Sequential(nn.ReLU())
    outer = known.name(net, None)
    assert known.name(net[0], outer).path == "0"
    assert known.name(net, None) is outer
    assert (len(known.outermost), len(outer.inside)) == (1, 1)
    del net
    gc.collect()
    assert (known.outermost, outer.inside) == ({}, {})


def test_modules_that_cannot_be_hashed_or_compared(listening: Recorder) -> None:
    class Odd(nn.Module):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    holder = nn.Module()
    holder.odd = Odd()
    holder.odd(torch.ones(1))
    assert listening.layers == ["odd"]


def test_cycles_of_modules_end(listening: Recorder) -> None:
    parent, child = nn.Module(), nn.ReLU()
    parent.child = child
    child.parent = parent
    child(torch.ones(1))
    assert listening.layers[0].endswith("child")


def test_the_heap_is_searched_seldom(searches: list[None]) -> None:
    known = Names()
    for width in range(1, 100):
        kind = type(f"Net{width}", (nn.Module,), {})
        assert known.name(kind(), None).path == kind.__name__
    assert len(searches) <= 8


def test_a_loss_made_anew_in_each_step_is_searched_for_once(searches: list[None]) -> None:
    """As losses and activations of transformers: steps would wait for pyprof."""
    known = Names()
    for _ in range(100):
        assert known.name(nn.CrossEntropyLoss(), None).path == "CrossEntropyLoss"
    assert len(searches) == 1


def test_a_model_made_while_we_watch_is_outermost_without_a_search(
    listening: Recorder, searches: list[None]
) -> None:
    """Its first call must not wait; what holds no parts may be one, and is searched for."""
    net = Two()
    net(torch.ones(1, 2))
    assert listening.layers[:2] == ["Two", "encoder"]
    assert not searches
    nn.Tanh()(torch.ones(1, 2))
    assert searches


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets an item with each search of the heap, which finds nothing."""
    each: list[None] = []

    def search() -> list[object]:
        each.append(None)
        return []

    monkeypatch.setattr(gc, "get_objects", search)
    return each
