"""The hook reads and writes only live memory: recorded programs under valgrind."""

import re
import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from recording import Record, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
]

# Runs the program in its arguments under valgrind, as a child: that of pytrace itself starts
# processes in a way that valgrind does not know.
UNDER_VALGRIND = """
import os, subprocess, sys
command = ["valgrind", "-q", "--log-file=errors", sys.executable, *sys.argv[1:]]
sys.exit(subprocess.run(command, env={**os.environ, "PYTHONMALLOC": "malloc"}).returncode)
"""

# Threads that end with greenlets in the middle of recorded calls, and with others that have ended.
GREENLETS = """
import threading
from greenlet import getcurrent, greenlet

def inner():
    getcurrent().parent.switch()

def work():
    made = [greenlet(inner) for _ in range(5)]
    for one in made:
        one.switch()
    for one in made[:3]:
        one.switch()

for _ in range(3):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
"""

# The interpreter makes a state each time that such a thread calls, and frees it behind.
FOREIGN = """
#include <pthread.h>

static void (*function)(void);
static pthread_t thread;

static void *run(void *unused)
{
    (void)unused;
    for (int i = 0; i < 6; i++)
        function();
    return 0;
}

void start(void (*to_call)(void))
{
    function = to_call;
    pthread_create(&thread, 0, run, 0);
}

void join(void) { pthread_join(thread, 0); }
"""

KEPT_STATES = """
import ctypes, gc
library = ctypes.CDLL("./foreign.so")
kept = []

def inner():
    pass

def hold():  # the dictionaries of all states, as somebody who looks for leaks does
    kept.append([found for found in gc.get_objects() if type(found) is dict])
    inner()

called = ctypes.CFUNCTYPE(None)(hold)  # it lives as long as the thread
library.start(called)
library.join()
kept.clear()
"""


def errors(record: Record, folder: Path, source: str) -> str:
    """The reports of valgrind on our code in a recorded program."""
    write(folder, "program.py", source)
    record(UNDER_VALGRIND, args=("program.py",))
    reports = re.split(r"(?m)^==\d+== \n", (folder / "errors").read_text())
    return "".join(
        report for report in reports if "csrc/record" in report or "pytracer" in report or "hook" in report
    )


def test_greenlets_of_threads_that_end(record: Record, tmp_path: Path) -> None:
    pytest.importorskip("greenlet")
    assert errors(record, tmp_path, GREENLETS) == ""


def test_states_whose_dictionaries_are_kept(record: Record, tmp_path: Path) -> None:
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    command = [compiler, "-shared", "-fPIC", "-pthread", "-x", "c", "-", "-o", tmp_path / "foreign.so"]
    subprocess.run(command, input=FOREIGN, text=True, check=True)
    assert errors(record, tmp_path, KEPT_STATES) == ""
