"""Whatever stands in a damaged database: no crash, no endless query, and the other run as it was.

Each damage, and each question after it, in a process of its own, under the sanitizers, too
(damaging.py).
"""

import ast
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import damaging
from handmade import Handmade, event
from shared import Shared

slow = pytest.mark.slow  # building the extension under sanitizers takes as long as many tests

SOURCE = Path(__file__).parents[2]
STEP = 150  # damages a process
# The sanitizers make a question ten times as slow: a usual run tries a part of the damages under
# them, and `make sanitize` tries all.
EVERY = 1 if os.environ.get("PYTRACE_TEST_DAMAGES") == "all" else 8


def write(path: Path) -> None:
    with Handmade(path) as database:
        for _ in range(2):
            run = database.run()
            database.code(run, 1, "pay", ["user", "amount"], variables=["user", "amount", "total"])
            database.code(run, 2, "walk", ["a"])
            database.type(run, 1, "app.Order")
            database.source(run, "def pay(user, amount): ...\n")
            records = [
                event("call", 1, "bob", 5),
                event("call", 2, [1, "bob", None]),
                event("yield", 2, "x", time=3),
                event("resume", 2, time=1),
                event("log", 1, "paid", "bob", names=["user"], line=4),
                event("line", 1, 5, [1, "bob"], "old", line=5, variables=[2, 0, 300], changed=2),
                event("raise", 2, ValueError("bad"), line=9),
                event("exception", 2, ValueError("bad"), elapsed=7, time=2),
                event("return", 1, "bobby", elapsed=9, time=1),
                event("lost", 3),
            ]
            for sequence in range(3):
                database.segment(run, records * 3, sequence=sequence, start=100 * sequence)


@pytest.fixture(name="original", scope="module")
def original_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "traces.sqlite"
    write(path)
    return path


@pytest.fixture(name="sanitized", scope="module")
def sanitized_fixture(shared: Shared) -> Path:
    """The extension under the address and the undefined behaviour sanitizer."""
    return shared("sanitized", build_sanitized) / "sqlite_trace.so"


# with what is promised to SQLite's planner verified
VERIFYING = ["-std=gnu11", "-g", "-fPIC", "-pthread", "-DPYTRACE_VERIFY", f"-I{SOURCE / 'csrc'}"]


def compile_query(folder: Path, *flags: str) -> list[Path]:
    """Compiles the extension's sources into a folder. Returns these."""
    (folders,) = [
        ast.literal_eval(node.value)
        for node in ast.parse((SOURCE / "setup.py").read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "QUERY"
    ]
    sources = [path for folder in folders for path in sorted((SOURCE / "csrc" / folder).glob("*.c"))]
    halves = [
        subprocess.Popen(["gcc", *VERIFYING, *flags, "-c", *sources[i::2]], cwd=folder) for i in range(2)
    ]
    assert [half.wait() for half in halves] == [0, 0]
    return sources


def build_sanitized(folder: Path) -> None:
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = compile_query(folder, "-O1", "-fno-omit-frame-pointer", *sanitize)
    objects = [source.with_suffix(".o").name for source in sources]
    link = ["gcc", "-shared", *sanitize, *objects, "-ldl", "-o", "sqlite_trace.so"]
    subprocess.run(link, cwd=folder, check=True)


@pytest.fixture(name="under_sanitizers", scope="module")
def under_sanitizers_fixture() -> dict[str, str]:
    """The environment of a process that loads `sanitized`."""
    libraries = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, encoding="utf-8", check=True
    ).stdout.strip()
    return {
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "LD_PRELOAD": libraries,
        "PYTHONMALLOC": "malloc",
    }


def installed() -> Path:
    spec = find_spec("pytracer.sqlite_trace")
    assert spec is not None
    return Path(str(spec.origin))


def run_python(*arguments: object, **changes: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(Path(damaging.__file__).parent)} | changes,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="backslashreplace",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def run(extension: Path, original: Path, folder: Path, numbers: range, **changes: str) -> None:
    run_python(damaging.__file__, extension, original, folder, *numbers, **changes)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(n, marks=slow) for n in range(STEP, damaging.COUNT, STEP))]
)
def test_damage(original: Path, tmp_path: Path, first: int) -> None:
    run(installed(), original, tmp_path, range(first, min(first + STEP, damaging.COUNT)))


@slow
@pytest.mark.parametrize("first", range(0, damaging.COUNT, STEP * EVERY))
def test_damage_under_the_sanitizers(
    original: Path, sanitized: Path, under_sanitizers: dict[str, str], tmp_path: Path, first: int
) -> None:
    last = min(first + STEP * EVERY, damaging.COUNT)
    run(sanitized, original, tmp_path, range(first, last, EVERY), **under_sanitizers)


# Asks everything; the last line is what that took at most of memory, in KiB.
ASK = """
import resource, sys
import damaging
extension, path = sys.argv[1:]
damaging.ask(path, extension, "SELECT 1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for question in damaging.QUESTIONS:
    answer = damaging.ask(path, extension, question)
    assert isinstance(answer, list), answer
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("depth", [1 << 20, 1 << 24, (1 << 31) - 1])
def test_a_depth_takes_no_memory(tmp_path: Path, depth: int) -> None:
    """Records say how deep they are, and may say anything."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        run = database.run()
        database.code(run, 1, "pay")
        for stream in range(1, 51):
            database.thread(run, stream, stream, "") if stream > 1 else None
            for sequence in range(2):
                records = [event("call", 1, depth=depth), event("return", 1, depth=depth)]
                database.segment(run, records[:1] if sequence else records, stream=stream, sequence=sequence)
    taken = int(run_python("-c", ASK, installed(), path))
    assert taken < 32 << 10


@slow
def test_promises_to_the_planner_hold(
    original: Path, sanitized: Path, under_sanitizers: dict[str, str]
) -> None:
    run_python("-c", ASK, sanitized, original, **under_sanitizers)


@slow
def test_a_promise_that_is_broken_is_seen(
    original: Path, sanitized: Path, under_sanitizers: dict[str, str], tmp_path: Path
) -> None:
    """A segment's row says that there are calls only: so none of its events is looked at."""
    path = tmp_path / "traces.sqlite"
    shutil.copyfile(original, path)
    with Handmade(path) as database:
        database("UPDATE segment SET kinds = 2")
    ask = "import sys, damaging; print(damaging.ask(*sys.argv[1:]))"
    for question in ("kind = 'call'", "event MATCH '(= kind \"call\")'"):
        question = f"SELECT id FROM event WHERE {question}"
        answer = run_python("-c", ask, path, sanitized, question, **under_sanitizers)
        assert "does not meet a condition" in answer
        assert run_python("-c", ask, path, installed(), question).startswith("[(")


# what sqlite_plan.c says of a plan, a lie instead, and a question that it is told for
LIES = {
    "one row": ("if (single && !table->arguments)", "if (!table->arguments)", "SELECT * FROM call"),
    "no rows": ("(sqlite3_int64)(rows + 1)", "(sqlite3_int64)(rows - rows)", "SELECT * FROM event"),
    "an order": ("if (order) {", "info->orderByConsumed = 1;\n    if (order) {", "SELECT * FROM argument"),
    "a condition": (
        "argvIndex = ++arguments;\n        info->aConstraintUsage[i].omit",
        "argvIndex = (arguments += 2);\n        info->aConstraintUsage[i].omit",
        "SELECT * FROM event WHERE depth > 1",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_to_the_planner_is_seen(original: Path, shared: Shared, tmp_path: Path, lie: str) -> None:
    said, lied, question = LIES[lie]
    text = (SOURCE / "csrc" / "query" / "sqlite_plan.c").read_text()
    assert text.count(said) == 1
    (tmp_path / "sqlite_plan.c").write_text(text.replace(said, lied))
    others = [path for path in shared("verifying", compile_query).glob("*.o") if path.stem != "sqlite_plan"]
    extension = tmp_path / "sqlite_trace.so"
    link = ["-shared", tmp_path / "sqlite_plan.c", *others, "-ldl", "-o", extension]
    subprocess.run(["gcc", *VERIFYING, *link], check=True)
    ask = "import sys, damaging; print(damaging.ask(*sys.argv[1:]))"
    assert "verify: " in run_python("-c", ask, original, extension, question)
    assert "verify: " not in run_python("-c", ask, original, extension, "SELECT 1")


@slow
def test_times_do_not_overflow(tmp_path: Path, sanitized: Path, under_sanitizers: dict[str, str]) -> None:
    """Of functions, by the thousand; with a clock that makes no sense, and calls that last for
    centuries."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as database:
        for epoch_ns, epoch_units in ((-(1 << 63), 0), ((1 << 63) - 1, -(1 << 63)), (0, (1 << 63) - 1)):
            run = database.run(
                clock_epoch_ns=epoch_ns, clock_epoch_units=epoch_units, clock_scale=(1 << 63) - 1
            )
            database.code(run, 1, "pay")
            records = [event("call", 1), event("call", 1), event("return", 1, time=1 << 60, elapsed=1 << 63)]
            for sequence, start in enumerate((0, 1 << 61, 1 << 62, (1 << 63) - 1)):
                database.segment(run, records * 3, sequence=sequence)
                database(
                    'UPDATE segment SET start = ?, "end" = ? WHERE run = ? AND sequence = ?',
                    (start, (1 << 63) - 1, run, sequence),
                )
            for stream in (2, 3):  # each call lasts as long as a number can say
                database.thread(run, stream, stream, "")
                records = [event("call", 1), event("return", 1, time=1 << 62, elapsed=1 << 62)]
                database.segment(run, records, stream=stream)
    run_python("-c", ASK, sanitized, path, **under_sanitizers)
