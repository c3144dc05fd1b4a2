"""Tables on a terminal: as wide as it, without truncated numbers; pipes get plain fields."""

import io
import os
import re
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyprof.__main__ import main
from pyprof.prof import group, params
from pyprof.prof.columns.standard import COLUMNS, Column
from pyprof.render.text.layout.terminal_table import SCREEN, write, write_full
from pyprof.render.text.layout.text_width import cells
from tests.analysis.captured import capture
from tests.commands import run

fcntl = pytest.importorskip("fcntl", reason="a terminal of Unix")
SHOWN_OF_GROUPS = {
    *("calls", "total", "mean", "min", "max", "share", "flops", "bytes"),
    *("tflops_min", "tflops", "tflops_max", "eff"),
}
LONG = "void cutlass::Kernel<cutlass_80_tensorop_s16816gemm_f16_256x128_32x3_nn_align8>(Params)"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Return a capture, one of whose kernels has a long name of wide characters."""
    return capture(tmp_path / "net.sqlite", hostile=f"核心_kernel_{'核心' * 40}_fp16_tn")


def on_terminal(monkeypatch: pytest.MonkeyPatch, width: int, *arguments: object) -> list[str]:
    """Run a command whose stdout and stderr end in a terminal; return the lines that it shows."""
    import pty  # noqa: PLC0415 - Unix has it
    import termios  # noqa: PLC0415 - as above

    seen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    shown = io.BytesIO()

    def read() -> None:
        try:
            while part := os.read(seen, 1 << 16):
                shown.write(part)
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    with (
        open(terminal, "w", encoding="utf-8") as stdout,  # noqa: PTH123 - a number
        monkeypatch.context() as patch,
    ):
        for name in ("stdout", "__stdout__", "stderr"):
            patch.setattr(sys, name, stdout)
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
    reader.join()
    os.close(seen)
    assert not ended.value.code
    return shown.getvalue().decode().replace("\r\n", "\n").splitlines()


@pytest.mark.few(3)
@pytest.mark.slow
@pytest.mark.parametrize("width", [20, 40, 80, 100, 200])
@pytest.mark.parametrize("by", [(), ("--by", "op"), ("--by", "kernel")])
def test_no_line_is_wider_than_the_terminal(
    width: int, by: tuple[str, ...], net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS")
    lines = on_terminal(monkeypatch, width, "prof", "-q", *by, net)
    assert max(map(cells, lines)) <= width
    assert len(lines) == 1 + len(run("prof", "--csv", *by, net).stdout.splitlines()[1:])


def test_the_variable_columns_takes_precedence(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`COLUMNS=60 pyprof prof` makes a table of 60, whatever the window."""
    monkeypatch.setenv("COLUMNS", "60")
    lines = on_terminal(monkeypatch, 200, "prof", "-q", net)
    assert 50 < max(map(cells, lines)) <= 60


def test_the_most_useful_columns_are_shown(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    head = on_terminal(monkeypatch, 150, "prof", "-q", net)[0]
    assert head.split() == [
        "Op", "Line", "Kernel", "Time", "TC", "FLOPs", "Eff(%)", "Bound", "Why"
    ]  # fmt: skip


def test_columns_without_room_are_named(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = " ".join(on_terminal(monkeypatch, 40, "prof", net))
    assert re.search(r"no room for .*Why; widen the terminal, or use --full", said)


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("-w", "120"), ("-c", "idx,op,kernel,sil"), ("--csv",), ("--csv", "--by", "op")]
)
def test_a_requested_form_is_the_same_on_a_terminal(
    options: tuple[str, ...], net: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte as through a pipe, for scripts that run in a terminal."""
    piped = run("prof", "-q", *options, net).stdout
    assert on_terminal(monkeypatch, 100, "prof", "-q", *options, net) == piped.splitlines()


def test_full_truncates_nothing(net: Path) -> None:
    """Names and exact numbers, aligned, also through a pipe; -c selects columns."""
    lines = run("prof", "-q", "--full", net).stdout.splitlines()
    assert "核心" * 40 in "".join(lines)
    exact = [row.split(",") for row in run("prof", "--csv", "-c", "sil", net).stdout.splitlines()]
    for (number,), line in zip(exact[1:], lines[1:], strict=True):
        assert number.strip('"') in line.split()
    shown = run("prof", "-q", "--full", "-c", "idx,sil", net).stdout
    assert shown.split()[:2] == ["Idx", "Sil(ns)"]
    assert run("prof", "--full", "--csv", net).code == 2


NUMBER = re.compile(r"-?\d[\d.]*(?:e[+-]?\d+)?[kMGTPEunms]*")
VALUES = {
    "sil": pa.array([1, 10**15, 999_999_999, None]),
    "flops": pa.array([10**15, 2**62, 0, None]),
    "eff": pa.array([1e-12, 99.99999, 123456.0, None]),
}


@given(st.integers(1, 250), st.lists(st.sampled_from(SCREEN), min_size=2, unique=True))
def test_no_number_is_ever_truncated(width: int, names: list[str]) -> None:
    """At any width a number has all its digits and its unit, or its column is left out."""
    text = pa.array([LONG, "注意力" * 30, "e\u0301" * 90, None])
    data = pa.table({name: VALUES.get(name, text) for name in names})
    columns = [COLUMNS[name] for name in names]
    wide, narrow = io.BytesIO(), io.BytesIO()
    said: list[str] = []
    write(columns, [data], wide, 4000, said.append, coloured=False)
    write(columns, [data], narrow, width, said.append, coloured=False)
    numbers = set(NUMBER.findall(" ".join(wide.getvalue().decode().split())))
    for line in narrow.getvalue().decode().splitlines()[1:]:
        for field in line.split():
            if NUMBER.fullmatch(field):
                assert field in numbers


def test_rows_in_several_batches_share_their_widths() -> None:
    columns = [COLUMNS["op"], COLUMNS["sil"]]
    parts = [pa.table({"op": ["a"], "sil": [5]}), pa.table({"op": ["b" * 30], "sil": [10**10]})]
    out = io.BytesIO()
    write_full(columns, parts, out, coloured=False)
    assert len(set(map(len, out.getvalue().decode().splitlines()))) == 1


@pytest.mark.parametrize(
    ("of_groups", "width", "left_out"),
    [
        (group.measures, 58, "Max"),
        (group.measures, 52, "Min, Max"),
        (params.measures, 60, "MaxTFLOP/s"),
        (params.measures, 50, "MinTFLOP/s, MaxTFLOP/s"),
    ],
)
def test_groups_leave_out_their_extremes_first(
    of_groups: Callable[[], list[Column]], width: int, left_out: str
) -> None:
    """FLOPs and rates matter more than minimum and maximum."""
    columns = [column for column in of_groups() if column.name in SHOWN_OF_GROUPS]
    data = pa.table({column.name: [123_456] for column in columns})
    said: list[str] = []
    write(columns, [data], io.BytesIO(), width, said.append, coloured=False)
    assert said == [f"no room for {left_out}; widen the terminal, or use --full"]


@pytest.mark.parametrize(("name", "shown"), [("line", "model.py:7"), ("op", "/a/model.py:7")])
def test_lines_are_shown_without_their_folders(name: str, shown: str) -> None:
    rows, file = pa.table({name: ["/a/model.py:7"]}), io.BytesIO()
    write([COLUMNS[name]], [rows], file, 80, print, coloured=False)
    assert file.getvalue().split()[1:] == [shown.encode()]
    write_full([COLUMNS[name]], [rows], full := io.BytesIO(), coloured=False)
    assert full.getvalue().split()[1:] == [b"/a/model.py:7"]
