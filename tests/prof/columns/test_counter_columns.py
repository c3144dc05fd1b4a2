"""Columns of counters, beside modelled ones."""

from pathlib import Path

import pytest

from tests.analysis import product
from tests.commands.test_prof import table


def test_columns_without_measurements_are_empty(tmp_path: Path) -> None:
    rows = table("--by", "op", "-c", "op,dram,calls", product.capture(tmp_path / "x.sqlite"))
    assert {row["DRAM(B)"] for row in rows} == {""}
    assert all(row["Calls"] for row in rows)


def test_measurements_stand_beside_the_model(tmp_path: Path) -> None:
    columns = "op,tc,tcmeas,bytes,dram,excess,tensor,occ,waves,effclk"
    counters, capture = (
        product.counters(tmp_path / "ncu.csv"),
        product.capture(tmp_path / "a.sqlite"),
    )
    for row in table("-c", columns, "--with", counters, capture):
        assert (row["TC"], row["TCm"], row["Tensor(%)"]) == ("1", "1", "61")
        assert int(row["DRAM(B)"]) == 2 * int(row["Bytes"]) == 2 * product.MIN_BYTES
        assert float(row["Excess"]) == 2
        assert row["EffClk(%)"] == "", "the clock of another run"
        # 128 threads of 32 registers with 1 KiB: 16 blocks of 4 warps on each of 108 SMs
        assert float(row["Occ(%)"]) == 100
        assert float(row["Waves"]) == pytest.approx(8 / (16 * 108))
