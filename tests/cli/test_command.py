"""Common to every command: exit codes, help, both spellings, pipes, whole files."""

import os
import pickle
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from runpy import run_module

import click
import pyarrow as pa
import pytest
from click.testing import CliRunner

import pyprof
from pyprof import __version__, commands
from pyprof.__main__ import main, names
from pyprof.cli.command import ADVANCED, DEBUG, Command
from pyprof.process import output_file
from pyprof.process.messages import warn
from pyprof.readers import nsys
from tests.commands import misused, refused, run
from tests.known import known, raising
from tests.programs import environment, generate, python

READING = ["parse", "prof"]
"""Commands that take a file."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a capture of some 200 kernels."""
    path = tmp_path_factory.mktemp("capture") / "net.sqlite"
    generate(path, "--kernels", "200")
    return path


@pytest.mark.parametrize("name", names())
def test_the_group_and_the_package_share_one_command(name: str) -> None:
    command: click.Command = import_module(f"pyprof.commands.{name}").command
    assert main.get_command(click.Context(main), name) is command
    assert command.name == name


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_in_both_spellings(name: str, flag: str) -> None:
    command = known(main.get_command(click.Context(main), name))
    done = CliRunner().invoke(main, [name, flag])
    words = (command.help or "").split()[:4]
    assert done.exit_code == 0
    assert " ".join(words) in done.output
    assert "\\b" not in done.output
    assert not re.search(r"^  \[?[A-Z]+\]?(\.\.\.)?$", done.output, re.MULTILINE)  # a metavar


def test_the_group_lists_whole_sentences() -> None:
    """The first one of each command; click would truncate it to a line."""
    text = " ".join(CliRunner().invoke(main, ["--help"]).output.split())
    for name in names():
        command = known(main.get_command(click.Context(main), name))
        assert command.hidden or f"{name} {command.get_short_help_str(1000)}" in text


def test_each_module_is_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import click\n@click.command('as-poem')\ndef command(): click.echo('O!')\n"
    for name in ("as_poem.py", "_rhymes.py"):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "pyprof.commands.as_poem", raising=False)
    assert set(names()) >= {"as-poem"}
    assert "-rhymes" not in names()
    assert CliRunner().invoke(main, ["as-poem"]).output == "O!\n"


@pytest.mark.parametrize("name", names())
def test_every_command_runs_as_a_module(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = f"pyprof.{name.replace('-', '_')}"
    import_module(module)
    monkeypatch.setattr(sys, "argv", ["", "--help"])
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.delitem(sys.modules, f"{module}.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        run_module(module, run_name="__main__", alter_sys=True)
    assert ended.value.code in (0, None)
    assert capsys.readouterr().out.startswith(f"Usage: python -m {module} ")


def test_an_unknown_command_is_not_a_module() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"pyprof\.summon"):
        import_module("pyprof.summon")


@pytest.mark.parametrize("used", ["pyprof.init()", "pyprof.nvtx.init()", "pyprof.annotate('a')"])
def test_without_torch_the_half_that_needs_it_says_so_in_one_line(used: str) -> None:
    done = python("-c", f"import sys; sys.modules['torch'] = None; import pyprof; {used}")
    name = used.partition("(")[0]
    assert done.returncode == 1
    assert done.stderr.endswith(f"ImportError: {name} needs PyTorch: pip install torch\n")
    assert done.stderr.count("Traceback") == 1


OTHER_FORMS = [
    ("summary", "x.csv"), ("lines", "x.csv"), ("lines", "x.html"), ("summary", "x.sqlite"),
    ("prof", "x.html"), ("prof", "x.parquet"), ("peaks", "x.html"), ("report", "x.json"),
    ("prof", "net.dict"), ("summary", "x.db"), ("report", "x.txt"), ("memory", "x.pickle"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "name"), OTHER_FORMS)
def test_the_output_form_must_fit_the_suffix(
    command: str, name: str, capture: Path, tmp_path: Path
) -> None:
    target = tmp_path / name
    target.write_text("mine")
    said = misused(command, *[capture] * (command != "peaks"), "-o", target)
    assert "must end in one of ." in said
    assert target.read_text() == "mine"


@pytest.mark.parametrize("command", ["prof", "peaks"])
def test_the_suffix_csv_selects_csv(command: str, capture: Path, tmp_path: Path) -> None:
    arguments = [capture] if command == "prof" else []
    assert run(command, *arguments, "-o", tmp_path / "x.csv").code == 0
    assert (tmp_path / "x.csv").read_text() == run(command, "--csv", *arguments).stdout
    assert run("prof", "-w", "90", capture, "-o", tmp_path / "x.csv").code == 2


@pytest.mark.slow
def test_text_is_written_to_text_suffixes(capture: Path, tmp_path: Path) -> None:
    for name in ("net", "net.txt", "net.log"):
        done = run("summary", "-q", capture, "-o", tmp_path / name)
        assert (done.code, done.stdout) == (0, "")
        assert (tmp_path / name).read_text().startswith("GPU")


def test_version() -> None:
    assert CliRunner().invoke(main, ["-V"]).output == f"pyprof, version {__version__}\n"


BAD_INPUTS: dict[str, bytes | None] = {
    "no file": None,
    "an empty file": b"",
    "a text file": b"Nothing of the sort.\n",
    "zeros": bytes(8192),
    "a header of SQLite alone": b"SQLite format 3\0" + bytes(84),
    "a binary file": bytes(range(255, 0, -1)) * 40,
}


@pytest.mark.parametrize("content", BAD_INPUTS.values(), ids=BAD_INPUTS.keys())
@pytest.mark.parametrize("command", READING)
def test_bad_input_exits_with_1_and_one_line(
    command: str, content: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "net.sqlite"
    target = tmp_path / ("out.dict" if command == "parse" else "out")
    if content is not None:
        path.write_bytes(content)
    said = refused(command, path, "-o", target)
    assert ("net.sqlite" if path.exists() else "net.sqlite: no such file") in said
    assert list(tmp_path.iterdir()) == [path] * (content is not None)


WRONG_USES = {
    "no such command": ["summon"],
    "no such option": ["parse", "--sideways", "x"],
    "no capture": ["parse"],
    "a suffix that says no format": ["parse", "x", "-o", "x.xlsx"],
    "no such column": ["prof", "-c", "idx,colour", "-"],
    "two output forms": ["prof", "--csv", "-w", "150", "-"],
    "no width": ["prof", "-w", "0", "-"],
    "no such key": ["prof", "--by", "colour", "-"],
    "no such second key": ["prof", "--by", "op,nothing", "-"],
    "a key of its own rows": ["prof", "--by", "op,params", "-"],
    "an empty key": ["prof", "--by", "", "-"],
    "no device to measure": ["peaks", "--measure", "T4"],
    "no such device to measure": ["peaks", "--measure", "tpu"],
    "a card and a device to measure": ["peaks", "T4", "--measure", "cpu"],
    "no such fusion": ["whatif", "--fuse", "attention,all", "-"],
    "no factor": ["whatif", "--batch", "many", "-"],
    "no such type": ["whatif", "--dtype=int3", "-"],
    "no such GPU": ["whatif", "--gpu=nosuch", "-"],
    "columns of groups": ["prof", "--by", "op", "-c", "idx", "-"],
    "a group of nvprof's tables": ["prof", "--summary", "nvprof", "--by", "op", "-"],
    "a suffix of no comparison": ["diff", "a", "b", "-o", "x.pdf"],
    "a limit of no metric": ["diff", "a", "b", "--fail-if", "speed>3%"],
    "source for a format without it": ["export", "--source", ".", "x", "-o", "x.csv"],
    "a suffix of no table": ["ranks", "a", "-o", "x.html"],
    "one stdin for two": ["diff", "-", "-"],
    "keys of tables, for JSON": ["memory", "--by", "line", "--json", "x"],
    "keys of tables, for a page": ["memory", "--by", "line", "-o", "x.html", "x"],
}


@pytest.mark.parametrize("arguments", WRONG_USES.values(), ids=WRONG_USES.keys())
def test_wrong_usage_exits_with_2(arguments: list[str]) -> None:
    assert "Error: " in misused(*arguments)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes close otherwise there")
@pytest.mark.parametrize("command", READING)
def test_a_closed_pipe_ends_quietly(command: str, tmp_path: Path) -> None:
    capture = tmp_path / "long.sqlite"
    generate(capture, "--kernels", "4000")  # far more than a pipe holds
    line, pipe = [sys.executable, "-m", "pyprof", command, "-q", str(capture)], subprocess.PIPE
    process = subprocess.Popen(line, stdout=pipe, stderr=pipe, env=environment())
    with known(process.stdout) as out, known(process.stderr) as err:
        first = out.readline()
        out.close()
        assert (first[-1:], err.read(), process.wait()) == (b"\n", b"", 0)


def _in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m pyprof {line}'],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no disk that is always full")
@pytest.mark.parametrize("command", ["prof", "summary"])
@pytest.mark.parametrize(
    ("redirection", "said"),
    [("> /dev/full", "No space left on device"), (">&-", "stdout is closed")],
)
def test_an_unwritable_stdout_exits_with_1(
    command: str, redirection: str, said: str, capture: Path
) -> None:
    done = _in_a_shell(f'{command} "{capture}" {redirection}')
    assert done.returncode == 1
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no disk that is always full")
@pytest.mark.parametrize("arguments", ["--help", "-V", "prof --help"])
def test_a_help_text_on_a_full_disk_exits_with_1(arguments: str) -> None:
    done = _in_a_shell(f"{arguments} > /dev/full")
    assert (done.returncode, done.stderr) == (1, "pyprof: stdout: No space left on device\n")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 or UTF-16 elsewhere")
@pytest.mark.parametrize("arguments", [["prof", "NAME"], ["capture", "-o", "NAME", "x.py"]])
def test_a_name_that_is_not_utf8_is_an_error(arguments: list[str], tmp_path: Path) -> None:
    """Arrow and torch refuse it: one line, before anything runs."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/n\xe9t.parquet")
    shutil.copy(_parquet(tmp_path), name)
    (tmp_path / "x.py").write_text("raise SystemExit('ran')")
    done = subprocess.run(
        [sys.executable, "-m", "pyprof", *(name if a == "NAME" else a for a in arguments)],
        capture_output=True, text=True, cwd=tmp_path, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "\\udce9t.parquet': not UTF-8; rename" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "ran" not in done.stderr.split()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="names are UTF-8 or UTF-16 elsewhere")
def test_a_report_shows_the_bytes_of_a_name_that_is_not_utf8(capture: Path, tmp_path: Path) -> None:
    name = shutil.copy(capture, os.fsdecode(os.fsencode(tmp_path) + b"/n\xe9t.sqlite"))
    assert run("report", "-q", name, "-o", tmp_path / "net.html").code == 0
    assert "<h1>n\\udce9t.sqlite" in (tmp_path / "net.html").read_text("utf-8")


def _parquet(folder: Path) -> Path:
    capture, path = folder / "net.sqlite", folder / "net.parquet"
    generate(capture, "--kernels", "3")
    assert run("parse", "-q", capture, "-o", path).code == 0
    return path


@click.command(cls=Command)
@click.option("-o", "target", default=output_file.STDOUT)
@click.argument("fault")
def _faulty(fault: str, target: str) -> None:
    """Fail half-way."""
    with output_file.open_output(target) as out:
        out.write(b"half")
        raise {"key": KeyError("x\ny"), "memory": MemoryError()}[fault]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("key", ["internal error (KeyError: 'x", "please report it", "PYPROF_DEBUG=1"]),
        ("memory", ["not enough memory", "capture a shorter part"]),
    ],
)
def test_an_unexpected_error_is_one_line(fault: str, words: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(_faulty, [fault, "-o", str(tmp_path / "out")])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert all(word in done.stderr for word in words)
    assert list(tmp_path.iterdir()) == []
    shown = CliRunner(env={DEBUG: "1"}).invoke(_faulty, [fault, "-o", str(tmp_path / "out")])
    assert isinstance(shown.exception, KeyError if fault == "key" else SystemExit)


def test_an_arrow_memory_error_is_not_damage(
    capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error is both a memory error and one of Arrow; the capture is sound."""
    monkeypatch.setattr(nsys, "read", raising(pa.ArrowMemoryError("malloc of size 1 failed")))
    for command in READING:
        assert "not enough memory" in run(command, capture).stderr


def test_a_note_is_not_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    warn(["note: 3 of 3 match", "the file is cut short"])
    assert capsys.readouterr().err == (
        "pyprof: note: 3 of 3 match\npyprof: warning: the file is cut short\n"
    )


@pytest.mark.slow
def test_a_capture_without_a_command_is_summarised(capture: Path) -> None:
    done = run(capture, "--json")
    assert (done.code, done.stdout) == (0, run("summary", capture, "--json").stdout)


def test_a_path_without_a_file_is_not_an_unknown_command(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "net.sqlite")
    assert "No such command 'summry'" in run("summry").stderr


def test_an_option_before_its_command_is_told_its_place() -> None:
    assert "after the command or the file" in misused("--json", "net.sqlite")


def test_importing_a_command_leaves_the_function_of_its_name() -> None:
    imported: object = import_module("pyprof.summary")
    assert imported is pyprof.summary
    assert callable(pyprof.summary)
    assert not callable(import_module("pyprof.lines"))


def test_a_memory_snapshot_without_a_command_goes_to_memory(tmp_path: Path) -> None:
    (tmp_path / "snapshot").write_bytes(pickle.dumps({"segments": [], "device_traces": []}))
    assert main.command_for_file(str(tmp_path / "snapshot")) == "memory"


@pytest.mark.parametrize("name", ["summary", "prof", "lines"])
def test_no_file_on_a_terminal_is_a_usage_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody types records."""
    monkeypatch.setattr("pyprof.cli.capture_options.stdio.terminal", lambda _: True)
    assert "name a capture" in misused(name)


@pytest.mark.parametrize("name", names())
def test_rare_options_are_listed_last(name: str) -> None:
    command = known(main.get_command(click.Context(main), name))
    text = CliRunner().invoke(main, [name, "--help"]).output
    usual, _, advanced = text.partition("\nAdvanced:\n")
    for param in command.get_params(click.Context(command)):
        if isinstance(param, click.Option):
            is_rare = not ADVANCED.isdisjoint(param.opts)
            (spelling, *_) = param.get_help_record(click.Context(command)) or ("",)
            assert f"  {spelling}" in (advanced if is_rare else usual)
