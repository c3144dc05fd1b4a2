"""Names of CUDA's API calls by CUPTI's callback id: nvprof's database holds the ids alone.

They are those of CUPTI 12.1's cupti_runtime_cbid.h and cupti_driver_cbid.h; no id is ever reused.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_VERSION = re.compile(r"_v\d+$")


def call_name(api: str, cbid: int) -> str:
    """Name a call as nvprof printed it, without CUDA's version; `RUNTIME call 9999` if unknown."""
    return _VERSION.sub("", _names().get((api, cbid), f"{api} call {cbid}"))


@cache
def _names() -> dict[tuple[str, int], str]:
    lines = (
        files("pyprof.readers").joinpath("cupti_calls.txt").read_text(encoding="ascii").splitlines()
    )
    return {(api, int(cbid)): name for api, cbid, name in map(str.split, lines)}
