"""Names of native functions: symbols of shared objects, and demangling."""

import random
import subprocess
from pathlib import Path

import pytest
from pytracer.dumper.demangle import demangled
from pytracer.dumper.symbols import ElfFile
from pytracer.dumper.symbols import function_names as looked_up

from native_libraries import HAS_CPP, INSTRUMENTED, NO_CPP, compiled, function_names, make
from shared import Shared


@pytest.fixture(scope="module", params=["libnative.so", "libshop.so"])
def library(shared: Shared, request: pytest.FixtureRequest) -> Path:
    library = shared("native-libraries", make) / request.param
    if request.param == "libshop.so" and not HAS_CPP:
        pytest.skip(NO_CPP)
    return library


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("main", "main"),
        ("_Z3addii", "add(int, int)"),
        ("_ZN4shop5Order5totalEi", "shop::Order::total(int)"),
        ("_Z3addii.constprop.0", "add(int, int) [clone .constprop.0]"),
        ("compute.part.0", "compute.part.0"),
        ("_Zwrong", "_Zwrong"),
        # https://rust-lang.github.io/rfcs/2603-rust-symbol-name-mangling-v0.html, and rustc's own
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
        ("_ZN47_$LT$app..Order$u20$as$u20$core..fmt..Debug$GT$3fmt17h0123456789abcdefE",
         "<app::Order as core::fmt::Debug>::fmt"),
        ("_RNvC7mycrate3foo", "mycrate::foo"),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("_RNvMC7mycrateNtB2_3Foo3bar", "<mycrate::Foo>::bar"),
        ("_RNvXC7mycrateNtB2_3FooNtB2_3Bar3baz", "<mycrate::Foo as mycrate::Bar>::baz"),
        ("_RINvC7mycrate3fooleE", "mycrate::foo::<i32, str>"),
        ("_RNCNvC7mycrate3foo0", "mycrate::foo::{closure#0}"),
        ("_RINvC7mycrate3fooKj7b_E", "mycrate::foo::<123>"),
        ("_RINvC7mycrate3fooRShQlTxyEE", "mycrate::foo::<&[u8], &mut i32, (i64, u64)>"),
        ("_RNvC7mycrateu8gdel_5qa", "mycrate::gödel"),
        ("_RNvC7mycrate", "_RNvC7mycrate"),
    ],
)  # fmt: skip
def test_names_as_people_write_them(name: str, meant: str) -> None:
    assert demangled(name) == meant


def test_each_function_that_nm_knows(library: Path) -> None:
    names = function_names(library)
    with ElfFile(str(library)) as file:
        build_id = file.build_id()
    found = looked_up(str(library), build_id, names)
    own = {address: name for address, name in found.items() if "::" in name or name.isidentifier()}
    assert len(own) > 8
    for address, name in found.items():
        assert name in names[address]


def test_another_file_at_the_same_place_gives_no_names(library: Path) -> None:
    addresses = list(function_names(library))
    assert looked_up(str(library), b"\1" * 20, addresses) == {}
    assert looked_up(str(library.with_name("none.so")), b"\1" * 20, addresses) == {}


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_read(library: Path, tmp_path: Path, seed: int) -> None:
    whole = library.read_bytes()
    addresses = list(function_names(library))
    chance = random.Random(seed)
    path = tmp_path / "damaged.so"
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 3, 30))):
            place = chance.choice(
                (chance.randrange(64), chance.randrange(len(data)), -chance.randrange(1, 3000))
            )
            data[place] = chance.randrange(256)
        path.write_bytes(data[: chance.choice((len(data), chance.randrange(len(data))))])
        looked_up(str(path), b"", addresses)
    path.write_bytes(b"\x7fELF\x02\x01" + b"\xff" * 58)
    assert looked_up(str(path), b"", addresses) == {}


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    pipe = tmp_path / "libpipe.so"
    subprocess.run(["mkfifo", str(pipe)], check=True)
    assert looked_up(str(pipe), b"", [1]) == {}


def test_exported_names_of_a_stripped_library(tmp_path: Path) -> None:
    library = compiled("int plugin(int x) { return x; }\n", tmp_path / "libplugin.so", *INSTRUMENTED[:3])
    (address,) = [address for address, names in function_names(library).items() if "plugin" in names]
    subprocess.run(["strip", str(library)], check=True)
    assert looked_up(str(library), b"", [address, address + 1]) == {address: "plugin"}
