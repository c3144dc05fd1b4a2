"""Captures parsed to dict lines."""

import io
import json
from pathlib import Path
from typing import Any

from pyprof.marker import Call, Tensor, encode_op
from pyprof.parse import parse_file
from pyprof.records import dict_lines
from pyprof.records.records import Records
from tests.builders import Range, Work, nsys_db

MM = encode_op(Call("torch", "mm", (Tensor((4, 6), "float16"), Tensor((6, 2), "float16"))))
LINEAR = encode_op(Call("torch.nn.functional", "linear", (Tensor((4, 6), "float16"),)))


def record_lines(records: Records) -> list[str]:
    """Return the lines, without line ends; texts may hold other separators."""
    file = io.BytesIO()
    dict_lines.write(records, file)
    return file.getvalue().decode().split("\n")[:-1]


def parsed(
    folder: Path, ranges: list[Range], *work: Work, kernels_only: bool = False
) -> list[dict[str, Any]]:
    """Parse a capture of this work, by default one kernel launched from 100 to 110."""
    work = work or (Work("kernel", call=(100, 110)),)
    records = parse_file(nsys_db(folder / "a.sqlite", work, ranges), kernels_only=kernels_only)
    return [json.loads(line) for line in record_lines(records)]


def around(*texts: str, tid: int = 11, pid: int = 1, at: int = 100) -> list[Range]:
    """Put ranges around the launch at some time, the first outermost."""
    return [
        Range(text, (at - len(texts) + n, at + 10 + len(texts) - n), tid=tid, pid=pid)
        for n, text in enumerate(texts)
    ]
