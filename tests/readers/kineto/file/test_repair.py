"""JSON that Kineto's writer got wrong."""

import json

import pytest

from pyprof.readers.kineto.file.repair import repaired


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b'{"a": nan, "b": -inf}', {"a": None, "b": None}),
        (b'{"a": 1e999}', {"a": None}),
        (b'{"a": "C:' + bytes([92]) + b'users"}', {"a": "C:" + chr(92) + "users"}),
        (b'{\n"name": "say "hi"",\n"a": 1}', {"name": 'say "hi"', "a": 1}),
        (b'{"a": "\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a": "x\xff"}', {"a": "x\ufffd"}),
        (b'{"a": "fine", "b": [1, 2]}', {"a": "fine", "b": [1, 2]}),
    ],
)
def test_known_errors_are_undone_and_valid_json_stays(written: bytes, meant: object) -> None:
    assert json.loads(repaired(written)) == meant


def test_repair_looks_at_each_line_once() -> None:
    """Lines that are empty are no beginning of a name's."""
    assert repaired(b"\n" * 300_000) == b"\n" * 300_000
