"""A stand-in for nsys."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from click.testing import Result

from pyprof.capture import machine
from tests.capture.stand_in import StandIn

Run: TypeAlias = "Callable[..., Result]"
STAND_IN = """#!{python}
import json, os, shutil, sqlite3, subprocess, sys
args = sys.argv[1:]
if args == ["--version"]:
    print("NVIDIA Nsight Systems version 2024.6.1.90-246160830v0")
    raise SystemExit
if args == ["profile", "--help"]:
    print(os.environ.get("KNOWS", "--cuda-graph-trace="))
    raise SystemExit
if args[0] == "profile" and args[-1].endswith("=help"):
    print(os.environ.get("METRICS", ""))
    raise SystemExit
if args[0] == "export":
    if "exported" in os.environ["WRITES"].split():
        (target,) = (arg.split("=", 1)[1] for arg in args if arg.startswith("--output="))
        base = sqlite3.connect(target)
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL AS SELECT 1 AS start")
    raise SystemExit
with open(os.environ["SEEN"], "w") as file:
    json.dump(args, file)
name = next(arg.split("=", 1)[1] for arg in args if arg.startswith("--output="))
code = subprocess.run(args[args.index({python!r}):], check=False).returncode
wanted = os.environ["WRITES"].split()
if "sqlite" in wanted:
    base = sqlite3.connect(name + ".sqlite")
    base.execute("CREATE TABLE IF NOT EXISTS StringIds (id, value)")
    if "kernels" in wanted:
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start)")
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1)")
    base.commit()
if "windows" in wanted:
    for file in os.listdir(os.environ["WINDOWS"]):
        shutil.copy(os.path.join(os.environ["WINDOWS"], file), name + file)
if "gave-way" in wanted:
    (said,) = (arg for arg in args if arg.startswith("--provisional="))
    open(said.split("=", 1)[1], "w").close()
for suffix in wanted:
    if suffix.startswith("."):
        open(name + suffix, "w").close()
"""  # nsys before 2023 exits with 0 whatever the script does, and so does this


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    tool = StandIn(tmp_path, "nsys", STAND_IN, monkeypatch)
    monkeypatch.setenv("WINDOWS", str(tmp_path / "windows"))
    (tmp_path / "windows").mkdir()
    monkeypatch.setattr(machine, "find_gpus", lambda: ("NVIDIA H100",))

    def capture_it(
        *args: str, text: str = "pass", writes: str = "sqlite kernels", code: int | None = None
    ) -> Result:
        monkeypatch.setenv("WRITES", writes)
        return tool.capture(*args, text=text, code=code)

    return capture_it
