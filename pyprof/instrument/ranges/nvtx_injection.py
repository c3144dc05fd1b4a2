"""Ranges straight to the tool that injected itself into this process, by NVTX's own handshake.

A program that uses NVTX loads the library that `NVTX_INJECTION64_PATH` names and hands it tables of
empty function pointers, into which the tool writes the functions that it implements. Compiled
programs get this from NVTX's header; ctypes does it here, so that no package's version matters and
no string is registered for ever. (From 0.2.12 on, the `nvtx` package asks tools a question that
nsys 2022.4 does not answer, and then emits nothing.)

Structures and numbers: NVTX 3, `nvtxDetail/nvtxTypes.h`.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_TABLE_CALLBACKS, _TABLE_VERSION = 1, 3  # NVTX_ETID_*
_MODULE_CORE, _MODULE_CORE2 = 1, 5  # NVTX_CB_MODULE_*: a tool wants both or none
_RANGE_PUSH, _RANGE_POP = 9, 11  # NVTX_CBID_CORE_RangePushA, RangePop
_SLOTS = 16  # NVTX_CBID_CORE_SIZE, NVTX_CBID_CORE2_SIZE
_VERSION = 3

_Slot = ctypes.POINTER(ctypes.c_void_p)
_Slots = ctypes.c_void_p * _SLOTS
_Table = _Slot * _SLOTS
_GetModuleTable = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint)
)
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
_SetVersion = ctypes.CFUNCTYPE(None, ctypes.c_uint32)
# Both return the depth, which is not needed; void costs half, and so does void* for char*.
_PushFunction = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_PopFunction = ctypes.PYFUNCTYPE(None)


class _Callbacks(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("get_module_table", _GetModuleTable))


class _Version(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("version", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("set_injection_version", _SetVersion),
    )


_kept: list[object] = []
"""What the tool may keep pointers to. Never emptied: a tool cannot release it."""


def connect(library: str) -> tuple[Callable[[bytes], object], Callable[[], object]] | None:
    """Return the tool's own (push, pop); None if the library is unavailable or does not listen.

    `push` takes UTF-8 bytes. Both hold the interpreter lock: they take less time than releasing it.
    """
    core = _Slots()
    try:
        start = ctypes.CDLL(library).InitializeInjectionNvtx2
    except (OSError, AttributeError):
        return None
    if not start(_export_tables({_MODULE_CORE: core, _MODULE_CORE2: _Slots()})):
        return None
    push, pop = core[_RANGE_PUSH], core[_RANGE_POP]
    return (_PushFunction(push), _PopFunction(pop)) if push and pop else None


def _export_tables(modules: dict[int, ctypes.Array[ctypes.c_void_p]]) -> Any:  # noqa: ANN401 - ctypes names no type for it
    """Return the function that a tool calls for the tables of these modules."""
    tables = {module: _table(slots) for module, slots in modules.items()}

    def get_module_table(module: int, out_table: Any, out_size: Any) -> int:  # noqa: ANN401 - pointers
        if module not in tables:
            return 0
        out_table[0] = ctypes.addressof(tables[module])
        out_size[0] = _SLOTS
        return 1

    callbacks = _Callbacks(ctypes.sizeof(_Callbacks), _GetModuleTable(get_module_table))
    version = _Version(ctypes.sizeof(_Version), _VERSION, 0, _SetVersion(lambda _: None))
    exported = {
        _TABLE_CALLBACKS: ctypes.addressof(callbacks),
        _TABLE_VERSION: ctypes.addressof(version),
    }
    get_export_table = _GetExportTable(exported.get)
    _kept.extend((modules, tables, callbacks, version, get_export_table))
    return get_export_table


def _table(slots: ctypes.Array[ctypes.c_void_p]) -> ctypes.Array[Any]:
    """Return the table of addresses at which a tool stores its functions."""
    size = ctypes.sizeof(ctypes.c_void_p)
    return _Table(
        *(ctypes.cast(ctypes.byref(slots, index * size), _Slot) for index in range(_SLOTS))
    )
