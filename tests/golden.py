"""Texts compared whole with the files of tests/commands/golden/.

`UPDATE_GOLDENS=1` rewrites them; look at the difference before you commit it.
"""

import os
from pathlib import Path

_FOLDER = Path(__file__).parent / "commands" / "golden"


def check(name: str, found: str) -> None:
    """Compare a text with a golden file; a missing file is a failure, unless asked to write it."""
    golden = _FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(found, encoding="utf-8")
    mend = f"if this is meant, run the test once with UPDATE_GOLDENS=1, which rewrites {golden}"
    assert found == golden.read_text(encoding="utf-8"), mend
