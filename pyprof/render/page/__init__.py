"""Pages: one self-contained HTML file each, from a template, with all that it needs inside it.

Every value is escaped by Jinja2; data for scripts is JSON in which no `<` is left.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from jinja2 import ChoiceLoader, DictLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pyprof.quantities import counted
from pyprof.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent


def render(
    template: str,
    others: Mapping[str, str] | None = None,
    **context: Any,  # noqa: ANN401 - what the template shows
) -> str:
    """Fill a template, which may include `others`, given by name, besides the files here."""
    environment = Environment(
        loader=ChoiceLoader([DictLoader(others or {}), FileSystemLoader(_HERE / "templates")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    environment.filters["json"] = lambda value: Markup(script_json(value))  # noqa: S704 - no < is left
    environment.globals["static"] = lambda name: Markup((_HERE / "static" / name).read_text())  # noqa: S704 - our own file
    return str(environment.get_template(template).render(version=__version__, **context))


def script_json(value: object) -> str:
    """Write JSON for a script element: nothing in it can end the element."""
    text = orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
