"""The options that choose an engine."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import pytest

from pyprof.__main__ import main
from pyprof.options import Captures, reads_captures
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


READERS = ("summary", "prof", "lines", "report", "roofline", "export", "diff", "ranks", "parse")


@pytest.mark.parametrize("option", ["--quiet", "--strict", "--workers", "--dask"])
def test_commands_that_read_captures_share_their_options(option: str) -> None:
    """In the same words; prof has a --strict of its own."""
    context = click.Context(main)
    found = {}
    for name in READERS:
        command = main.get_command(context, name)
        assert command is not None
        help_of = {text: param for param in command.params for text in param.opts}
        found[name] = help_of[option].to_info_dict()["help"]
    if option == "--strict":
        assert "GPU time is known" in found.pop("prof")
    assert len(set(found.values())) == 1


@pytest.mark.parametrize(
    ("arguments", "given", "paths"),
    [
        (["FILE..."], ["a", "b"], ("a", "b")),
        (["[FILE]..."], [], ("-",)),
        (["A", "B"], ["a", "b"], ("a", "b")),
    ],
)
def test_what_is_named_comes_as_captures(
    arguments: list[str], given: list[str], paths: tuple[str, ...]
) -> None:
    """Several arguments as one tuple; stdin where nothing has to be named, else it is misuse."""
    taken: list[Captures] = []

    @click.command
    @reads_captures(*arguments)
    def command(captures: Captures) -> None:
        taken.append(captures)

    command.main(["-q", *given], standalone_mode=False)
    assert (taken[0].paths, taken[0].quiet) == (paths, True)
    if paths != ("-",):
        with pytest.raises(click.MissingParameter):
            command.main([], standalone_mode=False)
