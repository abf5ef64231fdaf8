"""Pools and servers with workers, recorded: every process of them, and every call."""

import os
import re
import signal
import urllib.request
from pathlib import Path

import pytest

from family import check, recorded, started, told, wait_until_finished
from recording import PYTRACE, TIMEOUT, run, write

# Workers return their pid for each call; the program prints how many each one made.
POOLS = {
    **{
        method: f"""
            with multiprocessing.get_context("{method}").Pool(2) as pool:
                pids = pool.map(work, range(40))
        """
        for method in ("fork", "spawn", "forkserver")
    },
    "executor": """
            context = multiprocessing.get_context("spawn")
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                pids = list(pool.map(work, range(40)))
        """,
    "loky": """
            import joblib
            pids = joblib.Parallel(n_jobs=2)(joblib.delayed(work)(n) for n in range(40))
        """,
}
PROGRAM = """
import collections, concurrent.futures, multiprocessing, os

def work(n):
    return os.getpid()

if __name__ == "__main__":
    if True:
{pool}
    for pid, count in collections.Counter(pids).items():
        print(pid, count)
"""


@pytest.mark.parametrize("name", POOLS)
def test_pool(name: str, tmp_path: Path) -> None:
    facts = check(tmp_path, PROGRAM.format(pool=POOLS[name]), "--no-stdlib", "--no-site-packages")
    tree = {process["number"]: process for process in facts["tree"]}
    by_pid = {process["pid"]: process for process in tree.values()}
    for pid in recorded(tmp_path / "traces.sqlite"):
        process = by_pid[pid]
        while process["parent"] is not None:
            process = tree[process["parent"]]
        assert process["number"] == 0


def test_worker_of_a_server_goes_on(tmp_path: Path) -> None:
    """It has the command of multiprocessing's fork server, which itself is not spoken of."""
    write(
        tmp_path,
        "script.py",
        """
        import multiprocessing, multiprocessing.resource_tracker, os, time

        def work():
            open("begun", "x").close()
            open("go").close()

        if __name__ == "__main__":
            multiprocessing.get_context("forkserver").Process(target=work).start()
            while not os.path.exists("begun"):  # not yet a process that is known
                time.sleep(0.001)
            # nobody waits for it; 3.13.5 would wait for the tracker, which waits for the worker
            multiprocessing.process._children.clear()
            multiprocessing.resource_tracker._resource_tracker._fd = None
        """,
    )
    os.mkfifo(tmp_path / "go")
    with started(tmp_path, *PYTRACE, "script.py") as program:
        assert program.wait(TIMEOUT) == 0
        (tmp_path / "go").write_bytes(b"")
        assert program.stderr is not None
        assert b"; others that it started still run. Open it" in program.stderr.readline()
    assert len(wait_until_finished(tmp_path / "traces.sqlite")["tree"]) == 4


def test_tests_in_parallel(tmp_path: Path) -> None:
    """pytest-xdist starts its workers through execnet."""
    write(
        tmp_path,
        "test_it.py",
        """
        import os, pathlib, pytest

        @pytest.mark.parametrize("n", range(20))
        def test_work(n):
            with open(pathlib.Path(__file__).with_name(f"did-{os.getpid()}"), "a") as file:
                file.write("x")
        """,
    )
    command = [*PYTRACE, "--modules", str(tmp_path), "-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider"]
    done = run([*command, "test_it.py"], tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stdout + done.stderr
    did = {int(path.name[4:]): path.stat().st_size for path in tmp_path.glob("did-*")}
    wait_until_finished(tmp_path / "traces.sqlite")
    assert sum(did.values()) == 20
    assert recorded(tmp_path / "traces.sqlite", "test_work") == did


def test_server_with_workers(tmp_path: Path) -> None:
    """gunicorn forks its workers beforehand, and kills them at the end."""
    write(
        tmp_path,
        "app.py",
        """
        import os

        def app(environ, start_response):
            start_response("200 OK", [])
            return [b"%d" % os.getpid()]
        """,
    )
    options = ["--workers", "2", "--bind", "127.0.0.1:0", "--pythonpath", str(tmp_path)]
    with started(tmp_path, *PYTRACE, "-m", "gunicorn", *options, "app:app") as server:
        assert server.stderr is not None
        address = next(
            found[1] for line in server.stderr if (found := re.search(rb"Listening at: (\S+)", line))
        )
        answers = ""
        for _ in range(20):
            with urllib.request.urlopen(address.decode(), timeout=TIMEOUT) as answer:
                answers += f"{int(answer.read())} 1\n"
        server.send_signal(signal.SIGTERM)
        assert server.wait(TIMEOUT) == 0
    facts = wait_until_finished(tmp_path / "traces.sqlite")
    assert recorded(tmp_path / "traces.sqlite", "app") == told(answers)
    assert [process["parent"] for process in facts["tree"]] == [None, 0, 0]
    assert facts["exit_status"] == 0
