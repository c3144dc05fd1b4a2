"""Folders of `pyprof try`: the capture of the baseline, and what was tried."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pyprof.errors import CaptureError

RUNS = "runs.jsonl"
"""The result of every run, one per line; this file also identifies a trial's folder."""
ANSWER = "try.json"
_RANK = re.compile(r"\.rank\d+\.")


def baselines(folder: Path) -> list[Path]:
    """Return the captures of a trial's baseline, one a rank; none for a folder of anything else.

    The other captures of a trial show variants, not ranks. Raises CaptureError without a
    baseline.
    """
    try:
        lines = (folder / RUNS).read_text("utf-8").splitlines()
        runs = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return []
    ours = all(isinstance(run, dict) and {"mode", "changes"} <= run.keys() for run in runs)
    if not runs or not ours:
        return []
    profiled = [run for run in runs if run["mode"] == "profile" and run.get("capture")]
    captures = {tuple(run["changes"]): folder / Path(run["capture"]).name for run in profiled}
    of_baseline = captures.get(())
    if of_baseline is None or not of_baseline.is_file():
        names = ", ".join(path.name for path in captures.values() if path.is_file())
        instead = f"name one of {names}" if names else "no run of it was profiled"
        raise CaptureError(f"{folder}: a trial without a capture of its baseline; {instead}")
    first = _first_rank(of_baseline.name)
    return sorted(path for path in folder.iterdir() if _first_rank(path.name) == first)


def _first_rank(name: str) -> str:
    """Return the name of the first rank's capture of the same run."""
    return _RANK.sub(".rank0.", name)


def answer_beside(capture: Path) -> dict[str, Any] | None:
    """Return the try.json beside a capture that is one of its trial; None if there is none."""
    try:
        answer = json.loads((capture.parent / ANSWER).read_text("utf-8"))
        captures = [answer["baseline"]["capture"], *(each["capture"] for each in answer["changes"])]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    names = {Path(each).name for each in captures if isinstance(each, str)}
    return answer if _first_rank(capture.name) in names else None
