"""What a build makes: links to the project's home, the long description, the wheel's man pages."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(
    r"`[^`]*`|(?P<picture>!?)\[(?P<words>[^\]]+)\]\((?!\w+:)(?P<target>[^)\s]+)\)"
)
"""Or code, in which there is none."""


class ManPages(BuildHookInterface[Any]):
    """Puts a man page of each command where pip and pipx put those of a package."""

    PLUGIN_NAME = "custom"
    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write them for a wheel; a clone that is installed has `make man`."""
        if self.target_name != "wheel" or version != "standard":
            return
        sys.path[:0] = [self.root, f"{self.root}/docs"]
        import command_pages  # noqa: PLC0415 - it imports the package that is being built

        self._folder = tempfile.mkdtemp(prefix="pyprof-")
        for page in command_pages.write(Path(self._folder)):
            build_data["shared_data"][str(page)] = f"share/man/man1/{page.name}"

    def finalize(self, *_: Any) -> None:  # noqa: ANN401 - hatchling's
        """Remove the originals."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


_HOME = "PROJECT_URL"
"""Names the variable that says where the sources are when a release is built."""


class Description(MetadataHookInterface):
    """Says where the project is at home, and describes it by its README.

    The release workflow sets the home, which is the repository that it runs in. A build anywhere
    else names none: a copy must not send its users to somebody else's. A wheel that is made of a
    released sdist has what that says.
    """

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the links and the README in, as Markdown."""
        home = os.environ.get(_HOME, "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["urls"] = project_urls(home) if home else {}
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, home)}


def project_urls(home: str) -> dict[str, str]:
    """Give the links of a project whose repository is at home there, under an index's labels."""
    return {
        "Homepage": home,
        "Documentation": f"{home}/blob/main/docs/README.md",
        "Source": home,
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def described(readme: str, home: str) -> str:
    """Give the README with links that lead somewhere from anywhere, or with none."""

    def outside(match: re.Match[str]) -> str:
        words, target = match["words"], match["target"]
        if target is None or not home:
            return words or match[0]
        page = "README.md" if target.startswith("#") else ""
        kind = "raw" if match["picture"] else "blob"
        return f"{match['picture']}[{words}]({home}/{kind}/main/{page}{target})"

    return _RELATIVE_LINK.sub(outside, readme)
