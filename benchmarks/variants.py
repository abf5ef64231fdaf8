"""The ways to run a workload that are compared: bare, traced by nothing, by pytrace, by its
peers."""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.processes import environment
from benchmarks.report import say


@dataclass(frozen=True)
class Variant:
    """One way to run a workload. `{scratch}` in `command` and `environment` is a fresh folder."""

    name: str
    tracer: str = ""  # switched on inside the process: see inside/peers.py
    module: str = ""  # what must be importable for it
    command: tuple[str, ...] = (sys.executable,)
    environment: Mapping[str, str] = field(default_factory=dict)
    fewer: int = 1  # of a slow tracer: so many times fewer loops
    limit: int = 0  # seconds that a measurement may take; 0: no limit


def _pytrace() -> tuple[str, ...]:
    """The `pytrace` installed for the running Python, else the module."""
    script = Path(sys.executable).with_name("pytrace")
    start = (str(script),) if script.exists() else (sys.executable, "-m", "pytracer")
    return (*start, "-q", "-o", "{scratch}/traces.sqlite")


BARE = Variant("bare")
PYTRACE = Variant("pytrace", module="pytracer._hook", command=_pytrace())
ATTRIBUTES = 8
WITH_ATTRIBUTES = Variant(
    f"pytrace --attributes {ATTRIBUTES}",
    module="pytracer._hook",
    command=(*_pytrace(), "--attributes", str(ATTRIBUTES)),
)
WITH_LINES = Variant("pytrace --lines all", module="pytracer._hook", command=(*_pytrace(), "--lines", "all"))
OWN_LINES = Variant("pytrace --lines", module="pytracer._hook", command=(*_pytrace(), "--lines"))
WITH_C_CALLS = Variant(
    "pytrace --c-calls all", module="pytracer._hook", command=(*_pytrace(), "--c-calls", "all")
)
MIXED = Variant(
    "pytrace --c-calls all --native --kernel",
    module="pytracer._hook",
    command=(*_pytrace(), "--c-calls", "all", "--native", "--kernel"),
)
OUT_OF_SCOPE = Variant(
    "pytrace, out of scope",
    module="pytracer._hook",
    command=_pytrace(),
    environment={"TRACE_MODULES": "{scratch}"},
)
if sys.version_info >= (3, 12):
    NOTHING = Variant("do-nothing", "noop:vectorcall")
    NOTHING_ALL = Variant("do-nothing, all events", "noop:all")
    NOTHING_LINES = Variant("do-nothing, lines", "noop:lines")
    NOTHING_CALLS = Variant("do-nothing, calls", "noop:calls")
    NOTHINGS = (NOTHING, NOTHING_ALL, Variant("do-nothing, METH_FASTCALL", "noop:fastcall"))
else:
    NOTHING = NOTHING_ALL = NOTHING_LINES = NOTHING_CALLS = Variant("do-nothing", "noop:profile")
    NOTHINGS = (NOTHING,)
TRACE0 = Variant("trace0", "trace0", "trace0")
VIZTRACER = Variant("VizTracer", "viztracer", "viztracer", fewer=2)
VIZTRACER_VALUES = Variant("VizTracer, values", "viztracer:values", "viztracer", fewer=20, limit=60)
PYTTD = Variant("py-tt-debug", "pyttd", "pyttd_native", fewer=20, limit=60)
CPROFILE = Variant("cProfile", "cProfile", "cProfile", fewer=2)
PEERS = (TRACE0, VIZTRACER, VIZTRACER_VALUES, CPROFILE)


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    quick: bool = False
    rounds: int = 0  # processes a variant; 0: the row's own number
    only: Sequence[str] = ()  # names of variants; none: all
    also: Sequence[Variant] = ()
    programs: Sequence[str] = ()  # of the ten; none: all
    minutes: float = 0  # that recording is left on; 0: the row's own number
    databases: str = ""  # folder of the recordings that are asked; empty: in the cache

    def choose(self, variants: Iterable[Variant]) -> list[Variant]:
        """The `variants` that were asked for and can run here."""
        chosen = [v for v in variants if not self.only or v.name in self.only]
        return [v for v in chosen if not v.module or available(v.module)] + list(self.also)


def from_text(text: str) -> Variant:
    """A variant from the command line: NAME=COMMAND, to be run as COMMAND SCRIPT SPEC."""
    name, _, command = text.partition("=")
    return Variant(name, command=tuple(shlex.split(command)))


_available: dict[str, bool] = {}


def available(module: str) -> bool:
    """Whether a measured process can import `module`."""
    if module not in _available:
        with tempfile.TemporaryDirectory() as folder:
            status = subprocess.run(
                [sys.executable, "-c", f"import {module}"],
                cwd=folder,
                env=environment(),
                stderr=subprocess.DEVNULL,
            ).returncode
        _available[module] = not status
        if status:
            say(f"not installed, left out: {module.split('.')[0]}")
    return _available[module]
