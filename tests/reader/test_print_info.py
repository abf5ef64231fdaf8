"""pytrace info: what is in a database."""

import json
from pathlib import Path

import pytest
from pytracer.reader.info import counted, size

from handmade import EPOCH_NS, Handmade, event, ran
from pytracer.cli import OPTIONS

KEYS = [
    "id",
    "command",
    "started",
    "finished",
    "python",
    "events",
    "lost",
    "processes",
    "threads",
    "exit_status",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """One run that has ended, and one that has not."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run("shop.py --all", exit_status=-11, lost=17, evicted=2000, refused=1)
        made.code(run, 1, "main")
        made.process(run, 1, 200)
        made.thread(run, 2, 200, "child", process=1)
        made.segment(run, [event("call", 1)] * 5)
        made.segment(run, [event("call", 1)] * 3, stream=2, process=1)
        made.run("server.py", finished=False)
    return path


def test_json_to_the_letter(path: Path) -> None:
    done = ran("info", path, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert list(facts) == ["path", "size", "runs"]
    assert facts["path"] == str(path)
    assert facts["size"] == path.stat().st_size
    ended, running = facts["runs"]
    assert list(ended)[: len(KEYS)] == KEYS
    assert {key: ended[key] for key in KEYS} == {
        "id": 1,
        "command": "shop.py --all",
        "started": EPOCH_NS,
        "finished": EPOCH_NS + 2_000_000_000,
        "python": "3.13.0",
        "events": 8,
        "lost": 17,
        "processes": 2,
        "threads": 2,
        "exit_status": -11,
    }
    assert (ended["evicted"], ended["refused"]) == (2000, 1)
    assert (running["finished"], running["exit_status"], running["events"]) == (None, None, 0)


def test_text(path: Path) -> None:
    done = ran("info", path)
    assert (done.returncode, done.stderr) == (0, "")
    head, ended, running = done.stdout.split("\n\n")
    assert head.startswith(f"{path}: ")
    assert head.endswith(", 2 recordings")
    assert ended.splitlines()[:3] == [
        "run 1  shop.py --all",
        "  started    2023-11-14 22:13:20, took 2s, killed by SIGSEGV",
        "  python     3.13.0, in /home/me",
    ]
    assert "8 events of 2 processes, 2 threads; " in ended
    assert "17 events lost, the buffer was full (--buffer-size helps)" in ended
    assert "2,000 events removed to keep the size (--max-size)" in ended
    assert "1 chunk that made no sense" in ended
    assert ", cut off, exit status not known" in running
    assert "0 events of 1 process, 1 thread; 0 B" in running
    assert "missing    what was not saved yet when the recording was cut off" in running


def test_a_run_that_goes_on(path: Path) -> None:
    """Somebody has the database open, as its dumper has."""
    with Handmade(path) as made:
        made("SELECT 1 FROM run")
        done = ran("info", path)
        facts = json.loads(ran("info", path, "--format", "json").stdout)
    running = done.stdout.split("\n\n")[2]
    assert "not finished, still running" in running
    assert "missing    nothing" in running
    assert [run["running"] for run in facts["runs"]] == [False, True]
    facts = json.loads(ran("info", path, "--format", "json").stdout)
    assert [run["running"] for run in facts["runs"]] == [False, False]


def test_options_that_are_not_the_defaults(path: Path) -> None:
    defaults = {option.name: option.convert(option.default or "", option.flag) for option in OPTIONS}
    with Handmade(path) as made:
        made("UPDATE run SET options = ? WHERE id = 2", (json.dumps(defaults | {"output": "/else.sqlite"}),))
        changed = {
            "max_size": str(200 << 20),
            "buffer_size": "200000000",
            "no_stdlib": "1",
            "modules": "/home/me/my app:/srv",
            "value_length": "1024",
            "of_a_later_version": "1",
        }
        made("UPDATE run SET options = ? WHERE id = 1", (json.dumps(defaults | changed),))
    _, ended, running = ran("info", path).stdout.split("\n\n")
    assert ended.splitlines()[3] == (
        "  options    --max-size 200MiB --buffer-size 200000000 --modules '/home/me/my app:/srv' --no-stdlib"
        " --value-length 1024"
    )
    assert "options" not in running


def test_tree(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    columns = "run, number, pid, parent, command, started, finished, exit_status, replaced, lost"
    with Handmade(path) as made:
        run = made.run("shop.py")
        made("UPDATE process SET command = 'python shop.py', finished = ?, exit_status = 0", (EPOCH_NS,))
        made.thread(run, 2, 200, "child", process=2)
        made.segment(run, [event("call", 1)] * 3)
        made.segment(run, [event("call", 1)] * 5, stream=2, process=2)
        for number, pid, parent, command, status, replaced in (
            (1, 101, 0, "sh\x1b[31m", None, 1),
            (2, 200, 0, None, -9, 0),
            (3, 101, 1, "python " + "x" * 200, 3, 0),
            (4, 104, 9, "orphan", None, 0),
        ):
            row = (
                run,
                number,
                pid,
                parent,
                command,
                EPOCH_NS + 1_500_000,
                EPOCH_NS,
                status,
                replaced,
                number,
            )
            made(f"INSERT INTO process ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    [facts] = json.loads(ran("info", path, "--format", "json").stdout)["runs"]
    assert [process["events"] for process in facts["tree"]] == [3, 0, 5, 0, 0]
    assert facts["tree"][1] == {
        "number": 1,
        "pid": 101,
        "parent": 0,
        "command": "sh\x1b[31m",
        "started": EPOCH_NS + 1_500_000,
        "finished": EPOCH_NS,
        "exit_status": None,
        "replaced": True,
        "events": 0,
        "lost": 1,
    }
    lines = ran("info", path).stdout.splitlines()
    [first] = [number for number, line in enumerate(lines) if line.startswith("  processes")]
    assert [line[13:] for line in lines[first : first + 5]] == [
        "+0ns    100  exit status 0                   3 events  python shop.py",
        "+1.5ms  101  became another program  0 events, 1 lost    sh\\x1b[31m",
        "+1.5ms  101  exit status 3           0 events, 3 lost      python " + "x" * 90 + "...",
        "+1.5ms  200  killed by SIGKILL       5 events, 2 lost    (forked)",
        "+1.5ms  104  exit status not known   0 events, 4 lost  orphan",
    ]


def test_tree_of_very_many(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run(turned_away=12)
        for number in range(1, 500):
            made(
                "INSERT INTO process (run, number, pid, parent, started, finished, exit_status)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (run, number, number, number - 1, EPOCH_NS, EPOCH_NS, -15 if number > 490 else 0),
            )
    lines = ran("info", path).stdout.splitlines()
    [first] = [number for number, line in enumerate(lines) if line.startswith("  processes")]
    assert lines[first + 40].strip() == "... and 460 more: 451 exit status 0, 9 killed by SIGTERM"
    assert max(map(len, lines[1:])) < 100
    assert lines[-1] == "  missing    12 processes (one recording has room for 16,384)"


def test_database_without_the_later_columns(path: Path) -> None:
    with Handmade(path) as made:
        made("ALTER TABLE run DROP COLUMN turned_away")
        made("ALTER TABLE process DROP COLUMN replaced")
    ended, _ = json.loads(ran("info", path, "--format", "json").stdout)["runs"]
    assert (ended["turned_away"], [process["replaced"] for process in ended["tree"]]) == (0, [False, False])


@pytest.fixture
def lossy(tmp_path: Path) -> Path:
    """A run of which something was lost twice, and the beginning was removed."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run(lost=30, evicted=1000, evicted_until=EPOCH_NS + 2_000_000)
        made.thread(run, 2, 102, "worker")
        for number in range(1, 8):
            made.code(run, number, f"step{number}" if number < 7 else "a\x1b[31m", module="app.work")
        for sequence in range(3):
            calls = [event("call", number, time=1) for number in range(1, 8) for _ in range(number * 100)]
            made.segment(
                run, [*calls, event("return", 7)], sequence=sequence, start=1_000_000 * (sequence + 1)
            )
        made.segment(run, [event("lost", 10, time=5), event("call", 1)], stream=2, start=3_000_000)
        made.segment(
            run, [event("call", 1), event("lost", 20, time=10)], stream=2, sequence=1, start=2_000_000
        )
    return path


def test_the_busiest_functions(lossy: Path) -> None:
    [run] = json.loads(ran("info", lossy, "--format", "json").stdout)["runs"]
    assert run["busiest"] == [
        {"module": "app.work", "func": func, "calls": calls}
        for func, calls in (
            ("a\x1b[31m", 2100), ("step6", 1800), ("step5", 1500), ("step4", 1200), ("step3", 900)
        )
    ]  # fmt: skip
    lines = ran("info", lossy).stdout.splitlines()
    assert "  busiest    2,100 calls of app.work.a\\x1b[31m" in lines
    assert "               900 calls of app.work.step3" in lines


def test_a_function_of_several_processes_is_one(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        for number, (func, line) in enumerate([("work", 1), ("work", 1), ("work", 9), ("rest", 1)], 1):
            made.code(run, number, func, line=line)
        made.segment(run, [event("call", number) for number in (1, 1, 2, 2, 3, 3, 3, 4)])
    [facts] = json.loads(ran("info", path, "--format", "json").stdout)["runs"]
    assert [(each["func"], each["calls"]) for each in facts["busiest"]] == [
        ("work", 4),
        ("work", 3),
        ("rest", 1),
    ]


def test_a_function_without_a_module_has_no_dot_before_it(tmp_path: Path) -> None:
    """As what `exec` makes, with a namespace that has no __name__."""
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "made", module="")
        made.segment(run, [event("call", 1)])
    assert "  busiest    1 call of made" in ran("info", path).stdout.splitlines()


def test_when_events_went_missing(lossy: Path) -> None:
    done = ran("info", lossy, "--format", "json")
    [run] = json.loads(done.stdout)["runs"]
    assert (run["evicted"], run["evicted_until"]) == (1000, EPOCH_NS + 2_000_000)
    assert (run["lost_from"], run["lost_until"]) == (EPOCH_NS + 8_000_040, EPOCH_NS + 12_000_020)
    missing = ran("info", lossy).stdout.splitlines()[-1]
    assert "30 events lost, between +8ms and +12ms" in missing
    assert "1,000 events removed, those until +2ms, to keep the size" in missing


def test_the_path_of_the_extension(tmp_path: Path) -> None:
    done = ran("info", "--extension", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.rstrip("\n")).name.startswith("sqlite_trace.")
    assert Path(done.stdout.rstrip("\n")).is_file()


def test_without_recordings(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    Handmade(path).close()
    done = ran("info", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no recording yet" in done.stdout
    assert json.loads(ran("info", path, "--format", "json").stdout)["runs"] == []


def test_unusual_text_is_safe(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite"
    with Handmade(path) as made:
        made.run(
            "a\x1b[31m\u202e.py", directory="/\ud800\n".encode("utf-8", "surrogatepass").decode("latin-1")
        )
    done = ran("info", path)
    assert all(line.isprintable() for line in done.stdout.splitlines())
    assert "a\\x1b[31m\\u202e.py" in done.stdout


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (57_344, "57.3 kB"),
        (999_600, "1 MB"),
        (1 << 30, "1.07 GB"),
    ],
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown


def test_counts() -> None:
    assert [counted(1, "event"), counted(1234, "event"), counted(2, "process")] == [
        "1 event",
        "1,234 events",
        "2 processes",
    ]
