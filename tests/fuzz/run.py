"""Fuzz: `python -m tests.fuzz.run --count 100000 --seed 1`, or `--seconds 60`; replay with --only.

Inputs go through the commands in a forked child, some hundred each, with limits of memory and time;
a child that dies is its input's failure. Each input follows from seed and number alone.
"""

import argparse
import hashlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import IO, Any

import click

from pyprof.__main__ import main, names
from pyprof.cli.command import DEBUG
from tests.fuzz.checks import COMMANDS, Done, broken, commands_for, outcome
from tests.fuzz.mutate import DAMAGE
from tests.fuzz.seeds import Seed, seeds
from tests.fuzz.truth import truth
from tests.known import known

_SUFFIXES = {"sqlite": ".sqlite", "json": ".json", "gzip": ".json.gz", "dict": ".dict",
             "literal": ".dict", "parquet": ".parquet", "pickle": ".pickle",
             "csv": ".csv"}  # fmt: skip
_BATCH = 200
_CPU_S = 20
"""Maximum for one input; the slowest takes a tenth of it."""
_MORE_BYTES = 3 << 30
"""Maximum growth of a child's address space."""
_OFTEN = 0.95
"""Probability of a generated seed: the real ones are large."""


@dataclass(frozen=True)
class Input:
    number: int
    seed: Seed
    damage: str
    data: bytes
    commands: tuple[str, ...]


def damaged(found: Sequence[Seed], seed: int, number: int, count: int) -> Input:
    rng = Random(f"{seed}:{number}")  # noqa: S311 - to be the same each time
    built = [each for each in found if each.is_built]
    sound = rng.choice(built if rng.random() < _OFTEN else found)
    how = rng.choice(DAMAGE[sound.kind])
    known = commands_for(sound.kind)
    rng.shuffle(known)
    chosen = tuple(dict.fromkeys(known))[:count]
    return Input(number, sound, how.__name__, how(sound.data, rng) or b"\0", chosen)


# --- in a child ---------------------------------------------------------------------------------


def _tried(tried: Input, folder: Path) -> Iterator[dict[str, Any]]:
    """Put an input through its commands; return how each ended, and which rules it broke."""
    path = folder / f"in{_SUFFIXES[tried.seed.kind]}"
    path.write_bytes(tried.data)
    sound = folder / f"sound{_SUFFIXES[tried.seed.kind]}"
    sound.write_bytes(tried.seed.data)
    digest, expected = _digest(path), truth(path, tried.seed.kind)
    for place, command in enumerate(tried.commands):
        done = _run(command, path, sound, folder)
        wrong = broken(done, expected)
        if _digest(path) != digest:
            wrong.append("the input was changed")
            path.write_bytes(tried.data)
        left = [file for file in folder.iterdir() if file not in (path, sound)]
        if left:
            wrong.append(f"left behind: {[file.name for file in left]}")
        for file in left:
            shutil.rmtree(file) if file.is_dir() else file.unlink()
        yield {"place": place, "command": command, "outcome": outcome(done), "wrong": wrong}
    path.unlink()
    sound.unlink()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(command: str, path: Path, sound: Path, folder: Path) -> Done:
    line, suffix, *_ = COMMANDS[command]
    target = folder / f"out{suffix}" if suffix else None
    places = {"IN": str(path), "SOUND": str(sound), "OUT": str(target)}
    code, stdout, stderr, crash = _called([places.get(word, word) for word in line.split()])
    written = None
    if target is not None and target.exists():
        written = target.read_bytes()
        target.unlink()
    return Done(command, code, stdout, stderr, written, crash)


def _called(arguments: list[str]) -> tuple[int, bytes, bytes, str]:
    """Run a command in this process; return its exit code, what it wrote, and how it crashed.

    C libraries write, too, and a fault of pyprof's own is not to end in a line of its own here.
    """
    crash = ""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", DEBUG: "1"}
    with _captured() as (out, err):
        code = 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default")
                command = known(main.get_command(click.Context(main), arguments[0]))
                command.main(arguments[1:], prog_name=f"pyprof {arguments[0]}")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException as error:  # noqa: BLE001 - whatever it is
            traceback.print_exc()
            code, crash = 1, _crash(error)
    return code, _whole(out), _whole(err), crash


def _crash(error: BaseException) -> str:
    """Format an error with the innermost lines of ours in its traceback."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "pyprof" in f.filename]
    places = " < ".join(
        f"{'/'.join(Path(f.filename).parts[-2:])}:{f.lineno}" for f in reversed(frames[-3:])
    )
    return f"{type(error).__name__} at {places}"


@contextmanager
def _captured() -> Iterator[list[IO[bytes]]]:
    """Redirect stdout and stderr to files."""
    files: list[IO[bytes]] = [
        os.fdopen(os.memfd_create(name), "w+b") for name in ("stdout", "stderr")
    ]
    saved = [os.dup(number) for number in (1, 2)]
    for number, file in enumerate(files, 1):
        os.dup2(file.fileno(), number)
    try:
        with (
            os.fdopen(1, "w", closefd=False) as stdout,
            os.fdopen(2, "w", closefd=False) as stderr,
            redirect_stdout(stdout),  # whatever they were here
            redirect_stderr(stderr),
        ):
            yield files
    finally:
        for number, before in enumerate(saved, 1):
            os.dup2(before, number)
            os.close(before)


def _whole(file: IO[bytes]) -> bytes:
    with file:
        file.seek(0)
        return file.read()


def _child(
    found: Sequence[Seed], seed: int, numbers: Sequence[int], folder: Path, commands: int, pipe: int
) -> None:
    """Work on some inputs; send the current one and how each ended through the pipe."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + _MORE_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(pipe, "w") as out:
        for number in numbers:
            print(json.dumps({"number": number}), file=out, flush=True)
            signal.setitimer(signal.ITIMER_PROF, _CPU_S)
            tried = damaged(found, seed, number, commands)
            for told in _tried(tried, folder):
                told |= {"seed": tried.seed.name, "kind": tried.seed.kind, "damage": tried.damage}
                print(json.dumps({"number": number, **told}), file=out, flush=True)
            print(json.dumps({"number": number, "ended": True}), file=out, flush=True)


# --- in the parent ------------------------------------------------------------------------------


@dataclass
class Tally:
    counts: Counter[tuple[str, str, str, str]]
    """Number of inputs by command, outcome, kind of file and damage."""
    inputs: Counter[tuple[str, str]]
    failures: dict[str, list[int]]
    """Numbers of inputs by what went wrong."""

    def add(self, told: dict[str, Any]) -> None:
        """Count how a command ended."""
        key = (told["kind"], told["damage"], told["command"], told["outcome"])
        self.counts[key] += 1
        for wrong in told["wrong"]:
            self.fail(f"{told['command']}: {wrong}", told["number"], told["seed"])

    def fail(self, what: str, number: int, seed: str = "") -> None:
        """Record a failure; the first of each kind is printed at once."""
        if what not in self.failures:
            print(f"FAILED input {number} ({seed}): {what}", flush=True)
        self.failures.setdefault(what, []).append(number)


def _batch(
    found: Sequence[Seed], seed: int, numbers: list[int], commands: int, tally: Tally
) -> list[int]:
    """Process some inputs in a child; return those left over if it died."""
    folder = Path(mkdtemp(prefix="pyprof-fuzz-", dir=_SHARED if _SHARED.is_dir() else None))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            _child(found, seed, numbers, folder, commands, writing)
        except BaseException:  # noqa: BLE001 - a fault of the fuzzer's own
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    left, current = list(numbers), None
    with os.fdopen(reading) as lines:
        for line in lines:
            told = json.loads(line)
            current = told["number"]
            if told.get("ended"):
                left.remove(current)
                current = None
            elif "command" in told:
                tally.add(told)
                tally.inputs[told["kind"], told["damage"]] += told["place"] == 0
    _, status = os.waitpid(child, 0)
    shutil.rmtree(folder)
    if left and current is None:
        raise RuntimeError("the child ended before its work did")
    if current is not None:
        code = os.waitstatus_to_exitcode(status)
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        slow = f" (more than {_CPU_S} s)" if name == "SIGPROF" else ""
        tally.fail(f"the process died of {name}{slow}", current)
        left.remove(current)
    return left


_SHARED = Path("/dev/shm")  # noqa: S108 - memory, where there is such a place


def fuzz(seed: int, first: int, count: int, seconds: float, commands: int) -> Tally:
    """Try inputs up to a number or a time."""
    found = seeds()
    for name in names():
        import_module(f"pyprof.commands.{name}")
    for name in {command.line.split()[0] for command in COMMANDS.values()}:
        _called([name, "--help"])
    tally = Tally(Counter(), Counter(), {})
    began, number = time.monotonic(), first
    with suppress(KeyboardInterrupt):  # enough
        while number < first + count and time.monotonic() - began < seconds:
            numbers = list(range(number, min(number + _BATCH, first + count)))
            number = numbers[-1] + 1
            while numbers:
                numbers = _batch(found, seed, numbers, commands, tally)
    took = time.monotonic() - began
    print(f"{number - first} inputs of seed {seed} in {took:.0f} s", flush=True)
    return tally


def _report(tally: Tally, seed: int) -> None:
    for (kind, damage), count in sorted(tally.inputs.items()):
        ended: Counter[str] = Counter()
        for key, times in tally.counts.items():
            if key[:2] == (kind, damage):
                ended[key[3]] += times
        listed = ", ".join(f"{name} {times}" for name, times in sorted(ended.items()))
        print(f"{kind:8} {damage:8} {count:7} inputs: {listed}")
    for what, numbers in sorted(tally.failures.items(), key=lambda entry: -len(entry[1])):
        print(f"FAILED {len(numbers)} times: {what}")
        print(f"  to see it: make fuzz SEED={seed} ONLY={numbers[0]}")


def replay(seed: int, number: int) -> int:
    """Put one input through all commands, with tracebacks, and keep it; return how many fail."""
    tried = damaged(seeds(), seed, number, len(COMMANDS))
    folder = Path(mkdtemp(prefix="pyprof-fuzz-"))
    kept = folder.with_suffix(_SUFFIXES[tried.seed.kind])
    kept.write_bytes(tried.data)
    print(f"{tried.seed.name}, {tried.damage}: {kept}")
    failed = 0
    for told in _tried(tried, folder):
        failed += bool(told["wrong"])
        print(f"{told['command']}: {told['outcome']}", *told["wrong"], sep="\n    ", flush=True)
    shutil.rmtree(folder)
    return failed


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="what the inputs follow from")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--count", type=int, default=1 << 62, help="inputs to try")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="or how long to try")
    parser.add_argument("--commands", type=int, default=1, help="commands of each input")
    parser.add_argument("--only", type=int, help="replay this input alone")
    asked = parser.parse_args()
    if asked.only is not None:
        return min(1, replay(asked.seed, asked.only))
    tally = fuzz(asked.seed, asked.first, asked.count, asked.seconds, asked.commands)
    _report(tally, asked.seed)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(_main())
