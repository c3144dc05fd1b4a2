"""Makes captured texts harmless on terminals and in spreadsheets.

Texts of captures and file names may contain terminal escape sequences, bidirectional controls, or
invisible characters.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

UNSAFE = (
    r"[\x00-\x1f\x7f-\x9f"
    "\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
"""Control characters of ASCII and Latin 1, line ends of Unicode, and what cannot be seen.

A character class in the syntax of both Python and Arrow.
"""

_UNSAFE = re.compile(UNSAFE)
_HEADING = re.compile(r"\x1b\[1m(.*?)\x1b\[0m")
"""Bold text at the beginning of a line: a heading."""


def single_line(text: str) -> str:
    """Replace each unsafe character, including line ends, by a blank."""
    return _UNSAFE.sub(" ", text)


def multiline(text: str) -> str:
    """As `single_line`, but keep line ends, and the bold marks of a heading."""
    return "\n".join(map(_line, text.split("\n")))


def _line(line: str) -> str:
    if match := _HEADING.match(line):
        return f"\x1b[1m{single_line(match[1])}\x1b[0m{single_line(line[match.end() :])}"
    return single_line(line)


_USER = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z0-9+.-]{2,}:/{1,3})[^/?#\s]*(?=@)")
_QUERY = re.compile(r"\?([^#\s=]*)(=[^#\s]*)?")


def redact_credentials(text: str) -> str:
    """Redact users, passwords, tokens and signatures in URLs."""
    if ":/" not in text:
        return text
    return _QUERY.sub(
        lambda query: "?***" if query[1] and query[2] else query[0], _USER.sub(r"\1***", text)
    )


def message(text: str) -> str:
    """Make a single line; escape unsafe characters as Python does, so that names stay clear.

    Bytes of a file name that are not UTF-8 are escaped, too. Credentials are redacted.
    """
    one_line = " ".join(re.split(r"[ \t\r\n]+", redact_credentials(text).strip(" \t\r\n")))
    escaped = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), one_line)
    return escaped.encode(errors="backslashreplace").decode()


_FORMULA = "=+@\t\r\n\uff1d\uff0b\uff0d\uff20-"
"""First characters of a formula; some programs also accept full-width forms."""
_BEGINS_FORMULA = rf"(?s)^([{_FORMULA}].)"


def escape_formula(value: object) -> object:
    """Prefix a text that spreadsheets take for a formula with an apostrophe.

    Other values, and a sign alone, stay as they are.
    """
    if isinstance(value, str) and len(value) > 1 and value[0] in _FORMULA:
        return f"'{value}"
    return value


def csv_text(rows: Iterable[Iterable[object]], *, quoted: bool = False, raw: bool = False) -> str:
    """Format rows as CSV (RFC 4180, but `\\n` ends lines), with formulas escaped unless `raw`.

    None is an empty field; `quoted` puts every field in quotes.
    """
    file = io.StringIO()
    writer = csv.writer(
        file, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, lineterminator="\n"
    )
    writer.writerows(rows if raw else (map(escape_formula, row) for row in rows))
    return file.getvalue()


def escape_formulas(rows: pa.Table) -> pa.Table:
    """Apply `escape_formula` to all columns of texts."""
    import pyarrow as pa  # noqa: PLC0415 - takes time to load
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    for index, (name, column) in enumerate(zip(rows.column_names, rows.columns, strict=True)):
        text = pa.types.is_string(column.type)
        if text and pc.any(pc.match_substring_regex(column, _BEGINS_FORMULA)).as_py():
            quoted = pc.replace_substring_regex(column, _BEGINS_FORMULA, r"'\1")
            rows = rows.set_column(index, name, quoted)
    return rows
