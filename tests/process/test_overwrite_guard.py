"""No output replaces an input, nor a capture that pyprof did not write."""

import ast
import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from pyprof import export
from pyprof.__main__ import main, names
from pyprof.errors import PyprofError
from pyprof.process import output_file, overwrite_guard
from tests import damage
from tests.analysis.captured import capture
from tests.commands import refused, run
from tests.conftest import long_except
from tests.known import known
from tests.programs import TOP, environment
from tests.readers.kineto_json import kernel, text


def _command(name: str) -> click.Command:
    return known(main.get_command(click.Context(main), name))


WRITING = [name for name in names() if any("-o" in param.opts for param in _command(name).params)]
SCRIPTS = {"capture", "run", "try"}
"""What runs a script; `-o` names its capture without the suffix."""
READING = [name for name in WRITING if name not in SCRIPTS]


SUFFIX = {"parse": ".parquet", "report": ".html", "roofline": ".html", "export": ".csv"}
"""Of an output of each command; of all others it is .txt."""


def given(name: str, path: Path) -> list[str]:
    return [str(path) for param in _command(name).params if isinstance(param, click.Argument)]


@pytest.fixture
def net(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return capture(tmp_path / "in" / "net.sqlite")


def _hard_link(net: Path, beside: Path) -> Path:
    beside.hardlink_to(net)
    return beside


def _link(net: Path, beside: Path) -> Path:
    beside.symlink_to(net)
    return beside


SPELLINGS: dict[str, Callable[[Path, Path], Path]] = {
    "itself": lambda net, _: net,
    "another path": lambda net, _: net.parent / ".." / "in" / net.name,
    "a link": _link,
    "a hard link": _hard_link,
    "its log": lambda net, _: net.with_name("net.sqlite-wal"),
    "its index": lambda net, _: net.with_name("net.sqlite-shm"),
    "its report": lambda net, _: net.with_name("net.nsys-rep"),
}


@pytest.mark.parametrize(
    ("name", "spelling"),
    [*((name, "a hard link") for name in READING), *(("prof", spelling) for spelling in SPELLINGS)],
)
def test_no_command_overwrites_its_input(
    name: str, spelling: str, net: Path, tmp_path: Path
) -> None:
    before = net.read_bytes()
    target = SPELLINGS[spelling](net, tmp_path / "beside")
    said = refused(name, *given(name, net), "-o", target)
    assert "-o" in said or "choose another place" in said
    assert net.read_bytes() == before
    assert [path.name for path in net.parent.iterdir()] == ["net.sqlite"]


SETS = [name for name in READING if name not in ("peaks", "doctor")]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("glob", ["", "*.sqlite"])
def test_no_command_overwrites_a_file_of_a_set(name: str, glob: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    ranks = [capture(folder / f"net.rank{rank}.sqlite") for rank in range(2)]
    before = [path.read_bytes() for path in ranks]
    target = tmp_path / f"out{SUFFIX.get(name, '.txt')}"
    target.symlink_to(ranks[1])
    said = refused(name, *given(name, folder / glob), "-o", target)
    assert re.search("is an input|is a capture", said)
    assert [path.read_bytes() for path in ranks] == before


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", READING)
def test_no_command_replaces_a_capture(name: str, net: Path, tmp_path: Path) -> None:
    target = tmp_path / f"out{SUFFIX.get(name, '.txt')}"
    shutil.copy(capture(tmp_path / "other.sqlite"), target)
    before = target.read_bytes()
    arguments = [name, *(given(name, net) if name != "peaks" else [])]
    assert "or remove it first" in refused(*arguments, "-o", target)
    assert target.read_bytes() == before
    target.unlink()
    assert run(*arguments, "-o", target).code == 0
    assert run(*arguments, "-o", target).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "suffix",
    long_except(
        [s for form in export.FORMATS for s in form.suffixes], ".prof", ".pt.trace.json", ".csv"
    ),
)
def test_exported_files_are_replaced(suffix: str, net: Path, tmp_path: Path) -> None:
    """Even a timeline, which can be read as a capture."""
    for _ in range(2):
        assert run("export", net, "-o", tmp_path / f"out{suffix}").code == 0


CAPTURES: dict[str, Callable[[Path], object]] = {
    "damaged": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(84)),
    "a trace": lambda path: path.write_text(text([])),
    "a packed trace": lambda path: path.write_bytes(gzip.compress(b'{"traceEvents": [')),
}


@pytest.mark.parametrize("kind", CAPTURES)
def test_captures_of_every_tool_stay(kind: str, tmp_path: Path) -> None:
    """Even damaged ones: they may be repaired."""
    CAPTURES[kind](tmp_path / "net.txt")
    before = (tmp_path / "net.txt").read_bytes()
    with (
        pytest.raises(PyprofError, match="remove it first"),
        output_file.open_output(str(tmp_path / "net.txt")),
    ):
        pass
    assert (tmp_path / "net.txt").read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"text", b"PAR1", b'{"a": 1}', b"<html>", b"\x1f\x8b"])
def test_other_files_are_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_bytes(content)
    with output_file.open_output(str(tmp_path / "net.txt")) as file:
        file.write(b"new")
    assert (tmp_path / "net.txt").read_bytes() == b"new"


def test_a_capture_made_meanwhile_stays(net: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.txt"

    def write() -> None:
        with output_file.open_output(str(target)) as file:
            file.write(b"new")
            shutil.copy(net, target)

    with pytest.raises(PyprofError, match="remove it first"):
        write()
    assert target.read_bytes() == net.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.txt"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")
@pytest.mark.parametrize(
    "line",
    ["prof net.dict >> net.dict", "prof - -o net.dict < net.dict", "prof -o net.dict < net.dict"],
)
def test_redirections_are_checked(line: str, net: Path, tmp_path: Path) -> None:
    assert run("parse", net, "-o", tmp_path / "net.dict").code == 0
    before = (tmp_path / "net.dict").read_bytes()
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m pyprof {line}'], cwd=tmp_path, env=environment(),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert (tmp_path / "net.dict").read_bytes() == before


@pytest.mark.parametrize("name", sorted(SCRIPTS - {"try"}))
@pytest.mark.parametrize("suffix", [".pt.trace.json.gz", ".dict"])
@pytest.mark.usefixtures("here")
def test_capture_refuses_another_tools_file_before_the_run(name: str, suffix: str) -> None:
    """Hours of running could be lost."""
    if (name, suffix) == ("capture", ".dict"):
        pytest.skip("it writes none")
    Path("train.py").write_text("open('ran', 'w')\n")
    place = Path(f"net{suffix}")
    place.write_bytes(gzip.compress(b'{"traceEvents": ['))
    said = refused(name, "--tool", "torch", "-o", "net", "--all", "train.py")
    assert f"{place}: is a capture" in said
    assert not Path("ran").exists()


def test_captures_of_pyprof_are_recognised(tmp_path: Path) -> None:
    ours = {"schemaVersion": 1, "pyprof_version": "0.1.0", "traceEvents": []}
    (tmp_path / "ours.json").write_text(json.dumps(ours))
    (tmp_path / "theirs.json").write_text('{"traceEvents": []}')
    for number, name in ((overwrite_guard.APPLICATION_ID, "ours"), (0, "theirs")):
        path = tmp_path / f"{name}.sqlite"
        damage.sql(path, f"PRAGMA application_id = {number}", "CREATE TABLE t (x)")
    found = {path.name for path in tmp_path.iterdir() if overwrite_guard.recorded(path)}
    assert found == {"ours.json", "ours.sqlite"}
    assert not overwrite_guard.recorded(tmp_path / "none")


PLACES: dict[str, Callable[[Path], Path]] = {
    "Is a directory": lambda folder: folder,
    "No such file or directory": lambda folder: folder / "nowhere" / "out.txt",
    "Not a directory": lambda folder: folder / "file" / "out.txt",
}


@pytest.mark.parametrize("said", PLACES)
@pytest.mark.parametrize("name", [name for name in READING if name != "parse"])
def test_an_unwritable_output_is_an_error_before_the_work(
    name: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    target = PLACES[said](tmp_path)
    done = run(name, *given(name, tmp_path / "none.sqlite"), "-o", target)
    assert (done.code, done.stdout) == (1, "")
    assert done.stderr == f"pyprof: {target}: {said}; choose another place with -o\n"


MAY_WRITE = {
    "pyprof/process/output_file.py": "the one way of all commands",
    "pyprof/process/atomic_files.py": "short texts between processes, in a folder of ours",
    "pyprof/capture/under_profiler/script_process.py": "an exit code, in a folder of ours",
    "pyprof/capture/kineto/trace_file.py": "a capture, behind `check_place`",
    "pyprof/gpu/peaks/ceilings.py": "its own file in the user's settings",
    "pyprof/export/write.py": "parts, in a folder of ours",
    "pyprof/inputs/files.py": "a copy for a URL, in a folder of ours",
    "pyprof/process/stdio.py": "the device that takes all",
    "pyprof/trial/experiment.py": "into the folder of a trial",
    "pyprof/trial/processes.py": "a run's log, in the folder of a trial",
    "pyprof/trial/run_files.py": "a run's result, in the folder of a trial",
}


@pytest.mark.long
def test_nothing_else_opens_files_for_writing() -> None:
    """Such files would not be guarded."""
    found = {
        path.relative_to(TOP).as_posix()
        for path in (TOP / "pyprof").rglob("*.py")
        if any(map(_opens_for_writing, ast.walk(ast.parse(path.read_bytes()))))
    }
    assert found == set(MAY_WRITE)


def _opens_for_writing(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    modes = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    opens = name in {"open", "fdopen"} and any(
        set(mode) & set("wax+") and len(mode) < 4 for mode in modes
    )
    return opens or name in {"write_text", "write_bytes"}


LINKS = {"a file": "old.csv", "nothing": "new.csv", "itself": "out.csv"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
@pytest.mark.parametrize("to", LINKS)
def test_an_output_that_is_a_link_is_followed(to: str, net: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    target = tmp_path / "out.csv"
    target.symlink_to(LINKS[to])
    done = run("prof", net, "--csv", "-o", target)
    assert target.is_symlink()
    if to == "itself":
        assert (done.code, len(done.stderr.splitlines())) == (1, 1)
        assert "symbolic links" in done.stderr
    else:
        assert (tmp_path / LINKS[to]).read_text().startswith('"Idx"')


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("prof", "in"), "in/bad.json.gz"),
        (("prof", "./in/"), "./in/bad.json.gz"),
        (("prof", "in/net.sqlite", "in/bad.json.gz"), "in/bad.json.gz"),
        (("ranks", "../in-run/in"), "../in-run/in/bad.json.gz"),
        (("ranks", "*n/*.gz"), "in/bad.json.gz"),
        (("summary", "--strict", "in"), "in/bad.json.gz"),
        (("memory", "in/bad.json.gz"), "in/bad.json.gz"),
        (("prof", "--with", "in/bad.json.gz", "in/net.sqlite"), "in/bad.json.gz"),
        (("diff", "in", "in"), "in/bad.json.gz"),
        (("prof", "--workers", "2", "in"), "in/bad.json.gz"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)  # fmt: skip
def test_messages_name_inputs_as_given(
    arguments: tuple[str, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "in-run"
    (folder / "in").mkdir(parents=True)
    capture(folder / "in" / "net.sqlite")
    (folder / "in" / "bad.json.gz").write_text("no capture")
    monkeypatch.chdir(folder)
    done = run(*arguments)
    words = done.stderr.replace(":", " ").split()
    assert named in words, done.stderr
    assert str(tmp_path) not in done.stderr


def test_warnings_of_json_name_inputs_as_given(here: Path) -> None:
    (here / "in").mkdir()
    whole = text([kernel(1, 2), kernel(5, 2)])
    (here / "in" / "net.json").write_text(whole[: whole.rindex("{")])
    capture(here / "in" / "net.sqlite")
    warnings = run("ranks", "--json", "in").json["warnings"]
    assert any(warning.startswith("in/net.json: the trace is truncated") for warning in warnings)


def test_only_whole_paths_are_spelt_as_given() -> None:
    known = overwrite_guard.Guard()
    known.remember_spelling("/data/a", "a")
    known.remember_spelling("/data/a/b.json", "./a/b.json")
    known.remember_spelling("/cwd/", "")
    assert known.restore_user_paths("/data/a: x") == "a: x"
    assert known.restore_user_paths("in /data/a.") == "in a."
    assert (
        known.restore_user_paths("/data/a/c.json and /data/a/b.json") == "a/c.json and ./a/b.json"
    )
    for other in ("/data/ab", "/data/a.json", "/x/data/a", "file:///data/a", "/data/a-1"):
        assert known.restore_user_paths(other) == other
    assert known.restore_user_paths("/cwd/net.json: cut") == "net.json: cut"


READ_WITH_CAPTURES = {
    "kernels' stacks": "net_inductor_provenance_tracking_kernel_stack_traces_1.json",
    "kernels' nodes": "inductor_provenance_tracking_node_mappings_3.json",
    "of AOTInductor": "kernel_information.json",
    "annotations": "annotations_rank0.json",
    "annotations a folder above": "../kernel_annotations_rank0.json",
    "list of graphs": "capture_traces/execution_details.json",
    "a graph": "capture_traces/bs_1.json",
}


@pytest.mark.parametrize("kind", READ_WITH_CAPTURES)
@pytest.mark.parametrize("spelling", ["itself", "a hard link"])
def test_no_command_overwrites_what_is_read_with_a_capture(
    kind: str, spelling: str, tmp_path: Path
) -> None:
    trace = tmp_path / "in" / "net.json"
    beside = trace.parent / READ_WITH_CAPTURES[kind]
    trace.parent.mkdir()
    beside.parent.mkdir(exist_ok=True)
    trace.write_text(text([]))
    beside.write_text("{}")
    target = SPELLINGS[spelling](beside, tmp_path / "out.json")
    for name in ("prof", "doctor", "export"):
        assert "is an input" in refused(name, trace, "-o", target)
        assert beside.read_text() == "{}"


def test_no_command_overwrites_a_snapshot_next_to_a_capture(net: Path) -> None:
    snapshot = net.with_name("net.memory.pickle")
    snapshot.write_bytes(b"x")
    done = run("summary", net, "-o", snapshot)
    assert (done.code, "belongs to the input" in done.stderr) == (1, True)
    assert snapshot.read_bytes() == b"x"


def test_no_command_overwrites_files_of_a_named_folder(net: Path, tmp_path: Path) -> None:
    for file in ("a/config.json", "b/bs_1.json", "c/capture_traces/bs_1.json"):
        target = tmp_path / file
        target.parent.mkdir(parents=True)
        target.write_text("{}")
        done = run("prof", net, "--with", tmp_path / file[0], "-o", target)
        assert (done.code, f"is an input ({target})" in done.stderr) == (1, True)
        assert target.read_text() == "{}"
