"""The register of changes, which are the modules of `changes/`."""

from __future__ import annotations

import pkgutil
from dataclasses import KW_ONLY, dataclass, field
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
_Apply = TypeVar("_Apply", bound="Callable[..., WhyNoEffect | None]")


class RefusedError(Exception):
    """The change cannot be applied to this script, for the reason in the message."""


@dataclass(kw_only=True)
class Launch:
    """How the process of a run is started."""

    args: list[str]
    """Arguments of the script."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables to set."""


@dataclass
class Change:
    """Something to try: as a decorator, registers the function that applies it.

    The function is called with a `Run`; at the stage "launch" with a `Launch` and the value. It
    patches torch, and returns how to see that it had an effect. Raises RefusedError.
    """

    name: str
    _: KW_ONLY
    code: str | Callable[[str], str]
    """The lines to write into one's own code; `{value}` is replaced by the value. Or a function
    that makes them from the value."""
    takes: str = ""
    """Metavariable of its value; "" if it takes none."""
    default: str | None = None
    """Its value if none is given; None if one must be."""
    proposed: str | None = None
    """Its value where advice proposes it, by default `default`; None if the user must choose."""
    check: Callable[[str], object] = str
    """Raises ValueError for a value that cannot be used."""
    advised_by: Sequence[str] = ()
    """Rules of advice that propose it."""
    predicted_by: str = ""
    """Option of `pyprof whatif` that predicts kernel time with it; "" without a rule."""
    other_random_numbers: bool = False
    """Whether it draws other random numbers, so that losses need a run that does not."""
    stage: Stage = "torch"
    apply: Callable[..., WhyNoEffect | None] = field(init=False)

    def __post_init__(self) -> None:
        self.proposed = self.proposed or self.default or (None if self.takes else "")

    def __call__(self, apply: _Apply) -> _Apply:
        """Register the function that applies it."""
        if self.name in _CHANGES:
            raise ValueError(f"there is a change {self.name} already")
        self.apply = apply
        _CHANGES[self.name] = self
        return apply

    @property
    def help(self) -> str:
        """The first line of the function's docstring."""
        return (self.apply.__doc__ or "").partition("\n")[0]


change = Change
_CHANGES: dict[str, Change] = {}


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
