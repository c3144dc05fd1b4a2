"""Recognizes the files that `--with` names besides the captures, by their content."""

from __future__ import annotations

from pathlib import Path

from pyprof import readers
from pyprof.errors import CaptureError, PyprofError
from pyprof.inputs import model_config
from pyprof.readers import kineto, ncu, refusals
from pyprof.readers.encodings import utf8
from pyprof.readers.kineto.graphs import captures
from pyprof.readers.kineto.graphs.annotations import is_one as is_annotations

KINDS = {
    "graphs": "traces of the capture of CUDA graphs",
    "counters": "counters (a CSV of Nsight Compute)",
    "model": "a model's config.json",
    "snapshot": "a torch memory snapshot",
}


def kind_of(place: str) -> str:
    """Return which of `KINDS` a file or folder is.

    Raises CaptureError if it is none: one line on what it is and what is expected.
    """
    path = Path(place)
    if path.is_dir():
        return "model" if (path / model_config.NAME).is_file() else "graphs"
    head = readers.read_head(path)
    if refusals.is_memory_snapshot(head):
        return "snapshot"
    if is_annotations(path) or path.name == captures.DETAILS or kineto.sniff(path, head):
        return "graphs"
    if ncu.sniff(path, head):
        return "counters"
    *others, last = KINDS.values()
    expected = f"--with takes {', '.join(others)} or {last}"
    is_capture = readers.is_capture(path)
    if is_capture or utf8(head).lstrip()[:1] != b"{":
        what = "a capture, to be named as FILE" if is_capture else refusals.describe(path, head)
        raise CaptureError(f"{place}: not a file to read with a capture ({what}); {expected}")
    try:
        model_config.read(place)
    except PyprofError as error:
        raise CaptureError(f"{error}; {expected}") from None
    return "model"
