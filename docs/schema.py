"""Makes docs/schema.md: `python docs/schema.py > docs/schema.md`.

The pytrace of this tree must be installed. Columns and types come from the tables themselves:
dumper/schema.sql with its comments, and the extension's declarations. SQLite's plans tell which
conditions the scan takes over. This file has the words only. A column without words is an error,
and so are words without a column.
"""

# ruff: noqa: E501  (prose, as wide as in the other documents)

from __future__ import annotations

import importlib.util
import re
from importlib.resources import files

import apsw
from pytracer.reader.sql_tables import TABLES, VIEWS

INTRODUCTION = """\
# Questions in SQL

All recordings are in one SQLite database. Its tables can be queried in `pytrace sql`, in the plain
`sqlite3` program, and from Python. `docs/schema.py` makes this page from the tables themselves.

```
pytrace sql                                  # a shell on ./traces.sqlite: Tab completes, Ctrl-C stops a query
pytrace sql "SELECT * FROM hot LIMIT 10"     # one query, or several with ; between them
pytrace sql traces.sqlite "SELECT ..." --format json    # or csv; text is the default
pytrace sql < questions.sql
```

pytrace opens the database for reading only, also while a program is being recorded into it.
`CREATE TEMP TABLE kept AS SELECT ...` keeps rows for the rest of a session. The exit status is 0; 2
after a mistake, or if a part could not be read; 130 after Ctrl-C. Standard error and the table
`damage` name the parts that could not be read.

With `sqlite3` (3.38 or later), or another program that uses SQLite and can load extensions:

```
$ sqlite3 -readonly traces.sqlite
sqlite> .load /path/to/pytracer/sqlite_trace.cpython-313-x86_64-linux-gnu
sqlite> SELECT * FROM event WHERE func = 'main';
```

`pytrace info --extension` prints the path. In Python:

```python
import apsw  # or sqlite3, if it was built with enable_load_extension

connection = apsw.Connection("traces.sqlite", flags=apsw.SQLITE_OPEN_READONLY)
connection.enable_load_extension(True)
connection.load_extension(path)
for time, func in connection.execute("SELECT time, func FROM event WHERE kind = 'raise' ORDER BY time"):
    print(time, func)
```

The extension needs libzstd. It takes the system's, or the one in `backports.zstd` or
`compression.zstd`, if that is imported first.

## Names of files

The name of a file consists of bytes, and need not be UTF-8. The columns `file`, `directory`,
`command` and `options` hold it as text. A byte that is not UTF-8 becomes four characters, such as
`\\xff`, and a backslash before an x becomes `\\x5cx`. To get the bytes back, replace each `\\xNN`
by the byte NN. In filters and in patterns of `LIKE`, escape the backslash:
`file == '%/caf\\\\\\\\xe9.py'`.

## What a query costs

A segment holds a few ten thousand events, compressed. The summary of a segment has its time,
depths, kinds, functions, thread and longest duration. The summaries rule most segments out. A query
scans the other segments in the order of time, and decompresses them on all processors. While the
database does not change, a connection reads the summaries for its first questions, and then keeps
them.

In the tables below, the column **in the scan** has the conditions that the scan itself tests,
before SQLite sees a row; `BETWEEN` is `>=` with `<=`. SQLite tests all other conditions and
expressions, on every row. If `OR` joins conditions, each has a scan of its own, and the results are
sorted. The `or` of `event MATCH` needs one scan, and no sorting.

- `ORDER BY time`, `ORDER BY time, id`, and both with `DESC`, need no sorting: the first rows come
  at once. So `LIMIT` makes a query short.
- Without ORDER BY, rows come in the order (time, id), too, but SQL does not promise it.
- `EXPLAIN QUERY PLAN` shows the conditions in the scan:
  `SCAN event VIRTUAL TABLE INDEX 0:func=? duration>? ORDER BY time`.
- `=`, `IN` and `LIKE` compare texts as in SQLite: `=` exactly, `LIKE` without case for ASCII
  letters.

All times are nanoseconds since 1970, and all durations nanoseconds.
`strftime('%F %T', time / 1e9, 'unixepoch', 'localtime')` shows a time.
"""

# by table: the text above its columns, and the words of each column
VIRTUAL: dict[str, tuple[str, dict[str, str]]] = {
    "event": (
        "A row is an event: a call, a return, an exception. [json.md](json.md) has the kinds.",
        {
            "id": "stable, never used twice in a database",
            "run": "`run.id`: the recording",
            "time": "ns since 1970",
            "pid": "the operating system's number of the process",
            "tid": "the operating system's number of the thread",
            "thread": "the thread's name in Python; empty if unknown",
            "kind": "`call` `return` `exception` `yield` `resume` `throw` `raise` `log` `lost` `line` `event`",
            "module": "`__name__` of the function's module",
            "func": "the qualified name, such as `Order.pay`; empty on `lost`, `?` if unknown",
            "file": "of the function's source",
            "line": "the function's first line; on `raise`, `log` and `line` the line itself",
            "depth": "the number of the thread's recorded calls that are open around this one: 0 for the outermost",
            "duration": "ns: on `return` and `exception` since the call, on `yield` since the last resume; else NULL",
            "args": "JSON text, an array of objects with `name`, `value`, `type`, as in [json.md](json.md)",
            "task": "the name of the task (asyncio or trio) that ran; empty: none did",
            "stream": "`thread.stream`: the thread's number in the run; unlike a tid, it is never used again",
            "process": "`process.number`: the process's number in the run; NULL if unknown",
            "mine": "1: the function is of the user's own code, as `mine` in [filters.md](filters.md); else 0",
            "trailing": "1: a `line` that has run tells what it changed, as a return, yield or exception comes next; else 0, and in recordings of versions that did not tell it",
            "layer": "`python`, `cython`, `c`, `native` or `kernel`: what the function is",
            "cpu": "the processor on which it happened; NULL if unknown",
            "own_depth": "the number of open calls of own code around the function, as `depth` counts all; NULL if unknown",
            "near_depth": "the same with near code: own code, and what it calls directly",
            "near": "1: the function is of near code; else 0; NULL if unknown",
            "event": "for `event MATCH`, see below",
        },
    ),
    "argument": (
        "A row is an argument of a call, or the value of another event. These have the names\n"
        "`return value`, `yield value`, `exception`, `message` (of a log) and `count` (of a loss);\n"
        "those of a line have the names of its variables, those of an event in the kernel of its fields.\n"
        "Conditions on one row speak of the same argument. An attribute of an object is a row, too, named\n"
        "`order.user`, behind that of the argument; `pytrace --attributes` stores them.",
        {
            "event": "`event.id`",
            "position": "from 0, in the signature's order; of an attribute that of its argument",
            "name": "of the argument",
            "value": "as `repr` shows it, cut if it is long",
            "type": "bare for built-in types, else `module.qualname`",
            "text": "the bare content of a string; of an object with attributes its type and address; else the same as `value`",
            "run": "the event's",
            "time": "the event's, ns since 1970",
        },
    ),
    "call": (
        "A row is an event of the kind `call`, and the outcome of that call. `parent`, `duration`,\n"
        "`outcome` and `value` stand in other events, and are looked up if a query asks for them: cheap,\n"
        "but not free.",
        {
            "id": "of the event `call`",
            "parent": "id of the event that entered the calling function (`call`, `resume`, `throw`); NULL: none, or not in the database",
            "run": "`run.id`",
            "time": "of the call, ns since 1970",
            "duration": "ns until it returned or an exception left it; NULL: not yet, or not recorded",
            "pid": "as in `event`",
            "tid": "as in `event`",
            "module": "as in `event`",
            "func": "as in `event`",
            "file": "as in `event`",
            "line": "as in `event`",
            "depth": "as in `event`",
            "outcome": "`return`; `exception`; `suspended`: a generator or coroutine that has yielded and not ended, if none of the same function goes on in its process; or `running`",
            "value": "the return value or the exception, as `repr` shows it; NULL: not yet, or not recorded",
            "task": "the task that called it, as in `event`",
            "stream": "as in `event`",
            "process": "as in `event`",
            "mine": "as in `event`",
            "layer": "as in `event`",
            "cpu": "as in `event`",
        },
    ),
    "stack": (
        "`stack(ID)` has the functions that were open at an event, its own included, outermost first.",
        {
            "depth": "0 for the outermost",
            "id": "id of the event that entered the function: `call`; of a generator also `resume` or `throw`",
            "event": "the event in question: `stack(ID)` is `stack WHERE event = ID`",
        },
    ),
    "variable": (
        "`variable(ID)` has the variables of an event's function as they were at the event; of a `line`,\n"
        "before it ran. They are known where the function's lines were recorded (`pytrace --lines`); else\n"
        "these are the arguments of its call. All of it comes from the event's segment: there is no row if\n"
        "that has no line of the function before the event.",
        {
            "position": "the order in which the function has its variables",
            "name": "of the variable",
            "value": "as `repr` shows it, cut if it is long",
            "type": "bare for built-in types, else `module.qualname`",
            "changed": "id of the event that has this value as news; NULL: it is in an earlier segment",
            "event": "the event in question: `variable(ID)` is `variable WHERE event = ID`",
            "items": "JSON text: the items of a container, the attributes of an object, as objects with `name` (`[0]`, `['key']`, `user`), `value`, `type`, and `items` if they have some; NULL: there are none",
        },
    ),
    "hot": (
        "A row is a function; the most own time comes first. Each query goes through all events of its runs.\n"
        "`hot MATCH` takes a condition, as `event MATCH` does: it counts the calls that begin or end with an\n"
        "event that meets it. If it bounds the run, thread or time, a query goes through these events alone.\n\n"
        "`average`, `longest` and `median` are of the durations of all its calls that ended, as `duration` in\n"
        "`event`: recursive calls too, and of a generator from its call to its end. The median is taken from\n"
        "a histogram with four classes for each doubling, and so is right to an eighth. In the text format\n"
        "of `pytrace sql` the times of this table have units, and its files no folders.",
        {
            "run": "`run.id`",
            "module": "as in `event`",
            "func": "as in `event`",
            "file": "as in `event`",
            "line": "the function's first line",
            "calls": "the number of its calls",
            "own": "ns in the function without the recorded functions that it called",
            "total": "ns between entering and leaving it; recursive calls count once, a generator only while it runs",
            "average": "ns; NULL: no call ended, as for the next two",
            "longest": "ns",
            "median": "ns, to an eighth",
            "mine": "as in `event`",
            "off": "ns of `own` in which the thread had no processor; NULL: the run has no scheduler's events (`--kernel`)",
            "hot": "for `hot MATCH`",
        },
    ),
    "line": (
        "A row is a line of a function, if lines were recorded (`pytrace --lines`); the most own time comes\n"
        "first. Each query goes through all events of its runs. `line MATCH` takes a condition, as\n"
        "`event MATCH` does: it counts the runs whose events meet it. If it bounds the run, thread or time, a\n"
        "query goes through these events alone.\n\n"
        "A run of a line lasts from its event to the next event of the same call: its next line, or its\n"
        "return, yield or exception. A generator or coroutine counts only while it runs. The line that it\n"
        "waits in goes on when it is resumed, if that line is known: if all waiting calls of the function in\n"
        "the process wait in the same line, and nothing was lost before. A `trailing` event\n"
        "is no run. Durations that a loss hides, or the beginning of what is recorded, are left out. In the\n"
        "text format of `pytrace sql` the times of this table have units, and its files no folders.",
        {
            "run": "`run.id`",
            "file": "as in `event`",
            "line": "the line; also for `line MATCH`",
            "func": "as in `event`",
            "module": "as in `event`",
            "count": "how often it ran",
            "own": "ns in the line without the recorded functions that were called in it",
            "total": "ns with them; of a line that runs again below itself, only the outermost run counts",
            "average": "ns of a run, inner ones too; NULL: of no run the end is known",
            "mine": "as in `event`",
        },
    ),
    "source": (
        "A row is a source file as it was, if lines were recorded (`pytrace --lines`) and sources kept (not\n"
        "`--no-sources`): each file with a code object whose lines are recorded, once for a run. There are no\n"
        "rows in a database of an earlier version. The table `source_file` has the same, compressed.",
        {
            "run": "`run.id`",
            "file": "as in `event` and `code`",
            "text": "the text, decoded as Python does, with `\\n` at the ends of its lines; NULL: it is damaged",
            "changed": "1: the file was written after the recorded program began, and so may not be what ran; else 0",
        },
    ),
    "damage": (
        "A row is a segment that a query of this connection could not read, or not to its end.",
        {
            "segment": "`segment.id`",
            "run": "`run.id`",
            "events": "the number of its events",
            "read": "the number of events that could be read",
            "reason": "in words",
        },
    ),
    "skipped": (
        "A row is a segment with content that a later version of pytrace has made, and that this one skips.",
        {
            "segment": "`segment.id`",
            "run": "`run.id`",
            "kind": "`segment.kind`: 0, or an unknown one, whose segments are skipped as a whole",
            "records": "the number of records of unknown kinds; NULL if that cannot be told",
            "fields": "the number of records with unknown fields, and of unknown fields between records; NULL as above",
        },
    ),
}

MATCH = r"""
### event MATCH

`event MATCH` takes conditions on an event and its arguments as one text, with `not` and `or` in the
scan:

```sql
SELECT * FROM event WHERE event MATCH '(and (like func "pay%") (any (and (= name "user") (like either "%bob%"))))'
```

| form | is true if |
| --- | --- |
| `(and X...)` `(or X...)` `(not X)` | all X are true, one X is, X is not; a comparison with a missing duration or processor is false, and its `not` is true |
| `(any X)` | X is true of an argument |
| `(= FIELD V)` `(!= FIELD V)` `(in FIELD V...)` | the field is V, is not V, is one of them; texts are compared exactly |
| `(< FIELD N)` `(<= FIELD N)` `(> FIELD N)` `(>= FIELD N)` `(between FIELD N N)` | the number is in the range; `between` includes both ends |
| `(plain FIELD)` | the text is all printable ASCII |
| `(like FIELD "pattern")` | the text matches as by SQL's LIKE; a backslash escapes, and is written `\\` here |
| `(shown own)` | it is an event of own code, or tells a loss, or is the first one of a stretch of others behind such an event in its stream |
| `(shown near)` | the same with near code: own code, and what it calls directly |

Fields that are numbers:
`id run time pid tid line depth duration mine own_depth near_depth near cpu stream process`. Fields
that are texts: `thread task kind layer module file`, `qualname` (the qualified name), `func` (the
qualified name, or its last part). Only inside of `any`: `position` (a number), `name`, `value`,
`text`, `either` (value or text), `type`. Texts stand in double quotes, with `\"` and `\\`.
Conditions are nested at most 200 deep.

`shown`, `own_depth`, `near_depth` and `near` follow from all events before in the thread. Each
segment knows which own code is open where it begins (`segment.open`), so that a scan needs no other
segment for them, and passes over the segments in which nothing is shown. In recordings of earlier
versions `open` is NULL: the three columns are NULL, and `shown` is true of own code and losses
alone.
"""

EXAMPLES = {
    "The first events": "SELECT * FROM event ORDER BY time LIMIT 20",
    "The last events": "SELECT * FROM event ORDER BY time DESC, id DESC LIMIT 20",
    "A second, counted from the run's start": """
SELECT event.* FROM run JOIN event
  ON event.run = run.id AND event.time BETWEEN run.started + 1000000000 AND run.started + 2000000000
WHERE run.id = 1 ORDER BY event.time""",
    "An event by its id": "SELECT * FROM event WHERE id = 262144",
    "All calls of a function, with their arguments": """
SELECT time, func, args FROM event WHERE func = 'Order.pay' AND kind = 'call' ORDER BY time""",
    "How often each function of a package is called": """
SELECT module, func, count(*) AS calls FROM event WHERE kind = 'call' AND module LIKE 'app%'
GROUP BY module, func ORDER BY calls DESC""",
    "Returns slower than a millisecond": """
SELECT time, func, duration FROM event WHERE duration > 1000000 AND kind IN ('return', 'exception') ORDER BY time""",
    "The slowest calls": "SELECT duration / 1e6 AS ms, func, value FROM slowest LIMIT 10",
    "The functions that take the most time": "SELECT module, func, calls, own, total FROM hot WHERE run = 1 LIMIT 20",
    "The lines that take the most time": "SELECT file, line, func, count, own, total FROM line WHERE run = 1 LIMIT 20",
    "The source of a file as it was": "SELECT text FROM source WHERE run = 1 AND file LIKE '%/app.py'",
    "The functions of one's own code that sometimes take long": """
SELECT func, calls, median, longest FROM hot WHERE run = 1 AND hot MATCH '(= mine 1)'
ORDER BY 1.0 * longest / median DESC LIMIT 20""",
    "Values of user with bob": """
SELECT event, name, value FROM argument WHERE name = 'user' AND text LIKE '%bob%' ORDER BY time""",
    "The same with the functions": """
SELECT event.time, event.func, argument.name, argument.value
FROM argument JOIN event ON event.id = argument.event
WHERE argument.name = 'user' AND argument.text LIKE '%bob%' ORDER BY argument.time""",
    "Calls with two conditions on two arguments": """
SELECT time, func, args FROM event
WHERE event MATCH '(and (any (and (= name "user") (= text "bob"))) (any (and (= name "amount") (!= value "0"))))'
ORDER BY time""",
    "Exceptions, counted": """
SELECT type, value, count(*) AS times FROM exceptions WHERE kind = 'raise' GROUP BY type, value ORDER BY times DESC""",
    "The variables at an event": """
SELECT name, value, type FROM variable(262144) ORDER BY position""",
    "The stack at an event": """
SELECT stack.depth, event.func, event.args FROM stack(262144) JOIN event ON event.id = stack.id
ORDER BY stack.depth""",
    "Calls and their outcomes": """
SELECT time, func, duration, outcome, value FROM call WHERE module = 'app' ORDER BY time LIMIT 20""",
    "The calls that a call made": """
SELECT callee.func, callee.duration, callee.value FROM call AS callee
WHERE callee.parent = 262144 AND callee.run = 1 ORDER BY callee.time""",
    "Calls that have not ended": "SELECT time, tid, func FROM call WHERE outcome = 'running' ORDER BY time",
    "Generators and coroutines that wait": "SELECT time, tid, func FROM call WHERE outcome = 'suspended' ORDER BY time",
    "Events a second": """
SELECT time / 1000000000 AS second, count(*) AS events FROM event WHERE run = 1 GROUP BY second ORDER BY second""",
    "The events of each thread": """
SELECT pid, tid, thread, count(*) AS events, min(time) AS first, max(time) AS last FROM event
GROUP BY pid, tid, thread""",
    "Losses": "SELECT time, tid, args ->> '$[0].value' AS lost FROM event WHERE kind = 'lost' ORDER BY time",
    "Segments that could not be read": "SELECT * FROM damage",
}

# by condition in SQL: its sign in a plan
_CONDITIONS = {"=": "=?", "IN": " IN?", "<": "<?", "<=": "<=?", ">": ">?", ">=": ">=?", "LIKE": " LIKE?"}
_NUMBERS = {"=", "IN", "<", "<=", ">", ">="}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def in_scan(connection: apsw.Connection, name: str, column: str) -> str:
    """The conditions on a column that the table takes over."""
    taken = []
    for condition, planned in _CONDITIONS.items():
        value = "(1, 2)" if condition == "IN" else "'1'"
        sql = f'EXPLAIN QUERY PLAN SELECT 1 FROM {name} WHERE "{column}" {condition} {value}'
        try:
            plan = connection.execute(sql).fetchall()
        except apsw.SQLError:  # stack(ID), variable(ID) without the event
            continue
        if any(f":{column}{planned}" in str(step[-1]) for step in plan):
            taken.append(condition)
    if set(taken) == _NUMBERS:
        return "`=` `IN` `<` `>`"
    return " ".join(f"`{condition}`" for condition in taken)


def virtual_table(connection: apsw.Connection, name: str) -> str:
    above, words = VIRTUAL[name]
    columns = connection.execute("SELECT name, type, hidden FROM pragma_table_xinfo(?)", (name,)).fetchall()
    assert [column for column, _, _ in columns] == list(words), f"{name}: {columns}"
    rows = []
    for column, type, hidden in columns:
        scanned = "`MATCH`" if column == name else in_scan(connection, name, column)
        rows.append([f"`{column}`", f"{type}{' hidden' * bool(hidden)}".strip(), scanned, words[column]])
    has_hidden = any(hidden for *_, hidden in columns)
    note = "\n\nHidden columns are not among those of `SELECT *`: name them." if has_hidden else ""
    return f"### {name}\n\n{above}\n\n{table(['column', 'type', 'in the scan', ''], rows)}{note}"


def view(name: str) -> str:
    return f"### {name}\n\n{TABLES[name].capitalize()}.\n\n```sql\n{VIEWS[name]}\n```"


def ordinary_tables(schema: str) -> list[str]:
    made = []
    for above, name, body in re.findall(
        r"((?:^--[^\n]*\n)+)CREATE TABLE (\w+) \(\n(.*?)^\)", schema, re.M | re.S
    ):
        rows = []
        for column, declared, words in re.findall(
            r'^    "?([a-z_]+)"? ([^-\n]+?),?\s*(?:-- ([^\n]*))?$', body, re.M
        ):
            type = declared.split()[0] + (
                "" if "NOT NULL" in declared or "PRIMARY" in declared else " or NULL"
            )
            reference = re.search(r"REFERENCES (\w+) \((\w+)\)", declared)
            rows.append(
                [f"`{column}`", type, words or (f"`{reference[1]}.{reference[2]}`" if reference else "")]
            )
        about = " ".join(line.removeprefix("--").strip() for line in above.splitlines())
        key = re.search(r"^    (PRIMARY KEY|UNIQUE) \(([^\n]*)\)$", body, re.M)
        note = f"\n\n{key[1].capitalize()}: {key[2]}." if key else ""
        made.append(f"### {name}\n\n{about}\n\n{table(['column', 'type', ''], rows)}{note}")
    return made


def document() -> str:
    """The text of docs/schema.md."""
    spec = importlib.util.find_spec("pytracer.sqlite_trace")
    assert spec is not None
    assert spec.origin is not None
    schema = files("pytracer.dumper").joinpath("schema.sql").read_text()
    connection = apsw.Connection(":memory:")
    connection.execute(schema)
    connection.enable_load_extension(True)
    connection.load_extension(spec.origin)
    examples = [f"**{title}**\n\n```sql\n{sql.strip()}\n```" for title, sql in EXAMPLES.items()]
    parts = [
        INTRODUCTION,
        "## Examples",
        *examples,
        "## The recorded events",
        *(virtual_table(connection, name) for name in VIRTUAL),
        MATCH.strip(),
        "## Views of `pytrace sql`\n\nIn other programs, create them yourself.",
        *map(view, VIEWS),
        "## The stored tables\n\nThese are ordinary tables. A later version of pytrace may add columns, tables,"
        " and kinds of events,\nsegments and streams. A reader skips everything that it does not know, and the"
        " table `skipped`\ncounts it.\n\nIf `features` of a run has an unknown bit from 32 on, a reader refuses"
        " the run: a newer pytrace is\nneeded. It reads the other runs of the database. `PRAGMA user_version`"
        " rises if one of these columns\nor tables changes its meaning, or goes.",
        *ordinary_tables(schema),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    print(document(), end="")
