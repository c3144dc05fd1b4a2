"""`pyprof mcp`: the commands' answers, requested by the official SDK's own client."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pyprof import answers
from pyprof.answers.lines_answer import Lines, LineTime
from pyprof.commands.mcp.bounds import MAX_LIMIT, bound
from tests.allocations import built
from tests.analysis.captured import capture
from tests.answers.checked import ask, validator
from tests.commands import refused
from tests.programs import TOP
from tests.render.text.test_memory_brief import trace_of_memory

if TYPE_CHECKING:
    import mcp

anyio = pytest.importorskip("anyio")
pytest.importorskip("mcp.server.mcpserver")


@asynccontextmanager
async def _in_process(*roots: str, allow_run: bool = False) -> AsyncIterator[mcp.Client]:
    from mcp import Client  # noqa: PLC0415 - extra

    from pyprof.commands.mcp.server import server  # noqa: PLC0415 - extra

    async with Client(server(roots, allow_run=allow_run)) as client:
        yield client


@asynccontextmanager
async def _over_stdio() -> AsyncIterator[mcp.Client]:
    from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - extra

    search = os.pathsep.join([str(TOP), os.environ.get("PYTHONPATH", "")])
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "pyprof", "mcp"], env={"PYTHONPATH": search}
    )
    with open(os.devnull, "w") as log:  # noqa: PTH123, ASYNC230 - nothing is waited for
        async with Client(stdio_client(parameters, errlog=log)) as client:
            yield client


def _asked(
    question: Callable[[mcp.Client], Coroutine[Any, Any, Any]],
    connect: Callable[[], Any] = _in_process,
) -> Any:  # noqa: ANN401 - what the question gives
    async def asking() -> Any:  # noqa: ANN401 - as above
        async with connect() as client:
            return await question(client)

    return anyio.run(asking)


def _call(tool: str, *roots: str, **arguments: object) -> dict[str, Any]:
    """Call a tool in this process; return its answer, which must be as the schema says."""
    result = _asked(lambda client: client.call_tool(tool, arguments), partial(_in_process, *roots))
    assert not result.is_error, result.content
    answer: dict[str, Any] = result.structured_content
    validator().validate(answer)
    return answer


def _error(tool: str, *roots: str, **arguments: object) -> str:
    result = _asked(lambda client: client.call_tool(tool, arguments), partial(_in_process, *roots))
    assert result.is_error
    (content,) = result.content
    text: str = content.text
    return text


def _uncut(*arguments: str | Path) -> dict[str, Any]:
    """Return what a command says with --json, as a tool does that truncates none of it."""
    return {**ask(*arguments), "cut": {}}


@pytest.mark.slow
def test_over_stdio_as_an_agent_does(tmp_path: Path) -> None:
    a = str(capture(tmp_path / "a.sqlite"))

    async def conversation(client: mcp.Client) -> tuple[list[str], Any, Any, Any]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        summary = await client.call_tool("summary", {"file": a})
        wrong = await client.call_tool("prof", {"file": str(tmp_path / "none")})
        rows = await client.call_tool("prof", {"file": a, "where": "op=relu"})
        return tools, summary, wrong, rows

    tools, summary, wrong, rows = _asked(conversation, _over_stdio)
    names = ("summary", "lines", "prof", "explain", "diff", "memory", "doctor", "peaks", "ranks")
    assert {*names, "whatif"} == {*tools}
    assert summary.structured_content == _uncut("summary", a, "--by", "layer:2")
    assert wrong.is_error
    assert wrong.content[0].text.endswith("none: no such file; check the path")
    assert [row["idx"] for row in rows.structured_content["rows"]] == [1, 3]


def test_changes_beyond_the_limit_are_counted(tmp_path: Path) -> None:
    net = str(capture(tmp_path / "net.sqlite"))
    answer = _call("diff", before=net, after=net, limit=1)
    assert (len(answer["changes"]), answer["changes_left_out"]) == (1, 3)


@pytest.mark.slow
def test_every_tool_returns_the_answer_of_its_command(tmp_path: Path) -> None:
    a, b = capture(tmp_path / "a.sqlite"), capture(tmp_path / "b.sqlite", slower=1.5)
    one, other = str(a), str(b)
    assert _call("lines", file=one) == _uncut("lines", a)
    assert _call("diff", before=one, after=other) == _uncut("diff", a, b)
    assert _call("doctor", file=one) == _uncut("doctor", a)
    assert _call("peaks", name="H100 SXM") == _uncut("peaks", "H100 SXM")
    assert _call("ranks", file=[one])["kind"] == "ranks"
    predicted = _uncut("whatif", a, "--gpu", "H100", "--batch", "2x")
    assert _call("whatif", file=one, target_gpu="H100", batch="2x") == predicted
    assert _call("explain", file=one, row=1) == _uncut("prof", a, "--explain", "1")
    assert _call("prof", file=one) == _uncut("prof", a, "--sort", "sil", "--top", "20")
    assert _call("prof", file=one, by="op")["rows"] == ask("prof", a, "--by", "op")["rows"]


def test_memory_of_a_snapshot_and_its_trace(tmp_path: Path) -> None:
    snapshot = str(built.write(tmp_path / "net.memory.pickle", built.training(5, leak=1000)))
    given, full = _call("memory", file=snapshot), ask("memory", snapshot)
    assert given["cut"]["devices.timeline"] == len(full["devices"][0]["timeline"]) - 20
    for name in ("peak_bytes", "growth", "changes", "out_of_memory"):
        assert given["devices"][0][name] == full["devices"][0][name]
    summary = _call("summary", file=str(capture(tmp_path / "net.sqlite")))
    assert summary["memory"]["peak_bytes"] == full["devices"][0]["peak_bytes"]
    traced = str(trace_of_memory(tmp_path / "net.json", recorded=True))
    highest, *_ = _call("memory", file=[traced], trace=traced)["devices"]
    assert highest["beside_time"]["op"]
    assert _error("memory", file=str(tmp_path / "none")).endswith("check the path")


def test_advice_leads_to_rows_and_their_explanation(tmp_path: Path) -> None:
    a = str(capture(tmp_path / "a.sqlite"))
    slowest = _call("prof", file=a, limit=1)
    assert slowest["rows_left_out"] == 4
    row = slowest["rows"][0]["idx"]
    assert _call("explain", file=a, row=row)["row_id"] == row
    assert _call("explain", file=a)["row_id"] == row
    assert _call("prof", file=a, where=f"idx={row}")["rows"] == slowest["rows"]


def test_source_is_read_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "me").mkdir()
    (tmp_path / "me" / "model.py").write_text("\n" * 11 + "x = relu(x)\n")
    a = str(capture(tmp_path / "a.sqlite"))
    assert {line["source"] for line in _call("lines", file=a)["lines"]} == {None}
    named = _call("lines", file=a, source=str(tmp_path / "me"))["lines"]
    assert "x = relu(x)" in {line["source"] for line in named}


@pytest.mark.parametrize(
    ("tool", "arguments", "hint"),
    [
        ("summary", {"file": "s3://bucket/net.sqlite"}, "only local files are read"),
        ("summary", {"file": "-"}, "stdin belongs to the client"),
        ("summary", {"file": []}, "no captures given"),
        ("prof", {"file": "NET", "where": "colour=3"}, "no column 'colour'"),
        ("prof", {"file": "NET", "by": "colour"}, "cannot group by 'colour'"),
        ("prof", {"file": "NET", "sort": "colour"}, "cannot sort by 'colour'"),
        ("prof", {"file": "NET", "limit": 0}, f"must be from 1 to {MAX_LIMIT}"),
        ("prof", {"file": "NET", "by": "op", "columns": "sil"}, "no column 'sil'"),
        (
            "prof",
            {"file": "NET", "by": "op", "columns": "op,cpu_self", "where": "tc=0"},
            "of all calls",
        ),
        (
            "prof",
            {"file": "NET", "by": "op", "columns": "op,alloc", "where": "tc=0"},
            "of all that",
        ),
        ("summary", {"file": "NET", "steps": "9:"}, "no steps were found"),
        ("lines", {"file": "NET", "source": "nowhere"}, "no such folder"),
        ("diff", {"before": "NET", "after": "NET", "by": "colour"}, "no key 'colour'"),
        ("explain", {"file": "NET", "row": 99}, "no row 99"),
        ("explain", {"file": "NET", "row": 0}, "no row 0: rows are numbered from 1"),
        ("peaks", {"name": "no such card"}, "no peaks known"),
        ("summary", {"path": "x"}, "no parameter 'path'; parameters of summary: file; optional:"),
        ("diff", {"file": "x"}, "no parameter 'file'; parameters of diff: before, after; optional"),
        ("ranks", {"file": "x", "gpu": "H100"}, "no parameter 'gpu'; parameters of ranks: file; "),
        ("diff", {"before": "x"}, "'after' is missing; parameters of diff: before, after; opt"),
        ("summary", {"file": "x", "capture": "y"}, "'file' was given twice, also as 'capture'"),
        ("summary", {"file": "x", "limit": "many"}, "'limit' takes a whole number: Entries"),
        ("summary", {"file": 3}, "'file' takes a text, or a list of texts: Path of a capture"),
        ("sumary", {}, "no tool 'sumary'; tools are summary, lines, prof, whatif, explain, diff"),
        ("explain", {"file": "x", "row": 1, "where": "tc=0"}, "`row` and `where` exclude each"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(
    tool: str, arguments: dict[str, object], hint: str, tmp_path: Path
) -> None:
    net = str(capture(tmp_path / "net.sqlite"))
    given = {name: net if value == "NET" else value for name, value in arguments.items()}
    text = _error(tool, **given)
    assert hint in text
    assert "\n" not in text
    assert "pydantic" not in text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("summary", {"file": "OUT"}),
        ("summary", {"file": ["IN", "OUT"]}),
        ("summary", {"file": "IN/../../out/net.sqlite"}),
        ("summary", {"file": "IN/link.sqlite"}),
        ("summary", {"file": "IN/*/../../out/*.sqlite"}),
        ("ranks", {"file": "IN"}),
        ("prof", {"file": "IN/folder"}),
        ("prof", {"file": "OUT/no such file"}),
        ("prof", {"file": "OUT/*"}),
        ("lines", {"file": "IN/net.sqlite", "source": "OUT"}),
        ("lines", {"file": "IN/net.sqlite", "source": "IN/folder"}),
        ("explain", {"file": "IN/link.sqlite", "row": 1}),
        ("doctor", {"file": "OUT/net.sqlite"}),
        ("diff", {"before": "IN/net.sqlite", "after": "OUT/net.sqlite"}),
    ],
)
def test_with_a_root_nothing_outside_of_it_is_read(
    tool: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        capture(folder / "net.sqlite")
    (inside / "link.sqlite").symlink_to(outside / "net.sqlite")
    (inside / "folder").symlink_to(outside)

    def placed(value: Any) -> Any:  # noqa: ANN401 - an argument
        if isinstance(value, list):
            return [*map(placed, value)]
        text = str(value).replace("IN", str(inside)).replace("OUT", str(outside))
        return text if isinstance(value, str) else value

    given = {name: placed(value) for name, value in arguments.items()}
    text = _error(tool, str(inside), **given)
    assert "lies outside of the folders that this server reads" in text


@pytest.mark.slow
def test_with_a_root_files_in_it_are_read(tmp_path: Path) -> None:
    net = str(capture(tmp_path / "net.sqlite"))
    root = str(tmp_path)
    for given in (net, f"{root}/*.sqlite", root):
        assert _call("summary", root, file=given) == _call("summary", file=given)
    assert _call("diff", root, before=net, after=net) == _call("diff", before=net, after=net)
    assert _call("explain", root, file=net, row=1) == _call("explain", file=net, row=1)
    assert "must be" in _error("summary", root, file=net, limit=0)


@pytest.mark.slow
def test_a_file_that_is_not_a_capture_is_not_shown(tmp_path: Path) -> None:
    for name, content in (
        ("id_rsa", "SECRET line\n" * 50),
        ("net.dict", '{"kShortName": SECRET}\n'),
        ("net.dict", "{'kShortName': SECRET}\n"),
        ("net.json", '{"SECRET": "SECRET", "traceEvents": [{"SECRET": 1, "ts": "SECRET"}'),
        ("ncu.csv", '"ID","SECRET","Kernel Name"\n"SECRET"\n'),
    ):
        path = tmp_path / name
        path.write_text(content)
        for tool in ("summary", "lines", "prof", "ranks"):
            assert "SECRET" not in _error(tool, file=str(path))
        assert "SECRET" not in _error("doctor", file=str(path))


def test_tools_are_marked_read_only() -> None:
    tools = _asked(lambda client: client.list_tools()).tools
    for tool in tools:
        assert tool.description
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint


def test_nothing_is_written(tmp_path: Path) -> None:
    a = str(capture(tmp_path / "a.sqlite"))
    before = {path: path.stat().st_mtime_ns for path in (*tmp_path.iterdir(), *TOP.iterdir())}
    for tool in ("summary", "lines", "prof"):
        _call(tool, file=a)
    after = {path: path.stat().st_mtime_ns for path in (*tmp_path.iterdir(), *TOP.iterdir())}
    assert before == after


def test_each_parameter_is_described_and_one_thing_has_one_name() -> None:
    tools = _asked(lambda client: client.list_tools(), partial(_in_process, allow_run=True)).tools
    named = {tool.name: tool.input_schema["properties"] for tool in tools}
    for properties in named.values():
        assert all(each["description"] for each in properties.values())
    assert {"try_changes"} < {*named}
    assert {name for name, each in named.items() if "file" not in each} == {
        "diff", "peaks", "try_changes",
    }  # fmt: skip
    assert {"before", "after"} <= {*named["diff"]}
    for name in ("summary", "lines", "prof", "explain"):
        assert {"gpu", "where"} <= {*named[name]}


@pytest.mark.slow
def test_former_names_of_parameters_still_work(tmp_path: Path) -> None:
    a = str(capture(tmp_path / "a.sqlite"))
    assert _call("lines", captures=a) == _call("lines", file=a)
    assert _call("doctor", capture=a) == _call("doctor", file=a)
    assert _call("diff", a=a, b=a) == _call("diff", before=a, after=a)
    assert "check the path" in _error("memory", recordings=str(tmp_path / "none"))


@pytest.mark.slow
def test_gpu_and_where_are_those_of_the_commands(tmp_path: Path) -> None:
    a = capture(tmp_path / "a.sqlite")
    one = str(a)
    by_layer, longest_first = ("summary", a, "--by", "layer:2"), ("--sort", "sil", "--top", "20")
    gpu, relu = ("--gpu", "H100 SXM"), ("--where", "op=relu")
    assert _call("summary", file=one, gpu="H100 SXM") == _uncut(*by_layer, *gpu)
    assert _call("summary", file=one, where="op=relu") == _uncut(*by_layer, *relu)
    assert _call("lines", file=one, where="op=relu") == _uncut("lines", a, *relu)
    found = _call("prof", file=one, gpu="H100 SXM", columns="idx,eff")
    assert found == _uncut("prof", a, "-c", "idx,eff", *longest_first, *gpu)
    assert _call("lines", file=one, gpu="H100 SXM")["kind"] == "lines"
    (longest,) = _call("prof", file=one, where="op=relu", limit=1)["rows"]
    assert _call("explain", file=one, where="op=relu") == _call(
        "explain", file=one, row=longest["idx"]
    )
    assert "no row matches" in _error("explain", file=one, where="op=none")
    assert "no peaks known" in _error("explain", file=one, gpu="no such card")


def test_answers_are_bounded() -> None:
    line = LineTime(
        line="a:1", file="a", number=1, calls=1, time_ns=5, own_ns=5, share=0.5, source="x" * 3000
    )
    given = Lines(
        chosen=None, processor="GPU", total_ns=10, unknown_ns=0, lines=(line,) * 30, advice=()
    )
    answer = bound(given, 20)
    assert len(answer["lines"]) == 20
    assert {len(each["source"]) for each in answer["lines"]} == {2000}
    assert answer["cut"] == {"lines": 10, "lines.source": 20 * 1000}
    assert bound(given, 30)["lines"] == bound(given, 500)["lines"]
    assert answers.document(given)


@pytest.mark.parametrize(
    ("missing", "needs"),
    [("mcp", "mcp: pip install mcp"), ("mcp.server", "mcp 2: pip install --upgrade mcp")],
    ids=["none", "an old one, whose servers were created differently"],
)
def test_without_the_sdk_one_line_says_how_to_install_it(
    missing: str, needs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    assert refused("mcp") == f"pyprof: the MCP server needs {needs}\n"


@pytest.mark.parametrize(
    "name",
    [
        "nsys2024.2-a100-pyprof-markers/net.sqlite",
        pytest.param("kineto-v100-resnet50-2021/trace.json.gz", marks=pytest.mark.long),
        pytest.param("kineto-a100-sam-eager/trace.json.gz", marks=pytest.mark.long),
    ],
)
def test_verdict_and_gains_of_a_real_capture_take_one_call_of_20_kb(
    captures: Path, name: str
) -> None:
    """As text, too, which a language model reads."""
    arguments = {"file": str(captures / name)}
    result = _asked(lambda client: client.call_tool("summary", arguments))
    answer = result.structured_content
    (content,) = result.content
    assert json.loads(content.text) == answer
    assert len(content.text.encode()) < 20_000
    assert answer["verdict"][0]["about"] == "bound"
    assert answer["advice"][0]["gain_share"] > 0.1
