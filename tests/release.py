"""Check that a tag may be released, and write its part of the changelog to stdout.

python -m tests.release v1.2.3
"""

import re
import sys

from pyprof import __version__
from tests.programs import TOP

_HEADING = re.compile(r"^## (\S+) \((.+)\)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def notes(tag: str, version: str, changelog: str) -> str:
    if tag != f"v{version}":
        sys.exit(f"the tag {tag} is not v{version}, the package's own version")
    heading = _HEADING.search(changelog)
    if heading is None or heading[1] != version:
        sys.exit(f"CHANGELOG.md begins with {heading and heading[1]}, not with {version}")
    if not _DATE.fullmatch(heading[2]):
        sys.exit(f"CHANGELOG.md says {version} ({heading[2]}); it needs the date, as 2026-01-31")
    after = _HEADING.search(changelog, heading.end())
    return changelog[heading.end() : after.start() if after else None].strip() + "\n"


if __name__ == "__main__":
    changelog = (TOP / "CHANGELOG.md").read_text(encoding="utf-8")
    sys.stdout.write(notes(sys.argv[1], __version__, changelog))
