"""Parameters of tools, the same in all of them, and the error for a wrong one.

A tool annotates each with its type and its description: `Annotated[str, "what it is"]`.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_ONE = "Path of a capture"
File: TypeAlias = Annotated[str, f"{_ONE}."]
Files: TypeAlias = Annotated[
    str | list[str],
    f"{_ONE}, a folder or a glob, or a list of them: several captures are the ranks of one run.",
]
Gpu: TypeAlias = Annotated[
    str,
    "Name of the GPU whose peaks efficiencies are relative to, as the tool peaks lists them: "
    "`H100 SXM`; or rates, `flops=989T,bandwidth=3.35T`. Default: the GPU that the capture names.",
]
Where: TypeAlias = Annotated[
    str,
    "Only rows that match: conditions on columns of prof, joined by `and`: `tc=0 and eff<20`, "
    "`op~attention`, `idx=12`.",
]
Steps: TypeAlias = Annotated[
    str, "Only these steps, counted from 0: `3:`, `3:7`, `3`. Default: all."
]
Limit: TypeAlias = Annotated[
    int, "Entries per list, at most 500; `cut` and `..._left_out` say how many more there are."
]

_FORMER = {"captures": "file", "capture": "file", "recordings": "file", "a": "before", "b": "after"}
"""Former names of parameters: they still work, but are not listed."""
_KINDS = {
    int: "a whole number",
    int | None: "a whole number",
    str: "a text",
    str | list[str]: "a text, or a list of texts",
}


def described(tool: Callable[..., Any]) -> Mapping[str, tuple[Any, str]]:
    """Return type and description of each parameter. Raises TypeError for one without."""
    hints = get_type_hints(tool, include_extras=True)
    types_and_texts = {}
    for name in inspect.signature(tool).parameters:
        metadata = getattr(hints[name], "__metadata__", ())
        if not metadata:
            raise TypeError(f"{tool.__name__}: {name} has no description")
        types_and_texts[name] = (hints[name].__origin__, str(metadata[-1]))
    return types_and_texts


def with_present_names(tool: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with former names replaced. Raises ValueError for an unknown name.

    The error lists the right names, as does the one for a missing argument.
    """
    parameters = inspect.signature(tool).parameters
    arguments: dict[str, Any] = {}
    for name, value in given.items():
        present = name if name in parameters else _FORMER.get(name, name)
        if present not in parameters:
            raise ValueError(f"no parameter {name!r}; {_list_parameters(tool)}")
        if present in arguments:
            raise ValueError(
                f"{present!r} was given twice, also as {name!r}; {_list_parameters(tool)}"
            )
        arguments[present] = value
    missing = [name for name in _required(tool) if name not in arguments]
    if missing:
        raise ValueError(f"{', '.join(map(repr, missing))} is missing; {_list_parameters(tool)}")
    return arguments


def wrong_values(tool: Callable[..., Any], names: Iterable[str]) -> str:
    """Describe what these parameters take, for an error about their values."""
    of_tool = described(tool)
    return "; ".join(
        f"{name!r} takes {_KINDS.get(of_tool[name][0], 'texts')}: {of_tool[name][1]}"
        for name in dict.fromkeys(names)
    )


def _required(tool: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(tool).parameters.values()
    return [each.name for each in parameters if each.default is inspect.Parameter.empty]


def _list_parameters(tool: Callable[..., Any]) -> str:
    needed = _required(tool)
    optional = [name for name in inspect.signature(tool).parameters if name not in needed]
    texts = [", ".join(needed), f"optional: {', '.join(optional)}" if optional else ""]
    return f"parameters of {tool.__name__}: {'; '.join(filter(None, texts))}"
