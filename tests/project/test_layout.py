"""The rules of the layout, read off the sources: which file may know of what."""

import ast
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
C_SOURCES = sorted(path for path in (ROOT / "csrc").glob("**/*.[ch]") if path.name != "unprintable.h")
PYTHON_SOURCES = sorted(
    path for folder in ("pytracer", "dumper", "reader") for path in (ROOT / folder).glob("**/*.py")
)

# what | its sign in a C source | the files that may have it
C_RULES = {
    "atomics": (
        r"\b_Atomic\b|\batomic_\w+|\bstdatomic\.h|\b__(atomic|sync)_\w+",
        r"ring/ring(_abi)?\.[ch]|record/(writers|native)\.[ch]|kernel/perf\.c",
    ),
    "the ring's layout": (
        r"ring/ring_abi\.h|\bring_header\b|\bchunk_header\b|(->|\.)header->|stream\.chunk\b",
        r"ring/\w+\.[ch]",
    ),
    "Python": (r"\bPython\.h\b|\bPy_\w+|\bPyObject\b", r"record/(?!session|got|writers)\w+\.[ch]"),
    "the interpreter's inside": (
        r"\binternal/pycore_\w+\.h|\bPy_BUILD_CORE\b",
        r"record/(pycompat|python3\w+)\.h",
    ),
    "the interpreter's version": (r"\bPY_VERSION_HEX\b", r"record/pycompat\.h"),
    "SQLite": (r"\bsqlite3\w*", r"query/sqlite_\w+\.[ch]"),
}

# The folders of csrc/, and those whose headers each may include besides its own.
C_FOLDERS = {
    "common": set(),
    "ring": {"common"},
    "format": {"common"},
    "kernel": {"common", "ring", "format"},
    "record": {"common", "ring", "format"},
    "query": {"common", "format"},
}

# The modules of pytrace that each Python folder may import from outside of itself.
CONTRACTS = {
    "pytracer": {
        "pytracer.dumper.kernel",
        "pytracer.dumper.perf",
        "pytracer.dumper.tracefs",
        "pytracer.reader.subcommands",
        "pytracer.reader.sql_tables",
    },
    "dumper": {"pytracer._core"},
    "reader": {
        "pytracer.cli",
        "pytracer.doctor",
        "pytracer.dumper.symbols",
        "pytracer.messages",
        "pytracer.options",
        "pytracer.unsaved",
    },
}


# The modules of the reader that each of its folders may import from outside of itself.
READER_FOLDERS = {
    "filter": {"pytracer.reader.query"},
    "suggestions": {
        "pytracer.reader.database", "pytracer.reader.filter.sql",
        "pytracer.reader.filter.tree", "pytracer.reader.filter.units",
    },
}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def package(path: Path) -> list[str]:
    """The package a module stands in, as setup.py lays it out."""
    parts = path.relative_to(ROOT).parent.parts
    return list(parts) if parts[0] == "pytracer" else ["pytracer", *parts]


def module_name(path: Path) -> str:
    return ".".join([*package(path), path.stem])


MODULES = {*map(module_name, PYTHON_SOURCES), "pytracer._core", "pytracer._hook"}


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


@cache
def all_imports() -> dict[str, set[str]]:
    """What each module imports; not read if pytest only collects."""
    return {module_name(path): {*imports(path)} for path in PYTHON_SOURCES}


def c_name(path: Path) -> str:
    return str(path.relative_to(ROOT / "csrc"))


def c_includes(path: Path) -> set[str]:
    """The project's headers that a C file includes, by their paths below csrc/."""
    return set(re.findall(r'^#include "([^"]+)"', path.read_text(), re.MULTILINE)) - {"query/unprintable.h"}


@pytest.mark.parametrize("what", C_RULES)
def test_c_files_know_only_what_they_may(what: str) -> None:
    sign, allowed = C_RULES[what]
    found = {c_name(path) for path in C_SOURCES if re.search(sign, without_comments(path.read_text()))}
    assert {file for file in found if not re.fullmatch(allowed, file)} == set()


def test_a_c_folder_includes_only_what_stands_below_it() -> None:
    wrong = {
        (c_name(path), header)
        for path in C_SOURCES
        for header in c_includes(path)
        if Path(header).parent.name not in (path.parent.name, *C_FOLDERS[path.parent.name])
    }
    assert wrong == set()


def test_c_headers_include_each_other_in_no_circle() -> None:
    below = {c_name(path): c_includes(path) for path in C_SOURCES if path.suffix == ".h"}
    while leaves := {header for header, included in below.items() if included.isdisjoint(below)}:
        below = {header: included for header, included in below.items() if header not in leaves}
    assert below == {}


def test_what_differs_between_versions_is_asked_of_one_header() -> None:
    """It chooses the file of the version. Only these files include each other."""
    of_a_version = re.compile(r"record/python3\w+\.h")
    including = {
        c_name(path) for path in C_SOURCES if any(of_a_version.fullmatch(file) for file in c_includes(path))
    }
    assert {file for file in including if not of_a_version.fullmatch(file)} == {"record/pycompat.h"}


def unit(path: str) -> str:
    return path.rpartition(".")[0]


@pytest.mark.parametrize("folder", ["common", "format", "query", "record", "ring"])
def test_c_files_need_each_other_in_no_circle(folder: str) -> None:
    """A file and its header are one."""
    below: dict[str, set[str]] = {}
    for path in C_SOURCES:
        if path.parent.name == folder:
            own = unit(c_name(path))
            below.setdefault(own, set()).update({unit(header) for header in c_includes(path)} - {own})
    TopologicalSorter(below).prepare()


def folder_of(module: str) -> str:
    _, *below = module.split(".")
    return below[0] if below and below[0] in CONTRACTS else "pytracer"


@pytest.mark.parametrize("folder", CONTRACTS)
def test_folders_meet_at_the_contracts(folder: str) -> None:
    sources = [path for path in PYTHON_SOURCES if path.is_relative_to(ROOT / folder)]
    imported = {module for path in sources for module in imports(path)}
    assert {module for module in imported if folder_of(module) != folder} <= CONTRACTS[folder]


@pytest.mark.parametrize("folder", READER_FOLDERS)
def test_folders_of_the_reader_know_only_what_stands_below(folder: str) -> None:
    sources = [path for path in PYTHON_SOURCES if path.is_relative_to(ROOT / "reader" / folder)]
    own = f"pytracer.reader.{folder}."
    imported = {module for path in sources for module in imports(path)}
    others = {module for module in imported if folder_of(module) == "reader" and not module.startswith(own)}
    assert others <= READER_FOLDERS[folder]


def test_no_imports_run_in_a_circle() -> None:
    """Not even those inside of functions, or for types alone."""
    TopologicalSorter(all_imports()).prepare()


def test_a_python_file_says_what_it_is() -> None:
    assert [name(path) for path in PYTHON_SOURCES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_regular_expressions_mean_the_same_in_every_patch_release() -> None:
    """Possessive quantifiers and atomic groups are wrong in the first ones of 3.11."""
    texts = [
        (name(path), node.value)
        for path in PYTHON_SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts = [(file, re.sub(r"[Cc]\+\+", "", text)) for file, text in texts]  # the language
    assert [(file, text) for file, text in texts if re.search(r"[*+?}]\+|\(\?>", text)] == []


def test_a_c_file_says_what_it_is() -> None:
    assert [name(path) for path in C_SOURCES if not path.read_text().startswith("/* ")] == []


WIDTH = 100  # columns of prose; ruff (W505) has the same for Python


def prose(page: str) -> Iterator[str]:
    """The lines of a page in Markdown outside of code blocks, tables, and lines of one link."""
    in_code = False
    for line in page.splitlines():
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and not re.match(r" *\||!?\[[^]]*\]\([^)]*\)$", line):
            yield line


def c_comments(source: str) -> Iterator[str]:
    """The lines of a C file with comments, without tables and drawings: those are indented."""
    for comment in re.finditer(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', source, re.DOTALL):
        if comment[0].startswith("/"):
            start = source.rfind("\n", 0, comment.start()) + 1
            lines = source[start : comment.end()].splitlines()
            yield from (line for line in lines if not re.match(r" *\*   ", line))


def too_long(paths: Iterable[Path], lines_of: Callable[[str], Iterable[str]]) -> list[tuple[str, str]]:
    return [(name(path), line) for path in paths for line in lines_of(path.read_text()) if len(line) > WIDTH]


def test_lines_of_prose_are_not_too_long() -> None:
    assert too_long([ROOT / "README.md", *(ROOT / "docs").glob("*.md")], prose) == []


def test_lines_of_c_comments_are_not_too_long() -> None:
    assert too_long([*C_SOURCES, *(ROOT / "tests" / "c").glob("*.[ch]")], c_comments) == []


def test_modules_of_tests_have_names_of_their_own() -> None:
    """Their folders are no packages: pytest imports them by these names."""
    names = [path.name for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    assert sorted(names) == sorted(set(names))


def test_every_c_file_is_built() -> None:
    """setup.py and core_build.py compile whole folders."""
    built = (ROOT / "setup.py").read_text() + (ROOT / "csrc" / "core_build.py").read_text()
    folders = {path.parent.name for path in C_SOURCES if path.suffix == ".c"}
    assert [folder for folder in folders if f'"{folder}"' not in built] == []


def test_the_project_says_the_same_thing_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    first, *_, last = (line.split()[0] for line in (ROOT / ".ci" / "versions").read_text().splitlines())
    following = "3." + str(int(last.split(".")[1]) + 1)
    assert project["project"]["requires-python"] == f">={first},<{following}"
    assert project["dependency-groups"]["build"] == project["build-system"]["requires"]


# Of the reader's screen: who may know of what, for types, too. So what a command does and what it
# changes can be read and tried without a terminal.
SCREEN = "pytracer.reader.screen"
REPLAY = "pytracer.reader.replay.screen"
KNOWN_TO = {
    "app": {"main"},
    "loop": {"app"},
    "worker": {"app", "background", "loop", "main"},
    "background": {"app"},
    "commands.table": {"app"},
    "paint": {"app", "dialogs", "lanes", "layout", "listing", "loop", "prompt"},
    "layout": {"app"},
    "dialogs": {"loop"},
    "prompt": {"dialogs"},
    "listing": {"dialogs"},
    "line_editor": {"dialogs", "prompt"},
}
# ... and to these of the replay's screen, which is made of the same parts
REPLAY_KNOWS = {
    "main": {"main"},
    "loop": {"app"},
    "worker": {"app", "main"},
    "paint": {"app", "draw"},
}
URWID_IS_KNOWN_TO = {"dialogs", "line_editor", "loop", "paint", "prompt", "toolkit"}


@pytest.mark.parametrize("what", KNOWN_TO)
def test_only_some_of_the_screen_know(what: str) -> None:
    knowing = {module for module, known in all_imports().items() if f"{SCREEN}.{what}" in known}
    known = {f"{SCREEN}.{module}" for module in KNOWN_TO[what]}
    assert knowing <= known | {f"{REPLAY}.{module}" for module in REPLAY_KNOWS.get(what, ())}


def test_what_draws() -> None:
    drawing = {
        module_name(path)
        for path in PYTHON_SOURCES
        if re.search(r"\burwid\.\w|import urwid", path.read_text())
    }
    assert drawing <= {f"{SCREEN}.{module}" for module in URWID_IS_KNOWN_TO}
