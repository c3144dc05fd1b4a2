"""Ranges reach a tool by NVTX's own handshake."""

import ctypes.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pyprof import marker
from pyprof.instrument.ranges import nvtx_injection


def test_a_library_that_is_no_tool_is_refused(tmp_path: Path) -> None:
    """A missing file, a text and a library without NVTX's entry are refused quietly."""
    text = tmp_path / "tool.so"
    text.write_text("no library")
    assert nvtx_injection.connect(str(text)) is None
    assert nvtx_injection.connect(str(tmp_path / "absent.so")) is None
    libc = ctypes.util.find_library("c")
    assert libc is None or nvtx_injection.connect(libc) is None


TOOL = r"""
#include <stdio.h>
#include <stdint.h>
#include <stddef.h>
typedef struct { size_t size; int (*get)(uint32_t, void ****, unsigned *); } Callbacks;
static int depth;
static int push(const char *text) { printf("%d %s\n", depth, text); return depth++; }
static int pop(void) { return --depth; }
int InitializeInjectionNvtx2(const void *(*table)(uint32_t)) {
    const Callbacks *callbacks = table(1);
    void ***slots; unsigned size;
    if (!callbacks || table(99)) return 0;
    if (callbacks->get(42, &slots, &size)) return 0;
    if (!callbacks->get(1, &slots, &size) || size != 16) return 0;
    *slots[9] = push; *slots[11] = pop;
    return 1;
}
"""


@pytest.mark.slow
def test_ranges_reach_an_injected_tool(tmp_path: Path) -> None:
    """A tool that injects itself as NVTX has it gets every range, as plain text, nested."""
    source, library = tmp_path / "tool.c", tmp_path / "tool.so"
    source.write_text(TOOL)
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
    except FileNotFoundError:
        pytest.skip("no C compiler here")
    code = (
        "import pyprof, torch; pyprof.init()\n"
        "with pyprof.annotate('it\\'s é'): torch.ones(2).add(1)\n"
    )
    if hasattr(torch._C, "_nvtx"):
        code = (
            "import torch; del torch._C._nvtx; import sys; sys.modules.pop('torch._C._nvtx', 0)\n"
            + code
        )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"NVTX_INJECTION64_PATH": str(library)},
        check=True, capture_output=True, encoding="utf-8",
    )  # fmt: skip
    found = [line.partition(" ") for line in done.stdout.splitlines()]
    assert [depth for depth, _, _ in found] == ["0", "1", "2", "1", "2"]
    assert found[0][2] == "layer:it's é"
    kinds = [marker.classify(text) for _, _, text in found[1:]]
    assert kinds == [marker.Kind.TRACE, marker.Kind.OP] * 2
