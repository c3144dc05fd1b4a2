"""Streams of the GPU in the timeline."""

from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from pyprof.marker import encode_layer
from tests.analysis.captured import HOSTILE, TWO_WINDOWS, capture
from tests.builders import Range, Work, nsys_db
from tests.commands import run
from tests.export.exported import events, of
from tests.readers import kineto_json


def test_every_row_is_a_slice_of_its_stream(tmp_path: Path) -> None:
    """Kernels and copies, to the ns, with their full names."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.pt.trace.json")
    base = 100  # the first range
    kernels = [(e["name"], e["tid"], e["ts"], e["dur"]) for e in of(found, "kernel")]
    assert kernels == [
        ("relu_kernel", 7, Decimal(1000 - base) / 1000, Decimal("0.1")),
        ("relu_kernel", 7, Decimal(2000 - base) / 1000, Decimal("0.1")),
        ("exp_kernel", 7, Decimal(3000 - base) / 1000, Decimal("0.3")),
        (HOSTILE, 7, Decimal(3400 - base) / 1000, Decimal("0.05")),
    ]
    copied = [(e["name"], e["tid"], e["args"]["bytes"]) for e in of(found, "gpu_memcpy")]
    assert copied == [("Memcpy HtoD", 8, 4096)]  # as torch.profiler names it


def test_copies_of_a_torch_trace_keep_their_names(tmp_path: Path) -> None:
    """Other tools recognise copies and pinned memory by them; also from parsed records."""
    names = ["Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "CopyHostToDevice"]
    work = [
        kineto_json.event(category, name, 10.0 * place, 2.0, pid=0, device=0, stream=7)
        for place, (category, name) in enumerate(
            zip(("gpu_memcpy", "gpu_memset", "gpu_memcpy"), names, strict=True)
        )
    ]
    net = tmp_path / "net.json"
    net.write_text(kineto_json.text(work))
    run("parse", net, "-o", tmp_path / "net.dict")
    for source in (net, tmp_path / "net.dict"):
        found = events(source, tmp_path / "out.pt.trace.json")
        assert [e["name"] for e in [*of(found, "gpu_memcpy"), *of(found, "gpu_memset")]] == [
            names[0], names[2], names[1],
        ]  # fmt: skip


def test_layers_and_ops_stand_above_their_kernels(tmp_path: Path) -> None:
    """A layer spans its first to its last kernel, with its ops inside."""
    found = events(capture(tmp_path / "net.sqlite"), tmp_path / "net.perfetto")
    base = 100
    layers = {
        e["name"]: (e["ts"] * 1000 + base, e["dur"] * 1000)
        for e in of(found, "gpu_user_annotation")
    }
    assert layers == {"net": (1000, 2300), "net.first": (1000, 1100), "net.second": (3000, 300)}
    assert [e["name"] for e in of(found, "gpu_op")] == ["relu", "relu", "exp"]


def test_each_window_of_the_profiler_stands_above_its_layers(tmp_path: Path) -> None:
    """On each stream, also from parsed records."""
    work = [*TWO_WINDOWS, Work(at=(9200, 9400), call=(9040, 9050), stream=8)]
    net = nsys_db(tmp_path / "net.sqlite", work, [Range(encode_layer("net"), (0, 9999))])
    assert run("parse", "-q", net, "-o", tmp_path / "net.dict").code == 0
    for source in (net, tmp_path / "net.dict"):
        found = of(events(source, tmp_path / "net.pt.trace.json"), "gpu_user_annotation")
        first = min(e["ts"] for e in found)
        assert sorted(((e["ts"] - first) * 1000, e["dur"] * 1000, e["name"]) for e in found) == [
            (0, 250, "net"), (0, 250, "window 0"),
            (8100, 400, "net"), (8100, 400, "window 1"),
            (8200, 200, "net"), (8200, 200, "window 1"),
        ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nsys2026.2-h100x2-fsdp", "nsys2024.2-a100-pyprof-markers"])
def test_projected_slices_nest(captures: Path, tmp_path: Path, name: str) -> None:
    """On a track of layers and ops no slice ends after one that encloses its start."""
    found = events(captures / name / "net.sqlite", tmp_path / "net.pt.trace.json")
    tracks: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = defaultdict(list)
    for event in of(found, "gpu_op") + of(found, "gpu_user_annotation"):
        start, length = Decimal(event["ts"]), Decimal(event["dur"])
        tracks[event["pid"], event["tid"]].append((start, -(start + length)))
    assert tracks
    for slices in tracks.values():
        open_: list[Decimal] = []
        for start, negative_end in sorted(slices):
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or -negative_end <= open_[-1]
            open_.append(-negative_end)
