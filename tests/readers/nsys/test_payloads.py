"""NCCL's payloads of collectives are kept with their kernels."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from pyprof import readers
from tests.builders import LAYOUTS, Layout, Range, Work, nsys_db
from tests.capture_files.model import Rows

NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


COMM, SIZE = "NCCL communicator ID", "Message size [bytes]"


def _nccl(
    payload: object = None,
    at: tuple[int, int] = (90, 120),
    name: str = "AllReduce",
    *,
    tid: int = 11,
    domain: int = 1,
    data: bytes | None = None,
) -> Range:
    """Write a range of NCCL; its payload is a text, or becomes one."""
    text = payload if payload is None or isinstance(payload, str) else json.dumps(payload)
    return Range(f"nccl{name}", at, tid=tid, domain=domain, payload=text, data=data)


def _nsys(folder: Path, *ranges: Range, layout: Layout = Layout()) -> dict[str, Any] | None:  # noqa: B008 - frozen
    work = [Work(NCCL, call=(100, 110)), Work("gemm", call=(105, 109), at=(5, 9))]
    capture = readers.read(nsys_db(folder / "net.sqlite", work, ranges, layout))
    column = dict(zip(*(capture.activities.column(n).to_pylist() for n in ("name", "collective")),
                      strict=True))  # fmt: skip
    assert column["gemm"] is None
    found = column[NCCL]
    return None if found is None else json.loads(found)


SAID = {"name": "AllReduce", "group": "77", "dtype": "uint8", "in": 4096, "out": 4096}
SENT = {COMM: 77, SIZE: 4096}
CALL = _nccl(SENT)
GROUPED = _nccl({COMM: "7,7", SIZE: "4,096"}, (80, 90))
NSYS = {
    "launched inside the call": ([CALL], SAID),
    "launched when its group ends": ([GROUPED, _nccl(None, (95, 120), "GroupEnd")], SAID),
    "a call that was over": ([GROUPED], None),
    "a call of another thread": ([_nccl(SENT, tid=99)], None),
    "a group that ended before": ([GROUPED, _nccl(None, (91, 95), "GroupEnd")], None),
    "no payloads": ([_nccl()], None),
    "no JSON": ([_nccl("{NCCL communicator ID")], None),
    "what is asked of a communicator": ([CALL, _nccl({COMM: 77}, (96, 98), "CommCount")], SAID),
    "the first payloads, of sizes": (
        [_nccl({SIZE: 4096})], {key: SAID[key] for key in SAID if key != "group"}),
    "keys that nobody knows": (
        [_nccl({**SENT, "Reduction operation": "Sum", "Root": None, "x": [1]})], SAID),
    "a list": ([_nccl([4096])], None),
    "how many ranks": (
        [CALL, _nccl({COMM: 77, "No. of ranks": 8, "Rank": 3}, (1, 9), "CommInitRank", tid=99)],
        SAID | {"size": 8}),
    "another domain's": ([_nccl(SENT, domain=0)], None),
    "a part of the message": (
        [_nccl(SENT, name="AllGather")], {"name": "AllGather", "group": "77"}),
}  # fmt: skip


@pytest.mark.few(6)
@pytest.mark.parametrize(("ranges", "expected"), NSYS.values(), ids=NSYS)
def test_a_kernel_has_the_communicator_of_nccls_payload(
    ranges: list[Range], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    assert _nsys(tmp_path, *ranges) == expected
    assert _nsys(tmp_path, *ranges, layout=LAYOUTS["registered strings"]) == expected


FIELDS: dict[int, list[tuple[int, str, int | None]]] = {
    16777223: [(18, COMM, None), (22, SIZE, 8), (16777232, "Reduction operation", 16)],
    16777218: [(18, COMM, None), (5, "No. of ranks", 8), (5, "Rank", 12)],
}
ENTRIES: Rows = [  # as nsys 2026.2 wrote them: the first place is null, each row is there twice
    {"domainId": 1, "schemaId": schema, "idx": idx, "type": kind, "name": name, "offset": at}
    for schema, fields in FIELDS.items()
    for _ in range(2)
    for idx, (kind, name, at) in enumerate(fields)
]
SCHEMAS = Layout(registered=True, more={"NVTX_PAYLOAD_SCHEMA_ENTRIES": ENTRIES})
LARGE = 0xFEDC_BA98_7654_3210


def _bytes(schema: int, body: bytes, domain: int = 1, more: int = 0) -> bytes:
    """Lay out a payload as the schema tables of nsys 2026 say."""
    return struct.pack("<QQQQ", domain, schema, len(body), 32 + len(body) + more) + body


BODY = struct.pack("<QQQ", LARGE, 4096, 0)
REDUCED = {**SAID, "group": str(LARGE)}
BINARY = {
    "a message": ([_nccl(data=_bytes(16777223, BODY))], REDUCED),
    "how many ranks": (
        [_nccl(data=_bytes(16777223, BODY)),
         _nccl(None, (1, 9), "CommInitRank",
               data=_bytes(16777218, struct.pack("<Qiiq", LARGE, 8, 3, 0)))],
        REDUCED | {"size": 8}),
    "cut short": ([_nccl(data=_bytes(16777223, BODY)[:-1])], None),
    "less than it says": ([_nccl(data=_bytes(16777223, BODY[:12]))], None),
    "no header": ([_nccl(data=b"\0" * 31)], None),
    "laid out otherwise": ([_nccl(data=_bytes(16777223, BODY, more=8))], None),
    "an unknown schema": ([_nccl(data=_bytes(7, BODY))], None),
    "an unknown domain": ([_nccl(data=_bytes(16777223, BODY, domain=2))], None),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected"), BINARY.values(), ids=BINARY)
def test_payloads_may_be_bytes(
    ranges: list[Range], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    assert _nsys(tmp_path, *ranges, layout=SCHEMAS) == expected
    assert _nsys(tmp_path, *ranges) is None  # no tables of schemas
