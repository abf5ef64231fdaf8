"""The test suites of other projects, bare and under pytrace, compared test by test. By hand: make
suites

    python tests/suites/projects.py [PROJECT[:ARGUMENT]...]

The projects are those of the group `suites` in pyproject.toml, which has to be installed. Their
tests come with the source distribution of the same version, which is downloaded once, into
build/suites/. If a test ends otherwise, both are run again, to tell a difference from a test
that fails now and then. Exit status 1 if there is a difference both times. A large suite is run
in pieces: sqlalchemy:test/sql is the one that has this argument.
"""

import argparse
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from textwrap import indent

from outcomes import PYTRACE, Outcomes, differences, of_junit, of_trial, recording

DOWNLOADS = Path(__file__).parents[2] / "build" / "suites"


@dataclass(frozen=True)
class Project:
    """A distribution on the index, and what to run in its source folder."""

    name: str
    arguments: tuple[str, ...]
    runner: str = "pytest"
    environment: tuple[tuple[str, str], ...] = ()

    def names(self) -> set[str]:
        """The name by which it is asked for."""
        return {self.name, *(f"{self.name}:{argument}" for argument in self.arguments)}


ORM_PARTS = ["test/orm/declarative", "test/orm/dml", "test/orm/inheritance"]  # half of test/orm
PROJECTS = [
    Project("attrs", ("tests", "--hypothesis-seed=0")),
    Project("pluggy", ("testing",)),
    Project("jinja2", ("tests",)),
    Project("flask", ("tests",)),
    Project("sqlalchemy", ("test/base", "test/engine", "test/aaa_profiling", "test/typing")),
    Project("sqlalchemy", ("test/dialect",)),
    Project("sqlalchemy", ("test/ext",)),
    Project("sqlalchemy", ("test/ext/asyncio", "--db", "aiosqlite")),
    Project("sqlalchemy", ("test/sql",)),
    Project("sqlalchemy", tuple(ORM_PARTS)),
    Project("sqlalchemy", ("test/orm", *(f"--ignore={part}" for part in ORM_PARTS))),
    Project("twisted", ("twisted.test", "twisted.internet", "twisted.trial"), "twisted.trial"),
    Project(  # its checks for leaks run each test many times, and take ten minutes
        "greenlet",
        ("--pyargs", "greenlet.tests", "-k", "not leaks"),
        environment=(("GREENLET_SKIP_LEAKCHECKS", "1"),),
    ),
    Project("trio", ("--pyargs", "trio", "--skip-optional-imports")),
    Project("anyio", ("tests", "-p", "anyio", "--ignore=tests/test_pytest_plugin.py")),
]


@dataclass(frozen=True)
class Run:
    """One run of a suite: how each test ended, wall time in seconds, the largest memory of one of
    its processes in MB, its exit status and what it printed."""

    outcomes: Outcomes
    seconds: float
    memory: float
    status: int
    output: str


def source(name: str, folder: Path) -> Path:
    """The unpacked source distribution of what is installed."""
    wanted = f"{name}=={version(name)}"
    place = folder / wanted
    if not place.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as made:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name]
            subprocess.run([*pip, "--dest", made, wanted], check=True)
            [archive] = Path(made).glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(Path(made, "source"), filter="data")
            Path(made, "source").rename(place)  # only now is it whole
    [tree] = [path for path in place.iterdir() if path.is_dir()]
    return tree


def run(project: Project, tree: Path, command: list[str], scratch: Path) -> Run:
    """Runs the project's suite with `command` in the place of python."""
    junit = scratch / "junit.xml"
    junit.unlink(missing_ok=True)
    arguments = ["-m", project.runner, *project.arguments]
    if project.runner == "pytest":
        arguments += ["-q", "-p", "no:cacheprovider", "--tb=short", f"--junitxml={junit}"]
    else:
        arguments.insert(2, f"--temp-directory={scratch / 'trial'}")
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        whole = [*command, *arguments]
        process = subprocess.Popen(
            whole,
            cwd=tree,
            env=os.environ | dict(project.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        output.seek(0)
        text = output.read()
    outcomes = of_junit(junit) if project.runner == "pytest" else of_trial(text)
    return Run(outcomes, seconds, usage.ru_maxrss / 1024, process.returncode, text)


def compare(project: Project, folder: Path) -> bool:
    """Runs a project's tests both ways, and prints what came of it. False: there is a
    difference."""
    tree = source(project.name, folder)
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        database = scratch / "traces.sqlite"
        pytrace = [PYTRACE, "--quiet", "--output", str(database)]
        bare = run(project, tree, [sys.executable], scratch)
        recorded = run(project, tree, pytrace, scratch)
        print(summary(project, bare, recorded), recording(database), sep="; ", flush=True)
        if not bare.outcomes or bare.status != recorded.status:
            print(f"  exit status {bare.status}, under pytrace {recorded.status}")
            print(indent((recorded if bare.outcomes else bare).output, "  | "), flush=True)
        found = differences(bare.outcomes, recorded.outcomes)
        if not found:
            return bool(bare.outcomes) and bare.status == recorded.status
        bare = run(project, tree, [sys.executable], scratch)
        again = differences(bare.outcomes, run(project, tree, pytrace, scratch).outcomes)
    for name, (plain, traced) in found.items():
        flaky = "" if again.get(name) == (plain, traced) else " (not the second time)"
        print(f"  {name}: {plain}, under pytrace {traced}{flaky}")
    stays = found.items() & again.items()
    if stays:
        print(indent(recorded.output, "  | "))
    return not stays


def summary(project: Project, bare: Run, recorded: Run) -> str:
    ends = list(recorded.outcomes.values())
    return (
        f"{project.name} {version(project.name)}: {len(ends)} tests, "
        f"{ends.count('failed') + ends.count('error')} failed, "
        f"{len(differences(bare.outcomes, recorded.outcomes))} ended otherwise; "
        f"{bare.seconds:.1f} s, recorded {recorded.seconds:.1f} s ({recorded.seconds / bare.seconds:.2f}x); "
        f"memory {bare.memory:.0f} MB, recorded {recorded.memory:.0f} MB"
    )


def main() -> int:
    # A shell ignores SIGINT in its background jobs, but some tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parser = argparse.ArgumentParser(description="the tests of other projects, bare and under pytrace")
    parser.add_argument("projects", nargs="*", metavar="PROJECT[:ARGUMENT]")
    wanted = set(parser.parse_args().projects) or {project.name for project in PROJECTS}
    if unknown := wanted - {name for project in PROJECTS for name in project.names()}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    print(f"Python {sys.version.split()[0]}")
    same = [compare(project, DOWNLOADS) for project in PROJECTS if wanted & project.names()]
    return 0 if same and all(same) else 1


if __name__ == "__main__":
    raise SystemExit(main())
