"""Filters in prompts: mistakes while one is typed, and filters made from an event."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.tree import And, Node, Not, Or, like
from pytracer.reader.filter.units import duration
from pytracer.reader.rows import Row
from pytracer.reader.screen.commands.table import SWITCHES, TYPED, names
from pytracer.reader.screen.effects import Mistake
from pytracer.reader.screen.prompt_completion import (
    FilterCompletion,
    check_pattern,
    complete_command,
    editable,
    from_event,
)
from pytracer.reader.suggestions.names import Names

ASKING = FilterCompletion()

# ---- while it is typed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "f", "func", "func ==", "func == pa", "func == 'pa", "func == 'pa\\", "func == '''p'",
        'func == "it\'s (', "(func == 'a'", "(func == 'a' and", "((func == 'a' or depth > 1) and not (",
        "func in ('a', 'b",
        "func in ['a',", "func == 'a' an", "not", "time > '12:", "func == 'a' ",
    ],
)  # fmt: skip
def test_unfinished(text: str) -> None:
    mistake = ASKING.check(text)
    assert mistake is None or mistake.unfinished


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("funk == 'a'", "funk"),
        ("depth < 5 and funk == 'pay' and (depth", "funk"),
        ("func == pay and depth > (", "pay"),
        ("func == 'a') and 'b", ")"),
        ("kind == 'cal' and func == 'a", "'cal'"),
        ("(func = 'a' and", "="),
        ("[func == 'a') and 'b", ")"),
    ],
)
def test_mistakes(text: str, marked: str) -> None:
    mistake = ASKING.check(text)
    assert mistake
    assert not mistake.unfinished
    assert text[mistake.start : mistake.end] == marked


def test_a_word_is_accepted() -> None:
    """It is answered with filters that have it."""
    for word in ("pay", "'pay'", "Order.pay"):
        assert ASKING.check(word) is None
    assert ASKING.check("func")


def test_the_message() -> None:
    mistake = ASKING.check("funk == 'a'")
    assert mistake
    assert mistake.message == "There is no field funk. Did you mean func?"
    assert ASKING.check("") is ASKING.check("  ") is ASKING.check("func == 'a'") is None


@given(st.text("()[]'\"\\#\n r=a1 ", max_size=30))
def test_what_is_unfinished_can_be_anything(text: str) -> None:
    ASKING.check(text)


def test_a_filter_of_several_lines_is_edited_in_one() -> None:
    assert editable(parse("func=='a' # only a")) == "func=='a' # only a"
    text = editable(parse("func=='a' # only a\nor depth > 2"))
    assert text == "func == 'a' or depth > 2"


def test_completion() -> None:
    asking = FilterCompletion()
    assert [one.text for one in asking.complete("fu", 2).candidates] == ["func"]
    assert asking.complete("func == 'pa", 11).candidates == []
    asking.names = Names(functions=["Order.pay"])
    assert [one.text for one in asking.complete("func == 'pa", 11).candidates] == ["'pay'", "'Order.pay'"]


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", None),
        ("a.*b", None),
        ("(a", Mistake(1, 2, "missing )", True)),
        ("a)b", Mistake(1, 2, "unbalanced parenthesis")),
        ("*a", Mistake(0, 1, "nothing to repeat")),
    ],
)
def test_searches(text: str, mistake: Mistake | None) -> None:
    assert check_pattern(text) == mistake


def test_commands() -> None:
    start, end, found = complete_command(names(), "next-e", 6)
    assert (start, end) == (0, 6)
    assert found[0].text == "next-exception"
    offered = {candidate.text for candidate in complete_command(names(), "", 0).candidates}
    assert offered >= {each.name for each in (*TYPED, *SWITCHES)} | {"run", "level", "width", "slow"}
    assert complete_command(names(), "filter func", 11).candidates == []
    assert complete_command(names(), "fil func", 3).end == 3


# ---- out of an event ------------------------------------------------------------------------


def row(
    *args: tuple[str, str, str],
    kind: str = "call",
    func: bytes = b"Order.pay",
    module: bytes = b"app",
    duration: int | None = None,
    thread: bytes = b"MainThread",
    task: bytes = b"",
    layer: bytes = b"python",
    cpu: int | None = None,
) -> Row:
    listed = json.dumps([dict(zip(("name", "value", "type"), one, strict=True)) for one in args])
    return (
        7, 1, 1000, 10, 11, thread, kind, module, func, b"/app.py", 3, 2, duration, listed, task, layer,
        cpu,
    )  # fmt: skip


def finds(node: Node, event: Row, argument: dict[str, str] | None = None) -> bool:
    """What of the language is offered, on an event; docs/filters.md. argument: that is spoken
    of."""
    if isinstance(node, Not):
        return not any(finds(node.operand, event, one) for one in [*json.loads(event[13]), None])
    if isinstance(node, (And, Or)):
        found = [finds(part, event, argument) for part in node.operands]
        return all(found) if isinstance(node, And) else any(found)
    (constant,) = (constant.value for constant in node.constants)
    if node.field in ("arg", "value", "type"):
        assert node.operator == "=="
        shown = argument and argument["name" if node.field == "arg" else node.field]
        if shown is None:
            return False
        return like(constant, shown) if isinstance(constant, str) else repr(constant) == shown
    if node.field == "duration":
        return event[12] is not None and event[12] >= duration(str(constant))
    fields: dict[str, Any] = {"pid": event[3], "tid": event[4], "kind": event[6]}
    if node.field in fields:
        return bool(fields[node.field] == constant)
    stored = {"thread": event[5], "task": event[14], "module": event[7], "func": event[8]}[node.field]
    return like(str(constant), stored.decode("utf-8", "replace"))


def met(text: str, event: Row) -> bool:
    root = parse(text).root
    return any(finds(root, event, one) for one in [*json.loads(event[13]), None])


def test_what_is_offered() -> None:
    arguments = [("self", "<app.Order at 0x7f00>", "app.Order"), ("user", "'bob'", "str"), ("n", "5", "int")]
    assert from_event(row(*arguments, task=b"Task-7")) == [
        ("function app.Order.pay", "func == 'Order.pay' and module == 'app'"),
        ("self is <app.Order at 0x7f00>", "arg == 'self' and value == '<app.Order at 0x7f00>'"),
        ("self is any app.Order", "arg == 'self' and type == 'app.Order'"),
        ("user is 'bob'", """arg == 'user' and value == "'bob'\""""),
        ("n is 5", "arg == 'n' and value == 5"),
        ("kind call", "kind == 'call'"),
        ("module app", "module == 'app'"),
        ("task Task-7", "task == 'Task-7'"),
        ("thread MainThread", "thread == 'MainThread'"),
        ("thread 11", "tid == 11 and pid == 10"),
        ("process 10", "pid == 10"),
    ]


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0ns"), (999, "999ns"), (1000, "1us"), (1234567, "1.23ms"), (1_000_999, "1ms"),
     (10_050_000_000, "10s"), (59_999_999_999, "59.9s"), (3_723_000_000_000, "3720s")],
)  # fmt: skip
def test_as_slow_as_this(ns: int, text: str) -> None:
    event = row(("return value", "None", "NoneType"), kind="return", duration=ns)
    (offered,) = [wanted for _, wanted in from_event(event) if "duration" in wanted]
    assert offered == f"duration >= '{text}'"
    assert met(offered, event)


def test_exceptions() -> None:
    event = row(("exception", "KeyError('x')", "KeyError"), kind="exception", duration=5)
    offered = dict(from_event(event))
    assert offered["exception is KeyError('x')"] == """arg == 'exception' and value == "KeyError('x')\""""
    assert offered["exception is any KeyError"] == "arg == 'exception' and type == 'KeyError'"


def test_an_event_of_no_function() -> None:
    event = row(("count", "12", "int"), kind="lost", func=b"", module=b"", thread=b"")
    assert [label for label, _ in from_event(event)] == [
        "count is 12",
        "kind lost",
        "thread 11",
        "process 10",
    ]


@pytest.mark.parametrize(
    ("present", "wanted"),
    [
        ("depth > 1", "depth > 1 and kind == 'call'"),
        ("depth > 1 and depth<9", "depth > 1 and depth<9 and kind == 'call'"),
        ("depth > 1 or func == 'b'", "(depth > 1 or func == 'b') and kind == 'call'"),
        ("depth > 1 # deep", "depth > 1 and kind == 'call'"),
        ("depth > 1\nor depth == 0", "(depth > 1 or depth == 0) and kind == 'call'"),
        ("arg == 'n'", "arg == 'n' and kind == 'call'"),
        ("kind == 'call'", None),
        ("func == 'Order.pay' and kind == 'call'", None),
    ],
)
def test_it_is_asked_for_besides(present: str, wanted: str | None) -> None:
    offered = dict(from_event(row(("n", "5", "int")), present))
    assert offered.get("kind call") == wanted


def test_layer_and_processor() -> None:
    offered = dict(from_event(row(layer=b"kernel", cpu=3), ""))
    assert offered["layer kernel"] == "layer == 'kernel'"
    assert offered["processor 3"] == "cpu == 3"
    assert not any(what.startswith(("layer", "processor")) for what, _ in from_event(row(), ""))


def test_several_arguments() -> None:
    event = row(("user", "'bob'", "str"), ("n", "5", "int"))
    first = dict(from_event(event))["user is 'bob'"]
    second = dict(from_event(event, first))
    assert second["n is 5"] == f"{first} and not not (arg == 'n' and value == 5)"
    assert met(second["n is 5"], event)
    assert "user is 'bob'" not in second
    assert not met(second["n is 5"], row(("user", "'bob'", "str"), ("n", "6", "int")))


def test_there_are_limits() -> None:
    event = row(*((f"a{number}", "1", "int") for number in range(100)))
    assert sum("arg ==" in text for _, text in from_event(event)) == 30
    deep = "(depth > 0 or " * 99 + "depth > 0" + ")" * 99
    for _, text in from_event(event, deep):
        parse(text)


NASTY = st.text(
    st.sampled_from("'\"\\%_#\n\r\t\0 .a日\ud800\u202e\U0001f600()") | st.characters(), max_size=20
)
SHOWN = st.one_of(
    NASTY.map(repr),
    NASTY.map(lambda text: repr(text) + "..."),
    NASTY.map(lambda text: repr([text])),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from(["None", "True", "False", "<redacted>", "12...", "1.5...", "<app.Order at 0x7f>"]),
)
TYPES = st.sampled_from(["str", "int", "float", "bool", "NoneType", "list", "app.Order"]) | NASTY
ESCAPED = NASTY.map(lambda name: name.encode("utf-8", "backslashreplace").replace(b"\0", b"\\x00"))
NAMES = ESCAPED.map(bytes.decode)


@given(
    arguments=st.lists(st.tuples(NAMES, SHOWN, TYPES.filter(str.isprintable)), max_size=3),
    func=ESCAPED | st.binary(max_size=8),
    module=ESCAPED,
    duration=st.none() | st.integers(0, 1 << 62),
    present=st.sampled_from(
        ["", "kind == 'call' or arg == '%'", "arg == '%' and type == '%'", "not arg == 'z' # '"]
    ),
)
@example([("", "''", "")], b"", b"", 0, "")
@example([], b"\0\xff", b"", None, "")
def test_whatever_the_event_it_is_found(
    arguments: list[tuple[str, str, str]], func: bytes, module: bytes, duration: int | None, present: str
) -> None:
    event = row(*arguments, func=func, module=module, duration=duration)
    assume(met(present, event))
    for _, text in from_event(event, present):
        assert met(text, event), text
