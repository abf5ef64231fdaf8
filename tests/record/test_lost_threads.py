"""Losses of threads that find no chunk, not even one to be defined in: counted to the event."""

from pathlib import Path

from counted import Counted

THREADS = 600
# Each thread claims a chunk, of which there are 16, and the dumper gives none back. With names that
# long, the chunk of definitions is full after some hundreds of them, too.
SOURCE = f"""
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range({THREADS}):
        thread = threading.Thread(target=work, args=(n,), name=f"{{n:0180}}")
        thread.start()
        thread.join()
    print("done", flush=True)
    sys.stdin.readline()
"""
MADE = 2 * (THREADS + 1)  # a call and a return each, and the module's


def test_loss_with_threads_is_counted_exactly(tmp_path: Path) -> None:
    program = Counted(tmp_path, SOURCE, "--buffer-size", "1MiB")
    assert program.line() == "ready"
    with program.stopped_dumper():
        program.say()
        assert program.line() == "done"
    program.say()
    assert program.ended() == 0
    program.over()
    ((stored, notes),) = program.query("ii", "SELECT count(*), sum(kind = 'lost') FROM event")
    ((lost, threads),) = program.rows("SELECT lost, (SELECT count(*) FROM thread) FROM run")
    assert threads < THREADS
    assert lost > THREADS
    assert stored - notes + lost == MADE
