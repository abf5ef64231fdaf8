"""Copying: what a terminal is sent, and what stands in a file."""

from __future__ import annotations

import re
import stat
from base64 import b64decode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytracer.reader.screen.terminal import LIMIT, held, osc52, save


def copied(sequence: bytes) -> str:
    match = re.fullmatch(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07", sequence)
    assert match
    return b64decode(match[1], validate=True).decode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_the_terminal_gets_the_text(text: str) -> None:
    assert copied(osc52(text, environ={})) == text


def test_what_is_too_long_is_cut() -> None:
    text = "日" * LIMIT
    sequence = osc52(text, environ={})
    assert len(sequence) <= 100_000
    assert copied(sequence) == held(text) == "日" * (LIMIT // 3)
    assert held("short") == "short"
    assert copied(osc52("日本", 4, {})) == "日"


def test_tmux_gets_it_for_itself_and_for_the_terminal() -> None:
    plain = osc52("text", environ={})
    wrapped = osc52("text", environ={"TMUX": "/socket,1,0"}).removeprefix(plain)
    assert wrapped == b"\x1bPtmux;\x1b" + plain + b"\x1b\\"


def test_lone_surrogates() -> None:
    assert copied(osc52("a\ud800", environ={})) == r"a\ud800"


def test_into_a_file(tmp_path: Path) -> None:
    path = tmp_path / "value"
    save("日本\n\ud800", str(path))
    assert path.read_text() == "日本\n\\ud800"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        save("other", str(path))
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        save("other", str(tmp_path / "link"))
    with pytest.raises(FileNotFoundError):
        save("other", str(tmp_path / "no" / "folder"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["link", "value"]


def test_where_nothing_can_be_written_nothing_is_left(tmp_path: Path) -> None:
    import resource
    import signal

    path = tmp_path / "value"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            save("x" * 100, str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not path.exists()
