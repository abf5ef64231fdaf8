"""Predicates in C against their meaning in Python: of single events, of sets of events, of
bodies."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predicates import (
    NO_CODE,
    UNDEFINED,
    Code,
    Definitions,
    Event,
    Predicates,
    Run,
    Tree,
    build_predicates,
    holds,
    written,
)
from records import CONSTANTS, CONTAINERS, KINDS, NAMED, Record, Val, container, val
from records import NUMBERS as KIND_NUMBERS
from shared import Shared

NEVER, ALWAYS, MAYBE = range(3)
INT64 = (-(1 << 63), (1 << 63) - 1)

RUN = Run(
    codes={
        1: Code("app", "pay", "/home/me/app.py", 10, ("user", "amount"), True, ("user", "amount", "total")),
        2: Code("app.shop", "Order.pay", "/home/me/shop.py", 20, ("self", "user", "argument 5"), layer="c"),
        3: Code("app", "main.<locals>.pay_all", "/home/me/app.py", 30, variables=("größe", "")),
        5: Code("Größe", "Größe", "größe.py", 40, ("größe",), layer="kernel"),
    },
    threads={1: (100, 100, "MainThread"), 7: (100, 107, "worker"), 9: (200, 200, "Größe")},
    types={1: "app.Order", 2: "app.make.<locals>.Point", 3: "ValueError", 4: "Größe", 6: "list"},
)


# the same with items of named tuples and with attributes
RUNS = (
    RUN,
    replace(
        RUN,
        fields={1: ("alice",), 2: ("amount", "a\nbob", ""), 4: ("Größe", "needle")},
        attributes={1: ("user", "needle"), 2: ("Größe",), 6: ("amount", "a\nbob", "")},
    ),
)


@pytest.fixture(scope="module")
def predicates(shared: Shared) -> Predicates:
    return Predicates(shared("predicates", build_predicates))


@pytest.fixture(scope="module")
def run(predicates: Predicates) -> Definitions:
    return predicates.definitions(RUN)


# ---- events and trees of all sorts ------------------------------------------------------------
# Drawn with dice, not by hypothesis, which would take a thousand times as long for them.

WORDS = (
    "bob", "alice", "needle", "Größe", "it's", "1", "42", "a\nbob", "\x1babc", "\u2028token", "x\\n", "",
    'say "hi"', "Order", "%", "_",
)  # fmt: skip
FOUND = (
    *WORDS, *KINDS, "python", "kernel", "MainThread", "app", "app.shop", "pay", "Order.pay", "user", "amount",
    "argument 1", "argument 5", "argument 3", "variable 3", "variable 4", "total", "total.user",
    "variable 2.Größe",
    "return value", "exception", "message", "count", "yield value", "str", "int",
    "app.Order", "'bob'", "?", "None", "ValueError('bob')", "[1, 'bob']", "\\n", "u2028", "x1b", "x1babc",
    "user.needle", "self.user", "argument 1.Größe", "return value.amount", "app.Order(user='bob')",
    "<app.Order at 0x7f00deadbeef>", "needle=",
    "nbob", "1babc", "u2028token", "28token", "oken", "bound method", "ORDER", "2", "<class 'app.Order'>",
)  # fmt: skip
NUMBERS = (0, 1, 2, 5, 10, 20, 31, 42, 100, 107, 200, *INT64)

NUMBER_FIELDS = (
    *("id", "run", "time", "pid", "tid", "line", "depth", "duration", "mine", "trailing"),
    *("cpu", "stream", "process"),
)
TEXT_FIELDS = ("thread", "task", "kind", "layer", "module", "file", "qualname", "func")
ARGUMENT_FIELDS = (("position",), ("name", "value", "text", "either", "type"))
EVENT_FIELDS = (NUMBER_FIELDS, TEXT_FIELDS)
Fields = tuple[Sequence[str], Sequence[str]]

SEEDS = st.integers(0, (1 << 32) - 1)
ROUNDS = 50  # for each seed


def a_number(dice: Random) -> int:
    return dice.choice(NUMBERS) if dice.random() < 0.7 else dice.randint(-50, 150)


def a_text(dice: Random) -> str:
    if dice.random() < 0.7:
        return dice.choice(WORDS)
    return "".join(dice.choices("bobneedl\n\x1b\u20281%_é'\"\\", k=dice.randint(0, 12)))


def a_value(dice: Random, depth: int = 2) -> Val:
    type_ = dice.choice((0, 0, 0, *RUN.types, 99))
    length = dice.choice((0, 0, 0, 50))
    what = dice.choice(
        ("constant", "integer", "floating", "text", "text", "data", "repr", "big", "address", "named")
        + ("container",) * (2 * (depth > 0))
    )
    match what:
        case "constant":
            return Val(what, dice.randrange(len(CONSTANTS)), (), type_)
        case "integer":
            return Val(what, a_number(dice), (), type_, length)
        case "floating":
            return Val(what, dice.choice((0.5, 1e300, float("inf"), -1.0, float("nan"))), (), type_)
        case "address":
            items = tuple(a_value(dice, depth - 1) for _ in range(dice.randint(0, 3) * (depth > 0)))
            address = dice.choice((0, 0x7F00DEADBEEF, dice.getrandbits(48)))
            return Val(what, address, items, type_, length if items else 0)
        case "named":
            return Val(what, dice.randrange(len(NAMED)), (), type_, length, a_text(dice).encode())
        case "container":
            items = tuple(a_value(dice, depth - 1) for _ in range(dice.randint(0, 3)))
            return Val(what, dice.randrange(len(CONTAINERS)), items, type_, length)
    content = a_text(dice).encode() if dice.random() < 0.8 else dice.randbytes(dice.randint(0, 8))
    return Val(what, content, (), type_, length)


def an_event(dice: Random) -> Event:
    kind = dice.choice(KINDS)
    record = Record(
        kind,
        dice.choice((0, 1, 2, 3, 4, 5, 77)) if kind != "lost" else dice.choice((0, 42, (1 << 64) - 1)),
        line=dice.choice((0, 31, 32)) if kind in ("raise", "log", "line") else 0,
        values=() if kind == "lost" else tuple(a_value(dice) for _ in range(dice.randint(0, 4))),
        names=tuple(a_text(dice).encode() for _ in range(dice.randint(0, 3))) if kind == "log" else (),
        variables=tuple(dice.randrange(4) for _ in range(dice.randint(0, 4))) if kind == "line" else (),
        changed=dice.choice((None, 0, 1, 2, 9)) if kind == "line" else None,
        trailing=kind == "line" and dice.random() < 0.3,
    )
    lasts = kind in ("return", "exception", "yield") and dice.random() < 0.8
    return Event(
        record,
        id=dice.randint(0, 100),
        time=dice.randint(-10, 100),
        depth=dice.randint(0, 5),
        duration=dice.randint(0, 100) if lasts else None,
        stream=dice.choice(sorted(RUN.threads)),
        task=dice.choice(("", *WORDS[:4])),
        cpu=dice.choice((None, 0, 1, 5)),
    )


def a_pattern(dice: Random) -> str:
    text = dice.choice(FOUND)
    text = text.replace("\\", "\\\\") if dice.random() < 0.5 else text
    start, end = sorted((dice.randint(0, len(text)), dice.randint(0, len(text))))
    piece = text[start:end]
    return dice.choice(
        (text, f"%{text}%", f"%{text}", f"{text}%", f"%{piece}%", f"{text[:start]}_{text[end:]}")
    )


def a_condition(dice: Random, fields: Fields) -> Tree:
    numbers, texts = fields
    if dice.random() < len(numbers) / (len(numbers) + 2 * len(texts)):
        field = dice.choice(numbers)
        match dice.choice(("=", "!=", "<", "<=", ">", ">=", "between", "in")):
            case "between":
                return ("between", field, a_number(dice), a_number(dice))
            case "in":
                return ("in", field, *(a_number(dice) for _ in range(dice.randint(0, 4))))
            case word:
                return (word, field, a_number(dice))
    field = dice.choice(texts)
    match dice.choice(("=", "!=", "in", "like", "like", "like", "plain")):
        case "plain":
            return ("plain", field)
        case "like":
            return ("like", field, a_pattern(dice))
        case "in":
            return ("in", field, *(dice.choice(FOUND) for _ in range(dice.randint(0, 4))))
        case word:
            return (word, field, dice.choice(FOUND))


def a_tree(dice: Random, leaf: Callable[[], Tree], depth: int = 3) -> Tree:
    roll = dice.random()
    if depth and roll < 0.4:
        members = (a_tree(dice, leaf, depth - 1) for _ in range(dice.choice((0, 1, 2, 2, 3, 4))))
        return (dice.choice(("and", "or")), *members)
    if depth and roll < 0.55:
        return ("not", a_tree(dice, leaf, depth - 1))
    return leaf()


def on_arguments(dice: Random) -> Tree:
    """Conditions on one argument, and now and then on its event."""
    mixed = dice.random() < 0.3

    def leaf() -> Tree:
        return a_condition(dice, EVENT_FIELDS if mixed and dice.random() < 0.3 else ARGUMENT_FIELDS)

    return a_tree(dice, leaf, 2)


def on_events(dice: Random) -> Tree:
    def leaf() -> Tree:
        return ("any", on_arguments(dice)) if dice.random() < 0.6 else a_condition(dice, EVENT_FIELDS)

    return a_tree(dice, leaf)


# ---- what they mean ---------------------------------------------------------------------------


@given(seed=SEEDS)
def test_a_single_event(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        tree, event = on_events(dice), an_event(dice)
        made, body = predicates.parse(tree), predicates.body([event])
        answer = predicates.lib.predicate_ask(made, run.facts(event, body, dice.choice(HOW)))
        assert answer == (ALWAYS if holds(tree, event, run) else NEVER), (written(tree), event)
        # without its arguments: the same, or unknown
        other = predicates.lib.predicate_ask(made, run.facts(event, None))
        assert other in (answer, MAYBE), (written(tree), event)


HOW = ("decode", "skim", "head")
FACTS = (
    "id", "time", "depth", "line", "duration", "has_duration", "lacks_duration", "kinds", "run", "thread",
    "code", "task_known", "cpu", "has_cpu", "lacks_cpu",
)  # fmt: skip


@given(seed=SEEDS)
def test_a_set_of_events(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        tree, some = on_events(dice), [an_event(dice) for _ in range(dice.choice((1, 1, 2, 3, 5)))]
        if dice.random() < 0.5:  # of one function
            code = dice.choice((1, 2, 3, 77))
            some = [
                replace(event, record=replace(event.record, what=code))
                for event in some
                if event.record.kind != "lost"
            ]
        if not some:
            continue
        known = {fact for fact in FACTS if dice.random() < 0.8}
        facts = run.set_facts(some, known, dice.choice((0, 0, 5)))
        answer = predicates.lib.predicate_ask(predicates.parse(tree), facts)
        truths = {holds(tree, event, run) for event in some}
        assert answer == MAYBE or truths == {answer == ALWAYS}, (written(tree), some, known)


@given(seed=SEEDS)
def test_a_single_argument(predicates: Predicates, seed: int) -> None:
    """Conditions on the columns of a table of arguments: no `any` around them."""
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        tree, event = on_arguments(dice), an_event(dice)
        made = untangled(predicates, tree)
        facts = run.facts(event, predicates.body([event]))
        for argument in run.arguments(event.record):
            value = run.value(argument.recorded)
            answer = predicates.lib.predicate_ask_argument(
                made, facts, argument.position, run.string(argument.name), value
            )
            assert answer == holds(tree, event, run, argument), (written(tree), event, argument)


def untangled(predicates: Predicates, tree: Tree) -> Any:
    """Made by the functions, and not by the parser, which wants `any` around these."""
    lib, ffi = predicates.lib, predicates.ffi

    def make(tree: Tree) -> Any:
        word, *rest = tree
        if word in ("and", "or", "not"):
            members = ffi.new("struct predicate *[]", [make(member) for member in rest])
            return lib.predicate_group(("and", "or", "not").index(word), members, len(rest))
        name, *values = rest
        field = getattr(lib, f"FIELD_{name.upper()}")
        match word:
            case "plain":
                return lib.predicate_plain(field)
            case "like":
                pattern = values[0].encode()
                return lib.predicate_like(field, pattern, len(pattern), ord("\\"))
            case "=" | "!=" | "in" if all(isinstance(value, str) for value in values) and values:
                each = [value.encode() for value in values]
                made = [lib.predicate_equal(field, value, len(value)) for value in each]
                whole = lib.predicate_group(lib.GROUP_OR, ffi.new("struct predicate *[]", made), len(made))
                return whole if word != "!=" else lib.predicate_group(
                    lib.GROUP_NOT, ffi.new("struct predicate *[]", [whole]), 1
                )  # fmt: skip
            case "in":
                return lib.predicate_numbers(field, ffi.new("int64_t[]", values), len(values))
        low, high = INT64
        spans = {
            "=": [(values[0], values[0])],
            "!=": [(low, values[0] - 1), (values[0] + 1, high)],
            "<": [(low, values[0] - 1)],
            "<=": [(low, values[0])],
            ">": [(values[0] + 1, high)],
            ">=": [(values[0], high)],
            "between": [(values[0], values[-1])],
        }[word]
        made = [lib.predicate_range(field, a, b) for a, b in spans if low <= a <= b <= high]
        return lib.predicate_group(lib.GROUP_OR, ffi.new("struct predicate *[]", made), len(made))

    return ffi.gc(make(tree), lib.predicate_free)


# ---- what must be told without the event ------------------------------------------------------


def ask_code(predicates: Predicates, run: Definitions, tree: Tree | str, code: int, *kinds: str) -> int:
    """The answer for all events of these kinds in a function."""
    facts = predicates.ffi.new("struct facts *", predicates.lib.facts_unknown)
    facts.kinds = sum(1 << KIND_NUMBERS[kind] for kind in kinds)
    facts.run = run.c
    facts.code = predicates.lib.run_code_find(run.c, code)
    return int(predicates.lib.predicate_ask(predicates.parse(tree), facts))


@pytest.mark.parametrize(
    ("tree", "code", "kinds", "answer"),
    [
        ('(= func "pay")', 1, KINDS, ALWAYS),
        ('(= func "pay")', 2, KINDS, ALWAYS),
        ('(= qualname "pay")', 2, KINDS, NEVER),
        ('(like module "app%")', 2, KINDS, ALWAYS),
        ("(= line 20)", 2, ("call", "return"), ALWAYS),
        ("(= line 20)", 2, ("call", "raise"), MAYBE),
        ("(= line 20)", 2, ("line",), MAYBE),
        ("(> duration 5)", 2, ("call", "raise", "line"), NEVER),
        ("(> duration 5)", 2, ("call", "return"), MAYBE),
        ('(= kind "call")', 2, ("call",), ALWAYS),
        ('(like kind "_e%")', 2, ("return", "resume"), ALWAYS),
        ('(!= kind "call")', 2, ("call", "log"), MAYBE),
        ('(any (= name "user"))', 1, ("call",), MAYBE),
        ('(any (= name "user"))', 3, ("call",), NEVER),
        ('(any (= name "user"))', 1, ("return", "exception", "yield", "lost"), NEVER),
        ('(any (= name "user"))', 1, ("log",), MAYBE),
        ('(not (any (= name "user")))', 3, ("call",), ALWAYS),
        ('(any (and (= name "user") (like value "%bob%")))', 3, ("call", "return"), NEVER),
        ('(any (and (= name "user") (= position 0)))', 2, ("call",), NEVER),
        ('(any (and (= name "user") (= position 1)))', 2, ("call",), MAYBE),
        ('(any (= name "argument 4"))', 2, ("call",), MAYBE),
        ('(any (like name "%ment%"))', 3, ("call",), MAYBE),
        ('(any (= name "argument"))', 3, ("call",), MAYBE),
        ('(any (= name "argument1"))', 3, ("call",), NEVER),
        ('(any (= name "return value"))', 2, ("return",), MAYBE),
        ('(any (= name "return value"))', 2, ("call", "raise", "resume"), NEVER),
        ('(any (= name "count"))', 0, ("lost",), MAYBE),
        ('(any (= name "counts"))', 0, ("lost",), NEVER),
        ('(any (= value "1"))', 1, ("call",), MAYBE),
        ('(any (and (= value "1") (= func "no")))', 1, ("call",), NEVER),
        ('(any (= name "user"))', 77, ("call",), NEVER),
        ('(any (= name "argument 1"))', 77, ("call",), MAYBE),
        ('(any (= name "total"))', 1, ("line",), MAYBE),
        ('(any (= name "total"))', 2, ("line",), NEVER),
        ('(any (= name "total"))', 1, ("call",), NEVER),
        ('(any (and (= name "total") (= position 0)))', 1, ("line",), MAYBE),
        ('(any (= name "variable 4"))', 1, ("line",), MAYBE),
        ('(any (= name "variable"))', 1, ("line",), MAYBE),
        ('(any (= name "variables"))', 1, ("line",), NEVER),
        ('(any (= name "total"))', 77, ("line",), NEVER),
        ('(any (= name "variable 1"))', 77, ("line",), MAYBE),
    ],
)
def test_what_function_and_kind_tell(
    predicates: Predicates, run: Definitions, tree: str, code: int, kinds: tuple[str, ...], answer: int
) -> None:
    assert ask_code(predicates, run, tree, code, *kinds) == answer


def test_nothing_known_tells_nothing(predicates: Predicates) -> None:
    unknown = predicates.ffi.new("struct facts *", predicates.lib.facts_unknown)
    for name in (*NUMBER_FIELDS, *TEXT_FIELDS):
        made = predicates.parse(f"(= {name} 1)" if name in NUMBER_FIELDS else f'(= {name} "call")')
        assert predicates.lib.predicate_ask(made, unknown) == MAYBE


def bounds(predicates: Predicates, tree: str, name: str) -> tuple[int, int]:
    found = predicates.lib.predicate_bounds(
        predicates.parse(tree), getattr(predicates.lib, f"FIELD_{name.upper()}")
    )
    return found.low, found.high


def test_bounds(predicates: Predicates) -> None:
    assert bounds(predicates, "(between time 5 9)", "time") == (5, 9)
    assert bounds(predicates, "(between time 5 9)", "id") == INT64
    assert bounds(predicates, "(and (> time 5) (and (<= time 9) (!= time 7)))", "time") == (6, 9)
    assert bounds(predicates, "(and (or (> time 5) (= id 1)) (< time 9))", "time") == (INT64[0], 8)
    assert bounds(predicates, "(in id 9 4 7)", "id") == (4, 9)
    assert bounds(predicates, "(not (= id 1))", "id") == INT64
    low, high = bounds(predicates, "(in id)", "id")
    assert low > high


# ---- what is left -----------------------------------------------------------------------------


@given(seed=SEEDS)
def test_what_is_left_is_true_of_the_same_events(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        event, tree = an_event(dice), on_events(dice)
        made = predicates.parse(tree)
        known = set(dice.sample(("run", "thread", "code", "kinds", "time", "depth"), dice.randint(0, 6)))
        rest = predicates.lib.predicate_rest(made, run.set_facts([event], known))
        facts = run.facts(event, predicates.body([event]))
        assert predicates.lib.predicate_ask(rest, facts) == (ALWAYS if holds(tree, event, run) else NEVER)
        predicates.lib.predicate_rest_free(rest)


# ---- bodies -----------------------------------------------------------------------------------


def is_where_it_is(predicates: Predicates, trail: Any, body: bytes) -> bool:
    """Whether trail_find finds the same places when it begins at each of them."""
    held = predicates.ffi.cast("uint8_t *", predicates.ffi.from_buffer(body))
    places: list[int] = []
    while found := predicates.lib.required_literal_find(
        trail, held, len(body), held + sum(places[-1:], bool(places))
    ):
        places.append(found - held)
    again = [
        predicates.lib.required_literal_find(trail, held, len(body), held + place) - held for place in places
    ]
    return again == places and bool(places) == predicates.lib.required_literal_is_in(trail, held, len(body))


@given(seed=SEEDS)
def test_what_a_body_lacks_says_nothing_wrong_of_its_events(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        some = [an_event(dice) for _ in range(dice.randint(0, 4))]
        tree: Tree = ("any", on_arguments(dice))
        if dice.random() < 0.3:
            tree = (dice.choice(("and", "or")), tree, on_events(dice))
        made = predicates.parse(tree)
        body = predicates.body(some)
        missing = run.missing(made, body)
        assert all(is_where_it_is(predicates, trail, body) for trail in run.trails(made))
        for event in some:
            answer = ALWAYS if holds(tree, event, run) else NEVER
            known = run.facts(event, predicates.body([event]))
            known.missing = missing
            assert predicates.lib.predicate_ask(made, known) == answer, (written(tree), event)
            for facts in ({"run"}, {"run", "thread", "code", "kinds"}):
                unsure = run.set_facts([event], facts)
                unsure.missing = missing
                assert predicates.lib.predicate_ask(made, unsure) in (answer, MAYBE), (written(tree), event)


@given(seed=SEEDS)
def test_any_piece_of_what_is_shown_may_be_in_the_body(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    run = predicates.definitions(dice.choice(RUNS))
    for _ in range(ROUNDS):
        event = an_event(dice)
        body = predicates.body([event])
        facts = run.facts(event, body)
        for argument in run.arguments(event.record):
            for name, shown in (("value", argument.value), ("text", argument.text)):
                start = dice.randint(0, len(shown))
                piece = shown[start : start + dice.randint(3, 12)]
                pattern = re.sub(r"[\\%_]", r"\\\g<0>", piece)
                pattern = re.sub("[a-z]", lambda letter: letter[0].upper(), pattern)
                like = f"%{pattern}%"
                for tree in (("like", name, like), ("=", name, shown), ("like", "either", like)):
                    made = predicates.parse(("any", tree))
                    assert predicates.lib.predicate_ask(made, facts) == ALWAYS, (tree, event)
                    assert not run.missing(made, body).count, (tree, event)


@pytest.mark.parametrize(
    ("pattern", "value", "answer"),
    [
        ("%needle%", val("a haystack"), False),
        ("%needle%", val("a NEEDLE"), True),
        ("%needle%", val("a\needle"), True),  # the n may be the end of \n
        ("%needle%", val("peedle"), False),
        ("%bob%", val("a job"), False),
        ("%bob%", val("\x0bob, and what \x0bob shows"), True),
        ("%order%", container("LIST", type=1), True),  # from the type's name
        ("%orders%", container("LIST", type=1), False),
        ("%function%", val(1), True),
        ("%functions%", val(1), False),
        ("%12345%", val(1), True),
        ("%deadbeef%", val(1), True),
        ("%redacted%", val(1), True),
        ("%DELETED%", val(1), True),
        ("%na%", val(1), True),  # too short
        ("%a b c%", val(1), True),
        ("%u2028token%", val("\u2028token"), True),
        ("%28token%", val("\u2028token"), True),
        ("%28token%", val("28 token"), False),
    ],
)
def test_what_a_body_may_have(
    predicates: Predicates, run: Definitions, pattern: str, value: Val, answer: bool
) -> None:
    event = Event(Record("return", 1, values=(value,)))
    body = predicates.body([event])
    made = predicates.parse(("any", ("like", "value", pattern)))
    facts = run.set_facts([event], {"run"})
    facts.missing = run.missing(made, body)
    assert predicates.lib.predicate_ask(made, facts) == (MAYBE if answer else NEVER)


# ---- long values ------------------------------------------------------------------------------


def test_values_longer_than_any_buffer(predicates: Predicates, run: Definitions) -> None:
    event = Event(Record("return", 1, values=(val("\u2028" * 20000 + "end"),)))
    facts = run.facts(event, predicates.body([event]))
    for name, pattern, answer in (
        ("value", "%2028end'", ALWAYS),
        ("text", "%end", ALWAYS),
        ("either", "%2028end", NEVER),
        ("text", "%2028end", NEVER),
    ):
        made = predicates.parse(("any", ("like", name, pattern)))
        assert predicates.lib.predicate_ask(made, facts) == answer


# ---- the text form ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "position 0: a ( is missing"),
        ("time", "position 0: a ( is missing"),
        ("(", "position 1: an operator is missing"),
        ("(and", "position 4: a ( is missing"),
        ("(and (= id 1)", "position 13: a ( is missing"),
        ("(= id 1", "position 7: a ) is missing"),
        ("(= id 1) 2", "position 9: something stands behind the end"),
        ("(= id 1 2)", "position 8: a ) is missing"),
        ("(= id)", "position 5: a number is missing"),
        ('(= id "1")', "position 6: a number is missing"),
        ("(= id one)", "position 6: 'one' is not a number"),
        ("(= id 9223372036854775808)", "position 6: 9223372036854775808 does not fit in 64 bits"),
        ("(= id -9223372036854775809)", "position 6: -9223372036854775809 does not fit in 64 bits"),
        ("(=  idd 1)", "position 4: there is no field 'idd'"),
        ("(=)", "position 2: a field is missing"),
        ("(~ id 1)", "position 1: '~' is none of and or not any = != < <= > >= between in like plain shown"),
        ('(like id "%")', "position 1: like is for texts, not for numbers"),
        ("(plain id)", "position 1: plain is for texts, not for numbers"),
        ('(plain func "%")', "position 12: a ) is missing"),
        ('(< func "%")', "position 1: < is for numbers, not for texts"),
        ("(= func pay)", 'position 8: a text in " is missing'),
        ('(= func "pay)', 'position 8: a text has no closing "'),
        ('(= func "\\n")', 'position 9: a backslash in a text stands before " or \\'),
        ('(= value "x")', "position 3: value is an argument's: it stands inside of (any ...)"),
        ('(any (any (= value "x")))', "position 6: any inside of any"),
        ("(not)", "position 4: not has one member"),
        ("(any (= id 1) (= id 2))", "position 14: any has one member"),
    ],
)
def test_mistakes_are_told_with_their_place(predicates: Predicates, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        predicates.parse(text)


def test_depth_is_limited(predicates: Predicates) -> None:
    most = predicates.lib.PREDICATE_DEPTH_MAX
    assert predicates.parse("(not " * (most - 1) + "(and)" + ")" * (most - 1))
    with pytest.raises(ValueError, match="position 1000: nested more than 200 deep"):
        predicates.parse("(not " * most + "(and)" + ")" * most)
    with pytest.raises(ValueError, match="nested more than"):
        predicates.parse("(and (not " * 1_000_000)


def test_a_message_fits_its_buffer(predicates: Predicates) -> None:
    for size in range(40):
        message = predicates.ffi.new("char[]", b"#" * size)
        assert predicates.lib.predicate_parse(b"(= xyz 1)", 9, message, size) == predicates.ffi.NULL
        text = predicates.ffi.buffer(message)[:]
        assert text[-1:] == b"\0"
        assert text[: max(0, size - 1)] in b"position 3: there is no field 'xyz'" + b"\0" + b"#" * 40


def test_huge_predicates(predicates: Predicates, run: Definitions) -> None:
    event = Event(Record("call", 1, values=(val("bob"),)), id=99_999)
    facts = run.facts(event, predicates.body([event]))
    for tree in (
        ("or", *(("=", "id", n) for n in range(100_000))),
        ("in", "id", *range(100_000)),
        ("in", "func", *map(str, range(100_000)), "pay"),
        ("any", ("in", "value", *map(str, range(100_000)), "'bob'")),
        ("any", ("or", *(("=", "text", str(n)) for n in range(100_000)), ("=", "text", "bob"))),
        ("not", ("in", "func", *map(str, range(100_000)))),
    ):
        assert predicates.lib.predicate_ask(predicates.parse(tree), facts) == ALWAYS


@given(seed=SEEDS)
def test_spaces_do_not_matter(predicates: Predicates, seed: int) -> None:
    dice = Random(seed)
    for _ in range(ROUNDS):
        text = written(on_events(dice))
        predicates.parse(text)
        if '"' not in text:
            predicates.parse(text.replace("(", " (\n").replace(")", "\t ) "))


@given(text=st.text(st.sampled_from('()"\\ =<>andorytimelikevalue019-\0é')))
def test_any_text_is_read_or_refused(predicates: Predicates, text: str) -> None:
    message = predicates.ffi.new("char[]", 200)
    data = text.encode()
    made = predicates.lib.predicate_parse(data, len(data), message, 200)
    if made == predicates.ffi.NULL:
        assert predicates.ffi.string(message).startswith(b"position ")
    predicates.lib.predicate_free(made)


# ---- definitions ------------------------------------------------------------------------------


def test_definitions_by_number(predicates: Predicates, run: Definitions) -> None:
    def text(string: Any) -> str:
        return bytes(predicates.ffi.buffer(string.text, string.size)).decode()

    def code(number: int) -> tuple[str, ...]:
        found = predicates.lib.run_code_find(run.c, number)
        return text(found.module), text(found.func), text(found.file), text(found.last)

    assert code(2) == ("app.shop", "Order.pay", "/home/me/shop.py", "pay")
    assert code(0) == ("", "", "", "") == (NO_CODE.module, NO_CODE.func, NO_CODE.file, "")
    assert code(4) == code(77) == code((1 << 32) - 1) == ("?", "?", "?", "?")
    assert UNDEFINED.module == "?"
    for stream in range(12):
        thread = predicates.lib.run_thread_find(run.c, stream)
        if stream in RUN.threads:
            assert (thread.pid, thread.tid, text(thread.name)) == RUN.threads[stream]
        else:
            assert thread == predicates.ffi.NULL
