"""Keep what every command prints and writes for every capture; compare it with another run.

    PYTHONPATH=OLD python benchmarks/same_outputs.py CAPTURES... before
    PYTHONPATH=NEW python benchmarks/same_outputs.py CAPTURES... after --against before

OLD and NEW are checkouts: PYTHONPATH selects the code, and one script runs both, so that both run
the same commands. CAPTURES are folders of captures, nested ones included. The second line prints
each command whose output differs, with the first differing line, and exits with 1 if there is one.
`after/FOLDER/CAPTURE/COMMAND/` keeps stdout, stderr with the exit code, and the files written.

`--only '*nsys*/summary*'` runs only these (FOLDER/CAPTURE/COMMAND), `--without` all others; both
can be repeated, and `--list` prints the names. A folder with several captures of a format is a set,
and so are `sets/`, chosen from the first folder: three of a format, or one of each, in two orders.
`none/` needs no capture.

Commands run in forks of one process that has imported what they need, `--jobs` at a time, each in
its own folder and with the same environment. Paths, temporary names and versions are replaced.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import re
import runpy
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FORMATS = (".sqlite", ".sql", ".nvvp", ".prof", ".json", ".json.gz", ".dict", ".db", ".pickle")
BESIDE_CAPTURES = ("capture_traces/", "execution_details.json")
_COLUMNS = (
    "idx,seq,altseq,tid,layer,trace,dir,sub,mod,op,kernel,params,sil,tc,device,stream,grid,block,"
    "flops,bytes,start,end,gap,queue,pid,rank,window,step,phase,family,kind,line,module,tflops,gbs,"
    "ai,bound,eff,peak,why,via,opid,regs,smem,occ,waves,dram,dramerr,tensor,tensorerr,tcmeas,"
    "occmeas,clock,effclk,xflops,excess,l1hit,l2hit,power,energy,counter"
)
_KEYS = "op line layer params step tc"
_MORE_KEYS = "dir kernel mod device stream window rank phase family via bound"
_HELD_BY = "category layer line op function direction size evidence stack"
_TABLES = "ranks stragglers late together steps groups parallelism layers unmatched"
_SUFFIXES = "collapsed csv json md parquet prof speedscope.json pt.trace.json"
_COMMANDS = "run capture parse prof doctor diff export lines mcp memory peaks ranks report roofline"


# --- what is run ----------------------------------------------------------------------------------


def print_frame(captures: Sequence[str]) -> None:
    """Write what `pyprof.load` returns."""
    frame = import_module("pyprof").load(captures)
    print(frame.dtypes.to_string())
    frame.to_csv("frame.csv", index=False)


def print_notebook(captures: Sequence[str]) -> None:
    """Print what a notebook shows of a recorded block, with a capture in the recording's place."""
    with import_module("pyprof").profile("block") as block:
        import_module("torch").ones(1)
    shutil.copy(captures[0], block.path)
    print(block, block._repr_html_(), block.summary("layer"), sep="\n")


def print_mcp(captures: Sequence[str]) -> None:
    """Print the answers of the tools of `pyprof mcp`."""
    several, first = {"captures": captures}, {"capture": captures[0]}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("summary", several),
        ("lines", several),
        ("prof", {**several, "where": "sil>5000", "limit": 30}),
        ("prof", {**several, "by": "family"}),
        ("explain", {**first, "row": 3}),
        ("diff", {"a": captures[0], "b": captures[-1]}),
        ("doctor", first),
        ("peaks", {"name": "H100"}),
        ("ranks", several),
        ("memory", several),
    ]
    us = {"name": "same_outputs", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": us}
    (their_stdin, requests), (answers, their_stdout) = os.pipe(), os.pipe()
    server = start(partial(run_pyprof, ["mcp"]), their_stdout, 2, their_stdin, (requests, answers))
    os.close(their_stdin)
    os.close(their_stdout)
    with os.fdopen(requests, "w") as to_server, os.fdopen(answers) as from_server:

        def ask(number: int, method: str, params: dict[str, Any]) -> None:
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            print(json.dumps(request), file=to_server, flush=True)
            print(json.dumps(json.loads(from_server.readline()), indent=1, sort_keys=True))

        ask(0, "initialize", hello)
        print('{"jsonrpc": "2.0", "method": "notifications/initialized"}', file=to_server)
        ask(1, "tools/list", {})
        for number, (name, given) in enumerate(calls, 2):
            ask(number, "tools/call", {"name": name, "arguments": given})
    os.waitpid(server, 0)


Case: TypeAlias = "str | Callable[[Sequence[str]], None]"
"""Command lines of pyprof, separated by `;`, or a function that takes the captures.

{c} are the captures, {other} is another capture of the format, {ncu} a file of counters.
"""


def _each(line: str, values: str) -> str:
    return "; ".join(line.replace("{}", value) for value in values.split())


FOR_ROWS: dict[str, Case] = {
    "parse": "parse {c} -o net.dict; prof --csv -c " + _COLUMNS + " net.dict; summary net.dict;"
    "doctor net.dict",
    "parse-kernels": "parse --kernels-only {c}",
    "prof": "prof {c} --top 300",
    "prof-width": "prof -w 160 --top 300 {c}; prof --full --top 50 {c}",
    "prof-csv": "prof --csv -c " + _COLUMNS + " {c}",
    "prof-json": "prof --json --sort sil --top 200 {c}",
    "prof-where": "prof --csv --where 'dir=bprop and sil>1000' {c};"
    "prof --json --where tc=0 --where op~mm --top 50 {c}",
    "prof-nvprof": "prof --summary nvprof {c}",
    "prof-explain": "prof --explain 40 {c}; prof --explain 300 --json {c}",
    "prof-gpu": "prof -c idx,tc,eff,effclk,bound,peak,occ,waves --strict 99 --gpu clock=1200"
    " --gpu H200 --top 200 {c}",
    "prof-calls": "prof --by op -c op,total,cpu_calls,cpu_self,cpu_total,cpu_mean --csv {c};"
    "prof --by line -c line,total,alloc,peak_share --sort alloc -w 100 {c}",
    **{f"prof-by-{key}": f"prof --by {key} -w 150 --top 60 {{c}}" for key in _KEYS.split()},
    "prof-by-json": "prof --by params --json {c}; prof --by step --csv {c}",
    "summary": "summary {c}",
    "summary-by": _each("summary --by {} {c}", "layer:3 line host"),
    "summary-json": "summary --json {c}",
    "summary-part": "summary --steps 1: {c}; summary --where dir=bprop {c}",
    "lines": "lines {c}; lines -v --steps 1:3 {c}; lines --where tc=0 {c}",
    "lines-json": "lines --json -v {c}",
    "report": "report {c}",
    "report-part": "report --steps 1: --gpu flops=100T {c}",
    "roofline": "roofline {c}; roofline --steps 1: {c} -o roofline.svg",
    **{f"export-{suffix}": f"export {{c}} -o net.{suffix}" for suffix in _SUFFIXES.split()},
    "ranks": "ranks {c}; ranks --json {c}",
    "counters": "prof --csv -c " + _COLUMNS + " --with {ncu} {c};summary --json --with {ncu} {c}",
    "frame": print_frame,
    "mcp": print_mcp,
}
FOR_CAPTURE: dict[str, Case] = {
    **FOR_ROWS,
    "doctor": "doctor {c}; doctor --json {c}; doctor --with {ncu} {c}",
    "memory": "memory --json {c}; memory {c} -o memory.html",
    "diff": "diff {c} {other}; diff {other} {c} -o diff.md",
    "diff-json": "diff {c} {other} --json",
    "diff-html": "diff {c} {other} -o diff.html --fail-if 'slower>2%'",
    "diff-csv": "diff {other} {c} --csv --by line,kernel --fail-if 'time>+3%'",
    "notebook": print_notebook,
}
FOR_SET: dict[str, Case] = {
    **FOR_ROWS,
    **{f"prof-by-{key}": f"prof --by {key} {{c}}" for key in _MORE_KEYS.split()},
    "workers": "parse {c} -o ranks.parquet/ --workers 2; ranks ranks.parquet",
    "ranks-csv": _each("ranks {c} --csv {}", _TABLES),
    "memory": "memory {c}; memory --json {c}",
}
_IN_ORDER = "parse prof-csv prof-json prof-by-layer summary-json lines-json report export-md ranks"
FOR_REVERSED: dict[str, Case] = {name: FOR_SET[name] for name in _IN_ORDER.split()}
FOR_SNAPSHOT: dict[str, Case] = {
    "memory": "memory {c}; memory --json {c}; memory --at 1ms {c}; memory --at 40 {c}",
    "memory-by": _each("memory --by {} --top 30 {c}", _HELD_BY),
    "memory-files": "memory {c} -o peak.csv; memory {c} -o peak.collapsed; memory {c} -o m.html",
    "diff": "diff {c} {other}; diff {other} {c} --json; diff {c} {other} --fail-if 'peak>+5%'",
    "others": "summary {c}; doctor {c}",
}
FOR_NONE: dict[str, Case] = {
    "help": _each("{} --help", _COMMANDS + " summary") + "; --help; --version",
    "peaks": "peaks; peaks H100; peaks --csv; peaks --json; peaks nothing",
    "errors": "summary nothing.sqlite; summery; summary; prof --by nothing x; prof -c nothing x;"
    "export x -o x.nothing; ranks nothing/; diff a; lines --steps x y; memory nothing.pickle",
}
WARM_UP = "summary {c}; report {c}; prof --json {c}; diff {c} {c}; roofline {c} -o roofline.svg"


class Run(NamedTuple):
    """A case and its captures."""

    name: str
    case: Case
    captures: Sequence[str]
    other: str
    ncu: str

    def lines(self, text: str) -> Iterator[list[str]]:
        """Split command lines into words, with the captures in their places."""
        for line in text.split(";"):
            filled = line.format(c=shlex.join(self.captures), other=self.other, ncu=self.ncu)
            yield shlex.split(filled)


def all_runs(folders: Sequence[Path]) -> Iterator[Run]:
    """List the cases for every capture, and for sets of them."""
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    sizes = {
        str(path.relative_to(folder.parent)): path.stat().st_size
        for folder in folders
        for path in files
        if path.is_relative_to(folder)
    }
    ncu = next((name for name in sizes if fnmatch(name, "*ncu*.csv")), "ncu.csv")
    by_format = {
        suffix: [
            name
            for name in sizes
            if name.endswith(suffix) and not any(part in name for part in BESIDE_CAPTURES)
        ]
        for suffix in FORMATS
    }

    def runs(name: str, cases: dict[str, Case], *captures: str, other: str = "") -> Iterator[Run]:
        for command, case in cases.items():
            yield Run(f"{name}/{command}", case, captures, other, ncu)

    yield from runs("none", FOR_NONE)
    sets: dict[str, list[str]] = {"mixed": []}
    for suffix, names in by_format.items():
        of_snapshots = suffix == ".pickle"
        cases = FOR_SNAPSHOT if of_snapshots else FOR_CAPTURE
        counts = Counter(map(os.path.dirname, names))
        for name, other in zip(names, names[1:] + names[:1], strict=True):
            if of_snapshots or counts[os.path.dirname(name)] == 1:  # noqa: PTH120 - a text
                yield from runs(name, cases, name, other=other)
        for folder, count in counts.items():
            if count > 1:
                more = cases if of_snapshots else FOR_SET
                yield from runs(folder, more, folder, other=names[0])
        smallest = sorted(
            (name for name in names if name.startswith(f"{folders[0].name}/") and not of_snapshots),
            key=sizes.__getitem__,
        )
        sets["mixed"] += smallest[:1]
        sets[suffix[1:]] = smallest[:3]
    for name, captures in sets.items():
        if len(captures) > 1:
            yield from runs(f"sets/{name}", FOR_SET, *captures)
            yield from runs(f"sets/{name}-reversed", FOR_REVERSED, *captures[::-1])


# --- how it is run --------------------------------------------------------------------------------


def run_pyprof(words: Sequence[str]) -> None:
    """Run `python -m pyprof WORDS`; raises SystemExit."""
    sys.argv = ["pyprof", *words]
    runpy.run_module("pyprof", run_name="__main__", alter_sys=True)


def start(
    task: Callable[[], None], stdout: int, stderr: int, stdin: int = -1, close: Sequence[int] = ()
) -> int:
    """Run a task in a fork with these streams, to the end of that process; return its id."""
    child = os.fork()
    if child:
        return child
    for descriptor in close:
        os.close(descriptor)
    given = (os.open(os.devnull, os.O_RDONLY) if stdin < 0 else stdin, stdout, stderr)
    for number, descriptor in enumerate(given):
        os.dup2(descriptor, number)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", closefd=False)  # type: ignore[misc] # noqa: SIM115
    try:
        task()
    except Exception as error:  # noqa: BLE001 - without a traceback, which names lines of the code
        sys.exit(f"{type(error).__name__}: {error}")
    sys.exit()


class Imported(list[str]):
    """Records the modules that are imported, in order, on which registries of a program depend."""

    def find_spec(self, name: str, *_: object) -> None:
        """Record the name, and leave finding it to others."""
        self.append(name)


def import_what_is_used(captures: Sequence[str]) -> None:
    """Import the modules that some commands import, in their order, once for all forks."""
    reading, writing = os.pipe()
    if not os.fork():
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        imported = Imported()
        sys.meta_path.insert(0, imported)
        for words in Run("", "", captures, "", "").lines(WARM_UP):
            with suppress(SystemExit):
                run_pyprof(words)
        with suppress(ImportError):
            import_module("mcp.server.mcpserver")
        os.write(writing, "\n".join(imported).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as names:
        for name in names.read().split():
            if not name.endswith("__main__"):  # runpy warns if it is already imported
                with suppress(Exception):
                    import_module(name)
    os.wait()
    gc.collect()
    gc.freeze()  # collecting garbage in a fork would copy its pages


def enter_folder(captures: Sequence[Path]) -> Path:
    """Make a folder with links to those of captures, and make it the current one.

    Its path is always of the same length, for tables that are cut may show paths.
    """
    folder = Path(tempfile.mkdtemp(prefix="same-")).resolve()
    os.chdir(folder)
    for each in captures:
        Path(each.name).symlink_to(each)
    return folder


def keep(run: Run, target: Path, folders: Sequence[Path]) -> None:
    """Run a case, and keep what it writes in a folder."""
    folder = enter_folder(folders)
    if isinstance(run.case, str):
        tasks = [partial(run_pyprof, words) for words in run.lines(run.case)]
    else:
        tasks = [partial(run.case, run.captures)]
    with Path("stdout").open("ab", 0) as stdout, Path("stderr").open("ab", 0) as stderr:
        for task in tasks:
            _, status = os.waitpid(start(task, stdout.fileno(), stderr.fileno()), 0)
            stderr.write(f"exit {os.waitstatus_to_exitcode(status)}\n".encode())
    for each in folders:
        Path(each.name).unlink()
    home = os.environ["PYTHONPATH"].split(os.pathsep)[0]
    scrubs = [(re.escape(str(folder)), "HERE"), (re.escape(home), "CHECKOUT")]
    scrubs += [(re.escape(str(each)), each.name) for each in folders]
    scrubs += [(r"pyprof-[a-z0-9_]{8}/", "pyprof-TEMP/")]
    scrubs += [(r'"pyprof_version": "[^"]*"', '"pyprof_version": "VERSION"')]
    for path in folder.rglob("*"):
        if path.is_file():
            old = new = path.read_bytes()
            for pattern, text in scrubs:
                new = re.sub(pattern.encode(), text.encode(), new)
            if new != old:
                path.write_bytes(new)
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, target)


def difference(folder: Path, before: Path) -> str:
    """Describe the first line that differs between two folders; "" if all files are equal."""
    names = {
        str(path.relative_to(top))
        for top in (folder, before)
        for path in top.rglob("*")
        if path.is_file()
    }
    for name in sorted(names, key=lambda name: (name not in {"stdout", "stderr"}, name)):
        if not (before / name).exists() or not (folder / name).exists():
            return f"{name}: {'new' if (folder / name).exists() else 'gone'}"
        old, new = (before / name).read_bytes(), (folder / name).read_bytes()
        if old != new:
            pairs = enumerate(zip(old, new, strict=False))
            place = next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
            start_of_line = max(old.rfind(b"\n", 0, place) + 1, place - 60)
            shown = [
                text[start_of_line : place + 60].split(b"\n")[0].decode(errors="replace")
                for text in (old, new)
            ]
            number = old.count(b"\n", 0, place) + 1
            return f"{name}:{number}\n  - {shown[0]}\n  + {shown[1]}"
    return ""


def main() -> None:
    """Run the chosen cases, and compare them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("captures", type=Path, nargs="+", help="folders of captures")
    parser.add_argument("target", type=Path, help="folder for outputs")
    parser.add_argument("--against", type=Path, help="compare with this folder of outputs")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--without", action="append", default=[], metavar="PATTERN")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the names of all runs")
    options = parser.parse_args()
    folders = [path.resolve(strict=True) for path in options.captures]
    target = options.target.resolve()
    before = options.against and options.against.resolve(strict=True)
    chosen = [
        run
        for run in all_runs(folders)
        if any(fnmatch(run.name, pattern) for pattern in options.only or ["*"])
        and not any(fnmatch(run.name, pattern) for pattern in options.without)
    ]
    if options.list:
        print(*(run.name for run in chosen), sep="\n")
        return
    target.mkdir(parents=True, exist_ok=True)
    fix_environment(target / "home")
    captures = min((run.captures for run in chosen if run.captures), key=str, default=())
    warm_up = enter_folder(folders)
    import_what_is_used(captures[:1])
    began, running, differing = time.monotonic(), 0, 0
    for run in [*chosen, *[None] * options.jobs]:
        if running == options.jobs or (run is None and running):
            differing += os.waitstatus_to_exitcode(os.wait()[1]) != 0
            running -= 1
        if run is None:
            continue
        running += 1
        if not os.fork():
            keep(run, target / run.name, folders)
            found = difference(target / run.name, before / run.name) if before else ""
            if found:
                os.write(1, f"{run.name}: {found}\n".encode())
            os._exit(bool(found))
    shutil.rmtree(warm_up)
    seconds = time.monotonic() - began
    print(f"{len(chosen)} run in {seconds:.0f} s" + f", {differing} differ" * bool(before))
    sys.exit(bool(differing))


def fix_environment(home: Path) -> None:
    """Set an environment that is the same everywhere, for this process and its forks."""
    home.mkdir(exist_ok=True)
    sys.path.pop(0)  # other benchmarks
    checkout = Path(import_module("pyprof").__file__ or "").resolve().parents[1]
    print(f"code: {checkout}")
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    fixed = {"COLUMNS": "80", "NO_COLOR": "1", "TZ": "UTC", "LC_ALL": "C.UTF-8", "HOME": str(home)}
    os.environ.clear()
    os.environ.update({**kept, **fixed, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"})


if __name__ == "__main__":
    main()
