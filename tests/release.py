"""Check that a tag may be released, and write its part of the changelog to stdout.

python -m tests.release v1.2.3
"""

from __future__ import annotations

import re
import sys

from pyprof import __version__
from tests.programs import TOP

_HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def notes(tag: str, version: str, changelog: str) -> str:
    """Give what changed in the version of a tag; SystemExit where something is not ready."""
    if tag != f"v{version}":
        sys.exit(f"the tag {tag} is not v{version}, the package's own version")
    found = _HEADING.search(changelog)
    if found is None or found[1] != version:
        sys.exit(f"CHANGELOG.md begins with {found and found[1]}, not with {version}")
    if not _DATE.fullmatch(found[2]):
        sys.exit(f"CHANGELOG.md says {version} ({found[2]}); it needs the date, as 2026-01-31")
    after = _HEADING.search(changelog, found.end())
    return changelog[found.end() : after.start() if after else None].strip() + "\n"


if __name__ == "__main__":
    changelog = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    sys.stdout.write(notes(sys.argv[1], __version__, changelog))
