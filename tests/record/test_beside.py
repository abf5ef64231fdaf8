"""Others that trace at the same time get what they would get alone, and so does pytrace."""

from pathlib import Path

import pytest

from recording import Event, Record

WORKLOAD = """
def square(n):
    return n * n

def numbers():
    for n in range(3):
        yield square(n)

def fail():
    raise KeyError("x")

def main():
    total = sum(numbers())
    try:
        fail()
    except KeyError:
        total += 1
    return total

print(main())
"""

WORKLOAD_KINDS = {
    "main": ["call", "raise", "return"],
    "square": ["call", "return"] * 3,
    "numbers": ["call", "yield", "resume", "yield", "resume", "yield", "resume", "return"],
    "fail": ["call", "raise", "exception"],
}


def assert_workload_is_complete(events: list[Event], file: Path) -> None:
    inside = [event for event in events if event.file == str(file)]
    for func, kinds in WORKLOAD_KINDS.items():
        assert [event.kind for event in inside if event.func == func] == kinds, func


def test_beside_coverage(record: Record, tmp_path: Path) -> None:
    pytest.importorskip("coverage")
    workload = tmp_path / "workload.py"
    workload.write_text(WORKLOAD)
    recording = record(
        """
        import json, sys
        from coverage import Coverage
        coverage = Coverage(data_file=None, include=["*/workload.py"])
        coverage.start()
        import workload
        coverage.stop()
        _, statements, _, missing, _ = coverage.analysis2(workload)
        print(len(statements), missing)
        """
    )
    assert recording.stdout == recording.plain_output() == "6\n15 []\n"
    assert_workload_is_complete(recording.events, workload)


def test_beside_cprofile(record: Record, tmp_path: Path) -> None:
    workload = tmp_path / "workload.py"
    workload.write_text(WORKLOAD)
    recording = record(
        """
        import cProfile, pstats
        profile = cProfile.Profile()
        with profile:
            import workload
        counts = {name: row[1] for (_, _, name), row in pstats.Stats(profile).stats.items()}
        print(counts["square"], counts["numbers"], counts["fail"])
        """
    )
    assert recording.stdout == recording.plain_output() == "6\n3 4 1\n"
    assert_workload_is_complete(recording.events, workload)


def test_beside_pdb(record: Record) -> None:
    script = """
        import io, pdb, sys
        commands = io.StringIO("b square\\nc\\np n\\nu\\nc\\np n + 40\\ncl 1\\nn\\nc\\n")
        debugger = pdb.Pdb(stdin=commands, stdout=sys.stdout, readrc=False)
        debugger.use_rawinput = False
        def square(n):
            return n * n
        def main():
            return [square(n) for n in range(4)]
        print(debugger.runcall(main))
        """
    recording = record(script)
    assert recording.stdout == recording.plain_output()
    assert "41" in recording.stdout
    assert recording.stdout.endswith("[0, 1, 4, 9]\n")
    assert recording.kinds("square") == ["call", "return"] * 4


def test_beside_a_trace_function_of_the_program(record: Record) -> None:
    recording = record(
        """
        import sys, threading
        print(sys.gettrace(), sys.getprofile())
        seen = []

        def trace(frame, event, arg):
            if frame.f_code is work.__code__:
                seen.append((event, frame.f_lineno))
            return trace

        def profile(frame, event, arg):
            if getattr(frame, "f_code", None) is work.__code__:
                seen.append(("profile", event))

        def work(n):
            n += 1
            return n

        sys.settrace(trace)
        work(1)
        sys.settrace(None)
        work(2)
        sys.setprofile(profile)
        work(3)
        sys.setprofile(None)
        work(4)
        threading.settrace(trace)
        thread = threading.Thread(target=work, args=(5,))
        thread.start()
        thread.join()
        threading.settrace(None)
        print(seen, sys.gettrace(), sys.getprofile())
        """
    )
    assert recording.stdout == recording.plain_output()
    calls = recording.of("call", func="work")
    assert [event.values["n"] for event in calls] == ["1", "2", "3", "4", "5"]
    assert len(recording.of("return", func="work")) == 5
