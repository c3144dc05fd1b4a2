"""Which of many small mistakes in pyprof/ the tests find: mutation testing of a seeded sample.

    python benchmarks/mutants.py [--root CHECKOUT] [--count 300] [--seed 1] [--jobs 1]
        [--seconds 20] [--marks 'not long'] [--only 'pyprof/parse/*'] [--list]

Each mutant changes one comparison, condition, operator or constant. Tests likely to find it run
first: those at the mirrored path, then those of its room that import the module, then the rest of
the room. The first that fails kills it, provided that it passes without the mutant. A line is
printed for each: killed, and by which test; survived; or unfinished, if the tests of one of these
groups take more processor time than `--seconds`. A survivor may also be a change without effect.

Tests run in forks of one process that has imported what most of them need, in a copy of the
checkout: `--root` can be any checkout, also one that lacks this script.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

IMPORTED = ("numpy", "pandas", "pyarrow.parquet", "hypothesis", "click.testing", "torch")
NOT_COPIED = (".git", ".venv", ".hypothesis", ".*_cache", "site", "demo")
SKIPPED_KEYWORDS = ("strict", "frozen", "slots", "kw_only", "example", "examples")
"""Keywords of checks that never fail, such as `zip(strict=True)`, and of what only tests read."""
_PAIRS = (
    "Lt LtE, LtE Lt, Gt GtE, GtE Gt, Eq NotEq, NotEq Eq, Is IsNot, IsNot Is, In NotIn, NotIn In, "
    "And Or, Or And, Add Sub, Sub Add, Mult FloorDiv, Div Mult, FloorDiv Mult, Mod FloorDiv, "
    "BitAnd BitOr, BitOr BitAnd, LShift RShift, RShift LShift"
)
SWAPPED = {
    getattr(ast, one): getattr(ast, other)
    for one, other in (pair.split() for pair in _PAIRS.split(", "))
}


class Mutant(NamedTuple):
    """A change of a module: the bytes from `start` to `end` become `code`."""

    path: str
    start: int
    end: int
    code: bytes
    description: str


def draw(root: Path, count: int, seed: int, only: str) -> list[Mutant]:
    """Draw mutants of the modules of a checkout; the same for a seed and the same code."""
    paths = [str(path.relative_to(root)) for path in sorted(root.glob("pyprof/**/*.py"))]
    found = [
        mutant
        for path in paths
        if fnmatch(path, only) and not path.endswith("__main__.py")
        for mutant in mutants(path, (root / path).read_bytes())
    ]
    return random.Random(seed).sample(found, min(count, len(found)))  # noqa: S311


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """List all mutants of a module."""
    lines = source.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    for node, changed in changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        before, after = (ast.unparse(ast.fix_missing_locations(each)) for each in (node, changed))
        more_lines = "\n" * source.count(b"\n", start, end)  # the lines below keep their numbers
        code = f"({after}{more_lines})" if isinstance(node, ast.expr) else after
        line = lines[node.lineno - 1].decode().strip()
        described = f"{path}:{node.lineno}  {before} -> {after}  in  {line}".replace("\n", " ")
        yield Mutant(path, start, end, code.encode(), described)


def changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """List the mutations of a node and of each node below it."""
    yield from changes_of(node)
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and field not in {"annotation", "returns"}
                and not is_inert(child)
            ):
                yield from changes(child)


def is_inert(node: ast.AST) -> bool:
    """Whether tests cannot see a change of the node, or Python 3.11 records no position of it."""
    match node:
        case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Compare(left=ast.Name("__name__"))):
            return True
        case ast.AnnAssign(annotation=ast.Name("TypeAlias")) | ast.JoinedStr():
            return True
    return isinstance(node, ast.keyword) and node.arg in SKIPPED_KEYWORDS


def changes_of(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.AST]]:
    """List the mutations of one node."""
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                swapped = [*node.ops[:number], SWAPPED[type(operator)](), *node.ops[number + 1 :]]
                yield node, ast.Compare(node.left, swapped, node.comparators)
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if type(node.op) in SWAPPED:
            yield node, type(node)(**{**vars(node), "op": SWAPPED[type(node.op)]()})
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node, node.operand
        case ast.Constant(value=int() | float() as value):
            yield node, ast.Constant(not value if isinstance(value, bool) else value + 1)
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension():
            yield from ((test, ast.UnaryOp(ast.Not(), test)) for test in node.ifs)


def likely_tests(root: Path, path: str) -> Iterator[list[str]]:
    """Yield the tests of a module's room in three groups, the likeliest first."""
    module = Path(path)
    package, stem = ".".join(module.parent.parts), module.stem
    if stem == "__init__":
        package, _, stem = package.rpartition(".")
    mirrored = Path("tests", *module.parts[1:-1])
    room = Path(*mirrored.parts[:2])
    tests = (root / room).glob("test_*.py" if room == Path("tests") else "**/test_*.py")
    found = sorted(str(test.relative_to(root)) for test in tests)
    imported = rf"{package}\.{stem}\b|from {package} import (\([^)]*|.*)\b{stem}\b"
    first = {str(mirrored / f"test_{stem.lstrip('_')}.py")}
    second = {test for test in found if re.search(imported, (root / test).read_text("utf-8"))}
    yield [test for test in found if test in first]
    yield [test for test in found if test in second - first]
    yield [test for test in found if test not in first | second]


@dataclass(frozen=True)
class Failures:
    """A plugin of pytest that writes the names of tests that fail to a pipe."""

    pipe: int

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Write the name of a test, or of a module of tests that cannot be imported."""
        if report.failed:
            os.write(self.pipe, f"{report.nodeid}\n".encode())

    pytest_collectreport = pytest_runtest_logreport


class Judge:
    """Runs the tests for mutants, one after another, in a copy of the checkout."""

    def __init__(self, root: Path, folder: Path, seconds: int, marks: str) -> None:
        self.root, self.seconds, self.marks = folder / "checkout", seconds, marks
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        (folder / "shared").symlink_to(root.parent / "shared")
        self.passes: dict[str, bool] = {}
        """Whether a test passes without any mutant."""

    def verdict(self, mutant: Mutant) -> str:
        """Run the tests of a mutant's room until one fails."""
        for tests in likely_tests(self.root, mutant.path):
            failed = tests and "again"
            while failed:
                with self.changed(mutant):
                    failed = self.first_failure(tests)
                if failed == "timeout":
                    return "unfinished"
                if "::" in failed and failed not in self.passes:
                    self.passes[failed] = not self.first_failure([failed])
                if failed and self.passes.get(failed, True):
                    return f"killed by {failed}"
        return "survived"

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Change the module inside the `with`; bytecode of either source is not kept."""
        path = self.root / mutant.path
        source = path.read_bytes()
        for each in (source[: mutant.start] + mutant.code + source[mutant.end :], source):
            path.write_bytes(each)
            for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
                compiled.unlink()
            if each is not source:
                yield

    def first_failure(self, tests: Sequence[str]) -> str:
        """Run tests in a fork; return the one that failed, "" if none, "crash" or "timeout"."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            try:
                self.run(tests, writing)
            finally:  # also in forks of a test that end here
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as lines:
            ended = select.select([lines], [], [], 20 * self.seconds)[0]
            line = lines.readline() if ended else "timeout\n"
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        if not line:
            return "timeout" if os.WTERMSIG(status) == signal.SIGXCPU else "crash"
        return line.strip()

    def run(self, tests: Sequence[str], pipe: int) -> None:
        """Run tests up to the first that fails; write its name, or an empty line if none does."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 1))
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nothing, stream)
        os.chdir(self.root)
        sys.path[0] = os.environ["PYTHONPATH"] = str(self.root)
        sys.dont_write_bytecode = False  # modules are imported for every mutant
        options = ["-xq", "-m", self.marks, "-pno:cacheprovider", "-pno:randomly"]
        options += ["--hypothesis-seed=0"]
        options += ["-Wignore::pytest.PytestAssertRewriteWarning"]  # of modules imported before
        options += [f"--deselect={test}" for test, passes in self.passes.items() if not passes]
        code = pytest.main([*options, *tests], plugins=[Failures(pipe)])
        os.write(pipe, b"\n" if code in {0, 5} else f"exit {int(code)}\n".encode())


def main() -> None:
    """Draw mutants, and print the verdict on each."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument(
        "--marks", default="not slow and not long", help="which tests, as pytest -m takes them"
    )
    parser.add_argument("--only", default="*", help="pattern of paths, such as pyprof/parse/*")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    options = parser.parse_args()
    root = options.root.resolve()
    drawn = draw(root, options.count, options.seed, options.only)
    if options.list:
        print(*(mutant.description for mutant in drawn), sep="\n")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in IMPORTED:
            with suppress(ImportError):
                import_module(name)
    reading, writing = os.pipe()
    folder = tempfile.mkdtemp(prefix="mutants-")
    for job in range(options.jobs):
        if not os.fork():
            os.close(reading)
            judge = Judge(root, Path(folder, str(job)), options.seconds, options.marks)
            for mutant in drawn[job :: options.jobs]:
                os.write(writing, f"{judge.verdict(mutant)}  {mutant.description}\n".encode())
            os._exit(0)
    os.close(writing)
    verdicts: Counter[str] = Counter()
    with os.fdopen(reading) as lines:
        for line in lines:
            verdicts[line.split()[0]] += 1
            print(line, end="", flush=True)
    shutil.rmtree(folder)
    counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    print(f"{verdicts.total()} mutants of seed {options.seed}: {counts}")


if __name__ == "__main__":
    main()
