"""Makes docs/schema.md: `python docs/schema.py > docs/schema.md`, with the pytrace of this tree installed.

Columns and types come from the tables themselves: dumper/schema.sql with its comments, and the
extension's declarations. Which conditions are taken into the scan is read off the plans that SQLite
makes. Written here are the words only; a column without them, or words without a column, are an error.
"""

# ruff: noqa: E501  (prose, as wide as in the other documents)

from __future__ import annotations

import importlib.util
import re
from importlib.resources import files

import apsw
from pytracer.reader.sql import TABLES, VIEWS

INTRODUCTION = """\
# Questions in SQL

What was recorded is in one SQLite database, and read as tables: in `pytrace sql`, in the plain `sqlite3` program, and from Python.
This page is made by `docs/schema.py` from the tables themselves.

```
pytrace sql                                  # a shell on ./traces.sqlite: Tab completes, Ctrl-C stops a query
pytrace sql "SELECT * FROM hot LIMIT 10"     # one query, or several with ; between them
pytrace sql traces.sqlite "SELECT ..." --format json    # or csv; text is the default
pytrace sql < questions.sql
```

The database is opened for reading only, also while a program is being recorded into it. `CREATE TEMP TABLE kept AS SELECT ...` keeps
rows for the rest of a session. Exit status: 0; 2 after a mistake, or where something could not be read (standard
error says what, and the table `damage` has it); 130 after Ctrl-C.

With `sqlite3` (3.38 or later), or any other program that uses SQLite and lets extensions be loaded:

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

The extension needs libzstd: the system's, or the one that is in `backports.zstd` or `compression.zstd` once that is imported.

## What a query costs

Events are stored compressed, a few ten thousand a segment. A query goes through the segments that its conditions leave over, in the
order of time, decompressing them on all processors. What is known of a segment without opening it rules most of them out: its time,
its depths, kinds, functions, threads and its longest duration. Below, **in the scan** are the conditions that are tested there,
before SQLite sees a row; `BETWEEN` is `>=` with `<=`. Other conditions and expressions work, too, but on every row. `OR` between conditions in the scan makes a scan of each, and sorts what they find; `event MATCH` has an `or` that does not.

- `ORDER BY time`, `ORDER BY time, id`, and both with `DESC`, need no sorting: the first rows come at once. So `LIMIT` makes a query short.
- Without ORDER BY, rows come in the order (time, id), too, but SQL does not promise it.
- `EXPLAIN QUERY PLAN` tells what was taken over: `SCAN event VIRTUAL TABLE INDEX 0:func=? duration>? ORDER BY time`.
- `=`, `IN` and `LIKE` compare texts as SQLite does: `=` exactly, `LIKE` without case for ASCII letters.

Times are nanoseconds since 1970, durations nanoseconds, everywhere; `strftime('%F %T', time / 1e9, 'unixepoch', 'localtime')` shows one.
"""

# table: what stands above its columns, and then of each column what it is
VIRTUAL: dict[str, tuple[str, dict[str, str]]] = {
    "event": (
        "A row is something that happened: a call, a return, an exception. [json.md](json.md) tells the kinds.",
        {
            "id": "stable, never used twice in a database",
            "run": "`run.id`: the recording",
            "time": "ns since 1970",
            "pid": "process, the operating system's number",
            "tid": "thread, the operating system's number",
            "thread": "the thread's name in Python; empty where it is not known",
            "kind": "`call` `return` `exception` `yield` `resume` `throw` `raise` `log` `lost`",
            "module": "`__name__` of the function's module",
            "func": "qualified name, such as `Order.pay`; empty on `lost`, `?` where it is not known",
            "file": "of the function's source",
            "line": "the function's first; on `raise` and `log` the line itself",
            "depth": "recorded calls of the thread that are open around this one: 0 for the outermost",
            "duration": "ns: on `return` and `exception` since the call, on `yield` since the last resume; else NULL",
            "args": "JSON text, an array of objects with `name`, `value`, `type`, as in [json.md](json.md)",
            "task": "the name of the task of asyncio or trio that ran; empty: none did",
            "event": "for `event MATCH`, see below",
        },
    ),
    "argument": (
        "A row is an argument of a call, or the value of another event: `return value`, `yield value`, `exception`, "
        "a log's `message`, a loss's `count`. Conditions on one row speak of the same argument.",
        {
            "event": "`event.id`",
            "position": "from 0, in the order of the signature",
            "name": "of the argument",
            "value": "as `repr` shows it, cut where it is long",
            "type": "bare for built-in types, else `module.qualname`",
            "text": "a string's bare content; else the same as `value`",
            "run": "the event's",
            "time": "the event's, ns since 1970",
        },
    ),
    "call": (
        "A row is an event of the kind `call`, with what came of it. What is in no condition on the event itself "
        "(`parent`, `duration`, `outcome`, `value`) is looked up when it is asked for: cheap, but not free.",
        {
            "id": "of the event `call`",
            "parent": "id of the event that entered the calling function (`call`, `resume`, `throw`); NULL: none, or not there",
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
            "outcome": "`return`, `exception` or `running`",
            "value": "what it returned, or the exception, as `repr` shows it; NULL while it runs",
            "task": "as in `event`: that called it",
        },
    ),
    "stack": (
        "`stack(ID)` has the functions that were open at an event, its own included, the outermost first.",
        {
            "depth": "0 for the outermost",
            "id": "of the event that entered the function: `call`, or `resume` and `throw` of a generator",
            "event": "the event that is asked about: `stack(ID)` is `stack WHERE event = ID`",
        },
    ),
    "hot": (
        "A row is a function, those with the most own time first. Each query goes through all events of the runs asked for.",
        {
            "run": "`run.id`",
            "module": "as in `event`",
            "func": "as in `event`",
            "file": "as in `event`",
            "line": "the function's first",
            "calls": "how often it was called",
            "own": "ns in the function without the recorded functions that it called",
            "total": "ns from entering to leaving it; what it calls by way of itself counts once, a generator only while it runs",
        },
    ),
    "damage": (
        "A row is a segment that this connection could not read, or not to its end, in the queries so far.",
        {
            "segment": "`segment.id`",
            "run": "`run.id`",
            "events": "how many it should have",
            "read": "how many of them could be read",
            "reason": "in words",
        },
    ),
}

MATCH = r"""
### event MATCH

Conditions on an event and on its arguments together, in one text, with `not` and `or` in the scan:

```sql
SELECT * FROM event WHERE event MATCH '(and (like func "pay%") (any (and (= name "user") (like either "%bob%"))))'
```

| form | is true where |
| --- | --- |
| `(and X...)` `(or X...)` `(not X)` | all, one, or not X is; a comparison with a duration that is not there is false, and `not` of it true |
| `(any X)` | there is an argument of which X is true |
| `(= FIELD V)` `(!= FIELD V)` `(in FIELD V...)` | the field is V, or one of them; texts exactly |
| `(< FIELD N)` `(<= FIELD N)` `(> FIELD N)` `(>= FIELD N)` `(between FIELD N N)` | numbers; `between` with both ends |
| `(plain FIELD)` | a text of nothing but printable ASCII |
| `(like FIELD "pattern")` | as SQL's LIKE; a backslash escapes, and is written `\\` here |

Numbers: `id run time pid tid line depth duration`. Texts, in double quotes with `\"` and `\\`: `thread task kind module file`, `qualname` (the
qualified name), `func` (the qualified name or its last part). Only inside of `any`: `position` (a number), `name`, `value`, `text`, `either`
(value or text), `type`. Nested at most 200 deep.
"""

EXAMPLES = {
    "What happened first": "SELECT * FROM event ORDER BY time LIMIT 20",
    "What happened last": "SELECT * FROM event ORDER BY time DESC, id DESC LIMIT 20",
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
    "Where the time goes": "SELECT module, func, calls, own / 1e9 AS own, total / 1e9 AS total FROM hot WHERE run = 1 LIMIT 20",
    "Who was called with bob": """
SELECT event, name, value FROM argument WHERE name = 'user' AND text LIKE '%bob%' ORDER BY time""",
    "The same with the functions": """
SELECT event.time, event.func, argument.name, argument.value
FROM argument JOIN event ON event.id = argument.event
WHERE argument.name = 'user' AND argument.text LIKE '%bob%' ORDER BY argument.time""",
    "Calls of two arguments that belong together": """
SELECT time, func, args FROM event
WHERE event MATCH '(and (any (and (= name "user") (= text "bob"))) (any (and (= name "amount") (!= value "0"))))'
ORDER BY time""",
    "Exceptions, counted": """
SELECT type, value, count(*) AS times FROM exceptions WHERE kind = 'raise' GROUP BY type, value ORDER BY times DESC""",
    "The stack at an event": """
SELECT stack.depth, event.func, event.args FROM stack(262144) JOIN event ON event.id = stack.id
ORDER BY stack.depth""",
    "Calls with what came of them": """
SELECT time, func, duration, outcome, value FROM call WHERE module = 'app' ORDER BY time LIMIT 20""",
    "Whom a call called": """
SELECT callee.func, callee.duration, callee.value FROM call AS callee
WHERE callee.parent = 262144 AND callee.run = 1 ORDER BY callee.time""",
    "Calls that have not ended": "SELECT time, tid, func FROM call WHERE outcome = 'running' ORDER BY time",
    "Events a second": """
SELECT time / 1000000000 AS second, count(*) AS events FROM event WHERE run = 1 GROUP BY second ORDER BY second""",
    "What each thread did": """
SELECT pid, tid, thread, count(*) AS events, min(time) AS first, max(time) AS last FROM event
GROUP BY pid, tid, thread""",
    "Where events were lost": "SELECT time, tid, args ->> '$[0].value' AS lost FROM event WHERE kind = 'lost' ORDER BY time",
    "What could not be read": "SELECT * FROM damage",
}

# condition in SQL, how a plan has it
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
        except apsw.SQLError:  # stack(ID) without its event
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
        scanned = "`MATCH`" if (name, column) == ("event", "event") else in_scan(connection, name, column)
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
        "## What was recorded",
        *(virtual_table(connection, name) for name in VIRTUAL),
        MATCH.strip(),
        "## Views of `pytrace sql`\n\nIn other programs, create them yourself.",
        *map(view, VIEWS),
        "## What is stored\n\nOrdinary tables. They may get more columns; a change that would break a query changes"
        " `PRAGMA user_version`.",
        *ordinary_tables(schema),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


if __name__ == "__main__":
    print(document(), end="")
