"""Parts of a page: cards, tables and remedies."""

from pathlib import Path

import pytest

from pyprof.analysis.summary.overview import summary
from pyprof.inputs import source
from pyprof.render.page import sections
from pyprof.render.page.content import summarise_page
from pyprof.render.page.sections import without_folders
from pyprof.render.text.formatting import duration


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("load '/home/alice/data/x.so' failed", "load 'x.so' failed"),
        ("C:\\Users\\alice\\run.py:3 waits", "run.py:3 waits"),
        ("from /mnt/a/b.py and /c/d.py", "from b.py and d.py"),
        ("in alice/runs/x.py", "in x.py"),
        ("12 FLOP/s of 3 TFLOP/s", "12 FLOP/s of 3 TFLOP/s"),
        ("compute/memory", "compute/memory"),
    ],
)
def test_folders_are_left_out(sentence: str, expected: str) -> None:
    """A path keeps its file's name; a slash between words is no path."""
    assert without_folders(sentence) == expected


@pytest.mark.slow
def test_each_gpu_adds_up_to_the_headline(captures: Path) -> None:
    """Busy and idle time of the cards are the sums over GPUs, and of the causes."""
    found = summarise_page(source.load(str(captures / "nsys2026.2-h100x2-fsdp/net.sqlite")))
    answer = summary(found.summary)
    assert answer.devices is not None
    cards = {title: value for title, value, _ in sections.cards(answer)}
    idle_ns = sum(device.idle_ns for device in answer.devices)
    assert cards["GPU idle"] == duration(idle_ns)
    assert idle_ns == sum(sum(device.idle_by_cause_ns.values()) for device in answer.devices)
    table = sections.devices(answer)
    assert [name for name, _ in table] == ["GPU 0, process 144", "GPU 1, process 145"]
    assert table[0][1][:4] == ["300 ms", "91.3 %", "274 ms", "26.0 ms"]
