"""Facts of a summary: one number each, which text, page and JSON show. Found automatically.

A module here has a LABEL of at most nine characters, a UNIT of `UNITS`, `summarise(source, rows)`,
which sums up the chosen rows of a capture, and `value(sums)`, which computes the number from the
sums of all captures, added up by `merge_sums`; None if unknown. The first line of its docstring
describes the number.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from pyprof.answers.summary_answer import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.arrays import Mask
    from pyprof.inputs.source import Source

UNITS = ("ns", "bytes", "share", "count")
"""What a number is; views format it accordingly."""


class FactModule(Protocol):
    """What a module of this package provides."""

    LABEL: str
    UNIT: str

    def summarise(self, source: Source, rows: Mask | None) -> Any:  # noqa: ANN401 - its own
        """Sum up the chosen rows of a capture (None: all), small enough to send."""

    def value(self, sums: Any) -> float | None:  # noqa: ANN401 - its own
        """Compute the number from the sums; None if unknown."""


@cache
def modules() -> Mapping[str, FactModule]:
    """The facts by name, in alphabetical order."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: cast("FactModule", import_module(f"{__name__}.{name}")) for name in names}


def fact_sums(source: Source, rows: Mask | None) -> dict[str, Any]:
    """The sums of each fact over the chosen rows of a capture."""
    return {name: module.summarise(source, rows) for name, module in modules().items()}


def facts(sums: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The known facts, given the sums of all captures."""
    values = ((name, module, module.value(sums[name])) for name, module in modules().items())
    return tuple(
        Fact(name, module.LABEL, value, module.UNIT, (module.__doc__ or "").partition("\n")[0])
        for name, module, value in values
        if value is not None
    )
