"""How each test of a suite ended, what two runs of it differ in, and what was recorded of one. Used
by projects.py; cpython.py, which reads other results, asks for the last alone."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

PYTRACE = str(Path(sys.executable).with_name("pytrace"))

Outcomes = dict[str, str]  # passed, failed, error or skipped, by the test's name

TRIAL_KINDS = {"[FAIL]": "failed", "[ERROR]": "error", "[SKIPPED]": "skipped", "[TODO]": "failed"}
TRIAL_TEST = re.compile(r"[A-Za-z_][\w.]*\.test\w*")
TRIAL_COUNT = re.compile(r"^Ran (\d+) tests", re.M)


def of_junit(path: Path) -> Outcomes:
    """From the XML file that pytest --junitxml writes. Empty if there is none."""
    if not path.exists():
        return {}
    found: Outcomes = {}
    for case in ElementTree.parse(path).iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
        name = f"{case.get('classname')}.{case.get('name')}"
        found[name] = {"failure": "failed"}.get(kinds[0], kinds[0]) if kinds else "passed"
    return found


def of_trial(output: str) -> Outcomes:
    """From what trial prints, which names the tests that did not pass; the others are counted."""
    found: Outcomes = {}
    kind = None
    for line in output.splitlines():
        if line.startswith(("=====", "-----")):
            kind = None
        kind = TRIAL_KINDS.get(line, kind)
        if kind and TRIAL_TEST.fullmatch(line):
            found[line] = kind
    counted = TRIAL_COUNT.search(output)
    passed = int(counted[1]) - len(found) if counted else 0
    return found | {f"(passed {number})": "passed" for number in range(passed)}


def differences(bare: Outcomes, recorded: Outcomes) -> dict[str, tuple[str, str]]:
    """The tests that ended otherwise, with both ends; "missing" if it did not run."""
    return {
        name: (bare.get(name, "missing"), recorded.get(name, "missing"))
        for name in sorted(bare.keys() | recorded.keys())
        if bare.get(name) != recorded.get(name)
    }


def recording(database: Path) -> str:
    """A summary of the last run in `database`, with its lost events."""
    if not database.exists():
        return "no recording"
    command = [PYTRACE, "info", str(database), "--format", "json"]
    info = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    last = json.loads(info.stdout)["runs"][-1]
    return (
        f"{last['events']:,} events of {last['processes']} processes, {last['lost']:,} lost, "
        f"{database.stat().st_size / 1e6:.0f} MB"
    )
