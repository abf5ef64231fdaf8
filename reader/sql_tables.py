"""Tables, views and examples for queries in SQL. --help, the manual and the shell show them."""

# By table or view, its content. The ordinary tables come last.
TABLES = {
    "event": "all that happened, in the order of time",
    "argument": "arguments, return values and exceptions of the events",
    "call": "calls with their caller, their duration and what came of them",
    "stack": "stack(ID): the calls that were open at an event",
    "variable": "variable(ID): the variables of an event's function, as they were then (--lines)",
    "hot": "functions: calls and times; those with the most own time first",
    "line": "lines: runs and times; those with the most own time first (--lines)",
    "source": "source files as they were, if lines were recorded (--lines)",
    "slowest": "calls that ended, the longest first (a view)",
    "exceptions": "exceptions raised, and passed on (a view)",
    "damage": "what could not be read so far",
    "skipped": "what a later version of pytrace has recorded and this one does not know",
    "run": "the recordings",
    "process": "their processes",
    "thread": "their threads",
    "code": "their functions",
    "type": "the types of values",
    "source_file": "the stored source files, compressed",
    "segment": "the stored events, compressed",
}

VIEWS = {
    "slowest": """
CREATE TEMP VIEW slowest AS
SELECT duration, time, module, func, kind AS outcome, args ->> '$[0].value' AS value,
       run, pid, tid, thread, file, line, depth, id
FROM event WHERE kind IN ('return', 'exception') ORDER BY duration DESC
""".strip(),
    "exceptions": """
CREATE TEMP VIEW exceptions AS
SELECT time, kind, module, func, line, args ->> '$[0].type' AS type, args ->> '$[0].value' AS value,
       duration, run, pid, tid, thread, file, depth, id
FROM event WHERE kind IN ('raise', 'exception') ORDER BY time, id
""".strip(),
}

EXAMPLES = (
    "SELECT * FROM event WHERE func = 'main' ORDER BY time LIMIT 10",
    "SELECT event, value FROM argument WHERE name = 'user' AND value LIKE '%bob%'",
    "SELECT duration, func, value FROM slowest LIMIT 10",
    "SELECT func, calls, own, total, median, longest FROM hot LIMIT 10",
    "SELECT type, value, count(*) FROM exceptions WHERE kind = 'raise' GROUP BY type, value",
)


def tables_and_examples() -> str:
    """The text below the options in `pytrace sql --help`."""
    tables = "\n".join(f"  {name:<12}{what}" for name, what in TABLES.items())
    examples = "\n".join(f'  pytrace sql "{example}"' for example in EXAMPLES)
    return (
        f"Tables:\n{tables}\n\nExamples:\n{examples}\n\n"
        "Times are ns since 1970, durations ns. A recording is only read, never changed."
    )
