"""Exports of a capture, read again."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.commands import run

Event = dict[str, Any]


def export(source: Path, suffix: str) -> Path:
    target = source.with_suffix(suffix)
    done = run("export", source, "-o", target)
    assert (done.code, done.stdout) == (0, ""), done.stderr
    return target


def events(source: Path, target: Path) -> list[Event]:
    """Export a capture and read its events, times as exact decimals."""
    done = run("export", source, "-o", target)
    assert done.code == 0, done.stderr
    text = gzip.decompress(target.read_bytes()) if target.suffix == ".gz" else target.read_bytes()
    found: list[Event] = json.loads(text, parse_float=Decimal)["traceEvents"]
    return found


def of(found: list[Event], category: str) -> list[Event]:
    return [event for event in found if event.get("cat") == category and event["ph"] == "X"]


def quietly(sources: Path, target: Path, *options: str) -> bytes:
    """Export captures without any warning."""
    done = run("export", sources, "-o", target, *options)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    return target.read_bytes()
