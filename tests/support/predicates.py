"""Predicates for tests: csrc/query/predicate.h and like.h compiled into a module of the tests' own,
and the same in a few lines of Python, to compare with.

A tree is a nested tuple as the text form has it: `("and", ("=", "func", "pay"), ("any", ("like",
"value", "%bob%")))`. `holds` is what it means.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cffi

from records import NUMBERS, RECORDS, TEXTS, Google, Record, Val, copy_sources, generate, load_built

SOURCES = (
    "query/run_definitions",
    "query/like",
    "query/required_literal",
    "query/predicate_make",
    "query/predicate_ask",
    "query/predicate_rest",
    "query/predicate_parse",
    "format/event",
    "format/segment",
    "query/text",
    "query/known",
    "query/out",
    "query/number",
)

DECLARATIONS = (
    TEXTS
    + """

struct segment_clock { int64_t epoch_ns; uint64_t epoch_units; uint64_t scale; };
struct run_code {
    struct string module, func, file, last;
    uint32_t line;
    struct string layer;
    bool mine;
    uint32_t argument_count;
    const struct string *arguments;
    uint32_t variable_count;
    const struct string *variables;
};
struct run_thread {
    uint32_t stream;
    int64_t process, pid, tid;
    struct string name;
    bool is_kernel;
    uint32_t own;
};
struct run_names { uint32_t count; const struct string *names; };
struct run_definitions {
    int64_t run;
    struct segment_clock clock;
    uint32_t code_count;
    const struct run_code *codes;
    uint32_t thread_count;
    const struct run_thread *threads;
    uint32_t type_count;
    const char *const *types;
    const struct run_names *fields, *attributes;
};
extern const struct run_code run_code_undefined;
const struct run_code *run_code_find(const struct run_definitions *run, uint32_t number);
const struct run_thread *run_thread_find(const struct run_definitions *run, uint32_t stream);
struct text_names run_type_names(const struct run_definitions *run);
struct string run_argument_name(const struct run_code *code, int kind, uint32_t position,
                                struct string given, char *buffer);

struct like;
struct like *like_new(const char *pattern, size_t size, int escape);
void like_free(struct like *like);
bool like_matches(const struct like *like, const char *text, size_t size);
const char *like_literal(const struct like *like, size_t *size);
bool like_is_literal(const struct like *like);
const void *like_find(const void *haystack, size_t size, const char *needle, size_t needle_size);

enum field {
    FIELD_ID, FIELD_RUN, FIELD_TIME, FIELD_PID, FIELD_TID, FIELD_LINE, FIELD_DEPTH, FIELD_DURATION,
    FIELD_MINE, FIELD_TRAILING, FIELD_OWN_DEPTH, FIELD_NEAR_DEPTH, FIELD_NEAR, FIELD_CPU,
    FIELD_STREAM, FIELD_PROCESS, FIELD_POSITION, FIELD_THREAD, FIELD_TASK, FIELD_KIND,
    FIELD_LAYER, FIELD_MODULE, FIELD_FILE, FIELD_QUALNAME, FIELD_FUNC, FIELD_NAME, FIELD_VALUE, FIELD_TEXT,
    FIELD_EITHER, FIELD_TYPE
};
#define PREDICATE_DEPTH_MAX ...
enum group { GROUP_AND, GROUP_OR, GROUP_NOT, GROUP_ANY };
enum answer { NEVER, ALWAYS, MAYBE };
struct bounds { int64_t low, high; };
struct facts {
    struct bounds id, time, depth, duration;
    bool has_duration, lacks_duration;
    struct bounds own_depth, near_depth, near;
    bool has_levels, lacks_levels;
    struct bounds cpu;
    bool has_cpu, lacks_cpu;
    enum answer shown[2];
    struct bounds trailing;
    struct bounds line;
    uint32_t kinds;
    const struct run_definitions *run;
    const struct run_thread *thread;
    struct bounds stream;
    const struct run_code *code;
    bool task_known;
    struct string task;
    const struct event *event;
    const struct required_literals *missing;
};
extern const struct facts facts_unknown;
struct predicate *predicate_range(enum field field, int64_t low, int64_t high);
struct predicate *predicate_numbers(enum field field, const int64_t *numbers, size_t count);
struct predicate *predicate_equal(enum field field, const char *text, size_t size);
struct predicate *predicate_like(enum field field, const char *pattern, size_t size, int escape);
struct predicate *predicate_plain(enum field field);
struct predicate *predicate_group(enum group group, struct predicate **members, size_t count);
struct predicate *predicate_parse(const char *text, size_t size, char *message, size_t message_size);
void predicate_free(struct predicate *predicate);
enum answer predicate_ask(const struct predicate *predicate, const struct facts *facts);
bool predicate_ask_argument(const struct predicate *predicate, const struct facts *facts, uint32_t position,
                            struct string name, const struct value *value);
struct required_literal;
#define REQUIRED_LITERALS_MAX ...
struct required_literals { const struct required_literal *all[...]; size_t count; };
bool required_literal_is_in(const struct required_literal *literal, const uint8_t *bytes, size_t size);
const uint8_t *required_literal_find(const struct required_literal *literal, const uint8_t *bytes,
                                     size_t size, const uint8_t *from);
void predicate_required_literals(const struct predicate *predicate, struct required_literals *literals);
const struct predicate *predicate_rest(const struct predicate *predicate, const struct facts *facts);
void predicate_rest_free(const struct predicate *rest);
struct bounds predicate_bounds(const struct predicate *predicate, enum field field);
long event_head(const uint8_t *data, size_t size, struct event *event);
"""
)

Tree = tuple[Any, ...]


@dataclass(frozen=True)
class Code:
    """A code object's definition."""

    module: str
    func: str
    file: str
    line: int
    arguments: tuple[str, ...] = ()
    mine: bool = False
    variables: tuple[str, ...] = ()
    layer: str = "python"


def process_of(stream: int) -> int:
    """The number of the process that a thread is of."""
    return stream % 2


NO_CODE = Code("", "", "", 0)
UNDEFINED = Code("?", "?", "?", 0)


@dataclass(frozen=True)
class Event:
    """A record and where it stands."""

    record: Record
    id: int = 0
    time: int = 0
    depth: int = 0
    duration: int | None = None
    stream: int = 1
    task: str = ""  # none
    cpu: int | None = None


@dataclass(frozen=True)
class Run:
    """A run's definitions: codes by number, threads (pid, tid, name) by stream, types and the names
    of their items and attributes by number."""

    codes: dict[int, Code] = field(default_factory=dict)
    threads: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    types: dict[int, str] = field(default_factory=dict)
    fields: dict[int, tuple[str, ...]] = field(default_factory=dict)
    attributes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    number: int = 1

    def code(self, record: Record) -> Code:
        if record.kind == "lost" or not record.what:
            return NO_CODE
        return self.codes.get(record.what, UNDEFINED)


def build_predicates(folder: Path) -> None:
    """Compiles the C code as a cffi module, and what `Google` generates."""
    generate(folder)
    copy_sources(folder)
    builder = cffi.FFI()
    builder.cdef(RECORDS)
    builder.cdef(DECLARATIONS)
    builder.set_source(
        "pytrace_test_predicates",
        '#include "query/like.h"\n#include "query/predicate.h"\n#include "query/text.h"\n',
        sources=[str(folder / f"{name}.c") for name in SOURCES],
        include_dirs=[str(folder)],
        extra_compile_args=["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"],
    )
    builder.compile(tmpdir=str(folder))


class Predicates:
    """The C predicates, asked from Python, from the folder that `build_predicates` filled."""

    def __init__(self, folder: Path) -> None:
        module = load_built("pytrace_test_predicates", folder)
        self.ffi, self.lib = module.ffi, module.lib
        self.google = Google(folder)

    # -- LIKE --

    def like(self, pattern: bytes, text: bytes, escape: int = -1) -> bool:
        made = self.ffi.gc(self.lib.like_new(pattern, len(pattern), escape), self.lib.like_free)
        return bool(self.lib.like_matches(made, self.ffi.from_buffer(text), len(text)))

    def literal(self, pattern: bytes, escape: int = -1) -> tuple[bytes, bool]:
        """like_literal and like_is_literal."""
        made = self.ffi.gc(self.lib.like_new(pattern, len(pattern), escape), self.lib.like_free)
        size = self.ffi.new("size_t *")
        text = self.lib.like_literal(made, size)
        return bytes(self.ffi.buffer(text, size[0])), bool(self.lib.like_is_literal(made))

    def find(self, haystack: bytes, needle: bytes) -> int:
        held = self.ffi.from_buffer(haystack)
        found = self.lib.like_find(held, len(haystack), needle, len(needle))
        return (
            -1
            if found == self.ffi.NULL
            else int(self.ffi.cast("char *", found) - self.ffi.cast("char *", held))
        )

    # -- predicates --

    def parse(self, tree: Tree | str) -> Any:
        """Raises ValueError with the message."""
        text = (tree if isinstance(tree, str) else written(tree)).encode("utf-8", "surrogateescape")
        message = self.ffi.new("char[]", 200)
        made = self.lib.predicate_parse(text, len(text), message, 200)
        if made == self.ffi.NULL:
            raise ValueError(self.ffi.string(message).decode())
        return self.ffi.gc(made, self.lib.predicate_free)

    def definitions(self, run: Run) -> "Definitions":
        return Definitions(self, run)

    def body(self, events: Sequence[Event]) -> bytes:
        """Their records, as a segment holds them."""
        return self.google.encode(*(event.record for event in events))


class Definitions:
    """A run's definitions in C, and what is asked of its events."""

    def __init__(self, predicates: Predicates, run: Run) -> None:
        self.ffi, self.lib, self.run = predicates.ffi, predicates.lib, run
        self.predicates = predicates
        self._kept: list[Any] = []
        self._shown: tuple[Record | None, list[Argument]] = None, []
        new = self._new
        self.codes = new("struct run_code[]", max(run.codes, default=0) + 1)
        for number in range(1, len(self.codes)):
            self._fill(self.codes[number], run.codes.get(number, UNDEFINED))
        self._fill(self.codes[0], NO_CODE)
        self.threads = new("struct run_thread[]", len(run.threads))
        for place, (stream, (pid, tid, name)) in zip(self.threads, sorted(run.threads.items()), strict=True):
            place.stream, place.pid, place.tid, place.name = stream, pid, tid, self.string(name)
            place.process = process_of(stream)
        types = [self.ffi.NULL] * (max(run.types, default=0) + 1)
        for number, name in run.types.items():
            types[number] = new("char[]", name.encode())
        self.c = new("struct run_definitions *")
        self.c.run = run.number
        self.c.code_count, self.c.codes = len(self.codes), self.codes
        self.c.thread_count, self.c.threads = len(self.threads), self.threads
        self.c.type_count, self.c.types = len(types), new("char *[]", types)
        self.c.fields, self.c.attributes = (
            self._names(len(types), each) for each in (run.fields, run.attributes)
        )
        self.names = new("struct text_names *", self.lib.run_type_names(self.c))

    def _new(self, what: str, content: Any = None) -> Any:
        made = self.ffi.new(what, content)
        self._kept.append(made)
        return made

    def _names(self, count: int, names: dict[int, tuple[str, ...]]) -> Any:
        """An array by number of the type; NULL, if there are none."""
        made = self._new("struct run_names[]", count) if names else self.ffi.NULL
        for number, each in names.items():
            made[number].count = len(each)
            made[number].names = self._new("struct string[]", [self.string(name) for name in each])
        return made

    def string(self, text: str) -> Any:
        data = text.encode("utf-8", "surrogateescape")
        return self._new("struct string *", (self._new("char[]", data), len(data)))[0]

    def _fill(self, place: Any, code: Code) -> None:
        place.module, place.func, place.file = map(self.string, (code.module, code.func, code.file))
        place.last = self.string(code.func.rpartition(".")[2])
        place.line, place.argument_count = code.line, len(code.arguments)
        place.mine = code.mine
        place.layer = self.string(code.layer)
        place.arguments = self._new("struct string[]", [self.string(name) for name in code.arguments])
        place.variable_count = len(code.variables)
        place.variables = self._new("struct string[]", [self.string(name) for name in code.variables])

    # -- facts --

    def facts(self, event: Event, record: bytes | None, how: str = "decode") -> Any:
        """All facts of one event; `record`: its bytes, or None if its arguments are not to be
        known."""
        code = self.run.code(event.record)
        number = 0 if event.record.kind == "lost" else event.record.what
        return self._facts(
            id=[event.id] * 2,
            time=[event.time] * 2,
            depth=[event.depth] * 2,
            duration=[-1 if event.duration is None else event.duration] * 2,
            has_duration=event.duration is not None,
            lacks_duration=event.duration is None,
            line=[event.record.line or code.line] * 2,
            trailing=[event.record.trailing] * 2,
            kinds=1 << NUMBERS[event.record.kind],
            run=self.c,
            thread=self.lib.run_thread_find(self.c, event.stream),
            stream=[event.stream] * 2,
            code=self.lib.run_code_find(self.c, number),
            task_known=True,
            task=self.string(event.task),
            cpu=[-1 if event.cpu is None else event.cpu] * 2,
            has_cpu=event.cpu is not None,
            lacks_cpu=event.cpu is None,
            event=self.ffi.NULL if record is None else self.event(record, how),
        )

    def _facts(self, **facts: Any) -> Any:
        made = self.ffi.new("struct facts *", self.lib.facts_unknown)
        for name, value in facts.items():
            setattr(made, name, value)
        return made

    def trails(self, predicate: Any) -> list[Any]:
        trails = self._new("struct required_literals *")
        self.lib.predicate_required_literals(predicate, trails)
        return list(trails.all[0 : trails.count])

    def missing(self, predicate: Any, body: bytes) -> Any:
        """The predicate's trails that are neither in a body nor in the names of types, items and
        attributes."""
        rows = *self.run.fields.values(), *self.run.attributes.values()
        names = [*self.run.types.values(), *(name for row in rows for name in row)]
        places = [body, *(name.encode() for name in names)]
        missing = [
            trail
            for trail in self.trails(predicate)
            if not any(
                self.lib.required_literal_is_in(trail, self.ffi.from_buffer(p), len(p)) for p in places
            )
        ]
        trails = self._new("struct required_literals *")
        trails.all, trails.count = missing + [self.ffi.NULL] * (len(trails.all) - len(missing)), len(missing)
        return trails

    def event(self, record: bytes, how: str = "decode") -> Any:
        """A decoded record, for as long as this object lives."""
        event = self._new("struct event *")
        held = self.ffi.from_buffer(record)
        self._kept.append(held)
        assert getattr(self.lib, f"event_{how}")(held, len(record), event) == len(record)
        return event

    def set_facts(self, events: Sequence[Event], known: set[str], wider: int = 0) -> Any:
        """Facts of a set; `known`: which of them, the others being unknown."""
        facts: dict[str, Any] = {}
        for name in ("id", "time", "depth"):
            numbers = [getattr(event, name) for event in events]
            facts[name] = [min(numbers) - wider, max(numbers) + wider]
        lines = [event.record.line or self.run.code(event.record).line for event in events]
        facts["line"] = [min(lines), max(lines) + wider]
        facts["trailing"] = [min(trailing := [event.record.trailing for event in events]), max(trailing)]
        durations = [event.duration for event in events if event.duration is not None]
        facts["duration"] = [min(durations, default=0), max(durations, default=0) + wider]
        facts["has_duration"] = bool(durations)
        facts["lacks_duration"] = len(durations) < len(events)
        cpus = [event.cpu for event in events if event.cpu is not None]
        facts["cpu"] = [min(cpus, default=0), max(cpus, default=0) + wider]
        facts["has_cpu"] = bool(cpus)
        facts["lacks_cpu"] = len(cpus) < len(events)
        facts["kinds"] = sum({1 << NUMBERS[event.record.kind] for event in events})
        facts["run"] = self.c
        codes = {0 if event.record.kind == "lost" else event.record.what for event in events}
        if len(codes) == 1:
            facts["code"] = self.lib.run_code_find(self.c, *codes)
        if len({event.stream for event in events}) == 1:
            facts["thread"] = self.lib.run_thread_find(self.c, events[0].stream)
            facts["stream"] = [events[0].stream] * 2
        if len({event.task for event in events}) == 1:
            facts["task_known"] = True
            facts["task"] = self.string(events[0].task)
        if "run" not in known:
            known -= {"code", "thread"}
        if "duration" not in known:
            known -= {"has_duration", "lacks_duration"}
        if "cpu" not in known:
            known -= {"has_cpu", "lacks_cpu"}
        if "task_known" in known:
            known |= {"task"}
        return self._facts(**{name: value for name, value in facts.items() if name in known})

    # -- values as text --

    def arguments(self, record: Record) -> list["Argument"]:
        """An event's arguments as SQL shows them."""
        if record is not self._shown[0]:
            self._shown = record, self._arguments(record)
        return self._shown[1]

    def _arguments(self, record: Record) -> list["Argument"]:
        if record.kind == "lost":
            count = str(min(record.what, (1 << 63) - 1))
            return [Argument(0, "count", count, count, "int", Val("integer", int(count)))]
        names = {
            "call": self.run.code(record).arguments,
            "event": self.run.code(record).arguments,
            "return": ("return value",),
            "exception": ("exception",),
            "throw": ("exception",),
            "raise": ("exception",),
            "yield": ("yield value",),
            "log": ("message", *(name.decode() for name in record.names)),
        }.get(record.kind, ())
        made = []
        is_line = record.kind == "line"
        for i, value in enumerate(record.values[: record.changed] if is_line else record.values):
            name = (names[i] if i < len(names) else "") or f"argument {i + 1}"
            if is_line:
                name = variable_name(self.run.code(record), record, i)
            made.append(Argument(i, name, *self.texts(value), value))
            attributes = self.run.attributes.get(value.type, ()) if value.what == "address" else ()
            made += [
                Argument(i, f"{name}.{attribute}", *self.texts(item), item)
                for attribute, item in zip(attributes, value.items, strict=False)
            ]
        return made

    def value(self, value: Val) -> Any:
        """A `struct value`."""
        record = self.predicates.google.encode(Record("return", 1, values=(value,)))
        made = self._new("struct value *")
        assert self.lib.event_value(self.event(record), self.ffi.new("const uint8_t **"), made)
        return made

    def texts(self, value: Val) -> Iterator[str]:
        """Its text_value, text_bare and text_type."""
        made = self.value(value)
        for write in (self.lib.text_value, self.lib.text_bare, self.lib.text_type):
            buffer = self.ffi.new("char[]", size := write(made, self.names, self.ffi.NULL, 0))
            write(made, self.names, buffer, size)
            yield bytes(self.ffi.buffer(buffer)).decode()


def variable_name(code: Code, record: Record, position: int) -> str:
    """The name of a variable of a line, by the number that the record has for it."""
    if position >= len(record.variables):
        return f"variable {position + 1}"
    number = record.variables[position]
    return code.variables[number] if number < len(code.variables) else f"variable {number + 1}"


# ---- in Python --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Argument:
    """An argument, or an attribute of one, as SQL shows it."""

    position: int
    name: str
    value: str
    text: str
    type: str
    recorded: Val


def like(pattern: str, text: str, escape: str = "\\") -> bool:
    """SQL's LIKE."""
    expression, escaped = "", False
    for c in ascii_lower(pattern):
        if escaped or c not in ("%", "_", escape):
            expression += re.escape(c)
            escaped = False
        else:
            escaped = c == escape
            expression += {"%": ".*", "_": "."}.get(c, "") if not escaped else ""
    return not escaped and bool(re.fullmatch(expression, ascii_lower(text), re.DOTALL))


def ascii_lower(text: str) -> str:
    return re.sub("[A-Z]", lambda letter: letter[0].lower(), text)


ARGUMENT_FIELDS = ("position", "name", "value", "text", "either", "type")


def written(tree: Tree) -> str:
    """The text form."""
    word, *rest = tree
    if word in ("and", "or", "not", "any"):
        return f"({' '.join((word, *map(written, rest)))})"
    name, *values = rest
    return f"({' '.join((word, name, *map(written_value, values)))})"


def written_value(value: int | str) -> str:
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def holds(tree: Tree, event: Event, definitions: Definitions, argument: Argument | None = None) -> bool:
    """Whether an event meets it."""
    word, *rest = tree
    match word:
        case "and":
            return all(holds(member, event, definitions, argument) for member in rest)
        case "or":
            return any(holds(member, event, definitions, argument) for member in rest)
        case "not":
            return not holds(rest[0], event, definitions, argument)
        case "any":
            found = definitions.arguments(event.record)
            return any(holds(rest[0], event, definitions, one) for one in found)
    name, *values = rest
    held = list(contents(name, event, definitions, argument))
    if word == "!=":  # there is something, and none of it is that
        return bool(held) and values[0] not in held
    return any(compare(word, content, values) for content in held)


def contents(
    name: str, event: Event, definitions: Definitions, argument: Argument | None
) -> Iterator[int | str]:
    """The content of a field: nothing if it is missing; two texts if either will do."""
    run, record = definitions.run, event.record
    code = run.code(record)
    match name:
        case "id" | "time" | "depth":
            yield getattr(event, name)
        case "duration":
            yield from () if event.duration is None else (event.duration,)
        case "run":
            yield run.number
        case "stream":
            yield event.stream
        case "process":
            yield process_of(event.stream)
        case "pid" | "tid" | "thread":
            yield run.threads[event.stream][("pid", "tid", "thread").index(name)]
        case "task":
            yield event.task
        case "line":
            yield record.line or code.line
        case "kind":
            yield record.kind
        case "cpu":
            yield from () if event.cpu is None else (event.cpu,)
        case "module" | "file" | "layer":
            yield getattr(code, name)
        case "mine":
            yield int(code.mine)
        case "trailing":
            yield int(record.trailing)
        case "qualname":
            yield code.func
        case "func":
            yield from (code.func, code.func.rpartition(".")[2])
        case "either":
            assert argument
            yield from (argument.value, argument.text)
        case _:
            assert argument
            yield getattr(argument, name)


def compare(word: str, content: Any, values: list[Any]) -> bool:
    match word:
        case "=":
            return bool(content == values[0])
        case "<":
            return bool(content < values[0])
        case "<=":
            return bool(content <= values[0])
        case ">":
            return bool(content > values[0])
        case ">=":
            return bool(content >= values[0])
        case "between":
            return bool(values[0] <= content <= values[1])
        case "in":
            return content in values
        case "plain":
            return bool(content.isascii() and content.isprintable())
        case "like":
            return like(values[0], content)
    raise ValueError(word)
