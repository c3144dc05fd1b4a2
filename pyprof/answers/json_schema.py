"""The JSON Schema of all answers, made from their classes: types, and docstrings of fields."""

from __future__ import annotations

import ast
import collections.abc
import inspect
import itertools
import json
import textwrap
import types
import typing
from dataclasses import is_dataclass
from importlib import resources
from typing import Any, Literal, Union

from pyprof import answers
from pyprof.prof.columns import json_columns

FILE = "schema.json"
"""The file of the shipped schema, beside this module; `make docs` writes it."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def schema() -> dict[str, Any]:
    """Build the schema of any answer: one of `$defs`, chosen by `kind`."""
    definitions: dict[str, Any] = {}
    kinds = answers.kinds()
    for kind, cls in kinds.items():
        head = {
            "schema_version": {
                "const": answers.VERSION,
                "description": "Of this schema; see docs/json.md.",
            },
            "kind": {"const": kind, "description": "Which answer it is: the command's name."},
            "pyprof_version": {"type": "string", "description": "Version of pyprof that wrote it."},
            "warnings": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What the input hides or distorts, as on stderr.",
            },
        }
        definitions[kind] = _object(cls, definitions, head)
    return {
        "$schema": _DRAFT,
        "title": f"pyprof --json, version {answers.VERSION}",
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
        "$defs": dict(sorted(definitions.items())),
    }


def format_schema() -> str:
    """Format the schema as the text of its file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def shipped() -> dict[str, Any]:
    """Read the shipped schema."""
    content = (resources.files(__package__) / FILE).read_text("utf-8")
    parsed: dict[str, Any] = json.loads(content)
    return parsed


def _object(
    cls: type, definitions: dict[str, Any], head: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Describe a dataclass, all of whose fields are required."""
    names = {"Mapping": collections.abc.Mapping, "Sequence": collections.abc.Sequence}
    hints = typing.get_type_hints(cls, localns=names)
    said = docstrings(cls)
    properties = dict(head or {})
    for field in answers.json_fields(cls):
        form = _form(hints[field.name], definitions)
        properties[field.name] = {**form, "description": said.get(field.name, "")}
    return {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split()),
        "properties": properties,
        "required": list(properties),
    }


def _form(hint: Any, definitions: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401 - a type
    """Describe the JSON form of a type."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if hint is answers.Rows:
        definitions["row"] = _row()
        return {"type": "array", "items": {"$ref": "#/$defs/row"}}
    if is_dataclass(hint) and isinstance(hint, type):
        name = hint.__name__
        described = definitions.get(name)
        if described is None:
            definitions[name] = {}  # for one that holds its own kind
            definitions[name] = _object(hint, definitions)
        elif described and described["properties"].keys() != {
            field.name for field in answers.json_fields(hint)
        }:
            raise ValueError(f"two classes of answers are called {name}")
        return {"$ref": f"#/$defs/{hint.__name__}"}
    return _generic(typing.get_origin(hint), typing.get_args(hint), definitions)


def _generic(
    origin: object, arguments: tuple[Any, ...], definitions: dict[str, Any]
) -> dict[str, Any]:
    if origin in (Union, types.UnionType):
        forms = [_form(each, definitions) for each in arguments]
        if all(form.keys() == {"type"} for form in forms):
            return {"type": [form["type"] for form in forms]}
        return {"anyOf": forms}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (collections.abc.Mapping, dict):
        return {"type": "object", "additionalProperties": _form(arguments[1], definitions)}
    if origin in (tuple, list, collections.abc.Sequence):
        return {"type": "array", "items": _form(arguments[0], definitions)}
    raise TypeError(f"no JSON for {origin!r}")


def _row() -> dict[str, Any]:
    """Describe a row of `prof`, which has the columns that were asked for."""
    return {
        "type": "object",
        "description": "A row of prof, or a group of rows; null: unknown, `why` gives the reason.",
        "properties": {
            key: {**json_columns.form(column), "description": column.help}
            for key, column in json_columns.by_key().items()
        },
    }


def docstrings(cls: type) -> dict[str, str]:
    """Return the docstring below each field of a class and of its base classes."""
    said: dict[str, str] = {}
    for each in reversed([one for one in cls.__mro__ if is_dataclass(one)]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        body = typing.cast("ast.ClassDef", definition).body
        for before, after in itertools.pairwise(body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    said[name] = " ".join(words.split())
    return said
