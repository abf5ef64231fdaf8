"""`pytrace info --doctor`: tells whether this machine can record well, and what to do if not.

Each check is a function that looks at one thing and tells its findings; CHECKS names them all.
`info` calls it; it leaves nothing behind.
"""

import json
import os
import platform
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

from . import launch
from .config import settings
from .option_values import MIN_BUFFER, show_size
from .options import UsageError
from .recovery import SHARED_MEMORY, temporary_folder

GOOD, WARNING, PROBLEM = "good", "warning", "problem"
TRIAL_SECONDS = 60
TICKS = 1  # enum clock_kind
CGROUP = Path("/sys/fs/cgroup")
PROC = Path("/proc")
# The first and the last patch release on which all tests have passed; pyproject.toml and
# docs/limits.md say the same.
TESTED = {(3, 11): (2, 7), (3, 12): (1, 1), (3, 13): (0, 5), (3, 14): (10, 10), (3, 15): (2, 2)}
PROGRAM = "def f(n):\n return n\nf(5)"
# objects that are read from the memory of their type, and not by its methods
SAMPLES = (
    "array.array('i', [1, -2])",
    "asyncio.Future(loop=asyncio.SelectorEventLoop())",
    "collections.ChainMap({1: 2})",
    "collections.Counter('aab')",
    "collections.defaultdict(int)",
    "collections.deque([1, 2], 3)",
    "contextvars.ContextVar('name')",
    "datetime.date(2024, 2, 29)",
    "datetime.datetime(2024, 2, 29, 1, 2, 3, 4)",
    "datetime.time(1, 2)",
    "datetime.timedelta(1, 2, 3)",
    "datetime.timezone(datetime.timedelta(hours=1), 'CET')",
    "datetime.timezone.utc",
    "decimal.Decimal('-12.50')",
    "decimal.Decimal('1234567890123456789012E-7')",
    "fractions.Fraction(1, 3)",
    "functools.partial(int, 1)",
    "ipaddress.ip_address('10.0.0.1')",
    "ipaddress.ip_network('fe80::/16')",
    "pathlib.PurePosixPath('a/b')",
    "re.compile('a+')",
    "re.match('a', 'ab')",
    "threading.Lock()",
    "threading.RLock()",
    "threading.Thread(name='sample')",
    "types.MappingProxyType({1: 2})",
    "types.SimpleNamespace(a=1)",
    "uuid.SafeUUID.safe",
    "uuid.UUID(int=5)",
    "zoneinfo.ZoneInfo('UTC')",
)
SHOW = f"""
import {", ".join(sorted({sample.partition(".")[0] for sample in SAMPLES}))}, json
def shown(value):
    pass
values = [{", ".join(SAMPLES)}]
for value in values:
    shown(value)
print(json.dumps([repr(value) for value in values]))
"""


@dataclass(frozen=True)
class Finding:
    """The finding of a check. advice: the thing to do; "" if all is good."""

    check: str
    status: str
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Machine:
    """The subject of the checks."""

    output: str  # the database, an absolute path
    max_size: int  # bytes
    buffer_size: int  # bytes
    shared_memory: str = SHARED_MEMORY
    temporary: str = field(default_factory=temporary_folder)
    cgroup: Path = CGROUP
    proc: Path = PROC
    python: tuple[int, int, int] = sys.version_info[:3]


Findings = Iterator[tuple[str, str, str]]  # status, what was found, advice


# ---- the checks ----------------------------------------------------------------------------------


def python(machine: Machine) -> Findings:
    """The interpreter, and whether programs in it find pytrace."""
    launch.check_python()
    what = f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    if platform.machine() not in ("x86_64", "aarch64"):
        yield PROBLEM, what, "use Linux on x86-64 or aarch64"
    first, last = ((*machine.python[:2], patch) for patch in TESTED[machine.python[:2]])
    if first <= machine.python <= last:
        yield GOOD, f"{what}, {sys.executable}", ""
    else:
        than, tested = "older" if machine.python < first else "newer", f"{_dotted(first)} to {_dotted(last)}"
        advice = "patch releases seldom differ in what pytrace needs: see whether the trial recording is good"
        yield WARNING, f"{what}, {than} than those that pytrace was tested on: {tested}", advice
    launch.check_installed()
    import site

    own = os.path.dirname(os.path.dirname(__file__))
    folders = {*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])}
    having = sorted(folder for folder in folders if os.path.exists(os.path.join(folder, "pytrace.pth")))
    if len(having) > 1:
        advice = "keep one of them: pip uninstall pytracer, in the Python of the other"
        yield WARNING, f"pytrace is installed {len(having)} times: {', '.join(having)}", advice
    else:
        yield GOOD, f"pytrace is in {own}", ""


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def libraries(machine: Machine) -> Findings:
    """The libraries that pytrace uses."""
    zstd = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    missing = []
    # finds the extension without loading it
    extension = getattr(find_spec("pytracer.sqlite_trace"), "origin", None)
    if extension is None:
        missing.append("pytrace's extension of SQLite")
    for module in (
        "apsw",
        "_cffi_backend",
        "elftools",
        "setproctitle",
        "urwid",
        "regex",
        "wcwidth",
        zstd,
    ):
        try:
            import_module(module)
        except ImportError as error:
            missing.append(f"{module} ({error})")
    if missing:
        yield (
            PROBLEM,
            f"not here: {', '.join(missing)}",
            f"{sys.executable} -m pip install --upgrade pytracer",
        )
        return
    import apsw

    connection = apsw.Connection(":memory:")
    try:
        connection.enable_load_extension(True)
        connection.load_extension(str(extension))
        connection.execute("SELECT * FROM event LIMIT 0").fetchall()
    except apsw.Error as error:
        yield PROBLEM, f"SQLite's extension cannot be used: {error}", "install pytracer again"
        return
    finally:
        connection.close()
    version = import_module(zstd).zstd_version
    yield GOOD, f"SQLite {apsw.sqlite_lib_version()}, zstd {version}", ""


def clock(machine: Machine) -> Findings:
    """The clock of the events, by a ring made for a trial."""
    from ._core import ffi, lib

    folder = machine.shared_memory if os.path.isdir(machine.shared_memory) else machine.temporary
    with _trial_ring(folder) as path:
        ring, lock = ffi.new("struct ring *"), ffi.new("int *")
        error = lib.ring_attach(ring, os.fsencode(path), lib.RING_READER, lock)
        if error:
            yield (
                PROBLEM,
                f"a buffer just made cannot be opened: {os.strerror(-error)}",
                "report this, please",
            )
            return
        kind = lib.ring_clock_kind(ring)
        lib.ring_detach(ring)
    if kind == TICKS:
        yield GOOD, "the processor's own counter", ""
    else:
        advice = "each event costs some 20 ns more; on a virtual machine, let the guest have an invariant TSC"
        yield WARNING, "clock_gettime: the processor's counter cannot be relied upon here", advice


class _trial_ring:
    """The path of a small ring in `folder`, which is removed again. Raises OSError."""

    def __init__(self, folder: str) -> None:
        self.path = os.path.join(folder, f"pytrace-doctor-{os.getpid()}-{os.urandom(8).hex()}")

    def __enter__(self) -> str:
        from . import _hook

        _hook.create(self.path, MIN_BUFFER, b"")
        return self.path

    def __exit__(self, *_: object) -> None:
        os.unlink(self.path)


def shared_memory(machine: Machine) -> Findings:
    """The place of the buffer between program and dumper."""
    folder, wanted = machine.shared_memory, machine.buffer_size
    instead = machine.temporary
    slower = f"the buffer goes to {instead}, which is slower"
    try:
        room = os.statvfs(folder)
        with _trial_ring(folder):
            pass
    except OSError as error:
        advice = f"{slower}; mount a tmpfs at {folder}, with mode 1777"
        yield WARNING, f"{folder} cannot be used ({error.strerror})", advice
        return
    size, free = room.f_blocks * room.f_frsize, room.f_bavail * room.f_frsize
    what = f"{folder} has {show_size(free)} free of {show_size(size)}, the buffer takes {show_size(wanted)}"
    if free < wanted:
        advice = f"{slower}; ask for less with --buffer-size, or give more (of a container: --shm-size=256m)"
        yield WARNING, what, advice
    else:
        yield GOOD, what, ""
    shared = stat.S_IMODE(os.stat(folder).st_mode)
    if shared & 0o022 and not shared & stat.S_ISVTX:
        yield PROBLEM, f"others may remove files of yours in {folder}", f"as root: chmod 1777 {folder}"


def output(machine: Machine) -> Findings:
    """The database to be, and its folder."""
    path, folder = machine.output, os.path.dirname(machine.output)
    launch.check_output(path)
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    with suppress(OSError):
        free += os.stat(path).st_size
    what = f"{path}: {show_size(free)} free, it may take {show_size(machine.max_size)}"
    if free < machine.max_size:
        yield (
            WARNING,
            what,
            "make room, or let it take less with --max-size; when the disk is full, events are lost",
        )
    else:
        yield GOOD, what, ""
    shared = stat.S_IMODE(os.stat(folder).st_mode)
    if shared & 0o022 and not shared & stat.S_ISVTX:
        advice = "they cannot read it, but take it away; choose another folder with --output"
        yield WARNING, f"others may rename and remove files in {folder}", advice
    with suppress(OSError):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        if mode & 0o022:
            yield PROBLEM, f"others may write to {path}", f"chmod 600 {path}"
        elif mode & 0o044:
            yield WARNING, f"others may read {path}", f"unless that is meant: chmod 600 {path}"


def processes(machine: Machine) -> Findings:
    """The dumper's facts of processes in /proc: whether they live, how they end."""
    try:
        own = (machine.proc / "self" / "stat").read_bytes()
        os.stat(machine.proc / "self" / "ns" / "pid")
    except OSError as error:
        yield (
            PROBLEM,
            f"{machine.proc} cannot be read ({error.strerror})",
            "mount it: mount -t proc proc /proc",
        )
        return
    hidden = ""
    with suppress(OSError):
        for line in (machine.proc / "self" / "mounts").read_text().splitlines():
            _, at, kind, options, *_ = line.split()
            if kind == "proc" and at == str(PROC) and "hidepid=" in options:
                hidden = ", other users' processes hidden (hidepid), which is no hindrance"
    if not own:
        yield PROBLEM, f"{machine.proc} is empty", "mount it: mount -t proc proc /proc"
        return
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        advice = (
            "the end of a process is noticed later, and how it ended not always; Linux 5.3 has pidfd_open"
        )
        yield WARNING, f"pidfd_open: {error.strerror}", advice
        return
    yield GOOD, f"{machine.proc} is there{hidden}", ""


def limits(machine: Machine) -> Findings:
    """Processors, memory and open files for program and dumper together."""
    launch.check_limits()
    cores = float(len(os.sched_getaffinity(0)))
    quota = _words(machine.cgroup / "cpu.max")
    if len(quota) == 2 and quota[0].isdecimal() and int(quota[1]):
        cores = min(cores, int(quota[0]) / int(quota[1]))
    if cores < 2:
        advice = "program and dumper share it: what the program makes flat out may be lost; give it two"
        yield WARNING, f"{cores:g} processor{'s' * (cores != 1)}", advice
    else:
        yield GOOD, f"{cores:g} processors", ""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):  # of cgroup 2 and 1
        if (words := _words(machine.cgroup / name)) and words[0].isdecimal():
            memory = min(memory, int(words[0]))
    what = f"{show_size(memory)} of memory, the buffer takes {show_size(machine.buffer_size)} of it"
    if memory < 4 * machine.buffer_size:
        yield WARNING, what, "ask for less with --buffer-size, or give the container more"
    else:
        yield GOOD, what, ""


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def hooks(machine: Machine) -> Findings:
    """The hook's place in the interpreter, and whether somebody else has taken it."""
    if sys.version_info < (3, 12):
        if sys.getprofile() is None:
            yield GOOD, "no profile function is set", ""
        else:
            yield (
                WARNING,
                "a profile function is set at the start",
                "the profiler and pytrace exclude each other",
            )
        return
    ids = [sys.monitoring.get_tool(number) for number in range(6)]
    taken = [name for name in ids if name is not None]
    if len(taken) == len(ids):
        yield PROBLEM, f"all tool ids are taken: {', '.join(taken)}", "start fewer tools with Python"
    else:
        by = f" (taken: {', '.join(taken)})" if taken else ""
        yield GOOD, f"{len(ids) - len(taken)} of {len(ids)} tool ids are free{by}", ""


def recordings(machine: Machine) -> Findings:
    """The rings of this user: of running recordings, and of recordings that were cut off."""
    from . import _hook

    running: list[str] = []
    left: list[str] = []
    start = f"pytrace-{os.getuid()}-"
    for folder in (machine.shared_memory, machine.temporary):
        with suppress(OSError):
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                if name.startswith(start) and os.lstat(path).st_uid == os.geteuid():
                    pid = name.removeprefix(start).partition("-")[0]
                    launching = (machine.proc / pid).exists()
                    with suppress(OSError):  # it has just ended
                        lives = not _hook.is_abandoned(path, launching) if _hook.is_ring(path) else launching
                        (running if lives else left).append(_with_states(path))
                        yield from _trouble(path)
    if running:
        yield GOOD, f"{len(running)} running: {', '.join(running)}", ""
    else:
        yield GOOD, "none is running", ""
    if left:
        advice = "the next one saves what is left of them: pytrace -c pass"
        yield WARNING, f"{len(left)} cut off: {', '.join(left)}", advice


def _with_states(path: str) -> str:
    from .unsaved import states

    found = states(path)
    return f"{path} ({found})" if found else path


def _trouble(path: str) -> Findings:
    """The unsaved part of a recording that runs or has just ended, if something hinders saving."""
    from .unsaved import look

    there = look(path)
    if there is not None and there.why:
        has_ended = "has ended" if there.ended else "runs"
        much = f"{there.events:,} events ({show_size(there.bytes)})"
        what = f"{path}: its program {has_ended}, {much} not yet saved"
        yield PROBLEM, f"{what}: {there.why}", "the dumper tries again twice a second; make that possible"


def trial(machine: Machine) -> Findings:
    """A recording of a program of three lines, and whether its calls are found in it."""
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "traces.sqlite")
        command = [sys.executable, "-P", "-m", "pytracer"]
        try:
            _run([*command, "-q", "-o", database, "--max-size", "1MiB", "-c", PROGRAM], folder)
            shown = _run([*command, "print", database, "--format", "json", "--filter", "func == 'f'"], folder)
        except subprocess.SubprocessError as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()
            yield PROBLEM, f"a trial recording failed: {reason}", "see what the other checks say"
            return
    kinds = [json.loads(line)["kind"] for line in shown.splitlines()]
    if kinds == ["call", "return"]:
        yield GOOD, "a trial recording has what it should have", ""
    else:
        advice = "does PYTRACE_MODULES or PYTRACE_EXCLUDE leave everything out?"
        yield PROBLEM, f"a trial recording has {len(kinds)} of 2 events", advice


def values(machine: Machine) -> Findings:
    """Objects of known types, recorded and compared with their repr."""
    with tempfile.TemporaryDirectory() as folder:
        database = os.path.join(folder, "traces.sqlite")
        command = [sys.executable, "-P", "-m", "pytracer"]
        show = ["print", database, "--format", "json", "--filter", "func == 'shown' and kind == 'call'"]
        try:
            options = ["-q", "-o", database, "--max-size", "1MiB", "--no-stdlib"]
            expected = json.loads(_run([*command, *options, "-c", SHOW], folder))
            found = [
                json.loads(line)["args"][0]["value"] for line in _run([*command, *show], folder).splitlines()
            ]
        except (subprocess.SubprocessError, ValueError, LookupError) as error:
            reason = (getattr(error, "stderr", None) or str(error)).strip()
            yield PROBLEM, f"a trial recording of values failed: {reason}", "see what the other checks say"
            return
    unlike = [
        sample
        for sample, text, recorded in zip_longest(SAMPLES, expected, found)
        if text is None or recorded is None or text != recorded.replace("<_asyncio.", "<")
    ]
    if unlike:
        advice = "others are not affected; report this, please"
        yield WARNING, f"recorded otherwise than their repr: {', '.join(map(str, unlike))}", advice
    else:
        yield GOOD, f"objects of {len(SAMPLES)} known types are recorded as their repr", ""


def _run(command: list[str], folder: str) -> str:
    """Standard output. Raises SubprocessError."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTRACE_", "TRACE_"))}
    return subprocess.run(
        command, cwd=folder, env=kept, capture_output=True, text=True, timeout=TRIAL_SECONDS, check=True
    ).stdout


CHECKS: dict[str, Callable[[Machine], Findings]] = {
    "python": python,
    "libraries": libraries,
    "hooks": hooks,
    "clock": clock,
    "shared memory": shared_memory,
    "processes": processes,
    "limits": limits,
    "output": output,
    "recordings": recordings,
    "trial": trial,
    "values": values,
}


# ---- all of them ---------------------------------------------------------------------------------


def findings(name: str, machine: Machine) -> list[Finding]:
    """The findings of one check; an unexpected error is a problem."""
    found: list[Finding] = []
    try:
        found += [Finding(name, *each) for each in CHECKS[name](machine)]
    except UsageError as error:
        what, _, advice = str(error).partition("\n")
        found.append(Finding(name, PROBLEM, what, advice.strip()))
    except OSError as error:
        found.append(Finding(name, PROBLEM, str(error)))
    return found


def examine(database: str | None = None) -> list[Finding]:
    """All findings for a recording into this database (None: the configured one)."""
    try:
        chosen = settings({} if database is None else {"output": os.path.abspath(database)})
    except UsageError as error:
        what, _, advice = str(error).partition("\n")
        return [Finding("options", PROBLEM, what, advice.strip())]
    machine = Machine(chosen["output"], int(chosen["max_size"]), int(chosen["buffer_size"]))
    return [finding for name in CHECKS for finding in findings(name, machine)]


def is_well(found: list[Finding]) -> bool:
    """True: there is no problem, and a program can be recorded."""
    return all(finding.status != PROBLEM for finding in found)


def as_json(found: list[Finding]) -> str:
    return json.dumps({"well": is_well(found), "findings": [asdict(finding) for finding in found]}, indent=2)


def as_text(found: list[Finding]) -> str:
    """A line for each finding, and the advice below it."""
    lines = []
    for finding in found:
        lines.append(f"{finding.status:<7}  {finding.check:<13}  {finding.found}")
        if finding.advice:
            lines.append(f"{'':<24}→ {finding.advice}")
    problems = sum(finding.status == PROBLEM for finding in found)
    lines.append(
        f"\n{problems} problem{'s' * (problems != 1)}" if problems else "\nprograms can be recorded here"
    )
    return "\n".join(lines)
