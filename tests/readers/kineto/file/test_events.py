"""Events are the same whether their JSON is valid or was repaired."""

import json
from typing import Any

import numpy as np
import pytest

from pyprof.readers.kineto.columns import timed
from pyprof.readers.kineto.file import events
from pyprof.readers.kineto.file.events import repaired
from tests.known import known

_LONG = 1712195495519689.25


@pytest.mark.parametrize(
    "ts",
    [
        *(_LONG + 0.5, int(_LONG), -3, 0.125, 1e300, 1e30),
        *(str(_LONG), "soon", "", None, True, [_LONG], {"ts": 1}),
    ],
    ids=str,
)
def test_times_with_many_digits_are_exact(ts: Any) -> None:  # noqa: ANN401
    listed: list[dict[str, Any]] = [{"ph": "X", "ts": _LONG}, {"ph": "X", "ts": ts}, {"ph": "M"}]
    decoded = known(events.decode(json.dumps(listed).encode()))
    expected = timed(events.from_values(listed)).us
    assert np.array_equal(timed(decoded).us, expected, equal_nan=True)
    assert expected[0] == _LONG


def test_a_time_beyond_floats_is_none() -> None:
    decoded = known(events.decode(b'[{"ts": 1712195495519689.25}, {"ts": 1e999}, {"ts": 5}]'))
    assert np.array_equal(timed(decoded).us, [_LONG, np.nan, 5], equal_nan=True)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b'{"a": nan, "b": -inf}', {"a": None, "b": None}),
        (b'{"a": 1e999}', {"a": None}),
        (b'{"a": "C:' + bytes([92]) + b'users"}', {"a": "C:" + chr(92) + "users"}),
        (b'{\n"name": "say "it\'s", x",\n"a": 1}', {"name": 'say "it\'s", x', "a": 1}),
        (b'{"a": "\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a": "x\xff"}', {"a": "x\ufffd"}),
        (b'{"a": [{"b": 1,}, 2,\n ], }', {"a": [{"b": 1}, 2]}),
        (b'{"a": nan, "name": "f<[1,]>{2,}"}', {"a": None, "name": "f<[1,]>{2,}"}),
        (b'{"a": "fine", "b": [1, 2]}', {"a": "fine", "b": [1, 2]}),
    ],
)
def test_known_errors_are_undone_and_valid_json_stays(written: bytes, meant: object) -> None:
    assert json.loads(repaired(written)) == meant


def test_repair_looks_at_each_line_once() -> None:
    """Empty lines do not begin a name."""
    assert repaired(b"\n" * 300_000) == b"\n" * 300_000
