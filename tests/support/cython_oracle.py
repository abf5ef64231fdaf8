"""The calls of a program and of the functions compiled by Cython that it calls, by sys.monitoring
(3.11, 3.12: sys.setprofile) alone: what pytrace has to tell.

    python cython_oracle.py SCRIPT OUTPUT

Runs the script as __main__, and writes a JSON list of [kind, function, depth, line of a raise].
"""

import json
import runpy
import sys
from types import CodeType, FrameType
from typing import Any

MONITORING = sys.version_info >= (3, 13)
script, output = sys.argv[1:]
events: list[tuple[str, str, int, int]] = []
calls: list[CodeType] = []  # that are open


def own(code: CodeType) -> bool:
    return code.co_filename == script or code.co_filename.endswith(".pyx")


def note(kind: str, code: CodeType, line: int = 0) -> None:
    if not own(code):
        return
    if kind in ("call", "resume", "throw"):
        calls.append(code)
    elif not calls or calls[-1] is not code:  # Cython tells twice of the end of a cpdef function
        return
    events.append((kind, code.co_qualname, len(calls) - 1, line))  # type: ignore[attr-defined,unused-ignore]
    if kind in ("return", "yield", "exception"):
        calls.pop()


def listen() -> None:
    monitoring = sys.monitoring
    monitoring.use_tool_id(3, "oracle")

    def notes(kind: str) -> Any:
        return lambda code, *_: note(kind, code)

    def raises(code: CodeType, offset: int, _: object) -> None:
        note("raise", code, offset if code.co_filename.endswith(".pyx") else 0)

    callbacks = {
        "PY_START": notes("call"), "PY_RESUME": notes("resume"), "PY_THROW": notes("throw"), "RAISE": raises,
        "PY_RETURN": notes("return"), "PY_YIELD": notes("yield"), "PY_UNWIND": notes("exception"),
    }  # fmt: skip
    for name, callback in callbacks.items():
        monitoring.register_callback(3, getattr(monitoring.events, name), callback)
    monitoring.set_events(3, sum(getattr(monitoring.events, name) for name in callbacks))


def profile(frame: FrameType, event: str, _: object) -> None:
    if event in ("call", "return"):
        note(event, frame.f_code)


listen() if MONITORING else sys.setprofile(profile)
sys.argv = [script]
try:
    runpy.run_path(script, run_name="__main__")
finally:
    sys.monitoring.set_events(3, 0) if MONITORING else sys.setprofile(None)
with open(output, "w") as file:
    json.dump(events, file)
