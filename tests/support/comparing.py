"""Programs under the oracle and under pytrace: the same events. For test_oracle.py and
test_async.py."""

import difflib
import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from recording import PYTRACE, read, run, without_addresses, write

ORACLE = Path(__file__).with_name("oracle.py")

# Outside the recorded folder, so that depth starts at 0 with each program. What a program leaves
# behind ends with it, and not whenever there happens to be garbage enough.
DRIVER = """\
import gc, importlib, sys

gc.disable()
sys.path.insert(0, sys.argv[1])
for number in range(int(sys.argv[2])):
    importlib.import_module(f"program{number}")
    del sys.modules[f"program{number}"]
    gc.collect()
"""


def describe(event: dict[str, Any]) -> str:
    shown = ", ".join(f"{arg['name']}={arg['value']}: {arg['type']}" for arg in event["args"])
    place = f"{event['module']}.{event['func']}:{event['line']} in {event['thread']} {event.get('task', '')}"
    return without_addresses(f"{event['depth']:2} {'  ' * event['depth']}{event['kind']} {place} ({shown})")


def is_artificial(event: dict[str, Any]) -> bool:
    """On 3.11 nothing tells a raised StopIteration from one with which the interpreter ends a
    loop."""
    return (
        sys.version_info < (3, 12)
        and event["kind"] == "raise"
        and event["args"][0]["type"] == "StopIteration"
    )


# Releases that close a waiting generator without telling the oracle:
# https://github.com/python/cpython/issues/140373
CLOSES_UNSEEN = (3, 13) <= sys.version_info < (3, 13, 10) or (3, 14) <= sys.version_info < (3, 14, 1)


def without_closings(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leaves out generators that were closed where nothing catches it; test_generators.py has
    those."""
    kept: list[dict[str, Any]] = []
    for event in events:
        kept.append(event)
        kinds = [each["kind"] for each in kept[-3:]]
        if kinds == ["throw", "raise", "exception"] and event["args"][0]["type"] == "GeneratorExit":
            del kept[-3:]
    return kept


def without_unknown(wanted: list[str], found: list[str]) -> list[str]:
    """On 3.11 an exception that C code catches may be recorded without its value."""
    return [
        other if " exception " in other and other.endswith(" ()") and line.startswith(other[:-1]) else line
        for line, other in zip_longest(wanted, found, fillvalue="")
    ]


def by_program(events: list[dict[str, Any]], folder: Path) -> dict[str, list[str]]:
    listed: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if is_artificial(event):
            continue
        if event["kind"] == "lost" or Path(event["file"]).parent == folder:
            listed.setdefault(event["module"], []).append(event)
    if CLOSES_UNSEEN:
        listed = {module: without_closings(those) for module, those in listed.items()}
    return {module: [describe(event) for event in those] for module, those in listed.items()}


def expect(folder: Path, driver: Path, count: int) -> list[dict[str, Any]]:
    """The records of the oracle."""
    output = folder.parent / "oracle.json"
    command = [sys.executable, str(ORACLE), str(folder), str(output), str(driver), str(folder), str(count)]
    done = run(command, folder.parent, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    events: list[dict[str, Any]] = json.loads(output.read_text())
    return events


def observe(folder: Path, driver: Path, count: int, *options: str) -> list[dict[str, Any]]:
    """The records of pytrace."""
    database = folder.parent / "traces.sqlite"
    command = [*PYTRACE, "-q", "-o", str(database), *options, str(driver), str(folder), str(count)]
    done = run(command, folder.parent, PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1")
    assert done.returncode == 0, done.stderr
    return list(read(database))


def write_programs(top: Path, sources: list[str]) -> tuple[Path, Path]:
    folder = top / "programs"
    for number, source in enumerate(sources):
        write(folder, f"program{number}.py", source)
    return folder, write(top, "driver.py", DRIVER)


def assert_nested(events: list[dict[str, Any]]) -> None:
    """Whatever opens is closed by the same function, on each thread."""
    open_calls: dict[str, list[str]] = {}
    for event in events:
        stack = open_calls.setdefault(event["thread"], [])
        function = f"{event['file']}:{event['func']}:{event['line']}"
        if event["kind"] in ("call", "resume", "throw"):
            assert event["depth"] == len(stack), event
            stack.append(function)
        elif event["kind"] == "raise":
            assert event["depth"] == len(stack) - 1, event
        else:
            assert stack.pop() == function, event
            assert event["depth"] == len(stack), event
    assert not any(open_calls.values())


def assert_same(
    sources: list[str], expected: list[dict[str, Any]], observed: list[dict[str, Any]], folder: Path
) -> None:
    """The same events of each program, in the same order."""
    wanted, found = by_program(expected, folder), by_program(observed, folder)
    if sys.version_info < (3, 12):
        wanted = {name: without_unknown(lines, found.get(name, [])) for name, lines in wanted.items()}
    for number, source in enumerate(sources):
        name = f"program{number}"
        if wanted.get(name) != found.get(name):
            difference = difflib.unified_diff(
                wanted.get(name, []), found.get(name, []), "oracle", "pytrace", lineterm="", n=5
            )
            pytest.fail("\n".join([source, *list(difference)[:60]]), pytrace=False)
    assert wanted.keys() == found.keys()
