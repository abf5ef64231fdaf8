"""Conditions on lines, which a scan tests by the line, the depth and the variables that have news,
before it reads any value: they hold for the events whose columns say so."""

from __future__ import annotations

import json
import random

import pytest
from pytracer.reader.database import Database

from handmade import DELETED, Handmade, event, instance

NAMES = [f"v{i}" for i in range(100)] + ["user", "total"]
NUMBERS = {name: i for i, name in enumerate(NAMES)}
SEGMENTS, EVENTS = 12, 60


@pytest.fixture(name="database", scope="module")
def database_fixture(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Lines of two functions and of one that is not defined, at several depths, with news of none,
    one or several of many variables, behind which others stand that did not change."""
    path = tmp_path_factory.mktemp("lines") / "traces.sqlite"
    choice = random.Random(5)
    with Handmade(path) as made:
        run = made.run("app.py", features=3)
        made.code(run, 1, "many", ["a"], variables=NAMES, line=10)
        made.code(run, 2, "few", ["user"], variables=["user", "total"], line=500)
        made.type(run, 1, "app.Order", ["total"])
        for number in range(SEGMENTS):
            records = []
            for _ in range(EVENTS):
                code = choice.choice((1, 1, 2, 77))
                count = choice.choice((0, 0, 1, 1, 2, 5))
                variables = choice.choices(range(len(NAMES) + 3 if code != 2 else 2), k=count)
                values = [choice.choice((1, "bob", DELETED, instance(1, 0x7F00, 3))) for _ in variables]
                changed = choice.choice((None, None, 0, 1, 3))
                if choice.random() < 0.05:
                    variables = variables[:-1]  # one says no name
                line, depth = choice.randint(0, 6), choice.choice((None, None, 1, 2, 3))
                records.append(
                    event("line", code, *values, time=1, line=line, variables=variables, changed=changed,
                          depth=depth)
                )  # fmt: skip
            records.append(event("call", 2, "bob", time=1, depth=2))
            records.append(event("raise", 1, ValueError("bob"), time=1, line=3, depth=3))
            records.append(event("return", 2, 1, time=1, elapsed=1, depth=3))
            made.segment(run, records, sequence=number, start=number * 1000, base_depth=2)
    return Database(str(path))


def test_news_of_variables(database: Database) -> None:
    rows = database.query("ib", "SELECT id, CAST(args AS BLOB) FROM event")
    told = {
        id: {each["name"] for each in json.loads(args)}
        | {f"{each['name']}.total" for each in json.loads(args) if each.get("attributes")}
        for id, args in rows
    }
    for names in (["v0"], ["v62"], ["v63"], ["v99"], ["user"], ["total"], ["user.total"],
                  ["v64.total"], ["nobody"], ["102"], ["v3", "total"]):  # fmt: skip
        each = " ".join(f'(any (= name "{name}"))' for name in names)
        for group, combine in (("and", all), ("or", any)):
            found = database.query("i", "SELECT id FROM event WHERE event MATCH ?", (f"({group} {each})",))
            expected = {id for id, known in told.items() if combine(name in known for name in names)}
            assert {id for (id,) in found} == expected, (group, names)
            assert expected or names in (["nobody"], ["102"]) or (group == "and" and len(names) > 1)


@pytest.mark.parametrize("seed", range(8))
def test_lines_and_depths(database: Database, seed: int) -> None:
    choice = random.Random(seed)
    rows = database.query(
        "iiibb", "SELECT id, line, depth, CAST(kind AS BLOB), CAST(func AS BLOB) FROM event"
    )

    def condition(level: int) -> tuple[str, str]:
        """A predicate, and the same for Python."""
        form = choice.choice(
            ("and", "or", "not", "line", "depth", "kind") if level else ("line", "depth", "func")
        )
        if form == "not":
            text, code = condition(level - 1)
            return f"(not {text})", f"(not {code})"
        if form in ("and", "or"):
            parts = [condition(level - 1) for _ in range(choice.randint(1, 3))]
            return (
                f"({form} {' '.join(text for text, _ in parts)})",
                f"({f' {form} '.join(code for _, code in parts)})",
            )
        if form == "kind":
            kind = choice.choice(("line", "call", "raise", "return"))
            return f'(= kind "{kind}")', f"kind == b'{kind}'"
        if form == "func":
            func = choice.choice(("many", "few"))
            return f'(= qualname "{func}")', f"func == b'{func}'"
        number = choice.choice((0, 1, 2, 3, 5, 10, 500))
        sign = choice.choice(("=", "<", "<=", ">", ">=", "!="))
        return f"({sign} {form} {number})", f"{form} {'==' if sign == '=' else sign} {number}"

    for _ in range(15):
        text, code = condition(3)
        found = database.query("i", "SELECT id FROM event WHERE event MATCH ? ORDER BY time, id", (text,))
        expected = [
            id for id, line, depth, kind, func in rows
            if eval(code, {"line": line, "depth": depth, "kind": kind, "func": func})
        ]  # fmt: skip
        assert sorted(id for (id,) in found) == sorted(expected), text
        last = database.query(
            "i", "SELECT id FROM event WHERE event MATCH ? ORDER BY time DESC, id DESC LIMIT 3", (text,)
        )
        assert last == found[::-1][:3], text
