"""Texts compared whole with files next to the test.

`UPDATE_GOLDENS=1` rewrites them; look at the difference before you commit it.
"""

import os
from pathlib import Path


def check(golden: Path, found: str) -> None:
    """Compare a text with a golden file; a missing file is a failure, unless asked to write it."""
    if os.environ.get("UPDATE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(found, encoding="utf-8")
    mend = f"if this is meant, run the test once with UPDATE_GOLDENS=1, which rewrites {golden}"
    assert found == golden.read_text(encoding="utf-8"), mend


def golden_path(test_file: str, name: str) -> Path:
    return Path(test_file).parent / "golden" / f"{name}.txt"
