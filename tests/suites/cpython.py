"""CPython's own test suite, bare and under pytrace, compared test by test. By hand: make cpython

    python tests/suites/cpython.py [-j N] [MODULE...]

runs each module of the `test` package that belongs to this Python (MODULES without arguments)
twice, once as `python -m test` and once as `pytrace -m test`, and prints what differs: outcomes of
tests, and what regrtest says about the state a test leaves behind. If there is a difference that
KNOWN does not name, the exit status is 1, and the module is run again, to tell a difference from a
test that fails now and then. The output of the runs stays in build/cpython/.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

from known import KNOWN, LEFT_OUT
from outcomes import recording

LOGS = Path(__file__).parents[2] / "build" / "cpython"
TIMEOUT = 1200  # seconds for one run of one module
RESOURCES = "all,-gui,-network,-urlfetch,-largefile"

# The program that runs in place of `-m test`.
INSTEAD = {"test_monitoring": [str(Path(__file__).with_name("unseen.py"))]}

# The parts that exercise what a tracer might disturb, quick ones first.
MODULES = """
    test_frame test_generators test_generator_stop test_genexps test_coroutines test_asyncgen
    test_exceptions test_baseexception test_exception_group test_exception_hierarchy
    test_exception_variations test_except_star test_raise test_with test_yield_from test_contextlib
    test_contextlib_async test_context test_decorators test_scope test_super test_descr test_descrtut
    test_property test_functools test_patma test_listcomps test_named_expressions
    test_positional_only_arg test_keywordonlyarg test_extcall test_call test_unpack_ex test_dynamic
    test_opcache test_code test_dis test_peepholer test_compile test_opcodes test_type_params
    test_monitoring test_sys_settrace test_sys_setprofile test_bdb test_pdb test_trace test_profile
    test_cprofile test_sys test_gc test_weakref test_weakset test_finalization test_pickle test_copy
    test_inspect test_traceback test_warnings test_faulthandler test_tracemalloc test_atexit test_audit
    test_signal test_threadsignals test_thread test_threading test_threading_local test_threadedtempfile
    test_queue test_dynamicclassattribute test_funcattrs test_types test_typing test_dataclasses
    test_enum test_reprlib test_runpy test_site test_cmd_line test_cmd_line_script test_utf8_mode
    test_c_locale_coercion test_import test_importlib test_zipimport test_code_module test_doctest
    test_unittest test_posix test_os test_fork1 test_wait3 test_wait4 test_popen test_pty test_tempfile
    test_io test_fileio test_bufio test_file_eintr test_eintr test_select test_selectors test_resource
    test_sched test_logging test_subprocess test_concurrent_futures test_asyncio test_interpreters
    test__interpreters test__xxsubinterpreters test_capi test_ctypes test_json test_sqlite3 test_repl
    test_perf_profiler test_gdb test_multiprocessing_main_handling test_multiprocessing_fork
    test_multiprocessing_forkserver test_multiprocessing_spawn
"""


# Some of them, so quick that they are run together, as a test (test_cpython.py).
QUICK = """
    test_frame test_generators test_generator_stop test_genexps test_coroutines test_asyncgen
    test_exception_group test_exception_variations test_except_star test_raise test_with test_yield_from
    test_contextlib test_scope test_super test_patma test_positional_only_arg test_unpack_ex test_dynamic
    test_sys_setprofile test_bdb test_code test_dynamicclassattribute test_funcattrs
"""


@dataclass
class Run:
    """The outcomes of one run of one module, or of several in one process."""

    seconds: float
    recording: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, outcome: str) -> None:
        """Of the parts of one test (subTest), and of two tests of one name, the worst counts."""
        if sorted([outcome, self.outcomes.get(name, "")])[1] == outcome:
            self.outcomes[name] = outcome


@dataclass
class Difference:
    test: str
    bare: str
    recorded: str
    stable: bool = False
    known: str = ""

    def __str__(self) -> str:
        notes = f"  [known: {self.known}]" if self.known else "" if self.stable else " (not always)"
        return f"{self.test}: {self.bare}, recorded {self.recorded}{notes}"


def from_xml(path: Path) -> Iterator[tuple[str, str]]:
    """Tests and their outcomes, in words whose alphabetical order is the order of their weight."""
    for case in ElementTree.parse(path).iter("testcase"):
        name = case.get("name", "")  # none if only parts of a test failed: those are in the log
        if not name:
            continue
        if case.get("status") == "skipped" or case.find("skipped") is not None:
            yield name, "SKIPPED"
        elif case.get("outcome") == "UNEXPECTED_SUCCESS":
            yield name, "UNEXPECTED SUCCESS"
        elif case.find("failure") is None and case.find("error") is None:
            yield name, "OK"


def from_log(text: str) -> Iterator[tuple[str, str]]:
    """Failures, those of a part of a test among them, and what regrtest complains about."""
    for outcome, test, doctest in re.findall(r"^(FAIL|ERROR): (.*)\n(?:Doctest: (.*))?", text, re.MULTILINE):
        name = re.search(r"\(([\w.]+)\)", test)
        yield doctest or (name[1] if name else test), "WITH " + outcome
    for warning in re.findall(r"^Warning -- (.*)$", text, re.MULTILINE):
        yield "state behind a test: " + re.sub(r"\d+|0x[0-9a-f]+", "…", warning), "WARNING"


def available(modules: str) -> list[str]:
    """The modules that this Python has; some come without their tests."""
    return [name for name in modules.split() if find_spec("test") and find_spec(f"test.{name}")]


def run(module: str, recorded: bool, label: str) -> Run:
    """`module`: one, or several with spaces between them."""
    with tempfile.TemporaryDirectory(prefix="suites-") as folder:
        xml, database = Path(folder) / "results.xml", Path(folder) / "traces.sqlite"
        pytrace = ["-m", "pytracer", "-q", "-o", str(database)]
        test = [*INSTEAD.get(module, ["-m", "test"]), "-v", "-u", RESOURCES, "--junit-xml", str(xml)]
        for versions, pattern, _ in LEFT_OUT:
            test += ["--ignore", pattern] * (sys.version_info[:2] in versions)
        LOGS.mkdir(parents=True, exist_ok=True)
        name = "quick" if " " in module else module
        log = LOGS / f"{sys.version_info.major}.{sys.version_info.minor}-{name}-{label}.log"
        start = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *(pytrace if recorded else []), *test, *module.split()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={name: value for name, value in os.environ.items() if not name.startswith("PYTRACE_")},
                start_new_session=True,
            )
            try:
                status = f"{process.wait(TIMEOUT)}"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                status = f"none within {TIMEOUT} s"
        result = Run(time.monotonic() - start, recording(database) if recorded else "")
        if not xml.exists():
            status += ", without results"
        else:
            for name, outcome in from_xml(xml):
                result.add(name, outcome)
        for name, outcome in from_log(log.read_text(errors="replace")):
            result.add(name, outcome)
        result.add("exit status", status)
        return result


def differ(bare: Run, recorded: Run) -> dict[str, Difference]:
    both = bare.outcomes.keys() | recorded.outcomes.keys()
    if "without results" in bare.outcomes["exit status"] + recorded.outcomes["exit status"]:
        both = {"exit status"}
    pairs = [
        (name, bare.outcomes.get(name, "missing"), recorded.outcomes.get(name, "missing"))
        for name in sorted(both)
    ]
    return {name: Difference(name, *pair) for name, *pair in pairs if pair[0] != pair[1]}


def explain(differences: dict[str, Difference]) -> None:
    """Notes the reasons that KNOWN has."""
    for difference in differences.values():
        reasons = (
            reason
            for versions, pattern, reason in KNOWN
            if sys.version_info[:2] in versions and fnmatchcase(difference.test, pattern)
        )
        difference.known = next(reasons, "")
    explained = {difference.test for difference in differences.values() if difference.known}
    if explained and set(differences) == explained | {"exit status"}:
        differences["exit status"].known = "follows"


def compare(module: str) -> tuple[str, list[Difference]]:
    bare, recorded = run(module, False, "bare"), run(module, True, "recorded")
    differences = differ(bare, recorded)
    explain(differences)
    if not all(difference.known for difference in differences.values()):
        again = differ(run(module, False, "bare-again"), run(module, True, "recorded-again"))
        for name, difference in differences.items():
            difference.stable = name in again and again[name].recorded == difference.recorded
    summary = f"{len(bare.outcomes) - 1} tests, {bare.seconds:.1f} s, recorded {recorded.seconds:.1f} s"
    summary += f"; {recorded.recording}"
    return f"{module}: {summary}", list(differences.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="CPython's own tests, bare and under pytrace, compared")
    parser.add_argument("-j", type=int, default=1, help="modules at a time (1)", metavar="N", dest="jobs")
    parser.add_argument("modules", nargs="*", metavar="MODULE")
    options = parser.parse_args()
    # Else a shell's background job hands on that it is to be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    modules = options.modules or available(MODULES)
    tests = unknown = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for summary, differences in pool.map(compare, modules):
            print(summary, *(f"  {difference}" for difference in differences), sep="\n", flush=True)
            tests += int(summary.split()[1])
            unknown += sum(not difference.known for difference in differences)
    print(f"{tests} tests of {len(modules)} modules: {unknown} unexplained differences")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
