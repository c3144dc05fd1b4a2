"""Errors become one line that says what to do."""

import errno

import pytest

from pyprof.errors import of_source, reason, refused


@pytest.mark.parametrize("number", [errno.EACCES, errno.ENAMETOOLONG, errno.ELOOP])
def test_a_refused_file_is_named(number: int) -> None:
    error = OSError(number, "refused", b"net.sqlite")
    assert refused(error) == "net.sqlite: refused; check the path and its permissions"


def test_a_full_disk_is_not_an_internal_error() -> None:
    """A write names no file."""
    error = OSError(errno.ENOSPC, "No space left on device")
    assert refused(error) == "No space left on device; free space, or write elsewhere (-o, TMPDIR)"


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "x"), OSError(errno.EIO, "x", "a")])
def test_other_errors_name_no_file(error: OSError) -> None:
    assert refused(error) is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("two\n lines"), "two lines"),
        (ValueError("long " * 100), ("long " * 40)),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_a_reason_is_one_short_line(error: Exception, text: str) -> None:
    assert reason(error) == text


def test_a_notes_source_follows_its_beginning() -> None:
    assert of_source("B", "note: 3 of 3 match") == "note: B: 3 of 3 match"
    assert of_source("B", "cut short") == "B: cut short"
