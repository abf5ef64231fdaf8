"""A client of `pytrace replay DB --dap`: a process of its own, spoken to over pipes.

Each message that comes is held against the protocol's own JSON schema, Microsoft's file in
tests/data.
"""

import json
import os
import select
import subprocess
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from recording import PYTRACE, TIMEOUT, environment

SCHEMA = Path(__file__).parents[1] / "data" / "debugAdapterProtocol.json"


@cache
def validator(definition: str) -> jsonschema.Draft4Validator:
    schema = json.loads(SCHEMA.read_text())
    assert definition in schema["definitions"], f"the protocol has no {definition}"
    return jsonschema.Draft4Validator(
        {"$ref": f"#/definitions/{definition}", "definitions": schema["definitions"]}
    )


def definition_of(message: dict[str, Any]) -> str:
    """The name of the schema's part for a message."""
    if message["type"] == "event":
        return message["event"][0].upper() + message["event"][1:] + "Event"
    if not message["success"]:
        return "ErrorResponse"
    return message["command"][0].upper() + message["command"][1:] + "Response"


def framed(message: object) -> bytes:
    data = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(data), data)


class Refused(Exception):
    """A response without success."""


class Client:
    """Messages are numbered as they are sent; those that come are kept in `messages`."""

    def __init__(
        self, database: Path, *options: str, command: list[str] | None = None, **changes: str
    ) -> None:
        """command: another one that starts an adapter; changes: to the environment."""
        self.process = subprocess.Popen(
            command or [*PYTRACE, "replay", str(database), "--dap", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**changes),
            cwd=database.parent,
        )
        self.messages: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self._data = b""
        self._seq = 0

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()

    # ---- messages ----

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, command: str, **arguments: Any) -> int:
        self._seq += 1
        self.write(framed({"seq": self._seq, "type": "request", "command": command, "arguments": arguments}))
        return self._seq

    def receive(self) -> dict[str, Any] | None:
        """The next message; None: there are no more."""
        while b"\r\n\r\n" not in self._data:
            if not self._more():
                assert not self._data, self._data
                return None
        header, _, self._data = self._data.partition(b"\r\n\r\n")
        assert header.startswith(b"Content-Length: "), header
        size = int(header.removeprefix(b"Content-Length: "))
        while len(self._data) < size:
            assert self._more(), "the output ends inside a message"
        message: dict[str, Any] = json.loads(self._data[:size])
        self._data = self._data[size:]
        validator(definition_of(message)).validate(message)
        assert message["seq"] == len(self.messages) + 1
        self.messages.append(message)
        return message

    def _more(self) -> bool:
        assert self.process.stdout
        assert select.select([self.process.stdout], [], [], TIMEOUT)[0], "no message comes"
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        self._data += data
        return bool(data)

    def response(self, seq: int) -> dict[str, Any]:
        """The response to a request; events that come before it are kept."""
        while True:
            message = self.receive()
            assert message is not None, f"it ended: {self.ended()}"
            if message["type"] == "response" and message["request_seq"] == seq:
                return message
            if message["type"] == "event":
                self.events.append(message)

    def request(self, command: str, **arguments: Any) -> dict[str, Any]:
        """The body of the response. Raises Refused."""
        response = self.response(self.send(command, **arguments))
        if not response["success"]:
            raise Refused(response["message"])
        body: dict[str, Any] = response.get("body", {})
        return body

    def event(self, name: str) -> dict[str, Any]:
        """The body of the next event of this name; others are kept."""
        for kept in self.events:
            if kept["event"] == name:
                self.events.remove(kept)
                return kept.get("body", {})
        while True:
            message = self.receive()
            assert message is not None, f"it ended: {self.ended()}"
            if message["type"] == "event" and message["event"] == name:
                body: dict[str, Any] = message.get("body", {})
                return body
            if message["type"] == "event":
                self.events.append(message)

    def outputs(self) -> list[str]:
        """The texts that have come since the last look."""
        found = [each["body"]["output"] for each in self.events if each["event"] == "output"]
        self.events = [each for each in self.events if each["event"] != "output"]
        return found

    def ended(self) -> tuple[int, str]:
        """Waits for the end of the process: its exit status, and what it wrote to stderr."""
        assert self.process.stdin
        assert self.process.stderr
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        deadline = time.monotonic() + TIMEOUT
        while self.receive() is not None:
            assert time.monotonic() < deadline
        errors = self.process.stderr.read().decode()
        return self.process.wait(TIMEOUT), errors

    # ---- a session ----

    def begin(self, **launch: Any) -> dict[str, Any]:
        """From initialize to the first stop."""
        self.open(**launch)
        return self.configured()

    def open(self, **launch: Any) -> None:
        self.request("initialize", adapterID="pytrace", linesStartAt1=True, pathFormat="path")
        self.request("launch", **launch)
        self.event("initialized")

    def configured(self) -> dict[str, Any]:
        self.request("configurationDone")
        return self.event("stopped")

    def go(self, command: str, **arguments: Any) -> dict[str, Any]:
        """A way to the next stop, of the thread of the last stop."""
        if "threadId" not in arguments:
            arguments["threadId"] = self.thread
        self.request(command, **arguments)
        return self.event("stopped")

    @property
    def thread(self) -> int:
        stops = [each["body"] for each in self.messages if each.get("event") == "stopped"]
        thread: int = stops[-1]["threadId"]
        return thread

    def frames(self, **arguments: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.request("stackTrace", **{"threadId": self.thread} | arguments)[
            "stackFrames"
        ]
        return found

    def place(self) -> tuple[str, int]:
        """The innermost function, and its line."""
        frame = self.frames(levels=1)[0]
        return frame["name"], frame["line"]

    def scope(self, name: str, frame: dict[str, Any] | None = None) -> dict[str, str]:
        """Variables of a scope by name."""
        frame = frame or self.frames(levels=1)[0]
        for each in self.request("scopes", frameId=frame["id"])["scopes"]:
            if each["name"] == name:
                found = self.request("variables", variablesReference=each["variablesReference"])
                return {variable["name"]: variable["value"] for variable in found["variables"]}
        return {}

    def set_lines(self, path: Path, *wanted: int | dict[str, Any]) -> list[dict[str, Any]]:
        breakpoints = [{"line": each} if isinstance(each, int) else each for each in wanted]
        found: list[dict[str, Any]] = self.request(
            "setBreakpoints", source={"path": str(path)}, breakpoints=breakpoints
        )["breakpoints"]
        return found
