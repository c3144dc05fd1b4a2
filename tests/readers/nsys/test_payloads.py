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


def _payload(communicator: object, size: object) -> str:
    return json.dumps({COMM: communicator, SIZE: size})


def _nsys(folder: Path, *ranges: Range, layout: Layout = Layout()) -> dict[str, Any] | None:  # noqa: B008 - frozen
    work = [Work(NCCL, call=(100, 110)), Work("gemm", call=(105, 109), at=(5, 9))]
    capture = readers.read(nsys_db(folder / "net.sqlite", work, ranges, layout))
    column = dict(zip(*(capture.activities.column(n).to_pylist() for n in ("name", "collective")),
                      strict=True))  # fmt: skip
    assert column["gemm"] is None
    found = column[NCCL]
    return None if found is None else json.loads(found)


SAID = {"name": "AllReduce", "group": "77", "dtype": "uint8", "in": 4096, "out": 4096}
CALL = Range("ncclAllReduce", (90, 120), domain=1, payload=_payload(77, 4096))
ALL_GATHER = Range("ncclAllGather", (90, 120), domain=1, payload=_payload(77, 4096))
GROUPED = Range("ncclAllReduce", (80, 90), domain=1, payload=_payload("7,7", "4,096"))
NSYS = {
    "launched inside the call": ([CALL], SAID),
    "launched when its group ends": (
        [GROUPED, Range("ncclGroupEnd", (95, 120), domain=1)], SAID),
    "a call that was over": ([GROUPED], None),
    "a call of another thread": (
        [Range("ncclAllReduce", (90, 120), tid=99, domain=1, payload=_payload(77, 1))], None),
    "a group that ended before": (
        [GROUPED, Range("ncclGroupEnd", (91, 95), domain=1)], None),
    "no payloads": ([Range("ncclAllReduce", (90, 120), domain=1)], None),
    "no JSON": (
        [Range("ncclAllReduce", (90, 120), domain=1, payload="{NCCL communicator ID")], None),
    "what is asked of a communicator": (
        [CALL, Range("ncclCommCount", (96, 98), domain=1, payload=json.dumps({COMM: 77}))], SAID),
    "the first payloads, of sizes": (
        [Range("ncclAllReduce", (90, 120), domain=1, payload=json.dumps({SIZE: 4096}))],
        {key: SAID[key] for key in SAID if key != "group"}),
    "keys that nobody knows": (
        [Range("ncclAllReduce", (90, 120), domain=1, payload=json.dumps(
            {COMM: 77, SIZE: 4096, "Reduction operation": "Sum", "Root": None, "x": [1]}))], SAID),
    "a list": ([Range("ncclAllReduce", (90, 120), domain=1, payload="[4096]")], None),
    "how many ranks": (
        [CALL, Range("ncclCommInitRank", (1, 9), tid=99, domain=1,
                     payload=json.dumps({COMM: 77, "No. of ranks": 8, "Rank": 3}))],
        SAID | {"size": 8}),
    "another domain's": (
        [Range("ncclAllReduce", (90, 120), payload=_payload(77, 4096))], None),
    "a part of the message": ([ALL_GATHER], {"name": "AllGather", "group": "77"}),
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


def _call(data: bytes) -> Range:
    return Range("ncclAllReduce", (90, 120), domain=1, data=data)


BODY = struct.pack("<QQQ", LARGE, 4096, 0)
REDUCED = {**SAID, "group": str(LARGE)}
BINARY = {
    "a message": ([_call(_bytes(16777223, BODY))], REDUCED),
    "how many ranks": (
        [_call(_bytes(16777223, BODY)),
         Range("ncclCommInitRank", (1, 9), domain=1,
               data=_bytes(16777218, struct.pack("<Qiiq", LARGE, 8, 3, 0)))],
        REDUCED | {"size": 8}),
    "cut short": ([_call(_bytes(16777223, BODY)[:-1])], None),
    "less than it says": ([_call(_bytes(16777223, BODY[:12]))], None),
    "no header": ([_call(b"\0" * 31)], None),
    "laid out otherwise": ([_call(_bytes(16777223, BODY, more=8))], None),
    "an unknown schema": ([_call(_bytes(7, BODY))], None),
    "an unknown domain": ([_call(_bytes(16777223, BODY, domain=2))], None),
}  # fmt: skip


@pytest.mark.parametrize(("ranges", "expected"), BINARY.values(), ids=BINARY)
def test_payloads_may_be_bytes(
    ranges: list[Range], expected: dict[str, Any] | None, tmp_path: Path
) -> None:
    assert _nsys(tmp_path, *ranges, layout=SCHEMAS) == expected
    assert _nsys(tmp_path, *ranges) is None  # no tables of schemas
