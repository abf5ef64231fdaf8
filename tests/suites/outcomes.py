"""How each test of a suite ended, and what two runs of it differ in. Used by projects.py."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

Outcomes = dict[str, str]  # passed, failed, error or skipped, by the test's name

TRIAL_KINDS = {"[FAIL]": "failed", "[ERROR]": "error", "[SKIPPED]": "skipped", "[TODO]": "failed"}
TRIAL_TEST = re.compile(r"[A-Za-z_][\w.]*\.test\w*")
TRIAL_COUNT = re.compile(r"^Ran (\d+) tests", re.M)


def of_junit(path: Path) -> Outcomes:
    """From the XML file that pytest --junitxml writes. Empty where there is none."""
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
    """The tests that ended otherwise, with both ends; "missing" where it did not run."""
    return {
        name: (bare.get(name, "missing"), recorded.get(name, "missing"))
        for name in sorted(bare.keys() | recorded.keys())
        if bare.get(name) != recorded.get(name)
    }
