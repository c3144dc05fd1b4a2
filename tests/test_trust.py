"""docs/trust.md is true: the code evaluates nothing and connects to nothing."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.programs import TOP

EVALUATING = {"eval", "exec", "execfile", "compile", "__import__"}
LOADING = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "yaml"}
CONNECTING = {"socket", "ssl", "urllib.request", "http", "ftplib", "smtplib", "requests", "httpx",
              "aiohttp", "fsspec", "distributed", "webbrowser", "telnetlib", "xmlrpc"}  # fmt: skip
STARTING = {"subprocess", "pty", "multiprocessing"}

EXCEPT = {
    "exec": {"pyprof/capture/script.py"},  # the user's own script
    "compile": {"pyprof/capture/script.py"},
    # refuse every class and function
    "pickle": {"pyprof/readers/kineto/graphs/annotations.py", "pyprof/allocations/unpickle.py",
               "pyprof/trial/changes/loaders.py"},  # writes only: whether a dataset can be sent
    "socket": {"pyprof/inputs/dask_cluster.py",  # the address that --workers names
               "pyprof/trial/ranks.py"},  # finds a free port, connects to nothing
    "distributed": {"pyprof/inputs/dask_cluster.py"},
    "webbrowser": {"pyprof/commands/report.py"},  # --open
    "fsspec": {"pyprof/inputs/files.py"},  # URLs that the user names
    # --workers, and the processes that a script starts
    "multiprocessing": {"pyprof/inputs/processes.py", "pyprof/capture/child_captures.py",
                        "pyprof/capture/under_profiler/marking.py",
                        "pyprof/trial/changes/loaders.py"},  # how a script starts its processes
    "subprocess": {"pyprof/capture/machine.py", "pyprof/capture/nsight/nsys_capture.py",
                   "pyprof/capture/under_profiler/profiler_process.py",  # nsys or rocprofv3
                   "pyprof/readers/nsys_report.py",  # nvidia-smi and nsys
                   "pyprof/trial/processes.py",  # the user's script, with and without a change
                   "pyprof/allocations/snapshot.py"},  # reads pickles in a process of its own
}  # fmt: skip


@cache
def _uses() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in (TOP / "pyprof").rglob("*.py"):
        place = PurePosixPath(path.relative_to(TOP).as_posix())
        for node in ast.walk(ast.parse(path.read_bytes())):
            for name in _names(node):
                found.setdefault(name, set()).add(str(place))
    return found


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield node.func.id
    modules: list[str] = []
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    for module in modules:
        parts = module.split(".")
        yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


@pytest.mark.few(5)
@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EVALUATING | LOADING | CONNECTING | STARTING))
def test_the_code_evaluates_unpickles_connects_and_starts_nothing(name: str) -> None:
    assert _uses().get(name, set()) == EXCEPT.get(name, set())


def test_the_page_names_existing_tests() -> None:
    page = (TOP / "docs" / "trust.md").read_text(encoding="utf-8")
    named = [text for text in page.split("`") if text.startswith("tests/")]
    assert named
    assert all((TOP / text).exists() for text in named)
    assert "(trust.md" in (TOP / "docs" / "README.md").read_text(encoding="utf-8")
