"""`pytrace info --doctor`: each of its findings, provoked."""

import json
import os
import platform
import site
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import mortal
from pytracer import _hook, doctor
from pytracer.doctor import GOOD, PROBLEM, WARNING, Machine
from recording import PYTRACE, run

ROOT = Path(__file__).parents[2]
MIB = 1 << 20


@pytest.fixture(name="machine")
def machine_fixture(tmp_path: Path) -> Machine:
    """One without fault, in folders of the test's own."""
    for name in ("shm", "tmp", "cgroup", "out"):
        (tmp_path / name).mkdir(mode=0o700)
    return Machine(
        output=str(tmp_path / "out" / "traces.sqlite"),
        max_size=MIB,
        buffer_size=MIB,
        shared_memory=str(tmp_path / "shm"),
        temporary=str(tmp_path / "tmp"),
        cgroup=tmp_path / "cgroup",
    )


def found(name: str, machine: Machine) -> list[tuple[str, str]]:
    return [
        (finding.status, finding.found)
        for finding in doctor.findings(name, machine)
        if finding.status != GOOD
    ]


def test_the_project_says_the_same_of_pythons_everywhere() -> None:
    names = {".".join(map(str, key)): patches for key, patches in doctor.TESTED.items()}
    spans = [f"{name}.{first} {name}.{last}" for name, (first, last) in names.items()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["tested"]["python"] == spans
    table = (ROOT / "docs" / "limits.md").read_text()
    for name, span in zip(names, spans, strict=True):
        assert f"| {name} | {span.replace(' ', ' | ')} |" in table


def test_a_python_that_was_not_tested(machine: Machine) -> None:
    for minor, (first, last) in doctor.TESTED.items():
        assert found("python", replace(machine, python=(*minor, first))) == []
        assert found("python", replace(machine, python=(*minor, last))) == []
    status, what = one("python", replace(machine, python=(3, 13, 99)))
    assert status == WARNING
    assert what.endswith("newer than those that pytrace was tested on: 3.13.0 to 3.13.5")
    status, what = one("python", replace(machine, python=(3, 11, 0)))
    assert what.endswith("older than those that pytrace was tested on: 3.11.2 to 3.11.7")


def one(name: str, machine: Machine) -> tuple[str, str]:
    """The only finding that is not good; with advice."""
    [finding] = [finding for finding in doctor.findings(name, machine) if finding.status != GOOD]
    assert finding.advice
    assert finding.check == name
    return finding.status, finding.found


@pytest.mark.parametrize("name", sorted({*doctor.CHECKS} - {"trial"}))
def test_nothing_wrong(machine: Machine, name: str) -> None:
    faults = found(name, machine)
    if name in ("python", "limits", "clock"):  # these are this machine's
        assert all(status == WARNING for status, _ in faults)
    else:
        assert faults == []
    assert not any(Path(machine.shared_memory).iterdir())
    assert not any(Path(machine.output).parent.iterdir())


def test_python(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [str(tmp_path / "shm"), str(tmp_path / "out")]
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    monkeypatch.setattr(site, "getsitepackages", lambda: folders)
    status, what = one("python", machine)
    assert (status, what[:23]) == (PROBLEM, "pytrace.pth is in none ")
    for folder in folders:
        Path(folder, "pytrace.pth").touch()
    status, what = one("python", machine)
    assert (status, what[:29]) == (WARNING, "pytrace is installed 2 times:")
    os.unlink(f"{folders[0]}/pytrace.pth")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "riscv64" in one("python", machine)[1]
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name="pypy"))
    assert found("python", machine) == [(PROBLEM, "pypy is not supported; use CPython 3.11 to 3.15")]


def test_libraries(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(doctor, "find_spec", lambda _: SimpleNamespace(origin="/none.so"))
        status, what = one("libraries", machine)
        assert (status, what[:31]) == (PROBLEM, "SQLite's extension cannot be us")
    monkeypatch.setitem(sys.modules, "urwid", None)  # type: ignore[arg-type]
    status, what = one("libraries", machine)
    assert (status, what[:16]) == (PROBLEM, "not here: urwid ")


@pytest.fixture(name="taken")
def taken_fixture() -> Iterator[None]:
    """All that the hook would need."""
    if sys.version_info < (3, 12):
        before = sys.getprofile()
        sys.setprofile(lambda *_: None)
        yield
        sys.setprofile(before)
        return
    free = [number for number in range(6) if sys.monitoring.get_tool(number) is None]
    for number in free:
        sys.monitoring.use_tool_id(number, f"tool {number}")
    yield
    for number in free:
        sys.monitoring.free_tool_id(number)


@pytest.mark.usefixtures("taken")
def test_hooks(machine: Machine) -> None:
    status, what = one("hooks", machine)
    assert "taken" in what if status == PROBLEM else "profile function" in what


def test_values(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    other = "import decimal\nclass Other:\n    def __init__(self, text): pass\ndecimal.Decimal = Other\n"
    monkeypatch.setattr(doctor, "SHOW", other + doctor.SHOW)
    status, what = one("values", machine)
    assert status == WARNING
    assert what.startswith("recorded otherwise than their repr: decimal.Decimal('-12.50'), decimal.Decimal(")
    monkeypatch.setattr(doctor, "SHOW", "raise ValueError")
    status, what = one("values", machine)
    assert (status, what[:25]) == (PROBLEM, "a trial recording of valu")


def test_clock(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "TICKS", -1)
    assert one("clock", machine)[0] == WARNING


def changed(machine: Machine, **changes: object) -> Machine:
    return Machine(**(vars(machine) | changes))


def test_shared_memory(machine: Machine) -> None:
    assert " free of " in one("shared memory", changed(machine, buffer_size=1 << 60))[1]
    os.chmod(machine.shared_memory, 0o777)
    assert one("shared memory", machine)[0] == PROBLEM
    os.chmod(machine.shared_memory, 0o1777)
    assert found("shared memory", machine) == []
    status, what = one("shared memory", changed(machine, shared_memory="/none"))
    assert (status, what) == (WARNING, "/none cannot be used (No such file or directory)")


def test_output(machine: Machine) -> None:
    path, folder = Path(machine.output), Path(machine.output).parent
    assert one("output", changed(machine, max_size=1 << 60))[0] == WARNING
    folder.chmod(0o777)
    assert one("output", machine) == (WARNING, f"others may rename and remove files in {folder}")
    folder.chmod(0o700)
    path.touch()
    for mode, status in ((0o666, PROBLEM), (0o640, WARNING)):
        path.chmod(mode)
        assert one("output", machine)[0] == status
    path.write_text("Dear diary")
    assert found("output", machine)[0][0] == PROBLEM
    assert "there is no folder" in found("output", changed(machine, output="/none/traces.sqlite"))[0][1]


def test_processes(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert one("processes", changed(machine, proc=tmp_path))[0] == PROBLEM

    def refused(pid: int) -> int:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "pidfd_open", refused)
    assert one("processes", machine) == (WARNING, "pidfd_open: Operation not permitted")


def test_limits(machine: Machine) -> None:
    (machine.cgroup / "cpu.max").write_text("50000 100000\n")
    (machine.cgroup / "memory.max").write_text(f"{2 * MIB}\n")
    assert found("limits", machine) == [
        (WARNING, "0.5 processors"),
        (WARNING, "2 MiB of memory, the buffer takes 1 MiB of it"),
    ]


def test_recordings(machine: Machine) -> None:
    def ring(pid: str) -> str:
        return f"{machine.shared_memory}/pytrace-{os.getuid()}-{pid}-0123456789abcdef"

    _hook.create(ring(str(os.getpid())), MIB, b"")
    assert found("recordings", machine) == []
    _hook.create(ring("999999999"), MIB, b"")
    Path(ring("888888888")).touch()
    status, what = one("recordings", machine)
    states = "(processes: none; chunks: none; dumper: STARTING)"
    assert (status, what) == (WARNING, f"2 cut off: {ring('888888888')}, {ring('999999999')} {states}")


def test_trial(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PROGRAM", "pass")
    assert one("trial", machine) == (PROBLEM, "a trial recording has 0 of 2 events")
    monkeypatch.setattr(doctor, "PROGRAM", "raise SystemExit('broken')")
    assert one("trial", machine) == (PROBLEM, "a trial recording failed: broken")


@pytest.fixture(name="alone")
def alone_fixture(tmp_path: Path) -> dict[str, str]:
    """The environment of a doctor that does not see the recordings of other tests."""
    (tmp_path / "memory").mkdir()
    return mortal.with_memory(tmp_path / "python", tmp_path / "memory")


def test_command(tmp_path: Path, alone: dict[str, str]) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    done = run([*PYTRACE, "info", "--doctor", "--format", "json"], folder, **alone)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    answer = json.loads(done.stdout)
    assert answer["well"]
    assert [*dict.fromkeys(finding["check"] for finding in answer["findings"])] == [*doctor.CHECKS]
    assert [*folder.iterdir()] == []


def test_command_with_a_problem(tmp_path: Path, alone: dict[str, str]) -> None:
    (tmp_path / "diary").write_text("Dear diary")
    done = run([*PYTRACE, "info", "diary", "--doctor"], tmp_path, **alone)
    assert done.returncode == 1
    assert f"problem  output         {tmp_path}/diary is not a database" in done.stdout
    assert done.stdout.endswith("\n1 problem\n")


def test_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRACE_BUFFER_SIZE", "much")
    [finding] = doctor.examine()
    assert (finding.check, finding.status) == ("options", PROBLEM)
    assert not doctor.is_well([finding])
