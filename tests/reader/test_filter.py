"""The filter language: text to SQL, and mistakes to messages."""

import ast
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pytracer.reader.filter.parser import parse
from pytracer.reader.filter.sql import compile, explain
from pytracer.reader.filter.tree import (
    FIELDS,
    And,
    Compare,
    Constant,
    Filter,
    FilterError,
    Node,
    Not,
    Or,
    like,
    unparse,
)
from pytracer.reader.query import Query


class Run(NamedTuple):
    id: int
    started: int
    finished: int | None


SECOND = 1_000_000_000
DAY = 1_700_000_000 // 86400 * 86400 * SECOND  # 2023-11-14 00:00 UTC
NOON = Run(1, DAY + 12 * 3600 * SECOND, DAY + 13 * 3600 * SECOND)
NIGHT = Run(2, DAY + 22 * 3600 * SECOND, DAY + 24 * 3600 * SECOND)  # 23:00 to 01:00, local time


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone that is not UTC, an hour ahead."""
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "CET-1")
        time.tzset()
        yield
    time.tzset()


def compiled(text: str, *runs: Run) -> tuple[str, tuple[int | str, ...]]:
    query = compile(parse(text), runs or [NOON])
    return query.where, query.parameters


def predicate(text: str, *runs: Run) -> str:
    """The predicate of a filter that has no other part."""
    where, (found,) = compiled(text, *runs)
    assert where == "event MATCH ?"
    return str(found)


# ---- what is a constraint of its own ----------------------------------------------------------

EVERY = ("1", ())


@pytest.mark.parametrize(
    ("text", "where", "parameters"),
    [
        ("", *EVERY),
        (" \n\t # nothing", *EVERY),
        ("depth == 3", "depth = ?", (3,)),
        ("depth >= -1", "depth >= ?", (-1,)),
        ("5 > depth", "depth < ?", (5,)),
        ("1 < depth <= 5", "depth > ? AND depth <= ?", (1, 5)),
        ("pid in (1, 2) and tid in [3]", "pid IN (?, ?) AND tid = ?", (1, 2, 3)),
        ("pid in (1)", "pid = ?", (1,)),
        ("duration > '1.5ms'", "duration > ?", (1_500_000,)),
        ("duration > 1_000", "duration > ?", (1000,)),
        ("kind == 'call'", "kind = ?", ("call",)),
        ("kind == 'CALL'", "kind = ?", ("call",)),
        ("kind == 're%'", "kind IN (?, ?)", ("return", "resume")),
        ("kind in ('call', 'return')", "kind IN (?, ?)", ("call", "return")),
        ("kind != '%' or kind == 'log'", "event MATCH ?", ('(or (or) (= kind "log"))',)),
        ("module == 'app.%'", "module LIKE ?", ("app.%",)),
        ("file == '%/app.py' and line == 3", "file LIKE ? AND line = ?", ("%/app.py", 3)),
        ("(depth == 1 and (run == 2))", "depth = ? AND run = ?", (1, 2)),
        (
            "func == 'pay' and depth < 5",
            "depth < ? AND event MATCH ?",
            (5, '(like func "pay")'),
        ),
    ],
)
def test_columns(text: str, where: str, parameters: tuple[int | str, ...]) -> None:
    assert compiled(text) == (where, parameters)


# ---- everything else ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("func == 'pay%'", '(like func "pay%")'),
        ("'pay' == func", '(like func "pay")'),
        ("func != 'pay'", '(not (like func "pay"))'),
        ("func in ('a', 'b')", '(or (like func "a") (like func "b"))'),
        ("func not in ('a', 'b')", '(not (or (like func "a") (like func "b")))'),
        ("func in ()", "(or)"),
        ("thread == 'Main'", '(like thread "Main")'),
        ("func == r'a\\_b'", r'(like func "a\\_b")'),
        ("func == 'a\\_b'", r'(like func "a\\_b")'),
        ("func == 'a\\\\_b'", r'(like func "a\\_b")'),
        (r"module == 'a\_b'", r'(like module "a\\_b")'),
        ("func == 'say \"hi\"'", r'(like func "say \"hi\"")'),
        ("not depth == 3", "(not (= depth 3))"),
        ("depth != 3", "(!= depth 3)"),
        ("depth not in (3, 4)", "(and (!= depth 3) (!= depth 4))"),
        ("depth == 3 or run == 1", "(or (= depth 3) (= run 1))"),
        ("duration not in ('1s',)", "(!= duration 1000000000)"),
        ("duration not in ()", "(between duration -9223372036854775808 9223372036854775807)"),
        ("kind in ('call', 'log') or depth == 1", '(or (in kind "call" "log") (= depth 1))'),
        # arguments
        ("value == 'bob'", '(any (like either "bob"))'),
        ("value != 'bob'", '(any (not (like either "bob")))'),
        ("not value == 'bob'", '(not (any (like either "bob")))'),
        ("value == 5", '(any (= value "5"))'),
        ("value == None", '(any (= value "None"))'),
        ("value == -1.50", '(any (= value "-1.5"))'),
        ("value in (True, 'x')", '(any (or (= value "True") (like either "x")))'),
        ("type != 'int'", '(any (not (like type "int")))'),
        ("arg == 'user' and value == 'x'", '(any (and (like name "user") (like either "x")))'),
        ("arg == 'a' and (value == 'b' and type == 'c')",
         '(any (and (like name "a") (like either "b") (like type "c")))'),
        ("arg == 'a' and (value == 'b' or value == 'c')",
         '(any (and (like name "a") (or (like either "b") (like either "c"))))'),
        ("func == 'f' and arg == 'a'", '(and (like func "f") (any (like name "a")))'),
        ("arg == 'a' and not value == 'b'",
         '(and (any (like name "a")) (not (any (like either "b"))))'),
        ("not (arg == 'a' and value == 'b')", '(not (any (and (like name "a") (like either "b"))))'),
        ("arg == 'a' or func == 'f'", '(or (any (like name "a")) (like func "f"))'),
        ("arg == 'a' and (value == 'b' or func == 'f')",
         '(any (and (like name "a") (or (like either "b") (like func "f"))))'),
        ("(arg == 'a' or func == 'f') and (value == 'b' or func == 'g')",
         '(or (any (and (or (like name "a") (like func "f")) (or (like either "b") (like func "g"))))'
         ' (and (like func "f") (like func "g")))'),
        ("arg == 'a' and (value == 'b' or not value == 'c')",
         '(or (any (and (like name "a") (or (like either "b") (or))))'
         ' (and (not (any (like either "c"))) (any (and (like name "a") (or (like either "b") (and))))))'),
    ],
)  # fmt: skip
def test_predicates(text: str, expected: str) -> None:
    assert predicate(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("depth < 1" + "0" * 30, "(and)"),
        ("depth > 1" + "0" * 30, "(or)"),
        ("depth >= -1" + "0" * 30, "(and)"),
        ("depth == 1" + "0" * 30, "(or)"),
        ("depth != 1" + "0" * 30, "(and)"),
        ("depth in (1" + "0" * 30 + ",)", "(or)"),
        ("depth in (1" + "0" * 30 + ", 5) or depth == 1", "(or (= depth 5) (= depth 1))"),
        ("duration < 9223372036854775808", "(between duration -9223372036854775808 9223372036854775807)"),
        ("duration < '99999999999999999999h'", "(between duration -9223372036854775808 9223372036854775807)"),
    ],
)
def test_numbers_beyond_64_bits(text: str, expected: str) -> None:
    assert predicate(text) == expected


def test_many_conditions_stay_within_the_limits_of_sqlite() -> None:
    where, parameters = compiled(" and ".join(f"depth > {n}" for n in range(1000)))
    assert where.count(" AND ") <= 100
    assert len(parameters) == where.count("?")
    assert "depth > 999" not in where
    assert "(> depth 999)" in str(parameters[-1])
    assert compiled(f"pid in ({','.join(map(str, range(40_000)))})")[0] == "event MATCH ?"
    assert compiled(f"file == '{'x' * 60_000}'")[0] == "event MATCH ?"


# ---- times ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "ns"),
    [
        ("2012/08/15 01:23:45", 1_344_990_225 * SECOND),
        ("2012-08-15 01:23:45", 1_344_990_225 * SECOND),
        ("2012-08-15T01:23:45", 1_344_990_225 * SECOND),
        ("2012-08-15 01:23:45.5", 1_344_990_225 * SECOND + SECOND // 2),
        ("2012-08-15 01:23:45.123456789", 1_344_990_225 * SECOND + 123_456_789),
        ("2012-08-15T01:23:45Z", 1_344_993_825 * SECOND),
        ("2012-08-15T01:23:45+02:00", 1_344_986_625 * SECOND),
        ("2012-08-15T01:23:45-0130", 1_344_999_225 * SECOND),
        ("2012-08-15 01:23", 1_344_990_180 * SECOND),
        ("2012/8/15", 1_344_985_200 * SECOND),
        ("12:30:00", DAY + 11 * 3600 * SECOND + 1800 * SECOND),
        ("12:30", DAY + 11 * 3600 * SECOND + 1800 * SECOND),
        ("14:00:00.25", DAY + 13 * 3600 * SECOND + SECOND // 4),
        ("+1.5s", NOON.started + 3 * SECOND // 2),
        ("+ 2m05s", NOON.started + 125 * SECOND),
    ],
)
def test_times(form: str, ns: int) -> None:
    assert compiled(f"time >= '{form}'") == ("time >= ?", (ns,))
    assert compiled(f"time < {ns}") == ("time < ?", (ns,))


@pytest.mark.parametrize(
    ("run", "clock", "hours"),
    [
        (NIGHT, "23:30", 22.5),
        (NIGHT, "00:30", 23.5),
        (NIGHT, "22:00", 24 + 21),  # behind its end
        (NIGHT._replace(finished=NIGHT.started), "22:00", 21),  # before its start, on the day of it
        (NIGHT._replace(finished=None), "00:30", 23.5),  # not finished, and many midnights ago
    ],
)
def test_a_time_of_day(run: Run, clock: str, hours: float) -> None:
    assert compiled(f"time > '{clock}'", run)[1] == (DAY + round(hours * 3600) * SECOND,)


def test_times_of_several_runs() -> None:
    first, second = NOON.started + SECOND, NIGHT.started + SECOND
    assert predicate("time > '+1s'", NOON, NIGHT) == (
        f"(or (and (= run 1) (> time {first})) (and (= run 2) (> time {second})))"
    )
    assert predicate("time in ('+1s', 5)", NOON, NIGHT) == (
        f"(or (and (= run 1) (in time {first} 5)) (and (= run 2) (in time {second} 5)))"
    )
    assert compiled("time > '2012-08-15 00:00Z'", NOON, NIGHT)[0] == "time > ?"
    assert compile(parse("time > '+1s'"), []) == Query("event MATCH ?", ("(or)",))


@pytest.mark.parametrize(
    ("form", "ns"),
    [
        ("850ns", 850), ("300us", 300_000), ("12.3µs", 12_300), ("12.3\u03bcs", 12_300), ("1.5ms", 1_500_000),
        ("2s", 2 * SECOND), ("2 s", 2 * SECOND), ("1.5m", 90 * SECOND), ("1min", 60 * SECOND),
        ("2m05s", 125 * SECOND), ("3h07m", 11220 * SECOND), ("1h 1m 1.5s", 3661 * SECOND + SECOND // 2),
        ("0.1ns", 0), ("0s", 0), ("0.000000001s", 1),
    ],
)  # fmt: skip
def test_durations(form: str, ns: int) -> None:
    assert compiled(f"duration >= '{form}'") == ("duration >= ?", (ns,))


# ---- the tree ------------------------------------------------------------------------------------


def test_places_in_the_text() -> None:
    text = "func == 'pay' and (1 < depth < 5 or not 'é' == value)"
    tree = parse(text)
    assert tree == Filter(
        "",
        And(
            (
                Compare("func", "==", (Constant("pay"),)),
                Or(
                    (
                        And(
                            (
                                Compare("depth", ">", (Constant(1),)),
                                Compare("depth", "<", (Constant(5),)),
                            )
                        ),
                        Not(Compare("value", "==", (Constant("é"),))),
                    )
                ),
            )
        ),
    )

    def places(node: Node) -> Iterator[str]:
        yield text[node.start : node.end]
        if isinstance(node, Compare):
            yield from (text[constant.start : constant.end] for constant in node.constants)
        elif isinstance(node, Not):
            yield from places(node.operand)
        else:
            for operand in node.operands:
                yield from places(operand)

    assert list(places(tree.root)) == [
        text,
        "func == 'pay'", "'pay'",
        "1 < depth < 5 or not 'é' == value",
        "1 < depth < 5", "1 < depth", "1", "depth < 5", "5",
        "not 'é' == value", "'é' == value", "'é'",
    ]  # fmt: skip


def test_constants_of_different_types_differ() -> None:
    assert len({Constant(1), Constant(True), Constant(1.0), Constant("1"), Constant(1, 5, 6)}) == 4
    assert And(()) != Or(())
    assert parse("value == 1") != parse("value == True")


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("", ""),
        ("  'pay'==func ", "func == 'pay'"),
        ("1 < depth < 5", "depth > 1 and depth < 5"),
        ("not (func == 'a' or func == 'b')", "not (func == 'a' or func == 'b')"),
        ("not func == 'a' or func == 'b'", "not func == 'a' or func == 'b'"),
        ("func == 'a' and (func == 'b' and func == 'c')", "func == 'a' and func == 'b' and func == 'c'"),
        ("func == 'a' and (func == 'b' or func == 'c')", "func == 'a' and (func == 'b' or func == 'c')"),
        ("func in ['a']", "func in ('a',)"),
        ("value not in (None, 1.5, 'x', -3)", "value not in (None, 1.5, 'x', -3)"),
        ("value == 1e999", "value == 1e999"),
        ("func == '\\x1b'", "func == '\\x1b'"),
        ("time > '+1.5s'", "time > '+1.5s'"),
    ],
)
def test_unparse(text: str, again: str) -> None:
    assert unparse(parse(text)) == again
    assert parse(again) == parse(text)


def test_unparse_of_trees_that_are_no_text() -> None:
    pay = Compare("func", "==", (Constant("pay"),))
    assert unparse(And((pay,))) == unparse(Or((And((pay,)),))) == "func == 'pay'"
    assert unparse(Not(And((pay,)))) == "not func == 'pay'"
    for empty in (Or(()), Not(And(()))):
        assert compile(parse(unparse(empty)), []).parameters[0] in ("(or)", "(not (and))")
    assert unparse(And((And((pay, pay)), Or((pay, pay))))) == (
        "func == 'pay' and func == 'pay' and (func == 'pay' or func == 'pay')"
    )


# ---- SQL for people ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "1"),
        ('depth < 5 and module == "it\'s?"', "depth < 5 AND module LIKE 'it''s?'"),
        ("func == 'a?b'", "event MATCH '(like func \"a?b\")'"),
        ("module == 'a\\x1bb'", "module LIKE 'a' || char(27) || 'b'"),
        (r"module == 'a\n\t\'b'", "module LIKE 'a' || char(10, 9) || '''b'"),
        ("module == ''", "module LIKE ''"),
        ("kind in ('call', 'log')", "kind IN ('call', 'log')"),
    ],
)
def test_explain(text: str, where: str) -> None:
    explained = explain(compile(parse(text), []))
    assert explained == f"SELECT * FROM event\nWHERE {where}\nORDER BY time, id"


# ---- LIKE ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("call", ["call", "CALL"], ["cal", "calls"]),
        ("c%", ["call", "c"], ["log", ""]),
        ("%l_", ["alls", "lo"], ["l", "cal"]),
        (r"\c\%", ["c%"], ["call"]),
        ("%a%l%", ["call", "al"], ["la"]),
        ("%%", ["", "x\ny"], []),
        ("Ö", ["Ö"], ["ö"]),
        ("k", ["k"], ["\N{KELVIN SIGN}"]),
    ],
)
def test_like(pattern: str, matching: list[str], others: list[str]) -> None:
    assert [text for text in matching + others if like(pattern, text)] == matching


# ---- mistakes ------------------------------------------------------------------------------------

# text | what is marked | what the message has
MISTAKES = [
    # other languages
    ("func = 'pay'", "=", "write =="),
    ("func === 'pay'", "===", "write =="),
    ("func <> 'pay'", "<>", "write !="),
    ("func == 'a' && pid == 1", "&&", "write and"),
    ("func == 'a' || pid == 1", "||", "write or"),
    ("!(func == 'a')", "!", "write not"),
    ("func == 'a' AND pid == 1", "AND", "write and"),
    ("func == 'a' OR pid == 1", "OR", "write or"),
    ("NOT func == 'a'", "NOT", "write not"),
    ("func IN ('a',)", "IN", "write in"),
    ("func LIKE 'pay%'", "LIKE", "write =="),
    ("func like 'pay%'", "like", "write =="),
    ("func IS NULL", "IS", "write =="),
    ("value is None", "is", "write =="),
    ("value == NULL", "NULL", "write None"),
    ("value == true", "true", "write True"),
    ("depth BETWEEN 1 AND 5", "BETWEEN", "1 < depth < 5"),
    ("func == \u2018pay\u2019", "\u2018", "straight quotes"),
    ("func == “pay”", "“", "straight quotes"),
    ("func == `pay`", "`", "straight quotes"),
    ("func == 'a'; pid == 1", ";", "one expression"),
    ("func == 'a', pid == 1", ",", "write and"),
    # Python that a filter does not have
    ("len(value) > 3", "len(", "cannot call functions"),
    ("func('pay')", "func(", "cannot call functions"),
    ("func == pay()", "pay(", "func == 'pay'"),
    ("func.startswith('pay')", ".", "attributes"),
    ("order.amount == 5", "order.", "attributes"),
    ("'a'.upper() == func", ".", "attributes"),
    ("value[0] == 1", "[", "as it is shown"),
    ("depth + 1 == 3", "+", "cannot calculate"),
    ("-depth == 3", "-", "cannot calculate"),
    ("depth % 2 == 0", "%", "cannot calculate"),
    ("lambda: depth", "lambda", "cannot define functions"),
    ("(depth := 3)", ":=", "cannot assign"),
    ("func == 'a' if depth == 1 else pid == 2", "if", "conditional"),
    ("depth in [x for x in y]", "x", "no field x"),
    ("[1 for depth in (1,)]", "for", "comprehensions"),
    ("depth in {1, 2}", "{", "sets"),
    ("func == f'{x}'", "f'{x}'", "f-strings"),
    ("value == b'x'", "b'x'", "bytes"),
    ("func == *", "*", "wildcards stand inside of quotes"),
    ("await func", "await", "cannot wait"),
    ("yield", "yield", "cannot yield"),
    # names
    ("funk == 'a'", "funk", "did you mean func?"),
    ("Func == 'a'", "Func", "did you mean func?"),
    ("durration > 5", "durration", "did you mean duration?"),
    ("function == 'a'", "function", "did you mean func?"),
    ("exception == 'a'", "exception", "did you mean kind == 'exception'?"),
    ("x", "x", "fields: time tid"),
    ("x < 'a'", "x", "fields: time tid"),
    ("customer == 'carol'", "customer", "did you mean arg == 'customer' and value == 'carol'?"),
    ("depth < 3 and note != \"it's\"", "note", 'arg == \'note\' and value != "it\'s"?'),
    ("amount = 5", "amount", "did you mean arg == 'amount' and value == 5?"),
    ("user == bob", "user", "value == 'bob'?"),
    ("ready == True", "ready", "did you mean arg == 'ready' and value == True?"),
    ("x == 'a", "x", "fields: time tid"),
    ("func == pay", "pay", "in quotes: 'pay'"),
    ("type == int", "int", "in quotes: 'int'"),
    ("func in (pay, 'x')", "pay", "in quotes: 'pay'"),
    ("kind == 'cal'", "'cal'", "did you mean 'call'?"),
    ("kind in ('call', 'zzz')", "'zzz'", "kinds: call return"),
    ("kind != 'a%'", "'a%'", "no kind"),
    # values
    ("depth == '5'", "'5'", "write 5"),
    ("depth == 'x'", "'x'", "whole number"),
    ("depth == 1.5", "1.5", "whole number"),
    ("depth == True", "True", "whole number"),
    ("duration == True", "True", "whole number"),
    ("time == None", "None", "2012/08/15 01:23:45"),
    ("func == 5", "5", "write it in quotes: '5'"),
    ("func == None", "None", "is a text"),
    ("type == None", "None", "'NoneType'"),
    ("duration > '5'", "'5'", "such as '1.5ms'"),
    ("duration > '5 parsecs'", "'5 parsecs'", "ns us µs ms s m h"),
    ("duration > '-5s'", "'-5s'", "is no duration"),
    ("duration > '1.5m3s'", "'1.5m3s'", "is no duration"),
    ("duration > 5ms", "5ms", "in quotes: '5ms'"),
    ("duration > 1.5ms", "1.5ms", "in quotes: '1.5ms'"),
    ("duration > 1.5", "1.5", "such as '1.5ms'"),
    ("duration > 5", "5", "write '5ms'"),
    ("duration in ('1s', 999)", "999", "999 has no unit"),
    ("time > 'noon'", "'noon'", "'+1.5s' after the start"),
    ("time > '25:00'", "'25:00'", "no hour 25"),
    ("time > '12:60'", "'12:60'", "no minute 60"),
    ("time > '2023-02-30'", "'2023-02-30'", "there is no 2023-02-30"),
    ("time > '0001-01-01'", "'0001-01-01'", "there is no"),
    ("time > '2023-02-03 10:00+99:99'", "'2023-02-03 10:00+99:99'", "there is no"),
    ("time > '+1'", "'+1'", "is no time"),
    ("time > 10:30", "10:", "in quotes"),
    ("time > 2012/08/15", "2012/", "in quotes"),
    ("time > 2012-08-15", "2012-", "in quotes"),
    ("depth == 007", "007", "no zeros in front"),
    ("depth == 1__2", "1__2", "is no number"),
    ("depth == " + "9" * 5000, "9" * 5000, "too many digits"),
    ("value == 0x" + "9" * 5000, "0x" + "9" * 5000, "too long"),
    ("func == 'a\\\\'", "'a\\\\'", "escapes nothing"),
    ("func == 'a\\x'", "\\x", "stands for no character"),
    ("func == '\\N{NO SUCH NAME}'", "\\N{NO SUCH NAME}", "stands for no character"),
    ("func == '\\U00110000'", "\\U00110000", "stands for no character"),
    ("func == 'a\0'", "'a\0'", r"is shown, and found, as \x00"),
    ("func == '\ud800'", "'\ud800'", r"is shown, and found, as \ud800"),
    ("value == [1, 2]", "[1, 2]", "one value"),
    ("func == ('a', 'b')", "('a', 'b')", "write func in"),
    ("func < 'a'", "func < 'a'", "is a text"),
    ("value > 5", "value > 5", "is a text"),
    ("func in 'pay'", "'pay'", "write func in ('pay',)"),
    ("'pay' in func", "'pay' in func", "did you mean func == '%pay%'?"),
    ("func in (('a', 'b'), 'c')", "('a', 'b')", "cannot hold lists"),
    ("func in (module, 'c')", "module", "no fields"),
    ("func == 'pay' 'bob'", "'bob'", "beside each other"),
    # structure
    ("func", "func", "func == 'pay'"),
    ("not value", "value", "value == '%bob%'"),
    ("'pay'", "'pay'", "func == 'pay'"),
    ("True", "True", "no condition"),
    ("func == 'a' or 'b'", "'b'", "func in ('a', 'b')"),
    ("func == ('a' or 'b')", "'a' or 'b'", "in ('a', 'b')"),
    ("func == not 'a'", "not", "expected a value"),
    ("(func == 'a') == 'b'", "func == 'a'", "cannot be made with a condition"),
    ("func == module", "func == module", "two fields"),
    ("1 == 1", "1 == 1", "No field"),
    ("1 < 2 < depth", "1 < 2", "No field"),
    ("func == 'a' == 'b'", "'a' == 'b'", "No field"),
    ("(func == 'a', pid == 1)", None, "join conditions with and"),
    ("[func == 'a']", "[func == 'a']", "no condition"),
    ("func ==", "==", "expected a value"),
    ("func in", "in", "expected values"),
    ("func == 'a' and", "and", "expected a condition"),
    ("and func == 'a'", "and", "cannot begin"),
    ("func == 'a' and and pid == 1", "and", "cannot follow and"),
    ("func 'pay'", "'pay'", "expected an operator"),
    ("func == 'a' pid == 1", "pid", "expected and, or or"),
    ("func == 'a' andd pid == 1", "andd", "did you mean and?"),
    ("()", ")", "cannot follow ("),
    ("(func == 'a'", "(", "never closed"),
    ("(func == 'a' and", "and", "expected a condition"),
    ("func == 'a')", ")", "no bracket"),
    ("func in ('a']", "]", "expected )"),
    ("func == 'a", "'", "never closed"),
    ("func == \"a'", '"', "never closed"),
    ("func == 'a\nb'", "'", "never closed"),
    ("func == '''a''", "'''", "never closed"),
    ("func == $x", "$", "expected a value"),
    ("func == 'a' \\ \n and pid == 1", "\\", "cannot follow"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "marked", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_mistakes(text: str, marked: str | None, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    error = caught.value
    assert message in f"{error.problem} {error.hint}"
    assert error.text == text
    if marked is not None:
        assert text[error.start : error.end] == marked
    assert str(error).isprintable() or all(line.isprintable() for line in str(error).split("\n"))


def test_a_message() -> None:
    with pytest.raises(FilterError) as caught:
        parse("depth < 5 and funk == 'pay'")
    assert str(caught.value).split("\n") == [
        "depth < 5 and funk == 'pay'",
        "              ^^^^",
        "There is no field funk.",
        "did you mean func?",
    ]


def test_a_long_filter_is_cut_around_the_mistake() -> None:
    good = " or ".join(["depth == 1"] * 100)
    with pytest.raises(FilterError) as caught:
        parse(f"{good} or funk == 'a' or {good}")
    shown, marks, *_ = str(caught.value).split("\n")
    assert shown[0] == shown[-1] == "…"
    assert len(shown) < 100
    assert shown[marks.index("^") : marks.rindex("^") + 1] == "funk"


@pytest.mark.parametrize(
    ("text", "shown", "before"),
    [
        ("func == '\x1b[31m' x", r"func == '\x1b[31m' x", 19),
        ("func == 'a\tb' x", r"func == 'a\tb' x", 15),
        ("func == '日本' x", "func == '日本' x", 15),
        ("func == 'e\u0301' x", "func == 'e\u0301' x", 12),
        ("func == '\u202e' x", r"func == '\u202e' x", 17),
    ],
)
def test_the_mark_stands_below_the_mistake(text: str, shown: str, before: int) -> None:
    with pytest.raises(FilterError) as caught:
        parse(text)
    assert str(caught.value).split("\n")[:2] == [shown, " " * before + "^"]


# ---- bad input -----------------------------------------------------------------------------------

EXPANDING = " and ".join(f"(value == '{n}' or not value == 'x{n}')" for n in range(20))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 10_000 + "func == 'a'" + ")" * 10_000, "nested too deep"),
        ("[" * 100_000, "nested too deep"),
        ("not " * 10_000 + "func == 'a'", "nested too deep"),
        ("not (" * 60 + "func == 'a'" + ")" * 60, "nested too deep"),
        ("-" * 100_000 + "1", "cannot calculate"),
        ("a" + ".b" * 50_000, "attributes"),
        ("x" * 100_000, "no field"),
        ("func == " + "x" * 100_000, "no field"),
        ("'" + "x" * 100_000 + "' in func", "stands in front of in"),
        ("'" * 100_001, "beside each other"),
        ("'\\" * 50_000, "never closed"),
        ("func == 'a' or " * 100_000, "too long"),
        ("kind == '" + "%a" * 50_000 + "'", "no kind"),
        (f"arg == 'x' and {EXPANDING}", "Too many `not`"),
    ],
    ids=range(14),
)
def test_bad_input_is_answered_quickly(text: str, message: str) -> None:
    began = time.process_time()
    with pytest.raises(FilterError, match=message) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text",
    [
        " or ".join(f"func == 'f{n}'" for n in range(10_000)),
        " and ".join(f"value != 'f{n}'" for n in range(10_000)),
        "func in (" + ", ".join(f"'f{n}'" for n in range(10_000)) + ")",
        "(" * 100 + "func == 'a'" + ")" * 100,
        "(arg == 'x' or func == 'f' and " * 60 + "value == 'a'" + ")" * 60,
        "0 <" + " depth < 5 >" * 1000 + " depth",
        "func == '" + "x" * 100_000 + "'",
    ],
    ids=range(7),
)
def test_large_filters(text: str) -> None:
    began = time.process_time()
    tree = parse(text)
    explain(compile(tree, [NOON, NIGHT]))
    assert time.process_time() - began < 2
    assert parse(unparse(tree)) == tree


WORDS = [
    *FIELDS, "and", "or", "not", "in", "==", "!=", "<", "(", ")", "[", "]", ",", "-", "=", ".", "'", '"""',
    "'pay%'", "'call'", "'+1s'", "'2ms'", "5", "1.5", "0x", "None", "is", "lambda", "f'", "b''", "\\", "#",
    "\n", "\0", "\ud800", "if", "\r", "r'\\'", "'\\N{", "'\\777'", "1e9999", "\u0663",
]  # fmt: skip
TEXTS = st.text(st.characters(), max_size=40) | st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)


def mistake(text: str) -> FilterError | None:
    """The complaint of parse; it may raise nothing but a FilterError, not even a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            parse(text)
        except FilterError as error:
            return error
    return None


@given(TEXTS)
@example("func == 'a\\\nb'")
@example("depth\r==\r3")
@example("depth == \u00b2")
@example(")")
def test_nothing_but_filter_errors(text: str) -> None:
    if error := mistake(text):
        assert 0 <= error.start < error.end <= len(text)
        _, marks, *_ = str(error).split("\n")
        assert re.fullmatch(r" *\^+", marks)
    else:
        tree = parse(text)
        assert parse(unparse(tree)) == tree
        explain(compile(tree, [NOON, NIGHT]))


@given(st.text("ab\\nNxuU{}0123456789'\"\n _%é", max_size=12), st.sampled_from(["'", '"', "'''", '"""']))
def test_strings_say_what_they_say_to_python(body: str, quote: str) -> None:
    token = quote + body + quote
    error = mistake(f"func == {token}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = ast.literal_eval(token)
    except (SyntaxError, ValueError):
        assert error
        return
    if error:
        assert re.search("No recorded text|backslash at the end|beside each other", str(error))
    else:
        root = parse(f"func == {token}").root
        assert isinstance(root, Compare)
        assert root.constants[0].value == said


@pytest.mark.parametrize(
    "text", [r"func == 'a\ b'", r"func == '\_\%\d'", "1 < depth or value == 1and depth < 2"]
)
def test_python_does_not_warn(text: str) -> None:
    mistake(text)


def test_only_what_is_needed_is_imported() -> None:
    # the first line should be there at once
    code = "import sys, pytracer.reader.filter.parser; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True)
    slow = {"dataclasses", "inspect", "difflib", "json", "unicodedata", "apsw", "datetime"}
    assert slow.isdisjoint(done.stdout.split())


def test_the_examples_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "filters.md").read_text()
    examples = [
        line for block in re.findall(r"```filter\n(.*?)```", page, re.DOTALL) for line in block.splitlines()
    ]
    assert len(examples) > 20
    for text in examples:
        compile(parse(text), [NOON])
    for name in FIELDS:
        assert f"`{name}`" in page
    with pytest.raises(FilterError) as caught:
        parse("func == pay and kind == 'cal'")
    assert f"\n{caught.value}\n" in page
