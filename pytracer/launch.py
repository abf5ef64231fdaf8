"""`pytrace SCRIPT`: prepares everything, then becomes `python SCRIPT`.

    check ──► start the dumper ──► create the ring ──► exec the same Python ──► start.py joins
    (nothing has been made  (detached)      (/dev/shm)     (same pid, same terminal)
     when a check fails)

The program does not run here: the process replaces itself by its own Python, which the environment
tells to join. So sys.argv, sys.path, __main__, tracebacks and exit status are Python's own.
"""

import errno
import os
import stat
import sys

from .cli import RECORD, WORDS
from .config import settings
from .messages import say, why
from .option_values import show_size
from .options import UsageError, nearest, parse
from .recovery import SHARED_MEMORY, recover, temporary_folder
from .start import PROGRAM, VARIABLE, directory, show_path, split_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

APPLICATION_ID = 0x70747263
USER_VERSION = 2
SETTINGS_SIZE = 32768  # RING_SETTINGS_SIZE
COMMAND_SIZE = 2048  # characters of the command that are kept
DATABASE = b"SQLite format 3\0"  # its first bytes
DUMPER_FILES = 12  # the dumper's own descriptors: OWN_FILES of processes.py
TOO_LARGE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)  # ulimit -f, -v
SCRIPT_SIZE = 16 << 20  # the syntax of longer scripts is not checked beforehand
ZIP_END = b"PK\5\6"  # in the last 64 KiB and 22 bytes of every zip file


# ---- this Python ---------------------------------------------------------------------------------


def check_python() -> None:
    """Raises UsageError if pytrace cannot record under this Python."""
    version = sys.version.split()[0]
    if sys.implementation.name != "cpython":
        raise UsageError(f"{sys.implementation.name} is not supported; use CPython 3.11 to 3.15")
    if not (3, 11) <= sys.version_info[:2] <= (3, 15):
        raise UsageError(f"Python {version} is not supported; use CPython 3.11 to 3.15")
    if "t" in sys.abiflags:
        raise UsageError("free-threaded builds of Python are not supported; use the one without the `t`")
    if not sys.executable:
        raise UsageError("this Python does not know where its executable is (sys.executable)")
    try:
        sys.executable.encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the name of this Python's executable is not in UTF-8; install it elsewhere"
        ) from None


def check_installed() -> None:
    """Raises UsageError if the program's Python would not find pytrace.pth."""
    import site

    if sys.flags.no_site:
        raise UsageError("python -S cannot be recorded: pytrace is started by `site`")
    folders = site.getsitepackages()
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    if not any(os.path.exists(os.path.join(folder, "pytrace.pth")) for folder in folders):
        raise UsageError(
            f"pytrace.pth is in none of this Python's site-packages ({', '.join(folders)})\n"
            f"  install pytrace there: {sys.executable} -m pip install pytracer"
        )


def become_python(options: list[str], program: list[str]) -> "NoReturn":
    """Replaces this process by its own Python, which runs the program. Raises UsageError."""
    try:
        os.execv(sys.executable, [sys.executable, *options, *program])
    except OSError as error:
        raise UsageError(f"cannot run {sys.executable}: {error.strerror}") from None


# ---- the program ---------------------------------------------------------------------------------


def compiles(source: bytes | str, name: str) -> bool:
    """False: python would stop at a syntax error."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, name, "exec", dont_inherit=True)
    except IndentationError:
        # 3.14 dedents what follows -c: https://github.com/python/cpython/issues/103997
        return name == "<string>" and sys.version_info >= (3, 14)
    except (SyntaxError, ValueError):
        return False
    except (MemoryError, RecursionError):
        pass
    return True


def module_exists(name: str) -> bool:
    """False: `python -m` would not find the module. Only its top-level package is looked for,
    because a search inside would import the package."""
    saved = sys.path[:]
    try:
        if not sys.flags.safe_path:
            sys.path.insert(0, os.getcwd())
        top = name.partition(".")[0]
        return top in sys.modules or any(finder.find_spec(top, None) for finder in sys.meta_path)
    except Exception:
        return True  # a finder fails: python will report it
    finally:
        sys.path[:] = saved


def has_main(path: str) -> bool:
    """True: this folder or zip file has a __main__."""
    if os.path.isdir(path):
        return any(os.path.exists(os.path.join(path, "__main__" + suffix)) for suffix in (".py", ".pyc"))
    import zipimport

    try:
        return zipimport.zipimporter(path).find_spec("__main__") is not None
    except zipimport.ZipImportError:
        return False


def check_script(path: str, options: list[str]) -> bool:
    """False: python will refuse the script, and explain it better. Raises UsageError if it cannot
    run."""
    try:
        status = os.stat(path)
    except OSError as error:
        hint = ""
        if os.path.exists(path + ".py"):
            hint = f"; did you mean {path}.py?"
        elif like := nearest(path, [*WORDS]):
            hint = like
        elif path.replace(".", "").isidentifier():
            hint = f"\n  a module is run as: pytrace -m {path}"
        raise UsageError(f"cannot run {path!r}: {error.strerror}{hint}") from None
    kind = status.st_mode & 0o170000
    if kind == 0o040000:
        if not has_main(path):
            raise UsageError(f"cannot run {path!r}: there is no __main__.py in this folder")
        return True
    if kind != 0o100000:
        return True  # a pipe can be read only once
    try:
        with open(path, "rb") as file:
            source = file.read(SCRIPT_SIZE)
    except OSError as error:
        raise UsageError(f"cannot run {path!r}: {error.strerror}") from None
    if source.startswith(DATABASE):
        raise UsageError(f"cannot run {path!r}: it is a database; read it with: pytrace read {path}")
    if status.st_size > SCRIPT_SIZE:
        return True
    if ZIP_END in source[-65557:]:
        if not has_main(path):
            raise UsageError(f"cannot run {path!r}: there is no __main__.py in this zip file")
        return True
    from _frozen_importlib_external import MAGIC_NUMBER

    skips_line = any("x" in word and word[1] not in "-XW" for word in options if word[:1] == "-" != word)
    return skips_line or source.startswith(MAGIC_NUMBER[:2]) or compiles(source, path)


def check_program(program: list[str], options: list[str]) -> bool:
    """The same as check_script, for SCRIPT, "-m", "-c" and "-"."""
    word = program[0]
    match word[:2]:
        case "-m":
            return module_exists(word[2:] or program[1])
        case "-c":
            return compiles(word[2:] or program[1], "<string>")
        case "-":
            return True
    return check_script(word, options)


# ---- the database --------------------------------------------------------------------------------


def check_output(path: str) -> None:
    """Raises UsageError if a recording cannot go to this file; the dumper checks more. Creates and
    changes nothing."""
    folder = os.path.dirname(path)
    other = "choose another file with --output"
    if os.path.isdir(path):
        inside = os.path.join(path, "traces.sqlite")
        raise UsageError(f"{path} is a folder; name a file in it: --output {inside}")
    try:
        is_folder = stat.S_ISDIR(os.stat(folder).st_mode)
    except FileNotFoundError:
        raise UsageError(f"there is no folder {folder}; make it, or {other}") from None
    except OSError as error:
        raise UsageError(f"the folder {folder} cannot be used: {error.strerror}; {other}") from None
    if not is_folder:
        raise UsageError(f"{folder} is not a folder; {other}")
    if os.path.lexists(path) and not os.path.isfile(path):
        raise UsageError(f"{path} is not a regular file; {other}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the folder {folder} is not writable; {other}")
    if not os.path.lexists(path):
        return
    if not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{path} is not writable; {other}")
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {why(error)}") from None
    if not header:
        return
    if not header.startswith(b"SQLite format 3\0"):
        raise UsageError(f"{path} is not a database, and stays as it is; {other}")
    try:
        if os.stat(path + "-wal").st_size:
            return  # the write-ahead log may have a newer header
    except OSError:
        pass
    if int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise UsageError(f"{path} is another program's database, and stays as it is; {other}")
    if int.from_bytes(header[60:64], "big") > USER_VERSION:
        raise UsageError(f"{path} was made by a newer pytrace, and stays as it is; {other}")


def this_command() -> list[str]:
    """The command line of this process, which `pytrace` did not start."""
    return ["python", *sys.orig_argv[1:]]


# ---- the ring ------------------------------------------------------------------------------------


def quoted(word: str) -> str:
    """The word as a shell would take it."""
    safe = word and all(c.isalnum() or c in "@%+=:,./-_" for c in word) and word.isascii()
    return word if safe else "'" + word.replace("'", "'\"'\"'") + "'"


def ring_settings(chosen: dict[str, str], name: str, command: list[str]) -> bytes:
    """The settings for the program and the dumper: the options, and the facts of the run. `chosen`
    may have facts, too."""
    line = " ".join(quoted(word) for word in command)
    facts = {
        "recording": name,
        "command": show_path(line)[:COMMAND_SIZE],
        "directory": directory() or "",
        "python": sys.version.split()[0],
        "pid": str(os.getpid()),
    }
    packed = b"".join(os.fsencode(f"{key}={value}\0") for key, value in (chosen | facts).items())
    if len(packed) > SETTINGS_SIZE:
        raise UsageError("--modules, --exclude and --redact are too long together: they have 24 KB")
    return packed


def start_dumper(ring: str) -> None:
    """Starts a dumper, which waits a while for the ring to be made. Raises UsageError."""
    from . import _hook

    try:
        _hook.spawn_dumper(sys.executable, ring)
    except OSError as error:
        raise UsageError(f"cannot start the process that saves the recording: {why(error)}") from None


def create_ring(chosen: dict[str, str], command: list[str]) -> str:
    """Creates the recording's ring, with a dumper, and returns its path. Raises UsageError, and
    leaves nothing behind.

    The dumper is started first, because its start takes as long as clearing the memory. If no ring
    comes, the dumper ends by itself.
    """
    from . import _hook

    name = f"pytrace-{os.getuid()}-{os.getpid()}-{os.urandom(8).hex()}"
    packed = ring_settings(chosen, name, command)
    size = int(chosen["buffer_size"])
    tried: list[str] = []
    full = False
    for folder in (SHARED_MEMORY, temporary_folder()):
        path = os.path.join(folder, name)
        start_dumper(path)
        try:
            _hook.create(path, size, packed)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise UsageError(f"cannot make the buffer: {why(error)}") from None
            tried.append(f"in {folder} ({error.strerror})")
            full = full or error.errno in TOO_LARGE
            continue
        if tried and chosen["quiet"] != "1":
            say(f"the buffer of {show_size(size)} cannot be made {tried[0]}; using {folder}, slower")
        return path
    way = "make room, or ask for less with --buffer-size" if full else "TMPDIR names another folder for it"
    where = ", nor ".join(tried)
    raise UsageError(f"the buffer of {show_size(size)} cannot be made {where}\n  {way}")


def check_limits() -> None:
    """Raises UsageError if the system's limits are too low for a dumper, which raises its own soft
    limits."""
    import resource

    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < DUMPER_FILES:
        raise UsageError(
            f"no more than {files} files may be open at once (ulimit -n), and saving a recording"
            f" takes {DUMPER_FILES}\n"
            "  in a shell whose limit has not been lowered: ulimit -n 1024"
        )
    try:
        os.stat("/proc/self/stat")
    except OSError as error:
        raise UsageError(
            f"/proc cannot be read ({error.strerror}), by which processes are told apart\n"
            "  mount it: mount -t proc proc /proc"
        ) from None


def check_kernel(chosen: dict[str, str]) -> None:
    """Says why there will be no kernel events, or not all, and what to do; the program runs without
    them. Raises UsageError for events that this kernel does not have."""
    from .dumper import tracefs

    try:
        tracefs.events(tracefs.find(), chosen["kernel"].split(","))
    except tracefs.UnknownEvent as problem:
        raise UsageError(f"--kernel: {problem}") from None
    except tracefs.Unavailable as problem:
        chosen["kernel"], message = without_tracefs(chosen["kernel"], str(problem))
        say(message)


def without_tracefs(events: str, why: str) -> tuple[str, str]:
    """The events that can be recorded nevertheless, and a message that says what is missing."""
    from .dumper import perf

    left = perf.available(events.split(","))
    if not left:
        return "", f"kernel events are not recorded: {why}"
    if problem := perf.why_not():
        return "", f"kernel events are not recorded: {why}; {problem}"
    shown = " and ".join({perf.SWITCH: "context switches", perf.FAULT: "page faults"}[name] for name in left)
    return ",".join(left), f"of kernel events only {shown} of user space are recorded: {why}"


# ---- all of it -----------------------------------------------------------------------------------


def prepare(chosen: dict[str, str], command: list[str]) -> str:
    """Creates the ring and starts its dumper; returns the ring's path. Raises UsageError, and
    leaves nothing behind."""
    check_limits()
    check_output(chosen["output"])
    if chosen["kernel"]:
        check_kernel(chosen)
    recover(wait=False)
    return create_ring(chosen, command)


def launch(arguments: list[str]) -> "NoReturn":
    """Runs the program that the command line names, recorded. Raises UsageError."""
    check_python()
    given, program = parse(RECORD, arguments)
    if not program:
        raise UsageError("there is no program to record; pytrace --help shows how")
    if program[0] in WORDS:
        word = program[0]
        raise UsageError(f"record options do not go with {word!r}; a script of that name is run as ./{word}")
    chosen = settings(given)
    check_installed()
    options, _ = split_command(sys.orig_argv[1:])
    if not check_program(program, options):
        become_python(options, program)
    ring = prepare(chosen, ["python", *options, *program])
    os.environ[VARIABLE] = PROGRAM + ring
    try:
        become_python(options, program)
    except UsageError:
        os.unlink(ring)
        raise
