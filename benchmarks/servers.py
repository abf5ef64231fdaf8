"""Requests a second that a server answers, recorded over bare: asyncio streams, and gunicorn with
Flask.

Four servers of a kind run at once: bare, recorded with their own code in scope, the same with its
lines, and with everything. One client after the other loads each for a moment, again and again, so
that a machine that becomes slower or faster meets all of them; each moment is compared with the
bare one next to it.

Apart: the server on one processor, the client on the other, and its dumper on both. This is the
cost of recording for the server. Together: all on both, where the dumper takes its share from the
server and the client.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import DATABASE, INSIDE, Recording, read_recording
from benchmarks.processes import Failed, environment, reap
from benchmarks.report import Row, say, table
from benchmarks.scripts import OWN
from benchmarks.variants import BARE, PYTRACE, Options, available

GUNICORN = ("-m", "gunicorn", "--chdir", str(INSIDE), "--bind", "fd://{fd}", "--log-level", "warning")
WORKERS = ("--workers", "2")


@dataclass(frozen=True)
class Kind:
    name: str
    client: str  # see inside/client.py
    connections: int
    arguments: tuple[str, ...]  # {fd} is its socket
    needs: str = ""


KINDS = (
    Kind("asyncio echo", "echo", 8, (str(INSIDE / "echo_server.py"), "{fd}")),
    Kind("gunicorn and Flask", "http", 4, (*GUNICORN, *WORKERS, "flask_app:app"), "gunicorn"),
    Kind(
        "gunicorn and Flask, keep-alive",
        "keep-alive",
        4,
        (*GUNICORN, *WORKERS, "--worker-class", "gthread", "--threads", "2", "flask_app:app"),
        "gunicorn",
    ),
)
WITH_LINES = {**OWN, "PYTRACE_LINES": "own"}
SCOPES: Mapping[str, Mapping[str, str] | None] = {
    "bare": None,
    "own code": OWN,
    "own code with its lines": WITH_LINES,
    "everything": {},
}
MUST = {
    "own code": ("0.9", "0.97"),
    "own code with its lines": ("0.75", "0.9"),
    "everything": ("0.6", "0.75"),
}


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    port: int
    database: Path
    rates: list[float] = field(default_factory=list)  # requests a second
    costs: list[float] = field(default_factory=list)  # seconds of its processor time a request
    recording: Recording | None = None  # when it has ended

    def pids(self) -> list[int]:
        """Of itself and its workers."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]

    def pin(self, processors: set[int]) -> None:
        for pid in self.pids():
            for thread in os.listdir(f"/proc/{pid}/task"):
                os.sched_setaffinity(int(thread), processors)

    def used(self) -> float:
        """Seconds of processor time so far, workers included."""
        ticks = 0
        for pid in self.pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


def start(kind: Kind, scope: Mapping[str, str] | None, folder: Path) -> Server:
    """A server that accepts connections."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        command = (BARE if scope is None else PYTRACE).command
        fd, scratch = listener.fileno(), str(folder)
        words = [word.format(fd=fd, scratch=scratch) for word in (*command, *kind.arguments)]
        process = subprocess.Popen(
            words, cwd=folder, env=environment(**(scope or {})), pass_fds=[fd], stdin=subprocess.DEVNULL
        )
        return Server(process, listener.getsockname()[1], folder / DATABASE)


@contextmanager
def serving(kind: Kind) -> Iterator[dict[str, Server]]:
    """Servers by the names of SCOPES. Behind it they have ended, and their recordings are whole."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as scratch:
        servers: dict[str, Server] = {}
        try:
            for number, (name, scope) in enumerate(SCOPES.items()):
                folder = Path(scratch) / str(number)
                folder.mkdir()
                servers[name] = start(kind, scope, folder)
            yield servers
        finally:
            for server in servers.values():
                server.process.terminate()
            for server in servers.values():
                server.process.wait()
            reap()
        for server in servers.values():
            if server.database.exists():
                server.recording = read_recording(server.database, 0)


def load(server: Server, kind: Kind, seconds: float, processors: set[int]) -> None:
    """Adds one moment's rate and cost to a server. Raises Failed."""
    before = server.used()
    words = (server.port, kind.client, kind.connections, seconds)
    client = subprocess.run(
        [sys.executable, str(INSIDE / "client.py"), *map(str, words), *map(str, processors)],
        capture_output=True,
        text=True,
    )
    if client.returncode:
        raise Failed(f"{kind.name}: {client.stderr}")
    answered, took = map(float, client.stdout.split())
    server.rates.append(answered / took)
    server.costs.append((server.used() - before) / answered)


def rows(options: Options) -> list[Row]:
    if PYTRACE not in options.choose([PYTRACE]):
        return []
    rounds = options.rounds or (4 if options.quick else 15)
    seconds = 0.5 if options.quick else 1.0
    made, lines = [], []
    for kind in KINDS:
        if kind.needs and not available(kind.needs):
            continue
        ratios: dict[str, list[str]] = {name: [] for name in MUST}
        for where, (server_on, client_on) in places().items():
            say(f"   {kind.name}, {where}")
            with serving(kind) as servers:
                for server in servers.values():
                    # not counted: the server makes its threads now
                    load(server, kind, seconds, client_on)
                    server.rates.clear()
                    server.costs.clear()
                    server.pin(server_on)
                for _ in range(rounds):
                    for server in servers.values():
                        load(server, kind, seconds, client_on)
            bare = servers["bare"]
            for name, server in servers.items():
                rate, cost = over(server.rates, bare.rates), over(server.costs, bare.costs)
                events = server.recording
                lines.append(
                    (
                        f"{kind.name}, {where}",
                        name,
                        f"{statistics.median(server.rates):,.0f}",
                        f"{statistics.median(server.costs) * 1e6:.0f}",
                        f"{rate:.3f}",
                        f"{cost:.2f}",
                        f"{events.lost:,} of {events.events:,}" if events else "",
                    )
                )
                if name in ratios:
                    ratios[name].append(f"{rate:.2f} {where} ({1 / cost:.2f} by its processor time)")
        made += [
            Row(f"{kind.name}, requests a second over bare, {name} recorded", *MUST[name], "; ".join(of))
            for name, of in ratios.items()
        ]
    heads = ("server", "recorded", "requests/s", "its µs each", "over bare", "its time over bare", "lost")
    say(table(heads, lines))
    return made


def places() -> dict[str, tuple[set[int], set[int]]]:
    """Processors of the servers and of the clients. Dumpers may use all."""
    both = sorted(os.sched_getaffinity(0))
    return {"apart": ({both[0]}, {both[-1]}), "together": (set(both), set(both))}


def over(these: list[float], those: list[float]) -> float:
    """The median of what was measured next to each other."""
    return statistics.median(this / that for this, that in zip(these, those, strict=True))
