"""Neither `import pyprof` nor a help text loads a heavy package."""

from pathlib import Path

import pytest

from pyprof.__main__ import names
from tests.programs import python
from tests.readers import kineto_json

HEAVY = ("torch", "pandas", "pyarrow", "numpy")
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
    done = python("-c", f"import pyprof; {LOADED}")
    assert (done.stdout.split(), done.stderr) == ([], "")


HELP = f"""
import contextlib, io, sys
class Refusing:
    def find_spec(name, path, target=None):
        assert name not in {HEAVY!r}, f"{{name}} must be imported inside a function, or lazily"
sys.meta_path.insert(0, Refusing)
from pyprof.__main__ import main
for command in sys.argv[1:]:
    said = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(said):
        main([*command.split(), "--help"])
    assert said.getvalue().startswith("Usage:"), command
"""


@pytest.mark.slow
def test_help_loads_nothing_heavy() -> None:
    done = python("-c", HELP, "", *names())
    assert (done.returncode, done.stderr) == (0, ""), done.stderr  # names file and line


OTHERS = """
names = ("nsys", "nvprof", "ncu", "sqlite.tables", "ncu.tables")
others = [f"pyprof.readers.{name}" for name in names]
print(*{"sqlite3", "pyarrow.parquet", *others} & {*sys.modules})
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["parse", "prof", "summary"])
def test_a_json_trace_loads_nothing_that_it_does_not_need(tmp_path: Path, command: str) -> None:
    """Other modules take longer to load than a small trace to read."""
    trace = tmp_path / "trace.json"
    trace.write_text(kineto_json.text([kineto_json.launch(1, 10), kineto_json.kernel(1, 20)]))
    done = python("-c", RUN + LOADED + OTHERS, command, "-q", str(trace))
    loaded, others = done.stdout.splitlines()[-2:]
    assert (loaded, done.stderr) == ("numpy pyarrow", "")
    assert command != "parse" or not others


PREPARED = """
import atexit, gc, os, sys
atexit.register(lambda: print(gc.get_freeze_count() > 0))  # runs last
from pyprof.process import arrow_setup
arrow_setup.prepare()
import pyarrow
assert pyarrow.array([1, 2]).to_pylist() == [1, 2] and "pandas" not in sys.modules
table = pyarrow.table({"key": ["a", "b"] * 1000, "value": [1.0] * 2000})
table.group_by("key").aggregate([("value", "sum")])
names = [*pyarrow.supported_memory_backends()]
pools = [getattr(pyarrow, name + "_memory_pool")() for name in names]
print(*(name for name, pool in zip(names, pools) if pool.max_memory()))
print(os.environ.get("ARROW_DEFAULT_MEMORY_POOL"))
finders = {type(finder).__module__ for finder in sys.meta_path}
print(*pyarrow.table({"a": [1, 2]}).to_pandas().a, *finders & {arrow_setup.__name__})
assert not gc.get_freeze_count()
"""


@pytest.mark.slow
def test_a_prepared_process_skips_slow_set_up() -> None:
    said = python("-c", PREPARED).stdout.splitlines()
    assert said == ["system", "None", "1 2", "True"]


WORKER = """
from pyprof.inputs.processes import Processes
LOADED = "bool(__import__('pyarrow').array([1])) and 'pandas' in __import__('sys').modules"
with Processes(1) as executor:
    print(executor.map(eval, [LOADED], "")[0].value)
"""


@pytest.mark.slow
def test_a_worker_is_set_up_as_the_command_is() -> None:
    pytest.importorskip("pandas")
    assert python("-c", WORKER).stdout.split() == ["False"]


THREADS = """
import os
from pathlib import Path
from pyprof.process import arrow_setup
arrow_setup.prepare()
names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]  # Arrow's has its own
print(names.count(Path("/proc/self/comm").read_text()), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux, which lists threads")
@pytest.mark.parametrize("set_by_user", [None, "1"])
def test_loading_numpy_starts_no_threads(
    set_by_user: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(variable, raising=False)
    if set_by_user:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", set_by_user)
    assert python("-c", THREADS).stdout.split() == ["1", str(set_by_user)]
