"""Lines of native functions, from the debug information that is there when somebody looks."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from pytracer.dumper.symbols import ElfFile
from pytracer.reader.database import Database
from pytracer.reader.native_source import Place, source_of
from pytracer.reader.query import EVERY, pages
from pytracer.reader.rows import Row
from pytracer.reader.screen.detail import detail, detail_lines
from pytracer.reader.screen.effects import CommandError, Execute
from pytracer.reader.screen.lines import DisplayOptions
from pytracer.reader.screen.view import Item

from native_libraries import INSTRUMENTED, SUPPORT, compiled, function_names
from recording import Record, Recording
from sessions import Reader

SOURCE = """
int leaf(int x)
{
    return x + 1;
}

static int same(int x) { return leaf(x); }

int chain(int x) { return same(x); }
"""
OTHER = "static int same(int x) { return x; }\nint other(int x) { return same(x); }\n"


def build_id(library: Path) -> str:
    with ElfFile(str(library)) as file:
        return file.build_id().hex()


def looked_up(library: Path) -> dict[int, Place | None]:
    found = {
        address: source_of(str(library), build_id(library), address) for address in function_names(library)
    }
    source_of.cache_clear()
    return found


def told_by_addr2line(library: Path) -> dict[int, Place | None]:
    addresses = [hex(address) for address in function_names(library)]
    done = subprocess.run(
        ["addr2line", "-e", str(library), *addresses], check=True, capture_output=True, text=True
    )
    found: dict[int, Place | None] = {}
    for address, line in zip(function_names(library), done.stdout.splitlines(), strict=True):
        file, _, number = line.split(" ")[0].rpartition(":")
        found[address] = Place(file, int(number)) if number.isdigit() and int(number) else None
    return found


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", ["-gdwarf-4", "-gdwarf-5", "-gdwarf-5 -gz -ffunction-sections"])
def test_lines_as_addr2line_has_them(
    compiler: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    monkeypatch.setenv("CC", compiler)
    library = compiled(
        SUPPORT / "native_library.c", tmp_path / "libnative.so", "-O2", *flags.split(), "-Wl,--build-id"
    )
    told = told_by_addr2line(library)
    lines = ["", *(SUPPORT / "native_library.c").read_text().splitlines()]
    known = 0
    for address, place in looked_up(library).items():
        other = told[address]
        if place is None or other is None:
            assert place is other
            continue
        # of several lines at the beginning it takes the last one, which is in the body
        assert (place.file, 0 <= other.line - place.line <= 3) == (other.file, True)
        for name in filter(str.isidentifier, function_names(library)[address]):  # no part of one
            assert f"{name}(" in "".join(lines[place.line - 1 : place.line + 1])
        known += 1
    assert known >= 12


def test_nothing_is_told_of_another_file_or_without_debug_information(tmp_path: Path) -> None:
    library = compiled(SOURCE, tmp_path / "libapp.so", *INSTRUMENTED)
    (address,) = [address for address, group in function_names(library).items() if "leaf" in group]
    before = build_id(library)
    assert source_of(str(library), before, address) == Place(str(tmp_path / "libapp.c"), 3)
    debug = tmp_path / "libapp.debug"
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library], check=True)
    source_of.cache_clear()
    assert source_of(str(library), before, address) == Place(str(tmp_path / "libapp.c"), 3)
    debug.unlink()
    source_of.cache_clear()
    assert source_of(str(library), before, address) is None
    compiled("\n" + SOURCE, library, *INSTRUMENTED)
    assert build_id(library) != before
    source_of.cache_clear()
    assert source_of(str(library), before, address) is None
    assert source_of(str(tmp_path / "gone.so"), before, address) is None
    assert source_of(str(library), "no hex", address) is None


@pytest.mark.parametrize("seed", range(3))
def test_damaged_debug_information(seed: int, tmp_path: Path) -> None:
    """Whatever the file says, an answer comes."""
    library = compiled(SOURCE, tmp_path / "libapp.so", *INSTRUMENTED)
    whole, addresses = library.read_bytes(), list(function_names(library))
    chance = random.Random(seed)
    sections = whole.index(b".debug_line") if b".debug_line" in whole else len(whole)
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30))):
            data[chance.randrange(sections // 2, len(data))] = chance.randrange(256)
        library.write_bytes(data)
        source_of.cache_clear()
        for address in addresses:
            place = source_of(str(library), build_id_or_none(library), address)
            assert place is None or isinstance(place.line, int)


def build_id_or_none(library: Path) -> str:
    try:
        return build_id(library)
    except Exception:
        return ""


# ---- on the screen -------------------------------------------------------------------------------


@pytest.fixture
def recorded(record: Record, tmp_path: Path) -> Recording:
    """A program that calls functions of libapp.so."""
    compiled(OTHER, tmp_path / "libother.so", *INSTRUMENTED)
    library = compiled(SOURCE, tmp_path / "libapp.so", *INSTRUMENTED)
    return record(f"import ctypes\nctypes.CDLL({str(library)!r}).chain(1)\n", "--native")


def rows(recording: Recording) -> list[Row]:
    database = Database(str(recording.database))
    found = [row for page in pages(database, EVERY, lambda row: row) for row in page]
    database.close()
    return [row for row in found if row[15] == b"native"]


def pane(recording: Recording, row: Row) -> list[str]:
    database = Database(str(recording.database))
    found = detail(database, Item(row))
    database.close()
    return [line.text for line in detail_lines(found, 200, DisplayOptions())]


def test_the_pane_shows_the_source(recorded: Recording, tmp_path: Path) -> None:
    (row,) = [row for row in rows(recorded) if row[6] == "return" and row[8] == b"leaf"]
    lines = pane(recorded, row)
    assert f"source  {tmp_path / 'libapp.c'}:3" in lines
    assert "  > 3  {" in lines or "  > 2  int leaf(int x)" in lines
    assert f"  object    {tmp_path / 'libapp.so'}" in lines
    subprocess.run(["strip", str(tmp_path / "libapp.so")], check=True)
    source_of.cache_clear()
    lines = pane(recorded, row)
    assert not [line for line in lines if line.startswith("source")]
    assert f"  object    {tmp_path / 'libapp.so'}" in lines


def test_the_editor_opens_at_the_line_of_a_native_function(
    recorded: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "vi"
    editor.write_text("#!/bin/sh\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    reader = Reader(recorded.database)
    reader.session.fit(120, 40)
    for _ in range(3):
        if not any(item.row[8] == b"same" for item in reader.session.browser.items):
            reader.press("M")
    items = reader.session.browser.items
    reader.session.browser.cursor = next(at for at, item in enumerate(items) if item.row[8] == b"same")
    (effect,) = reader.press("v")
    assert isinstance(effect, Execute)
    assert effect.command == [str(editor), "+7", str(tmp_path / "libapp.c")]
    subprocess.run(["strip", str(tmp_path / "libapp.so")], check=True)
    source_of.cache_clear()
    with pytest.raises(CommandError, match=r"libapp\.so has no debug information"):
        reader.press("v")
