"""Names and meanings of the columns, read from the source of `columns`.

Importing that module loads Arrow, which takes longer than a help text may.
"""

from __future__ import annotations

import ast
import pkgutil


def column_help() -> list[tuple[str, str]]:
    """Give the name and the meaning of each column, in the order in which they are registered."""
    source = pkgutil.get_data("pyprof.prof", "columns.py") or b""
    entries = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            names = [name for decorator in node.decorator_list if (name := _column_name(decorator))]
            entries += [(name, " ".join((ast.get_docstring(node) or "").split())) for name in names]
    return entries


def _column_name(decorator: ast.expr) -> str | None:
    match decorator:
        case ast.Call(func=ast.Name(id="column"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return None
