"""`pytrace replay --dap`: stops, ways between them, and what is shown there; each message against
the protocol's schema."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dap_client import Client, Refused
from dap_program import SOURCE, line_of
from recording import TIMEOUT, Recording, record

# the program as sys.settrace sees it: each line that runs, with the variables before it
TRACER = """
import json, sys
lines = []
def shown(frame):
    return {name: repr(value) for name, value in frame.f_locals.items()}
def trace(frame, event, argument):
    if frame.f_code.co_filename != script:
        return None
    if event == "line" and frame.f_code.co_name != "<module>":
        lines.append([frame.f_code.co_qualname, frame.f_lineno, shown(frame)])
    return trace
script = sys.argv[1]
code = compile(open(script).read(), script, "exec")
sys.settrace(trace)
exec(code, {"__name__": "__main__"})
sys.settrace(None)
print(json.dumps(lines))
"""
SMALL = """
    def fib(n):
        if n < 2:
            return n
        a = fib(n - 1)
        b = fib(n - 2)
        return a + b

    def collect(count):
        found = []
        names = {}
        for i in range(count):
            found.append(fib(i))
            names[str(i)] = found[-1]
        try:
            found[99]
        except IndexError:
            i = "none"
        return found, names, i

    def steps():
        for each in "ab":
            got = yield each
            del each

    def main():
        total = 0
        for text in steps():
            total += len(text)
        return collect(4), total

    main()
"""


@pytest.fixture(name="client")
def client_fixture(recording: Recording) -> Iterator[Client]:
    with Client(recording.database) as client:
        yield client


def stops(client: Client, command: str) -> Iterator[tuple[Any, ...]]:
    """The places on a way, with the ids of their events, up to an end of the recording."""
    while True:
        stop = client.go(command)
        if stop["reason"] != "step":
            return
        yield *client.place(), client.scope("Moment")["event"]


def test_forwards_and_backwards_are_the_same_stops(client: Client, recording: Recording) -> None:
    client.begin()
    client.set_lines(recording.script, line_of("call"))
    client.go("continue")
    here = client.scope("Moment")["event"]
    ways = list(stops(client, "next"))
    assert [func for func, _, _ in ways][-1] == "<module>"
    client.set_lines(recording.script)
    stop = client.go("next")
    assert (stop["reason"], stop["description"]) == ("pause", "the recording ends here, of this thread")
    back = list(stops(client, "stepBack"))
    assert [each[2] for each in ways[:-1]][::-1] == [each[2] for each in back][: len(ways) - 1]
    assert here in [each[2] for each in back]


def test_variables_are_those_of_settrace(tmp_path: Path) -> None:
    recording = record(tmp_path, SMALL, "--lines")
    traced = subprocess.run(
        [sys.executable, "-c", TRACER, str(recording.script)], capture_output=True, text=True, check=True
    )
    found = []
    with Client(recording.database) as client:
        client.begin()
        while client.go("stepIn")["reason"] == "step":
            frame = client.frames(levels=1)[0]
            if client.scope("Moment", frame)["kind"] == "line" and "presentationHint" not in frame:
                found.append([frame["name"], frame["line"], client.scope("Locals", frame)])
    assert [each for each in found if each[0] != "<module>"] == json.loads(traced.stdout)


def test_a_return_shows_its_value_and_an_exception_its_own(client: Client, recording: Recording) -> None:
    client.begin()
    client.set_lines(recording.script, line_of("added"), line_of("raised"))
    client.go("continue")
    assert client.scope("Locals")["result"] == "0"
    client.set_lines(recording.script, line_of("raised"))
    stop = client.go("stepOut")
    assert stop["description"] == "add returns 12"
    assert client.scope("Return value") == {"return value": "12"}
    assert client.scope("Locals")["result"] == "12"
    client.go("continue")
    assert client.place() == ("fail", line_of("raised"))
    with pytest.raises(Refused, match="no exception"):
        client.request("exceptionInfo", threadId=client.thread)
    client.go("next")
    info = client.request("exceptionInfo", threadId=client.thread)
    assert (info["exceptionId"], info["description"]) == ("ValueError", "ValueError('zero')")
    assert [frame["line"] for frame in client.frames() if frame["name"] == "fail"] == [
        line_of("raised"), line_of("deeper"), line_of("deeper"),
    ]  # fmt: skip


def test_the_stack_comes_in_pages(client: Client, recording: Recording) -> None:
    client.begin()
    client.set_lines(recording.script, line_of("raised"))
    client.go("continue")
    whole = client.request("stackTrace", threadId=client.thread)
    assert whole["totalFrames"] == len(whole["stackFrames"]) == 5
    assert [each["name"] for each in whole["stackFrames"]] == ["fail", "fail", "fail", "main", "<module>"]
    page = client.request("stackTrace", threadId=client.thread, startFrame=2, levels=2)
    assert page["totalFrames"] == 5
    assert [each["name"] for each in page["stackFrames"]] == ["fail", "main"]
    assert [client.scope("Locals", each).get("n") for each in whole["stackFrames"]] == [
        "0", "1", "2", None, None,
    ]  # fmt: skip
    assert whole["stackFrames"][0]["source"]["path"] == str(recording.script)


def test_containers_and_objects_open_in_pages(client: Client, recording: Recording) -> None:
    client.begin()
    client.set_lines(recording.script, line_of("end"), line_of("added"))
    client.go("continue")
    frame = client.frames(levels=1)[0]
    locals_ = client.request("scopes", frameId=frame["id"])["scopes"][0]
    found = client.request("variables", variablesReference=locals_["variablesReference"])["variables"]
    orders, _, order = found
    assert (orders["name"], orders["indexedVariables"], order["type"]) == ("orders", 3, "__main__.Order")
    assert order["namedVariables"] == 2
    items = client.request("variables", variablesReference=orders["variablesReference"], start=1, count=1)
    [second] = items["variables"]
    assert (second["name"], second["evaluateName"]) == ("[1]", "orders[1]")
    parts = client.request("variables", variablesReference=order["variablesReference"])["variables"]
    assert [(each["name"], each["value"], each["evaluateName"]) for each in parts] == [
        ("user", "'bob'", "order.user"), ("total", "3", "order.total"),
    ]  # fmt: skip
    assert (
        client.request(
            "variables", variablesReference=order["variablesReference"], filter="indexed"
        )["variables"] == []
    )  # fmt: skip
    client.go("next")
    with pytest.raises(Refused, match="at this stop"):
        client.request("variables", variablesReference=orders["variablesReference"])


def test_expressions_are_computed_on_what_was_recorded(client: Client, recording: Recording) -> None:
    client.begin()
    client.set_lines(recording.script, line_of("added"))
    client.go("continue")
    frame = client.frames(levels=1)[0]["id"]
    for expression, value in [("order.total", "3"), ("result + 2", "2"), ("len(orders)", "3")]:
        body = client.request("evaluate", expression=expression, frameId=frame, context="watch")
        assert body["result"] == value
    opened = client.request("evaluate", expression="order", frameId=frame, context="hover")
    parts = client.request("variables", variablesReference=opened["variablesReference"])["variables"]
    assert parts[0]["evaluateName"] == "order.user"
    for wrong in ("nothing_of_the_kind", "__import__('os')", "result +", ""):
        with pytest.raises(Refused):
            client.request("evaluate", expression=wrong, frameId=frame, context="repl")
    assert client.request("completions", text="res", column=4)["targets"][0]["label"] == "result"


def test_threads_stand_where_they_were(client: Client, recording: Recording) -> None:
    client.begin()
    threads = {each["name"]: each["id"] for each in client.request("threads")["threads"]}
    assert len(threads) == 2
    main, other = threads["MainThread"], next(id for name, id in threads.items() if name != "MainThread")
    client.set_lines(recording.script, line_of("seen"))
    assert client.go("continue", threadId=main)["threadId"] == other
    assert client.frames()[0]["name"] == "worker"
    assert "main" in [each["name"] for each in client.frames(threadId=main)]
    assert client.go("next", threadId=other)["threadId"] == other
    assert client.go("next", threadId=main)["threadId"] == main
    with pytest.raises(Refused, match="no thread"):
        client.request("stackTrace", threadId=99)


def test_the_ends_of_a_recording_are_stops(client: Client) -> None:
    assert client.begin()["reason"] == "entry"
    stop = client.go("continue")
    assert (stop["reason"], stop["description"]) == ("pause", "the recording ends here")
    stop = client.go("reverseContinue")
    assert (stop["reason"], stop["description"]) == ("entry", "the recording begins here")
    assert client.go("stepBack")["reason"] == "entry"
    client.go("pause")
    client.request("terminate")
    client.event("terminated")
    client.request("disconnect")
    assert client.ended() == (0, "")


def test_goto_offers_the_times_of_a_line(client: Client, recording: Recording) -> None:
    client.begin()
    source, line = {"path": str(recording.script)}, line_of("added")
    targets = client.request("gotoTargets", source=source, line=line)["targets"]
    assert len(targets) == 3
    client.go("goto", targetId=targets[1]["id"])
    assert client.place() == ("add", line)
    assert client.scope("Locals")["result"] == "3"
    targets = client.request("gotoTargets", source=source, line=line)["targets"]
    assert [each["label"][0] for each in targets] == ["+", "-"]
    frame = client.frames(levels=1)[0]
    client.request("restartFrame", frameId=frame["id"])
    client.event("stopped")
    assert client.place()[0] == "add"
    assert client.go("restart")["reason"] == "entry"


def test_a_source_that_changed_is_shown_as_it_was(tmp_path: Path) -> None:
    recording = record(tmp_path, SOURCE, "--lines")
    recording.script.write_text("\n" * 50)
    with Client(recording.database) as client:
        client.begin()
        [source] = [
            each for each in client.request("loadedSources")["sources"] if each["name"] == "script.py"
        ]
        assert source["sourceReference"] > 0
        body = client.request("source", source=source, sourceReference=source["sourceReference"])
        assert body["content"] == SOURCE
        assert client.set_lines(recording.script, line_of("added"))[0]["verified"]
        client.go("continue")
        assert client.frames()[0]["source"] == source


def test_a_session_begins_where_it_is_told_to(recording: Recording) -> None:
    with Client(recording.database) as client:
        client.open(stopOnEntry=False)
        client.set_lines(recording.script, line_of("raised"))
        assert client.configured()["reason"] == "breakpoint"
        event = client.scope("Moment")["event"]
    for launch in ({"at": int(event)}, {"at": event, "run": 1, "database": str(recording.database)}):
        with Client(Path(recording.database)) as client:
            client.begin(**launch)
            assert client.place() == ("fail", line_of("raised"))
    with Client(recording.database, "--at", event) as client:
        client.begin()
        assert client.place() == ("fail", line_of("raised"))


def test_without_lines_functions_are_stepped_through(tmp_path: Path) -> None:
    recording = record(tmp_path, SOURCE)
    with Client(recording.database) as client:
        client.begin()
        [found] = client.set_lines(recording.script, line_of("added"))
        assert found["verified"]
        assert "lines were not recorded" in found["message"]
        client.go("continue")
        assert client.place()[0] == "add"
        assert list(client.scope("Locals")) == ["orders"]
        assert client.go("stepOut")["description"] == "add returns 12"
        assert client.go("reverseContinue")["reason"] == "breakpoint"


def test_a_recording_that_still_runs(tmp_path: Path) -> None:
    script = tmp_path / "waits.py"
    script.write_text("def done(n):\n    return n\n\nfor i in range(200):\n    done(i)\ninput()\n")
    database = tmp_path / "traces.sqlite"
    with subprocess.Popen(
        [sys.executable, "-m", "pytracer", "-q", "--lines", "-o", str(database), str(script)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
    ) as program:  # fmt: skip
        end = time.monotonic() + TIMEOUT
        while True:  # until the dumper has stored something
            with Client(database) as client:
                try:
                    client.open()
                except Refused:
                    assert time.monotonic() < end
                    continue
                client.configured()
                assert client.go("continue")["description"] == "the recording ends here"
                assert client.go("reverseContinue")["description"] == "the recording begins here"
                break
        program.communicate(b"\n", timeout=60)
    assert program.returncode == 0
