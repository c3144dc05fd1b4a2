"""What is cheap stays cheap: neither `import pyprof` nor a help text loads a heavy package."""

from pathlib import Path

import pytest

from pyprof.__main__ import names
from tests.programs import python
from tests.readers import kineto_json

HEAVY = ("torch", "pandas", "pyarrow", "numpy", "nvtx")
"""Packages that take long to import."""

LOADED = f"import sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
RUN = """
import sys
from pyprof.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
"""


def test_importing_pyprof_loads_nothing_heavy() -> None:
    """`import pyprof` in a training script costs nothing."""
    done = python("-c", f"import pyprof; {LOADED}")
    assert (done.stdout.split(), done.stderr) == ([], "")


@pytest.mark.parametrize("command", [[], *([name] for name in names())], ids=" ".join)
def test_help_loads_nothing_heavy(command: list[str]) -> None:
    """The help of the group and of each command appears before anything heavy is loaded."""
    done = python("-c", RUN + LOADED, *command, "--help")
    lines = done.stdout.splitlines()
    assert (lines[0].split()[0], lines[-1], done.stderr) == ("Usage:", "", "")


@pytest.mark.parametrize("command", ["parse", "prof", "summary"])
def test_a_json_trace_loads_neither_pandas_nor_sqlites_driver(tmp_path: Path, command: str) -> None:
    """Pandas and SQLite's driver take longer to load than a small trace to read."""
    trace = tmp_path / "trace.json"
    trace.write_text(kineto_json.text([kineto_json.launch(1, 10), kineto_json.kernel(1, 20)]))
    done = python("-c", RUN + LOADED, command, "-q", str(trace))
    assert (done.stdout.splitlines()[-1], done.stderr) == ("numpy pyarrow", "")


OTHERS = """
others = [f"pyprof.readers.{name}" for name in ("nsys", "nvprof", "ncu", "_sqlite", "_ncu_csv")]
print(*{"sqlite3", *others} & {*sys.modules})
"""


def test_a_json_trace_loads_no_reader_of_another_tool(tmp_path: Path) -> None:
    """The readers of other tools take a tenth of the time that a small trace does."""
    trace = tmp_path / "trace.json"
    trace.write_text(kineto_json.text([kineto_json.launch(1, 10), kineto_json.kernel(1, 20)]))
    done = python("-c", RUN + OTHERS, "parse", "-q", str(trace))
    assert (done.stdout.splitlines()[-1], done.stderr) == ("", "")


def test_dict_lines_load_nothing_of_parquet(tmp_path: Path) -> None:
    """Arrow's part for Parquet loads its file systems, and these SSL: 12 ms."""
    trace = tmp_path / "trace.json"
    trace.write_text(kineto_json.text([kineto_json.launch(1, 10), kineto_json.kernel(1, 20)]))
    done = python("-c", f"{RUN}print('pyarrow.parquet' in sys.modules)", "parse", "-q", str(trace))
    assert (done.stdout.splitlines()[-1], done.stderr) == ("False", "")


FRAME = """
import pyarrow, sys
from pyprof import arrow_setup
arrow_setup.prepare()
assert pyarrow.array([1, 2]).to_pylist() == [1, 2] and "pandas" not in sys.modules
assert pyarrow.default_memory_pool().backend_name == "system"
finders = {type(finder).__module__ for finder in sys.meta_path}
print(*pyarrow.table({"a": [1, 2]}).to_pandas().a, *finders & {arrow_setup.__name__})
"""


def test_arrow_makes_frames_though_pandas_was_hidden() -> None:
    """Pandas is hidden from Arrow's first look alone."""
    assert python("-c", FRAME).stdout.split() == ["1", "2"]


GROUPS = """
from pyprof import arrow_setup
arrow_setup.prepare()
import os, pyarrow
table = pyarrow.table({"key": ["a", "b"] * 1000, "value": [1.0] * 2000})
table.group_by("key").aggregate([("value", "sum")])
names = [*pyarrow.supported_memory_backends()]
pools = [getattr(pyarrow, name + "_memory_pool")() for name in names]
print(*(name for name, pool in zip(names, pools) if pool.max_memory()))
print(os.environ.get("ARROW_DEFAULT_MEMORY_POOL"))
"""


def test_groups_take_their_memory_where_all_else_does() -> None:
    """Arrow's own allocators are not used; what this process starts is not told of it."""
    assert python("-c", GROUPS).stdout.split() == ["system", "None"]


WORKER = """
from pyprof.inputs.processes import Processes
LOADED = "bool(__import__('pyarrow').array([1])) and 'pandas' in __import__('sys').modules"
with Processes(1) as engine:
    print(engine.map(eval, [LOADED], "")[0].place)
"""


def test_a_worker_is_set_up_as_the_command_is() -> None:
    """Pandas is hidden from Arrow in the processes that read captures side by side, too."""
    pytest.importorskip("pandas")
    assert python("-c", WORKER).stdout.split() == ["False"]


PAGES = """
from pyprof import arrow_setup
arrow_setup.prepare()
from numpy._core import multiarray
print(multiarray._get_madvise_hugepage())
"""


def test_arrays_ask_for_no_large_pages() -> None:
    """Of these the system clears more than most arrays use; NumPy says what it will do."""
    pytest.importorskip("numpy", minversion="2.0")
    assert python("-c", PAGES).stdout.split() == ["False"]


THREADS = """
import os
from pathlib import Path
from pyprof import arrow_setup
arrow_setup.prepare()
names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]  # Arrow's has its own
print(names.count(Path("/proc/self/comm").read_text()), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which lists threads")
@pytest.mark.parametrize("set_by_user", [None, "1"])
def test_loading_numpy_starts_no_threads(
    set_by_user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linear algebra's threads are not started, and what this process starts is not told so."""
    for variable in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    if set_by_user:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", set_by_user)
    assert python("-c", THREADS).stdout.split() == ["1", str(set_by_user)]


END = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # runs last
from pyprof import arrow_setup
arrow_setup.prepare()
assert not gc.get_freeze_count()
"""


def test_a_process_that_ends_collects_no_garbage() -> None:
    """What it holds is kept from the collector then, and not before."""
    assert python("-c", END).stdout.split() == ["True"]
