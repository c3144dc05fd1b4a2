"""Counters of ncu joined to the kernels of a capture: by name, grid, block and order."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pyprof
from pyprof import readers
from pyprof.inputs import counters
from tests.builders import Work, nsys_db
from tests.capture_files.ncu import Profiled, details, ncu_csv
from tests.commands import run

# The same kernel as nsys, Kineto (of libstdc++) and ncu spell it.
SPELLINGS = (
    (
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
        "at::detail::Array<char *, (int)1>>(int, T2, T3)"
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
        "at::detail::Array<char*, 1> >(int, at::native::FillFunctor<float>, "
        "at::detail::Array<char*, 1>)"
    ),
    "vectorized_elementwise_kernel",
)
OTHER = "void at::native::vectorized_elementwise_kernel<4, at::native::CopyFunctor, A<1> >(int)"


def _work(names: Sequence[str], grid: tuple[int, int, int] = (4, 2, 1)) -> list[Work]:
    return [
        Work(name, (1000 * at, 1000 * at + 500), (10 * at, 10 * at + 5), grid=grid)
        for at, name in enumerate(names, 1)
    ]


def _profiled(names: Sequence[str]) -> list[Profiled]:
    return [
        Profiled(name, metrics={"dram__bytes.sum": float(at)}) for at, name in enumerate(names, 100)
    ]


def _joined(
    tmp_path: Path, work: list[Work], profiled: list[Profiled]
) -> tuple[list[str], list[str], str]:
    capture = nsys_db(tmp_path / "net.sqlite", work)
    counters = ncu_csv(tmp_path / "ncu.csv", profiled)
    done = run("prof", "--csv", "-c", "dram,counter,via", "--with", counters, capture)
    rows = done.rows
    return [row["DRAM(B)"] for row in rows], [row["Counter"] for row in rows], done.stderr


@pytest.mark.parametrize("ours", SPELLINGS[:2])
@pytest.mark.parametrize("theirs", SPELLINGS)
def test_names_match_in_every_tools_spelling(ours: str, theirs: str, tmp_path: Path) -> None:
    dram, counter, _ = _joined(tmp_path, _work([ours]), _profiled([theirs]))
    assert (dram, counter) == (["100"], ["joined"])


A1, A2 = _work("aa")
JOINS: dict[str, tuple[list[Work], Sequence[str], str, str]] = {
    # the capture, what was profiled, the former's counters, and what is said
    "in the order of launches": (_work("abab"), "aabb", "100 102 101 103", ""),
    "of launches, though a stream began later": (
        [replace(A1, at=(9000, 9500)), replace(A2, stream=9)], "aa", "101 100", ""),
    "functors of one template": (
        _work([SPELLINGS[1], OTHER]), [OTHER, SPELLINGS[0]], "101 100", ""),
    "the order of grid dimensions": (
        [*_work("a", (2, 4, 1)), replace(A1, at=(9000, 9500), call=(8000, 8100))], "a", "- 100",
        "1 of 2 kernels of the capture have no counters"),
    "a copy has none": ([A1, Work(kind="memcpy", at=(9000, 9100))], "a", "100 -", ""),
    "one of several repetitions": (
        _work("abbabbabb"), "abb", "100 101 102 " * 3, "6 kernels with the counters of others"),
    "chosen by --kernel-name, which skips only those": (
        _work("axbxaxaxbxb"), "aabb", "- - - - 100 - 101 - 102 - 103",
        "7 of 11 kernels of the capture have no counters"),
    "a capture that began later": (_work("cabb"), "abbacabba", "104 105 106 107", "did not join"),
    "a part of the run, of which nothing shows that the rest is equal": (
        _work("aaaaa"), "aa", "100 101 - - -", "3 of 5 kernels of the capture have no counters"),
}  # fmt: skip


@pytest.mark.parametrize(("work", "profiled", "expected", "message"), JOINS.values(), ids=JOINS)
def test_kernels_join_by_name_sizes_and_order(
    work: list[Work], profiled: Sequence[str], expected: str, message: str, tmp_path: Path
) -> None:
    dram, counter, said = _joined(tmp_path, work, _profiled(profiled))
    assert [value or "-" for value in dram] == expected.split()
    assert counter == [
        value and ("repeated" if value in dram[:place] else "joined")
        for place, value in enumerate(dram)
    ]
    assert message in said
    assert message or "join" not in said


def test_another_grid_is_another_kernel(tmp_path: Path) -> None:
    dram, _, said = _joined(tmp_path, _work(["a"], (9, 1, 1)), _profiled(["a"]))
    assert dram == [""]
    assert "ncu.csv: 1 of 1 kernels did not join" in said
    assert "a (1)" in said
    assert "1 of 1 kernels of the capture have no counters" in said


@pytest.mark.long
def test_profiling_that_began_later(tmp_path: Path) -> None:
    """With --launch-skip the first profiled kernel is not the first of its name."""
    names = "aabacbabacabbbac"
    for skip in range(len(names) - 4):
        dram, counter, _ = _joined(tmp_path, _work(names), _profiled(names[skip : skip + 5]))
        expected = [str(100 + at) for at in range(5)]
        first = next(at for at in range(len(names)) if names[at : at + 5] == names[skip : skip + 5])
        joined = [value for value, how in zip(dram, counter, strict=True) if how == "joined"]
        assert joined == expected
        assert dram[first : first + 5] == expected


def test_repetitions_of_a_step_that_was_profiled_from_its_middle(tmp_path: Path) -> None:
    step = "abbcabd"
    profiled = (step * 2)[3 : 3 + len(step)]
    dram, counter, _ = _joined(tmp_path, _work(step * 3), _profiled(profiled))
    own = ["104", "105", "106", "100", "101", "102", "103"]
    assert dram == own * 3
    assert [at for at, how in enumerate(counter) if how == "joined"] == [*range(3, 10)]


def test_profiling_that_began_later_in_a_run_that_differs(tmp_path: Path) -> None:
    names = [chr(ord("a") + (at * at + at // 7) % 23) for at in range(200)]
    profiled = names[50:150]
    profiled[60] = "zz"
    dram, _, _ = _joined(tmp_path, _work(names), _profiled(profiled))
    right = [dram[50 + at] == str(100 + at) for at in range(100)]
    assert sum(right) >= 90
    assert all(right[:60])


def test_a_file_without_sizes(tmp_path: Path) -> None:
    """By name and order, as ncu of 2021 wrote no sizes."""
    counters = tmp_path / "ncu.csv"
    lines = [line for line in details(_profiled("ab"), year=2021).splitlines(keepends=True)
             if '"Launch Statistics"' not in line]  # fmt: skip
    counters.write_text("".join(lines))
    capture = nsys_db(tmp_path / "net.sqlite", _work("ba"))
    done = run("prof", "--csv", "-c", "dram", "--with", counters, capture)
    assert done.stdout.split()[1:] == ['"101"', '"100"']
    assert "as totals" not in done.stderr


def test_each_device_by_itself(tmp_path: Path) -> None:
    work = [replace(piece, device=at % 2) for at, piece in enumerate(_work("aaaa"))]
    both = [replace(piece, device=at // 2) for at, piece in enumerate(_profiled("aaaa"))]
    dram, counter, _ = _joined(tmp_path, work, both)
    assert (dram, counter) == (["100", "102", "101", "103"], ["joined"] * 4)
    dram, counter, _ = _joined(tmp_path, work, both[:2])
    assert (dram, counter) == (["100", "100", "101", "101"], ["joined", "repeated"] * 2)


def test_a_helper_process_that_was_profiled_first(tmp_path: Path) -> None:
    profiled = [replace(piece, pid=at) for at, piece in enumerate(_profiled("xa"), 1)]
    dram, _, said = _joined(tmp_path, _work(["a"]), profiled)
    assert dram == ["101"]
    assert "1 of 2 kernels did not join" in said
    assert "x (1)" in said


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["dict", "parquet"])
def test_parsed_files_keep_counters(suffix: str, tmp_path: Path) -> None:
    capture = nsys_db(tmp_path / "net.sqlite", _work("ab"))
    counters = ncu_csv(tmp_path / "ncu.csv", _profiled("ab"))
    target = tmp_path / f"net.{suffix}"
    assert run("parse", "-q", "--with", counters, capture, "-o", target).code == 0
    done = run("prof", "-q", "--csv", "-c", "dram,via", target)
    assert done.stdout.splitlines()[1:] == ['"100","measured"', '"101","measured"']


def test_load_has_the_option_too(tmp_path: Path) -> None:
    capture = nsys_db(tmp_path / "net.sqlite", _work(["a"]))
    frame = pyprof.load(capture, counters=ncu_csv(tmp_path / "ncu.csv", _profiled(["a"])))
    assert frame["dram"].tolist() == [100]


@pytest.mark.long
def test_captures_of_a_set_have_counters_on_any_worker(tmp_path: Path) -> None:
    paths = [nsys_db(tmp_path / f"net.rank{rank}.sqlite", _work(["a"])) for rank in range(2)]
    counters = ncu_csv(tmp_path / "ncu.csv", _profiled(["a"]))
    done = run("prof", "--csv", "-c", "rank,dram", "--workers", "2", "--with", counters, *paths)
    assert done.stdout.splitlines()[1:] == ['"0","100"', '"1","100"']


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: folder / "none.csv", "no such file; check the path"),
        (lambda folder: nsys_db(folder / "b.sqlite", _work(["a"])), "a capture, to be named"),
        (lambda folder: ncu_csv(folder / "x.csv", [Profiled("a")]), "no counter that"),
    ],
)  # fmt: skip
def test_a_file_without_counters_is_refused(make: object, words: str, tmp_path: Path) -> None:
    assert callable(make)
    capture = nsys_db(tmp_path / "net.sqlite", _work(["a"]))
    done = run("prof", "--with", make(tmp_path), capture)
    assert done.code == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_damaged_record_has_no_counters(tmp_path: Path) -> None:
    capture = nsys_db(tmp_path / "net.sqlite", _work("abcd"))
    run("parse", "-q", capture, "-o", tmp_path / "net.dict")
    lines = (tmp_path / "net.dict").read_text().splitlines()
    damage = [
        "{",
        "[]",
        '{"source": 7, "dram_bytes": "x"}',
        '{"dram_bytes": -1, "tensor_pct": true}',
    ]
    rows = [
        json.dumps({**json.loads(line), "counters": text})
        for line, text in zip(lines, damage, strict=True)
    ]
    (tmp_path / "net.dict").write_text("\n".join(rows) + "\n")
    done = run("prof", "-q", "--csv", "-c", "dram,tensor,counter", tmp_path / "net.dict")
    assert done.stdout.splitlines()[1:] == ['"","",""'] * 4
    counters = ncu_csv(tmp_path / "ncu.csv", _profiled("abcd"))
    joined = run("prof", "-q", "--csv", "-c", "dram", "--with", counters, tmp_path / "net.dict")
    assert joined.stdout.split()[1:] == [f'"{100 + at}"' for at in range(4)]


def test_a_file_that_changes_while_it_is_read_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture = nsys_db(tmp_path / "net.sqlite", _work(["a"]))
    file = ncu_csv(tmp_path / "ncu.csv", _profiled(["a"]))
    read = counters._read

    def changing(*given: Any) -> Any:  # noqa: ANN401 - as it is
        profiled = read(*given)
        file.write_text(file.read_text() + "\n")
        return profiled

    monkeypatch.setattr(counters, "_read", changing)
    assert "ncu.csv: the file changed" in run("prof", "--with", file, capture).stderr


_CASTS = re.compile(r"\((?:int|bool|unsigned int|unsigned long)\)")


def _as_kineto_spells(name: str) -> str:
    """Rewrite a name of ncu's as libstdc++ does, as far as regular expressions can."""
    name = name.replace("<unnamed>", "(anonymous namespace)").replace(">>", "> >")
    name = re.sub(r"\[lambda\((.*?)\) \(instance (\d+)\)\]", r"{lambda(\1)#\2}", name)
    return _CASTS.sub("", name).replace(" *", "*").replace("T1::Params", "cutlass::Params")


@pytest.mark.parametrize("spell", [str, _as_kineto_spells])
def test_the_real_file_joins(spell: Callable[[str], str], captures: Path, tmp_path: Path) -> None:
    counters = captures / "ncu-csv-a100-bert-attention" / "ncu.csv"
    profiled = readers.read(counters).activities.to_pylist()
    work = [
        Work(spell(row["name"]), (at * 1000, at * 1000 + 500), grid=(row["grid_x"], 1, 1),
             block=(row["block_x"], 1, 1), regs=row["regs"], smem=row["smem"])
        for at, row in enumerate([*profiled, *profiled], 1)
    ]  # fmt: skip
    capture = nsys_db(tmp_path / "net.sqlite", work)
    done = run("prof", "--csv", "-c", "dram,occ,counter", "--with", counters, capture)
    rows = done.rows
    told = [json.loads(row["counters"]) for row in profiled]
    assert [float(row["DRAM(B)"]) for row in rows] == [each["dram_bytes"] for each in told] * 2
    assert [float(row["Occ(%)"]) for row in rows] == [each["theoretical_pct"] for each in told] * 2
    assert [row["Counter"] for row in rows] == ["joined"] * 10 + ["repeated"] * 10
    assert "did not join" not in done.stderr
