"""A command's JSON, parsed by a strict reader and validated against the schema."""

import json
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from jsonschema import Draft202012Validator

from pyprof.answers import json_schema
from tests.commands import run


@cache
def validator() -> Draft202012Validator:
    schema = json_schema.shipped()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def strict(text: str | bytes) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON without Python's extensions; no text holds a lone surrogate."""
    value = json.loads(text, parse_constant=_refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


def checked(text: str | bytes) -> dict[str, Any]:
    """Read an answer and validate it against the schema, which must list every key."""
    given: dict[str, Any] = strict(text)
    validator().validate(given)
    assert set(given) == set(json_schema.shipped()["$defs"][given["kind"]]["properties"])
    return given


def ask(*arguments: str | Path) -> dict[str, Any]:
    """Run a command with --json, and check its answer."""
    done = run(*arguments, "--json")
    assert done.code == 0, done.stderr
    return checked(done.stdout)
