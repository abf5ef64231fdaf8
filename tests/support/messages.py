"""The messages of proto/trace.proto as Google's protobuf makes them."""

import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

PROTO = Path(__file__).parents[2] / "proto"

with tempfile.TemporaryDirectory(prefix="pytrace-messages-") as _folder:
    _status = protoc.main(["protoc", f"-I{PROTO}", f"--python_out={_folder}", str(PROTO / "trace.proto")])
    assert _status == 0
    sys.path.insert(0, _folder)
    try:
        import trace_pb2
        from trace_pb2 import Code, Definition, Definitions, Event, Events, Process, Thread, Type, Value
    finally:
        sys.path.remove(_folder)

__all__ = [
    "Code", "Definition", "Definitions", "Event", "Events", "Process", "Thread", "Type", "Value", "trace_pb2",
]  # fmt: skip
