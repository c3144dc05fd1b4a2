"""The long description: the README, whose links lead nowhere outside of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"`[^`]*`|\[(?P<words>[^\]]+)\]\((?!\w+:)(?P<target>[^)\s]+)\)")
"""Or code, in which there is none."""


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
