"""Beside other tools of sys.monitoring; Python 3.12 and later."""

import sys
from pathlib import Path

from recording import Record, Recording, run


def test_tool_ids_of_others(record: Record) -> None:
    """A program's own tools get the ids that have a meaning, and their events."""
    recording = record(
        """
        import sys
        monitoring = sys.monitoring
        seen = []
        def work():
            return 1
        for tool in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID, monitoring.PROFILER_ID):
            monitoring.use_tool_id(tool, f"tool {tool}")
            def callback(code, *rest, tool=tool):
                if code is work.__code__:
                    seen.append(tool)
                return monitoring.DISABLE
            monitoring.register_callback(tool, monitoring.events.PY_START, callback)
            monitoring.set_events(tool, monitoring.events.PY_START)
        work()
        work()
        monitoring.restart_events()
        work()
        print(sorted(seen))
        """
    )
    assert recording.stdout == "[0, 0, 1, 1, 2, 2]\n" == recording.plain_output()
    assert recording.kinds("work") == ["call", "return"] * 3


def test_only_one_tool_id_left(tmp_path: Path, record: Record) -> None:
    recording = record(
        """
        import sys
        free = [tool for tool in range(6) if sys.monitoring.get_tool(tool) is None]
        for tool in free:
            sys.monitoring.use_tool_id(tool, "other")
        def work():
            return 1
        work()
        print(len(free))
        """
    )
    assert recording.stdout == "5\n"
    assert recording.kinds("work") == ["call", "return"]


def test_trace_beside_other_tools(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import sys
from pytracer import trace
for tool in (0, 1, 2, 3, 4):
    sys.monitoring.use_tool_id(tool, "other")
def inside(): return 1
with trace(output="traces.sqlite", quiet=True):
    inside()
"""
    )
    done = run([sys.executable, str(script)], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    recording = Recording(0, "", "", tmp_path / "traces.sqlite", script)
    assert recording.kinds("inside") == ["call", "return"]


def test_callbacks_that_the_program_calls_itself(record: Record) -> None:
    """register_callback hands out what was registered before."""
    recording = record(
        """
        import sys
        def traced(): pass
        events = sys.monitoring.events
        traced()
        for name in "PY_START PY_RESUME PY_THROW PY_RETURN PY_YIELD PY_UNWIND RAISE".split():
            event = getattr(events, name)
            callback = sys.monitoring.register_callback(5, event, None)
            for args in ((), (1,), (None, None, None, None), (1, 2), (1, 2, 3)):
                try:
                    callback(*args)
                except TypeError as error:
                    pass
            try:
                callback(traced.__code__, 0, other=None)
            except TypeError as error:
                print(error)
            sys.monitoring.register_callback(5, event, callback)
        traced()
        """,
        "--no-stdlib",
    )
    assert recording.stdout == "pytrace: this is called by sys.monitoring alone\n" * 7
    assert recording.kinds("traced").count("call") == 2


if sys.version_info >= (3, 13):  # when C code got functions to fire events

    def test_events_from_c_code(record: Record) -> None:
        """As Cython fires them: for code that no frame runs, or for an object that is no code at
        all."""
        recording = record(
            """
            import ctypes
            start = ctypes.pythonapi._PyMonitoring_FirePyStartEvent
            end = ctypes.pythonapi._PyMonitoring_FirePyReturnEvent
            start.argtypes = [ctypes.c_char_p, ctypes.py_object, ctypes.c_int32]
            end.argtypes = [*start.argtypes, ctypes.py_object]
            def compiled(a, b, *rest, c=1):
                cell = a
                return lambda: cell
            def generator(n):
                yield n
            async def coroutine(n):
                return n
            def caller():
                codes = [function.__code__ for function in (compiled, generator, coroutine)]
                for like in [*codes, object(), 1, "text", None]:
                    active = ctypes.create_string_buffer(bytes([255, 255]))
                    start(active, like, 0)
                    end(active, like, 0, 5)
            for _ in range(100):
                caller()
            print("done")
            """
        )
        assert recording.stdout == "done\n"
        assert recording.kinds("compiled") == ["call", "return"] * 100
        assert recording.kinds("coroutine") == recording.kinds("generator") == ["call", "return"] * 100
        assert recording.of("call", func="compiled")[0].args == []
        assert {event.value for event in recording.of("return", func="compiled")} == {"5"}
