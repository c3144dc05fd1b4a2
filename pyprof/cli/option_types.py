"""Types of option values: words, rates, numbers, files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable

    _FloatType = click.ParamType[float]
    _ChoiceType = click.Choice[str]
else:
    _FloatType = click.ParamType  # takes no type argument in older click
    _ChoiceType = click.Choice


class Choice(_ChoiceType):
    """One of several words; suggests one for a mistyped word."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """Return click's message with a suggestion."""
        message = super().get_invalid_choice_message(value, ctx)
        return f"{message.rstrip('.')}{suggestion(str(value), map(str, self.choices)) or '.'}"


class WholeNumber(click.IntRange):
    """A number in a range; click's own message calls a word no valid "integer range"."""

    name = "whole number"


_FILES = {"FILE", "DIR", "PATH", "OUT"}
"""Metavars of options that name a file or folder. All arguments do."""


def complete_files(params: Iterable[click.Parameter]) -> None:
    """Let the shell complete file names for parameters that take files: click cannot tell."""
    for param in params:
        named = isinstance(param, click.Argument) or getattr(param, "metavar", None) in _FILES
        if named and param.type in (click.STRING, click.UNPROCESSED):
            param._custom_shell_complete = (  # noqa: SLF001 - else each param would have to pass it
                lambda _ctx, _param, incomplete: [CompletionItem(incomplete, type="file")]
            )


_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


class Quantity(_FloatType):
    """A positive rate in `unit`, as people write it: 989e12, 989T, 3.35 TB/s. SI prefixes."""

    def __init__(self, unit: str) -> None:
        self.unit = self.name = unit
        symbol = re.escape(unit).replace("/s", "(?:/s|S|ps)?")
        number = r"(\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+)"
        self._form = re.compile(rf"{number}\s*([kMGTP]?)(?:{symbol})?", re.IGNORECASE)

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the rate; a usage error unless it is a finite number above 0."""
        match = self._form.fullmatch(str(value).strip())
        rate = float(match[1]) * _PREFIXES[match[2].lower()] if match else 0.0
        if not 0 < rate < float("inf"):
            self.fail(f"{value!r} is not a rate in {self.unit}, such as 1.5e12 or 1.5T", param, ctx)
        return rate


class Number(_FloatType):
    """A finite number above 0 (`zero`: from 0) up to `most`; click's range accepts nan and inf."""

    name = "number"

    def __init__(self, example: str, most: float = float("inf"), *, zero: bool = False) -> None:
        self._example, self._most, self._zero = example, most, zero

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse the number; a usage error if there is none, or it is out of range."""
        try:
            number = float(str(value))
        except ValueError:
            number = float("nan")
        fits = 0 <= number <= self._most if self._zero else 0 < number <= self._most
        if not fits or number == float("inf"):
            range_ = "from 0" if self._zero else "above 0"
            range_ += "" if self._most == float("inf") else f" to {self._most:g}"
            self.fail(f"{value!r} is not a number {range_}, such as {self._example}", param, ctx)
        return number
