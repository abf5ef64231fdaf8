"""The command that runs the tests of other projects refuses one that it does not know."""

import sys

import pytest

import projects


def test_an_unknown_project(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["projects.py", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        projects.main()
    assert capsys.readouterr().err.endswith("error: there is no nothing\n")
