"""Steps marked by ranges are in the records: parsed files agree with the capture."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pyprof import schema
from pyprof.analysis.time.steps import find_steps
from pyprof.inputs.source import load
from pyprof.parse import parse, record_file
from pyprof.schema import Capture
from tests.analysis.captures import US, Api, Range, Work, capture, training, write_dict
from tests.commands import run

TEXTS = (
    "execute_16_context_1(sq16sk16sqsq256sqsk256)_generation_0(sq0sk0sqsq0sqsk0)",
    "step[DECODE bs=3]",
)


def _looped(*texts: str, pids: int = 1, pause: bool = False) -> Capture:
    """Write a range of 100 us, with a kernel, for each text, by each process; and one outside."""
    work = [
        Work(((100 * n + 20) * US, (100 * n + 70 + n) * US),
             ((100 * n + 10) * US, (100 * n + 12) * US), pid=1 + pid)
        for pid in range(pids) for n in range(len(texts) + 1)
    ]  # fmt: skip
    ranges = [Range(text, (100 * n * US, (100 * n + 90) * US)) for n, text in enumerate(texts)]
    stopped = [Api("cudaProfilerStop", (113 * US, 114 * US)),
               Api("cudaProfilerStart", (115 * US, 116 * US))]  # fmt: skip
    return capture(work, stopped if pause else (), ranges, pids)


LOOPS = {
    "the user's": training(4),
    "of a profiler": _looped("ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9"),
    "of serving": _looped(TEXTS[0], TEXTS[0]),
    "of serving, decode": _looped(TEXTS[1], TEXTS[1]),
    "of serving, in two words": _looped("prefill[bs=1 tok=9 ctx=9]", "decode[bs=1 tok=1 d=1]"),
    "of an engine": _looped(*["gpu_model_runner: preprocess"] * 3),
    "of an optimizer": _looped(*["Optimizer.step#Adam.step"] * 3),
    "the script's own": _looped(*["pyprof.step"] * 3),
    "of one process of two": _looped("step 0", "step 1", pids=2),
    "cut by a pause": _looped("step 0", "step 1", "step 2", pause=True),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("of", LOOPS.values(), ids=LOOPS.keys())
def test_records_have_the_steps_of_the_capture(of: Capture, tmp_path: Path) -> None:
    records = parse(of)
    expected = find_steps(records, of)
    path = write_dict(tmp_path / "net.dict", records)
    found = find_steps(record_file.load(str(path)))
    assert found.of_row.tolist() == expected.of_row.tolist()
    assert found.origin == expected.origin
    count = len(found)
    assert count == expected.of_row.max() + 1
    assert found.duration_ns.tolist() == expected.duration_ns[:count].tolist()


@pytest.mark.parametrize(("others", "steps"), [(0, 0), (3, 3)])
def test_a_single_call_of_an_optimizer_marks_no_step(others: int, steps: int) -> None:
    """What comes before it may be more than a step: the model is made."""
    of = _looped("Optimizer.step#LBFGS.step", *["Optimizer.step#Adam.step"] * others)
    assert len(find_steps(parse(of), of)) == steps


def test_the_step_in_which_a_trace_is_truncated_does_not_count() -> None:
    """Part of its work is missing: its time would be too short."""
    of = _looped("ProfilerStep#7", "ProfilerStep#8", "ProfilerStep#9")
    assert find_steps(parse(of), of).of_row.tolist() == [0, 1, 2, -1]
    of = replace(of, warnings=("the trace is truncated",))
    assert find_steps(parse(of), of).of_row.tolist() == [0, 1, 2, -1]  # it ends after the steps
    of = replace(of, activities=of.activities.slice(0, 3))
    assert find_steps(parse(of), of).of_row.tolist() == [0, 1, -1]


def test_a_mixed_step_stays_mixed_in_parsed_files(tmp_path: Path) -> None:
    """Without the step, its rows would be `forward`."""
    text = "execute_9_context_1(sq8sk8sqsq64sqsk64)_generation_1(sq1sk9sqsq1sqsk9)"
    path = write_dict(tmp_path / "net.dict", _looped(text))
    shown = run("prof", "-q", "--csv", "-c", "step,phase", path).stdout.split()
    assert shown[1:] == ['"0","mixed"', '"",""']
    assert "1 by ranges" in run("summary", path).stdout


def test_files_of_older_versions_are_read(tmp_path: Path) -> None:
    """Without the keys, steps are inferred from rows, as before; old keys are unchanged."""
    path = write_dict(tmp_path / "old.dict", training(4))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0]["stepRange"] == "step 0"
    assert [line.pop("step") for line in lines] == [n // 4 for n in range(16)]
    for line in lines:
        del line["stepRange"]
    path.write_text("".join(f"{line}\n" for line in lines))
    assert find_steps(load(str(path)).table.records).guessed
    assert run("prof", "-q", "--csv", "-c", "step", path).stdout.split()[1:] == ['""'] * 16


@pytest.mark.parametrize("number", [-5, 1 << 40, (1 << 63) - 1])
def test_a_damaged_number_costs_no_memory(number: int, tmp_path: Path) -> None:
    path = tmp_path / "net.dict"
    line = {"kShortName": "k", "kLongName": "k", "kDuration": 5, "kind": "kernel"}
    rows = [{**line, "start": 10 * n + 1, "end": 10 * n + 6, "step": step, "stepRange": "step 1"}
            for n, step in enumerate((0, number, 1))]  # fmt: skip
    path.write_text("".join(f"{row}\n" for row in rows))
    assert run("prof", "-q", "--csv", "-c", "step", path).stdout.split()[1:] == ['"0"', '""', '"1"']


def test_work_queued_before_the_capture_began_is_in_no_step_though_it_runs_during_one() -> None:
    """It precedes, on its stream, what was launched before the first step."""
    queued = [
        Work((at, at + 10), call) for at, call in ((120, None), (130, (5, 6)), (140, (105, 106)))
    ]
    other = Work((120, 130), stream=8)
    of = capture([*queued, other], ranges=[Range("step 1", (100, 200))])
    assert find_steps(parse(of)).of_row.tolist() == [-1, 0, -1, 0]


def test_pages_of_unified_memory_are_of_the_step_of_the_kernel_that_runs() -> None:
    """No call moves them; the host may be steps ahead by then."""
    kernels = [Work((1000, 2000), (10, 12)), Work((2100, 3000), (110, 112))]
    pages = [Work((at, at + 9), stream=0, kind=schema.MEMCPY) for at in (1500, 2500)]
    of = capture([*kernels, *pages], ranges=[Range("step 0", (0, 99)), Range("step 1", (100, 199))])
    assert find_steps(parse(of)).of_row.tolist() == [0, 0, 1, 1]


def test_ranges_mark_no_steps_of_work_whose_launches_are_all_unknown() -> None:
    """The GPU may run it during a later step of the host: steps would be of wrong lengths."""
    ranges = [Range("step 1", (100, 200)), Range("step 2", (200, 300))]
    work = [Work((at, at + 60)) for at in (120, 190)]
    assert len(find_steps(parse(of := capture(work, ranges=ranges)), of)) == 0


def test_a_capture_without_steps_has_no_keys_for_them() -> None:
    records = parse(capture([Work((5, 10), (2, 3))]))
    assert not {"step", "stepRange"} & {*records.columns}
    assert np.array_equal(find_steps(records).of_row, [-1])
