"""Names and meanings of the columns, read from the source of the modules that register them.

Importing those loads Arrow, which takes longer than a help text may.
"""

from __future__ import annotations

import ast
import pkgutil

_FILES = ("columns.py", "measured_columns.py")
"""In the order in which their columns are registered."""


def column_help() -> list[tuple[str, str]]:
    """Give the name and the meaning of each column, in the order in which they are registered."""
    sources = (pkgutil.get_data("pyprof.prof", file) or b"" for file in _FILES)
    entries = []
    for node in (node for source in sources for node in ast.parse(source).body):
        if isinstance(node, ast.FunctionDef):
            names = [name for decorator in node.decorator_list if (name := _column_name(decorator))]
            entries += [(name, " ".join((ast.get_docstring(node) or "").split())) for name in names]
    return entries


def _column_name(decorator: ast.expr) -> str | None:
    match decorator:
        case ast.Call(func=ast.Name(id="column"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return None
