"""The ways from one moment to another: each is a question to the database, forwards or backwards.

A walk stops at lines; at returns, yields and exceptions, with their values; at what is raised,
logged or lost; and at calls of functions whose lines were not recorded. A trailing line belongs to
the end behind it. Where the lines of own code alone were recorded,
a walk passes over all other code, unless `everything` is asked for. Backwards the same moments come
in reverse.

The answer None means that there is none: the recording ends there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..query import Query
from ..rows import text
from .moment import LEAVES, Moment, after, arguments, moment, moments

if TYPE_CHECKING:
    from ..database import Database

_FIRST, _MOST = 4, 4096  # events that are asked for at once
CO_NESTED = 0x10  # of code.flags
_OWN = '(or (= mine 1) (= kind "lost"))'
_LEAVES = f"kind IN {LEAVES}"


class History:
    """The moments of a run."""

    def __init__(self, database: Database, run: int) -> None:
        self.database, self.run = database, run
        self._run = Query("run = ?", (run,))
        self.everything = not self._has_own_lines()

    # ---- where to begin ----

    def at(self, id: int) -> Moment | None:
        """The event of this id, if it is of this run."""
        found = moment(self.database, id)
        return found if found and found.run == self.run else None

    def first(self, backwards: bool = False) -> Moment | None:
        """The first moment of the run; backwards: the last one."""
        found = self._edge(self._run, backwards)
        return self._nearest_stop(found, backwards) if found else None

    def at_time(self, time: int, stream: int | None = None) -> Moment | None:
        """The first moment at or after a time (ns since 1970), of a thread or of all; behind the
        last one, that."""
        query = self._run if stream is None else self._thread(stream)
        found = self._edge(query.also("time >= ?", time), False)
        found = found or self._edge(query.also("time < ?", time), True)
        return self._nearest_stop(found, False) if found else None

    def in_thread(self, stream: int, time: int) -> Moment | None:
        """Where a thread was at a time: its last moment up to then, or its first one."""
        thread = self._thread(stream)
        found = self._edge(thread.also("time <= ?", time), True)
        found = found or self._edge(thread.also("time > ?", time), False)
        return self._nearest_stop(found, True) if found else None

    def _edge(self, query: Query, backwards: bool) -> Moment | None:
        """The first event of a query on a walk (backwards: the last one); else any event."""
        found = _only(moments(self.database, self._shown(query), backwards, 1))
        return found or _only(moments(self.database, query, backwards, 1))

    def _nearest_stop(self, moment: Moment, backwards: bool) -> Moment:
        """The moment itself if a walk stops there, else the next one that does."""
        following = after(self._walk(moment.stream), moment, False)
        if _is_stop(moment, _only(moments(self.database, following, False, 1))):
            return moment
        return self.step(moment, backwards) or self.step(moment, not backwards) or moment

    # ---- steps ----

    def step(self, moment: Moment, backwards: bool = False) -> Moment | None:
        """The next moment of the thread, in whatever function."""
        return next(self._stops(self._walk(moment.stream), moment, backwards), None)

    def next(self, moment: Moment, backwards: bool = False) -> Moment | None:
        """The next moment of the function, or of one that called it: over what it calls."""
        depth, thread = moment.depth, self._walk(moment.stream)
        if moment.enters if backwards else moment.leaves:
            depth -= 1
        elif backwards:
            within = after(thread.also("depth <= ?", depth), moment, True)
            before = _only(moments(self.database, within, True, 1))
            if before is not None and before.enters and before.depth == depth:
                if _is_stop(before, moment):
                    return before
                depth -= 1
        return next(self._stops(thread.also("depth <= ?", depth), moment, backwards), None)

    def finish(self, moment: Moment, backwards: bool = False) -> Moment | None:
        """The end of the function; at its end, that of its caller. Backwards: where it was
        called."""
        thread = self._walk(moment.stream)
        if backwards:
            return next(self._stops(thread.also("depth < ?", moment.depth), moment, True), None)
        depth = moment.depth - 1 if moment.leaves else moment.depth
        ends = thread.also(f"depth <= ? AND {_LEAVES}", depth)
        return _only(moments(self.database, after(ends, moment, False), False, 1))

    def iteration(self, moment: Moment, backwards: bool = False) -> Moment | None:
        """The next time that this call runs this line."""
        depth, line = moment.depth, moment.line
        if moment.kind != "line":
            return None
        edges = f"(and (<= depth {depth}) (in kind {_words(LEAVES)}))"
        if backwards:
            edges = f'(or (< depth {depth}) (and (= depth {depth}) (= kind "call")))'
        place = f'(and (= depth {depth}) (= kind "line") (= line {line}))'
        within = self._walk(moment.stream).also(
            "depth <= ? AND event MATCH ?", depth, f"(or {place} {edges})"
        )
        for found in self._stops(within, moment, backwards):
            return found if found.kind == "line" and found.depth == depth else None
        return None

    def onwards(self, moment: Moment, condition: str, backwards: bool = False) -> Moment | None:
        """The next event of any thread that meets a condition (`event MATCH`)."""
        return next(self.hits(moment, condition, backwards), None)

    def hits(self, moment: Moment, condition: str, backwards: bool = False) -> Iterator[Moment]:
        """All of these events, one after another."""
        return self._each(self._run.also("event MATCH ?", condition), moment, backwards)

    def raised(self, moment: Moment, backwards: bool = False) -> Moment | None:
        """Where the next exception is raised, in any thread."""
        arrived = self._each(self._shown(self._run.also("kind = 'raise'")), moment, backwards)
        return next(filter(self.is_raised, arrived), None)

    def is_raised(self, moment: Moment) -> bool:
        """Whether the exception of a `raise` began there, and did not come out of a call."""
        before = _only(moments(self.database, after(self._walk(moment.stream), moment, True), True, 1))
        if before is None or before.kind != "exception" or before.depth <= moment.depth:
            return True
        return arguments(self.database, before.id) != arguments(self.database, moment.id)

    # ---- of variables ----

    def change(self, moment: Moment, entered: Moment | None, name: str, backwards: bool) -> Moment | None:
        """The next event of a call that tells a new value of a variable; backwards: the last one up
        to the moment itself. entered: the event that entered the call, if it is known. A `line`
        tells what the line before it did; a call tells its arguments."""
        depth = moment.depth
        told = f"(and (= depth {depth}) (in kind {_words(('line', 'call'))}) (any (= name {quoted(name)})))"
        query = self._thread(moment.stream).also("depth <= ? AND event MATCH ?", depth, told)
        if backwards:
            query = query.also("time <= ? AND id <= ?", moment.time, moment.id)
            if entered is not None:
                query = query.also("time >= ?", entered.time)
            return _only(moments(self.database, query, True, 1))
        end = self._end_of(moment)
        if end is not None:
            query = query.also("time <= ?", end.time)
        found = _only(moments(self.database, after(query, moment, False), False, 1))
        return None if found and end and (found.time, found.id) > (end.time, end.id) else found

    def setter(self, moment: Moment, change: Moment) -> Moment:
        """The line that did what a `line` event tells: the one that the call ran before it."""
        if change.kind != "line":
            return change
        lines = self._thread(change.stream).also("depth = ? AND kind = 'line' AND trailing = 0", change.depth)
        return _only(moments(self.database, after(lines, change, True), True, 1)) or change

    def _end_of(self, moment: Moment) -> Moment | None:
        if moment.leaves:
            return moment
        ends = self._thread(moment.stream).also(f"depth <= ? AND {_LEAVES}", moment.depth)
        return _only(moments(self.database, after(ends, moment, False), False, 1))

    # ---- how often ----

    def times(self, moment: Moment) -> tuple[int, int]:
        """Which time this is that its line runs (from 1), and how often it ran in the run. It goes
        through all segments that have the line's function."""
        line = self._run.also(
            "kind = 'line' AND file = ? AND line = ? AND trailing = 0", moment.file, moment.line
        )
        earlier = line.before(moment.time, moment.id)
        counts = [
            self.database.query("i", f"SELECT count(*) FROM event WHERE {each.where}", each.parameters)[0][0]
            for each in (earlier, line)
        ]
        return counts[0] + (not moment.trailing), counts[1]

    def streams(self) -> list[tuple[int, int, int, str]]:
        """Threads of the run that recorded something: stream, pid, tid, name."""
        rows = self.database.query(
            "iiib",
            "SELECT stream, coalesce(pid, 0), tid, CAST(name AS BLOB) FROM thread LEFT JOIN process"
            " ON process.run = thread.run AND number = process WHERE thread.run = ? ORDER BY stream",
            (self.run,),
        )
        return [(stream, pid, tid, text(name)) for stream, pid, tid, name in rows]

    def has_lines(self) -> bool:
        """Whether lines were recorded at all; the summaries of segments tell it."""
        return bool(moments(self.database, self._run.also("kind = 'line'"), False, 1))

    # ---- of predicates ----

    def following(self, moment: Moment) -> Moment | None:
        """The next event of the thread, whether a walk stops there or not."""
        return _only(moments(self.database, after(self._thread(moment.stream), moment, False), False, 1))

    def stop_of(self, event: Moment) -> Moment:
        """Where a walk stops for an event: of a call that has lines the first one, of a trailing
        line the end behind it."""
        following = self.following(event) if event.kind == "call" or event.trailing else None
        return event if following is None or _is_stop(event, following) else following

    def meets(self, id: int, condition: str) -> bool:
        """Whether an event meets a condition (`event MATCH`)."""
        sql = "SELECT count(*) FROM event WHERE id = ? AND event MATCH ?"
        return bool(self.database.query("i", sql, (id, condition))[0][0])

    def has_any(self, condition: str) -> bool:
        """Whether an event of the run meets a condition."""
        return bool(moments(self.database, self._run.also("event MATCH ?", condition), False, 1))

    def events(self, condition: str, stream: int | None = None) -> Query:
        """The events of the run, or of one thread, that meet a condition."""
        of = self._run if stream is None else self._thread(stream)
        return of.also("event MATCH ?", condition)

    def count_before(self, condition: str, time: int, id: int) -> int:
        """The number of events that meet a condition before a place. It goes through all of
        them."""
        earlier = self.events(condition).before(time, id)
        sql = f"SELECT count(*) FROM event WHERE {earlier.where}"
        found: int = self.database.query("i", sql, earlier.parameters)[0][0]
        return found

    def place_before(
        self, condition: str, stream: int | None, time: int, id: int, count: int, since: int = 0
    ) -> tuple[int, int] | None:
        """Time and id of the first of the last `count` events before a place that meet a condition.
        since: none is earlier."""
        earlier = self.events(condition, stream).before(time, id).also("time >= ?", since)
        sql = f"SELECT time, id FROM event WHERE {earlier.where} ORDER BY time DESC, id DESC LIMIT {count}"
        found = self.database.query("ii", sql, earlier.parameters)
        return (found[-1][0], found[-1][1]) if found else None

    def places(
        self, condition: str, stream: int | None, start: tuple[int, int], until: tuple[int, int] | None
    ) -> Iterator[tuple[tuple[int, int], int, int]]:
        """The events behind a place that meet a condition: time and id, stream, depth."""
        query, count = self.events(condition, stream), _FIRST
        if until is not None:
            query = query.also("time <= ?", until[0])
        while True:
            of = query.behind(*start)
            sql = (
                f"SELECT time, id, stream, depth FROM event WHERE {of.where} ORDER BY time, id LIMIT {count}"
            )
            rows = self.database.query("iiii", sql, of.parameters)
            yield from (((time, id), of_stream, depth) for time, id, of_stream, depth in rows)
            if len(rows) < count:
                return
            start, count = (rows[-1][0], rows[-1][1]), min(count * _FIRST, _MOST)

    def last_of_frames(
        self, condition: str, stream: int | None, time: int, id: int
    ) -> list[tuple[tuple[int, int], int, int]]:
        """Of each thread and depth the last event up to a place that meets a condition."""
        until = self.events(condition, stream).before(time, id + 1)
        sql = f"SELECT max(time), id, stream, depth FROM event WHERE {until.where} GROUP BY stream, depth"
        rows = self.database.query("iiii", sql, until.parameters)
        return [((at, of), in_stream, depth) for at, of, in_stream, depth in rows]

    def end_of_value(
        self, place: tuple[int, int], stream: int, depth: int, name: str
    ) -> tuple[int, int] | None:
        """Where a variable changes after a place of its function, or the function ends."""
        change = f'(and (= depth {depth}) (= kind "line") (any (= name {quoted(name)})))'
        end = f'(and (<= depth {depth}) (in kind "call" "return" "exception"))'
        return next((at for at, *_ in self.places(f"(or {change} {end})", stream, place, None)), None)

    def among(self, ids: Sequence[int]) -> dict[int, Moment]:
        """The events of some ids, by them; a few hundred at most."""
        query = Query(f"id IN ({', '.join('?' * len(ids))})", tuple(ids))
        return {each.id: each for each in moments(self.database, query, False, len(ids))}

    def is_nested(self, file: str, func: str) -> bool:
        """Whether a function stands within another one, and may use its variables."""
        sql = "SELECT count(*) FROM code WHERE run = ? AND file = ? AND func = ? AND flags & ?"
        return bool(self.database.query("i", sql, (self.run, file, func, CO_NESTED))[0][0])

    def is_whole(self) -> bool:
        """Whether no event was evicted or lost."""
        sql = "SELECT lost + evicted FROM run WHERE id = ?"
        return self.database.query("i", sql, (self.run,)) == [(0,)]

    def lines_near(self, file: str, line: int, around: int) -> list[int]:
        """The lines of a file that ran, at most some lines away from one."""
        ran = self._run.also("kind = 'line' AND file = ?", file)
        ran = ran.also("line >= ? AND line <= ?", line - around, line + around)
        sql = f"SELECT DISTINCT line FROM event WHERE {ran.where} ORDER BY line"
        return [line for (line,) in self.database.query("i", sql, ran.parameters)]

    # ---- how they are found ----

    def _has_own_lines(self) -> bool:
        """Whether lines were recorded, and of own code alone."""
        known = self.database.has_column("run", "options")
        option = "coalesce(options ->> '$.lines', '')" if known else "''"
        rows = self.database.query("b", f"SELECT CAST({option} AS BLOB) FROM run WHERE id = ?", (self.run,))
        return rows != [(b"all",)] and self.has_lines()

    def _shown(self, query: Query) -> Query:
        """The events of a query that a walk does not pass over."""
        return query if self.everything else query.also("event MATCH ?", _OWN)

    def _walk(self, stream: int) -> Query:
        return self._shown(self._thread(stream))

    def _thread(self, stream: int) -> Query:
        return self._run.also("stream = ?", stream)

    def _each(self, query: Query, moment: Moment, backwards: bool) -> Iterator[Moment]:
        """The events of a query behind a moment, a few at a time."""
        count = 1
        while True:
            found = moments(self.database, after(query, moment, backwards), backwards, count)
            yield from found
            if len(found) < count:
                return
            moment, count = found[-1], min(count * _FIRST, _MOST)

    def _stops(self, query: Query, start: Moment, backwards: bool) -> Iterator[Moment]:
        """The moments of a query behind `start`, at which a walk stops."""
        place, count = start, _FIRST
        following: Moment | None = start  # in time; backwards the one that came before
        waiting: Moment | None = None  # forwards: it needs to know what follows
        while True:
            found = moments(self.database, after(query, place, backwards), backwards, count)
            for each in found:
                if backwards:
                    if _is_stop(each, following):
                        yield each
                    following = each
                else:
                    if waiting is not None and _is_stop(waiting, each):
                        yield waiting
                    waiting = each
            if len(found) < count:
                break
            place, count = found[-1], min(count * _FIRST, _MOST)
        if waiting is not None and _is_stop(waiting, None):
            yield waiting


def _is_stop(moment: Moment, following: Moment | None) -> bool:
    if not moment.enters or following is None or following.kind != "line":
        return not moment.trailing
    return following.depth != moment.depth or following.stream != moment.stream


def _only(found: Sequence[Moment]) -> Moment | None:
    return found[0] if found else None


def _words(words: Sequence[str]) -> str:
    return " ".join(f'"{word}"' for word in words)


def quoted(text: str) -> str:
    """A text as a predicate has it (`event MATCH`)."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
