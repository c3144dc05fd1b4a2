"""The fuzzer notices failures, its inputs can be reproduced, and earlier findings stay fixed."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from pyprof import readers
from pyprof.errors import NOTE
from pyprof.parse import parse_file
from pyprof.readers import nsys
from tests import damage
from tests.fuzz import run
from tests.fuzz.checks import COMMANDS, Done, broken, outcome
from tests.fuzz.mutate import DAMAGE
from tests.fuzz.run import Tally, _batch, damaged
from tests.fuzz.seeds import Seed, seeds
from tests.fuzz.truth import Truth, truth

SOUND = Done("parse", 0, b"", b"", b'{"kDuration": 5}\n{"kDuration": 7}\n')


@pytest.fixture(scope="module")
def small() -> list[Seed]:
    return [*{seed.kind: seed for seed in seeds() if seed.is_built}.values()]


@pytest.mark.slow
def test_seeds_are_sound(small: list[Seed], tmp_path: Path) -> None:
    """Undamaged they fulfil all rules; every kind can be damaged."""
    assert {seed.kind for seed in small} == set(DAMAGE)
    for seed in small:
        path = tmp_path / seed.kind
        path.write_bytes(seed.data)
        found = truth(path, seed.kind)
        if seed.kind in ("sqlite", "gzip"):
            assert found is not None
            assert all(text.startswith(NOTE) for text in parse_file(path).warnings)
            assert found.rows == readers.read(path).activities.num_rows > 0


def test_an_input_follows_from_its_numbers(small: list[Seed]) -> None:
    """Through any number of commands, whatever came before."""
    first = [damaged(small, 3, number, 1) for number in range(40)]
    again = [damaged(small, 3, number, 5) for number in reversed(range(40))]
    assert [one.data for one in first] == [one.data for one in reversed(again)]
    assert len({one.data for one in first}) > 30
    assert [one.commands[0] for one in first] == [one.commands[0] for one in reversed(again)]


@pytest.mark.parametrize(
    ("done", "word"),
    [
        (SOUND._replace(code=3), "exit code 3"),
        (
            SOUND._replace(code=1, stderr=b"Traceback (most recent call last)\n", written=None),
            "Trac",
        ),
        (SOUND._replace(code=1, stderr=b"pyprof: internal error (x)\n", written=None), "internal"),
        (SOUND._replace(code=1, stderr=b"pyprof: not enough memory\n", written=None), "memory"),
        (SOUND._replace(code=1, stderr=b"pyprof: a\nb\n", written=None), "not one line"),
        (SOUND._replace(code=1, stderr=b"", written=None), "not one line"),
        (SOUND._replace(stderr=b"x.py:3: RuntimeWarning: cast\n"), "Warning"),
        (SOUND._replace(crash="KeyError at a.py:3"), "KeyError"),
        (SOUND._replace(code=1, stderr=b"pyprof: a\n"), "something was written"),
        (SOUND._replace(written=None), "nothing was written"),
        (SOUND._replace(written=b"{"), "damaged"),
        (SOUND._replace(written=b'{"kDuration": 12}\n'), "1 rows of 2"),
        (SOUND._replace(written=b'{"kDuration": 5}\n{"kDuration": 8}\n'), "13 ns instead of 12"),
    ],
)
def test_each_rule_finds_what_breaks_it(done: Done, word: str) -> None:
    expected = Truth(2, 12)
    assert broken(SOUND, expected) == []
    assert outcome(SOUND) == "right"
    assert any(word in what for what in broken(done, expected))


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (lambda path: path.write_bytes(b"other"), "the input was changed"),
        (lambda path: (path.parent / "more").touch(), "left behind"),
        (lambda path: path.no_such_thing, "AttributeError at"),
        (lambda _: _kill(), "the process died of SIGKILL"),
    ],
)
def test_a_child_process_that_fails_is_noticed(
    fault: Callable[[Path], object], word: str, small: list[Seed], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inputs after the one that broke it are still tried."""
    found: Callable[[Path], object] = nsys.read

    def faulty(path: Path) -> object:
        fault(path)
        return found(path)

    monkeypatch.setattr(nsys, "read", faulty)
    monkeypatch.setattr(run, "COMMANDS", {"parse": COMMANDS["parse"]})
    monkeypatch.setattr(run, "commands_for", lambda _: ["parse"])
    sqlite = [seed for seed in small if seed.kind == "sqlite"]
    tally = Tally(Counter(), Counter(), {})
    numbers = list(range(3))
    while numbers:
        numbers = _batch(sqlite, 1, numbers, 1, tally)
    assert any(word in what for what in tally.failures)


@pytest.mark.long
def test_hundreds_of_damaged_inputs_end_well(small: list[Seed]) -> None:
    tally = Tally(Counter(), Counter(), {})
    assert _batch(small, 0, list(range(60)), 1, tally) == []
    assert tally.failures == {}
    assert sum(tally.inputs.values()) == 60


@pytest.mark.parametrize(
    ("tool", "name"),
    [("nsys", "no start"), ("nsys", "no end"), ("nvprof", "no start"), ("nvprof", "swapped"),
     ("kineto", "infinite"), ("kineto", "huge start"), ("kineto", "null")],
)  # fmt: skip
def test_the_truth_counts_rows_whose_time_is_lost(tool: str, name: str, tmp_path: Path) -> None:
    """As pyprof does; there is no sum then."""
    whole = damage.Truth(tuple((n * 10**6, n * 10**6 + 5000) for n in range(1, 5)))
    path = damage.CAPTURES[tool](tmp_path / "net", whole)
    kind = "json" if tool == "kineto" else "sqlite"
    assert truth(path, kind) == Truth(4, 20_000)
    damage.spans(path, tool, name, [1])
    assert truth(path, kind) == Truth(4, None)
    assert readers.read(path).activities.num_rows == 4


def test_the_truth_counts_from_the_base_of_a_trace(tmp_path: Path) -> None:
    """Times before the base are valid; those before 1970 are not."""
    whole = damage.Truth(tuple((n * 10**6, n * 10**6 + 5000) for n in range(1, 5)))
    path = damage.kineto(tmp_path / "net.json", whole)
    damage.edit_kernels(path, [1], "ts", "-1000")
    assert truth(path, "json") == Truth(4, None)
    trace = json.loads(path.read_text())
    path.write_text(json.dumps(trace | {"baseTimeNanoseconds": 10**18}))
    assert truth(path, "json") == Truth(4, 20_000)
    assert readers.read(path).activities.num_rows == 4


def test_the_truth_does_not_count_empty_rows(tmp_path: Path) -> None:
    path = damage.nvprof(tmp_path / "net", damage.Truth(((10**6, 10**6 + 5000),)))
    damage.sql(path, f"INSERT INTO {damage.TABLES['nvprof']} DEFAULT VALUES")
    assert truth(path, "sqlite") == Truth(1, 5000)
    assert readers.read(path).activities.num_rows == 1
