"""Options common to commands that read captures."""

import sys
from pathlib import Path

import click
import pytest

from pyprof.__main__ import main
from pyprof.cli.capture_options import GRAPHS_AND_COUNTERS, Captures, reads_captures
from tests.builders import Work, nsys_db
from tests.commands import refused, run
from tests.known import known
from tests.readers.kineto_graphs import Node, Replay, captured, replayed
from tests.readers.kineto_json import text

NODES = (Node("aten::mm", "gemm"), Node("aten::relu", "elementwise"))


def _replays(tmp_path: Path, ranks: int) -> list[Path]:
    captures = tmp_path / "away"
    captures.mkdir()
    (captures / "one.json").write_text(text(captured([NODES])))
    (tmp_path / "ranks").mkdir()
    paths = [tmp_path / "ranks" / f"net.rank{rank}.json" for rank in range(ranks)]
    for path in paths:
        path.write_text(text(replayed([("", [Replay(NODES)])])))
    return paths


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("parse", "-o", "-"), ("prof", "-c", "op"), ("summary",), ("lines",), ("ranks",),
        ("doctor",), ("report", "-o", "net.html"), ("export", "-o", "net.csv"),
        ("roofline", "-o", "net.svg"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_every_command_takes_graph_captures(command: tuple[str, ...], here: Path) -> None:
    (path,) = _replays(here, 1)
    name, *options = command
    done = run(name, str(path), *options, "--with", "away")
    assert (done.code, "internal error" in done.stderr) == (0, False)
    if name not in {"ranks", "doctor", "lines"}:
        assert "2 of 2 replayed kernels and copies are matched" in done.stderr
    if options[:1] == ["-c"]:
        assert done.stdout.split()[1:] == ["mm", "relu"]


@pytest.mark.long
def test_workers_use_graph_captures(tmp_path: Path) -> None:
    _replays(tmp_path, 2)
    options = ("-c", "op", "--workers", "2", "--with", str(tmp_path / "away"))
    done = run("prof", str(tmp_path / "ranks"), *options)
    assert (done.code, done.stdout.split()[1:]) == (0, ["mm", "relu"] * 2)


@pytest.mark.slow
def test_parts_of_a_dataset_are_made_again_with_other_graph_captures(tmp_path: Path) -> None:
    _replays(tmp_path, 2)
    parse = ("parse", str(tmp_path / "ranks"), "-o", f"{tmp_path}/net/")
    assert "already" not in run(*parse).stderr
    given = run(*parse, "--with", str(tmp_path / "away"))
    assert "already" not in given.stderr
    shown = run("prof", f"{tmp_path}/net/", "-c", "op")
    assert shown.stdout.split()[1:] == ["mm", "relu"] * 2


def test_missing_graph_captures_are_an_error(tmp_path: Path) -> None:
    (path,) = _replays(tmp_path, 1)
    assert refused("prof", str(path), "--with", str(tmp_path / "nowhere")) == (
        f"pyprof: {tmp_path}/nowhere: no such file; check the path\n"
    )


def test_a_glob_leaves_out_graph_captures(tmp_path: Path) -> None:
    """Those in capture_traces/ belong to the trace next to that folder."""
    (path,) = _replays(tmp_path, 1)
    (tmp_path / "away").rename(path.parent / "capture_traces")
    done = run("prof", str(tmp_path / "**" / "*.json"), "-c", "op")
    assert (done.code, done.stdout.split()[1:]) == (0, ["mm", "relu"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "0"], "neither a number of processes nor"),
        (["--workers", "many"], "such as tcp://host:8786"),
    ],
)
def test_conflicting_options_are_a_usage_error(
    options: list[str], words: str, tmp_path: Path
) -> None:
    done = run("parse", nsys_db(tmp_path / "a.sqlite", [Work()]), "-o", f"{tmp_path}/o/", *options)
    assert (done.code, words in done.stderr) == (2, True)
    assert not (tmp_path / "o").exists()


def test_a_cluster_needs_dask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "pyprof.inputs.dask_cluster", raising=False)
    done = run("parse", nsys_db(tmp_path / "a.sqlite", [Work()]), "--workers", "tcp://127.0.0.1:1")
    assert (done.code, done.stderr) == (
        1,
        'pyprof: --workers ADDRESS needs Dask: pip install "dask[distributed]"\n',
    )


READERS = ("summary", "prof", "lines", "report", "roofline", "export", "diff", "ranks", "parse")


@pytest.mark.parametrize("option", ["--quiet", "--strict", "--workers"])
def test_commands_that_read_captures_share_their_options(option: str) -> None:
    context = click.Context(main)
    found = {}
    for name in READERS:
        command = known(main.get_command(context, name))
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
def test_arguments_arrive_as_one_tuple_of_captures(
    arguments: list[str], given: list[str], paths: tuple[str, ...]
) -> None:
    taken: list[Captures] = []

    @click.command
    @reads_captures(*arguments, extra=GRAPHS_AND_COUNTERS)
    def command(captures: Captures) -> None:
        taken.append(captures)

    command.main(["-q", *given], standalone_mode=False)
    assert (taken[0].paths, taken[0].quiet) == (paths, True)
    if paths != ("-",):
        with pytest.raises(click.MissingParameter):
            command.main([], standalone_mode=False)
