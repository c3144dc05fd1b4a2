"""What to do about an unknown cost, by its reason."""

from __future__ import annotations

import re

from pyprof.answers.summary_answer import PYTORCH

NO_REMEDY = "none: "
"""Start of a remedy that says nothing can be done."""

_MODEL_CONFIG = "give --with config.json, the model's configuration"
_RULES = (
    (r"^launch unknown",
     ("begin the capture earlier, or record API calls, too (nsys -t cuda,nvtx; rocprofv3"
      " --hip-runtime-trace; ncu cannot, so give its CSV --with such a capture)")),
    (r"^no marker",
     ("begin the capture earlier, call pyprof.init() before the model is built, or, for backward"
      " passes, use pyprof capture")),
    (r"^launched in no op",
     "mark the function that launches it with pyprof.wrap (docs/instrument.md)"),
    (r"^only ranges", "call pyprof.init() in the script: the ranges around it name no op"),
    (r"^unknown op|^no formula", "write a formula for it (docs/instrument.md), or report it"),
    (r"^unknown dtype", "capture with pyprof capture, which records dtypes"),
    (r"^sparse|not told apart", "capture with pyprof capture, which records it"),
    (r"config\.json", _MODEL_CONFIG),
    (r"of the requests|prefill|the step's range",
     "serve with ranges that state each step's requests, as vLLM and SGLang can write"),
    (r"number of ranks", "capture with torch.profiler, which records each collective's group"),
    ((r"depends? on the data|in no argument|rank's experts|other ranks|all ranks have|an adapter"
      r"|each (?:expert has|row is|token sees)|model's attention sees"),
     f"{NO_REMEDY}only the run itself could tell"),
    (r"too long to be recorded", f"{NO_REMEDY}no marker holds a list of so many tensors"),
    (r"not modelled|no backward formula|contains none|do not fit|do not broadcast",
     "write a formula for it (docs/instrument.md), or report it"),
    (r"not recorded|no tensor of known shape|is no|are no",
     "capture with pyprof capture, or with record_shapes=True"),
)  # fmt: skip
_IN_FULL = {"give --with config.json": _MODEL_CONFIG}
"""The full form of reasons that are short because a column repeats them in many rows."""
_ELSE = "pyprof prof -c op,kernel,why shows the rows; docs/troubleshooting.md"


_SAID = re.compile(r": ((?:capture|call|give|use|name) .*)")
"""What to do, at the end of a reason."""


def explained(reason: str) -> tuple[str, str]:
    """Return a reason with what would make the cost known in the next capture."""
    if (said := _SAID.search(reason)) is not None:
        return reason[: said.start()], _IN_FULL.get(said[1], said[1])
    return reason, next((text for pattern, text in _RULES if re.search(pattern, reason)), _ELSE)


def around_each_step(library: str | None) -> str:
    """Return how a program that uses this library (`SummarySums.library`) can mark its steps."""
    if library == PYTORCH:
        return "pyprof.annotate('step') around each"
    return "a range 'step' (NVTX, ROCTx) around each"
