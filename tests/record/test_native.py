"""Functions of shared objects compiled with -finstrument-functions: --native."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from native_libraries import HAS_CPP, INSTRUMENTED, NO_CPP, SUPPORT, compiled, counted, function_names, make
from recording import PYTRACE, Event, Record, Recording, environment, read
from shared import Shared

LEFT = "<left by longjmp or an exception>"

HEAD = """
import ctypes, os, signal, sys, threading, time
lib = ctypes.CDLL({library!r})
shop = ctypes.CDLL({shop!r}) if os.path.exists({shop!r}) else None
back = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
"""


def head(folder: Path) -> str:
    return HEAD.format(library=str(folder / "libnative.so"), shop=str(folder / "libshop.so"))


@pytest.fixture(scope="module")
def folder(shared: Shared) -> Path:
    return shared("native-libraries", make)


@pytest.fixture
def program(record: Record, folder: Path):
    """program(source, *options): records a script that has the library as `lib`."""

    def recorded(source: str, *options: str, **more: object) -> Recording:
        return record(head(folder) + source, *(options or ["--native"]), **more)

    return recorded


def native(recording: Recording) -> list[Event]:
    return [event for event in recording.events if event.layer == "native"]


def threads(events: list[Event]) -> list[list[Event]]:
    found = defaultdict(list)
    for event in events:
        found[event.pid, event.tid].append(event)
    return list(found.values())


def sql(recording: Recording, query: str) -> list[int]:
    """The first row's numbers."""
    command = [*PYTRACE, "sql", str(recording.database), query, "--format", "csv"]
    done = subprocess.run(
        command, cwd=recording.database.parent, env=environment(), check=True, capture_output=True
    )
    return [int(each) for each in done.stdout.decode().splitlines()[-1].split(",")]


def shown(events: list[Event]) -> list[str]:
    """`  > leaf`, indented by depth from the smallest."""
    least = min(event.depth for event in events)
    signs = {"call": ">", "return": "<", "exception": "!"}
    return [f"{'  ' * (event.depth - least)}{signs[event.kind]} {event.func}" for event in events]


# ---- calls, as an independent count has them -----------------------------------------------------

PLAIN = """
lib.chain(3)
lib.factorial(5)
if shop:
    shop.throws(4)
lib.run_threads(5, ctypes.c_long(3))
"""


def test_each_call_and_return_with_its_name_and_depth(program, folder: Path) -> None:
    recording = program(PLAIN)
    expected = sorted(
        map(
            str,
            [
                [(t.begins, t.depth, sorted(t.names)) for t in one]
                for one in counted(recording.script, folder)
            ],
        )
    )
    libraries = [folder / "libnative.so"] + [folder / "libshop.so"] * HAS_CPP
    groups = [group for library in libraries for group in function_names(library).values()]
    same = {name: sorted(group) for group in groups for name in group}
    made = []
    for one in threads(native(recording)):
        least = min(event.depth for event in one)
        made.append([(event.kind == "call", event.depth - least, same[event.func]) for event in one])
    assert sorted(map(str, made)) == expected
    assert len(made) == 6
    assert {event.module for event in native(recording)} == {library.name for library in libraries}
    assert {event.file for event in native(recording)} == {str(library) for library in libraries}


@pytest.mark.skipif(not HAS_CPP, reason=NO_CPP)
def test_names_of_cpp_are_demangled(program) -> None:
    recording = program("shop.throws(3)")
    functions = {event.func for event in native(recording)}
    assert {"throws", "shop::Order::total(int) const", "int shop::twice<int>(int)"} <= functions
    ends = [event.kind for event in native(recording) if "total" in event.func]
    assert ends == ["call", "return"] * 3  # gcc reports the end of a function that throws, too


def test_calls_back_into_python_nest_below(program) -> None:
    recording = program(
        """
        leaf = lib.leaf
        def double(x):
            return leaf(x) * 2

        assert lib.call_back(back(double), 2) == 6
        """.replace("\n        ", "\n")
    )
    calls = [event for event in recording.events if event.kind in ("call", "return")]
    start = next(i for i, event in enumerate(calls) if event.func == "call_back")
    assert shown(calls[start : start + 10]) == [
        "> call_back", "  > double", "    > leaf", "    < leaf", "  < double",
        "  > double", "    > leaf", "    < leaf", "  < double", "< call_back",
    ]  # fmt: skip


def test_durations_and_times_are_in_order(program) -> None:
    recording = program("lib.chain(2)")
    events = native(recording)
    assert [event.time for event in events] == sorted(event.time for event in events)
    (outer,) = [event for event in events if event.func == "chain" and event.kind == "return"]
    (begin,) = [event for event in events if event.func == "chain" and event.kind == "call"]
    assert abs(outer.duration - (outer.time - begin.time)) < 20


def test_nothing_without_the_option(program) -> None:
    recording = program("lib.chain(2)", "--no-stdlib")
    assert native(recording) == []


# ---- calls that are left -------------------------------------------------------------------------


def test_calls_left_by_longjmp_are_closed_and_marked(program) -> None:
    recording = program("lib.jumps(2)\nlib.leaf(7)")
    once = ["  > deep", "    > deep", "      > deep", "      ! deep", "    ! deep", "  ! deep"]
    events = native(recording)
    assert shown(events) == ["> jumps", *once, *once, "  > leaf", "  < leaf", "< jumps", "> leaf", "< leaf"]
    assert {event.value for event in events if event.kind == "exception"} == {LEFT}
    assert {event.kind for event in recording.of(func="<module>")} >= {"call", "return"}


def test_calls_that_end_with_the_python_function_around_them(program, tmp_path: Path) -> None:
    """A function that is left to Python, which goes on: here ctypes calls one that jumps back."""
    library = compiled(
        """
        #include <setjmp.h>
        #define QUIET __attribute__((no_instrument_function))
        static jmp_buf place;
        void inner(int n) { longjmp(place, n); }
        void outer(int n) { inner(n); }
        QUIET int guarded(int n) { return setjmp(place) ? 1 : (outer(n), 0); }
        """,
        tmp_path / "libleft.so",
        "-O0",
        "-finstrument-functions",
    )
    recording = program(
        f"""
left = ctypes.CDLL({str(library)!r})
def once():
    return left.guarded(1)
def many():
    for _ in range(100):
        left.guarded(1)
    return left.guarded(1)
once()
many()
lib.leaf(1)
"""
    )
    events = [event for event in native(recording) if event.module == "libleft.so"]
    assert [event.kind for event in events].count("call") == 2 * 102
    assert [event.kind for event in events].count("exception") == 2 * 102
    (leaf,) = [event for event in native(recording) if event.func == "leaf" and event.kind == "call"]
    (main,) = [event for event in recording.of("call") if event.func == "<module>"]
    assert leaf.depth == main.depth + 1
    # a call from deeper in the stack seems to be below the one that was left, which then stays
    assert max(event.depth for event in events) < main.depth + 3 + 20


def test_between_calls_of_functions_in_c(program, tmp_path: Path) -> None:
    """Native functions nest below the C function that calls them, and end with it at the latest."""
    library = compiled(
        """
        #include <setjmp.h>
        #define QUIET __attribute__((no_instrument_function))
        static jmp_buf place;
        void inner(int n) { longjmp(place, n); }
        void outer(int n) { inner(n); }
        QUIET int guarded(int n) { return setjmp(place) ? 1 : (outer(1), 0); }
        """,
        tmp_path / "libleft.so",
        "-O0",
        "-finstrument-functions",
    )
    recording = program(
        f"""
leaf, guarded = lib.leaf, ctypes.CDLL({str(library)!r}).guarded
def key(x):
    return abs(leaf(x))
def work():
    sorted([7], key=leaf)
    sorted([8], key=key)
    sorted([9, 5], key=guarded)
    sorted([6])
work()
""",
        "--native",
        "--c-calls",
    )
    ctypes_call = "CFuncPtr.__call__"  # that of an object: the profile function of 3.11 tells no such
    names = {"work", "key", "leaf", "inner", "outer", "sorted", "abs", ctypes_call}
    in_key = ["> leaf", "< leaf"]
    if sys.version_info >= (3, 12):
        in_key = [f"> {ctypes_call}", *("  " + each for each in in_key), f"< {ctypes_call}"]
    left = ["    > outer", "      > inner", "      ! inner", "    ! outer"]
    assert shown([event for event in recording.events if event.func in names]) == [
        "> work",
        "  > sorted", "    > leaf", "    < leaf", "  < sorted",
        "  > sorted",
        "    > key", *("      " + each for each in in_key), "      > abs", "      < abs", "    < key",
        "  < sorted",
        "  > sorted", *left, *left, "  < sorted",
        "  > sorted", "  < sorted",
        "< work",
    ]  # fmt: skip
    layers = {event.func: event.layer for event in recording.events}
    assert [layers[name] for name in ("work", "sorted", "leaf")] == ["python", "c", "native"]


@pytest.mark.skipif(shutil.which("clang++") is None, reason="clang is not installed")
def test_calls_left_by_exceptions_are_closed_and_marked(
    program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With clang, a function that throws does not tell that it ends."""
    monkeypatch.setenv("CXX", "clang++")
    flags = ["-O2", "-g", "-finstrument-functions-after-inlining"]
    library = compiled(SUPPORT / "native_shop.cpp", tmp_path / "libclang.so", *flags)
    recording = program(f"ctypes.CDLL({str(library)!r}).throws(3)")
    ends = [event for event in native(recording) if "Order::total" in event.func]
    assert [event.kind for event in ends] == ["call", "return", *["call", "exception"] * 2]
    assert {event.value for event in ends if event.kind == "exception"} == {LEFT}
    assert len({event.depth for event in ends}) == 1
    assert native(recording)[-1].func == "throws"


# ---- libraries that come later -------------------------------------------------------------------

PLUGIN = "int plugin(int x) { return x + %d; }\n"


def test_a_library_that_native_code_loads(program, tmp_path: Path) -> None:
    library = compiled(PLUGIN % 5, tmp_path / "libplugin.so", *INSTRUMENTED[:3])
    recording = program(f"assert lib.loads({os.fsencode(library)!r}, b'plugin', 1) == 6")
    assert shown(native(recording)) == ["> loads", "  > plugin", "  < plugin", "< loads"]


def test_one_library_after_the_other_at_the_same_address(program, tmp_path: Path) -> None:
    libraries = [
        compiled(f"int plugin_{n}(int x) {{ return x + {n}; }}\n", tmp_path / f"lib{n}.so", *INSTRUMENTED[:3])
        for n in range(3)
    ]
    recording = program(
        "".join(
            f"assert lib.loads({os.fsencode(library)!r}, b'plugin_{n}', 0) == {n + 1}\n"
            for _ in range(2)
            for n, library in enumerate(libraries)
        )
    )
    plugins = [(event.module, event.func) for event in native(recording) if event.kind == "call"]
    one_round = [("lib0.so", "plugin_0"), ("lib1.so", "plugin_1"), ("lib2.so", "plugin_2")]
    assert [each for each in plugins if each[1] != "loads"] == one_round * 2


def test_dlsym_still_knows_who_asks(program) -> None:
    recording = program("print(lib.next_is_another())")
    assert recording.stdout == "1\n"


def test_only_the_chosen_objects(program, folder: Path, tmp_path: Path) -> None:
    library = compiled(PLUGIN % 5, tmp_path / "libplugin.so", *INSTRUMENTED[:3])
    source = f"lib.loads({os.fsencode(library)!r}, b'plugin', 1)"
    recording = program(source, "--native", str(library))
    assert {event.module for event in native(recording)} == {"libplugin.so"}
    recording = program(source, f"--native={folder}")
    assert {event.module for event in native(recording)} == {"libnative.so"}


def test_a_program_that_profiles_itself_keeps_its_functions(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('run')")
    changes = {"LD_PRELOAD": str(folder / "counter.so"), "NATIVE_COUNTS": str(tmp_path / "counts")}
    done = subprocess.run(
        [*PYTRACE, "--native", str(script)], cwd=tmp_path, env=environment(**changes), capture_output=True
    )
    assert done.returncode == 2
    assert b"the program has a __cyg_profile_func_enter of its own" in done.stderr
    assert done.stdout == b""


# ---- names ---------------------------------------------------------------------------------------


def test_names_from_a_separate_file(program, tmp_path: Path) -> None:
    library = compiled(
        "__attribute__((noinline)) static int inside(int x) { return x * 3; }\n"
        "int plugin(int x) { return inside(x); }\n",
        tmp_path / "libplugin.so",
        "-O1",
        "-g",
        "-finstrument-functions",
    )
    debug = tmp_path / ".debug" / "libplugin.debug"
    debug.parent.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", library, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library], check=True)
    source = f"lib.loads({os.fsencode(library)!r}, b'plugin', 1)"
    assert "  > inside" in [line[2:] for line in shown(native(program(source)))]
    debug.unlink()
    functions = [event.func for event in native(program(source)) if event.module == "libplugin.so"]
    assert functions[0] == "plugin"
    assert functions[1].startswith("0x")


def test_names_stay_when_the_library_is_gone(program, tmp_path: Path) -> None:
    library = compiled(PLUGIN % 5, tmp_path / "libplugin.so", *INSTRUMENTED[:3])
    source = f"lib.loads({os.fsencode(library)!r}, b'plugin', 1)"
    recording = program(source)
    library.unlink()
    assert "  > plugin" in shown(native(recording))


# ---- threads, forks, signals, ends ---------------------------------------------------------------


def test_many_threads_in_a_small_buffer(program) -> None:
    """Threads without the GIL, whose chunks others take back: each event is stored, or counted."""
    recording = program(
        """
def work(n):
    return n + 1
def python():
    for n in range(20000):
        work(n)
helper = threading.Thread(target=python)
helper.start()
for _ in range(3):
    lib.run_threads(200, ctypes.c_long(40))
helper.join()
""",
        "--native",
        "--buffer-size",
        "1MiB",
    )
    (made,) = sql(
        recording, "SELECT count(*) - sum(kind = 'lost') FROM event WHERE layer = 'native' OR kind = 'lost'"
    )
    (lost,) = sql(recording, "SELECT lost FROM run")
    (python,) = sql(
        recording, "SELECT count(*) FROM event WHERE func IN ('work', 'python') AND layer = 'python'"
    )
    work = 2 + 40 * (2 + 2 * (2 + 2 + 2 + 2))  # chain, and of each round hidden, leaf, stores, leaf
    assert python <= 2 * 20001
    assert made + python + lost >= 3 * (2 + 200 * work) + 2 * 20001
    assert made <= 3 * (2 + 200 * work)


def test_threads_that_python_does_not_know_have_streams_of_their_own(program) -> None:
    recording = program("lib.run_threads(2, ctypes.c_long(1))")
    events = native(recording)
    main = {event.tid for event in events if event.func == "run_threads"}
    assert len({event.tid for event in events}) == 3
    for one in threads(events):
        if one[0].tid not in main:
            assert (one[0].func, one[0].depth, one[-1].func) == ("work", 0, "work")


def test_forks_of_native_code_and_of_python(program) -> None:
    recording = program(
        """
assert lib.forks() == 3
if os.fork() == 0:
    lib.chain(1)
    os._exit(0)
os.wait()
lib.leaf(1)
"""
    )
    processes = defaultdict(list)
    for event in native(recording):
        if event.kind == "call":
            processes[event.pid].append(event.func)
    chain = ["chain", "hidden", "leaf", "stores", "leaf"]
    assert sorted(processes.values()) == sorted([["forks", "leaf"], [*chain, "leaf"], chain])


def test_signal_handlers_in_the_middle_of_everything(program) -> None:
    recording = program(
        """
def work(n):
    lib.leaf(n)
    return [str(n)] * 3
lib.alarms(ctypes.c_long(50))
end = time.monotonic() + 1
while time.monotonic() < end:
    for n in range(100):
        work(n)
lib.alarms.restype = ctypes.c_long
print(lib.alarms(ctypes.c_long(0)))
"""
    )
    assert int(recording.stdout) > 100
    events = native(recording)
    handlers = [event for event in events if event.func.startswith("on_alarm")]
    assert handlers
    assert [event.kind for event in events].count("call") == [event.kind for event in events].count("return")


def test_killed_in_the_middle(tmp_path: Path, folder: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        head(folder)
        + "lib.chain(1)\nprint('ready', flush=True)\nlib.run_threads(2, ctypes.c_long(1 << 40))\n"
    )
    database = tmp_path / "traces.sqlite"
    command = [*PYTRACE, "-q", "-o", str(database), "--native", "--max-size", "50MB", str(script)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        started.send_signal(signal.SIGKILL)
    end = time.monotonic() + 60
    while any(Path("/dev/shm").glob(f"pytrace-{os.getuid()}-{started.pid}-*")) and time.monotonic() < end:
        os.sched_yield()
    rows = list(read(database))
    assert "chain" in {row["func"] for row in rows if row.get("layer") == "native"}


def test_taken_back_at_the_end(folder: Path, tmp_path: Path) -> None:
    """The entries are as before: nothing of ours is called any more."""
    script = tmp_path / "script.py"
    script.write_text(
        head(folder)
        + """
from pytracer import trace

def entries():
    hook = [line.split() for line in open("/proc/self/maps") if "/_hook." in line]
    ranges = [tuple(int(end, 16) for end in line[0].split("-")) for line in hook if "x" in line[1]]
    found = 0
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        for line in open("/proc/self/maps"):
            if "libnative.so" not in line:
                continue
            start, end = (int(each, 16) for each in line.split()[0].split("-"))
            memory.seek(start)
            words = memoryview(memory.read(end - start)).cast("Q")
            found += sum(any(low <= word < high for low, high in ranges) for word in words)
    return found

lib.leaf(1)
before = entries()
with trace(output=sys.argv[1], native="all", quiet=True):
    during = entries()
    lib.chain(1)
print(before, during, entries())
lib.chain(1)
"""
    )
    database = script.with_suffix(".sqlite")
    done = subprocess.run(
        [sys.executable, str(script), str(database)],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before, during, after = map(int, done.stdout.split())
    assert before == after == 0
    assert during >= 3  # enter, exit, dlsym
    calls = [row["func"] for row in read(database) if row.get("layer") == "native" and row["kind"] == "call"]
    assert calls == ["chain", "hidden", "leaf", "stores", "leaf"]


# ---- other tools ---------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("uftrace") is None, reason="uftrace is not installed")
def test_counts_as_uftrace_has_them(program, folder: Path, tmp_path: Path) -> None:
    recording = program(PLAIN)
    script = tmp_path / "plain.py"
    script.write_text(head(folder) + PLAIN)
    data = tmp_path / "uftrace.data"
    command = ["uftrace", "record", "--force", "--no-libcall", "-d", str(data), sys.executable, str(script)]
    subprocess.run(command, check=True, env=environment())
    report = subprocess.run(
        ["uftrace", "report", "-d", str(data), "-f", "call", "--demangle=full"],
        check=True,
        capture_output=True,
        text=True,
    )
    expected = {}
    for line in report.stdout.splitlines()[2:]:
        count, name = line.split(None, 1)
        if not name.startswith("linux:"):
            expected[name] = int(count)
    counts: dict[str, int] = defaultdict(int)
    for event in native(recording):
        counts[event.func] += event.kind == "call"
    assert counts == expected
