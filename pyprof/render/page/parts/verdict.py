"""The verdict: what bounds the work, and what to change first, in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.sections import without_folders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Verdict", 5
TEMPLATE = """
<h2 id="title-verdict">Verdict</h2>
{% for sentence in part.sentences %}
<p>{% if loop.first %}<b>{{ sentence }}</b>{% else %}{{ sentence }}{% endif %}</p>
{% endfor %}
"""


def section(page: Page) -> Mapping[str, Any] | None:
    """The sentences; None without any."""
    sentences = [without_folders(each.text) for each in page.answer.verdict]
    return {"sentences": sentences} if sentences else None
