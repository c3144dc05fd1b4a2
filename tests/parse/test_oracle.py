"""The author's own net.dict and lm.csv of a V100 run, reproduced from the capture."""

import ast
import csv
import io
from typing import Any

import pytest

from pyprof import schema
from pyprof.parse import parse_file
from tests.builders import CAPTURES
from tests.commands import run
from tests.parse.record_lines import record_lines

FOLDER = CAPTURES / "nvprof-v100-apex"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared captures are not here")

COLUMNS = "kernel,mod,op,dir,sil,device,stream,block,grid"
HEADERS = ("Kernel", "Module", "Op", "Direction", "Sil(ns)", "Device", "Stream", "Block", "Grid")


@pytest.fixture(scope="module")
def ours() -> list[dict[str, Any]]:
    records = parse_file(FOLDER / "net.sql", kernels_only=True)
    return [ast.literal_eval(line) for line in record_lines(records)]


@pytest.fixture(scope="module")
def theirs() -> list[dict[str, Any]]:
    return [ast.literal_eval(line) for line in (FOLDER / "net.dict").read_text().splitlines()]


def test_every_old_key_of_all_160_kernels_is_equal(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    """Row by row, in order; tuples are lists now; long names are compared below.

    The original called clipping gradients forward, as all that is not backward.
    """
    assert len(ours) == len(theirs) == 160
    keys = [key for key in schema.OLD_RECORD.names if key != "kLongName"]
    for mine, old in zip(ours, theirs, strict=True):
        expected = {k: list(old[k]) if isinstance(old[k], tuple) else old[k] for k in keys}
        expected |= {"dir": "optim"} if _clips(mine) else {}
        assert {key: mine[key] for key in keys} == expected
    assert sum(map(_clips, ours)) == 32


def _clips(record: dict[str, Any]) -> bool:
    return any("torch/nn/utils/clip_grad.py" in frame for frame in record["trace"])


def test_long_names_differ_only_by_demangler(
    ours: list[dict[str, Any]], theirs: list[dict[str, Any]]
) -> None:
    """25 names, three distinct: the author's demangler resolved back references wrongly.

    It wrote `at::cuda::detail<float, at::cuda::detail::TensorInfo>` for `TensorInfo<float, ...>`
    and lost the lambda around a lambda. The template that is instantiated is the same.
    """
    differ = [
        (mine["kLongName"], old["kLongName"])
        for mine, old in zip(ours, theirs, strict=True)
        if mine["kLongName"] != old["kLongName"]
    ]
    assert (len(differ), len(set(differ))) == (25, 3)
    for mine, old in differ:
        assert mine.partition("<")[0] == old.partition("<")[0]
        assert "detail<float" in old or "mul_kernel_cuda" in old


def _rows(text: str) -> list[tuple[str, ...]]:
    """Read a report; the original wrote `na` for a module that is not known, which is empty now."""
    rows = csv.DictReader(io.StringIO(text))
    return [tuple("" if row[name] == "na" else row[name] for name in HEADERS) for row in rows]


@pytest.mark.slow
def test_the_report_of_the_authors_dict_is_the_authors_report() -> None:
    """`prof --csv` of the old net.dict equals lm.csv in nine columns, row by row."""
    done = run("prof", "--csv", "-c", COLUMNS, FOLDER / "net.dict")
    assert done.code == 0
    assert _rows(done.stdout) == _rows((FOLDER / "lm.csv").read_text())


@pytest.mark.slow
def test_the_report_of_the_capture_differs_where_the_original_missed_a_forward_call(
    ours: list[dict[str, Any]],
) -> None:
    """Three kernels of SplitBackward, whose `split` was a view and launched no kernel.

    (And the direction of those that clip gradients.) The original looked for the forward op among
    kernels, found none and wrote the node's own name. Ranges show that `split` ran inside
    multi_head_attention_forward.
    """
    done = run("prof", "--csv", "-c", COLUMNS, FOLDER / "net.sql")
    kernels = [row for row in _rows(done.stdout) if not row[0].startswith("[CUDA_mem")]
    expected = _rows((FOLDER / "lm.csv").read_text())
    assert len(kernels) == len(expected) == 160
    clips = [n for n, record in enumerate(ours) if _clips(record)]
    assert {(kernels[n][3], expected[n][3]) for n in clips} == {("optim", "fprop")}
    differ = [n for n in range(160) if kernels[n] != expected[n]]
    assert [n for n in differ if n not in clips] == [94, 95, 96]
    differ = differ[:3]
    for n in differ:
        assert expected[n][1:3] == ("", "Split")
        assert kernels[n][1:3] == ("torch.nn.functional", "multi_head_attention_forward")
        assert kernels[n][3:] == expected[n][3:]
        assert ours[n]["seqMarker"] == ["cat, seq = 0", "SplitBackward, seq = 75"]
        assert ours[n]["fwdSeqMarker"] == ["chunk", "split"]
        assert ours[n]["fwdOp"] == ["multi_head_attention_forward", "chunk"]


def test_the_report_gives_a_row_for_each_of_the_160(theirs: list[dict[str, Any]]) -> None:
    """The original died at row 144, `add_(x, alpha, y)`; that row has its cost."""
    rows = run("prof", "--csv", "-c", "idx,op,flops,bytes,params", FOLDER / "net.dict").rows
    assert [int(row["Idx"]) for row in rows] == list(range(1, 161))
    place = next(n for n, row in enumerate(theirs) if _is_scaled_add(row["marker"]))
    assert rows[place]["Op"] == "add_"
    assert int(rows[place]["FLOPs"]) > 0


def _is_scaled_add(markers: list[str]) -> bool:
    calls = [ast.literal_eval(text) for text in markers]
    types = [[arg["type"] for arg in call["args"]] for call in calls if call["op"] == "add_"]
    return ["tensor", "int", "tensor"] in types
