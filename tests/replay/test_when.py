"""Times as a person types them in a replay."""

import os
import time
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.replay.when import WhenError, event_id, parse

SECOND = 1_000_000_000


class Run(NamedTuple):
    id: int
    started: int
    finished: int | None


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000


@pytest.fixture(autouse=True)
def zone() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Europe/Berlin"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+1.5s", "2026-11-22 12:00:21.5"), ("-2m", "2026-11-22 11:58:20"),
        ("+ 1m30s", "2026-11-22 12:01:50"),
        ("+2", "2026-11-22 12:00:22"), ("-0.5", "2026-11-22 12:00:19.5"), ("1.5s", "2026-11-22 12:00:01.5"),
        ("90", "2026-11-22 12:01:30"), ("0", "2026-11-22 12:00:00"), (".5", "2026-11-22 12:00:00.5"),
        ("1m30s", "2026-11-22 12:01:30"), ("12:03:04.5", "2026-11-22 12:03:04.5"),
        ("12:03", "2026-11-22 12:03"),
        ("2026-11-22", "2026-11-22"), ("2026/11/22 12:03:04", "2026-11-22 12:03:04"),
        ("2026-11-22T12:03:04Z", "2026-11-22 13:03:04"), (" 2026-11-23 01:00 ", "2026-11-23 01:00"),
        ("+1h", "2026-11-22 13:00:20"), ("500ms", "2026-11-22 12:00:00.5"),
    ],
)  # fmt: skip
def test_times(text: str, expected: str) -> None:
    started = at("2026-11-22 12:00:00")
    run = Run(1, started, started + 3600 * SECOND)
    assert parse(text, started + 20 * SECOND, run) == at(expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no time is given"), ("soon", "is no time"), ("1.5 parsecs", "units are ns us"),
        ("+1,5", "units are"),
        ("12:99", "there is no minute 99"), ("2026-13-01", "there is no 2026-13-01"), ("+", "units are"),
        ("-x", "units are"),
        ("9" * 200, "too long"), ("+9999999999999h", "too far"), ("262144", "is the id of an event"),
        ("1.2.3s", "no"),
        ("\x1b[1m", "is no time"), ("-99999999h", "too far"), ("2s1m", "no"),
    ],
)  # fmt: skip
def test_mistakes_say_what_to_type(text: str, said: str) -> None:
    started = at("2026-11-22 12:00:00")
    with pytest.raises(WhenError, match=said) as caught:
        parse(text, started, Run(1, started, None))
    assert str(caught.value).isprintable()


@given(st.text(alphabet="0123456789+-:./ TZsmhn") | st.text())
def test_any_text_is_a_time_or_a_mistake(text: str) -> None:
    started = at("2026-11-22 12:00:00")
    try:
        found = parse(text, started, Run(1, started, None))
    except WhenError:
        return
    assert 0 <= found < 1 << 63


def test_ids() -> None:
    assert event_id("262144") == 262144
    assert event_id(" 7082293 ") == 7082293
    for text in ("", "0", "12", "12:30", "+262144", "2026-11-22", "1.5s", "9" * 40, "²62144", str(1 << 63)):
        assert event_id(text) is None
