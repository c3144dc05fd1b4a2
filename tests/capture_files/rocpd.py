"""The database of rocprofv3: schema 3, schema 4 with tracks and timestamps, or merged."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.capture_files import model
from tests.capture_files.model import Range, Work

NODE = 1_966_562_287
"""The id of the machine, a hash."""
CPU_AGENT, FIRST_GPU = 0, 2
"""Agents: processors come first; GPU 0 is agent 2."""
_DIRECTIONS = {1: "HOST_TO_DEVICE", 2: "DEVICE_TO_HOST", 8: "DEVICE_TO_DEVICE"}
_FILL = "__amd_rocclr_fillBufferAligned"
_RANGES = {59: "roctxThreadRangeA", 60: "roctxProcessRangeA"}
_APIS = {"kernel": "hipLaunchKernel", "memcpy": "hipMemcpyAsync", "memset": "hipMemsetAsync"}
AGENT = {"cu_count": 304, "max_engine_clk_fcompute": 2100, "wave_front_size": 64}


def rocpd_db(
    path: Path,
    work: Iterable[Work] = (),
    ranges: Iterable[Range] = (),
    *,
    version: int = 3,
    one_table: bool = False,
    counters: Mapping[str, Mapping[int, float]] | None = None,
    names: Mapping[int, str] = _RANGES,
    place: int = 0,
) -> Path:
    """Write a database: each process is a recording, with ids of its own from 1.

    `one_table` puts the rows of all recordings into one set of tables; `counters` has values by
    their name and the number of the work, from 1; `names` are the functions of ranges by style,
    `place` is in the id of the first recording.
    """
    work, ranges = list(work), list(ranges)
    pids = sorted({each.pid for each in work} | {each.pid for each in ranges} or {1})
    tables: dict[str, model.Table] = {}
    for number, pid in enumerate(pids, place):
        recording = _Recording(pid, number, version, names)
        recording.add(
            [each for each in work if each.pid == pid], [each for each in ranges if each.pid == pid]
        )
        recording.add_counters(counters or {})
        suffix = "" if one_table else f"_{recording.guid.replace('-', '_')}"
        for name, (columns, rows) in recording.tables().items():
            listed = tables.setdefault(f"rocpd_{name}{suffix}", (columns, []))[1]
            listed.extend({**row, "guid": recording.guid} for row in rows)
    return model.write_tables(path, tables)


class _Recording:
    def __init__(self, pid: int, place: int, version: int, names: Mapping[int, str]) -> None:
        self.pid, self.version, self.names = pid, version, names
        self.guid = f"0000{place:04x}-e175-7175-b886-1df113061c37"
        self.strings, self.categories, self.symbols, self.tracks, self.times = (
            model.Strings() for _ in range(5)
        )
        self.rows: dict[str, model.Rows] = {}
        self.tids = {pid}
        self.devices = {0}
        self.event_of: dict[int, int] = {}

    def add(self, work: list[Work], ranges: list[Range]) -> None:
        numbered = model.number_work(work)
        for number, each in numbered:
            if each.call is not None:
                name = _APIS[each.kind] if each.api.startswith("cuda") else each.api
                self._region(each.call, each.tid, name, "HIP_RUNTIME_API_EXT", number)
        for number, each in numbered:
            self.event_of[number] = (self._copy if each.kind == "memcpy" else self._dispatch)(
                number, each
            )
        for place, each_range in enumerate(ranges):
            if each_range.at[1] is not None:  # rocprofv3 records only what has ended
                span = each_range.at[0], each_range.at[1]
                name = self.names[each_range.style]
                stack = 1_000_000 + place
                message = json.dumps({"message": each_range.text}, separators=(",", ":"))
                category = "MARKER_CORE_RANGE_API"
                self._region(span, each_range.tid, name, category, stack, message)

    def add_counters(self, counters: Mapping[str, Mapping[int, float]]) -> None:
        for number, (name, values) in enumerate(counters.items(), 1):
            self._row("info_pmc", id=number, nid=NODE, pid=self.pid, name=name, symbol=name)
            for of, value in values.items():
                self._row("pmc_event", event_id=self.event_of[of], pmc_id=number, value=value)

    def tables(self) -> dict[str, model.Table]:
        self._row("info_process", id=self.pid, nid=NODE, pid=self.pid, command=model.SECRETS[1],
                  environment=json.dumps(model.SECRETS))  # fmt: skip
        self._row("info_node", id=NODE, machine_id=model.SECRETS[3], hostname=model.SECRETS[0])
        for tid in sorted(self.tids):
            self._row("info_thread", id=tid, nid=NODE, pid=self.pid, tid=tid)
        self._row("info_agent", id=CPU_AGENT, type="CPU", type_index=0, name="a processor")
        for device in sorted(self.devices):
            self._row("info_agent", id=FIRST_GPU + device, type="GPU", type_index=device,
                      absolute_index=FIRST_GPU + device, name="gfx942",
                      product_name="AMD Instinct MI300X", extdata=json.dumps(AGENT))  # fmt: skip
        for name, number in self.symbols.ids.items():
            self._row("info_kernel_symbol", id=number, kernel_name=f"{name}.kd", display_name=name,
                      arch_vgpr_count=24, accum_vgpr_count=8, sgpr_count=32)  # fmt: skip
        for text, number in self.strings.ids.items():
            self._row("string", id=number, string=text)
        for text, number in self.categories.ids.items():
            self._row("info_category", id=number, name=text)
        for place, number in self.tracks.ids.items():
            self._row("track", id=number, **json.loads(place))
        for time, number in self.times.ids.items():
            self._row("timestamp", id=number, value=int(time))
        self._row("metadata", tag="schema_version", value=str(self.version))
        return {
            name: (sorted({key for row in rows for key in row} | {"guid"}), rows)
            for name, rows in self.rows.items()
        }

    def _dispatch(self, number: int, work: Work) -> int:
        event = self._event("KERNEL_DISPATCH", number)
        self.devices.add(work.device)
        sizes: dict[str, model.Value] = {}
        for axis, blocks, items in zip("xyz", work.grid, work.block, strict=True):
            sizes |= {f"workgroup_size_{axis}": items, f"grid_size_{axis}": blocks * items}
        name = work.name if work.kind == "kernel" else _FILL
        place = {"agent_id": FIRST_GPU + work.device, "queue_id": 16, "stream_id": work.stream}
        kernel = {"kernel_id": self.symbols(name), "group_segment_size": work.smem, **sizes}
        self._span("kernel_dispatch", work.at, work.tid, place, dispatch_id=number, event_id=event,
                   **kernel)  # fmt: skip
        return event

    def _copy(self, number: int, work: Work) -> int:
        event = self._event("MEMORY_COPY", number)
        self.devices.add(work.device)
        direction = _DIRECTIONS[work.copy_kind]
        origin, target = (
            CPU_AGENT if end == "HOST" else FIRST_GPU + work.device
            for end in direction.split("_TO_")
        )
        name = self.strings(f"MEMORY_COPY_{direction}")
        place = {"queue_id": None, "stream_id": work.stream}
        self._span("memory_copy", work.at, work.tid, place, name_id=name, size=work.bytes,
                   dst_agent_id=target, src_agent_id=origin, event_id=event)  # fmt: skip
        return event

    def _region(
        self,
        at: tuple[int, int],
        tid: int,
        name: str,
        category: str,
        stack: int,
        extdata: str = "{}",
    ) -> None:
        self.tids.add(tid)
        event = self._event(category, stack, extdata)
        self._span("region", at, tid, {}, name_id=self.strings(name), event_id=event)

    def _event(self, category: str, stack: int, extdata: str = "{}") -> int:
        known = self.categories if self.version > 3 else self.strings
        return self._row("event", category_id=known(category), stack_id=stack, parent_stack_id=0,
                         correlation_id=0, extdata=extdata)  # fmt: skip

    def _span(
        self,
        table: str,
        at: tuple[int, int],
        tid: int,
        place: Mapping[str, model.Value],
        **columns: model.Value,
    ) -> None:
        whole = {"nid": NODE, "pid": self.pid, "tid": tid, **place}
        if self.version > 3:
            track = self.tracks(json.dumps(whole))
            start, end = (self.times(str(time)) for time in at)
            self._row(table, track_id=track, start_id=start, end_id=end, **columns)
        else:
            self._row(table, start=at[0], end=at[1], **whole, **columns)

    def _row(self, table: str, **columns: model.Value) -> int:
        rows = self.rows.setdefault(table, [])
        rows.append({"id": len(rows) + 1, **columns})
        return len(rows)
