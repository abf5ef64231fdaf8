"""Clocks that are set, and counters that jump: the times of a recording stay in order."""

from pathlib import Path

import pytest

from counted import Counted, compiled

# The wall clock goes back by a minute at every look.
BACKWARDS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    static _Atomic int looks;
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id == CLOCK_REALTIME)
        time->tv_sec -= 60 * looks++;
    return result;
}
"""


def check_times(program: Counted) -> list[int]:
    """Of the events of the first thread, in the order in which they were recorded."""
    times = [time for (time,) in program.query("i", "SELECT time FROM event ORDER BY id")]
    assert times == sorted(times)
    started, finished = program.rows("SELECT started, finished FROM run")[0]
    assert started <= times[0]
    assert times[-1] <= finished
    for process_started, process_finished in program.rows("SELECT started, finished FROM process"):
        assert started <= process_started <= process_finished <= finished
    return times


def test_the_wall_clock_is_set_back(tmp_path: Path) -> None:
    library = compiled(tmp_path / "backwards.so", BACKWARDS)
    (folder := tmp_path / "program").mkdir()
    source = """
    import time
    first = time.time()
    do(0)
    assert time.time() < first
    """
    program = Counted(folder, source, LD_PRELOAD=library)
    assert program.ended() == 0
    program.over()
    program.check(0)
    check_times(program)


JUMPS = {"back": "halve_counter()", "on": "move_counter(ctypes.c_double(1000))"}
JUMPS["to its beginning"] = "reset_counter()"


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
def test_the_counter_jumps(tmp_path: Path, mortal: dict[str, str], jump: str) -> None:
    """As it does where a machine sleeps: most are reset, some go on. Threads that begin afterwards
    too have times in the order of the others'."""
    source = f"""
    hook = ctypes.PyDLL(os.environ["HOOK"])
    do(0)
    hook.{jump}
    do(0)
    thread = threading.Thread(target=do, args=(1,))
    thread.start()
    thread.join()
    do(0)
    """
    program = Counted(tmp_path, source, **mortal)
    assert program.ended() == 0
    program.over()
    program.check(0, 1)
    ((started, finished),) = program.rows("SELECT started, finished FROM run")
    rows = program.query(
        "iib", "SELECT time, tid, CAST(thread AS BLOB) FROM event WHERE func = 'work' ORDER BY time, id"
    )
    order = [thread for _, _, thread in rows]
    assert order == [b"MainThread"] * 4000 + [order[4000]] * 2000 + [b"MainThread"] * 2000
    assert order[4000] != b"MainThread"
    later = 1001 * 10**9 if "(1000)" in jump else 0  # the dumper has the counter that did not jump
    assert started < rows[0][0] < rows[-1][0] < finished + later
    # and time goes on, other than for the moment of the jump
    assert len({time for time, _, _ in rows[2000:]}) > 3000
