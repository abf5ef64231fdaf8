"""The Debug Adapter Protocol's messages: `Content-Length: N`, an empty line, N bytes of JSON.

A thread reads them ahead, so that a long query sees that the client wants it to end. What a client
sends may be nonsense: sizes are bounded, and each field is looked at before it is used.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections import deque
from typing import Any, BinaryIO, NamedTuple

_LARGEST = 16 << 20  # bytes of a message
_HEADER = 4 << 10  # bytes of a header
_WAITING = 256  # messages that are read ahead
_BLOCK = 64 << 10  # bytes
_MOST_TEXT = 1 << 20  # characters of a field
_MOST_ITEMS = 10_000  # of a list


class RequestError(Exception):
    """A request that cannot be answered; the message is for a person."""


class Interrupted(Exception):
    """The client does not want the answer any more; raised in the middle of a query."""


class _Broken(Exception):
    """Where the next message begins is not known."""


class Received(NamedTuple):
    """A message; problem: why its body is none."""

    body: dict[str, Any]
    problem: str = ""


class Channel:
    """Messages to the client and from it. problem: why no more can be read; "": they have ended."""

    def __init__(self, descriptor: int, out: BinaryIO) -> None:
        self.problem = ""
        self._descriptor, self._out = descriptor, out
        self._sent = 0
        self._received: deque[Received | None] = deque()  # None: there is no more
        self._changed = threading.Condition()
        threading.Thread(target=self._read, name="pytrace-dap", daemon=True).start()

    def receive(self) -> Received | None:
        """Waits for the next message. None: there are no more."""
        with self._changed:
            while not self._received:
                self._changed.wait()
            if self._received[0] is None:
                return None
            self._changed.notify_all()
            return self._received.popleft()

    def count(self) -> int:
        """The number of messages that wait; the end counts, too."""
        return len(self._received)

    def waiting(self) -> list[Received | None]:
        """The messages that wait; None: their end."""
        with self._changed:
            return list(self._received)

    def is_left(self) -> bool:
        """Whether nobody reads what is sent."""
        poll = select.poll()
        poll.register(self._out.fileno(), 0)
        return any(state & (select.POLLERR | select.POLLHUP) for _, state in poll.poll(0))

    def send(self, message: dict[str, Any]) -> None:
        """Sends a message, with the next number. Raises OSError."""
        self._sent += 1
        data = json.dumps({"seq": self._sent, **message}, separators=(",", ":")).encode("ascii")
        try:
            self._out.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
            self._out.flush()
        except OSError as error:
            error.filename = "the client cannot be written to"
            raise

    # ---- the thread that reads ----

    def _read(self) -> None:
        data = b""
        try:
            while True:
                size, data = self._header(data)
                blocks, missing = [data], size - len(data)
                while missing > 0:
                    blocks.append(self._more("inside a message"))
                    missing -= len(blocks[-1])
                data = b"".join(blocks)
                self._put(_parsed(data[:size]))
                data = data[size:]
        except EOFError:
            pass
        except (_Broken, OSError) as error:
            self.problem = str(error)
        self._put(None)

    def _header(self, data: bytes) -> tuple[int, bytes]:
        """The size of the next message, and what has been read behind its header."""
        while (end := data.find(b"\r\n\r\n")) < 0:
            if len(data) > _HEADER:
                raise _Broken(f"no header of a message ends within {_HEADER} bytes")
            more = os.read(self._descriptor, _BLOCK)
            if not more:
                if data.strip():
                    raise _Broken("the client's messages end inside a header")
                raise EOFError
            data += more
        for line in data[:end].split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                digits = value.strip()
                if not digits.isdigit() or len(digits) > 20 or int(digits) > _LARGEST:
                    shown = digits[:20].decode("ascii", "backslashreplace")
                    raise _Broken(f"a message of {shown} bytes: at most {_LARGEST} are read")
                return int(digits), data[end + 4 :]
        raise _Broken("a header without Content-Length")

    def _more(self, where: str) -> bytes:
        block = os.read(self._descriptor, _BLOCK)
        if not block:
            raise _Broken(f"the client's messages end {where}")
        return block

    def _put(self, message: Received | None) -> None:
        with self._changed:
            while len(self._received) >= _WAITING and message is not None:
                self._changed.wait()
            self._received.append(message)
            self._changed.notify_all()


def _parsed(data: bytes) -> Received:
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        return Received({}, f"the message is not JSON: {error}")
    if not isinstance(body, dict):
        return Received({}, "a message is an object")
    return Received(body)


class Fields:
    """The arguments of a request, or a part of them. Each method takes the name of a field, and
    raises RequestError if it has another type; or if it is missing, and there is no default."""

    def __init__(self, values: dict[str, Any], where: str) -> None:
        self._values, self._where = values, where

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > _MOST_TEXT or not _is_text(value):
            raise RequestError(f"{self._where}: {name} has to be a text")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        value = self._get(name, default)
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 1 << 62:
            raise RequestError(f"{self._where}: {name} has to be an integer")
        return value

    def is_number(self, name: str) -> bool:
        return isinstance(self._values.get(name), int)

    def flag(self, name: str, default: bool) -> bool:
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise RequestError(f"{self._where}: {name} has to be true or false")
        return value

    def part(self, name: str) -> Fields:
        value = self._get(name, None)
        if not isinstance(value, dict):
            raise RequestError(f"{self._where}: {name} has to be an object")
        return Fields(value, f"{self._where}, {name}")

    def parts(self, name: str) -> list[Fields]:
        """Objects; none if the field is missing."""
        found = self._list(name)
        if not all(isinstance(each, dict) for each in found):
            raise RequestError(f"{self._where}: {name} has to be a list of objects")
        return [Fields(each, f"{self._where}, {name}[{index}]") for index, each in enumerate(found)]

    def texts(self, name: str) -> list[str]:
        """Texts; none if the field is missing."""
        found = self._list(name)
        if not all(isinstance(each, str) and _is_text(each) for each in found):
            raise RequestError(f"{self._where}: {name} has to be a list of texts")
        return found

    def _list(self, name: str) -> list[Any]:
        value = self._get(name, [])
        if not isinstance(value, list) or len(value) > _MOST_ITEMS:
            raise RequestError(f"{self._where}: {name} has to be a list, of at most {_MOST_ITEMS} items")
        return value

    def _get(self, name: str, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            value = default
        if value is None:
            raise RequestError(f"{self._where}: {name} is missing")
        return value


def _is_text(text: str) -> bool:
    """Whether it can be asked for in SQL."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a pair
        return False
    return "\0" not in text
