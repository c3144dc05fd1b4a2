"""A script run for its user: its surroundings, and what is left if it fails."""

import atexit
import json
import os
import py_compile
import signal
import sys
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

from pyprof.capture import script
from pyprof.errors import PyprofError
from tests import programs
from tests.analysis.captured import capture


@pytest.fixture(autouse=True)
def _pythons_own_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show errors as Python does; torch.distributed, once used, puts ranks before them."""
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)


def write(folder: Path, text: str) -> script.Target:
    path = folder / "train.py"
    path.write_text(text)
    return script.Target(str(path))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("pass", 0),
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(7)", 7),
        ("import sys; sys.exit(-1)", 255),
        ("import sys; sys.exit('a reason')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", 130),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", 143),
        ("def (", 1),
    ],
)
def test_exit_code(tmp_path: Path, text: str, code: int) -> None:
    assert script.run(write(tmp_path, text)) == code


def test_what_the_script_sees(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("answer = 42")
    text = """
import json, sys, beside
seen = [__name__, sys.argv[1:], sys.path[0], beside.answer]
with open(sys.argv[1], "w") as file:
    json.dump(seen, file)
"""
    target = write(tmp_path, text)
    out = str(tmp_path / "seen.json")
    before = sys.argv, list(sys.path)
    assert script.run(script.Target(target.name, (out, "--lr", "-o"))) == 0
    with open(out, encoding="utf-8") as file:  # noqa: PTH123 - as the script did
        assert json.load(file) == ["__main__", [out, "--lr", "-o"], str(tmp_path), 42]
    assert (sys.argv, sys.path) == before


def test_a_script_finds_its_file_from_anywhere(here: Path) -> None:
    write(here, """
import inspect, os, sys
os.chdir("/")
def f(): return 42
open(__file__).close()
assert "return 42" in inspect.getsource(f)
assert __loader__.path == __file__
sys.exit(0 if sys.argv[0] == "train.py" else 1)
""")  # fmt: skip
    assert script.run(script.Target("train.py")) == 0


@pytest.mark.parametrize("packed", [False, True])
def test_folder_and_archive(tmp_path: Path, packed: bool) -> None:  # noqa: FBT001
    text = "import sys; sys.exit(7 if vars(sys.modules['__main__']) is globals() else 1)"
    path = tmp_path / "app"
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__main__.py", text)
    else:
        path.mkdir()
        (path / "__main__.py").write_text(text)
    assert script.run(script.Target(str(path))) == 7


def test_compiled_script(tmp_path: Path) -> None:
    source = write(tmp_path, "import sys; sys.exit(7)")
    compiled = py_compile.compile(source.name, str(tmp_path / "train.pyc"))
    assert script.run(script.Target(str(compiled))) == 7


@pytest.mark.parametrize(
    ("started", "module"),
    [("pyprof", ""), ("pytest", ""), ("pyprof", "pyprof.__main__"), ("pytest", "pytest.__main__")],
)
def test_the_folder_of_pyprof_is_off_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, module: str
) -> None:
    """Python puts the folder of the started program first: ours is removed."""
    text = "import sys; sys.exit(int('/home/user/bin' in sys.path))"
    target = write(tmp_path, text)
    monkeypatch.setattr("sys.path", ["/home/user/bin", *sys.path])
    monkeypatch.setattr("sys.argv", [f"/home/user/bin/{'__main__.py' if module else started}"])
    monkeypatch.setitem(sys.modules, "__main__", main := ModuleType("__main__"))
    main.__spec__ = ModuleSpec(module, None) if module else None
    assert script.run(target) == int(started == "pytest")
    assert sys.path[0] == "/home/user/bin"


def test_threads_executors_and_atexit_of_the_script_end_as_in_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
import atexit, sys, threading
from concurrent.futures import ThreadPoolExecutor
went_on = threading.Event()
def first():
    went_on.wait()
    threading.Thread(target=print, args=("a thread of a thread",)).start()
threading.Thread(target=first).start()
executor = ThreadPoolExecutor(1)
executor.submit(print, "an executor").result()
def refused():
    try: executor.submit(print)
    except RuntimeError: print("shut")
atexit.register(print, "registered", sys.argv[1:])
atexit.register(refused)
atexit.register(lambda: 1 / 0)
atexit.register(print, "not any more")
atexit.unregister(print)
atexit.register(print, "again")
went_on.set()
print("the last line")
sys.exit(3)
"""
    registered = atexit.register
    assert script.run(script.Target(write(tmp_path, text).name, ("--lr",))) == 3
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "an executor", "the last line", "a thread of a thread", "again", "shut",
    ]  # fmt: skip
    assert "Exception ignored in atexit callback" in err
    assert err.count("File ") == 1
    assert atexit.register is registered
    with ThreadPoolExecutor(1) as executor:  # ours, for the report
        assert executor.submit(int, "7").result() == 7


def test_folder_streams_and_warnings_are_restored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our report goes where the user can read it, and no warning in it is an error."""
    before = [*warnings.filters], Path.cwd(), sys.getrecursionlimit()
    text = """
import io, os, sys, warnings
warnings.simplefilter("error")
sys.setrecursionlimit(sys.getrecursionlimit() - 1)
os.chdir(os.path.dirname(__file__)); os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
sys.stdout = io.StringIO()
sys.stdout.write("the script's")
"""
    assert script.run(write(tmp_path, text)) == 0
    sys.stdout.write("the report")
    assert ([*warnings.filters], Path.cwd(), sys.getrecursionlimit()) == before
    assert capsys.readouterr().out == "the report"


def test_a_syntax_error_names_file_and_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script.run(write(tmp_path, "x = = 3"))
    assert capsys.readouterr().err.startswith(f'  File "{tmp_path / "train.py"}", line 1')


def test_module(here: Path) -> None:
    package = here / "pkg_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text("import sys; sys.exit(len(sys.argv))")
    target = script.Target("pkg_of_test.train", ("a", "b"), module=True)
    assert script.run(target) == 3
    assert target.label() == "train"
    assert "sys.exit" in script.source(target)


def test_traceback_begins_in_the_script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.run(write(tmp_path, "def f():\n    raise ValueError('told')\nf()\n"))
    shown = capsys.readouterr().err
    assert shown.count("File ") == 2
    assert "told" in shown
    assert "pyprof" not in shown


@pytest.mark.parametrize(("end", "code"), [("sys.exit(7)", 7), ("raise KeyError(seen)", 1)])
def test_an_excepthook_may_end_the_process_or_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], end: str, code: int
) -> None:
    hook = f"def hook(*error):\n    seen = sys.exc_info()[0]\n    {end}\n"
    assert script.run(write(tmp_path, f"import sys\n{hook}sys.excepthook = hook\n1 / 0\n")) == code
    lines = capsys.readouterr().err.splitlines()
    if code == 1:
        assert lines[0] == "Error in sys.excepthook:"
        assert lines[lines.index("Original exception was:") - 2] == "KeyError: None"
        assert lines[-1] == "ZeroDivisionError: division by zero"
    else:
        assert lines == []


def test_the_signal_handler_is_restored(tmp_path: Path) -> None:
    script.run(write(tmp_path, "pass"))
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_worker_dies_by_the_signal(tmp_path: Path) -> None:
    text = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
worker = os.fork()
if not worker:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(0)
sys.exit(os.WTERMSIG(os.waitpid(worker, 0)[1]))
"""
    assert script.run(write(tmp_path, text)) == signal.SIGTERM


REFUSED = {
    "gone.py": r"gone\.py: no such script",
    "python": "a program, not a script; leave it out",  # other profilers run `python train.py`
    "net.sqlite": r"not a script; .*: pyprof .*net\.sqlite$",
    "net.dict": r"not a script; .*: pyprof .*net\.dict$",  # Python would run it: literals of dicts
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_script_is_refused(
    name: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture(here / "net.sqlite")
    (here / "net.dict").write_text("{'kShortName': 'k', 'kLongName': 'k', 'kDuration': 1}\n")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    with pytest.raises(PyprofError, match=REFUSED[name]):
        script.check(script.Target(name, ("train.py",)))


@pytest.mark.parametrize("text", ["", "print(1)", "{print(1)}"])
def test_a_script_may_have_any_suffix(text: str, tmp_path: Path) -> None:
    (tmp_path / "net.sqlite").write_text(text)
    script.check(script.Target(str(tmp_path / "net.sqlite")))


def test_a_script_without_a_suffix_finds_no_arrow_loaded(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("print(1)")
    check = (
        "import sys\nfrom pyprof.capture import script\n"
        f"script.check(script.Target({str(tool)!r}))\nprint('pyarrow' in sys.modules)"
    )
    assert programs.python("-c", check).stdout == "False\n"


def test_a_module_is_looked_for_where_python_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the current folder, which is not on the path of the command `pyprof`."""
    (tmp_path / "here_alone.py").write_text("pyprof.profile()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [part for part in sys.path if part])
    module = script.Target("here_alone", module=True)
    script.check(module)
    assert script.source(module) == "pyprof.profile()"
    with pytest.raises(PyprofError, match="gone_alone: no such module"):
        script.check(script.Target("gone_alone", module=True))
