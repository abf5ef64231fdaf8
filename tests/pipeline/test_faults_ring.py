"""What can happen to the ring: no room for it, full for long, written over by a program that goes wild."""

from pathlib import Path

import pytest

from counted import Counted

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
    """What it had recorded itself may be refused, and is counted; everybody else's is whole."""
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
        do(2, 3000)
        hook.{scribble}
        do(2, 3000)
        os._exit(2)
    os.waitpid(child, 0)
    do(0)
    print("ready", flush=True)
    os.waitpid(sibling, 0)
    do(0)
    """
    program = Counted(tmp_path, source, **mortal)
    assert program.line() == "ready"
    program.say()
    assert program.ended() == 0
    errors = program.over()
    program.check(0, 1, spoilt=(2,))
    assert program.rows("SELECT refused, lost FROM run") == [(refused, 0)]
    assert ("1 chunk unreadable" in errors) == bool(refused)
