"""The lines and variables of a program, by sys.settrace alone: what `pytrace --lines` has to tell.

    python line_oracle.py SCRIPT OUTPUT

Runs the script as __main__ and writes a JSON list of [function, line, changes, variables,
trailing]: changes and variables are {variable: repr}, the repr of a deleted one is "<deleted>";
trailing: the line has run. All values have to be short, and made of built-in types.
"""

import dis
import json
import sys
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

DELETED = "<deleted>"
HIDDEN = {"__classdict__", "__conditional_annotations__"}  # the compiler's own


def stored_names(code: CodeType) -> set[str]:
    """What a module or class body stores by name."""
    return {
        each.argval
        for each in dis.get_instructions(code)
        if each.opname in ("STORE_NAME", "DELETE_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")
    }


def shown(value: Any) -> str:
    """As pytrace shows it."""
    if isinstance(value, FunctionType):
        return f"<function {value.__module__}.{value.__qualname__}>"
    if isinstance(value, ModuleType):
        return f"<module {value.__name__!r}>"
    if type(value) in (list, tuple):
        items = ", ".join(map(shown, value)) + "," * (type(value) is tuple and len(value) == 1)
        return f"[{items}]" if type(value) is list else f"({items})"
    if type(value) is dict:
        return "{" + ", ".join(f"{shown(key)}: {shown(each)}" for key, each in value.items()) + "}"
    return repr(value)


class Oracle:
    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: list[tuple[str, int, dict[str, str], dict[str, str], bool]] = []
        self._before: dict[FrameType, dict[str, str]] = {}
        self._line: dict[FrameType, int] = {}
        self._names: dict[CodeType, set[str]] = {}
        self.failed = False

    def _variables(self, frame: FrameType) -> dict[str, str]:
        code = frame.f_code
        found = dict(frame.f_locals)
        if not code.co_flags & 1:  # CO_OPTIMIZED
            if code not in self._names:
                self._names[code] = stored_names(code)
            names = self._names[code]
            slots = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
            found = {
                name: value for name, value in {**frame.f_globals, **found}.items() if name in names | slots
            }
        return {name: shown(value) for name, value in found.items() if name not in HIDDEN}

    def _changes(self, frame: FrameType) -> dict[str, str]:
        before, now = self._before[frame], self._variables(frame)
        self._before[frame] = now
        changed = {name: text for name, text in now.items() if before.get(name) != text}
        return changed | {name: DELETED for name in before if name not in now}

    def __call__(self, frame: FrameType, event: str, argument: object) -> Any:
        try:
            return self._take(frame, event)
        except BaseException:
            self.failed = True
            raise

    def _take(self, frame: FrameType, event: str) -> Any:
        if frame.f_code.co_filename != self.path:
            return None
        name = frame.f_code.co_qualname  # type: ignore[attr-defined,unused-ignore]
        if event == "call":
            self._before.setdefault(frame, self._variables(frame))
        elif event == "line":
            self.lines.append((name, frame.f_lineno, self._changes(frame), self._before[frame], False))
            self._line[frame] = frame.f_lineno
        elif event == "return" and frame in self._line:
            changed = self._changes(frame)
            if changed:
                self.lines.append((name, self._line[frame], changed, self._before[frame], True))
        return self


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
        sys.settrace(oracle)
        try:
            exec(code, module.__dict__)
        finally:
            sys.settrace(None)
    except (Exception, SystemExit):
        pass
    if oracle.failed:
        sys.exit("the oracle failed")
    with open(output, "w") as file:
        json.dump(oracle.lines, file)


if __name__ == "__main__":
    main()
