"""Random mixtures of threads, forks, programs, tasks, generators, signals and sudden ends: as many
calls are recorded as the program counted itself."""

import signal
from collections import Counter
from pathlib import Path

import pytest

import walking
from family import wait_until_finished
from recording import PYTRACE, run


@pytest.mark.parametrize("seed", [1, 3])
def test_every_call_of_every_process_is_there(tmp_path: Path, seed: int) -> None:
    counts = tmp_path / "counts"
    counts.mkdir()
    program = [walking.__file__, str(seed), str(counts), "0"]
    database = str(tmp_path / "traces.sqlite")
    done = run([*PYTRACE, "-o", database, *program], tmp_path, PYTHONWARNINGS="ignore")
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    wait_until_finished(Path(database))

    called: Counter[tuple[int, str]] = Counter()
    # how many threads may have begun a call that is not yet counted
    unsure: Counter[int] = Counter()
    for file in counts.iterdir():
        words = memoryview(file.read_bytes()).cast("Q")
        pid = words[walking.PID]
        called.update({(pid, name): words[index] for index, name in enumerate(walking.COUNTED)})
        unsure[pid] += words[walking.THREADS] + (not words[walking.ORDERLY])
    names = ", ".join(f"'{name}'" for name in walking.COUNTED)
    query = f"SELECT pid, func, count(*) FROM event WHERE kind = 'call' AND func IN ({names}) GROUP BY 1, 2"
    table = run([*PYTRACE, "sql", database, query], tmp_path)
    recorded: Counter[tuple[int, str]] = Counter()
    for line in table.stdout.splitlines()[2:]:
        pid, name, count = line.split()
        recorded[int(pid), name] = int(count)
    assert len(unsure) > 3, table.stderr
    assert called - recorded == Counter(), table.stderr + done.stderr
    more = Counter[int]()
    for (pid, _), count in (recorded - called).items():
        more[pid] += count
    assert not more - unsure
