"""Conditions in SQL find in the virtual tables what they find in ordinary ones with the same
rows."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytracer.reader.sql_session import SqlSession

from handmade import DELETED, EPOCH_NS, Handmade, event

FUNCTIONS = ("pay", "Order.pay", "Order.PAY", "ünï", "a_b", "a%b", "", "12", "1.5")
TEXTS = ("bob", "Bob", "", "1", "1.0", "%", "it's", "ünï", "x\0y", "\x1b[31m", "a" * 300)
KINDS = (
    "call",
    "call",
    "return",
    "return",
    "exception",
    "yield",
    "resume",
    "throw",
    "raise",
    "log",
    "lost",
    "line",
    "event",
)


def write(path: Path) -> None:
    """Two runs, three threads in two processes, segments of some events that overlap in time."""
    chance = random.Random(1)
    with Handmade(path) as database:
        for run in (database.run(), database.run(finished=False)):
            database.process(run, 1, 200)
            database.thread(run, 2, 101, "Bob's thread")
            database.thread(run, 3, 200, "", process=1)
            for number, name in enumerate(FUNCTIONS, 1):
                module = ("app", "App", "lib.sub", "")[number % 4]
                names = ["self", "user", "n"][: number % 4]
                layer = ("python", "c", "kernel")[number % 3]
                database.code(
                    run, number, name, names, module=module, line=number, variables=names, layer=layer
                )
            for sequence in range(4):
                for stream in (1, 2, 3):
                    database.segment(
                        run,
                        [record for _ in range(chance.randrange(1, 9)) for record in some(chance)],
                        stream=stream,
                        sequence=sequence,
                        process=int(stream == 3),
                        start=1000 * sequence + chance.randrange(100),
                        base_depth=chance.randrange(4),
                    )


def some(chance: random.Random) -> list[Any]:
    """An event, perhaps of another task or on another processor than the one before."""
    task = [chance.choice(["Task-1", "Task-2", "Größe", ""])] if chance.random() < 0.3 else []
    cpu = [chance.choice([0, 1, 300, -1])] if chance.random() < 0.3 else []
    return [*task, *cpu, made(chance)]


def made(chance: random.Random) -> Any:
    kind = chance.choice(KINDS)
    code = chance.randrange(1, len(FUNCTIONS) + 1)
    content: list[object] = [chance.choice([chance.choice(TEXTS), 0, 1, -7, 1 << 62, None, [1, "bob"]])]
    if kind in ("call", "event"):
        content = [chance.choice((*TEXTS, 1, None)) for _ in range(code % 4)]
    names = ["n"] if kind == "log" else []
    if kind == "log":
        content.insert(0, "paid")
    if kind == "lost":
        return event("lost", chance.randrange(9), time=chance.randrange(30))
    elapsed = chance.choice([None, 0, 7, 1000, 1 << 40]) if kind in ("return", "exception", "yield") else None
    line = chance.randrange(50) if kind in ("raise", "log", "line") else 0
    variables: list[int] = []
    if kind == "line":
        content = [chance.choice((*TEXTS, 1, None, DELETED)) for _ in range(chance.randrange(4))]
        variables = [chance.randrange(4) for _ in content]
    return event(
        kind, code, *content, time=chance.choice([0, 0, 1, 30]), elapsed=elapsed, line=line, names=names,
        variables=variables, changed=chance.choice((None, 0, 1, 2)) if kind == "line" else None,
    )  # fmt: skip


COLUMNS = {
    "event": "id, run, time, pid, tid, thread, kind, module, func, file, line, depth, duration, args, task,"
    " stream, process, layer, cpu",
    "argument": "event, position, name, value, type, text, run, time",
    "call": "id, parent, run, time, duration, pid, tid, module, func, file, line, depth, outcome, value,"
    " task, stream, process, layer, cpu",
}


@pytest.fixture(name="connection", scope="module")
def connection_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = tmp_path_factory.mktemp("rows") / "traces.sqlite"
    write(path)
    session = SqlSession(str(path))
    connection = session.connection()
    for name, columns in COLUMNS.items():
        connection.execute(f"CREATE TEMP TABLE {name}_copy AS SELECT {columns} FROM {name}")
    yield connection
    session.close()


def both(connection: apsw.Connection, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """The rows of a query, in which {event} and others stand for tables, over both sorts of
    tables."""
    virtual = connection.execute(sql.format(**{name: name for name in COLUMNS}), parameters).fetchall()
    ordinary = connection.execute(
        sql.format(**{name: f"{name}_copy" for name in COLUMNS}), parameters
    ).fetchall()
    assert virtual == ordinary, sql
    return virtual


def parted(text: str) -> list[str]:
    """The text between semicolons. {time}: somewhere in the first segments."""
    text = text.replace("{time}", str(EPOCH_NS + 4000)).replace("{epoch}", str(EPOCH_NS))
    return [part.strip() for part in text.split(";") if part.strip()]


# of events; each is tried alone, negated, and with another
EVENT_CONDITIONS = r"""
id = 262144; id = 262144.0; id = 262144.5; id = '262144'; id = 'x'; id IN (262144, 262146, 1);
id > 524288; id < 0; id = -262144; id = 9223372036854775807; id < 1e30; id > 1e30; id >= -1e30;
id = 1e30; id BETWEEN 262145 AND 524290; id IS NULL; id IS NOT NULL; id = NULL; id <> 262144;
id IS 262144; id IN (); id NOT IN (262144); id IN (SELECT id FROM {event} WHERE kind = 'log');
id LIKE '2621%';
run = 1; run = 1.0; run = '1'; run = 1.5; run = x'31'; run IN (1, 2); run IN (2, NULL); run <> 1;
time = {time}; time < {time}; time <= {time}; time > {time}; time >= {time}; time < {time}.5;
time BETWEEN {epoch} AND {time}; time BETWEEN {time} AND {epoch};
time >= {epoch} + 4000 AND time < {epoch} + 8000; time - {epoch} < 4000; time < '{time}';
pid = 100; pid IN (200, 300); pid <> 100;
tid = 101; tid BETWEEN 100 AND 101; tid = pid;
thread = ''; thread = 'MainThread'; thread = 'mainthread'; thread LIKE 'mainthread';
thread LIKE 'Bob''s%'; thread = 'mainthread' COLLATE NOCASE; thread IS NULL; thread < 'N';
task = 'Task-1'; task LIKE 'task-%'; task IN ('Task-1', 'Größe', NULL); task IS NULL; task IS NOT NULL;
task <> 'Task-1'; task = ''; task LIKE '%'; task > 'Task-1'; NOT task LIKE 'Gr%';
layer = 'c'; layer IN ('c', 'kernel', NULL); layer LIKE 'PY%'; layer <> 'python'; layer IS NULL; layer = 1;
layer > 'd'; NOT layer = 'c';
cpu = 1; cpu = 300; cpu > 0; cpu < 1; cpu IN (0, 300, NULL); cpu IS NULL; cpu <> 1; cpu = -1; cpu = '1';
cpu IS NOT NULL; NOT cpu = 0; cpu < 1e30;
kind = 'call'; kind IN ('return', 'exception'); kind LIKE 'r%'; kind = 'CALL'; kind = 1;
kind = 'nonsense'; kind <> 'call'; kind NOT LIKE 'r%'; kind > 'm'; kind IN ('call', NULL);
module = 'app'; module LIKE 'app'; module = 'app' COLLATE NOCASE; module = ''; module LIKE 'lib.%';
func = 'pay'; func LIKE '%pay'; func LIKE 'PAY'; func LIKE 'a_b'; func LIKE 'a\%b' ESCAPE '\';
func LIKE '%'; func LIKE ''; func LIKE 'ÜNÏ'; func LIKE 'ünï'; func = ''; func = 12; func = 1.5;
func IN ('pay', 12, 'ünï'); func LIKE 12; func LIKE NULL; func GLOB '*pay'; func = x'706179';
func LIKE x'706179'; func || '' = 'pay'; func IN (SELECT func FROM code WHERE number < 4);
file = '/home/me/app.py'; file LIKE '%.PY';
line = 3; line > 5; line BETWEEN 2 AND 4; line <> 3;
depth = 0; depth > 1; depth < 0; depth >= 0.5; depth <= 0.5; depth > '0'; depth < 'x'; depth >= x'';
duration > 100; duration >= 28; duration < 28; duration <= 28; duration = 28; duration IS NULL;
duration IS NOT NULL; duration < 1e300; duration > -1; duration <> 28; duration = NULL;
duration IN (28); duration IN (28, 28.0, '28', NULL); duration > 27.5; duration < 28.5;
duration BETWEEN 28 AND 4000;
stream = 3; stream IN (1, 2); stream > 2; stream BETWEEN 1 AND 2; stream = '1'; stream IS NULL;
stream = pid;
process = 0; process = 1; process <> 0; process > 0; process < 0; process IS NULL; process IN (1, NULL);
args LIKE '%bob%'; args = '[]';
length(args) > 20;
args IS NULL;
"""

ARGUMENT_CONDITIONS = r"""
event = 262144; event > 524288; event IN (SELECT id FROM {event} WHERE kind = 'return');
position = 0; position > 0; position IN (1, 2); position = '1'; position = 0.5;
name = 'user'; name LIKE 'USER'; name = 'return value'; name IN ('self', 'n'); name LIKE '%e%';
name = '';
value = '''bob'''; value LIKE '%bob%'; value LIKE '''B_b'''; value = 'bob'; value = 1; value = '1';
value = 1.0; value LIKE ''; value LIKE '%''%'; value LIKE '%\x%'; value LIKE '%aaa%'; value = '''''';
value > 'b';
type = 'str'; type LIKE 'STR'; type IN ('int', 'NoneType'); type LIKE '%t';
text = 'bob'; text = ''; text LIKE 'BOB'; text LIKE '%ob'; text LIKE 'x%'; text = 1;
text IN ('bob', '1', 'None'); text LIKE '%ü%'; text LIKE '%%'; text LIKE '[1, %'; text IS NULL;
text <> value; text = 'bob' COLLATE NOCASE;
run = 2;
time > {time}; time IN (SELECT time FROM {event} WHERE kind = 'call');
name = text;
"""

CALL_CONDITIONS = r"""
id = 262144; id > 524288;
parent IS NULL; parent = 262144; parent > 1;
run = 2;
time > {time};
duration > 0; duration IS NULL;
pid = 200;
tid = 101;
module = 'app';
func LIKE '%pay';
file LIKE '%';
line < 4;
depth = 1;
stream = 2; process = 1;
outcome = 'running'; outcome IN ('return', 'exception');
value IS NULL; value LIKE '%o%';
"""


@pytest.mark.parametrize(
    ("table", "condition"),
    [
        *(("event", condition) for condition in parted(EVENT_CONDITIONS)),
        *(("argument", condition) for condition in parted(ARGUMENT_CONDITIONS)),
        *(("call", condition) for condition in parted(CALL_CONDITIONS)),
    ],
)
def test_a_condition(connection: apsw.Connection, table: str, condition: str) -> None:
    id, position = ("event", ", position") if table == "argument" else ("id", "")
    select = f"SELECT {COLUMNS[table]} FROM {{{table}}} WHERE"
    order = f"ORDER BY time, {id}"
    found = both(connection, f"{select} {condition} {order}{position}")
    both(connection, f"{select} {condition} ORDER BY time DESC, {id} DESC{position}")
    both(connection, f"{select} NOT ({condition}) {order}{position}")
    both(connection, f"{select} {condition} AND run = 1 {order}{position}")
    both(connection, f"{select} {condition} OR run = 1 {order}{position}")
    both(connection, f"SELECT count(*), min(time), max({id}) FROM {{{table}}} WHERE {condition}")
    for limit, offset in ((0, 0), (1, 0), (3, 2), (-1, 1), (5, len(found)), (2, -1)):
        both(connection, f"{select} {condition} {order}{position} LIMIT {limit} OFFSET {offset}")


QUERIES = """
SELECT e.id, a.name, a.value FROM {event} AS e JOIN {argument} AS a ON a.event = e.id WHERE e.kind =
    'call' ORDER BY e.time, e.id, a.position;
SELECT e.id, a.value FROM {event} AS e LEFT JOIN {argument} AS a ON a.event = e.id AND a.name =
    'user' ORDER BY e.time, e.id, a.position;
SELECT e.id, e.func FROM {argument} AS a JOIN {event} AS e ON e.id = a.event WHERE a.text = 'bob'
    ORDER BY a.time, a.event, a.position;
SELECT c.id, p.func, c.func FROM {call} AS c JOIN {event} AS p ON p.id = c.parent ORDER BY c.id;
SELECT a.id, b.id FROM {event} AS a JOIN {event} AS b ON b.time > a.time AND b.tid = a.tid AND
    b.func = a.func WHERE a.kind = 'call' AND b.kind = 'return' ORDER BY 1, 2;
SELECT a.id, b.id FROM {event} AS a, {event} AS b WHERE a.duration = b.duration AND a.id < b.id
    ORDER BY 1, 2;
SELECT a.id, b.id FROM {event} AS a, {event} AS b WHERE b.func LIKE a.func AND a.run = 1 AND b.run =
    2 ORDER BY 1, 2;
SELECT run.id, e.id FROM run JOIN {event} AS e ON e.run = run.id AND e.time <= run.started + 4000
    ORDER BY 1, 2;
SELECT code.number, e.id FROM code JOIN {event} AS e USING (run, func) WHERE e.kind = 'call' ORDER
    BY 1, 2;
SELECT func FROM {event} WHERE id = (SELECT max(event) FROM {argument} WHERE name = 'user');
SELECT id FROM {event} AS e WHERE EXISTS (SELECT 1 FROM {argument} WHERE event = e.id AND text =
    'bob') ORDER BY id;
SELECT id FROM {event} AS e WHERE NOT EXISTS (SELECT 1 FROM {argument} WHERE event = e.id) ORDER BY
    id;
SELECT id, (SELECT value FROM {argument} WHERE event = e.id AND position = 0) FROM {event} AS e
    ORDER BY id;
WITH slow AS (SELECT id, func FROM {event} WHERE duration > 100) SELECT func, count(*) FROM slow
    GROUP BY func;
SELECT id FROM {event} WHERE (run, kind) IN (VALUES (1, 'call'), (2, 'log')) ORDER BY id;
SELECT id FROM {event} WHERE (time, id) > (SELECT time, id FROM {event} WHERE kind = 'log' ORDER BY
    id LIMIT 1) ORDER BY time, id LIMIT 5;
SELECT kind, count(*), sum(duration), avg(depth) FROM {event} GROUP BY kind ORDER BY kind;
SELECT DISTINCT func FROM {event} ORDER BY func;
SELECT id FROM {event} WHERE kind = 'call' UNION SELECT event FROM {argument} WHERE text = 'bob'
    ORDER BY 1;
SELECT id FROM {event} EXCEPT SELECT event FROM {argument} ORDER BY 1;
SELECT id, time - lag(time) OVER (PARTITION BY tid ORDER BY time, id) FROM {event} WHERE run = 1
    ORDER BY id;
SELECT id FROM {event} ORDER BY time, id DESC;
SELECT id FROM {event} ORDER BY id;
SELECT id FROM {event} ORDER BY duration DESC, id LIMIT 7;
SELECT id FROM {event} ORDER BY func COLLATE NOCASE, id;
SELECT id FROM {event} ORDER BY time DESC, id;
SELECT id FROM {event} ORDER BY -time, id;
SELECT id FROM {event} WHERE kind = 'call' AND kind = 'return';
SELECT id FROM {event} WHERE kind = 'call' OR duration > 100 OR func LIKE '%pay' ORDER BY time, id;
SELECT id FROM {event} WHERE (kind = 'call' OR depth = 0) AND NOT (tid = 101 OR func = 'pay') ORDER
    BY time, id;
SELECT id FROM {event} WHERE CASE WHEN kind = 'call' THEN depth ELSE 5 END < 2 ORDER BY id;
"""


@pytest.mark.parametrize("query", parted(QUERIES))
def test_a_query(connection: apsw.Connection, query: str) -> None:
    both(connection, query)


LIKES = (
    "SELECT id, func FROM {event} WHERE func LIKE '%A%' ORDER BY id",
    "SELECT id, func FROM {event} WHERE func LIKE '%a%' AND kind = 'call' ORDER BY id LIMIT 5 OFFSET 1",
    "SELECT event, name, value FROM {argument} WHERE value LIKE '%B%' ORDER BY event, position",
)


@pytest.fixture(name="another_like", params=["case_sensitive_like = ON", "case_sensitive_like = OFF", None])
def another_like_fixture(
    connection: apsw.Connection, request: pytest.FixtureRequest
) -> Iterator[apsw.Connection]:
    """A connection of its own, in which LIKE is not what it is at first."""
    other = SqlSession(connection.filename).connection()
    for name, columns in COLUMNS.items():
        other.execute(f"CREATE TEMP TABLE {name}_copy AS SELECT {columns} FROM {name}")
    for sql in LIKES:  # known by then
        both(other, sql)
    if request.param:
        other.execute(f"PRAGMA {request.param}")
    else:
        other.create_scalar_function("like", lambda pattern, text: "pay" in str(text), 2)
    yield other
    other.close()


def test_like_is_whatever_the_connection_has_for_it(another_like: apsw.Connection) -> None:
    for sql in LIKES:
        both(another_like, sql)
    (rows,) = another_like.execute("SELECT count(*) FROM event WHERE func LIKE '%A%'")
    (words,) = another_like.execute("SELECT count(*) FROM event_copy WHERE func LIKE '%A%'")
    assert rows == words


def test_an_order_is_kept_where_times_are_equal(connection: apsw.Connection) -> None:
    times = [time for (time,) in connection.execute("SELECT time FROM event")]
    assert len(set(times)) < len(times)
    assert times == sorted(times)
    for sql in (
        "SELECT time, id FROM {event} ORDER BY time",
        "SELECT time, id FROM {event} ORDER BY time DESC",
    ):
        rows = connection.execute(sql.format(event="event")).fetchall()
        assert rows == sorted(rows, reverse="DESC" in sql)


NUMBERS = ("id", "run", "time", "pid", "tid", "line", "depth", "duration", "cpu")
WORDS = ("thread", "kind", "layer", "module", "func", "file")


def one_of(connection: apsw.Connection, column: str) -> st.SearchStrategy[Any]:
    values = [
        value for (value,) in connection.execute(f"SELECT DISTINCT {column} FROM event_copy ORDER BY 1")
    ]
    if column in WORDS:
        patterns = st.sampled_from(values).map(lambda value: f"%{value[1:]}") | st.text(
            "ab%_pP\\", max_size=4
        )
        return (
            st.sampled_from(values) | patterns | st.none() | st.integers(-2, 20) | st.floats(allow_nan=False)
        )
    near = st.builds(
        lambda value, more: (value or 0) + more, st.sampled_from(values), st.sampled_from([-1, 0, 0, 1, 0.5])
    )
    wide = st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False)
    return near | wide | st.none() | st.sampled_from(["", "x", "1", " 1", "1.5", "1x", b"1"])


@st.composite
def conditions(draw: st.DrawFn, connection: apsw.Connection) -> tuple[str, list[Any]]:
    column = draw(st.sampled_from(NUMBERS + WORDS))
    value = one_of(connection, column)
    operation = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>", "IS", "LIKE", "IN", "BETWEEN"]))
    if operation == "IN":
        values = draw(st.lists(value, max_size=4))
        return f"{column} IN ({', '.join('?' * len(values))})", values
    if operation == "BETWEEN":
        return f"{column} BETWEEN ? AND ?", [draw(value), draw(value)]
    return f"{column} {operation} ?", [draw(value)]


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_conditions(connection: apsw.Connection, data: st.DataObject) -> None:
    parts = data.draw(st.lists(conditions(connection), min_size=1, max_size=4))
    joins = data.draw(
        st.lists(st.sampled_from([" AND ", " AND ", " OR ", " AND NOT "]), min_size=3, max_size=3)
    )
    where = "".join(f"{condition}{join}" for (condition, _), join in zip(parts, [*joins, ""], strict=False))
    where = where.removesuffix(joins[len(parts) - 1]) if len(parts) <= 3 else where
    order = data.draw(st.sampled_from(["time, id", "time DESC, id DESC", "id", "func, id DESC"]))
    limit = data.draw(st.sampled_from(["", "LIMIT 3", "LIMIT 4 OFFSET 3", "LIMIT -1 OFFSET 2"]))
    sql = f"SELECT id FROM {{event}} WHERE {where} ORDER BY {order} {limit}"
    both(connection, sql, [value for _, values in parts for value in values])
