"""Arrow without pandas, which no command needs and which takes 0.2 s and 50 MB to load.

Arrow looks for pandas once, when it makes its first array of a list. Asked for a frame, it looks
again: what comes of that is as always.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Absent(MetaPathFinder):
    """Hides pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find nothing of what is hidden, and leave everything else to others."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname, name=fullname)
        return None


def hide_pandas() -> None:
    """Have Arrow look for pandas while it is hidden; only in a process of our own.

    What a process makes of arrays of pandas itself would depend on whether it had asked Arrow for
    a frame before.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415 - takes time to load

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(absent)
