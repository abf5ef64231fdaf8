"""Options and commands as objects; cli.py lists them. The parser, `--help`, the completion of
shells (shell_completion.py), the manual page (manual.py) and the settings (config.py) are all made
of them.

The user waits for the launcher, which imports this module. So slow modules are imported inside of
functions.
"""

from .messages import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class UsageError(Exception):
    """A mistake that the user can mend. Its text says what is wrong, where, and how to go on."""


class Option:
    """One option of a command.

    metavar: the name of its value; "": a switch. default: as the user would write it; None: none.
    read: gives the value of a written text, or raises ValueError. choices: all possible texts.
    alone: the text that the flag alone stands for; None: a value has to follow. accepts: whether
    a word behind such a flag is its value; the choices are. files: whether files, or folders, are
    expected. without: flags that exclude this one. act: replaces the command: it makes a text to
    print from the command and the value.
    """

    __slots__ = (
        "accepts",
        "act",
        "alone",
        "choices",
        "default",
        "files",
        "flag",
        "help",
        "metavar",
        "read",
        "short",
        "without",
    )

    def __init__(
        self,
        flag: str,
        short: str,
        metavar: str,
        default: str | None,
        read: "Callable[[str], Any]",
        help: str,
        *,
        choices: tuple[str, ...] = (),
        alone: str | None = None,
        accepts: "Callable[[str], bool]" = lambda word: False,
        files: bool = False,
        without: tuple[str, ...] = (),
        act: "Callable[[CliCommand, Any], str] | None" = None,
    ) -> None:
        self.flag, self.short, self.metavar = flag, short, metavar
        self.default, self.read, self.help = default, read, help
        self.choices, self.alone, self.files, self.without, self.act = choices, alone, files, without, act
        self.accepts = accepts

    @property
    def key(self) -> str:
        """The key under [tool.pytrace]: "max-size"."""
        return self.flag[2:]

    @property
    def name(self) -> str:
        """The name in the settings, and the keyword of trace(): "max_size"."""
        return self.key.replace("-", "_")

    @property
    def variables(self) -> tuple[str, ...]:
        """Names in the environment; the first that is set counts."""
        own = "PYTRACE_" + self.name.upper()
        return (own, "TRACE_MODULES") if self.name == "modules" else (own,)

    @property
    def flags(self) -> tuple[str, ...]:
        """`-o`, `--output`."""
        return (self.short, self.flag) if self.short else (self.flag,)

    def takes(self, word: str) -> bool:
        """Whether a word behind the flag, which could stand alone, is its value."""
        return word in self.choices or self.accepts(word)

    def convert(self, written: str, where: str) -> "Any":
        """The value of a written text. Raises UsageError, which says `where` the text was."""
        try:
            if "\0" in written:
                raise ValueError("it has a NUL character in it")
            if self.choices and self.alone is None and written not in self.choices:
                raise ValueError(f"one of {', '.join(self.choices)} is expected")
            return self.read(written)
        except ValueError as error:
            raise UsageError(f"{where}: {error}") from None

    def typed(self, value: str) -> str:
        """A setting's value in the form that people write: a size as a multiple of its largest
        unit."""
        if self.metavar != "SIZE" or not value.isdecimal():
            return value
        from .option_values import read_size, show_size

        size = show_size(int(value)).replace(" ", "")
        return size if size.endswith("iB") and read_size(size) == int(value) else value


class Argument:
    """A word on the command line without a flag."""

    __slots__ = ("default", "files", "help", "metavar", "name")

    def __init__(
        self, name: str, metavar: str, default: str | None, help: str, *, files: bool = False
    ) -> None:
        self.name, self.metavar, self.default, self.help, self.files = name, metavar, default, help, files


class CliCommand:
    """`pytrace NAME`. Without a name it records a program; the program's words follow the options.

    forms: ways to write it, and their effects. groups: its options, by their headings. about: its
    description, in some sentences. more: makes the text below the options in its help and the
    manual.
    """

    __slots__ = ("about", "arguments", "forms", "groups", "more", "name")

    def __init__(
        self,
        name: str,
        forms: tuple[tuple[str, str], ...],
        about: str,
        groups: dict[str, tuple[Option, ...]],
        arguments: tuple[Argument, ...] = (),
        more: "Callable[[], str]" = lambda: "",
    ) -> None:
        self.name, self.forms, self.about = name, forms, about
        self.groups, self.arguments, self.more = groups, arguments, more

    @property
    def options(self) -> "Iterator[Option]":
        return (option for group in self.groups.values() for option in group)


def nearest(word: str, words: list[str]) -> str:
    """A hint for a complaint about an unknown word: the nearest known one, if any is near."""
    import difflib

    found = difflib.get_close_matches(word, words, 1)
    return f"; did you mean {found[0]}?" if found else ""


def parse(command: CliCommand, words: list[str]) -> "tuple[dict[str, Any], list[str]]":
    """The values of the options that are given, by their names, and the arguments. For a recording
    the arguments are Python's words, from SCRIPT, "-m", "-c" or "-" on, unchanged.

    Raises UsageError; an option that only prints something exits.
    """
    by_flag = {flag: option for option in command.options for flag in option.flags}
    given: dict[str, Any] = {}
    arguments: list[str] = []
    rest = list(words)
    while rest:
        word = rest[0]
        if word == "--":
            return given, [*arguments, *rest[1:]]
        if not command.name and (word[:1] != "-" or word == "-" or word[:2] in ("-m", "-c")):
            if word in ("-m", "-c") and len(rest) == 1:
                raise UsageError(f"{word}: {'a module' if word == '-m' else 'code'} is expected after it")
            return given, rest
        flag, equals, value = word.partition("=")
        if word[:1] == "-" and word[:2] != "--":  # -oPATH, -qo PATH
            flag, value, equals = word[:2], word[2:], "" if len(word) == 2 else "="
        del rest[0]
        option = by_flag.get(flag)
        if option is None:
            if command.name and (word[:1] != "-" or word == "-" or len(word.split()) > 1):
                arguments.append(word)
                continue
            hint = "; options of the program go behind its name" * (not command.name)
            name = f"pytrace {command.name}".rstrip()
            raise UsageError(
                f"there is no option {flag}{nearest(flag, [*by_flag])}\n  {name} --help lists them{hint}"
            )
        if option.alone is not None and not equals:
            value = rest.pop(0) if rest and option.takes(rest[0]) else option.alone
            given[option.name] = option.convert(value, flag)
        elif option.metavar:
            if not equals and (not rest or rest[0].partition("=")[0] in by_flag):
                raise UsageError(f"{flag}: {option.metavar} is expected after it")
            value = value if equals else rest.pop(0)
            given[option.name] = option.convert(value, f"{flag} {_short(value)}")
        else:
            if equals and word.startswith("--"):
                raise UsageError(f"{flag} takes no value")
            given[option.name] = option.convert("1", flag)
            if equals:
                rest.insert(0, "-" + value)
        if option.act:
            try:
                show(option.act(command, given[option.name]))
            except OSError as error:
                raise UsageError(f"{flag}: cannot be written: {error.strerror}") from None
            raise SystemExit(0)
    _check_together(command, given)
    return given, arguments


def _short(value: str) -> str:
    return value if len(value) <= 100 else f"{value[:100]}…"


def _check_together(command: CliCommand, given: "dict[str, Any]") -> None:
    for option in command.options:
        for other in option.without:
            if option.name in given and other[2:].replace("-", "_") in given:
                raise UsageError(f"{option.flag} does not go with {other}: give one of them")


def values(command: CliCommand, words: list[str]) -> "dict[str, Any]":
    """The values of all options and arguments; the defaults stand for missing ones. Raises
    UsageError; an option that only prints something exits."""
    given, arguments = parse(command, words)
    if len(arguments) > len(command.arguments):
        extra = arguments[len(command.arguments)]
        raise UsageError(f"{extra!r} is one argument too many\n  pytrace {command.name} --help shows how")
    found: dict[str, Any] = {}
    for option in command.options:
        if not option.act:
            absent = False if not option.metavar else None
            found[option.name] = absent if option.default is None else option.read(option.default)
    for number, argument in enumerate(command.arguments):
        found[argument.name] = arguments[number] if number < len(arguments) else argument.default
    return found | given


# ---- help ----------------------------------------------------------------------------------------


def rows(command: CliCommand) -> "Iterator[tuple[str, list[tuple[str, str]]]]":
    """Headings, and below each the ways to write its options, with their meanings."""
    if command.arguments:
        yield "Arguments", [(each.metavar, each.help) for each in command.arguments]
    for title, group in command.groups.items():
        yield title, [(written(option), described(option)) for option in group]


def written(option: Option) -> str:
    """`-o, --output PATH`; `--lines [own|all]`."""
    value = option.metavar if option.alone is None else f"[{option.metavar}]"
    return f"{', '.join(option.flags)} {value}".rstrip()


def described(option: Option) -> str:
    """The help, with the default if that says something."""
    shown = option.default if option.metavar else None
    return f"{option.help} ({shown})" if shown not in (None, "", "0") and len(shown) < 30 else option.help


def help_text(command: CliCommand, commands: tuple[CliCommand, ...]) -> str:
    """--help of a command; that of a recording shows the forms of all commands."""
    shown = commands if not command.name else (command,)
    forms = [form for each in shown for form in each.forms]
    width = max(len(form) for form, _ in forms) + 2
    lines = [f"       {form:<{width}}{what * (len(forms) > 1)}".rstrip() for form, what in forms]
    lines[0] = "Usage:" + lines[0][6:]
    lines += ["", command.about, ""]
    tables = list(rows(command))
    width = max(len(left) for _, table in tables for left, _ in table if len(left) < 28) + 1
    for title, table in tables:
        lines.append(f"{title}:")
        lines += [f"  {left:<{width}} {right}" for left, right in table]
        lines.append("")
    return "\n".join([*lines, command.more()]).rstrip() + "\n"
