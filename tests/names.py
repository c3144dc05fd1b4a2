"""Finds names and docstrings that say nothing: `python -m tests.names` lists them.

A part of `make lint`. CONTRIBUTING.md has a glossary of the terms to use instead.
"""

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

LOCALS = frozenset(
    {
        *("found", "told", "whole", "situations", "trials", "portions", "agreement"),
        *("driven", "draws", "extremes"),
    }
)
"""Not for what a function binds; keyword-only parameters are the caller's words."""
FUNCTIONS = frozenset(
    {"beside", "found", "merge", "numbered", "of", "of_all", "said", "spelt", "told"}
)
"""Not for a function, a method or a class: merge what, beside what?"""
CONSTANTS = frozenset({"NONE", "ABSENT", "NOBODY", "OUTSIDE", "NOWHERE"})
"""Not for a constant: `arrays.MISSING` stands for a missing index, `EMPTY_...` for an object."""
DOCSTRINGS = ("Give ", "Tell ")
"""Functions return, yield, report or print."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.ClassDef | ast.Module


def vague(source: str) -> list[tuple[int, str]]:
    """Return line and name of each vague name that a source binds, by line."""
    tree = ast.parse(source)
    bound: set[tuple[int, str]] = set()
    for node in ast.walk(tree):
        if isinstance(node, _Function | ast.ClassDef) and node.name.lstrip("_") in FUNCTIONS:
            bound.add((node.lineno, node.name))
        if isinstance(node, _Function | ast.Lambda):
            bound |= {entry for entry in _locals(node) if entry[1] in LOCALS}
    return sorted(bound)


def _locals(function: _Function | ast.Lambda) -> Iterator[tuple[int, str]]:
    """Yield what a function binds, functions and comprehensions inside it included."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args):
        yield argument.lineno, argument.arg
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def sentinels(source: str) -> list[tuple[int, str]]:
    """Return line and name of each constant that is called as one of CONSTANTS."""
    names = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)]
    stored = [node for node in names if isinstance(node.ctx, ast.Store)]
    return sorted((node.lineno, node.id) for node in stored if node.id in CONSTANTS)


def stilted(source: str) -> list[tuple[int, str]]:
    """Return line and beginning of each docstring that begins with a word of DOCSTRINGS."""
    scopes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, _Scope)]
    docstrings = [(node, ast.get_docstring(node) or "") for node in scopes]
    return sorted(
        (node.body[0].lineno, text.partition(" ")[0])
        for node, text in docstrings
        if text.startswith(DOCSTRINGS)
    )


_COMMENT_ALONE = re.compile(r"(?<=\n\n)(?:#(?!!| fmt:| type:).*\n)+(?=\n)")


def titles(source: str) -> list[tuple[int, str]]:
    """Return line and text of each title in the middle of a module: it has a second subject.

    That is a comment that stands alone between blank lines, or a string that follows no assignment.
    """
    lines = [(source.count("\n", 0, match.start()) + 1, match[0].partition("\n")[0])
             for match in _COMMENT_ALONE.finditer(source)]  # fmt: skip
    body = ast.parse(source).body
    for before, node in pairwise(body):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            described = isinstance(before, ast.Assign | ast.AnnAssign)
            if isinstance(node.value.value, str) and not described:
                lines.append((node.lineno, node.value.value.partition("\n")[0]))
    return sorted(lines)


_OURS = Path("pyprof")
_ELSEWHERE = tuple(map(Path, ("tests", "benchmarks", "examples", "docs")))


def main(root: Path, *others: Path) -> int:
    """Print all problems below a folder, and docstrings below others; return the exit code."""
    checks = (
        (vague, "`{}` says nothing of what it holds"),
        (sentinels, "`{}` is a second name of MISSING, or says nothing of what it holds"),
        (titles, "a second subject in a module: {}"),
    )
    everywhere = ((stilted, "a docstring begins with {}: say what is returned"),)
    lines = [
        f"{path}:{line}: {message.format(text)}"
        for folder, rules in ((root, checks + everywhere), *((each, everywhere) for each in others))
        for path in sorted(folder.rglob("*.py"))
        for check, message in rules
        for line, text in check(path.read_text(encoding="utf-8"))
    ]
    for line in lines:
        print(line)  # noqa: T201 - a tool
    return min(len(lines), 1)


if __name__ == "__main__":
    sys.exit(main(_OURS, *_ELSEWHERE))
