"""The rules of the layout, read off the sources: which file may know of what."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
C_SOURCES = sorted(path for path in (ROOT / "csrc").glob("*.[ch]") if path.name != "unprintable.h")
PYTHON_SOURCES = sorted(
    path
    for folder in ("pytracer", "dumper", "reader")
    for path in (ROOT / folder).glob("**/*.py")
    if path.name != "trace_pb2.py"
)

# what | its sign in a C source | the files that may have it
C_RULES = {
    "atomics": (r"\b_Atomic\b|\batomic_\w+|\bstdatomic\.h|\b__(atomic|sync)_\w+", r"ring(_abi)?\.[ch]"),
    "Python": (
        r"\bPython\.h\b|\bPy_\w+|\bPyObject\b",
        r"(pycompat|values|codes|hook|lanes|task|monitoring|profile|module)\.[ch]",
    ),
    "the interpreter's inside": (r"\binternal/pycore_\w+\.h|\bPy_BUILD_CORE\b", r"pycompat\.h"),
    "SQLite": (r"\bsqlite3\w*", r"sqlite_(calls|hot|store|trace)\.[ch]"),
    "the ring": (
        r'"ring(_abi)?\.h"|"session\.h"',
        r"(clock|ring|session|hook|lanes|codes|monitoring|profile|module)\.[ch]",
    ),
}

# What each Python folder may import of pytrace outside of itself.
CONTRACTS = {
    "pytracer": {"pytracer.reader.commands"},
    "dumper": {"pytracer._core", "pytracer.trace_pb2"},
    "reader": {"pytracer.doctor"},  # info --doctor
}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def package(path: Path) -> list[str]:
    """The package a module stands in, as setup.py lays it out."""
    parts = path.relative_to(ROOT).parent.parts
    return list(parts) if parts[0] == "pytracer" else ["pytracer", *parts]


def module_name(path: Path) -> str:
    return ".".join([*package(path), path.stem])


MODULES = {*map(module_name, PYTHON_SOURCES), "pytracer._core", "pytracer._hook", "pytracer.trace_pb2"}


def without_comments(source: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)


def imports(path: Path) -> Iterator[str]:
    """Each pytrace module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "pytracer")
        elif isinstance(node, ast.ImportFrom):
            base = package(path)[: len(package(path)) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module.split(".")[0] == "pytracer":
                yield from (
                    f"{module}.{alias.name}" if f"{module}.{alias.name}" in MODULES else module
                    for alias in node.names
                )


@pytest.mark.parametrize("what", C_RULES)
def test_c_files_know_only_what_they_may(what: str) -> None:
    sign, allowed = C_RULES[what]
    found = {path.name for path in C_SOURCES if re.search(sign, without_comments(path.read_text()))}
    assert {file for file in found if not re.fullmatch(allowed, file)} == set()


def folder_of(module: str) -> str:
    _, *below = module.split(".")
    return below[0] if below and below[0] in CONTRACTS else "pytracer"


@pytest.mark.parametrize("folder", CONTRACTS)
def test_folders_meet_at_the_contracts(folder: str) -> None:
    sources = [path for path in PYTHON_SOURCES if path.is_relative_to(ROOT / folder)]
    imported = {module for path in sources for module in imports(path)}
    assert {module for module in imported if folder_of(module) != folder} <= CONTRACTS[folder]


@pytest.mark.parametrize("path", PYTHON_SOURCES, ids=name)
def test_a_python_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("path", C_SOURCES, ids=name)
def test_a_c_file_says_what_it_is(path: Path) -> None:
    assert path.read_text().startswith("/* ")


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Their folders are no packages: pytest imports them by these names."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))


def test_every_c_file_is_built() -> None:
    built = (ROOT / "setup.py").read_text() + (ROOT / "csrc" / "core_build.py").read_text()
    sources = [path for path in C_SOURCES if path.suffix == ".c"]
    assert [path.name for path in sources if not re.search(rf"\b{path.stem}\b", built)] == []


def test_the_project_says_the_same_thing_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    first, *_, last = (ROOT / ".ci" / "versions").read_text().split()
    following = "3." + str(int(last.split(".")[1]) + 1)
    assert project["project"]["requires-python"] == f">={first},<{following}"
    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]


# Of the reader's screen: what draws, and what knows nothing of it.
DRAWING = {
    f"pytracer.reader.screen.{name}"
    for name in ("app", "layout", "line_editor", "menu", "pager", "paint", "prompt", "prompts", "status")
}
APART = (
    "browser", "columns", "detail", "folds", "lines", "literals", "live", "look", "minimap", "model",
    "moves", "panes", "places", "search", "source", "tasks", "text", "timeline", "view", "when", "worker",
)  # fmt: skip


@pytest.mark.parametrize("module", APART)
def test_state_and_questions_know_nothing_of_drawing(module: str) -> None:
    path = ROOT / "reader" / "screen" / f"{module}.py"
    assert DRAWING.isdisjoint(imports(path))
    assert "import urwid" not in path.read_text()
