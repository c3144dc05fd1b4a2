"""Trace markers of a DataLoader's own code: its dataset's line around each batch, and collate_fn's.

A dataset may call no op at all, and then nothing else shows where its time goes.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from torch.utils.data import _utils, dataloader, get_worker_info

from pyprof.instrument import ipython
from pyprof.instrument.ops.caller import hide_frames
from pyprof.instrument.ops.op import is_disabled
from pyprof.instrument.ranges.emit import EMITTER
from pyprof.instrument.ranges.open_ranges import THREAD, close_range, open_range
from pyprof.instrument.ranges.stack import find, is_users
from pyprof.marker import encode_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyprof.instrument.ops.patch import Patches

_METHODS = ("__getitems__", "__getitem__", "__iter__")
"""Methods that load samples, in the order in which a DataLoader looks for them."""
_MAX_DEPTH = 8
"""Maximum number of datasets inside one another that are searched."""


def wrap_loaders(patches: Patches) -> None:
    """Put a trace marker around each batch, and around each call of the user's collate_fn."""
    iterator: Any = dataloader._BaseDataLoaderIter  # noqa: SLF001 - of all DataLoaders
    next_batch = iterator.__next__

    @functools.wraps(next_batch)
    @hide_frames
    def call(self: Any) -> Any:  # noqa: ANN401 - as the iterator
        dataset = getattr(self, "_dataset", None)
        return _call_in_trace(_loads_samples(dataset), next_batch, self)

    patches.replace(iterator, "__next__", call)
    fetcher: Any = _utils.fetch._BaseDatasetFetcher  # noqa: SLF001 - calls collate_fn
    init = fetcher.__init__

    @functools.wraps(init)
    def init_fetcher(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the original
        init(self, *args, **kwargs)
        collate = self.collate_fn
        if get_worker_info() is None and inspect.isfunction(collate) and _place(collate):
            self.collate_fn = hide_frames(functools.wraps(collate)(
                lambda samples: _call_in_trace(collate, collate, samples)
            ))  # fmt: skip

    patches.replace(fetcher, "__init__", init_fetcher)


@hide_frames
def _call_in_trace(code: object, function: Callable[..., Any], argument: object) -> Any:  # noqa: ANN401
    """Call a function inside a trace marker that ends with the first line of the user's code."""
    place = _place(code)
    if not place or EMITTER.push is None or is_disabled():
        return function(argument)
    here = THREAD.here
    outer, around = here.trace, find(3, here.frame, here.within).places
    text = encode_trace(*zip(*around, place, strict=True))
    opened = open_range(text)
    here.trace = text
    try:
        return function(argument)
    finally:
        here.trace = outer
        close_range(opened)


def _loads_samples(dataset: object) -> object:
    """Return the user's method that loads samples, of a dataset or of one that it wraps."""
    for _ in range(_MAX_DEPTH):
        for name in _METHODS:
            method = getattr(type(dataset), name, None)
            if method is not None and _place(method):
                return method
        inner = getattr(dataset, "dataset", None) or getattr(dataset, "datasets", None)
        dataset = inner[0] if isinstance(inner, (list, tuple)) and inner else inner
    return None


def _place(code: object) -> tuple[str, str] | None:
    """Return `file:line` and name of a function that is the user's; None for any other."""
    written = getattr(inspect.unwrap(code), "__code__", None) if callable(code) else None
    if written is None or not is_users(written.co_filename):
        return None
    return f"{ipython.file_name(written.co_filename)}:{written.co_firstlineno}", written.co_name
