"""Times that people type to go there."""

import time
from collections.abc import Iterator

import pytest
from pytracer.reader.rows import Run
from pytracer.reader.screen.commands.moving import typed_time

SECOND = 1_000_000_000
START = 1_344_993_825 * SECOND  # 2012-08-15 01:23:45 UTC
LAST = START + 90 * SECOND
RUN = Run(1, "app.py", "/", "3.13.0", START, LAST, 0, 0, 0, None, 0)


@pytest.fixture(autouse=True)
def in_utc() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2012/08/15 01:24:00", START + 15 * SECOND),
        ("'2012/08/15 01:24:00.25'", START + 15 * SECOND + SECOND // 4),
        ("2012-08-15T03:24:00+02:00", START + 15 * SECOND),
        ("2012-08-15T01:24:00Z", START + 15 * SECOND),
        (' "01:24:00" ', START + 15 * SECOND),
        ("01:24", START + 15 * SECOND),
        ("2012-08-16", START - START % (86400 * SECOND) + 86400 * SECOND),
        ("+1.5s", START + 3 * SECOND // 2),
        ("' +1m30s '", START + 90 * SECOND),
        ("-2s", LAST - 2 * SECOND),
        ('"-1m 1ms"', LAST - 60 * SECOND - SECOND // 1000),
        ("-0s", LAST),
    ],
)
def test_forms(text: str, at: int) -> None:
    assert typed_time(text, RUN, LAST) == at


@pytest.mark.parametrize(
    "text",
    ["", "'", "''", "noon", "-", "+", "-2", "- -2s", "50%", "'01:24", "2012/08/15 25:00", "\0", "2s"],
)
def test_mistakes_say_which_forms_there_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"'2012/08/15 01:23:45'.*'\+1.5s'.*'-2s' before its end"):
        typed_time(text, RUN, LAST)
