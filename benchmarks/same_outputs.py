"""Run every command on every capture of a folder, and keep what it prints; then compare two runs.

    python benchmarks/same_outputs.py FOLDER before/      # with the old code
    python benchmarks/same_outputs.py FOLDER after/       # with the new code
    diff -r before after                                  # silent: equal to the byte

For changes that must not change a figure. PYPROF names the command that is run (default: pyprof).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PYPROF = shlex.split(os.environ.get("PYPROF", "pyprof"))
ALL_COLUMNS = (
    "idx,seq,altseq,tid,layer,trace,dir,sub,mod,op,kernel,params,sil,tc,device,stream,grid,block,"
    "flops,bytes,start,end,gap,queue,pid,rank,window,kind,line,module,tflops,gbs,ai,bound,eff,peak,"
    "why,opid,regs,smem"
)
COMMANDS = {
    "parse.dict": "parse {capture}",
    "prof.csv": f"prof --csv -c {ALL_COLUMNS} {{capture}}",
    "prof.txt": "prof {capture} --top 300",
    "prof-w.txt": "prof -w 160 --top 300 {capture}",
    "prof-op.csv": "prof --by op --csv {capture}",
    "prof-line.txt": "prof --by line -w 150 {capture}",
    "prof-nvprof.txt": "prof --summary nvprof {capture}",
    "prof-record.csv": f"prof --csv -c {ALL_COLUMNS} {{out}}/parse.dict",
    "summary.txt": "summary {capture}",
    "summary-layer.txt": "summary --by layer {capture}",
    "summary-line.txt": "summary --by line {capture}",
    "lines.txt": "lines {capture}",
    "doctor.txt": "doctor {capture}",
    "ranks.txt": "ranks {capture}",
    "report.html": "report {capture} -o {out}/report.html",
    "roofline.html": "roofline {capture} -o {out}/roofline.html",
    "speedscope": "export {capture} -o {out}/export.speedscope.json",
    "trace": "export {capture} -o {out}/export.trace.json",
    "csv": "export {capture} -o {out}/export.csv",
    "md": "export {capture} -o {out}/export.md",
    "diff.txt": "diff {capture} {capture}",
}
ENDINGS = (".sqlite", ".sql", ".nvvp", ".prof", ".json", ".json.gz", ".dict")


def captures(folder: Path) -> list[Path]:
    """Find the captures of a folder, folders within folders included."""
    return sorted(path for path in folder.rglob("*") if path.name.endswith(ENDINGS))


def keep(capture: Path, out: Path) -> None:
    """Run every command on one capture; stdout, stderr and exit code go to a file each."""
    out.mkdir(parents=True, exist_ok=True)
    for name, command in COMMANDS.items():
        words = [word.format(capture=capture, out=out) for word in command.split()]
        done = subprocess.run([*PYPROF, *words], capture_output=True, check=False)  # noqa: S603 - ours
        (out / name).write_bytes(done.stdout) if done.stdout else None
        told = done.stderr.replace(str(out).encode(), b"OUT")
        (out / f"{name}.stderr").write_bytes(told + f"exit {done.returncode}\n".encode())


def main() -> None:
    """Read the two arguments and go through the captures, two at a time."""
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    with ThreadPoolExecutor(2) as pool:
        for capture in captures(folder):
            pool.submit(keep, capture, target / capture.relative_to(folder))


if __name__ == "__main__":
    main()
