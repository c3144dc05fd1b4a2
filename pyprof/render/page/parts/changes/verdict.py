"""The verdict: what bounds the work, and what to change first, in a few sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyprof.render.page.tables import without_folders
from pyprof.render.text.first_screen import evidence_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyprof.render.page.parts import Page

TITLE, ORDER = "Verdict", 5
TEMPLATE = """
<h2 id="title-verdict">Verdict</h2>
{% for sentence, evidence in part.sentences %}
<details>
<summary>{% if loop.first %}<b>{{ sentence }}</b>{% else %}{{ sentence }}{% endif %}</summary>
<ul>{% for text in evidence %}<li>{{ text }}</li>{% endfor %}</ul></details>
{% endfor %}
"""


def section(page: Page) -> Mapping[str, Any] | None:
    """The sentences, each with what proves it; None without any."""
    sentences = [
        (without_folders(each.text), [evidence_text(finding) for finding in each.evidence])
        for each in page.answer.verdict
    ]
    return {"sentences": sentences} if sentences else None
