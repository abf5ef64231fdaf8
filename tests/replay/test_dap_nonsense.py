"""`pytrace replay --dap` and clients that send nonsense, leave in the middle, or will not wait."""

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dap_client import Client, Refused, framed
from dap_program import line_of
from recording import PYTRACE, Recording, record, run

REQUESTS = """
    initialize launch attach configurationDone setBreakpoints setFunctionBreakpoints
    setExceptionBreakpoints dataBreakpointInfo setDataBreakpoints threads stackTrace scopes variables
    evaluate completions continue next stepIn stepOut stepBack reverseContinue pause gotoTargets goto
    restartFrame source loadedSources breakpointLocations exceptionInfo restart cancel terminate
"""
FIELDS = """
    threadId frameId variablesReference source breakpoints line lines name expression start count filter
    filters filterOptions startFrame levels targetId dataId text column path sourceReference requestId
    condition hitCondition logMessage database run at stopOnEntry context endLine
"""
VALUES: list[Any] = [
    None, True, -1, 0, 1, 3, 1 << 31, 1 << 70, 1.5, "", "1", "x" * 3000, "\ud800", "a\0b", "((((", "{", "{a",
    [], [1], [[]], [{}], [{"line": 1}], [{"line": -5}], [{"name": "%"}], {}, {"path": "script.py"},
    {"path": "script.py", "sourceReference": 7}, {"path": 5}, "total > (", "[" * 2000, "9" * 400,
]  # fmt: skip


@pytest.fixture(name="client")
def client_fixture(recording: Recording) -> Iterator[Client]:
    with Client(recording.database) as client:
        yield client


def goes_on(client: Client) -> None:
    """A session can still begin."""
    client.begin()
    assert client.request("threads")["threads"]
    assert client.ended() == (0, "")


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"1", b'"text"', b"\xff\xfe", b"[" * 100_000, b"{}", b'{"type": "request"}',
        b'{"type": "request", "seq": "1", "command": "threads"}', b'{"type": "request", "seq": true}',
        b'{"type": "request", "seq": 1}', b'{"type": "request", "seq": 1, "command": 5}',
        b'{"type": "request", "seq": 1, "command": "threads", "arguments": []}',
        b'{"type": "request", "seq": 1, "command": "_answer", "arguments": {}}',
        b'{"type": "request", "seq": 1, "command": "no such\\nrequest", "arguments": {}}',
        b'{"type": "request", "seq": 1, "command": "threads"}',
        b'{"type": "nonsense", "seq": 1, "command": "threads"}',
    ],
)  # fmt: skip
def test_a_message_that_is_none_gets_an_error(client: Client, data: bytes) -> None:
    client.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
    message = client.receive()
    assert message is not None
    if message["type"] == "event":  # it has no number to respond to
        assert message["body"]["category"] == "stderr"
        assert message["body"]["output"].startswith("pytrace cannot read a message: ")
    else:
        assert not message["success"]
    goes_on(client)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"Content-Length: 99999999999\r\n\r\n{}", "99999999999"),
        (b"Content-Length: -1\r\n\r\n{}", "-1"),
        (b"Content-Length: " + b"9" * 3000 + b"\r\n\r\n{}", "at most"),
        (b"Content-Length: two\r\n\r\n{}", "two"),
        (b"Something: 2\r\n\r\n{}", "Content-Length"),
        (b"x" * 100_000, "header"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "Content-Length"),
        (b"Content-Length: 100\r\n\r\n{}", "inside a message"),
        (b"Content-Length: 2", "inside a header"),
    ],
)
def test_broken_framing_ends_the_session_with_a_message(client: Client, data: bytes, said: str) -> None:
    client.write(data)
    status, errors = client.ended()
    assert status == 2
    assert said in errors
    assert errors.startswith("pytrace: ")
    assert len(errors.splitlines()) == 1


def test_a_client_that_says_nothing(client: Client) -> None:
    assert client.ended() == (0, "")


def test_order_of_requests(client: Client) -> None:
    for command in ("threads", "launch", "nonsense"):
        with pytest.raises(Refused):
            client.request(command)
    client.request("initialize")
    with pytest.raises(Refused, match="once"):
        client.request("initialize")
    with pytest.raises(Refused, match="launch comes first"):
        client.request("threads")
    for wrong, said in [
        ({"database": "/no/such/file"}, "there is no /no/such/file"),
        ({"run": 77}, "no run 77"),
        ({"at": 1 << 40}, "no event"),
        ({"at": "tomorrow"}, "tomorrow"),
        ({"run": "one"}, "integer"),
    ]:
        with pytest.raises(Refused, match=said):
            client.request("launch", **wrong)
    client.request("launch")
    with pytest.raises(Refused, match="open already"):
        client.request("attach")


@pytest.mark.parametrize("seed", range(6))
def test_any_arguments_get_an_answer(client: Client, seed: int) -> None:
    """Whatever the arguments are: each request has one response, and the session goes on."""
    chosen = random.Random(seed)
    client.begin()
    for _ in range(150):
        command = chosen.choice(REQUESTS.split())
        arguments = {chosen.choice(FIELDS.split()): chosen.choice(VALUES) for _ in range(chosen.randrange(5))}
        if chosen.random() < 0.5:
            arguments["threadId"] = client.thread
        response = client.response(client.send(command, **arguments))
        assert response["command"] == command
    client.request("threads")
    client.request("disconnect")
    assert client.ended() == (0, "")


def test_disconnect_and_cancel_end_what_waits(client: Client, recording: Recording) -> None:
    client.begin()
    first, second = client._seq + 1, client._seq + 2
    frames = {"threadId": client.thread}
    # all at once: the cancelled one may have been answered already
    client.write(
        b"".join(
            framed({"seq": seq, "type": "request", "command": command, "arguments": arguments})
            for seq, command, arguments in [
                (first, "stackTrace", frames),
                (second, "stackTrace", frames),
                (second + 1, "cancel", {"requestId": second}),
                (second + 2, "continue", frames),
                (second + 3, "pause", frames),
            ]
        )
    )
    assert client.response(first)["success"]
    answer = client.response(second)
    assert answer["success"] or answer["message"] == "cancelled"
    assert client.response(second + 3)["success"]
    assert client.event("stopped")["reason"] == "pause"
    client._seq = second + 3
    client.send("continue", **frames)
    client.send("disconnect")
    assert client.ended() == (0, "")


@pytest.mark.parametrize("command", ["restart", "stepIn", "goto", "stackTrace", "pause", "terminate"])
def test_a_client_that_leaves_at_once(client: Client, recording: Recording, command: str) -> None:
    client.begin()
    source = {"path": str(recording.script)}
    [target, *_] = client.request("gotoTargets", source=source, line=line_of("end"))["targets"]
    seq = client._seq
    arguments = {"threadId": client.thread, "targetId": target["id"]}
    sent = [(command, arguments), ("cancel", {"requestId": seq + 1}), ("disconnect", {})]
    client.write(
        b"".join(
            framed({"seq": seq + number, "type": "request", "command": each, "arguments": fields})
            for number, (each, fields) in enumerate(sent, 1)
        )
    )
    assert client.ended() == (0, "")


def test_a_long_walk_is_interrupted(tmp_path: Path) -> None:
    """A condition that is never met, over many runs of a line: `pause` ends the walk."""
    source = "def f(n):\n    return n\n\nfor i in range(30_000):\n    f(i)\n"
    recording = record(tmp_path, source, "--lines")
    with Client(recording.database) as client:
        client.begin()
        here = client.scope("Moment")["event"]
        client.set_lines(recording.script, {"line": 2, "condition": "n * n < 0"})
        seq = client.send("continue", threadId=client.thread)
        assert client.response(seq)["success"]
        client.send("pause", threadId=client.thread)
        stop = client.event("stopped")
        assert (stop["reason"], stop.get("description")) == ("pause", "paused")
        assert client.scope("Moment")["event"] == here
        client.set_lines(recording.script, {"line": 2, "condition": "n == 20000"})
        client.events.clear()
        assert client.go("continue")["reason"] == "breakpoint"
        assert client.scope("Locals")["n"] == "20000"


def test_a_client_that_leaves_without_a_word(recording: Recording) -> None:
    with Client(recording.database) as client:
        client.begin()
        assert client.process.stdout
        client.process.stdout.close()
        for _ in range(50):
            try:
                client.send("stackTrace", threadId=client.thread)
            except BrokenPipeError:
                break
        assert client.process.stdin
        with suppress(BrokenPipeError):
            client.process.stdin.close()
        assert client.process.wait(60) in (0, 141)
        assert client.process.stderr
        assert b"Traceback" not in client.process.stderr.read()


def test_files_that_are_no_recordings(tmp_path: Path) -> None:
    for name, content in [("empty", b""), ("text", b"x" * 500), ("half", b"SQLite format 3\0" + b"\0" * 99)]:
        (tmp_path / name).write_bytes(content)
        with Client(tmp_path / name) as client:
            client.request("initialize")
            with pytest.raises(Refused):
                client.request("launch")
            assert client.ended() == (0, "")


def test_hostile_names_stay_inside_of_json(tmp_path: Path) -> None:
    recording = record(
        tmp_path,
        "def f(text):\n    return text\n\n"
        "f('\\x1b[31m\\u202e\\ud800\\0{x}')\nraise ValueError('\\udcff{y}')\n",
        "--lines",
        status=1,
    )
    with Client(recording.database) as client:
        client.begin()
        client.set_lines(recording.script, {"line": 2, "logMessage": "{text}"})
        assert client.go("continue")["reason"] == "exception"
        assert "x1b" in json.dumps(client.outputs())


def test_a_replay_is_of_one_run(recording: Recording) -> None:
    done = run(
        [*PYTRACE, "replay", str(recording.database), "--dap", "--run", "all"], recording.script.parent
    )
    assert done.returncode == 2
    assert "one run" in done.stderr
