"""Faults of the ring: no room for it, full for long, written over by a program that goes wild."""

from pathlib import Path

import pytest

import mortal
from beside import PYTRACE, run
from counted import Counted, wait_for
from small_disk import SmallDisk

SCRIBBLES = {
    "bodies": ("scribble_over_chunks(0)", 1),
    "headers": ("scribble_over_chunks(1)", 1),
    "its process": ("scribble_over_processes(0)", 0),
    "all processes": ("scribble_over_processes(1)", 0),
}


@pytest.mark.parametrize(("scribble", "refused"), SCRIBBLES.values(), ids=SCRIBBLES)
def test_a_process_writes_over_the_ring(
    tmp_path: Path, mortal: dict[str, str], scribble: str, refused: int
) -> None:
    """Its own records may be refused, and are counted; all others are whole."""
    source = f"""
    hook = ctypes.PyDLL(os.environ["HOOK"])
    do(0)
    sibling = os.fork()
    if not sibling:
        do(1)
        sys.stdin.readline()
        do(1)
        sys.exit(1)
    child = os.fork()
    if not child:
        do(2, 300)
        print("child", flush=True)
        while not os.path.exists("go"):
            pass
        hook.{scribble}
        do(2, 300)
        os._exit(2)
    os.waitpid(child, 0)
    do(0)
    print("ready", flush=True)
    os.waitpid(sibling, 0)
    do(0)
    """
    program = Counted(tmp_path, source, **mortal)
    assert program.line() == "child"
    wait_for(lambda: program.rows("SELECT count(*) FROM process") == [(3,)], "the dumper to know all three")
    (tmp_path / "go").touch()
    assert program.line() == "ready"
    program.say()
    assert program.ended() == 0
    (tmp_path / "go").unlink()
    errors = program.over()
    program.check(0, 1, spoilt=(2,))
    assert program.rows("SELECT refused, lost FROM run") == [(refused, 0)]
    assert ("1 chunk unreadable" in errors) == bool(refused)


def test_no_large_chunk_is_free(tmp_path: Path) -> None:
    """Processes that wait hold them all: calls with many arguments make do with what a small one
    has, and are cut if need be; nothing is lost."""
    source = """
    LONG = ["x" * 180] * 5
    def many(a, b, c, d, e, f, g, h, i, j, k, l, m, n):
        pass
    asked, answered = os.pipe(), os.pipe()
    for child in range(224):
        if not os.fork():
            many(*range(14))
            os.write(answered[1], b".")
            os.read(asked[0], 1)
            os._exit(0)
    left = 224
    while left:
        left -= len(os.read(answered[0], left))
    for number in range(50):
        do(0, 3 * number)
        many(*[LONG] * 14)
    os.write(asked[1], bytes(224))
    for child in range(224):
        os.wait()
    """
    program = Counted(tmp_path, source)
    assert program.ended() == 0
    assert "none lost" in program.over()
    program.check(0)
    asked = (
        "SELECT CAST(a.value AS BLOB) FROM event e JOIN argument a ON a.event = e.id"
        " WHERE e.kind = 'call' AND e.func = 'many' AND a.name = '{}'"
        " AND e.pid = (SELECT pid FROM process WHERE number = 0)"
    )
    whole = (repr(["x" * 180] * 5).encode(),)
    assert program.query("b", asked.format("a")) == [whole] * 50
    last = program.query("b", asked.format("n"))
    assert len(last) == 50
    assert whole in last
    cut = [value for value in last if value != whole]
    assert cut
    assert all(b"..." in value for (value,) in cut)


@pytest.mark.parametrize("end", ["sys.exit(0)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_shared_memory_is_full(tmp_path: Path, small_disk: SmallDisk, end: str) -> None:
    """The ring is made in the temporary folder, and nothing stays there either."""
    memory = small_disk.folder if small_disk.mounted else tmp_path / "missing"
    variables = mortal.with_memory(tmp_path / "python", memory)
    (folder := tmp_path / "program").mkdir()
    temporary = Path(variables["TMPDIR"])
    program = Counted(folder, f"do(0)\n{end}", memory=temporary, **variables)
    status = program.ended()
    errors = program.over()
    assert f"pytrace: the buffer of 64 MiB cannot be made in {memory} (" in errors
    assert f"using {temporary}, slower" in errors
    assert program.rows("SELECT exit_status, lost FROM run") == [(status, 0)]
    program.check(0)
    assert [path.name for path in temporary.iterdir()] == ["pytracer"]


def test_there_is_room_nowhere(tmp_path: Path) -> None:
    """It says so, and nothing is run."""
    (memory := tmp_path / "memory").mkdir()
    variables = mortal.with_memory(tmp_path / "python", memory)
    command = ["sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *PYTRACE, "-c", "print(1)"]
    done = run(command, tmp_path, **variables)
    assert done.status == 2
    assert done.stdout == b""
    assert b"the buffer of 64 MiB cannot be made in " in done.stderr
    assert not list(memory.iterdir())
    assert [path.name for path in Path(variables["TMPDIR"]).iterdir()] == ["pytracer"]
    assert not (tmp_path / "traces.sqlite").exists()
