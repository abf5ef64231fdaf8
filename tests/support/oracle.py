"""A recorder in pure Python: what pytrace ought to record, from Python's own tracing interfaces.

    python oracle.py SCOPE OUTPUT SCRIPT [ARGS...]

runs SCRIPT and writes to OUTPUT, as JSON, the events of all code whose file lies below the folder
SCOPE: the same objects in the same order as `pytrace print --format json` has them, without times
and ids. From Python 3.12 on they come from sys.monitoring. On 3.11 they come from sys.settrace with
opcode events, which alone tell an exception that leaves a function from a return of None.

It runs by itself, apart from pytest, and shares no code with pytrace.
"""

import json
import opcode
import os
import runpy
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

MAX_TEXT = 200
MAX_ITEMS = 10
MAX_DEPTH = 3

BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("{", "}"),
    BaseException: ("(", ")"),
}


def type_name(kind: type) -> str:
    """`int`, `app.Order`: the qualified name, bare for built-in types."""
    module = type.__dict__["__module__"].__get__(kind)
    name = type.__dict__["__qualname__"].__get__(kind)
    return str(name) if module == "builtins" else f"{module}.{name}"


def show(value: Any, depth: int = 1, outer: tuple[int, ...] = ()) -> str:
    """The text of a value: repr of built-in types, bounded; no code of the program runs."""
    kind = type(value)
    if value is None or value is Ellipsis or value is NotImplemented or kind is bool:
        return repr(value)
    for base in (int, float, str, bytes, *BRACKETS):
        if issubclass(kind, base):
            if base in BRACKETS:
                return show_container(value, base, depth, outer)
            text = show_plain(value, base)
            return text if kind is base else f"{kind.__name__}({text})"
    if issubclass(kind, type):
        return f"<class {type_name(value)!r}>"
    if kind is types.FunctionType:
        return f"<function {value.__module__}.{value.__qualname__}>"
    if kind is types.MethodType:
        return f"<bound method {value.__func__.__module__}.{value.__func__.__qualname__}>"
    if kind is types.BuiltinFunctionType and value.__module__ == "builtins":
        return f"<built-in function {value.__name__}>"
    if kind is types.ModuleType:
        return f"<module {value.__name__!r}>"
    if kind in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType):
        return f"<{kind.__name__} object {value.__qualname__} at {id(value):#x}>"
    if kind is types.TracebackType:
        code = value.tb_frame.f_code
        place = f"file {code.co_filename!r}, line {value.tb_lineno}, code {code.co_name}"
        return f"<traceback at {id(value):#x}, {place}>"
    future: Any = getattr(sys.modules.get("_asyncio"), "Future", ())
    if future and issubclass(kind, future):
        return show_future(value, future.__dict__, depth, outer)
    return f"<{type_name(kind)} at {id(value):#x}>"


def show_future(value: Any, fields: dict[str, Any], depth: int, outer: tuple[int, ...]) -> str:
    """A future or task written in C: its state, a task's name, and the outcome."""
    state = fields["_state"].__get__(value).lower()
    text = f"<{type_name(type(value))} {state}"
    task: Any = sys.modules["_asyncio"].Task
    if isinstance(value, task):
        text += f" name={task.get_name(value)!r}"
    if state == "finished":
        name = "_result" if fields["_exception"].__get__(value) is None else "_exception"
        text += f" {name[1:]}={show(fields[name].__get__(value), depth + 1, (*outer, id(value)))}"
    return text + ">"


def show_plain(value: Any, base: Any) -> str:
    if base in (str, bytes):
        length = base.__len__(value)
        text = base.__repr__(base.__getitem__(value, slice(0, MAX_TEXT)))
        return text if length <= MAX_TEXT else text + "..."
    return f"{base.__repr__(value)}"


def show_container(value: Any, base: Any, depth: int, outer: tuple[int, ...]) -> str:
    """Items of containers deeper than MAX_DEPTH are left out; `outer` are the ids of those around
    it."""
    start, end = BRACKETS[base]
    if id(value) in outer:
        return f"{start}...{end}"
    if base is dict:
        items = list(dict.items(value))
    elif base is BaseException:
        items = BaseException.__dict__["args"].__get__(value)
    else:
        items = list(base.__iter__(value))
    seen = items[: MAX_ITEMS if depth <= MAX_DEPTH else 0]
    outer += (id(value),)
    if base is dict:
        shown = [f"{show(key, depth + 1, outer)}: {show(item, depth + 1, outer)}" for key, item in seen]
    else:
        shown = [show(item, depth + 1, outer) for item in seen]
    fields = next((vars(kind)["_fields"] for kind in type(value).__mro__ if "_fields" in vars(kind)), ())
    if base is tuple and fields:
        shown = [f"{name}={text}" for name, text in zip(fields, shown, strict=False)]
    if len(seen) < len(items):
        shown.append("...")
    elif base is tuple and fields:
        pass
    elif base is tuple and len(items) == 1:
        shown[0] += ","
    text = f"{start}{', '.join(shown)}{end}"
    if base in (set, frozenset) and not items:
        text = ""
    name = type(value).__name__
    if base is BaseException:
        return f"{name}{text}"
    if base is tuple and fields:
        return f"{name}{text}"
    exact = type(value) is base and text and base is not frozenset
    return text if exact else f"{name}({text})"


def argument_names(code: types.CodeType) -> list[str]:
    """In signature order; co_varnames has *args behind the keyword-only ones."""
    names = list(code.co_varnames)
    positional = code.co_argcount
    keyword = positional + code.co_kwonlyargcount
    star = keyword + bool(code.co_flags & 0x04)
    last = star + bool(code.co_flags & 0x08)
    return names[:positional] + names[keyword:star] + names[positional:keyword] + names[star:last]


def running_task() -> str:
    """The name of the task that runs in this thread; empty: none does."""
    asyncio = sys.modules.get("asyncio.tasks")
    try:
        task = asyncio and asyncio.current_task()
    except (AttributeError, RuntimeError):  # it is being imported; no loop runs
        return ""
    return task.get_name() if task else ""


class Recorder:
    """Turns what happens in code below the folder `scope` into `events`."""

    def __init__(self, scope: str) -> None:
        self.scope = os.path.join(os.path.abspath(scope), "")
        self.events: list[dict[str, Any]] = []
        self.open = threading.local()

    def covers(self, code: types.CodeType) -> bool:
        return code.co_filename.startswith(self.scope)

    def add(
        self, kind: str, frame: types.FrameType, args: list[tuple[str, object]], line: int | None = None
    ) -> None:
        depth = getattr(self.open, "depth", 0)
        if kind in ("return", "yield", "exception"):
            depth -= 1
        code = frame.f_code
        self.events.append(
            {
                "kind": kind,
                "module": frame.f_globals.get("__name__", ""),
                "func": code.co_qualname,
                "file": code.co_filename,
                "line": code.co_firstlineno if line is None else line,
                "depth": depth - 1 if kind == "raise" else depth,
                "thread": threading.current_thread().name,
                "task": running_task(),
                "args": [
                    {"name": name, "value": show(value), "type": type_name(type(value))}
                    for name, value in args
                ],
            }
        )
        self.open.depth = depth + (kind in ("call", "resume", "throw"))

    def call(self, frame: types.FrameType) -> None:
        names = argument_names(frame.f_code)
        values: list[tuple[str, object]] = []
        if names:
            variables = frame.f_locals
            values = [(name, variables[name]) for name in names]
            if sys.version_info[:2] == (3, 12):
                # a copy, which would keep the arguments alive for as long as the frame
                variables.clear()
            del variables
        self.add("call", frame, values)


class MonitoringRecorder(Recorder):
    """Python 3.12 and later."""

    TOOL = 3

    def start(self) -> None:
        monitoring = sys.monitoring
        event = monitoring.events
        monitoring.use_tool_id(self.TOOL, "oracle")
        callbacks: dict[int, Callable[..., None]] = {
            event.PY_START: self.on_start,
            event.PY_RESUME: self.on_resume,
            event.PY_RETURN: self.on_return,
            event.PY_YIELD: self.on_yield,
            event.PY_THROW: self.on_throw,
            event.PY_UNWIND: self.on_unwind,
            event.RAISE: self.on_raise,
        }
        for number, callback in callbacks.items():
            monitoring.register_callback(self.TOOL, number, callback)
        monitoring.set_events(self.TOOL, sum(callbacks))

    def stop(self) -> None:
        sys.monitoring.set_events(self.TOOL, 0)
        sys.monitoring.free_tool_id(self.TOOL)

    def on_start(self, code: types.CodeType, offset: int) -> None:
        if self.covers(code):
            self.call(sys._getframe(1))

    def on_resume(self, code: types.CodeType, offset: int) -> None:
        if self.covers(code):
            self.add("resume", sys._getframe(1), [])

    def on_return(self, code: types.CodeType, offset: int, value: object) -> None:
        if self.covers(code):
            self.add("return", sys._getframe(1), [("return value", value)])

    def on_yield(self, code: types.CodeType, offset: int, value: object) -> None:
        if self.covers(code):
            self.add("yield", sys._getframe(1), [("yield value", value)])

    def on_throw(self, code: types.CodeType, offset: int, exception: BaseException) -> None:
        if self.covers(code):
            self.add("throw", sys._getframe(1), [("exception", exception)])

    def on_unwind(self, code: types.CodeType, offset: int, exception: BaseException) -> None:
        if self.covers(code):
            self.add("exception", sys._getframe(1), [("exception", exception)])

    def on_raise(self, code: types.CodeType, offset: int, exception: BaseException) -> None:
        if self.covers(code):
            frame = sys._getframe(1)
            self.add("raise", frame, [("exception", exception)], frame.f_lineno)


class TraceRecorder(Recorder):
    """Python 3.11. For each open frame it knows the exception in flight, if there is one.

    A trace function is not told which exception leaves a function. That is the last one reported
    in the frame, or, after a re-raise, which is not reported, the one that is being handled.
    """

    def __init__(self, scope: str) -> None:
        super().__init__(scope)
        self.thrown: dict[types.FrameType, dict[str, Any]] = {}
        self.last: dict[types.FrameType, BaseException] = {}
        self.unwinding: set[types.FrameType] = set()

    def start(self) -> None:
        threading.settrace(self.on_call)
        sys.settrace(self.on_call)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)

    def on_call(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if not self.covers(frame.f_code):
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        name, number = self.instruction(frame)
        if name != "RESUME":
            # whose argument comes with the "exception" event that follows at once
            self.add("throw", frame, [("exception", None)])
            self.thrown[frame] = self.events[-1]
        elif number == 0:
            self.call(frame)
        else:
            self.add("resume", frame, [])
        return self.on_event

    def on_event(self, frame: types.FrameType, event: str, arg: Any) -> Any:
        if event == "opcode":
            self.unwinding.discard(frame)
            name, number = self.instruction(frame)
            if name == "RERAISE" or (name == "RAISE_VARARGS" and number == 0):
                # goes on at once, and as if from the instruction that raised first
                self.unwinding.add(frame)
                handled = sys.exc_info()[1]
                if handled is not None and (name, number) != ("RERAISE", 1):
                    self.last[frame] = handled
        elif event == "exception":
            exception = arg[1]
            if not isinstance(exception, BaseException):  # not normalized yet
                exception = arg[0](*(exception if isinstance(exception, tuple) else (exception,)))
            self.unwinding.add(frame)
            self.last[frame] = exception
            throw = self.thrown.pop(frame, None)
            if throw is not None:
                throw["args"] = [
                    {"name": "exception", "value": show(exception), "type": type_name(type(exception))}
                ]
            self.add("raise", frame, [("exception", exception)], frame.f_lineno)
        elif event == "return":
            name, _ = self.instruction(frame)
            unwinding = frame in self.unwinding
            self.unwinding.discard(frame)
            exception = self.last.pop(frame, None)
            if name == "YIELD_VALUE" and not unwinding:
                self.add("yield", frame, [("yield value", arg)])
            elif name == "RETURN_VALUE" and not unwinding:
                self.add("return", frame, [("return value", arg)])
            else:
                self.add("exception", frame, [("exception", exception)])
        return self.on_event

    @staticmethod
    def instruction(frame: types.FrameType) -> tuple[str, int]:
        code = frame.f_code.co_code
        return opcode.opname[code[frame.f_lasti]], code[frame.f_lasti + 1]


def main(scope: str, output: str, script: str, *args: str) -> None:
    script = os.path.abspath(script)
    sys.argv = [script, *args]
    sys.path[0] = os.path.dirname(script)
    recorder = MonitoringRecorder(scope) if sys.version_info >= (3, 12) else TraceRecorder(scope)
    recorder.start()
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        recorder.stop()
        with open(output, "w", encoding="utf-8") as file:
            json.dump(recorder.events, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
