"""Which command opens a file in the user's editor."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytracer.reader.screen.terminal import EditorMissing, editor_command

PROGRAMS = (
    "vi", "nvim", "vim.tiny", "nano", "emacs-nox", "emacsclient", "hx", "code", "code-insiders", "subl",
    "gvim", "kate", "my editor", "notepad", "env",
)  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bin")
    for name in PROGRAMS:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({}, ["vi", "+12", "/a b.py"]),
        ({"EDITOR": "nano"}, ["nano", "+12", "/a b.py"]),
        ({"EDITOR": "nano", "VISUAL": "nvim -p"}, ["nvim", "-p", "+12", "/a b.py"]),
        ({"EDITOR": "nano", "VISUAL": "  "}, ["nano", "+12", "/a b.py"]),
        ({"EDITOR": "vim.tiny"}, ["vim.tiny", "+12", "/a b.py"]),
        ({"EDITOR": "emacs-nox"}, ["emacs-nox", "+12", "/a b.py"]),
        ({"EDITOR": "emacsclient -nw -c"}, ["emacsclient", "-nw", "-c", "+12", "/a b.py"]),
        ({"EDITOR": "hx"}, ["hx", "/a b.py:12"]),
        ({"EDITOR": "code"}, ["code", "--wait", "--goto", "/a b.py:12"]),
        ({"EDITOR": "code-insiders -w"}, ["code-insiders", "-w", "--goto", "/a b.py:12"]),
        ({"EDITOR": "subl --wait -n"}, ["subl", "--wait", "-n", "/a b.py:12"]),
        ({"EDITOR": "gvim"}, ["gvim", "--nofork", "+12", "/a b.py"]),
        ({"EDITOR": "kate"}, ["kate", "--block", "--line", "12", "/a b.py"]),
        ({"EDITOR": "notepad"}, ["notepad", "/a b.py"]),
        ({"EDITOR": "env A=1 vi"}, ["env", "A=1", "vi", "/a b.py"]),
        ({"EDITOR": "'my editor' -x"}, ["my editor", "-x", "/a b.py"]),
    ],
)
def test_commands(environ: dict[str, str], words: list[str], path: str) -> None:
    assert editor_command("/a b.py", 12, {**environ, "PATH": path}) == words


def test_a_program_by_its_path(path: str) -> None:
    editor = f"{path}/nvim"
    assert editor_command("a.py", 3, {"EDITOR": editor, "PATH": ""}) == [editor, "+3", "a.py"]


def test_a_line_that_is_not_known(path: str) -> None:
    assert editor_command("a.py", 0, {"PATH": path}) == ["vi", "a.py"]
    assert editor_command("a.py", 0, {"EDITOR": "code", "PATH": path}) == ["code", "--wait", "a.py"]


def test_a_file_is_no_option(path: str) -> None:
    assert editor_command("-c quit.py", 1, {"PATH": path}) == ["vi", "+1", "./-c quit.py"]
    assert editor_command("+q", 1, {"PATH": path}) == ["vi", "+1", "./+q"]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "there is no vi; set VISUAL or EDITOR"),
        ({"EDITOR": "nano -w"}, r"\$EDITOR is nano -w, which is not here; set VISUAL"),
        ({"VISUAL": "/nowhere/code", "EDITOR": "vi"}, r"\$VISUAL is /nowhere/code, which is not here"),
        ({"VISUAL": "vi 'x"}, r"\$VISUAL cannot be read \(No closing quotation\): vi 'x"),
    ],
)
def test_no_editor(environ: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(EditorMissing, match=message):
        editor_command("a.py", 1, {**environ, "PATH": str(tmp_path)})
