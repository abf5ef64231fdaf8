"""The prompt: keys in; text, result and rows of the screen out."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import urwid
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.screen.effects import Mistake
from pytracer.reader.screen.line_editor import LONGEST
from pytracer.reader.screen.prompt import Cancelled, Prompt
from pytracer.reader.suggestions.completion import Candidate, Completions

WORDS = ("func", "file", "func_name", "depth")
HISTORY = ("func == 'a'", "depth > 3", "func == 'b'")


@pytest.fixture(autouse=True, scope="module")
def utf8() -> None:
    urwid.set_encoding("utf-8")


def complete(text: str, position: int) -> Completions:
    """The word before the cursor, as one of WORDS."""
    start = text.rfind(" ", 0, position) + 1
    found = [Candidate(word, "field", "a word") for word in WORDS if word.startswith(text[start:position])]
    return Completions(start, position, found)


def check(text: str) -> Mistake | None:
    at = text.find("!")
    if at >= 0:
        return Mistake(at, at + 1, "no ! here", at + 1 == len(text))
    return None


def pressed(prompt: Prompt, keys: Iterable[str]) -> Prompt:
    for key in keys:
        prompt.keypress((40,), key)
    return prompt


def screen(prompt: Prompt, width: int = 40) -> list[str]:
    return [row.decode().rstrip() for row in prompt.render((width,), True).text]


def cursor(prompt: Prompt, width: int = 40) -> tuple[int, int]:
    place = prompt.render((width,), True).cursor
    assert isinstance(place, tuple)
    return place


def with_cursor(prompt: Prompt) -> str:
    return f"{prompt.text[: prompt.position]}|{prompt.text[prompt.position :]}"


# ---- editing --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "there"),
    [
        ([], "one two-three|"),
        (["left", "left"], "one two-thr|ee"),
        (["ctrl b", "ctrl b", "ctrl f"], "one two-thre|e"),
        (["home"], "|one two-three"),
        (["ctrl a", "right"], "o|ne two-three"),
        (["ctrl a", "ctrl e"], "one two-three|"),
        (["home", "end"], "one two-three|"),
        (["meta b"], "one two-|three"),
        (["meta b", "meta b", "meta b", "meta f"], "one| two-three"),
        (["backspace"], "one two-thre|"),
        (["home", "delete", "ctrl d"], "|e two-three"),
        (["home", "backspace", "left"], "|one two-three"),
        (["right", "delete"], "one two-three|"),
        (["ctrl w"], "one |"),
        (["ctrl w", "ctrl w"], "|"),
        (["meta backspace"], "one two-|"),
        (["home", "meta d"], "| two-three"),
        (["meta b", "ctrl u"], "|three"),
        (["meta b", "ctrl k"], "one two-|"),
        (["ctrl w", "ctrl a", "ctrl y", " "], "two-three |one "),
        (["x", "é", "日"], "one two-threexé日|"),
    ],
)
def test_keys_are_those_of_readline(keys: list[str], there: str) -> None:
    prompt = pressed(Prompt("/", "one two-three"), keys)
    assert with_cursor(prompt) == there
    assert prompt.result is None


@pytest.mark.parametrize("key", ["esc", "ctrl c", "ctrl g"])
def test_cancelling(key: str) -> None:
    assert isinstance(pressed(Prompt("/", "text"), [key]).result, Cancelled)


@pytest.mark.parametrize("key", ["backspace", "ctrl d"])
def test_there_is_nothing_left_to_delete(key: str) -> None:
    prompt = pressed(Prompt("/", "a"), ["home", "delete"])
    assert prompt.result is None
    assert isinstance(pressed(prompt, [key]).result, Cancelled)


def test_the_result() -> None:
    prompt = pressed(Prompt("/"), "abc")
    assert prompt.result is None
    assert prompt.keypress((40,), "f5") == "f5"
    pressed(prompt, ["enter"])
    assert prompt.result == "abc"
    assert prompt.keypress((40,), "d") == "d"
    assert prompt.text == "abc"
    assert pressed(Prompt("/"), ["enter"]).result == ""


def test_whoever_asks_is_told_of_each_text() -> None:
    heard: list[str] = []
    prompt = pressed(Prompt("/", "x", changed=heard.append), ["a", "left", "home", "delete", "enter"])
    assert prompt.result == "a"
    assert heard == ["xa", "a"]


# ---- what may be typed ----------------------------------------------------------------------


def test_what_is_pasted_is_text() -> None:
    heard: list[str] = []
    keys = [
        "begin paste",
        *"a b",
        "enter",
        "tab",
        "esc",
        "ctrl a",
        "meta x",
        "<csi 31m>",
        "up",
        "\u202e",
        "end paste",
    ]
    prompt = pressed(Prompt("/", history=HISTORY, changed=heard.append), keys)
    assert prompt.text == r"a b  \x1b\x01\x1bx\x1b[31m\u202e"
    assert prompt.result is None
    assert heard == [prompt.text]
    assert pressed(prompt, ["enter"]).result == prompt.text


def test_a_paste_without_end() -> None:
    assert isinstance(pressed(Prompt("/"), ["begin paste", "a", "enter", "ctrl c"]).result, Cancelled)


def test_there_is_an_end_to_what_can_be_typed() -> None:
    prompt = pressed(Prompt("/"), ["begin paste", *"x" * (LONGEST + 10), "end paste"])
    assert prompt.text == "x" * LONGEST
    assert pressed(prompt, "y").text == "x" * LONGEST
    assert "no more than 10,000 characters" in screen(prompt)[-1]
    # the key is ignored, and nothing is lost
    assert len(pressed(Prompt("/", "x" * (LONGEST + 10)), "y").text) == LONGEST + 10


@pytest.mark.parametrize(
    ("text", "shown"), [("a\nb", "a b"), ("a\x1b[31m", r"a\x1b[31m"), ("a\ud800", r"a\ud800"), ("\ta", " a")]
)
def test_unprintable_text_is_shown_as_escapes(text: str, shown: str) -> None:
    prompt = Prompt("/", text, history=[text])
    assert prompt.text == shown
    assert screen(prompt) == [f"/{shown}"]
    assert pressed(prompt, ["ctrl u", "up"]).text == shown


def test_ascii() -> None:
    prompt = pressed(Prompt("/", "é", complete=complete, history=["x"], ascii=True), "日")
    assert prompt.text == r"\xe9\u65e5"
    assert all(row.isascii() for row in screen(pressed(prompt, ["ctrl u"])))


# ---- history --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "keys", "there"),
    [
        ("", ["up"], "func == 'b'"),
        ("", ["up", "up"], "depth > 3"),
        ("", ["up", "up", "up", "up", "up"], "func == 'a'"),
        ("", ["up", "up", "down"], "func == 'b'"),
        ("", ["up", "up", "down", "down", "down"], ""),
        ("", ["ctrl p", "ctrl p", "ctrl n"], "func == 'b'"),
        ("", ["f", "up", "up"], "func == 'a'"),
        ("", ["f", "up", "up", "down", "down"], "f"),
        ("", ["z", "up"], "z"),
        # the first text need not be the beginning of what is found
        ("kind == 'log'", ["up", "up"], "depth > 3"),
        ("kind == 'log'", ["up", "down"], "kind == 'log'"),
        ("", ["up", "backspace", "backspace", "up"], "func == 'b'"),
        ("func == 'b'", ["up"], "depth > 3"),
    ],
)
def test_history(text: str, keys: list[str], there: str) -> None:
    assert pressed(Prompt("/", text, history=HISTORY), keys).text == there


# ---- completion -----------------------------------------------------------------------------


def test_one_candidate_is_taken() -> None:
    prompt = pressed(Prompt(":", complete=complete), ["d", "tab"])
    assert with_cursor(prompt) == "depth|"
    assert len(screen(prompt)) == 2


def test_what_all_candidates_begin_with_is_taken() -> None:
    prompt = pressed(Prompt(":", complete=complete), ["f", "u", "tab"])
    assert prompt.text == "func"
    assert screen(prompt) == [
        "> func       field  a word",
        "  func_name  field  a word",
        ":func",
        "1 of 2  Enter takes it, Esc closes the li"[:37] + "...",
    ]
    assert cursor(prompt) == (5, 2)


@pytest.mark.parametrize(
    ("keys", "there"),
    [
        (["enter"], "func|"),
        (["tab", "enter"], "file|"),
        (["down", "down", "enter"], "func_name|"),
        (["up", "enter"], "depth|"),
        (["shift tab", "shift tab", "tab", "enter"], "depth|"),
        (["page down", "enter"], "depth|"),
        (["page down", "page up", "enter"], "func|"),
        (["f", "i", "enter"], "file|"),
        (["f", "down", "down", "backspace", "enter"], "func|"),
        (["esc"], "|"),
        (["x", "enter"], "x|"),  # the list is closed, for nothing fits
    ],
)
def test_the_list(keys: list[str], there: str) -> None:
    prompt = pressed(Prompt(":", complete=complete), ["tab", *keys])
    assert with_cursor(prompt) == there
    assert not isinstance(prompt.result, Cancelled)


def test_the_list_is_left_with_the_place_that_it_was_for() -> None:
    prompt = pressed(Prompt(":", "a ", complete=complete), ["tab"])
    assert len(screen(prompt)) == 6
    assert len(screen(pressed(prompt, ["left"]))) == 2
    assert isinstance(pressed(prompt, ["tab", "esc", "esc"]).result, Cancelled)


def test_nothing_fits() -> None:
    prompt = pressed(Prompt(":", "x", complete=complete), ["tab"])
    assert screen(prompt) == [":x", "nothing fits here"]
    assert screen(pressed(prompt, ["left"])) == [":x", ""]
    assert screen(pressed(Prompt("/", "x"), ["tab"])) == ["/x"]


def test_a_long_list_is_scrolled() -> None:
    found = [Candidate(f"name-{number:03}", "function", "日" * 30) for number in range(50)]
    prompt = Prompt(":", complete=lambda text, position: Completions(0, position, found))
    rows = screen(pressed(prompt, ["n", "tab", "up"]))
    assert len(rows) == 10
    assert rows[7].startswith("> name-049  function  日日")
    assert rows[7].endswith("...")
    prompt.candidate_rows = 2
    assert [row[:10] for row in screen(pressed(prompt, ["up", "up", "up"]))[:2]] == [
        "  name-045",
        "> name-046",
    ]
    prompt.mouse((40,), "mouse press", 5, 0, 0)
    prompt.mouse((40,), "mouse press", 5, 0, 0)
    assert [row[:10] for row in screen(prompt)[:2]] == ["  name-047", "> name-048"]
    prompt.mouse((40,), "mouse press", 1, 3, 0)
    assert prompt.text == "name-047"


def test_names_that_come_later() -> None:
    found: list[Candidate] = [Candidate("a", "field"), Candidate("b", "field")]
    prompt = pressed(Prompt(":", complete=lambda text, position: Completions(0, 0, found)), ["tab", "down"])
    found.append(Candidate("c", "field"))
    prompt.refresh()
    assert [row[:3] for row in screen(prompt)] == ["> a", "  b", "  c", ":", "1 o"]
    del found[:]
    prompt.refresh()
    assert len(screen(prompt)) == 2


# ---- mistakes -------------------------------------------------------------------------------


def test_a_mistake_is_shown_at_its_place() -> None:
    prompt = pressed(Prompt("find: ", check=check), "ab!c")
    assert screen(prompt) == ["find: ab!c", "        ^ no ! here"]
    assert pressed(prompt, ["enter"]).result is None
    assert with_cursor(prompt) == "ab!|c"
    assert pressed(prompt, ["backspace", "enter"]).result == "abc"


def test_what_is_unfinished_is_no_mistake_yet() -> None:
    prompt = pressed(Prompt("find: ", check=check), "ab!")
    assert screen(prompt) == ["find: ab!", "no ! here"]
    assert screen(pressed(prompt, ["left"])) == ["find: ab!", "        ^ no ! here"]
    assert screen(pressed(prompt, ["end"])) == ["find: ab!", "no ! here"]
    assert screen(pressed(prompt, ["enter"])) == ["find: ab!", "        ^ no ! here"]
    assert prompt.result is None
    assert screen(pressed(prompt, ["!"])) == ["find: ab!!", "        ^ no ! here"]


def test_the_message_stands_where_there_is_room() -> None:
    prompt = pressed(Prompt("find: ", check=check), "a" * 20 + "!b")
    assert screen(prompt, 38)[1] == " " * 26 + "^ no ! here"
    assert screen(prompt, 30)[1] == " " * 16 + "no ! here ^"
    prompt = pressed(Prompt("", check=lambda text: Mistake(0, 3, "much to say " * 9)), "abc")
    assert screen(prompt, 30)[1:] == [
        "^^^",
        *["much to say much to say much"] * 1,
        "to say much to say much to say",
        "much to say much to say...",
    ]


def test_three_rows_are_enough() -> None:
    prompt = pressed(Prompt("", "a!b", complete=complete, check=check), ["enter"])
    prompt.candidate_rows = 0
    assert screen(prompt, 10) == ["a!b", " ^", "no ! here"]
    assert screen(pressed(prompt, ["ctrl u", "ctrl k", "tab"]), 10) == ["> func ...", "", "1 of 4 ..."]


def test_long_texts_are_checked_in_the_end() -> None:
    prompt = pressed(Prompt("", "x" * 6000 + "!x", check=check), ["home"])
    assert screen(prompt)[1] == ""
    assert pressed(prompt, ["enter"]).result is None
    assert prompt.position == 6001
    assert "^" in screen(prompt)[1]


# ---- drawing --------------------------------------------------------------------------------


def test_a_text_that_is_too_long_is_scrolled() -> None:
    prompt = pressed(Prompt("find: "), "0123456789" * 6)
    (row,) = screen(prompt)
    column, _ = cursor(prompt)
    assert row.startswith("find: <")
    assert row[column - 3 :] == "789"
    (row,) = screen(pressed(prompt, ["home"]))
    assert row == "find: " + ("0123456789" * 6)[:31] + "..."
    assert cursor(prompt) == (6, 0)


def test_a_click_moves_the_cursor() -> None:
    prompt = Prompt("find: ", "a日本c")
    for column, there in ((0, "|a日本c"), (7, "a|日本c"), (9, "a日|本c"), (30, "a日本c|")):
        prompt.mouse((40,), "mouse press", 1, column, 0)
        assert with_cursor(prompt) == there


TYPED = st.sampled_from(
    ["a", "日", "e\u0301", "\u0301", "🇩🇪", "👩\u200d💻", "\t", "!", " ", "\U0001f600", "\ufe0f"]
)
KEYS = st.sampled_from(
    ["left", "right", "home", "end", "backspace", "delete", "tab", "shift tab", "up", "down", "esc", "enter",
     "ctrl w", "ctrl k", "ctrl u", "ctrl y", "meta b", "meta f", "meta d", "begin paste", "end paste",
     "page down"]
)  # fmt: skip


@given(
    st.lists(TYPED.map(list) | KEYS.map(lambda key: [key]), max_size=40), st.integers(2, 50), st.booleans()
)
def test_whatever_is_typed_it_can_be_drawn(keys: list[list[str]], width: int, ascii: bool) -> None:
    prompt = Prompt("find: ", history=HISTORY, complete=complete, check=check, ascii=ascii)
    for key in (character for typed in keys for character in typed):
        prompt.keypress((width,), key)
        canvas = prompt.render((width,), True)
        rows = list(canvas.content())
        assert len(rows) == prompt.rows((width,))
        assert all(sum(urwid.calc_width(part[2], 0, len(part[2])) for part in row) == width for row in rows)
        column, row = cursor(prompt, width)
        assert 0 <= column < width
        assert 0 <= row < len(rows)
        assert prompt.text.isprintable()
        assert 0 <= prompt.position <= len(prompt.text)
        if prompt.result is not None:
            break
