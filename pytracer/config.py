"""The options of a recording: each once, in OPTIONS; everything else here only walks that table.

An option comes from the command line, else from the environment (PYTRACE_NAME), else from
`[tool.pytrace]` in ./pyproject.toml, else its default. Every value is a text in one normal form
(a size: bytes in decimal; a switch: "0" or "1"; paths: absolute, joined by ":"), because that is how
it travels to the program and the dumper in the ring's settings.

Imported by the launcher, whose time the user waits for: modules that are slow to import are
imported where they are needed.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WORDS = ("read", "print", "sql", "info")
FILE = "pyproject.toml"
SECTION = "tool.pytrace"

KIB = 1024
UNITS = {"": 1, "B": 1}
for _power, _letter in enumerate("KMGT", 1):
    UNITS |= {_letter: KIB**_power, _letter + "IB": KIB**_power, _letter + "B": 1000**_power}

MIN_OUTPUT = 10**6
MIN_BUFFER = 4 * 64 * KIB  # RING_MIN_CHUNKS of RING_MIN_CHUNK_SIZE
MAX_VALUE_LENGTH = 6000  # VALUE_LENGTH_MAX

REDACT = (
    "passw(or)?d|passphrase|secret|token|(api|access|private)[-_ ]?key|credential|authorization|"
    "(^|[-_])cookies?$"
)


class Mistake(Exception):
    """Something the user can mend. Its text says what, where, and how to go on."""


def say(text: str) -> None:
    """A line to standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"pytrace: {text}\n")


# ---- readers: from what the user wrote to the normal form; ValueError says what is expected -------


def show_size(size: int) -> str:
    """Bytes for a person: "64 MiB", "1.5 KiB", "17 bytes"."""
    for unit, letter in ((KIB**4, "T"), (KIB**3, "G"), (KIB**2, "M"), (KIB, "K")):
        if size >= unit:
            return f"{size / unit:.1f}".removesuffix(".0") + f" {letter}iB"
    return f"{size} bytes"


def read_size(text: str) -> int:
    """Bytes of "64MiB" and "512k" (powers of 1024), "200MB" (of 1000), "4096"."""
    number = text.strip().rstrip("BKMGTIbkmgti ")
    unit = text.strip()[len(number) :].strip().upper()
    try:
        if unit not in UNITS or not number.replace(".", "", 1).isdecimal():
            raise ValueError
        return int(float(number) * UNITS[unit]) if "." in number else int(number) * UNITS[unit]
    except ValueError:
        raise ValueError("a size is expected, such as 64MiB, 200MB or 1GiB") from None


def read_output_size(text: str) -> str:
    size = read_size(text)
    if size < MIN_OUTPUT:
        raise ValueError("the least is 1 MB: less has no room for a recording")
    if size >= 1 << 47:
        raise ValueError("that is more than a database can hold")
    return str(size)


def read_buffer_size(text: str) -> str:
    size = read_size(text)
    if size < MIN_BUFFER:
        raise ValueError(f"the least is {show_size(MIN_BUFFER)}: four parts of 64 KiB")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if size > memory // 2:
        raise ValueError(
            f"that is more than half of this machine's memory ({show_size(memory)}); the default is 64MiB"
        )
    return str(size)


def read_count(text: str) -> str:
    if not text.strip().isdecimal():
        raise ValueError("a number is expected; 0 is no limit")
    if int(text) >= 1 << 62:
        raise ValueError("that is too large a number; 0 is no limit")
    return str(int(text))


def read_value_length(text: str) -> str:
    if not text.strip().isdecimal() or not 1 <= int(text) <= MAX_VALUE_LENGTH:
        raise ValueError(f"a number of characters is expected, from 1 to {MAX_VALUE_LENGTH}")
    return str(int(text))


def read_switch(text: str) -> str:
    match text.strip().lower():
        case "1" | "true" | "yes" | "on":
            return "1"
        case "" | "0" | "false" | "no" | "off":
            return "0"
    raise ValueError("1 or 0 is expected")


def read_output(text: str) -> str:
    if not text:
        raise ValueError("a file name is expected")
    try:
        return os.path.abspath(text)
    except OSError:
        raise ValueError("the current folder has been removed; give the whole path") from None


def read_paths(text: str) -> str:
    paths = [os.path.abspath(os.path.expanduser(path)) for path in text.split(":") if path]
    for path in paths:
        if not os.path.exists(path):
            raise ValueError(f"there is no {path}; folders and files are expected, joined by a colon")
    # the same by its real name: a module knows the name by which it was found
    both = dict.fromkeys(name for path in paths for name in (path, os.path.realpath(path)))
    return ":".join(both)


def read_pattern(text: str) -> str:
    from ._hook import check_pattern

    try:
        problem = check_pattern(text) if text else None
    except UnicodeEncodeError:
        problem = "it is not in UTF-8"
    if problem:
        raise ValueError(f"a POSIX extended regular expression is expected: {problem}")
    return text


# ---- the table ------------------------------------------------------------------------------------


class Option:
    """One option. Its setting, environment variable and file key all follow from `flag`."""

    __slots__ = ("default", "flag", "help", "metavar", "read", "short")

    def __init__(
        self, flag: str, short: str, metavar: str, default: str, read: "Callable[[str], str]", help: str
    ) -> None:
        self.flag = flag
        self.short = short
        self.metavar = metavar  # "": a switch
        self.default = default
        self.read = read
        self.help = help

    @property
    def key(self) -> str:
        """Under [tool.pytrace]: "max-size"."""
        return self.flag[2:]

    @property
    def name(self) -> str:
        """In the settings, and as a keyword of trace(): "max_size"."""
        return self.key.replace("-", "_")

    @property
    def variables(self) -> tuple[str, ...]:
        """In the environment, the first that is set."""
        own = "PYTRACE_" + self.name.upper()
        return (own, "TRACE_MODULES") if self.name == "modules" else (own,)


GROUPS = {
    "Where to": (
        Option("--output", "-o", "PATH", "traces.sqlite", read_output, "the database"),
        Option("--max-size", "", "SIZE", "1GiB", read_output_size, "its size: the oldest events go first"),
        Option("--max-traces", "", "N", "0", read_count, "events to keep; 0: no limit"),
        Option("--buffer-size", "", "SIZE", "64MiB", read_buffer_size, "memory between program and database"),
        Option("--quiet", "-q", "", "0", read_switch, "no summary at the end"),
    ),
    "What": (
        Option("--modules", "", "PATH:PATH", "", read_paths, "record only these folders and files"),
        Option("--exclude", "", "PATH:PATH", "", read_paths, "leave these folders and files out"),
        Option("--no-site-packages", "", "", "0", read_switch, "leave installed packages out"),
        Option("--no-stdlib", "", "", "0", read_switch, "leave Python's own library out"),
        Option("--no-children", "", "", "0", read_switch, "leave processes out that the program starts"),
    ),
    "Values": (
        Option("--no-values", "", "", "0", read_switch, "record calls without arguments and return values"),
        Option("--repr", "", "", "0", read_switch, "ask objects for their repr(), which runs their code"),
        Option("--value-length", "", "N", "200", read_value_length, "characters of a value to keep"),
        Option("--redact", "", "REGEX", REDACT, read_pattern, "names of arguments whose values are not kept"),
    ),
}
OPTIONS = tuple(option for group in GROUPS.values() for option in group)


# ---- layers ---------------------------------------------------------------------------------------


def convert(option: Option, value: str, where: str) -> str:
    """The value's normal form. Raises Mistake, which names `where` it came from."""
    try:
        if "\0" in value:
            raise ValueError("it has a NUL character in it")
        return option.read(value)
    except ValueError as error:
        raise Mistake(f"{where}: {error}") from None


def as_text(value: object) -> str:
    """A value of TOML, or of a keyword of trace(), as on the command line."""
    if isinstance(value, (list, tuple)):
        return ":".join(as_text(item) for item in value)
    if isinstance(value, bool):
        return str(int(value))
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def from_mapping(given: "Mapping[str, object]", where: str) -> dict[str, str]:
    """Settings by the names of options (with "-" or "_")."""
    by_name = {option.name: option for option in OPTIONS}
    settings = {}
    for key, value in given.items():
        option = by_name.get(key.replace("-", "_"))
        if option is None:
            raise Mistake(f"{where}: there is no option {key!r}{nearest(key, [o.key for o in OPTIONS])}")
        settings[option.name] = convert(option, as_text(value), f"{where}: {key} = {value!r}")
    return settings


def is_trusted(path: str) -> bool:
    """False: somebody has put this file into a folder that is not theirs, such as /tmp."""
    trusted = {os.geteuid(), 0, os.stat(os.path.dirname(path) or ".").st_uid}
    return os.lstat(path).st_uid in trusted and os.stat(path).st_uid in trusted


def from_file(path: str = FILE) -> dict[str, str]:
    """Settings of [tool.pytrace]; none where there is no such file or section, or where it is not trusted."""
    try:
        if not os.path.isfile(path):  # nothing that never ends
            return {}
        with open(path, "rb") as file:
            content = file.read()
        trusted = is_trusted(path)
    except OSError:
        return {}
    if SECTION.encode() not in content:
        return {}
    if not trusted:
        say(f"{path} was put here by another user: its [{SECTION}] is left aside")
        return {}
    import tomllib

    try:
        tool = tomllib.loads(content.decode()).get("tool")
    except ValueError as error:
        raise Mistake(f"{path}: {error}") from None
    section = tool.get("pytrace", {}) if isinstance(tool, dict) else {}
    if not isinstance(section, dict):
        raise Mistake(f"{path}: {SECTION} is no table; write [{SECTION}]")
    return from_mapping(section, f"{path}: [{SECTION}]")


def from_environment(environment: "Mapping[str, str]") -> dict[str, str]:
    settings = {}
    for option in OPTIONS:
        for variable in option.variables:
            if variable in environment:
                value = environment[variable]
                settings[option.name] = convert(option, value, f"{variable}={value}")
                break
    return settings


def settings(given: dict[str, str]) -> dict[str, str]:
    """All settings, by name: those given (normal forms) over environment over file over defaults."""
    layers = from_file() | from_environment(os.environ) | given
    for option in OPTIONS:
        if option.name not in layers:
            layers[option.name] = convert(option, option.default, option.flag)
    return layers


# ---- the command line -----------------------------------------------------------------------------


def nearest(word: str, words: list[str]) -> str:
    """What to add to a complaint about a word that is unknown: the nearest known one, if any is near."""
    import difflib

    found = difflib.get_close_matches(word, words, 1)
    return f"; did you mean {found[0]}?" if found else ""


def parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The settings given on the command line, and the program: the words that python would take,
    from SCRIPT, "-m", "-c" or "-" on, as they are. Raises Mistake; --help and --version exit."""
    by_flag = {flag: option for option in OPTIONS for flag in (option.flag, option.short) if flag}
    given: dict[str, str] = {}
    rest = list(arguments)
    while rest:
        word = rest[0]
        if word == "--":
            return given, rest[1:]
        if not word.startswith("-") or word == "-":
            return given, rest
        if word in ("-h", "--help"):
            sys.stdout.write(help_text())
            raise SystemExit(0)
        if word in ("-V", "--version"):
            sys.stdout.write(version_text())
            raise SystemExit(0)
        if word[:2] in ("-m", "-c"):
            if len(word) == 2 and len(rest) == 1:
                raise Mistake(f"{word}: {'a module' if word == '-m' else 'code'} is expected after it")
            return given, rest
        del rest[0]
        flag, equals, value = word.partition("=")
        if not word.startswith("--"):  # -oPATH, -qo PATH
            flag, value, equals = word[:2], word[2:], "" if len(word) == 2 else "="
        option = by_flag.get(flag)
        if option is None:
            raise Mistake(
                f"there is no option {flag}{nearest(flag, list(by_flag))}\n"
                "  pytrace --help lists them; options of the program go behind its name"
            )
        if option.metavar:
            if not equals and not rest:
                raise Mistake(f"{flag}: {option.metavar} is expected after it")
            value = value if equals else rest.pop(0)
            given[option.name] = convert(option, value, f"{flag} {value}")
        else:
            if equals and word.startswith("--"):
                raise Mistake(f"{flag} takes no value")
            given[option.name] = "1"
            if equals:
                rest.insert(0, "-" + value)
    return given, rest


USAGE = """\
Usage: pytrace [OPTIONS] SCRIPT [ARGS...]     run a program and record every call of it
       pytrace [OPTIONS] -m MODULE [ARGS...]
       pytrace [OPTIONS] -c CODE [ARGS...]
       pytrace                                read ./traces.sqlite on a screen, at any time
       pytrace read [DB] [OPTIONS]            the same with another database
       pytrace print [DB] [OPTIONS]           its events as text, JSON or CSV
       pytrace sql [DB] [QUERY]               questions in SQL
       pytrace info [DB] [OPTIONS]            its recordings

The program runs as under python, and every call, argument, return value and exception of it goes
to traces.sqlite, to be read while it runs or later.

  pytrace app.py --port 8000                  what is behind app.py belongs to app.py
  pytrace -o /tmp/tests.sqlite -m pytest      a module
  pytrace --modules src:tests app.py          only the code of these folders
  pytrace print --format json | head          what has been recorded, oldest first
"""

EPILOGUE = f"""\
Each of them can also be set in the environment (--max-size as PYTRACE_MAX_SIZE, --modules as
TRACE_MODULES too, a switch as 1), and in ./{FILE}. The command line comes first, then the
environment, then the file:

  [{SECTION}]
  max-size = "200MB"
  no-stdlib = true
"""


def help_text() -> str:
    """--help."""
    lines = [USAGE]
    for title, group in GROUPS.items():
        lines.append(f"{title}:")
        for option in group:
            names = f"{option.short}, {option.flag}" if option.short else option.flag
            shown = option.default if option.metavar and option.default not in ("", "0", REDACT) else ""
            default = f" ({shown})" if shown else ""
            lines.append(f"  {names + ' ' + option.metavar:<24} {option.help}{default}")
        lines.append("")
    lines += [
        "Others:",
        f"  {'-h, --help':<24} this text",
        f"  {'-V, --version':<24} the versions of pytrace and Python",
        "",
        EPILOGUE,
    ]
    return "\n".join(lines)


def version_text() -> str:
    """--version."""
    from importlib.metadata import version

    return f"pytrace {version('pytracer')}, Python {sys.version.split()[0]}\n"
