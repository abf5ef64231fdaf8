"""`pytrace replay --dap`: breakpoints of all kinds, forwards and backwards."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dap_client import Client, Refused
from dap_program import line_of
from recording import Recording, record


@pytest.fixture(name="client")
def client_fixture(recording: Recording) -> Iterator[Client]:
    with Client(recording.database) as client:
        client.begin()
        yield client


def walk(client: Client, command: str, name: str) -> list[str | None]:
    """The values of a variable at each stop on a way."""
    found = []
    while client.go(command)["reason"] not in ("pause", "entry"):
        found.append(client.scope("Locals").get(name))
    return found


@pytest.mark.parametrize(
    ("wanted", "results"),
    [
        ({}, ["0", "3", "7"]),
        ({"condition": "order.total == 4"}, ["3"]),
        ({"condition": "order.user == '%o%' and result < 5"}, ["0"]),
        ({"condition": "missing == 1"}, []),
        ({"hitCondition": "2"}, ["3"]),
        ({"hitCondition": ">= 2"}, ["3", "7"]),
        ({"hitCondition": "% 3"}, ["7"]),
        ({"hitCondition": "2", "condition": "result > 0"}, ["7"]),
    ],
)
def test_lines(
    client: Client, recording: Recording, wanted: dict[str, Any], results: list[str]
) -> None:  # fmt: skip
    [answer] = client.set_lines(recording.script, {"line": line_of("added"), **wanted})
    assert answer["verified"]
    assert walk(client, "continue", "result") == results
    assert walk(client, "reverseContinue", "result") == results[::-1]


def test_the_last_line_of_a_function_stops_once(client: Client, recording: Recording) -> None:
    client.set_lines(recording.script, line_of("added") - 5)  # self.total = total
    assert walk(client, "continue", "user") == ["'bob'", "'eve'", "'joe'"]
    assert walk(client, "reverseContinue", "user") == ["'joe'", "'eve'", "'bob'"]


def test_the_last_line_of_a_function_counts_once(client: Client, recording: Recording) -> None:
    client.set_lines(recording.script, {"line": line_of("added") - 5, "hitCondition": "2"})
    assert walk(client, "continue", "user") == ["'eve'"]
    assert walk(client, "reverseContinue", "user") == ["'eve'"]


def test_messages_are_shown_instead_of_stops(client: Client, recording: Recording) -> None:
    message = "{order.user} has {order.total}, {result + order.total} so far; {nothing}"
    client.set_lines(recording.script, {"line": line_of("added"), "logMessage": message}, line_of("raised"))
    assert client.go("continue")["reason"] == "breakpoint"
    assert client.place() == ("fail", line_of("raised"))
    shown = client.outputs()
    assert [each.split(";")[0] for each in shown] == [
        "'bob' has 3, 3 so far", "'eve' has 4, 7 so far", "'joe' has 5, 12 so far",
    ]  # fmt: skip
    client.go("continue")
    assert client.outputs() == []
    client.set_lines(recording.script, {"line": line_of("added"), "logMessage": message})
    assert client.go("reverseContinue")["reason"] == "entry"
    assert client.outputs() == shown[::-1]


def test_messages_of_some_hits(client: Client, recording: Recording) -> None:
    wanted = {"line": line_of("seen"), "logMessage": "{i}", "hitCondition": "% 2"}
    other = {"line": line_of("added"), "logMessage": "{result}", "hitCondition": ">= 2"}
    client.set_lines(recording.script, wanted, other)
    assert client.go("continue")["reason"] == "pause"
    assert client.outputs() == ["3\n", "7\n", "1\n"]
    assert client.go("reverseContinue")["reason"] == "entry"
    assert client.outputs() == ["1\n", "7\n", "3\n"]


def test_a_file_may_be_elsewhere_on_this_machine(client: Client, recording: Recording) -> None:
    assert client.set_lines(Path("/elsewhere/script.py"), line_of("added"))[0]["verified"]
    assert client.go("continue")["reason"] == "breakpoint"
    assert not client.set_lines(Path("/elsewhere/other.py"), line_of("added"))[0]["verified"]


def test_a_line_that_did_not_run_moves_to_one_that_did(client: Client, recording: Recording) -> None:
    first, far, wrong = client.set_lines(
        recording.script,
        line_of("added") - 4,
        10_000,
        {"line": line_of("added"), "condition": "result >"},
    )
    assert (first["verified"], first["line"]) == (True, line_of("added") - 3)
    assert "did not run" in first["message"]
    assert not far["verified"]
    assert "10000" in far["message"]
    assert not wrong["verified"]
    body = client.request("setBreakpoints", source={"path": "/no/such.py"}, breakpoints=[{"line": 1}])
    assert not body["breakpoints"][0]["verified"]
    locations = client.request(
        "breakpointLocations", source={"path": str(recording.script)}, line=line_of("added") - 4,
        endLine=line_of("added") + 1,
    )["breakpoints"]  # fmt: skip
    assert [each["line"] - line_of("added") for each in locations] == [-3, -2, -1, 0, 1]


def test_functions(client: Client) -> None:
    answers = client.request(
        "setFunctionBreakpoints",
        breakpoints=[
            {"name": "Order.__init__", "condition": "user == 'eve'"},
            {"name": "worker"},
            {"name": "no_such_function"},
            {"name": "1 + 1"},
        ],
    )["breakpoints"]
    assert [each["verified"] for each in answers] == [True, True, False, False]
    stop = client.go("continue")
    assert (stop["reason"], stop["hitBreakpointIds"]) == ("function breakpoint", [answers[0]["id"]])
    assert client.place()[0] == "Order.__init__"
    assert client.scope("Locals")["user"] == "'eve'"
    assert client.go("continue")["hitBreakpointIds"] == [answers[1]["id"]]
    assert client.place()[0] == "worker"
    assert client.go("reverseContinue")["hitBreakpointIds"] == [answers[0]["id"]]
    assert client.go("reverseContinue")["reason"] == "entry"


def test_exceptions_that_are_raised(client: Client) -> None:
    body = client.request("setExceptionBreakpoints", filters=["raised", "nonsense"])
    assert [each["verified"] for each in body["breakpoints"]] == [True, False]
    while True:
        stop = client.go("continue")
        if client.place()[0] == "fail" or stop["reason"] == "pause":
            break
    assert (stop["reason"], stop["text"]) == ("exception", "ValueError('zero')")
    assert client.place() == ("fail", line_of("raised"))
    assert client.request("exceptionInfo", threadId=client.thread)["breakMode"] == "always"
    while client.go("continue")["reason"] == "exception":
        assert client.place()[0] != "fail"


def test_exceptions_that_nobody_catches(tmp_path: Path) -> None:
    recording = record(tmp_path, "def f(n):\n    return 1 / n\n\nf(1)\nf(0)\n", "--lines", status=1)
    with Client(recording.database) as client:
        client.begin()
        stop = client.go("continue")
        assert (stop["reason"], stop["text"]) == ("exception", "ZeroDivisionError('division by zero')")
        assert client.place() == ("<module>", 5)
        assert client.request("exceptionInfo", threadId=client.thread)["breakMode"] == "unhandled"
        client.request("setExceptionBreakpoints", filters=[])
        assert client.go("reverseContinue")["reason"] == "entry"
        assert client.go("continue")["reason"] == "pause"


def test_changes_of_a_variable(client: Client, recording: Recording) -> None:
    client.set_lines(recording.script, line_of("added"))
    client.go("continue")
    client.set_lines(recording.script)
    frame = client.frames(levels=1)[0]["id"]
    assert client.request("dataBreakpointInfo", name="nothing", frameId=frame)["dataId"] is None
    locals_ = client.request("scopes", frameId=frame)["scopes"][0]["variablesReference"]
    info = client.request("dataBreakpointInfo", name="result", variablesReference=locals_)
    assert info["accessTypes"] == ["write"]
    [answer] = client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])["breakpoints"]
    stop = client.go("continue")
    assert (stop["reason"], stop["hitBreakpointIds"]) == ("data breakpoint", [answer["id"]])
    assert client.scope("Locals")["result"] == "3"
    assert walk(client, "continue", "result") == ["7", "12"]
    assert walk(client, "reverseContinue", "result") == ["12", "7", "3", "0"]
    wanted = [{"dataId": info["dataId"], "condition": "result > 5"}, {"dataId": "nonsense"}]
    answers = client.request("setDataBreakpoints", breakpoints=wanted)["breakpoints"]
    assert [each["verified"] for each in answers] == [True, False]
    assert walk(client, "continue", "result") == ["7", "12"]


def test_a_change_by_the_last_line_stops_at_the_end(client: Client, recording: Recording) -> None:
    client.set_lines(recording.script, line_of("added") - 6)
    client.go("continue")
    client.set_lines(recording.script)
    info = client.request("dataBreakpointInfo", name="self", frameId=client.frames(levels=1)[0]["id"])
    client.request("setDataBreakpoints", breakpoints=[{"dataId": info["dataId"]}])
    client.go("continue")
    client.go("continue")
    assert client.scope("Moment")["kind"] == "return"


def test_a_condition_that_cannot_be_read_is_told(client: Client, recording: Recording) -> None:
    for wanted in (
        {"condition": "__import__('os').abort()"}, {"hitCondition": "many"}, {"logMessage": "{1 +}"},
    ):  # fmt: skip
        [answer] = client.set_lines(recording.script, {"line": line_of("added"), **wanted})
        assert not answer["verified"]
        assert answer["message"]
    with pytest.raises(Refused, match="at most"):
        client.set_lines(recording.script, *range(1, 1000))


def test_a_step_over_a_call_stops_at_a_breakpoint_in_it(client: Client, recording: Recording) -> None:
    client.set_lines(recording.script, line_of("main"))
    client.go("continue")
    client.set_lines(recording.script, {"line": line_of("added"), "condition": "result == 3"})
    assert client.go("next")["reason"] == "breakpoint"
    assert client.place() == ("add", line_of("added"))
    assert client.go("stepOut")["reason"] == "step"
    client.go("next")
    assert client.place()[0] == "main"
    assert client.go("stepBack")["reason"] == "breakpoint"
    assert client.place() == ("add", line_of("added"))


def test_lines_may_be_counted_from_0(recording: Recording) -> None:
    with Client(recording.database) as client:
        client.request("initialize", linesStartAt1=False)
        client.request("launch")
        client.configured()
        [answer] = client.set_lines(recording.script, line_of("added") - 1)
        assert answer["line"] == line_of("added") - 1
        client.go("continue")
        assert client.place() == ("add", line_of("added") - 1)
    with Client(recording.database) as client, pytest.raises(Refused, match="pathFormat"):
        client.request("initialize", pathFormat="uri")
