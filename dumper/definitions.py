"""Definitions in a chunk, as rows of the tables that they belong to. Imported when the first chunk
of them is there, because it takes longer than everything else at the start."""

import json
import shlex
from typing import NamedTuple

from google.protobuf.message import DecodeError
from pytracer.trace_pb2 import Definitions

__all__ = ["DecodeError", "Rows", "decode"]


class Rows(NamedTuple):
    """Rows without run."""

    codes: list[tuple[int, str, str, str, int, str, int]]
    types: list[tuple[int, str]]
    threads: list[tuple[int, int, int, str]]
    processes: list[tuple[int, int, int | None, str]]


def decode(data: bytes, rows: Rows) -> None:
    """Adds what stands in some records of a chunk of definitions. Raises DecodeError."""
    for definition in Definitions.FromString(data).definition:
        match definition.WhichOneof("what"):
            case "code":
                code = definition.code
                arguments = json.dumps([_text(name) for name in code.argument], ensure_ascii=False)
                rows.codes.append(
                    (
                        code.number,
                        _text(code.module),
                        _text(code.func),
                        _text(code.file),
                        code.line,
                        arguments,
                        code.flags,
                    )
                )
            case "type":
                rows.types.append((definition.type.number, _text(definition.type.name)))
            case "thread":
                thread = definition.thread
                tid = thread.tid & (1 << 63) - 1  # SQL's integers end here
                rows.threads.append((thread.stream, thread.process, tid, _text(thread.name)))
            case "process":
                process = definition.process
                command = shlex.join(_text(word) for word in process.command.split(b"\0"))
                parent = process.parent - 1 if process.parent else None
                rows.processes.append((process.number, process.pid, parent, command))


def _text(data: bytes) -> str:
    """Lone surrogates, which SQL's texts cannot hold, become question marks."""
    return data.decode("utf-8", "replace")
