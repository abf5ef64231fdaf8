"""The commands and their options: each stands once, in COMMANDS; all other code reads the table."""

import sys

from .option_values import (
    KERNEL_ALONE,
    KERNEL_GROUPS,
    are_kernel_events,
    are_shared_objects,
    read_attributes,
    read_buffer_size,
    read_c_calls,
    read_count,
    read_event,
    read_event_count,
    read_kernel,
    read_lines,
    read_native,
    read_output,
    read_output_size,
    read_paths,
    read_pattern,
    read_pids,
    read_row_count,
    read_run,
    read_runs,
    read_switch,
    read_text,
    read_value_length,
)
from .options import Argument, CliCommand, Option, help_text

REDACT = (
    "passw(or)?d|passphrase|secret|token|(api|access|private)[-_ ]?key|credential|authorization|"
    "(^|[-_])cookies?$"
)
FILE = "pyproject.toml"
SECTION = "tool.pytrace"

# The environment and the file can have these, too (config.py).
SETTINGS = {
    "Where to": (
        Option("--output", "-o", "PATH", "traces.sqlite", read_output, "the database", files=True),
        Option("--max-size", "", "SIZE", "1GiB", read_output_size, "its size: the oldest events go first"),
        Option("--max-traces", "", "N", "0", read_count, "events to keep; 0: no limit"),
        Option("--buffer-size", "", "SIZE", "64MiB", read_buffer_size, "memory between program and database"),
        Option("--quiet", "-q", "", "0", read_switch, "no summary at the end, only what went wrong"),
    ),
    "What": (
        Option(
            "--modules", "", "PATH:PATH", "", read_paths, "record only these folders and files", files=True
        ),
        Option("--exclude", "", "PATH:PATH", "", read_paths, "leave these folders and files out", files=True),
        Option("--no-site-packages", "", "", "0", read_switch, "leave installed packages out"),
        Option("--no-stdlib", "", "", "0", read_switch, "leave Python's own library out"),
        Option("--no-children", "", "", "0", read_switch, "leave processes out that the program starts"),
        Option(
            "--lines",
            "",
            "own|all",
            "",
            read_lines,
            "also each line of your code, or of all, and variables",
            choices=("own", "all"),
            alone="own",
        ),
        Option(
            "--c-calls",
            "",
            "own|all|exact",
            "",
            read_c_calls,
            "also functions in C that your code calls; all: that any code calls",
            choices=("own", "all", "exact"),
            alone="own",
        ),
        Option(
            "--kernel",
            "",
            "GROUPS",
            "",
            read_kernel,
            "also kernel events: sched, syscalls, faults, signals, system:event",
            choices=KERNEL_GROUPS,
            alone=KERNEL_ALONE,
            accepts=are_kernel_events,
        ),
        Option("--cpu", "", "", "0", read_switch, "the processor of each event (on with --kernel)"),
        Option(
            "--native",
            "",
            "PATH:PATH",
            "",
            read_native,
            "also functions compiled with -finstrument-functions",
            alone="all",
            accepts=are_shared_objects,
            files=True,
        ),
        Option(
            "--no-sources", "", "", "0", read_switch, "with --lines, do not store the source text of files"
        ),
    ),
    "Values": (
        Option("--no-values", "", "", "0", read_switch, "record calls without arguments and return values"),
        Option("--repr", "", "", "0", read_switch, "ask objects for their repr(), which runs their code"),
        Option("--value-length", "", "N", "200", read_value_length, "characters of a value to keep"),
        Option(
            "--attributes", "", "N", "", read_attributes, "attributes of objects to keep (0; with --lines 8)"
        ),
        Option("--redact", "", "REGEX", REDACT, read_pattern, "names of arguments whose values are not kept"),
    ),
}
OPTIONS = tuple(option for group in SETTINGS.values() for option in group)


# ---- options that only print something -----------------------------------------------------------


def _help(command: CliCommand, _: object) -> str:
    return help_text(command, COMMANDS)


def _version(command: CliCommand, _: object) -> str:
    from importlib.metadata import version

    return f"pytrace {version('pytracer')}, Python {sys.version.split()[0]}\n"


def _complete(command: CliCommand, shell: str) -> str:
    from .shell_completion import SCRIPTS

    return SCRIPTS[shell](COMMANDS)


_HELP = Option("--help", "-h", "", None, bool, "this text", act=_help)
_SHELLS = ("bash", "zsh", "fish")


# ---- what several commands have ------------------------------------------------------------------


def _format(*choices: str) -> Option:
    return Option("--format", "", "|".join(choices), "text", read_text, "how it is written", choices=choices)


_DATABASE = Argument("database", "DB", "traces.sqlite", "the database (traces.sqlite)", files=True)
_FILTER = Option("--filter", "", "F", "", read_text, "only events that meet it: docs/filters.md")
_RUN = Option("--run", "", "N|all", "newest", read_run, "which recording")


# ---- the commands --------------------------------------------------------------------------------


def _layers() -> str:
    return f"""\
All but the last three can also be set in the environment (--max-size as PYTRACE_MAX_SIZE,
--modules as TRACE_MODULES too, a switch as 1), and in ./{FILE}. The command line comes
first, then the environment, then the file:

  [{SECTION}]
  max-size = "200MB"
  no-stdlib = true

Completion in bash: eval "$(pytrace --complete bash)"; zsh and fish likewise."""


def _tables() -> str:
    from .reader.sql_tables import tables_and_examples

    return tables_and_examples()


RECORD = CliCommand(
    "",
    (
        ("pytrace [OPTIONS] SCRIPT [ARGS...]", "run a program and record every call of it"),
        ("pytrace [OPTIONS] -m MODULE [ARGS...]", ""),
        ("pytrace [OPTIONS] -c CODE [ARGS...]", ""),
        ("pytrace", "read ./traces.sqlite on a screen, at any time"),
    ),
    """\
The program runs as under python, and every call, argument, return value and exception of it goes
to traces.sqlite, to be read while it runs or later.

  pytrace app.py --port 8000                  what is behind app.py belongs to app.py
  pytrace -o /tmp/tests.sqlite -m pytest      a module
  pytrace --modules src:tests app.py          only the code of these folders
  pytrace print --format json | head          what has been recorded, oldest first""",
    SETTINGS
    | {
        "Others": (
            _HELP,
            Option(
                "--version", "-V", "", None, bool, "the versions of pytrace and Python", act=_version
            ),
            Option(
                "--complete", "", "|".join(_SHELLS), None, read_text, "a script by which a shell completes",
                choices=_SHELLS, act=_complete,
            ),
        )
    },
    more=_layers,
)  # fmt: skip
READ = CliCommand(
    "read",
    (("pytrace read [DB] [OPTIONS]", "the same with another database"),),
    "Read what was recorded, like less: h shows the keys. Without a terminal it is printed.",
    {"Options": (_FILTER, _RUN, _HELP)},
    (_DATABASE,),
)
PRINT = CliCommand(
    "print",
    (("pytrace print [DB] [OPTIONS]", "its events as text, JSON or CSV"),),
    "Print what was recorded, in the order of time.",
    {
        "Which events": (
            _FILTER,
            Option(
                "--mine", "", "", None, bool,
                "of your own code, neither Python's nor installed; in text, stretches of others are a line",
                without=("--around", "--stack"),
            ),
            _RUN,
            Option(
                "--limit", "", "N", None, read_event_count,
                "stop after N events; with --around, N on each side",
            ),
            Option("--follow", "", "", None, bool, "go on until the recorded program has ended"),
            Option(
                "--around", "", "ID", None, read_event, "the calls around one event, and its neighbours",
                without=("--stack", "--explain", "--filter", "--follow"),
            ),
            Option(
                "--stack", "", "ID", None, read_event, "the calls that were open at an event",
                without=("--around", "--explain", "--filter", "--follow"),
            ),
        ),
        "How": (
            _format("text", "json", "csv"),
            Option(
                "--color", "", "auto|always|never", "auto", read_text, "colours; auto: on a terminal",
                choices=("auto", "always", "never"),
            ),
            Option(
                "--explain", "", "", None, bool, "the SQL that finds the events",
                without=("--around", "--stack"),
            ),
            _HELP,
        ),
    },
    (_DATABASE,),
)  # fmt: skip
SQL = CliCommand(
    "sql",
    (("pytrace sql [DB] [QUERY] [OPTIONS]", "questions in SQL"),),
    """\
Ask questions about what was recorded, in SQL. With QUERY, its rows are printed; without, there is a
shell on a terminal, and elsewhere statements are read from standard input.""",
    {"Options": (_format("text", "json", "csv"), _HELP)},
    (_DATABASE, Argument("query", "QUERY", None, "statements, with ; between them")),
    more=_tables,
)
INFO = CliCommand(
    "info",
    (("pytrace info [DB] [OPTIONS]", "its recordings"),),
    "Tell about the recordings in a database.",
    {
        "Options": (
            _format("text", "json"),
            Option("--doctor", "", "", None, bool, "check whether this machine can record, and how well"),
            Option(
                "--extension",
                "",
                "",
                None,
                bool,
                "the path of the extension that sqlite3 can .load",
                without=("--doctor", "--format"),
            ),
            _HELP,
        )
    },
    (Argument("database", "DB", None, "the database (traces.sqlite)", files=True),),
)
ANALYSE = CliCommand(
    "analyse",
    (("pytrace analyse [DB] [OPTIONS]", "which lines and functions took the time"),),
    """\
Tell which lines and functions took the time. Lines are there if they were recorded:
pytrace --lines. Own time is without the recorded functions that were called, total time with them.""",
    {
        "Options": (
            _RUN,
            Option(
                "--sort", "", "KEY", "own", read_text, "what comes first: own, total, average or count",
                choices=("own", "total", "average", "count"),
            ),
            Option("--file", "", "FILE", "", read_text, "a source file; in text the whole of it", files=True),
            Option(
                "--limit", "", "N", None, read_row_count,
                "lines and functions to show (20 in text, else all)",
                without=("--file",),
            ),
            _format("text", "json", "csv"),
            _HELP,
        )
    },
    (_DATABASE,),
)  # fmt: skip
REPLAY = CliCommand(
    "replay",
    (("pytrace replay [DB] [OPTIONS]", "walk through what happened, also backwards"),),
    """\
Walk through a recorded program as in a debugger, forwards and backwards: h shows the keys. Lines
and variables are there if they were recorded: pytrace --lines.""",
    {
        "Options": (
            Option("--run", "", "N", "newest", read_run, "which recording"),
            Option(
                "--at", "", "TIME|ID", "", read_text,
                "where to begin: an event's id, or a time as +1.5s, -2m, 12:03:04.5, 2026-11-22",
            ),
            Option(
                "--dap", "", "", None, bool,
                "speak the Debug Adapter Protocol on standard input and output, for an editor",
            ),
            _HELP,
        )
    },
    (_DATABASE,),
)  # fmt: skip
DIFF = CliCommand(
    "diff",
    (("pytrace diff [A] [B] [OPTIONS]", "what differs between two of them"),),
    """\
Tell what differs between two recordings: of two databases, or of one, by default its last two.
Exit status 0: nothing but times; 1: something.""",
    {
        "Options": (
            Option("--run", "", "N[,M]", None, read_runs, "which recordings; default: the newest"),
            _format("text", "json"),
            _HELP,
        )
    },
    (
        Argument("database", "A", "traces.sqlite", "the database (traces.sqlite)", files=True),
        Argument("other", "B", None, "a second database", files=True),
    ),
)
KERNEL = CliCommand(
    "kernel",
    (("pytrace kernel [OPTIONS] --pid PID | --all", "kernel events of a process that is no Python"),),
    """\
Record what the kernel does for a process that is no Python, and for its children, until Ctrl-C or
until it ends. That takes root.

  pytrace kernel --pid $(pidof nginx) --events sched,syscalls
  pytrace kernel --all --events sched:sched_waking --filter "comm ~ 'nginx*'\"""",
    {
        "Which events": (
            Option("--pid", "", "PID,PID", None, read_pids, "processes; their children are followed"),
            Option("--all", "", "", None, bool, "those of all processes", without=("--pid",)),
            Option(
                "--events", "", "GROUPS", KERNEL_ALONE, read_kernel,
                "sched, syscalls, faults, signals, system:event, with commas between them",
            ),
            Option("--filter", "", "F", "", read_text, "only events that meet it, in the kernel's syntax"),
        ),
        "Where to": (
            *SETTINGS["Where to"],
            _HELP,
        ),
    },
)  # fmt: skip
COMMANDS = (RECORD, READ, PRINT, SQL, INFO, REPLAY, ANALYSE, DIFF, KERNEL)
WORDS = tuple(command.name for command in COMMANDS if command.name)
