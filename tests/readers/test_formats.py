"""Readers are discovered, and declare what they read."""

from pathlib import Path
from types import ModuleType

import pytest

from pyprof import readers
from pyprof.readers import nsys_report
from tests.fuzz.seeds import seeds
from tests.programs import TOP

READERS = [each for each in readers.readers() if isinstance(each, ModuleType)]


def test_every_reader_names_its_files() -> None:
    for reader in readers.readers():
        name = getattr(reader, "__name__", reader)
        described = getattr(reader, "FORMAT", "")
        article, _, rest = described.partition(" ")
        assert article in ("a", "an", "the"), (
            f"{name}: add FORMAT, the files that it reads, with an article: "
            'FORMAT = "an nsys export (.sqlite)"'
        )
        assert rest
        assert described in readers.expected()


@pytest.mark.slow
def test_every_reader_is_fuzzed(tmp_path: Path) -> None:
    """Except reports, which need a program to export them."""
    path, left = tmp_path / "capture", {*READERS} - {nsys_report}
    for seed in seeds():
        path.write_bytes(seed.data)
        if seed.is_built:
            taken = readers.reader_of(path, seed.data[:4096])
            left = {each for each in left if each is not taken}
    missing = sorted(each.__name__ for each in left)
    assert not missing, "tests/fuzz/seeds.py builds no file for these readers: add one"


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.__name__)
def test_every_reader_has_a_test_at_its_path(reader: ModuleType) -> None:
    name = reader.__name__.rpartition(".")[2]
    paths = [f"tests/readers/test_{name}.py", f"tests/readers/{name}"]
    assert any((TOP / path).exists() for path in paths), f"write {paths[0]}"
