"""Options that were replaced: they still work, and a note names the new spelling."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOW = {
    "--clock-mhz": ("--gpu", "clock={}"),
    "--peak-flops": ("--gpu", "flops={}"),
    "--peak-bandwidth": ("--gpu", "bandwidth={}"),
    "--measured": ("--gpu", "measured"),
    "--dask": ("--workers", "{}"),
    "--graph-captures": ("--with", "{}"),
    "--counters": ("--with", "{}"),
    "--model-config": ("--with", "{}"),
    "report --memory": ("--with", "{}"),
    "peaks --device": ("--measure", "{}"),
    "ranks --table": ("--csv", "{}"),
    "summary --depth": ("--by", "layer:{}"),
    "summary --full": ("-v", ""),
    "lines --full": ("-v", ""),
}
"""What replaces each option, in all commands or the one named; `{}` is its value."""
_LAST = ("--measure", "--csv", "--by")
"""Replacements that may already be given with another value or none: the last one counts."""
GONE = {
    "--force": "a capture is never replaced: remove it first, or choose another name with -o",
    "--html": "write -o FILE.html",
    "--each": "pyprof prof CAPTURE lists every kernel of what pyprof run left",
    "--raw": "JSON holds texts as they are",
}
"""What to do instead of options without a replacement."""


def rewritten(
    command: str | None, name: str, arguments: Sequence[str]
) -> tuple[list[str], str] | None:
    """Return the arguments with the first option called `name` replaced, and a note.

    Returns None if no other option replaces it, or its value is missing.
    """
    index = next((i for i, text in enumerate(arguments) if text.partition("=")[0] == name), None)
    now = _NOW.get(f"{command} {name}") or _NOW.get(name)
    if now is None or index is None:
        return None
    option, form = now
    _, given, value = arguments[index].partition("=")
    rest = [*arguments[index + 1 :]]
    if "{}" in form and not given:
        if not rest:
            return None
        value = rest.pop(0)
    words, new = [*arguments[:index], *rest], form.format(value)
    if option in _LAST:
        index = len(words)
    words[index:index] = [option, new] if form else [option]
    return words, f"{name} is now {option} {new}".rstrip()
