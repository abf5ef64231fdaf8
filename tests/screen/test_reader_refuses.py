"""Bad input: databases that are none, filters and expressions with mistakes, commands that there
are not."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from handmade import Handmade, event
from reader import Reads

# ---- databases ----


def refused(reads: Reads, *arguments: object, **options: object) -> str:
    """The message instead of a screen, which stays untouched."""
    reader = reads(*arguments, **options)
    assert reader.end() == 2
    assert reader.raw == b""
    assert reader.errors.startswith("pytrace: ")
    return reader.errors


def test_there_is_none(reads: Reads, tmp_path: Path) -> None:
    assert "Record one with: pytrace script.py" in refused(reads)
    assert f"Record one with: pytrace -o {tmp_path}/x.sqlite" in refused(reads, tmp_path / "x.sqlite")
    assert list(tmp_path.glob("*.sqlite*")) == []


def test_one_of_several_is_to_be_given(reads: Reads, journal: Path, tmp_path: Path) -> None:
    for name in ("a.sqlite", "b.sqlite"):
        shutil.copy(journal, tmp_path / name)
    assert refused(reads).endswith("script.py\n")
    said = refused(reads, tmp_path)
    assert "folder" in said


def test_a_folder_with_one(reads: Reads, copy: Path) -> None:
    assert f"Did you mean {copy}" in refused(reads, copy.parent)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(100)])
def test_no_database(reads: Reads, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "no.sqlite").write_bytes(content)
    said = refused(reads, tmp_path / "no.sqlite")
    assert "is empty" in said or "is not a database" in said or "damaged" in said


def test_other_versions(reads: Reads, copy: Path) -> None:
    with Handmade(copy) as made:
        made("PRAGMA user_version = 99")
        made("DROP TABLE type")
    assert "newer pytrace" in refused(reads, copy)


def test_a_run_that_is_not_there(reads: Reads, journal: Path) -> None:
    assert "has no run 7; there are: 1, 2" in refused(reads, journal, "--run", 7)


def test_a_filter_on_the_command_line(reads: Reads, journal: Path) -> None:
    said = refused(reads, journal, "--filter", "fun == 'pay'")
    assert "func" in said
    assert "^" in said
    reader = reads(journal, "--filter", "func == 'pay'").settled()
    assert "pay(" in reader.current
    reader.quit()


def test_a_database_without_runs(reads: Reads, tmp_path: Path) -> None:
    """It can be opened before anything is recorded; each key has nothing to do."""
    with Handmade(tmp_path / "none.sqlite"):
        pass
    reader = reads(tmp_path / "none.sqlite").settled()
    assert "no recording yet" in reader.text
    for key in "jkGgpFnNcCtTaAxXlLiIUDWB$%*=vY\",.'rhm":
        reader.press(key).settled().press("ctrl c").settled()
    reader.press("tab").settled()
    reader.quit()


def test_a_run_without_events(reads: Reads, tmp_path: Path) -> None:
    with Handmade(tmp_path / "none.sqlite") as made:
        made.run()
    reader = reads(tmp_path / "none.sqlite").settled()
    assert "nothing was recorded in this run" in reader.text
    for key in ("j", "G", "50p", "x", "/x", "enter", "tab", "*", "esc", "ctrl l", "enter", "n"):
        (
            reader.press(key)
            if " " in key or len(key) == 1 or key in ("enter", "tab", "esc")
            else reader.type(key)
        )
        reader.settled()
    reader.press("esc").settled()
    reader.quit()


def test_a_damaged_segment(reads: Reads, copy: Path) -> None:
    """Readable events are shown, and damage is reported."""
    with apsw.Connection(str(copy)) as connection:
        connection.execute("UPDATE segment SET data = zeroblob(100) WHERE sequence = 1 AND stream = 1")
    reader = reads(copy).settled()
    reader.press("G").shows("1 segment is damaged")
    assert "shop.main" in reader.press("g").settled().current
    for _ in range(12):
        reader.press("space").settled()
    reader.press("x").settled().press("/").type("amount=640").press("enter").settled()
    assert "amount=640" in reader.current
    reader.quit()


# ---- what is typed ----


def test_mistakes_in_filters(reads: Reads, journal: Path) -> None:
    """They are said, at their place; what was shown stays, and the line can be mended."""
    reader = reads(journal).settled()
    reader.press("j").settled()
    before = [line for line in reader.lines if "shop." in line]
    for wrong in ("fun == 'pay'", "func = 'pay'", "func ==", "(", "value == 'a", "depth < 'x'", "1 == 2"):
        reader.press("&").type(wrong).settled().press("enter").settled()
        shown = [line for line in reader.lines if "shop." in line]
        assert shown[: len(before) - 4] == before[: len(before) - 4], wrong
        said = reader.text.split("\n", 12)[-1]
        assert "^" in said or "filter" in said, reader.text
        reader.press("ctrl c").settled().press("ctrl c").settled()
    reader.press("q")
    assert reader.end() == 0


def test_a_filter_that_finds_nothing_offers_others(reads: Reads, journal: Path) -> None:
    reader = reads(journal, rows=30, columns=120).settled()
    reader.press("&").type("func == 'pya' and user == 'bob'").press("enter").settled()
    reader.press("ctrl c").settled().press("ctrl c").settled()
    reader.press("&", "ctrl u").type("func == 'pya'").press("enter").settled()
    assert "func == 'pay'" in reader.text
    reader.press("enter").settled()
    assert "filter: func == 'pay'" in reader.status
    assert "pay" in reader.current
    reader.quit()


def test_mistakes_in_searches(reads: Reads, journal: Path) -> None:
    reader = reads(journal).settled()
    for wrong in ("(", "*", "[", "a{2,1}", "(?P<a>", "\\"):
        current = reader.current
        reader.press("/").type(wrong).settled().press("enter").settled()
        assert reader.current == current, wrong
        assert reader.message, wrong
        reader.press("esc", "j").settled()
        assert reader.current != current, wrong
    reader.quit()


def test_an_expression_that_would_run_for_ever(reads: Reads, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with Handmade(path) as made:
        run = made.run()
        made.code(run, 1, "main", ["text"])
        made.segment(run, [event("call", 1, "a" * 200, time=1) for _ in range(50)])
    reader = reads(path).settled()
    reader.press("/").type(r"(a|aa)+$").settled().press("enter").settled()
    assert "this expression takes more than" in reader.message
    for _ in range(20):
        reader.press("j").settled()
    reader.quit()


COMMANDS = (
    "nonsense", "run 7", "run x", "slow x", "width time x", "width x 3", "level", "time noon", "filter (",
    "e", "e /no/such.sqlite", "copy", "-1", "999%", "99999999999999", "n", "p", "mark", "switch", ":::",
    "\x01", " ", "%",
)  # fmt: skip


def test_commands_that_there_are_not(reads: Reads, journal: Path) -> None:
    """A message, and nothing worse."""
    reader = reads(journal).settled()
    for command in COMMANDS:
        reader.say(command)
        reader.press("esc").settled().press("g").settled()
        assert "shop" in reader.current or "main" in reader.current, command
    reader.quit()
