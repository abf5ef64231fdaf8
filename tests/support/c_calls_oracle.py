"""The calls of a program and of the functions in C that it calls, by sys.monitoring (3.11:
sys.setprofile) alone: what `pytrace --c-calls` has to tell.

    python c_calls_oracle.py SCRIPT OUTPUT

Runs the script as __main__, and writes a JSON list of [kind, module, function, depth] of the
script's own functions, and of the functions in C that they call.
"""

import json
import sys
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

METHOD, SLOT, BOUND_SLOT = type(list.append), type(int.__add__), type((1).__add__)


def is_python(cls: type) -> bool:
    return "__module__" in vars(cls) and cls.__module__ == "__main__"


def of_type(cls: type, name: str) -> tuple[str, str]:
    return cls.__module__, f"{cls.__qualname__}.{name}"


def name_of(called: Any) -> tuple[str, str] | None:
    """Module and name of a function in C; None: it is none."""
    if isinstance(called, MethodType):
        return name_of(called.__func__)
    if isinstance(called, FunctionType):
        return None
    if isinstance(called, BuiltinFunctionType):
        owner = called.__self__
        if owner is None or isinstance(owner, ModuleType) or called.__module__ is not None:
            return str(called.__module__), called.__name__
        for kind in (*(owner.__mro__ if isinstance(owner, type) else ()), *type(owner).__mro__):
            if called.__name__ in vars(kind) and not is_python(kind):
                return of_type(kind, called.__name__)
    if isinstance(called, METHOD | SLOT):
        return of_type(called.__objclass__, called.__name__)
    if isinstance(called, BOUND_SLOT):
        return of_type(called.__objclass__, called.__name__)
    if isinstance(called, type):
        return (
            None if is_python(called) or is_python(type(called)) else (called.__module__, called.__qualname__)
        )
    kinds = [kind for kind in type(called).__mro__ if "__call__" in vars(kind)]
    if not kinds or is_python(kinds[0]):
        return None
    base = next(kind for kind in type(called).__mro__ if not is_python(kind))
    return of_type(base, "__call__")


class Oracle:
    def __init__(self, path: str) -> None:
        self.path = path
        self.events: list[tuple[str, str, str, int]] = []
        self._open: list[tuple[str, str, str]] = []  # kind, module, function

    def enter(self, kind: str, module: str, func: str) -> None:
        self.events.append(("call", module, func, len(self._open)))
        self._open.append((kind, module, func))

    def leave(self, kind: str, outcome: str) -> None:
        if self._open and self._open[-1][0] == kind:
            _, module, func = self._open.pop()
            self.events.append((outcome, module, func, len(self._open)))

    # -- sys.monitoring --

    def listen(self) -> None:
        monitoring = sys.monitoring
        events = monitoring.events
        monitoring.use_tool_id(3, "oracle")

        def own(code: CodeType) -> bool:
            return code.co_filename == self.path

        def begins(kind: str) -> Any:
            def begin(code: CodeType, *_: object) -> None:
                if own(code):
                    self.enter("python", "__main__", code.co_qualname)
                    self.events[-1] = (kind, *self.events[-1][1:])

            return begin

        def ends(outcome: str) -> Any:
            def end(code: CodeType, *_: object) -> None:
                if own(code):
                    self.leave("python", outcome)

            return end

        def call(code: CodeType, offset: int, called: Any, argument: Any) -> None:
            name = name_of(called) if own(code) else None
            if name is not None and not (isinstance(called, MethodType) and code.co_code[offset] != CALL):
                self.enter("c", *name)
            elif own(code):
                self._python.append(called)

        def c_end(outcome: str) -> Any:
            def end(code: CodeType, offset: int, called: Any, argument: Any) -> None:
                if own(code) and name_of(called) is not None:
                    self.leave("c", outcome)

            return end

        self._python: list[Any] = []
        import dis

        CALL = dis.opmap["CALL"]
        for name, callback in {
            "PY_START": begins("call"), "PY_RESUME": begins("resume"), "PY_THROW": begins("throw"),
            "PY_RETURN": ends("return"), "PY_YIELD": ends("yield"), "PY_UNWIND": ends("exception"),
            "CALL": call, "C_RETURN": c_end("return"), "C_RAISE": c_end("exception"),
        }.items():  # fmt: skip
            monitoring.register_callback(3, getattr(events, name), callback)
        all_events = ("PY_START", "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD", "PY_UNWIND", "CALL")
        monitoring.set_events(3, sum(getattr(events, name) for name in all_events))

    def stop(self) -> None:
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(3, 0)
        else:
            sys.setprofile(None)

    # -- sys.setprofile --

    def profile(self, frame: FrameType, event: str, argument: Any) -> None:
        if frame.f_code.co_filename != self.path:
            return
        match event:
            case "call":
                self.enter("python", "__main__", frame.f_code.co_qualname)  # type: ignore[attr-defined,unused-ignore]
            case "return":
                self.leave("python", "return")
            case "c_call":
                self.enter("c", *(name_of(argument) or ("?", "?")))
            case "c_return" | "c_exception":
                self.leave("c", "exception" if event == "c_exception" else "return")


def main() -> None:
    script, output = sys.argv[1:]
    with open(script) as file:
        code = compile(file.read(), script, "exec")
    oracle = Oracle(script)
    sys.argv = [script]
    module = type(sys)("__main__")
    module.__dict__.update(__file__=script, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    try:
        if sys.version_info >= (3, 12):
            oracle.listen()
        else:
            sys.setprofile(oracle.profile)
        try:
            exec(code, module.__dict__)
        finally:
            oracle.stop()
    except (Exception, SystemExit):
        pass
    with open(output, "w") as file:
        json.dump(oracle.events, file)


if __name__ == "__main__":
    main()
