"""pytrace print with a filter: what it finds, what it says of mistakes, and the SQL that it
becomes."""

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from pytracer.reader.database import extension_path

from handmade import EPOCH_NS, Handmade, event, printed, value


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a shop; in the second one somebody orders, too."""
    path = tmp_path_factory.mktemp("filter") / "traces.sqlite"
    with Handmade(path) as made:
        for users in (["ann"], ["ann", "bob", "bobby"]):
            run = made.run()
            made.code(run, 1, "main")
            made.code(run, 2, "Order.pay", ["user", "amount"], module="shop", line=10)
            made.segment(run, [event("call", 1, time=10)])
            for number, user in enumerate(users, 1):
                calls = [
                    event("call", 2, user, 5 * number, time=5),
                    event("return", 2, True, time=250_000 * number, elapsed=250_000 * number),
                ]
                made.segment(run, calls, sequence=number, start=1_000_000 * number, base_depth=1)
            made.segment(run, [event("return", 1, None, time=5_000_000, elapsed=5_000_000)], sequence=9)
    return path


def found(path: Path, filter: str, *arguments: object) -> list[dict[str, Any]]:
    done = printed(path, "--format", "json", "--filter", filter, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def kinds(rows: list[dict[str, Any]]) -> list[str]:
    return [row["kind"] for row in rows]


def test_events_that_match(path: Path) -> None:
    rows = found(path, "func == 'pay' and arg == 'user' and value == 'bob%'")
    assert [row["args"][0]["value"] for row in rows] == ["'bob'", "'bobby'"]
    assert {row["run"] for row in rows} == {2}
    assert kinds(found(path, "duration >= '2ms'")) == ["return", "return", "return"]
    assert kinds(found(path, "time < '+1ms'")) == ["call"]
    assert len(found(path, "")) == len(found(path, "  ")) == 8


def test_filter_with_the_other_options(path: Path) -> None:
    assert len(found(path, "func == 'pay'", "--limit", 3)) == 3
    assert len(found(path, "func == 'pay'", "--run", 1)) == 2
    assert [row["run"] for row in found(path, "value == 'ann'", "--run", "all")] == [1, 2]
    as_text = printed(path, "--filter", "kind == 'call' and value == 'bob'").stdout
    assert as_text.endswith("-> shop.Order.pay(user='bob', amount=10)\n")
    as_csv = printed(path, "--filter", "kind == 'call' and value == 'bob'", "--format", "csv").stdout
    assert len(as_csv.splitlines()) == 2


def test_following_with_a_filter(path: Path) -> None:
    assert len(found(path, "func == 'pay' and kind == 'return'", "--follow")) == 3


@pytest.mark.parametrize("format", ["text", "json", "csv"])
def test_a_mistake_is_pointed_at(path: Path, format: str) -> None:
    done = printed(path, "--filter", "fun == 'pay' and depth < 5", "--format", format)
    assert (done.returncode, done.stdout) == (2, "")
    first, text, caret, *hints = done.stderr.splitlines()
    assert first == "pytrace: this filter cannot be read:"
    assert text == "fun == 'pay' and depth < 5"
    assert caret == "^^^"
    assert "func" in hints[-1]


def test_where_nothing_matches_others_are_offered(path: Path) -> None:
    done = printed(path, "--filter", "func == 'paay'")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert lines[:2] == ["no event matches: func == 'paay'", "did you mean"]
    assert lines[2].split() == ["func", "==", "'pay'", "6", "events"]


def test_where_nothing_was_recorded_the_filter_is_not_to_blame(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        made.run()
    done = printed(path, "--filter", "func == 'pay'")
    assert (done.returncode, done.stderr) == (0, "pytrace: nothing was recorded in this run\n")


@pytest.mark.parametrize(
    "filter",
    [
        "func == 'pay' or " * 6000 + "func == 'main'",
        f"value == '{'x' * 100_000}'",
        "(" * 10_000 + "func == 'pay'" + ")" * 10_000,
        "not " * 10_000 + "func == 'pay'",
        "func == 'pay' and" * 6000,
        " and ".join(["depth >= 0"] * 5000),
        "\x00\udc80\x1b[31m" * 5000,
    ],
    ids=["or", "text", "parentheses", "not", "unfinished", "and", "bytes"],
)
def test_filters_beyond_measure(path: Path, filter: str) -> None:
    """They are answered, or refused; and nothing unsafe reaches the terminal."""
    if "\x00" in filter:
        filter = filter.replace("\x00", "\x01")  # which no argument of a command can have
    done = printed(path, "--filter", filter, "--format", "json")
    assert done.returncode in (0, 2)
    assert "Traceback" not in done.stderr
    assert "damaged" not in done.stderr
    assert all(line.isprintable() for line in done.stderr.splitlines())
    assert done.stdout or done.stderr
    assert len(done.stderr) < 2000 + len(filter)


# ---- the SQL ----


@pytest.mark.parametrize(
    "filter", ["func == 'pay' and value == 'bob'", "time >= '+1ms' and not (value == 5)", "depth > 0", ""]
)
def test_explained_sql_finds_the_same(path: Path, filter: str) -> None:
    done = printed(path, "--filter", filter, "--explain")
    assert (done.returncode, done.stderr) == (0, "")
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    connection.enable_load_extension(True)
    connection.load_extension(extension_path())
    ids = [row[0] for row in connection.execute(done.stdout)]
    connection.close()
    assert ids == [row["id"] for row in found(path, filter)]


def test_explain_to_the_letter(path: Path) -> None:
    done = printed(path, "--filter", "func == 'pay' and time > '+1s'", "--explain", "--run", 1)
    assert done.stdout.splitlines() == [
        "SELECT * FROM event",
        f"""WHERE run = 1 AND time > {EPOCH_NS + 1_000_000_000} AND event MATCH '(like func "pay")'""",
        "ORDER BY time, id",
    ]


# ---- around an event, and up its stack ----


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three calls inside each other, and two threads; segments of two events each."""
    path = tmp_path_factory.mktemp("deep") / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.thread(run, 2, 102, "worker")
        for number, name in enumerate(("main", "order", "pay", "check"), 1):
            made.code(run, number, name, ["n"])
        made.segment(run, [event("call", 1, 0, time=10), event("call", 2, 1, time=10)])
        made.segment(
            run,
            [event("call", 3, 2, time=10), event("call", 4, 3, time=10)],
            sequence=1,
            start=20,
            base_depth=2,
        )
        made.segment(
            run,
            [event("return", 4, value([4]), time=10, elapsed=10), event("return", 3, 5, time=10, elapsed=30)],
            sequence=2, start=40, base_depth=4,
        )  # fmt: skip
        made.segment(run, [event("call", 4, 9, time=1) for _ in range(5)], stream=2, start=30)
    return path


def ids(path: Path) -> dict[tuple[str, str], int]:
    lines = printed(path, "--format", "json", "--filter", "thread == 'MainThread'").stdout.splitlines()
    return {(row["kind"], row["func"]): row["id"] for row in map(json.loads, lines)}


def test_the_stack_of_an_event(deep: Path) -> None:
    by_name = ids(deep)
    for id, open in (
        (by_name["call", "check"], 4),
        (by_name["return", "check"], 4),
        (by_name["return", "pay"], 3),
    ):
        done = printed(deep, "--stack", id, "--format", "json")
        assert (done.returncode, done.stderr) == (0, "")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert [(row["func"], row["depth"], row["kind"]) for row in rows] == [
            ("main", 0, "call"), ("order", 1, "call"), ("pay", 2, "call"), ("check", 3, "call"),
        ][:open]  # fmt: skip
        assert [row["args"][0]["value"] for row in rows] == ["0", "1", "2", "3"][:open]


def test_around_an_event(deep: Path) -> None:
    id = ids(deep)["return", "check"]
    done = printed(deep, "--around", id, "--limit", 1)
    assert (done.returncode, done.stderr) == (0, "")
    assert [(line[:2], line.partition("MainThread")[2].strip()) for line in done.stdout.splitlines()] == [
        ("  ", "-> app.main(n=0)"),
        ("  ", "-> app.order(n=1)"),
        ("  ", "-> app.pay(n=2)"),
        ("  ", ""),
        ("  ", "-> app.check(n=3)"),
        ("> ", "<- [4]  40ns"),
        ("  ", "<- pay: 5  120ns"),
    ]
    every = printed(deep, "--around", id, "--format", "json").stdout.splitlines()
    assert [json.loads(line)["thread"] for line in every] == ["MainThread"] * 6


def test_around_an_event_of_a_thread_at_one_time(path: Path, tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "step", ["n"])
        first = made.segment(run, [event("call", 1, n, depth=0) for n in range(100)]) << 18
    lines = printed(path, "--around", first + 50, "--limit", 3, "--format", "json").stdout.splitlines()
    assert [json.loads(line)["id"] - first for line in lines] == [47, 48, 49, 50, 51, 52, 53]


def test_around_an_event_far_down(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "down", ["n"])
        first = made.segment(run, [event("call", 1, n, time=1) for n in range(2000)]) << 18
    lines = printed(path, "--around", first + 1999, "--limit", 2).stdout.splitlines()
    assert lines[0] == f"  … 1,967 calls further up (--stack {first + 1999} shows them)"
    assert [line.rpartition("n=")[2] for line in lines[1:31]] == [f"{n})" for n in range(1967, 1997)]
    assert lines[31] == "  …"
    assert [line[0] for line in lines[32:]] == [" ", " ", ">"]
    assert len(printed(path, "--stack", first + 1999).stdout.splitlines()) == 2000


def test_an_event_that_is_not_there(deep: Path) -> None:
    for option in ("--around", "--stack"):
        done = printed(deep, option, 99 << 18)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"pytrace: there is no event {99 << 18} in {deep} (any more)\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--around", "x"),
        ("--stack", "-1"),
        ("--stack", str(1 << 63)),
        ("--around", "1", "--stack", "1"),
        ("--around", "1", "--filter", "depth > 1"),
        ("--stack", "1", "--follow"),
    ],
)
def test_options_that_make_no_sense(deep: Path, arguments: tuple[str, ...]) -> None:
    done = printed(deep, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert arguments[0] in done.stderr
    assert "Traceback" not in done.stderr
