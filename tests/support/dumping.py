"""Common parts of the dumper's tests: rings, processes that write to them, dumpers, and a look into
the database. As a script it is such a process (`Producer` starts it)."""

import atexit
import contextlib
import functools
import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import uuid
from pathlib import Path
from typing import Any

import beside

CSRC = Path(__file__).parents[2] / "csrc"
PATIENCE = 30.0  # s; no test waits as long as that unless something is broken
READY, REFUSED, FINISHED = 1, 2, 3  # enum dumper_state
SAVED = 4  # enum process_state

DECLARATIONS = """
struct ring { ...; };
struct stream { uint32_t id; uint64_t time; int32_t depth; uint64_t lost; ...; };
int ring_attach(struct ring *ring, const char *path, int role, int *lock_fd);
int ring_process_register(struct ring *ring, uint32_t parent);
void ring_process_exit(struct ring *ring, uint32_t process, int32_t exit_status);
int ring_process_state(const struct ring *ring, uint32_t process);
void ring_clock_calibrate(struct ring *ring);
void stream_open(struct stream *stream, struct ring *ring, uint32_t process, uint64_t tid, int kind);
void stream_close(struct stream *stream);
uint64_t ring_epoch_units(const struct ring *ring);
uint32_t write_calls(struct stream *stream, uint32_t first, uint32_t count, uint32_t code, uint64_t every);
bool write_record(struct stream *stream, const char *data, size_t size);
void scribble(struct ring *ring, uint32_t chunk);
"""
SOURCE = """
#include "ring/ring.h"
#include "format/event.h"

static bool write_lost(struct stream *stream)
{
    if (!stream->lost)
        return true;
    uint8_t *record = stream_reserve(stream, EVENT_HEAD_MAX);
    if (!record)
        return false;
    uint64_t lost = stream->lost;
    stream->lost = 0;
    uint8_t *p = event_put(event_open(record, EVENT_LOST, lost), EVENT_TIME, 0);
    stream_commit(stream, event_close(record, p));
    return true;
}

/* Calls with one argument each: first, first + 1, ...; `every` units apart. How many were stored. */
static uint64_t ring_epoch_units(const struct ring *ring);
uint32_t write_calls(struct stream *stream, uint32_t first, uint32_t count, uint32_t code,
                            uint64_t every)
{
    uint32_t stored = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *record = stream_reserve(stream, 2 * EVENT_HEAD_MAX);
        if (!record || !write_lost(stream))
            continue;
        record = stream_reserve(stream, 2 * EVENT_HEAD_MAX);
        if (!record)
            continue;
        uint8_t *p = event_put(event_open(record, EVENT_CALL, code), EVENT_TIME, every);
        uint8_t *value = value_open(p, EVENT_VALUE);
        p = value_close(value, value_put_integer(value, (int64_t)first + i));
        stream->time += every;
        stream->depth++;
        stream_commit(stream, event_close(record, p));
        stored++;
    }
    return stored;
}

static bool write_record(struct stream *stream, const char *data, size_t size)
{
    uint8_t *record = stream_reserve(stream, size);
    if (!record)
        return false;
    memcpy(record, data, size);
    stream_commit(stream, record + size);
    return true;
}

static void scribble(struct ring *ring, uint32_t chunk)
{
    memset(&ring->chunks[chunk], 0x5a, sizeof ring->chunks[chunk]);
}
"""


@functools.cache
def producer_library() -> Path:
    """A producer's part of the ring as an extension module (cffi), built once a session."""
    import cffi

    folder = Path(tempfile.mkdtemp(prefix="pytrace-producer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    builder = cffi.FFI()
    builder.cdef(DECLARATIONS)
    builder.set_source("_producer", SOURCE)
    with contextlib.redirect_stdout(None):
        builder.emit_c_code(str(folder / "_producer.c"))
    library = folder / f"_producer{sysconfig.get_config_var('EXT_SUFFIX')}"
    headers = [f"-I{CSRC}", f"-I{sysconfig.get_paths()['include']}"]
    command = [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-shared", "-fPIC", *headers]
    subprocess.run([*command, folder / "_producer.c", CSRC / "ring" / "ring.c", "-o", library], check=True)
    return library


def producer_module(library: str) -> Any:
    spec = importlib.util.spec_from_file_location("_producer", library)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wait_for = functools.partial(beside.wait_for, seconds=PATIENCE)


class Producer:
    """A process that writes to the ring what it is told."""

    def __init__(self, ring: "TestRing", parent: int = 0) -> None:
        self._child = subprocess.Popen(
            # -S: it does not join the recording by itself
            [sys.executable, "-S", __file__, producer_library(), ring.path, str(parent)],
            env=os.environ | {"PYTRACE_RING": str(ring.path), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._child.pid
        self.number = int(self._answer())

    def _answer(self) -> Any:
        assert self._child.stdout
        line = self._child.stdout.readline()
        assert line, "the producer has died"
        return json.loads(line)

    def _do(self, *command: Any) -> Any:
        assert self._child.stdin
        self._child.stdin.write(json.dumps(command) + "\n")
        self._child.stdin.flush()
        return self._answer()

    def calls(self, count: int, stream: str = "main", code: int = 1, every: int = 10) -> int:
        """Writes calls, numbered through in the stream, and returns how many there was room for."""
        return int(self._do("calls", stream, count, code, every))

    def define(self, *definitions: Any, stream: str = "definitions") -> None:
        """Writes `Definition` messages."""
        from messages import Definitions

        for definition in definitions:
            self.define_bytes(Definitions(definition=[definition]).SerializeToString(), stream)

    def define_bytes(self, data: bytes, stream: str = "definitions") -> None:
        """Writes whatever it is as a record of definitions."""
        assert self._do("record", stream, 1, data.hex())

    def noise(self, size: int, stream: str = "main") -> bool:
        """Writes one call whose argument is random bytes, which do not get smaller when compressed.
        Returns whether there was room."""
        from messages import Event, Events, Value

        event = Event(call=1, time=10, value=[Value(data=os.urandom(size // 2))])
        return bool(self._do("record", stream, 0, Events(event=[event]).SerializeToString().hex()))

    def seal(self, stream: str = "main") -> None:
        self._do("seal", stream)

    def lost(self, stream: str = "main") -> int:
        """Records dropped since the last that was stored."""
        return int(self._do("lost", stream))

    def scribble(self, chunk: int) -> None:
        """Overwrites a chunk's header."""
        self._do("scribble", chunk)

    def exit(self, status: int = 0) -> None:
        """Seals its streams, says its exit status, and waits until it is saved."""
        self._do("exit", status)
        self._do("wait saved")
        self.close()

    def say_exit(self, status: int = 0) -> None:
        """Like exit, without the waiting."""
        self._do("exit", status)

    def close(self) -> None:
        """Ends the process. It says nothing about that to the ring."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        self._child.wait(PATIENCE)
        self._child.stdout.close()

    def replace(self) -> None:
        """Lets the process replace itself by a new one (exec)."""
        self.number = int(self._do("replace"))

    def register(self, count: int) -> int:
        """Registers that many times more, and returns how often there was a place."""
        return int(self._do("register", count))

    def become(self, *command: str) -> None:
        """Lets the process become another program."""
        assert self._child.stdin
        self._child.stdin.write(json.dumps(["become", *command]) + "\n")
        self._child.stdin.flush()

    def kill(self, signal: int = 9) -> None:
        self._child.send_signal(signal)
        self._child.wait(PATIENCE)

    def end_with(self, status: int) -> None:
        """Ends it with os._exit. It stays a zombie."""
        assert self._child.stdin
        self._child.stdin.write(json.dumps(["end with", status]) + "\n")
        self._child.stdin.flush()

    def reap(self) -> None:
        self._child.wait(PATIENCE)


class TestRing:
    """A ring with its settings."""

    __test__ = False

    def __init__(self, folder: Path, size: int = 4 << 20, **settings: object) -> None:
        from pytracer._core import ffi, lib

        self.folder = folder
        self.database = folder / "traces.sqlite"
        self.path = folder / f"ring-{uuid.uuid4()}"
        values: dict[str, object] = {
            "recording": self.path.name,
            "output": self.database,
            "max_size": 1 << 30,
            "max_traces": 0,
            "command": "pytrace 'a script.py'",
            "directory": folder,
            "python": "3.13.0",
            "quiet": 0,
            "pid": os.getpid(),
        }
        text = b"".join(f"{name}={value}\0".encode() for name, value in (values | settings).items())
        error = lib.ring_create(os.fsencode(self.path), size, text, len(text))
        assert error == 0, os.strerror(-error)
        self._lib = lib
        self._ring = ffi.new("struct ring *")
        lock = ffi.new("int *")
        assert lib.ring_attach(self._ring, os.fsencode(self.path), lib.RING_READER, lock) == 0

    def said(self) -> int:
        return int(self._lib.ring_dumper_state(self._ring))

    def message(self) -> str:
        from pytracer._core import ffi

        return str(ffi.string(self._lib.ring_dumper_message(self._ring)).decode())

    def has_dumper(self) -> bool:
        return bool(self._lib.ring_has_dumper(os.fsencode(self.path)) == 1)

    def passes(self) -> int:
        return int(self._lib.ring_dumper_passes(self._ring))

    def trouble(self) -> str:
        """Why the dumper cannot save anything now; empty if it can."""
        from pytracer._core import ffi

        why = ffi.new("char[]", self._lib.RING_TROUBLE_SIZE)
        self._lib.ring_dumper_trouble(self._ring, why)
        return bytes(ffi.string(why)).decode()

    def process_state(self, number: int) -> int:
        return int(self._lib.ring_process_state(self._ring, number))

    def chunks_in_use(self) -> int:
        from pytracer._core import ffi

        views = ffi.new("struct chunk_view[]", self._ring.chunk_count)
        return int(self._lib.ring_look_all(self._ring, views, ffi.new("uint32_t *")))


class Dumper:
    """A dumper process."""

    # with bounds changed, for tests that come to them
    IMPATIENT = """
import sys
from pytracer.dumper import pending, pump
from pytracer.dumper.__main__ import main
pump.GIVE_UP_SECONDS = pending.YOUNG_SECONDS = 0.5
sys.exit(main(sys.argv[1]))
"""

    def __init__(
        self, ring: TestRing, die_at: str = "", wait: bool = True, script: str = "", **options: Any
    ) -> None:
        self.ring = ring
        environment = os.environ | ({"PYTRACE_DUMPER_DIE_AT": die_at} if die_at else {})
        command = [
            sys.executable,
            "-I",
            *(["-c", script] if script else ["-m", "pytracer.dumper"]),
            str(ring.path),
        ]
        self.process = subprocess.Popen(
            command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options
        )
        if wait:
            wait_for(lambda: ring.said() != 0 or self.process.poll() is not None, "the dumper's word")

    def wait(self) -> int:
        """Its exit status."""
        _, errors = self.process.communicate(timeout=PATIENCE)
        assert not errors, errors.decode()
        return self.process.returncode

    def wait_free(self, left: int = 0) -> None:
        """Waits until no more than so many chunks are in use."""
        wait_for(lambda: self.ring.chunks_in_use() <= left, "the dumper")

    def wait_trouble(self) -> None:
        """Waits until the dumper has tried to save something, and could not."""
        wait_for(lambda: bool(self.ring.trouble()), "trouble with the database")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)


def rows(database: Path, query: str, *values: Any) -> list[Any]:
    """All rows of a query, read as any other program would."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=10)
    try:
        return connection.execute(query, values).fetchall()
    finally:
        connection.close()


def decompress(data: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.decompress(data)


def stored_calls(database: Path, run: int = 1) -> dict[int, list[int]]:
    """The numbers that `Producer.calls` wrote, by stream, in order."""
    from messages import Events

    calls: dict[int, list[int]] = {}
    query = "SELECT stream, size, count, data FROM segment WHERE run = ? ORDER BY stream, sequence"
    for stream, size, count, data in rows(database, query, run):
        body = decompress(data)
        events = Events.FromString(body).event
        assert (len(body), len(events)) == (size, count)
        numbers = [event.value[0].integer for event in events if event.WhichOneof("what") == "call"]
        calls.setdefault(stream, []).extend(numbers)
    return calls


def produce(library: str, path: str, parent: int) -> None:
    """The process that a Producer has started: does what it reads, line by line."""
    module = producer_module(library)
    ffi, lib = module.ffi, module.lib
    ring = ffi.new("struct ring *")
    assert lib.ring_attach(ring, path.encode(), 0, ffi.new("int *")) == 0
    lib.ring_clock_calibrate(ring)
    process = lib.ring_process_register(ring, parent)
    streams: dict[str, Any] = {}
    written: dict[str, int] = {}

    def stream_named(name: str, kind: int) -> Any:
        if name not in streams:
            streams[name] = ffi.new("struct stream *")
            lib.stream_open(streams[name], ring, process, os.getpid(), kind)
            streams[name].time = lib.ring_epoch_units(ring)
        return streams[name]

    def do(command: str, *arguments: Any) -> Any:
        match command, *arguments:
            case "calls", name, count, code, every:
                first = written.get(name, 0)
                written[name] = first + count
                return lib.write_calls(stream_named(name, 0), first, count, code, every)
            case "record", name, kind, record:
                data = bytes.fromhex(record)
                stream_named(name, kind).time += 10
                return lib.write_record(streams[name], data, len(data))
            case "seal", name:
                lib.stream_close(streams[name])
            case "lost", name:
                return streams[name].lost
            case "scribble", chunk:
                lib.scribble(ring, chunk)
            case "exit", status:
                for stream in streams.values():
                    lib.stream_close(stream)
                lib.ring_process_exit(ring, process, status)
            case "register", count:
                registered = [lib.ring_process_register(ring, process + 1) for _ in range(count)]
                return sum(number >= 0 for number in registered)
            case ("wait saved",):
                wait_for(lambda: lib.ring_process_state(ring, process) == SAVED, "the dumper to save all")
            case ("replace",):
                os.execv(sys.executable, [sys.executable, "-S", *sys.argv])
            case "become", *program:
                os.execvp(program[0], program)
            case "end with", status:
                os._exit(status)
            case _:
                raise AssertionError(command)

    print(json.dumps(process), flush=True)
    for line in sys.stdin:
        print(json.dumps(do(*json.loads(line))), flush=True)


if __name__ == "__main__":
    produce(sys.argv[1], sys.argv[2], int(sys.argv[3]))
