"""Where a native function was written: file and line, from the debug information (DWARF) of its
shared object.

Asked only for the function that somebody looks at, because large libraries have megabytes of debug
information. It is in the object, or in a separate file beside it or in /usr/lib/debug
(dumper/symbols.py); an object that was built anew has another build id, and tells nothing.
pyelftools reads it.

The object comes from the recorded program. Nothing of it is run, but pyelftools was made for files
that make sense: whatever it makes of others, nothing is told.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dumper.symbols import debug_files
from .rows import LAYER, Row, text

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.dwarfinfo import DWARFInfo

    from .database import Database

_FILE_MOST = 1 << 30  # bytes of a file of debug information
_PROGRAM_MOST = 1 << 20  # bytes of a unit's table of lines
_SECONDS = 2  # for finding the unit among thousands


_SAME_NAME = 16  # functions of the same name in one object

NATIVE = b"native"


class Place(NamedTuple):
    """A line of a file. Of a native function: the line at which it begins, and the absolute path as
    the compiler was told."""

    file: str
    line: int


def place_of(database: Database, row: Row) -> Place | None:
    """Where an event's function is to be looked at. None: it is not known. Raises DatabaseError."""
    if row[LAYER] != NATIVE or not database.has_column("code", "address"):
        return Place(text(row[9]), row[10])
    if row[10]:  # there was a line when it was recorded
        return Place(text(row[9]), row[10])
    names = [text(each) for each in row[7:10]]
    if any(name.encode(errors="replace") != name.encode(errors="ignore") for name in names):
        return None  # no stored text has lone surrogates
    found = database.query(
        "bbi",
        "SELECT DISTINCT CAST(object AS BLOB), CAST(build_id AS BLOB), address FROM code"
        " WHERE run = ? AND language = 'native' AND address IS NOT NULL"
        f" AND module = ? AND func = ? AND object = ? LIMIT {_SAME_NAME}",
        (row[1], *names),
    )
    places = {source_of(text(object), text(id), address) for object, id, address in found}
    return places.pop() if len(places) == 1 else None  # static functions of the same name


@lru_cache(256)
def source_of(object: str, build_id: str, address: int) -> Place | None:
    """The place of the function at an address of a shared object, as in the columns of table
    `code`. None: the debug information that is there now does not tell."""
    try:
        id = bytes.fromhex(build_id)
    except ValueError:
        return None
    for path in debug_files(object, id):
        with suppress(Exception):  # pyelftools raises whatever comes of a damaged file
            found = _look(path, address)
            if found is not None:
                return found
    return None


def _look(path: str, address: int) -> Place | None:
    from elftools.elf.elffile import ELFFile  # takes 60 ms

    if os.stat(path).st_size > _FILE_MOST:
        return None
    with open(path, "rb") as file:
        elf = ELFFile(file)
        if not elf.has_dwarf_info(strict=True):
            return None
        information = elf.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
        for unit in _units(information, address):
            found = _line(information, unit, address)
            if found is not None:
                return found
    return None


def _units(information: DWARFInfo, address: int) -> Iterator[CompileUnit]:
    """The compilation units that may have the function: the right one first, if the compiler has
    made an index (gcc does, clang does not)."""
    index = information.get_aranges()
    offset = index.cu_offset_at_addr(address) if index is not None and index.entries else None
    if offset is not None:
        yield information.get_CU_at(offset)
        return
    end = time.monotonic() + _SECONDS
    for unit in information.iter_CUs():
        if time.monotonic() > end:
            return
        if _has(information, unit, address):
            yield unit


def _has(information: DWARFInfo, unit: CompileUnit, address: int) -> bool:
    """Whether a unit has code at an address."""
    from elftools.dwarf.ranges import BaseAddressEntry

    given = unit.get_top_DIE().attributes
    low, high = given.get("DW_AT_low_pc"), given.get("DW_AT_high_pc")
    if low is not None and high is not None:
        end = high.value if high.form == "DW_FORM_addr" else low.value + high.value
        return bool(low.value <= address < end)
    ranges = given.get("DW_AT_ranges")
    lists = information.range_lists()
    if ranges is None or lists is None:
        return False
    base = low.value if low is not None else 0
    for entry in lists.get_range_list_at_offset(ranges.value, unit):
        if isinstance(entry, BaseAddressEntry):
            base = entry.base_address
            continue
        start = 0 if entry.is_absolute else base
        if start + entry.begin_offset <= address < start + entry.end_offset:
            return True
    return False


def _line(information: DWARFInfo, unit: CompileUnit, address: int) -> Place | None:
    program = information.line_program_for_CU(unit)
    if program is None or program.program_end_offset - program.program_start_offset > _PROGRAM_MOST:
        return None
    before = None
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.address == address and not state.end_sequence and state.line:
            return Place(_file(program, unit, state.file), state.line)
        if before is not None and before.address < address < state.address and before.line:
            return Place(_file(program, unit, before.file), before.line)
        before = None if state.end_sequence else state
    return None


def _file(program: Any, unit: CompileUnit, number: int) -> str:
    """The path of a file of a table of lines. Before DWARF 5 files count from 1, and folder 0 is
    the unit's; since then, both count from 0."""
    header = program.header
    is_new = header.version >= 5
    entry = header.file_entry[number if is_new else number - 1]
    folders = [os.fsdecode(folder) for folder in header.include_directory]
    given = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
    folder = os.fsdecode(given.value) if given is not None else ""
    if is_new:
        folder = os.path.join(folder, folders[entry.dir_index])
    elif entry.dir_index:
        folder = os.path.join(folder, folders[entry.dir_index - 1])
    return os.path.normpath(os.path.join(folder, os.fsdecode(entry.name)))
