"""`pyprof whatif`: predictions in the terminal and as JSON."""

from pathlib import Path

import pytest

from tests.analysis.captures import training, write_dict
from tests.builders import Work, nsys_db
from tests.commands import run

ASKED: dict[str, list[str]] = {
    "": ["--dtype bf16", "--dtype fp16", "--dtype tf32", "--fuse attention", "--fuse pointwise",
         "--fused-optimizer", "--graphs", "--overlap"],
    "--fuse attention,pointwise": ["--fuse attention", "--fuse pointwise"],
    "--gpu MI300X --batch 2x": ["--batch 2x", "--gpu MI300X"],  # a target, not this GPU's name
}  # fmt: skip


@pytest.mark.parametrize(("options", "changes"), ASKED.items(), ids=["each once", *[*ASKED][1:]])
def test_each_change_asked_for_is_predicted_or_refused(
    options: str, changes: list[str], tmp_path: Path
) -> None:
    net = write_dict(tmp_path / "net.dict", training(2))
    answer = run("whatif", *options.split(), "--json", net).json
    answers = (*answer["changes"], *answer["bounds"], *answer["refused"])
    assert sorted(each["change"] for each in answers) == changes


def test_what_a_capture_hides_is_a_warning(tmp_path: Path) -> None:
    """On stderr unless -q, and in JSON, as of the summary."""
    path = nsys_db(tmp_path / "net.sqlite", [Work("ampere_sgemm_32x32_nn", at=(100, 200))])
    done, quiet = (run("whatif", "--json", *q, path) for q in ([], ["-q"]))
    (warning,) = done.json["warnings"]
    assert "no NVTX ranges" in warning
    assert (done.stderr, quiet.stderr) == (f"pyprof: warning: {warning}\n", "")
    assert quiet.stdout == done.stdout
