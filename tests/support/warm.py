"""Commands that begin warm. Importing their modules takes the reader's commands longer than what
most tests ask of them, so one process imports them and forks: each child gets files, a folder and
an environment of its own, and is `pytrace read` or `pytrace print` from there on.

Called by reader.py, recording.py and handmade.py; run as a program it is that one process. Tests of
what a command imports, and those in another encoding, start an interpreter.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

_IMPORTS = (
    "pytracer.__main__",
    "pytracer._hook",
    "pytracer.reader.printing",
    "pytracer.reader.screen.app",
    "pytracer.reader.replay.screen.app",
    "pytracer.reader.subcommands",
)
# a command without what belongs to the recording side
ALONE = "import sys; from pytracer.reader.subcommands import main; sys.exit(main(sys.argv[1], sys.argv[2:]))"
_LONGEST = 100  # bytes of a message
# An interpreter looks at these variables once, as it starts.
_ASKED = ("LANG", "LC_", "PYTHON")
_USUAL = {("LANG", "C.UTF-8"), ("PYTHONIOENCODING", "utf-8")}  # or as they are here


def fits(command: Sequence[object], environment: Mapping[str, str]) -> bool:
    """Whether the command is one of the reader's, and an interpreter would start for it as the warm
    one did."""
    from pytracer.cli import WORDS

    if not _asked(environment).items() <= _asked(os.environ).items() | _USUAL:
        return False
    python, *words = (each for each in command if each != "-P")
    match words:
        case ["-m", "pytracer", word, *_]:
            known = word in WORDS
        case ["-c", code, *_]:
            known = code == ALONE
        case _:
            known = False
    return known and python == sys.executable and all(isinstance(each, str) for each in words)


def _asked(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in environment.items() if name.startswith(_ASKED)}


class Process:
    """A child that has begun; what it has of subprocess.Popen does the same."""

    def __init__(
        self, command: Sequence[str], files: Sequence[int], cwd: Path | str, environment: Mapping[str, str]
    ) -> None:
        """command: one that fits. files: what it has open, from 0 on. If 0 is a terminal, it gets a
        session there."""
        warm, _ = _warm(os.getpid(), *sorted(_asked(environment).items()))
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other, tempfile.TemporaryFile("w+") as request:  # of any size
            json.dump([list(command), os.fspath(cwd), dict(environment)], request)
            request.flush()
            socket.send_fds(warm, [b"."], [other.fileno(), request.fileno(), *files])
        self.pid = self._answer()
        self._ended = os.pidfd_open(self.pid)
        self.returncode: int | None = None

    def ends(self, seconds: float) -> bool:
        """Waits so long. Whether it has ended."""
        return bool(select.select([self._ended], [], [], seconds)[0])

    def poll(self) -> int | None:
        """The exit status, or the negative number of a signal; None: it still runs."""
        if self.returncode is None and self.ends(0):
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Waits until it has ended; the exit status."""
        if self.returncode is None:
            self._channel.send(b"wait")
            self.returncode = self._answer()
            self._channel.close()
            os.close(self._ended)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._ended, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _answer(self) -> int:
        return int(self._channel.recv(_LONGEST))


def run(
    command: Sequence[str],
    cwd: Path | str | None,
    env: Mapping[str, str],
    timeout: float,
    *,
    errors: str = "strict",
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run, with nothing to read, and what it writes as text in UTF-8. A command that
    does not fit is started as any other."""
    if not fits(command, env):
        return subprocess.run(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
            errors=errors, timeout=timeout, check=False,
        )  # fmt: skip
    with ExitStack() as stack:
        written = [
            stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors=errors))
            for _ in ("stdout", "stderr")
        ]
        nothing = stack.enter_context(open(os.devnull))
        process = Process(command, [file.fileno() for file in (nothing, *written)], cwd or os.getcwd(), env)
        if not process.ends(timeout):
            process.kill()
            process.wait()
            raise subprocess.TimeoutExpired(command, timeout)
        for file in written:
            file.seek(0)
        return subprocess.CompletedProcess(command, process.wait(), *(file.read() for file in written))


@functools.cache
def _warm(owner: int, *asked: tuple[str, str]) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The process that forks for this one, and the way to it. It ends when nobody has this end
    open."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with there:
        others = {name: text for name, text in os.environ.items() if not name.startswith(_ASKED)}
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(there.fileno())],
            stdin=subprocess.DEVNULL,
            env=others | dict(asked),
            pass_fds=[there.fileno()],
        )
    return here, process


# ---- in that process -----------------------------------------------------------------------------


def _serve(requests: socket.socket) -> None:
    """Forks for each request, until nobody has the other end open."""
    children: dict[socket.socket, int] = {}
    while True:
        ready, _, _ = select.select([requests, *children], [], [])
        for channel in {*ready} - {requests}:
            pid = children.pop(channel)
            if channel.recv(_LONGEST):
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                channel.send(b"%d" % status)
            channel.close()
        if requests in ready:
            _, given, _, _ = socket.recv_fds(requests, _LONGEST, 16)
            if not given:
                return
            pid = os.fork()
            if pid == 0:
                for each in (requests, *children):
                    each.detach()  # what has its number then is another file
                with open(given[1]) as file:
                    file.seek(0)
                    request = json.load(file)
                _end(_become(given[2:], *request))
            channel = socket.socket(fileno=given[0])
            for number in given[1:]:
                os.close(number)
            channel.send(b"%d" % pid)
            children[channel] = pid


def _become(files: list[int], command: list[str], cwd: str, environment: dict[str, str]) -> int:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(len(files), os.sysconf("SC_OPEN_MAX"))
    if os.isatty(0):
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    if ALONE in command:
        from pytracer.reader import subcommands

        sys.argv = ["-c", *command[command.index(ALONE) + 1 :]]
        return subcommands.main(sys.argv[1], sys.argv[2:])
    from pytracer.__main__ import main

    sys.argv = command[command.index("pytracer") :]
    return main()


def _end(status: int) -> None:
    """As an interpreter ends, but that it does not take each module apart."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    for module in _IMPORTS:
        importlib.import_module(module)
    gc.freeze()  # else each child looks for garbage among the modules
    _serve(socket.socket(fileno=int(sys.argv[1])))
