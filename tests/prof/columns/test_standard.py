"""Columns tflops, gbs, ai, bound, eff, peak, tc and why, and those of counters, by hand."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import pyprof
from pyprof.gpu.peaks.ceilings import Ceilings, save
from pyprof.marker import Call, Tensor, encode_op
from pyprof.prof.columns import standard
from pyprof.prof.table import Override
from tests.analysis import product
from tests.builders import Range, Work, nsys_db
from tests.commands import printed, refused, run
from tests.commands.test_prof import table
from tests.prof.kernels_in_ranges import called


def _mm(side: int, dtype: str, n: int | None = None) -> str:
    shapes = (side, side), (side, n or side)
    return encode_op(Call("torch", "mm", tuple(Tensor(shape, dtype) for shape in shapes)))


def _conv(channels: int, dtype: str, batch: int = 1) -> str:
    tensors = Tensor((batch, channels, 64, 64), dtype), Tensor((64, channels, 3, 3), dtype)
    return encode_op(Call("torch.nn.functional", "conv2d", tensors))


def _capture(folder: Path, *kernels: tuple[str, str | None, int]) -> Path:
    """Write a capture of kernels: name, marker around the launch, and time in ns."""
    return called(folder / "net.sqlite", *((text, [(name, ns)]) for name, text, ns in kernels))


def _row(path: Path, override: Override | None = None) -> SimpleNamespace:
    rows = pyprof.load(path, override or Override(gpu="NVIDIA A100-SXM4-40GB"))
    return SimpleNamespace(**{str(name): value for name, value in rows.iloc[0].items()})


@pytest.mark.parametrize(
    ("kernel", "dtype", "peak"),
    [
        ("ampere_sgemm_128x128_nn", "float32", 19.5),
        ("ampere_hgemm_128x128_nn", "float16", 78),
        ("ampere_fp16_sgemm_fp16_128x128_nn", "float16", 19.5),
        ("ampere_s1688gemm_tf32_128x128_nn", "float32", 156),
        ("ampere_fp16_s16816gemm_fp16_128x128_nn", "float16", 312),
        ("ampere_bf16_s16816gemm_bf16_128x128_nn", "bfloat16", 312),
        ("ampere_d884gemm_128x64_nn", "float64", 19.5),
    ],
)
def test_peak_is_that_of_the_unit_and_the_type(
    tmp_path: Path, kernel: str, dtype: str, peak: float
) -> None:
    """2 * 4096**3 FLOPs in 1 ms, against the A100's dense rate of the kernel's type."""
    row = _row(_capture(tmp_path, (kernel, _mm(4096, dtype), 10**6)))
    flops = 2 * 4096**3 / 1e9  # TFLOP/s of 1 ms
    assert row.tflops == pytest.approx(flops)
    assert row.eff == pytest.approx(100 * flops / peak)
    assert row.peak.startswith("A100 40GB ")
    assert row.peak.endswith(", datasheet")
    assert row.ai == pytest.approx(row.flops / row.bytes)


@pytest.mark.slow
def test_float16_sums_have_their_own_peak_where_the_card_doubles_it(tmp_path: Path) -> None:
    """An RTX 4090 runs h16816 (float16 sum) at twice the rate of s16816 (float32 sum)."""
    override = Override(gpu="NVIDIA GeForce RTX 4090")
    shares = []
    for number, letter in enumerate("sh"):
        (folder := tmp_path / str(number)).mkdir()
        kernel = f"ampere_fp16_{letter}16816gemm_fp16_128x128_nn"
        shares.append(_row(_capture(folder, (kernel, _mm(4096, "float16"), 10**7)), override).eff)
    assert shares[0] == pytest.approx(2 * shares[1])


def test_a_row_above_the_peak_is_shown_and_flagged(tmp_path: Path) -> None:
    path = _capture(tmp_path, ("ampere_fp16_s16816gemm_fp16_nn", _mm(4096, "float16"), 10**5))
    row = _row(path)
    assert row.eff > 400
    assert row.why.startswith("above peak: its FLOPs, its type or the clock")


def test_memory_above_its_peak_says_cache(tmp_path: Path) -> None:
    """Data in cache beats DRAM; a row below its peak is not flagged."""
    text = encode_op(Call("torch", "mul", (Tensor((1 << 20,), "float32"),) * 2))
    path = _capture(tmp_path, ("mul_kernel", text, 2000), ("mul_kernel", text, 200_000))
    why = pyprof.load(path, Override(gpu="NVIDIA A100-SXM4-40GB")).why
    assert why[0].startswith("above peak: faster than DRAM")
    assert "above" not in str(why[1])


def test_fills_above_the_peak_are_flagged_as_fills(tmp_path: Path) -> None:
    """Fills of compressible memory can move fewer bytes than they write."""
    work = [Work(kind="memset", at=(1000, 2000), call=(10, 20), bytes=10**9)]
    row = _row(nsys_db(tmp_path / "net.sqlite", work, [Range("x", (1, 5))]))
    assert row.why.startswith("above peak: fills")


def test_a_batch_of_one_is_not_a_vector(tmp_path: Path) -> None:
    """A convolution's N is its batch: the reason names the channels, of which 64 are aligned."""
    kernel = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32"
    row = _row(_capture(tmp_path, (kernel, _conv(64, "float16"), 10**6)))
    assert row.tc == "1"
    assert "alignment" not in row.why
    odd = _row(_capture(tmp_path, (kernel, _conv(63, "float16"), 10**6)))
    assert odd.why == "alignment: input channels = 63 not a multiple of 8: padded, slower"


@pytest.mark.parametrize(("copy_kind", "known"), [(1, False), (2, False), (8, True)])
def test_copies_to_and_from_the_host_have_no_efficiency(
    tmp_path: Path, copy_kind: int, *, known: bool
) -> None:
    """They run at the link's speed, which no capture records."""
    work = [
        Work(kind="memcpy", at=(1000, 900_000), call=(10, 20), bytes=10**8, copy_kind=copy_kind)
    ]
    row = _row(nsys_db(tmp_path / "net.sqlite", work, [Range("x", (1, 5))]))
    assert row.gbs > 0
    columns = ("eff", "peak", "bound")
    assert {isinstance(getattr(row, name), (str, float)) for name in columns} == {known}


@pytest.fixture
def gemm(tmp_path: Path) -> Path:
    """Write a product on the A100's Tensor Cores of 1 ms."""
    return _capture(tmp_path, ("ampere_fp16_s16816gemm_fp16_nn", _mm(4096, "float16"), 10**6))


def _eff(path: Path, *options: str) -> tuple[Any, str]:
    shown = printed("prof", "--csv", "-q", "-c", "eff,peak", *options, path)
    eff, peak = (cell.strip('"') for cell in shown.splitlines()[1].split('","'))
    return float(eff), peak


@pytest.mark.slow
def test_peaks_are_given_as_people_write_them(gemm: Path) -> None:
    spellings = "1e15", "1000T", "1P", "1 PFLOP/s", "1000tflops"
    found = {_eff(gemm, "--gpu", f"flops={text}") for text in spellings}
    assert [eff for eff, _ in found] == [pytest.approx(13.7438953472)]
    assert all("given" in peak for _, peak in found)


@pytest.mark.slow
def test_a_given_bandwidth_takes_precedence_over_the_card(tmp_path: Path) -> None:
    """3 * 4 MiB in 100 us are 126 GB/s: 12.6 % of 1 TB/s."""
    text = encode_op(Call("torch", "mul", (Tensor((1 << 20,), "float32"),) * 2))
    path = _capture(tmp_path, ("mul_kernel", text, 100_000))
    for spelling in ("1T", "1e12", "1TB/s", "1000GB/s", "1.0TBps"):
        assert _eff(path, "--gpu", f"Tesla T4,bandwidth={spelling}") == (
            pytest.approx(12.582912), "given",
        )  # fmt: skip


def test_a_given_clock_scales_the_peak(gemm: Path) -> None:
    gpu = "NVIDIA A100-SXM4-40GB"
    full, peak = _eff(gemm, "--gpu", f"{gpu},clock=1410")
    half, _ = _eff(gemm, "--gpu", f"{gpu},clock=705")
    assert half == pytest.approx(2 * full)
    assert "108 SMs at 1410 MHz, formula" in peak


@pytest.mark.parametrize("text", ["0", "-5T", "fast", "1e999", "nan", "3 apples", "1T2"])
@pytest.mark.parametrize("rate", ["flops", "bandwidth"])
def test_an_invalid_rate_is_a_usage_error(tmp_path: Path, rate: str, text: str) -> None:
    done = run("prof", "--gpu", f"{rate}={text}", tmp_path / "net.sqlite")
    assert (done.code, done.stdout) == (2, "")
    assert "such as 1.5e12 or 1.5T" in " ".join(done.stderr.split())


def _measured(folder: Path, monkeypatch: pytest.MonkeyPatch, *devices: str) -> None:
    for name in ("XDG_CONFIG_HOME", "APPDATA"):
        monkeypatch.setenv(name, str(folder / "config"))
    for device in devices:
        save(Ceilings(device, {"float16 tensor": 2e14, "float32": 1e12}, 1e12))


def test_measured_ceilings_count_only_when_asked_for(
    gemm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _measured(tmp_path, monkeypatch, "NVIDIA A100-SXM4-80GB")
    eff, peak = _eff(gemm)
    assert (eff, peak[-11:]) == (pytest.approx(100 * 137.438953472 / 312), ", datasheet")
    eff, peak = _eff(gemm, "--gpu", "measured")
    assert (eff, peak[-10:]) == (pytest.approx(100 * 137.438953472 / 200), ", measured")


def test_measured_without_a_measurement_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _measured(tmp_path, monkeypatch, "Tesla T4")
    said = refused("prof", "--gpu", "measured", _capture(tmp_path, ("mul_kernel", None, 1000)))
    assert "pyprof peaks --measure" in said
    assert "A100" in said


def test_ops_on_the_cpu_have_a_peak_once_it_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device `cpu` has no datasheet: no efficiency without `--gpu measured`."""
    _measured(tmp_path, monkeypatch, "cpu")
    row = {"kShortName": "aten::mm", "kLongName": "aten::mm", "kDuration": 10**9, "kind": "cpu",
           "gpu": "cpu", "marker": [_mm(1024, "float32")]}  # fmt: skip
    path = tmp_path / "net.dict"
    path.write_text(json.dumps(row) + "\n")
    plain, measured = (_row(path, Override(measured=asked)) for asked in (False, True))
    assert not isinstance(plain.eff, float)
    assert measured.eff == pytest.approx(100 * 2 * 1024**3 / 1e12)
    assert measured.peak == "cpu fp32 matmul, measured"


def test_caveats_of_a_card_are_printed_once_and_only_with_eff(tmp_path: Path) -> None:
    """Two bandwidths have been published for the T4."""
    path = _capture(tmp_path, *[("mul_kernel", None, 1000)] * 3)
    told = run("prof", "--gpu", "Tesla T4", "-c", "eff,peak", path).stderr
    assert told.count("T4: some pages say 300 GB/s") == 1
    assert "T4" not in run("prof", "--gpu", "Tesla T4", path).stderr


@pytest.mark.parametrize("known", [True, False])
def test_no_efficiency_if_the_peak_depends_on_an_unknown_unit(
    tmp_path: Path, *, known: bool
) -> None:
    """Tensor Core use matters for a product, not for a sum limited by memory."""
    matrices = _mm(4096, "float16")
    pointwise = encode_op(Call("torch", "mul", (Tensor((1 << 22,), "float16"),) * 2))
    row = _row(_capture(tmp_path, ("my_gemm_kernel", pointwise if known else matrices, 10**6)))
    assert row.tc == "?"
    assert isinstance(row.eff, float) == known
    assert isinstance(row.bound, str) == known
    assert row.tflops > 0


@pytest.mark.parametrize("named", [True, False])
def test_the_table_of_cards_fills_in_what_a_record_lacks(tmp_path: Path, *, named: bool) -> None:
    """Dict lines hold a GPU's name at most: a V100 has 80 SMs and no TF32."""
    record = {
        "kShortName": "volta_sgemm_128x64_nn",
        "kLongName": "volta_sgemm_128x64_nn",
        "kDuration": 10**6,
        "grid": [40, 1, 1],
        "marker": [_mm(1024, "float32")],
    }
    path = tmp_path / "net.dict"
    path.write_text(json.dumps(record | ({"gpu": "Tesla V100-SXM2-16GB"} if named else {})) + "\n")
    row = _row(path, Override(gpu=None if named else "Tesla V100-SXM2-16GB"))
    assert row.bound == "latency"
    assert row.why.startswith("dtype: float32 needs TF32, which 7.0 lacks")


def test_each_name_is_of_one_column() -> None:
    assert len(standard.COLUMNS) == len(standard._COLUMNS)


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
