"""Every way a program ends: what it says that it did is recorded, once, and nothing of ours stays
behind."""

import signal
from pathlib import Path
from textwrap import dedent

import pytest

from counted import Counted, wait_for

# Ends of the program, and their exit status. A negative one is the signal.
ENDS = {
    "it returns": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "sys.exit in a handler": (
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        os.kill(os.getpid(), signal.SIGTERM)
        do(0)
        """,
        7,
    ),
    "an exception": ("raise ValueError", 1),
    "os._exit": ("os._exit(4)", 4),
    "exit in C": ("ctypes.CDLL(None).exit(5)", 5),
    "_exit in C": ("ctypes.CDLL(None)._exit(6)", 6),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); signal.pause()", -signal.SIGINT),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "a null pointer": ("ctypes.string_at(0)", -signal.SIGSEGV),
    "a null pointer with faulthandler": (
        "import faulthandler; faulthandler.enable(); ctypes.string_at(0)",
        -signal.SIGSEGV,
    ),
    "abort": ("os.abort()", -signal.SIGABRT),
    # a tree of nothing but right branches: the C library walks it by recursion
    "the stack of C overflows": (
        f"""
        import array
        nodes = array.array("Q", bytes(24 * {1 << 19}))
        base = nodes.buffer_info()[0]
        for i in range({(1 << 19) - 1}):
            nodes[3 * i] = base
            nodes[3 * i + 2] = base + 24 * (i + 1)
        c = ctypes.CDLL(None)
        c.twalk(ctypes.c_void_p(base), c.labs)
        """,
        -signal.SIGSEGV,
    ),
    "the stack of Python overflows": (
        """
        def deep():
            counts[1] += 1
            deep()
        try:
            deep()
        finally:
            do(0)
        """,
        1,
    ),
    "no memory is left": (
        """
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (16 << 20), resource.RLIM_INFINITY))
        kept = []
        def fill(size):
            while True:
                kept.append(bytearray(size))
                counts[1] += 1
        for size in (1 << 20, 1 << 12, 100):
            try:
                fill(size)
            except MemoryError:
                do(0)
        raise MemoryError
        """,
        1,
    ),
}


@pytest.mark.parametrize(("source", "status"), ENDS.values(), ids=ENDS)
def test_end(tmp_path: Path, source: str, status: int) -> None:
    program = Counted(tmp_path, "do(0)\n" + dedent(source))
    assert program.ended() == status
    program.over()
    program.check(0)
    assert program.count(0)[0] >= 1000
    ((deep,),) = program.query("i", "SELECT count(*) FROM event WHERE func LIKE 'deep' AND kind = 'call'")
    assert deep == (program.count(1)[0] if "deep" in source else 0)
    assert program.rows("SELECT exit_status, lost FROM run") == [(status, 0)]
    assert program.rows("SELECT exit_status, finished IS NOT NULL FROM process") == [(status, 1)]


# ---- killed in the hook --------------------------------------------------------------------------


HOOK = "hook = ctypes.PyDLL(os.environ['HOOK'])\n"


def die_at(point: str, times: str) -> str:
    """Source: at the test point (an expression, as is times) for that many times from now. No
    function of Python is called, and so no event recorded."""
    return f"hook.die_at(ctypes.c_char_p({point}.encode()), {times})"


RING_POINTS = ("after_claim", "after_header", "before_publish", "after_publish", "before_seal", "after_seal")

# Each child fills several chunks, unless it dies before.
DYING_CHILDREN = f"""
{HOOK}
points = eval(sys.stdin.readline())
children = []
for slot, (point, times) in enumerate(points):
    {die_at("point", "times")}
    child = os.fork()
    if not child:
        do(slot, 10000)
        sys.exit(1)
    {die_at("''", "1")}
    children.append(child)
for child in children:
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
print(*children, flush=True)
sys.stdin.readline()
"""


def test_killed_in_the_hook(tmp_path: Path, mortal: dict[str, str]) -> None:
    """At each test point, in a forked child for each: at the first time, and when a few chunks are
    full."""
    points = [("after_slot", 1)]
    points += [(point, n) for point in RING_POINTS for n in (1, 2, 3)]
    points += [(point, n) for point in ("before_publish", "after_publish") for n in (4, 8001, 8002)]
    program = Counted(tmp_path, DYING_CHILDREN, "--buffer-size", "8M", **mortal)
    program.say(repr(points))
    children = [int(pid) for pid in program.line().split()]
    ended = "SELECT pid, exit_status FROM process WHERE finished"
    seen = wait_for(lambda: len(rows := program.rows(ended)) >= len(points) - 1 and rows, "the ends")
    assert dict(seen) == dict.fromkeys(children[1:], -signal.SIGKILL)
    program.say()
    assert program.ended() == 0
    program.over()
    program.check(*range(len(points)))
    assert max(program.count(slot)[0] for slot in range(len(points))) > 3000


@pytest.mark.parametrize(
    ("point", "times"),
    [
        ("leaving", 1),
        ("before_seal", 1),
        ("after_seal", 1),
        ("before_seal", 2),
        ("after_seal", 2),
        ("before_exited", 1),
        ("after_exited", 1),
        ("before_summary", 1),
        ("after_summary", 1),
    ],
)
def test_killed_while_it_exits(tmp_path: Path, mortal: dict[str, str], point: str, times: int) -> None:
    program = Counted(tmp_path, f"{HOOK}do(0, 100)\n{die_at(repr(point), str(times))}", **mortal)
    assert program.ended() == -signal.SIGKILL
    program.over()
    program.check(0)
    said = point in ("after_exited", "before_summary", "after_summary")
    assert program.rows("SELECT exit_status FROM run") == [(0 if said else -signal.SIGKILL,)]


def test_exit_in_c_while_another_thread_writes_a_record(tmp_path: Path, mortal: dict[str, str]) -> None:
    """Its chunks stay its own until it is dead: the record might be published yet."""
    program = Counted(tmp_path, f"{HOOK}do(0)\nhook.exit_in_the_middle_of_a_record(5)\ndo(0)", **mortal)
    assert program.line() == "2 of 2 chunks kept"
    assert program.ended() == 5
    errors = program.over()
    assert "events of 1 process" in errors, errors
    program.check(0)
    assert program.rows("SELECT exit_status, lost FROM run") == [(5, 0)]


# ---- many at once --------------------------------------------------------------------------------

# Children are killed wherever they are, while threads of the program record, and other children
# fork.
CROWD = """
import random

sys.setswitchinterval(1e-4)
over = threading.Event()
def worker(slot):
    while counts[slot] < 3000:
        do(slot, 50)
    over.wait()

threads = [threading.Thread(target=worker, args=(slot,)) for slot in (0, 1)]
for thread in threads:
    thread.start()
for slot in range(10, 18):
    child = os.fork()
    if not child:
        do(slot, 100)
        if os.fork():
            do(slot, 10**9)
        do(slot + 20, 100)
        os._exit(0)
    limit = random.randrange(100, 500)
    while counts[slot] < limit:
        os.sched_yield()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print("ready", flush=True)
"""


@pytest.mark.parametrize("end", ["exits", "is killed"])
def test_forks_and_kills_while_threads_record(tmp_path: Path, end: str) -> None:
    last = {"exits": "over.set()", "is killed": "threads[0].join()"}[end]
    program = Counted(tmp_path, CROWD + last)
    assert program.line() == "ready"
    if end == "is killed":
        program.process.kill()
    assert program.ended() == (0 if end == "exits" else -signal.SIGKILL)
    program.over()
    assert program.rows("SELECT sum(lost) FROM process") == [(0,)]
    program.check(0, 1, *range(10, 38))
    assert all(program.count(slot)[0] for slot in (0, 1))
