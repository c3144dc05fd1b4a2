"""Whole recurrent networks, compared with torch: sizes of results, FLOPs of products."""

import itertools
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
FlopCounterMode: Any = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

from pyprof import ops
from pyprof.ops.torch.nn.recurrent import _KINDS
from tests.ops.contract import contract_of
from tests.ops.test_bytes import written_bytes
from tests.ops.torch_calls import python_call

test_formulas_keep_the_contract = contract_of("torch.nn.recurrent")

STEPS, BATCH, HIDDEN = 5, 3, 16
KINDS = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}
TWO = {"num_layers": 2}
OF_ALL = [{}, TWO, {"bidirectional": True}, {**TWO, "bidirectional": True}, {**TWO, "bias": False}]
OF_LSTM = [{"proj_size": 4}, {**TWO, "proj_size": 4, "bidirectional": True}]


@pytest.mark.parametrize("width", [8, HIDDEN])
@pytest.mark.parametrize(
    ("kind", "options"), [*itertools.product(KINDS, OF_ALL), *(("lstm", each) for each in OF_LSTM)]
)
@pytest.mark.filterwarnings("ignore")  # oneDNN on its precisions and projections
def test_layers_directions_and_projections_are_recognised(
    kind: str, options: dict[str, int], width: int
) -> None:
    network = KINDS[kind](width, HIDDEN, **options)
    count = options.get("num_layers", 1) * (2 if network.bidirectional else 1)
    states = [torch.zeros(count, BATCH, options.get("proj_size", HIDDEN))]
    states += [torch.zeros(count, BATCH, HIDDEN)] if kind == "lstm" else []
    x = torch.randn(STEPS, BATCH, width)
    args = (
        *(x, states if kind == "lstm" else states[0], network._flat_weights, network.bias),
        *(network.num_layers, 0.0, False, network.bidirectional, False),
    )
    plain = torch.backends.mkldnn.flags(enabled=False)  # whose products can be counted
    with torch.no_grad(), plain, FlopCounterMode(display=False) as counted:
        out = getattr(torch, kind)(*args)
    call = python_call("torch", kind, *args)
    gates = _KINDS[kind.partition("_")[0]][1] * STEPS * BATCH * HIDDEN * count
    assert written_bytes(call) == sum(t.nbytes for t in out)
    assert ops.cost(call).flops == counted.get_total_flops() + gates


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", "lstm"), ("GRU", "gru"), ("RNN", "rnn")])
def test_a_cell_without_a_batch_costs_what_a_batch_of_one_costs(kind: str, gates: str) -> None:
    """And the products have the FLOPs of torch's counter."""
    cell = getattr(torch.nn, f"{kind}Cell")(8, HIDDEN)
    states = 2 if kind == "LSTM" else 1
    found = {}
    for shape in ((), (1,), (BATCH,)):
        x, hidden = torch.randn(*shape, 8), [torch.zeros(*shape, HIDDEN)] * states
        with FlopCounterMode(display=False) as counter:
            cell(x, tuple(hidden) if states == 2 else hidden[0])
        cost: Any = ops.cost(python_call(f"{kind}Cell", "forward", x, *hidden))
        products = cost.flops - hidden[0].numel() * _KINDS[gates][1]
        assert products == counter.get_total_flops()
        found[shape] = cost.flops, cost.bytes
    assert found[()] == found[(1,)]
