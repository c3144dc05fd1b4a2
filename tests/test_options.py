"""The options that choose an engine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.builders import Work, nsys_db
from tests.commands import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "exclude each other"),
        (["--workers", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage(options: list[str], words: str, tmp_path: Path) -> None:
    """Exit code 2, nothing done."""
    done = run("parse", nsys_db(tmp_path / "a.sqlite", [Work()]), "-o", f"{tmp_path}/o/", *options)
    assert (done.code, words in done.stderr) == (2, True)
    assert not (tmp_path / "o").exists()


def test_a_cluster_needs_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is missing, the line says how to get it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "pyprof.inputs.dask_cluster", raising=False)
    done = run("parse", nsys_db(tmp_path / "a.sqlite", [Work()]), "--dask", "tcp://127.0.0.1:1")
    assert (done.code, done.stderr) == (
        1,
        'pyprof: --dask needs Dask: pip install "dask[distributed]"\n',
    )
