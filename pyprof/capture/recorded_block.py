"""`with pyprof.profile("x") as p:` records a block in this very process.

For notebooks and scripts. Without a name, `pyprof.profile()` marks the range that a profiler
outside is to capture.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args, overload

import torch

from pyprof import instrument, sanitize
from pyprof.capture.kineto import SUFFIX
from pyprof.errors import PyprofError
from pyprof.instrument.ranges import capture_range, emit
from pyprof.process import atomic_files

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager
    from typing import ClassVar

    import pandas as pd

    from pyprof.answers.summary_answer import Summary
    from pyprof.capture.kineto.recording import Recording
    from pyprof.instrument.ranges.capture_range import Schedule

_Key: TypeAlias = Literal["op", "layer", "line"]


@overload
def profile(*, schedule: Schedule | None = None) -> _GeneratorContextManager[None]: ...
@overload
def profile(name: str, *, schedule: Schedule | None = None) -> Profile: ...
def profile(
    name: str | None = None, *, schedule: Schedule | None = None
) -> _GeneratorContextManager[None] | Profile:
    """Record a block: `with pyprof.profile("x") as p: ...`, then `p.frame`, `p.summary()`, `p`.

    Without a name, mark the range to capture, also as a decorator; nothing is recorded here.
    Starts and stops the CUDA profiler if there is a GPU (`nsys --capture-range cudaProfilerApi`
    waits for that), and the profiler that `pyprof capture` runs. Without either, it does nothing.
    With a name, it does the same if such a profiler runs this process.

    `schedule`, such as torch.profiler.schedule(wait=2, warmup=1, active=3, repeat=2), decides for
    each step whether to record it: only the windows that it opens are captured.
    Steps end with `pyprof.step()`.
    """
    if name is None:
        return capture_range.profile(schedule=schedule)
    return Profile(name, schedule)


class Profile:
    """The block of `pyprof.profile("x")` while it runs, then its recording.

    Never disturbs the block: if it cannot be recorded, only asking for the result raises
    (PyprofError). What the block raises propagates, and what was recorded until then is kept.
    """

    _running: ClassVar[str | None] = None
    """Name of the block being recorded in this process."""

    def __init__(self, name: str, schedule: Schedule | None = None) -> None:
        self.name = name
        self._schedule = schedule
        self._depth = 0
        """How often the block was entered, as by a recursive function."""
        self._stack = ExitStack()
        self._recording: Recording | None = None
        self._result: _Result | str = "nothing is recorded yet: use it in a with statement"
        """The recording, or why there is none."""

    def __enter__(self) -> Profile:  # noqa: PYI034 - Self is newer than Python 3.10
        self._depth += 1
        if self._depth > 1:
            return self
        self._result = f"pyprof.profile({self.name!r}) is still recording"
        reason = self._hindrance()
        if reason:
            self._result = reason
            if self._running is None:
                self._stack.enter_context(capture_range.profile(schedule=self._schedule))
            self._stack.enter_context(instrument.annotate(self.name))
        else:
            self._recording = _begin(self.name)
            Profile._running = self.name
            if self._schedule is not None:
                self._stack.enter_context(capture_range.profile(schedule=self._schedule))
        return self

    def __exit__(self, *_error: object) -> None:
        self._depth -= 1
        if self._depth:
            return
        self._stack.close()
        recording, self._recording = self._recording, None
        if recording is not None:
            Profile._running = None
            self._result = _finish(recording, self.name)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per kernel or, without a GPU, per op on the CPU: the columns of `pyprof.load`."""
        return self._require_result().frame

    @property
    def path(self) -> Path:
        """The capture: a trace of torch.profiler. It is gone with this object; `save` keeps it."""
        return self._require_result().path

    def summary(self, by: _Key = "op", top: int = 15) -> Text:
        """Return the text of `pyprof summary`; ValueError for an unknown key."""
        if by not in get_args(_Key):
            raise ValueError(f"by is {by!r}; it must be one of {', '.join(get_args(_Key))}")
        return self._require_result().summary(by, top)

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Keep the capture, for every command of pyprof: as `path`, by default under its name.

        Raises PyprofError if no file can be written there, or a capture is there that is not ours.
        """
        from pyprof.capture.request import check_place  # noqa: PLC0415 - only who keeps it

        capture = self._require_result().path
        target = Path(path) if path is not None else Path(capture.name)
        try:
            check_place(target)
            final = Path(os.path.realpath(target))
            with atomic_files.temp_directory(final) as folder:
                Path(shutil.copy(capture, folder)).replace(final)
        except OSError as error:
            why = error.strerror or error
            raise PyprofError(f"{target}: {why}; choose another place") from None
        return target

    def __repr__(self) -> str:
        said = self._result
        if not isinstance(said, str):
            known = said.answer.known_cost
            said = f"{known.total_ns / 1e6:.3f} ms of {known.processor} time"
        return f"<pyprof.profile {self.name!r}: {said}>"

    def _repr_html_(self) -> str:
        from pyprof.render import notebook  # noqa: PLC0415 - it loads Arrow

        if isinstance(self._result, str):
            return notebook.message(sanitize.message(self.name), self._result)
        return notebook.tables(sanitize.message(self.name), self._result.answer, self._result.notes)

    def _require_result(self) -> _Result:
        if isinstance(self._result, str):
            raise PyprofError(self._result)
        return self._result

    def _hindrance(self) -> str:
        """Return why this block cannot be recorded here and now; "" if it can."""
        if self._running is not None:
            return f"recorded as part of pyprof.profile({self._running!r}), which was running"
        if emit.tool_listens() or instrument.range_start:
            return "recorded by the profiler that runs this program; read its capture"
        if emit.profiler_records():
            return "not recorded: a torch.profiler was running, and only one can run at a time"
        return ""


class Text(str):
    """A text that notebooks show as printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _begin(name: str) -> Recording:
    from pyprof.capture.kineto.recording import Recording  # noqa: PLC0415 - only who records needs it
    from pyprof.capture.request import Request  # noqa: PLC0415 - as above
    from pyprof.capture.script import Target  # noqa: PLC0415 - as above

    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()  # earlier launches are not part of the block
    return Recording(Request(Target(name), name), _begin)


def _finish(recording: Recording, name: str) -> _Result | str:
    """Write the recording and return it, or why there is none. Undoes all replacements."""
    folder: Path | None = None

    def path() -> Path:
        nonlocal folder
        folder = Path(tempfile.mkdtemp(prefix="pyprof-"))
        stem = re.sub(r"[^\w.-]+", "-", name).strip("-.").encode()[:64].decode(errors="ignore")
        return folder / f"{stem or 'block'}{SUFFIX}"

    try:
        written = recording.finish(path)
    except OSError as error:
        written, reason = None, f"the recording could not be written: {error.strerror or error}"
    else:
        reason = "; ".join(["nothing was recorded: no torch op ran", *recording.problems()])
    if written is not None:
        return _Result(written, tuple(recording.problems()))
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return reason


class _Result:
    """A recording, read when first used. The capture is deleted with this object."""

    def __init__(self, path: Path, notes: tuple[str, ...]) -> None:
        self.path, self.notes = path, notes
        weakref.finalize(self, partial(shutil.rmtree, ignore_errors=True), path.parent)

    @cached_property
    def frame(self) -> pd.DataFrame:
        from pyprof.frame import load  # noqa: PLC0415 - it loads pandas

        return load(self.path)

    @cached_property
    def answer(self) -> Summary:
        from pyprof.analysis.summary import composition, overview  # noqa: PLC0415 - as above
        from pyprof.inputs import source  # noqa: PLC0415 - it loads Arrow

        return composition.summary(overview.summarise(source.load(str(self.path))))

    def summary(self, by: str, top: int) -> Text:
        from pyprof.render.text import first_screen, formatting  # noqa: PLC0415 - it loads Arrow

        shown = first_screen.first_screen(self.answer, by, top, None)
        return Text(formatting.finish(shown, coloured=False).decode())
