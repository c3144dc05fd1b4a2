r"""Files that torch.compile writes about its kernels: the source lines and ops behind each.

Inductor fuses ops of several lines into one kernel, whose launch has no line but that of the
compiled function's caller. With INDUCTOR_PROVENANCE=1 torch writes what a kernel was made from
into these files (names as of torch 2.7 to 2.13), which are read if they lie next to a trace:

* `*inductor_provenance_tracking_kernel_stack_traces*.json`, as tlparse writes it:
  `{"triton_poi_fused_add_0:1": ["  File \"net.py\", line 3, in block\n ..."]}`
* `dedicated_log_torch_trace_*.log`, in the folder that TORCH_TRACE names: the same in a line
* `*inductor_provenance_tracking_node_mappings*.json`: `{"cppCodeToPost": {kernel: [node]}}`
* `kernel_information.json` of AOTInductor: `{kernel: {"stack_traces": [...],
  "post_grad_nodes": [...]}}`

The number after a kernel's name is that of one of its uses. Where two uses, or two graphs,
disagree, what they have in common is kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from pyprof import marker
from pyprof.arrays import set_column
from pyprof.readers import sidecars
from pyprof.sanitize import message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pyprof.schema import Capture

_FRAME = re.compile(r'File "([^"\n]+)", line ([1-9]\d{0,6}), in ')
_GRAPH = re.compile(r"^graph_\d+_")
"""Precedes the names of CPU kernels in traces, not in these files."""
_FUSED = "_fused_"
"""In the names of Inductor's kernels."""
_USE = re.compile(r":\d+$")
"""The number of a use, which follows a kernel's name in these files."""
_NUMBER = re.compile(r"_\d+$")
"""What makes the name of a node unique: `add_1` is an `add`."""
_MAX_BYTES, _MAX_LOG_BYTES = 1 << 26, 1 << 28
"""Maximum size of JSON and of a log; larger files contain something else."""
_MAX_FRAMES = 512
"""The innermost frames of a stack that are kept."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a kernel came from."""

    frames: tuple[str, ...] | None = None
    """`file:line` in the compiled code, outermost first; None if unknown."""
    ops: tuple[str, ...] | None = None
    """Ops of the graph that Inductor fused, each as often as it occurs; None if unknown."""


def with_origins(capture: Capture, path: Path) -> Capture:
    """Add the sources of generated kernels from files next to the capture."""
    chunks = capture.ranges.column("text").chunks
    if not any(pc.any(pc.match_substring(c.dictionary, _FUSED)).as_py() for c in chunks):
        return capture  # without reading logs, which can be large
    try:
        folder = path.parent
        named = (file for pattern in sidecars.PROVENANCE for file in folder.glob(pattern))
        files = sorted(file for file in named if file.is_file())
    except OSError:
        return capture
    if not files:
        return capture
    origins, failures = _read(files)
    ranges = _describe_kernels(capture.ranges, origins)
    return replace(capture, ranges=ranges, warnings=(*capture.warnings, *failures))


def _read(files: Iterable[Path]) -> tuple[dict[str, Origin], list[str]]:
    """Read files; those that cannot be read are left out, with a warning for each."""
    origins: dict[str, Origin] = {}
    failures = []
    for path in files:
        try:
            stated = [*_read_origins(path)]
        except (OSError, ValueError) as error:
            why = error.strerror or "" if isinstance(error, OSError) else str(error)
            why = "damaged JSON" if isinstance(error, orjson.JSONDecodeError) else message(why)
            failures.append(f"{message(path.name)} is not used: {why}")
            continue
        for kernel, origin in stated:
            origins[kernel] = _keep_agreed(origins[kernel], origin) if kernel in origins else origin
    return origins, failures


def _read_origins(path: Path) -> Iterator[tuple[str, Origin]]:
    is_log = path.suffix == ".log"
    most = _MAX_LOG_BYTES if is_log else _MAX_BYTES
    if path.stat().st_size > most:
        raise ValueError(f"it has more than {most >> 20} MiB")
    if is_log:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if f'"name": "{sidecars.KERNEL_STACKS}"' in line:
                    yield from _entries(orjson.loads(next(lines, "{}")))
        return
    content = orjson.loads(path.read_bytes().decode(errors="replace"))
    if sidecars.NODE_MAPPINGS in path.name:
        content = content.get("cppCodeToPost") if isinstance(content, dict) else None
    yield from _entries(content)


def _entries(content: Any) -> Iterator[tuple[str, Origin]]:  # noqa: ANN401 - JSON
    """Yield kernels and their origins from a document of any of these forms; none from others."""
    for name, said in content.items() if isinstance(content, dict) else ():
        if isinstance(said, dict):
            stacks, nodes = said.get("stack_traces"), said.get("post_grad_nodes")
        else:
            stacks = [text for text in _texts(said) if _FRAME.search(text)]
            nodes = [text for text in _texts(said) if text.isidentifier()]
        # The last stack is that of the op whose result the kernel writes.
        traces = [listed for text in _texts(stacks) if (listed := _FRAME.findall(text))]
        last = traces[-1][-_MAX_FRAMES:] if traces else []
        frames = tuple(f"{file}:{line}" for file, line in last)
        ops = tuple(_NUMBER.sub("", node) for node in _texts(nodes))
        yield _USE.sub("", name), Origin(frames or None, ops or None)


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _keep_agreed(a: Origin, b: Origin) -> Origin:
    """Keep what two uses of a kernel agree on, and what only one of them states."""
    frames = b.frames if a.frames is None else a.frames
    if a.frames is not None and b.frames is not None:
        same = [one == other for one, other in zip(a.frames, b.frames, strict=False)]
        frames = a.frames[: (*same, False).index(False)]
    ops = b.ops if a.ops is None else a.ops
    if a.ops != b.ops and None not in (a.ops, b.ops):
        ops = ()
    return Origin(frames, ops)


def _describe_kernels(ranges: pa.Table, origins: Mapping[str, Origin]) -> pa.Table:
    """Add frames and ops to the texts of generated kernels."""
    chunks = []
    for chunk in ranges.column("text").chunks:
        texts = [_add_origin(text, origins) for text in chunk.dictionary.to_pylist()]
        encoded = pa.array(texts, chunk.dictionary.type).dictionary_encode()
        chunks.append(encoded.take(chunk.indices))  # two texts may be equal now
    kind = ranges.schema.field("text").type
    return set_column(ranges, "text", pa.chunked_array(chunks, kind))


def _add_origin(text: str | None, origins: Mapping[str, Origin]) -> str | None:
    call = marker.decode_op(text) if text is not None and _FUSED in text else None
    if text is None or call is None:
        return text
    origin = origins.get(_GRAPH.sub("", call.op))
    if origin is None or not (origin.frames or origin.ops):
        return text
    kwargs = dict(call.kwargs)
    if origin.frames:
        kwargs[marker.FRAMES] = origin.frames
    if origin.ops:
        kwargs[marker.FUSED_OPS] = "+".join(origin.ops)
    return marker.encode_op(replace(call, kwargs=kwargs))
