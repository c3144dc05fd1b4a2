"""What people call an op: mostly its name alone, a method of a class by its class too."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_RECURRENT: Mapping[str, str] = MappingProxyType(
    {
        "RNN": "rnn", "LSTM": "lstm", "GRU": "gru",
        "RNNCell": "rnn_cell", "LSTMCell": "lstm_cell", "GRUCell": "gru_cell",
    }
)  # fmt: skip
"""PyTorch's classes whose `forward` has a marker of its own."""

_EVERY_CLASS = frozenset({"forward", "backward", "apply", "step", "__call__"})
"""Methods whose name means nothing without its class."""

_CLASS = re.compile(r"_?[A-Z](?=\w*[a-z])\w*")
"""A class's name, but no name of constants: `_C` is a module."""


_NO_CLASS = frozenset({"na", "Tensor", "torch", "aten"})
"""Never written before an op's name, though a class may be."""


def op_name(mod: str | None, op: str) -> str:
    """Name the op that a marker calls `op` of `mod`."""
    if not mod:
        return op
    if op == "forward" and mod in _RECURRENT:
        return _RECURRENT[mod]
    if mod in _NO_CLASS or not (op in _EVERY_CLASS or _CLASS.fullmatch(mod)):
        return op
    return f"{mod}.{op}"


def qualified(mod: str | None, name: str) -> str:
    """Put the module before the result of `op_name`, unless it is there already."""
    if not mod or mod == "na" or name.startswith(f"{mod}.") or name == _RECURRENT.get(mod):
        return name
    return f"{mod}.{name}"
