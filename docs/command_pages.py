"""The commands and their options, from the commands themselves: man pages, and a page of the site.

python docs/command_pages.py FOLDER    write pyprof.1, pyprof-parse.1, ... there
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import click

from pyprof import __version__
from pyprof.__main__ import main as program
from pyprof.__main__ import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WIDTH = 90
_VERBATIM = "\b"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Return the group and each command, under its full name."""
    top = _context(program, "pyprof", None)
    yield "pyprof", program, top
    for name in names():
        command = program.get_command(top, name)
        if command is not None:
            yield f"pyprof {name}", command, _context(command, name, top)


def _context(command: click.Command, name: str, parent: click.Context | None) -> click.Context:
    """Return the context that the command line makes, without a command line."""
    settings = {**command.context_settings, "terminal_width": _WIDTH}
    return click.Context(command, parent, name, **settings)


def markdown() -> str:
    """Return the help of all commands as one page."""
    parts = ["# Commands\n", "As `pyprof COMMAND --help` shows them.\n"]
    for name, command, context in commands():
        help_text = command.get_help(context).rstrip()
        parts.append(f"## `{name}`\n\n```text\n{help_text}\n```\n")
    return "\n".join(parts)


# Man pages: roff, in which a line that begins with a point or a quote is a request, and a
# backslash begins an escape.


def man_page(
    name: str, command: click.Command, context: click.Context, others: Sequence[str]
) -> str:
    """Return the text of the man page of one command."""
    title = name.replace(" ", "-")
    usage = " ".join(command.collect_usage_pieces(context))
    summary, *paragraphs = _paragraphs(command.help or "")
    lines = [
        f'.TH "{title.upper()}" "1" "" "PyProf {__version__}" "PyProf"',
        ".SH NAME",
        rf"{_escaped(title)} \- {_escaped(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        rf"\fB{_escaped(name)}\fR {_escaped(usage)}",
        ".SH DESCRIPTION",
        _escaped(summary),
    ]
    for paragraph in paragraphs:
        lines += [".PP", *_body(paragraph)]
    lines += _options(command, context)
    lines += [".SH SEE ALSO", _escaped(", ".join(f"{other}(1)" for other in others))]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> list[str]:
    """Take a help text apart; what is verbatim goes up to the next paragraph."""
    plain = "\n".join(line.rstrip() for line in text.splitlines())
    return [part.strip("\n") for part in plain.split("\n\n") if part.strip()]


def _body(paragraph: str) -> list[str]:
    """Return a paragraph; where the help says so, with its lines as they are."""
    if not paragraph.lstrip().startswith(_VERBATIM):
        return [_escaped(" ".join(paragraph.split()))]
    text = paragraph.lstrip().removeprefix(_VERBATIM).replace(_VERBATIM, "")  # on its own: a gap
    return [".nf", *map(_escaped, dedent(text.strip("\n")).splitlines()), ".fi"]


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    options = (param for param in command.get_params(context) if isinstance(param, click.Option))
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield ".SH OPTIONS"
    for option, meaning in records:
        yield from (".TP", rf"\fB{_escaped(option)}\fR", _escaped(meaning))
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for name in command.list_commands(context):
            listed = command.get_command(context, name)
            if listed is not None:
                summary = listed.get_short_help_str(200)
                yield from (".TP", rf"\fB{_escaped(name)}\fR", _escaped(summary))


def _escaped(text: str) -> str:
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("\n", " ")
    return rf"\&{text}" if text.startswith((".", "'")) else text


def write(folder: Path) -> list[Path]:
    """Write the man page of each command."""
    folder.mkdir(parents=True, exist_ok=True)
    titles = [name.replace(" ", "-") for name, *_ in commands()]
    for title, (name, command, context) in zip(titles, commands(), strict=True):
        others = [other for other in titles if other != title]
        page = man_page(name, command, context, others)
        (folder / f"{title}.1").write_text(page, encoding="utf-8")
    return [folder / f"{title}.1" for title in titles]


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the folder
        sys.exit(__doc__)
    print(*write(Path(sys.argv[1])), sep="\n")
