"""Readable names of ops: methods have their class."""

import pytest

from pyprof.parse import parse
from pyprof.prof.columns.standard import COLUMNS
from pyprof.prof.op_names import op_name, qualified
from pyprof.prof.table import Table
from tests.analysis.captures import Work, capture, op

NAMES = [
    ("LSTM", "forward", "lstm", "lstm"),
    ("GRU", "forward", "gru", "gru"),
    ("RNN", "forward", "rnn", "rnn"),
    ("LSTMCell", "forward", "lstm_cell", "lstm_cell"),
    ("Scale", "forward", "Scale.forward", "Scale.forward"),
    ("MLP", "forward", "MLP.forward", "MLP.forward"),
    ("Double", "helper", "Double.helper", "Double.helper"),
    ("mine.ops", "forward", "mine.ops.forward", "mine.ops.forward"),
    ("mine.ops", "fast_attention", "fast_attention", "mine.ops.fast_attention"),
    ("torch.nn.functional", "linear", "linear", "torch.nn.functional.linear"),
    ("Tensor", "__add__", "__add__", "Tensor.__add__"),
    ("Tensor", "backward", "backward", "Tensor.backward"),
    ("_C", "rms_norm", "rms_norm", "_C.rms_norm"),
    ("na", "add", "add", "add"),
]


@pytest.mark.parametrize(("mod", "op", "name", "whole"), NAMES)
def test_a_method_is_named_with_its_class(mod: str, op: str, name: str, whole: str) -> None:
    """PyTorch's recurrent networks by their kind."""
    assert op_name(mod, op) == name
    assert qualified(mod, name) == whole


def test_the_column_names_a_recurrent_network() -> None:
    """Records keep the texts as they are."""
    work = [Work((at, at + 5), (at, at + 5)) for at in (10, 30)]
    records = parse(capture(work, ranges=[op("forward", (9, 20), mod="LSTM")]))
    assert COLUMNS["op"].values(Table(records)).to_pylist() == ["lstm", None]
    assert records.arrow("op").to_pylist()[0] == ["forward"]
