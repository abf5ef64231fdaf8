"""Joins a recording, in the process that is to be recorded.

If the environment names a ring, `site` calls `start`, by pytrace.pth and start_here. That happens
in the Python by which the launcher has replaced itself (program:PATH), and in every Python that it
starts (PATH). trace() calls `record` in the middle of a program. Every recorded program gets the
imports of this module, so there are next to none.
"""

import os
import sys

from . import _hook

VARIABLE = "PYTRACE_RING"
# before the path: this is the program itself, which must not run unrecorded
PROGRAM = "program:"
READY = 1  # enum dumper_state
WAIT_SECONDS = 60.0
ENOMEM = 12  # errno.ENOMEM, without importing errno into every program

# What Python calls the file of a program's code that is in none, by sys.argv[0].
MADE_UP_FILES = {"-c": "<string>", "-": "<stdin>", "": "<stdin>"}

LINES = ("", "own", "all")  # the setting, and the hook's number
C_CALLS = (*LINES, "exact")

told_of_forks = False


def parse_settings(settings: bytes) -> dict[str, str]:
    """The ring's NAME=value texts."""
    pairs = (os.fsdecode(pair).partition("=") for pair in settings.split(b"\0") if pair)
    return {name: value for name, _, value in pairs}


def show_path(path: str) -> str:
    """The path as it is stored: the form of csrc/common/path_text.h, as the hook has names of
    files."""
    as_bytes = path.encode("utf-8", "surrogateescape")
    return as_bytes.replace(b"\\x", b"\\x5cx").decode("utf-8", "backslashreplace")


def directory() -> str | None:
    """The current folder; None if it has been removed."""
    try:
        return show_path(os.getcwd())
    except OSError:
        return None


def split_command(words: list[str]) -> tuple[list[str], list[str]]:
    """Python's arguments as its own options and the program with its arguments:
    "-X dev -Bm app x" → "-X dev -B", "-m app x"."""
    options: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):  # --check-hash-based-pycs MODE
            options += [word, *rest[:1]]
            del rest[:1]
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter in "mc":
                return options + [word[:at]] * (at > 1), ["-" + word[at:], *rest]
            if letter in "XW":
                value = rest[:1] if at == len(word) - 1 else []
                del rest[: len(value)]
                options += [word, *value]
                break
        else:
            options.append(word)
    return options, rest


def is_pytrace(words: list[str]) -> bool:
    """True: these are Python's arguments for the command `pytrace`, which makes its own
    recording."""
    _, program = split_command(words)
    match program:
        case ["-m", module, *_]:
            return module.partition(".")[0] in ("pytracer", "pytrace")
        case [str(word), *_] if word.startswith("-m"):
            return word[2:].partition(".")[0] in ("pytracer", "pytrace")
        case [str(word), *_]:
            return os.path.basename(word) == "pytrace"
    return False


def native_paths(setting: str) -> list[str] | None:
    """What the hook wants to know of --native: paths; none: all of them; None: it is off."""
    if not setting:
        return None
    return [] if setting == "all" else [show_path(path) for path in setting.split(":")]


def begin(settings: dict[str, str], gate: bool) -> None:
    """Begins to record, in a process that has joined. gate: wait until `site` is done."""
    own = os.path.dirname(__file__)
    _hook.start(
        modules=[show_path(path) for path in settings["modules"].split(":") if path],
        exclude=[show_path(path) for path in settings["exclude"].split(":") if path],
        site_packages=settings["no_site_packages"] != "1",
        stdlib=settings["no_stdlib"] != "1",
        values=settings["no_values"] != "1",
        repr=settings["repr"] == "1",
        value_length=int(settings["value_length"]),
        attributes=int(settings["attributes"]),
        lines=LINES.index(settings["lines"]),
        c_calls=C_CALLS.index(settings["c_calls"]),
        native=native_paths(settings["native"]),
        cpu=settings["cpu"] == "1",
        redact=settings["redact"] or None,
        gate=gate,
        stdlib_path=show_path(os.path.dirname(os.__file__)),
        own_path=show_path(own),
        own_alias=show_path(os.path.join(os.path.dirname(own), "pytrace.py")),
        made_up_file=MADE_UP_FILES.get(sys.argv[0]) if sys.argv else None,
        directory=directory(),
        command=show_path("\0".join(sys.orig_argv)),
        python=sys.version.split()[0],
    )
    global told_of_forks
    if not told_of_forks:
        told_of_forks = True
        os.register_at_fork(after_in_child=_hook.forked)


def remove(path: str) -> None:
    """Removes a file that may be gone already."""
    try:
        os.unlink(path)
    except OSError:
        return


def record(ring: str, gate: bool) -> tuple[dict[str, str], str]:
    """Joins the recording, waits for its dumper and begins to record.

    Returns the settings, and the reason why nothing is recorded and the ring is gone; "": recording
    has begun. Raises OSError if the ring cannot be joined.
    """
    settings = parse_settings(_hook.join(ring, sys.executable))
    state, message = _hook.wait_ready(WAIT_SECONDS)
    if state != READY:
        remove(ring)
        return settings, message
    begin(settings, gate)
    return settings, ""


def records_children(settings: dict[str, str]) -> bool:
    """True: programs that this one starts are recorded."""
    return settings["no_children"] != "1"


def start_program(ring: str) -> None:
    """Joins the recording that the launcher has prepared, or ends the process with a message."""
    del os.environ[VARIABLE]
    try:
        settings, message = record(ring, gate=True)
        if records_children(settings):
            os.environ[VARIABLE] = ring
    except Exception as error:  # `site` would print it, and go on unrecorded
        message = f"pytrace: cannot join the recording: {error}"
        if isinstance(error, OSError) and error.errno == ENOMEM:  # ulimit -v
            remove(ring)
            message += "\n  ask for less with --buffer-size"
    if message:
        os.write(2, f"{message}\n".encode("utf-8", "replace"))
        os._exit(2)


def start_child(ring: str) -> None:
    """Joins the recording of the program that has started this one. If it cannot, the program runs
    unrecorded."""
    try:
        settings = parse_settings(_hook.join(ring, sys.executable))
        if _hook.wait_ready(0.0)[0] == READY:
            begin(settings, gate=True)
    except FileNotFoundError:  # the recording is over
        del os.environ[VARIABLE]
    except Exception:
        # The ring is another user's, version's or pid namespace's, or is full: no concern of a
        # child.
        return


def start() -> None:
    """Called at the start of Python if the environment has VARIABLE."""
    value = os.environ[VARIABLE]
    ring = value.removeprefix(PROGRAM)
    if ring != value:
        start_program(ring)
    elif not is_pytrace(sys.orig_argv[1:]):
        start_child(ring)
