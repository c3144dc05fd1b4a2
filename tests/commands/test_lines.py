"""`pyprof lines`: the user's source with GPU time beside it."""

from pathlib import Path

import pytest

from pyprof.analysis.time.timeline import BLOCKING
from tests.analysis.captures import Work, capture, trace, training, write_dict
from tests.commands import printed, run
from tests.golden import check

TRAIN = "".join(
    [*(f"# {n}\n" for n in range(1, 16)), "def train(net, data):\n", "    total = 0\n",
     "    for x in data:\n", "        # one step\n", "        total += net(x).sum().item()\n",
     "    return total\n", "\n", "def test():\n", "    return 0\n"]
)  # fmt: skip
NET = "import torch\n\n@torch.no_grad()\ndef forward(x, w):\n    y = x @ w\n    return y @ w\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder with the captured sources in `src` and net.dict beside it."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(TRAIN)
    (tmp_path / "src" / "net.py").write_text(NET)
    write_dict(tmp_path / "net.dict", training(4))
    return tmp_path


def test_lines_beside_the_source(project: Path) -> None:
    shown = printed("lines", "--source", project / "src", project / "net.dict")
    check("lines-small", shown)


def test_a_file_without_lines_says_what_records_them() -> None:
    done = run("lines", "-", stdin="{'kShortName': 'k', 'kLongName': 'k', 'kDuration': 5}\n")
    assert " ".join(done.stdout.split()) == (
        "<0.001 ms, 100.0 % of GPU time, is tied to no line of yours:"
        " no lines were recorded; pyprof.init() in the script records them"
    )


def test_lines_without_the_source(project: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run("lines", "--source", empty, project / "net.dict")
    check("lines-no-source", done.stdout)


@pytest.mark.few(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "file"),
    [("a100-markers", "nsys2024.2-a100-pyprof-markers/net.sqlite"),
     ("v100-apex", "nvprof-v100-apex/net.sql"),
     ("h100-vit", "kineto-h100-vit-inference/trace.json.gz"),
     ("v100-resnet50", "kineto-v100-resnet50-2021/trace.json.gz")],
)  # fmt: skip
def test_lines_of_a_real_capture(name: str, file: str, captures: Path, tmp_path: Path) -> None:
    shown = printed("lines", "-q", "--source", tmp_path, captures / file)
    check(f"lines-{name}", shown)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("content", "said"),
    [(b"def f(:\n" * 30, "0.488"), (b"\xff\xfe\x00" * 30, "0.488"), (b"x = '\\d'\n" * 30, "0.488"),
     (b"pass\n", "train.py is shorter than when it was captured")],
    ids=["broken", "binary", "dubious escape", "another version"],
)  # fmt: skip
def test_a_source_that_does_not_fit_still_has_times(
    content: bytes, said: str, project: Path
) -> None:
    (project / "src" / "train.py").write_bytes(content)
    assert said in printed("lines", "--source", project / "src", project / "net.dict")


@pytest.mark.slow
def test_blocking_launches_are_warned_of(tmp_path: Path) -> None:
    work = [Work((n * 10 + 2, n * 10 + 6), (n * 10, n * 10 + 8)) for n in range(9)]
    path = write_dict(tmp_path / "net.dict", capture(work, ranges=[trace((0, 99), "/a.py:1")]))
    assert BLOCKING in run("lines", path).stderr
    assert run("lines", "-q", path).stderr == ""
    assert BLOCKING in " ".join(run("summary", path).stdout.split())


def test_lines_are_sorted_by_self_time(project: Path) -> None:
    """The line that all goes through comes last; --top limits them, and says so; JSON has all."""
    shown = run("lines", "--top", "2", project / "net.dict").stdout
    assert shown.index("net.py:5") < shown.index("net.py:6") < shown.index("... and 1 more, 9.8 %")
    assert "train.py:20" not in shown[: shown.index("... and")]
    whole, cut = (run("lines", "--json", *top, project / "net.dict") for top in ([], ["--top=1"]))
    assert cut.stdout == whole.stdout


@pytest.mark.parametrize("condition", ["line~net.py", "dir=fprop and op=matmul", "sil>45000"])
def test_lines_of_chosen_rows(condition: str, project: Path) -> None:
    done = run("lines", "--where", condition, project / "net.dict")
    rows = run("prof", "--csv", "-c", "sil", "--where", condition, project / "net.dict").stdout
    ns = sum(int(row.strip('"')) for row in rows.split()[1:])
    own = [float(line.split()[0]) for line in done.stdout.splitlines() if "/src/" in line]
    assert sum(own) == pytest.approx(ns / 1e6)
    assert (
        f"{len(rows.split()) - 1} of 16 rows, {100 * ns / 488_000:.1f} % of GPU time" in done.stdout
    )
    assert run("lines", "--where", "sil", project / "net.dict").code == 2
