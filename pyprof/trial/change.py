"""The register of changes, which are the modules of `changes/`."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from pyprof.errors import PyprofError
from pyprof.suggestions import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Stage: TypeAlias = Literal["torch", "start", "launch"]
"""When a change is applied: once the script has imported torch, before the script starts, or to the
command line and environment of its process."""
WhyNoEffect: TypeAlias = "Callable[[], str | None]"
"""Called at the end of a run: why the change had no effect; None if it had."""


class RefusedError(Exception):
    """The change cannot be applied to this script, for the reason in the message."""


@dataclass(kw_only=True)
class Launch:
    """How the process of a run is started."""

    args: list[str]
    """Arguments of the script."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables to set."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something to try."""

    name: str
    apply: Callable[..., WhyNoEffect | None]
    """Patches torch, and returns how to see that it had an effect. Raises RefusedError."""
    stage: Stage
    takes: str
    """Metavariable of its value; "" if it takes none."""
    default: str | None
    """Its value if none is given; None if one must be."""
    proposed: str | None
    """Its value where advice proposes it; None if the user must choose one."""
    check: Callable[[str], object]
    """Raises ValueError for a value that cannot be used."""
    advised_by: tuple[str, ...]
    """Rules of advice that propose it."""
    predicted_by: str
    """Option of `pyprof whatif` that predicts kernel time with it; "" without a rule."""
    other_random_numbers: bool
    """Whether it draws other random numbers, so that losses need a run that does not."""
    code: str | Callable[[str], str]
    """The lines to write into one's own code; `{value}` is replaced by the value. Or a function
    that makes them from the value.
    """

    @property
    def help(self) -> str:
        """The first line of its docstring."""
        return (self.apply.__doc__ or "").partition("\n")[0]


@dataclass(frozen=True, order=True)
class Chosen:
    """A change with its value."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        return f"{self.name}={self.value}" if self.value else self.name

    @property
    def code(self) -> str:
        """The lines to write into one's own code."""
        code = changes()[self.name].code
        return code(self.value) if callable(code) else code.replace("{value}", self.value)


_CHANGES: dict[str, Change] = {}
_Apply = TypeVar("_Apply", bound="Callable[..., WhyNoEffect | None]")


def change(
    name: str,
    *,
    code: str | Callable[[str], str],
    takes: str = "",
    default: str | None = None,
    proposed: str | None = None,
    check: Callable[[str], object] = str,
    advised_by: Sequence[str] = (),
    predicted_by: str = "",
    other_random_numbers: bool = False,
    stage: Stage = "torch",
) -> Callable[[_Apply], _Apply]:
    """Register a function that applies a change to the process of a run.

    It is called with a `Run`; at the stage "launch" with a `Launch` and the value.
    """

    def register(apply: _Apply) -> _Apply:
        if name in _CHANGES:
            raise ValueError(f"there is a change {name} already")
        _CHANGES[name] = Change(
            name=name,
            apply=apply,
            stage=stage,
            takes=takes,
            default=default,
            proposed=proposed or default or (None if takes else ""),
            check=check,
            advised_by=tuple(advised_by),
            predicted_by=predicted_by,
            other_random_numbers=other_random_numbers,
            code=code,
        )
        return apply

    return register


def changes() -> Mapping[str, Change]:
    """Load and return all changes, by name."""
    package = f"{__package__}.changes"
    for module in pkgutil.iter_modules(import_module(package).__path__):
        import_module(f"{package}.{module.name}")
    return dict(sorted(_CHANGES.items()))


def parse(text: str) -> Chosen:
    """Parse `NAME` or `NAME=VALUE`. Raises PyprofError for an unknown name or a bad value."""
    name, given, value = text.partition("=")
    entry = changes().get(name)
    if entry is None:
        hint = suggestion(name, changes()) or f"; choose from {', '.join(changes())}"
        raise PyprofError(f"no change {name!r}{hint}")
    if given and not entry.takes:
        raise PyprofError(f"{name} takes no value; write --change {name}")
    if not given and entry.takes:
        if entry.default is None:
            raise PyprofError(f"{name} needs a value; write --change {name}={entry.takes}")
        value = entry.default
    try:
        entry.check(value)
    except ValueError as error:
        raise PyprofError(f"--change {text}: {error}") from None
    return Chosen(name, value)


def whole_number(text: str) -> int:
    """Parse a number from 1 up. Raises ValueError."""
    if not text.isdecimal() or not int(text):
        raise ValueError("the value must be a whole number from 1 up")
    return int(text)
