"""Callbacks around the capture of CUDA graphs, the only time that a graph's launches are called."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def watch_graphs(
    graph: type, begins: Callable[[], object], ended: Callable[[], object]
) -> Iterator[None]:
    """Call back before each capture of a graph of this class begins, and after it ends.

    Everything that captures graphs uses the class, `torch.cuda.CUDAGraph`: torch.cuda.graph,
    make_graphed_callables, the trees of torch.compile. A capture that fails to begin counts as
    ended. Replays cost nothing more.
    """
    own = vars(graph)
    before = {name: own[name] for name in _NAMES if name in own}
    capture_begin, capture_end = (getattr(graph, name) for name in _NAMES)

    @wraps(capture_begin)
    def begin(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - torch's own
        begins()
        try:
            return capture_begin(*args, **options)
        except BaseException:
            _quietly(ended)
            raise

    @wraps(capture_end)
    def end(*args: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
        try:
            result = capture_end(*args, **options)
        except BaseException:
            _quietly(ended)
            raise
        ended()
        return result

    for name, ours in zip(_NAMES, (begin, end), strict=True):
        setattr(graph, name, ours)
    try:
        yield
    finally:
        for name in _NAMES:
            if name in before:
                setattr(graph, name, before[name])
            else:
                delattr(graph, name)


def _quietly(ended: Callable[[], object]) -> None:
    """Call back while the script's own error propagates; that must not be hidden."""
    with suppress(Exception):
        ended()


_NAMES = ("capture_begin", "capture_end")
