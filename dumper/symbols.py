"""The names of native functions, from the symbols of the shared objects that they are in.

The hook stores the object's file, its build id, and the function's address in it. The dumper looks
the name up as soon as the function is defined, so that it is in the recording if the file is gone
later. A name comes from the object's `.symtab`, else from a separate file of debug information (by
build id, or by `.gnu_debuglink`), else from `.dynsym`. Names of C++ and Rust are demangled.

The files come from the recorded program: only regular ones are opened, whatever they say about
sizes and places is checked, and nothing of them is run.
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from .demangle import demangled

DEBUG_FOLDERS = ("/usr/lib/debug",)
SECTIONS_MOST = 1 << 16
SECTION_MOST = 1 << 29  # bytes of symbols, or of their names
NAME_MOST = 4096  # bytes of a name
BUILD_ID = 3  # NT_GNU_BUILD_ID
SYMTAB, STRTAB, NOTE, NOBITS, DYNSYM = 2, 3, 7, 8, 11  # types of sections
FUNCTION, INDIRECT = 2, 10  # types of symbols
BINDINGS = {1: 0, 2: 1, 0: 2}  # global, weak, local: the order in which they are preferred

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
NOTE_HEADER = struct.Struct("<III")


class NotElf(Exception):
    """The file is none of those that are read here, or makes no sense."""


class Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class ElfFile:
    """An open ELF file of 64 bits. Its methods may raise NotElf and OSError."""

    def __init__(self, path: str) -> None:
        if not stat.S_ISREG(os.stat(path).st_mode):  # opening a pipe or a device may change it
            raise NotElf
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise NotElf
            self.sections = self._sections()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> "ElfFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def _read(self, offset: int, size: int) -> bytes:
        """Not mapped: the file may become shorter meanwhile."""
        if size > SECTION_MOST or offset > os.fstat(self._file).st_size:
            raise NotElf
        data = os.pread(self._file, size, offset)
        if len(data) != size:
            raise NotElf
        return data

    def _sections(self) -> list[Section]:
        ident, _, _, _, _, _, at, _, _, _, _, size, count, _ = HEADER.unpack(self._read(0, HEADER.size))
        if ident[:6] != b"\x7fELF\x02\x01" or not at or size != SECTION.size:
            raise NotElf
        if count == 0:  # there are so many that the first section has their number
            count = SECTION.unpack(self._read(at, SECTION.size))[5]
        if count > SECTIONS_MOST:
            raise NotElf
        return [Section(*fields) for fields in SECTION.iter_unpack(self._read(at, count * SECTION.size))]

    def data(self, section: Section) -> bytes:
        if section.type == NOBITS:
            raise NotElf
        return self._read(section.offset, section.size)

    def named(self, name: bytes) -> bytes | None:
        """The content of the section of this name."""
        index = HEADER.unpack(self._read(0, HEADER.size))[-1]
        if index >= len(self.sections):
            return None
        names = self.data(self.sections[index])
        for section in self.sections:
            if names[section.name : section.name + len(name) + 1] == name + b"\0":
                return self.data(section)
        return None

    def build_id(self) -> bytes:
        """Empty: it has none."""
        for section in self.sections:
            if section.type != NOTE:
                continue
            notes, at = self.data(section), 0
            while at + NOTE_HEADER.size <= len(notes):
                name_size, size, kind = NOTE_HEADER.unpack_from(notes, at)
                start = at + NOTE_HEADER.size + (name_size + 3 & ~3)
                if kind == BUILD_ID and notes[at + NOTE_HEADER.size :][:4] == b"GNU\0":
                    return notes[start : start + size]
                at = start + (size + 3 & ~3)
        return b""

    def functions(self, kind: int, wanted: set[int]) -> dict[int, bytes]:
        """The names of the functions at these addresses, from the tables of this type."""
        best: dict[int, tuple[int, bytes]] = {}
        for section in self.sections:
            if section.type != kind or section.link >= len(self.sections):
                continue
            symbols, names = self.data(section), self.data(self.sections[section.link])
            whole = len(symbols) - len(symbols) % SYMBOL.size
            for name, info, _, index, address, _ in SYMBOL.iter_unpack(memoryview(symbols)[:whole]):
                if address not in wanted or info & 15 not in (FUNCTION, INDIRECT) or not index:
                    continue
                end = names.find(b"\0", name, name + NAME_MOST)
                found = BINDINGS.get(info >> 4, 3), names[name : end if end >= 0 else name + NAME_MOST]
                if found[1] and (address not in best or found < best[address]):
                    best[address] = found
        return {address: name for address, (_, name) in best.items()}


def function_names(path: str, build_id: bytes, addresses: Iterable[int]) -> dict[int, str]:
    """The demangled names of the functions at these addresses of a shared object. Those that have
    no name are left out, and all of them if the file is not the one with this build id any more."""
    wanted = set(addresses)
    found: dict[int, bytes] = {}
    for source, kinds in _sources(path, build_id):
        with suppress(OSError, ValueError, NotElf, struct.error), ElfFile(source) as file:
            if source == path and build_id and file.build_id() != build_id:
                continue
            for kind in kinds:
                found |= file.functions(kind, wanted - found.keys())
        if found.keys() >= wanted:
            break
    return {address: demangled(name.decode("utf-8", "replace")) for address, name in found.items()}


def _sources(path: str, build_id: bytes) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Files that may have the symbols, and the tables to read of each."""
    yield path, (SYMTAB,)
    for each in _separate_files(path, build_id):
        yield each, (SYMTAB,)
    yield path, (DYNSYM,)


def debug_files(path: str, build_id: bytes) -> Iterator[str]:
    """Files that may have the debug information of a shared object: itself, if it still has this
    build id, and separate ones."""
    with suppress(OSError, ValueError, NotElf, struct.error), ElfFile(path) as file:
        if file.build_id() == build_id:
            yield path
    for each in _separate_files(path, build_id):
        with suppress(OSError, ValueError, NotElf, struct.error), ElfFile(each) as file:
            if file.build_id() == build_id:
                yield each


def _separate_files(path: str, build_id: bytes) -> Iterator[str]:
    """Places of separate files of debug information: by build id, and by `.gnu_debuglink`."""
    if len(build_id) > 1:
        name = build_id.hex()
        for folder in DEBUG_FOLDERS:
            yield f"{folder}/.build-id/{name[:2]}/{name[2:]}.debug"
    link = None
    with suppress(OSError, ValueError, NotElf, struct.error), ElfFile(path) as file:
        if not build_id or file.build_id() == build_id:
            link = file.named(b".gnu_debuglink")
    if link and len(link) > 4:
        name = os.fsdecode(link[: link.find(b"\0")])
        (crc,) = struct.unpack("<I", link[-4:])
        folder = os.path.dirname(path)
        if name and "/" not in name:
            places = [folder, f"{folder}/.debug", *(each + folder for each in DEBUG_FOLDERS)]
            for place in places:
                if _has_checksum(f"{place}/{name}", crc):
                    yield f"{place}/{name}"


def _has_checksum(path: str, expected: int) -> bool:
    """Whether it is a regular file whose content has this CRC."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        crc = 0
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                crc = zlib.crc32(piece, crc)
    except (OSError, ValueError):
        return False
    return crc == expected
