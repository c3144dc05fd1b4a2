"""One damaged file through one command: rules that hold whatever is wrong with it."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from jsonschema import ValidationError

from tests.answers.checked import checked
from tests.fuzz.truth import Truth


class Command(NamedTuple):
    """A command line, with IN, SOUND and OUT in place of files."""

    line: str
    suffix: str = ""
    """Suffix of its output file."""
    often: int = 1
    """How often it is chosen."""
    captures_only: bool = False
    """Whether it takes no records of parse."""
    snapshots: bool = False
    """Whether it takes memory snapshots, too, as no other command does."""


COMMANDS: dict[str, Command] = {
    "parse": Command("parse IN -o OUT", ".dict", often=8, captures_only=True),
    "parse to Parquet": Command("parse IN -o OUT", ".parquet", often=2, captures_only=True),
    "prof": Command("prof --csv IN -o OUT", ".csv", often=8),
    "prof by op": Command("prof --by op IN"),
    "prof by op, host": Command("prof --by op -c op,total,cpu_self,cpu_mean IN"),
    "prof by step": Command("prof --by step IN"),
    "prof in full": Command("prof --full IN"),
    "prof in a width": Command("prof -w 150 IN"),
    "prof as nvprof": Command("prof --summary nvprof IN"),
    "summary": Command("summary IN", often=3),
    "summary by layer": Command("summary --by layer IN"),
    "summary by host": Command("summary --by host IN"),
    "lines": Command("summary --by line IN", often=2),
    "report": Command("report IN -o OUT", ".html"),
    "export as speedscope": Command("export IN -o OUT", ".speedscope.json"),
    "export as collapsed": Command("export IN -o OUT", ".collapsed"),
    "export as trace": Command("export IN -o OUT", ".pt.trace.json"),
    "export as JSON": Command("export IN -o OUT", ".json"),
    "export as Markdown": Command("export IN -o OUT", ".md"),
    "export as pstats": Command("export IN -o OUT", ".prof"),
    "export as CSV": Command("export IN -o OUT", ".csv"),
    "summary as JSON": Command("summary IN -o OUT", ".answer.json"),
    "prof as JSON": Command("prof IN -o OUT", ".answer.json"),
    "lines as JSON": Command("summary --by line IN -o OUT", ".answer.json"),
    "ranks as JSON": Command("ranks IN -o OUT", ".answer.json"),
    "diff as JSON": Command("diff IN SOUND -o OUT", ".answer.json"),
    "whatif": Command("whatif IN"),
    "whatif of all": Command("whatif --dtype bf16 --fuse attention,pointwise --batch 2x IN"),
    "whatif as JSON": Command("whatif IN -o OUT", ".answer.json"),
    "doctor as JSON": Command("doctor IN -o OUT", ".answer.json", captures_only=True),
    "doctor": Command("doctor IN", captures_only=True),
    "ranks": Command("ranks IN", often=2),
    "ranks of two": Command("ranks IN SOUND"),
    "diff": Command("diff IN SOUND", often=2),
    "memory": Command("memory IN", captures_only=True, snapshots=True),
    "memory as JSON": Command("memory IN -o OUT", ".json", captures_only=True, snapshots=True),
    "memory as CSV": Command("memory IN -o OUT", ".csv", captures_only=True, snapshots=True),
    "memory of two": Command("memory IN SOUND", captures_only=True, snapshots=True),
    "prof with counters": Command("prof --with IN SOUND", captures_only=True),
}


def commands_for(kind: str) -> list[str]:
    """Return the commands that take files of a kind, each as often as it is to be chosen."""
    records = kind in ("dict", "literal", "parquet")
    return [
        name
        for name, command in COMMANDS.items()
        if not (records and command.captures_only) and (command.snapshots or kind != "pickle")
        for _ in range(command.often)
    ]


class Done(NamedTuple):
    command: str
    code: int
    stdout: bytes
    stderr: bytes
    written: bytes | None
    """The content of its output file; None without one."""
    crash: str = ""
    """An unexpected error, and where it was raised."""


def broken(done: Done, truth: Truth | None) -> list[str]:
    """Return how rules were broken; rows are counted where no other rule was."""
    found = [f"{rule}: {what}" for rule, check in _RULES.items() for what in check(done)]
    return found or [f"rows: {what}" for what in _all_rows(done, truth)]


def outcome(done: Done) -> str:
    if done.code:
        return f"exit {done.code}"
    return "warned" if b"warning: " in done.stderr else "right"


def _ends_as_said(done: Done) -> Iterator[str]:
    """The exit code is 0, 1 or 2, a failure has one line, and there is never a traceback."""
    text = done.stderr.decode(errors="replace")
    if done.crash:
        yield done.crash
        return
    if done.code not in (0, 1, 2):
        yield f"exit code {done.code}"
    for word in ("Traceback", "internal error", "not enough memory", "Warning:", "Exception "):
        if word in text:
            yield f"{word} in {text[max(0, text.index(word) - 150) :][:400]!r}"
    if not done.code and (strange := [line for line in _errors(text) if not _OURS.match(line)]):
        yield f"a library's words: {strange[0][:300]!r}"
    if done.code == 1 and len(_errors(text)) != 1:
        yield f"not one line: {text[:600]!r}"


_OURS = re.compile(r"pyprof\b.*?: ")


def _errors(text: str) -> list[str]:
    return [line for line in text.split("\n") if line and ": warning: " not in line]


def _nothing_half(done: Done) -> Iterator[str]:
    """A command that failed leaves nothing, on stdout or in a file."""
    if done.code and (done.stdout or done.written is not None):
        yield f"exit code {done.code}, and yet something was written"
    if not done.code and COMMANDS[done.command].suffix and done.written is None:
        yield "nothing was written"


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _safe(done: Done) -> Iterator[str]:
    """What a terminal shows holds no control characters."""
    for name, data in (("stdout", done.stdout), ("stderr", done.stderr)):
        if found := _CONTROL.search(data.decode(errors="replace")):
            yield f"{found[0]!r} on {name}"


def _is_form(done: Done) -> Iterator[str]:
    parse = _FORMS.get(COMMANDS[done.command].suffix)
    if done.written is not None and parse is not None:
        try:
            parse(done.written)
        except ValueError as error:
            yield f"the output is damaged: {error}"


def _collapsed(data: bytes) -> list[int]:
    return [int(line.rpartition(" ")[2]) for line in data.decode().split("\n")[:-1]]


def _valid(data: bytes) -> None:
    """An answer fits the schema, for a strict reader."""
    try:
        checked(data)
    except (AssertionError, ValidationError) as error:
        raise ValueError(str(error).partition("\n")[0]) from None


_FORMS: dict[str, Callable[[bytes], object]] = {
    ".collapsed": _collapsed,
    ".dict": lambda data: [json.loads(line) for line in data.splitlines()],
    ".speedscope.json": json.loads,
    ".pt.trace.json": json.loads,
    ".json": json.loads,
    ".answer.json": _valid,
    ".md": bytes.decode,
    ".html": bytes.decode,
}


def _all_rows(done: Done, truth: Truth | None) -> Iterator[str]:
    """All rows come out and take as long; a warning names those that are left out of a sum."""
    found = _rows(done)
    if found is None or truth is None:
        return
    rows, total_ns = found
    if rows != truth.rows:
        yield f"{rows} rows of {truth.rows}"
    if total_ns is None and b"warning: " not in done.stderr:
        yield "a row without a time, and not a word"
    if None not in (total_ns, truth.total_ns) and total_ns != truth.total_ns:
        yield f"{total_ns} ns instead of {truth.total_ns}"
    if truth.total_ns is None and b"warning: " not in done.stderr:
        yield "a row with impossible times, and not a word"


def _rows(done: Done) -> tuple[int, int | None] | None:
    """Count the rows that a command wrote, and add up their times; None if one has none."""
    if done.code or done.written is None:
        return None
    if done.command == "parse":
        durations = [json.loads(line).get("kDuration") for line in done.written.splitlines()]
        return len(durations), None if None in durations else sum(durations)
    if done.command == "prof":
        listed = csv.DictReader(io.StringIO(done.written.decode()))
        times = [row["Sil(ns)"] for row in listed]
        return len(times), None if "" in times else sum(map(int, times))
    return None


_RULES: dict[str, Callable[[Done], Iterator[str]]] = {
    "ends as said": _ends_as_said,
    "nothing half": _nothing_half,
    "terminal": _safe,
    "form": _is_form,
}
