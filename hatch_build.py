"""What a build makes: the long description, of the README, and the man pages of the wheel."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"`[^`]*`|\[(?P<words>[^\]]+)\]\((?!\w+:)(?P<target>[^)\s]+)\)")
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


class LongDescription(MetadataHookInterface):
    """Makes links absolute where `project.urls` has a Source; else leaves the words alone."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the README in, as Markdown."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, source)}


def described(readme: str, source: str | None) -> str:
    """Give the README with links that lead somewhere from anywhere, or with none."""

    def outside(match: re.Match[str]) -> str:
        words, target = match["words"], match["target"]
        if target is None or source is None:
            return words or match[0]
        page = "README.md" if target.startswith("#") else ""
        return f"[{words}]({source.rstrip('/')}/blob/main/{page}{target})"

    return _RELATIVE_LINK.sub(outside, readme)
