"""Names that say nothing of what they hold: `python -m tests.names` lists where `pyprof/` has them.

A part of `make lint`. What a value is has a name of the field: CONTRIBUTING.md has a glossary.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LOCALS = frozenset(
    {
        *("found", "told", "whole", "situations", "trials", "portions", "agreement"),
        *("driven", "draws", "extremes"),
    }
)
"""Not for what a function binds; keyword-only parameters are the caller's words."""
FUNCTIONS = frozenset({"found", "told", "merge", "of", "of_all"})
"""Not for a function, a method or a class: merge what, of what?"""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def vague(source: str) -> list[tuple[int, str]]:
    """Give line and name of each vague name that a source binds, by line."""
    tree = ast.parse(source)
    bound: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef) and node.name in FUNCTIONS:
            bound.add((node.lineno, node.name))
        if isinstance(node, _Function | ast.Lambda):
            bound |= {entry for entry in _locals(node) if entry[1] in LOCALS}
    return sorted(bound)


def _locals(function: _Function | ast.Lambda) -> Iterator[tuple[int, str]]:
    """Give what a function binds, functions and comprehensions inside it included."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args):
        yield argument.lineno, argument.arg
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def main(root: Path) -> int:
    """Print every vague name below a folder; give the number of them as exit code, at most 1."""
    lines = [
        f"{path}:{line}: `{name}` says nothing of what it holds"
        for path in sorted(root.rglob("*.py"))
        for line, name in vague(path.read_text(encoding="utf-8"))
    ]
    print("\n".join(lines)) if lines else None  # noqa: T201 - a tool
    return min(len(lines), 1)


if __name__ == "__main__":
    sys.exit(main(Path("pyprof")))
