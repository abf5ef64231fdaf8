"""Records for tests: a plain model of them, and those that write and read them.

`Record` and `Val` hold what proto/trace.proto holds. The C encoder and decoder of
csrc/format/event.h are compiled into a module of the tests' own (`Native`); Google's protobuf is
generated from proto/trace.proto (`Google`).
"""

import importlib.util
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import cffi
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
SOURCES = (
    *("format/event", "format/segment", "format/summary", "format/levels"),
    *("query/text", "query/out", "query/known", "query/number"),
)

KINDS = ("call", "return", "exception", "yield", "resume", "throw", "raise", "log", "lost", "line", "event")
LATER = tuple(f"later {number}" for number in range(18, 32))  # a later version's kinds
# from 10 to 15 are other fields
NUMBERS = dict(zip((*KINDS, *LATER), (*range(1, 10), *range(16, 32)), strict=True))
FIELDS = {"line": "at_line", "event": "happened"}  # of Event, where the kind has another name
NAMES = {number: kind for kind, number in NUMBERS.items()}
CONSTANTS = (
    *("NONE", "FALSE", "TRUE", "ELLIPSIS", "NOT_IMPLEMENTED", "REDACTED", "CUT", "UNBOUND", "CYCLE"),
    "DELETED",
)
CONTAINERS = ("LIST", "TUPLE", "DICT", "SET", "FROZENSET", "EXCEPTION", "PARTS")
NAMED = ("FUNCTION", "METHOD", "BUILTIN", "CLASS", "MODULE")

# content of a Value -> its field number
CONTENTS = {
    "constant": 1,
    "integer": 2,
    "floating": 3,
    "text": 4,
    "data": 5,
    "big": 6,
    "container": 7,
    "address": 8,
    "named": 9,
    "repr": 13,
}


@dataclass(frozen=True)
class Val:
    """A Value of proto/trace.proto. `what` is the set content's name, `content` its value."""

    what: str
    content: Any
    items: tuple["Val", ...] = ()
    type: int = 0
    length: int = 0
    name: bytes = b""
    form: int = 0
    keyword: bytes = b""


@dataclass(frozen=True)
class Record:
    """An Event of proto/trace.proto. `what`: the code's number, or a lost record's count."""

    kind: str
    what: int
    time: int = 0
    elapsed: int | None = None
    line: int = 0
    depth: int | None = None
    values: tuple[Val, ...] = ()
    names: tuple[bytes, ...] = ()
    variables: tuple[int, ...] = ()
    changed: int | None = None
    trailing: bool = False


ALL = (1 << 32) - 1  # of an event_variables: no `changed` was written


def varint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


# ---- C ----------------------------------------------------------------------------------------

RECORDS = """
uint8_t *wire_put_bytes(uint8_t *p, int field, const void *data, size_t size);
uint8_t *event_put(uint8_t *p, int field, uint64_t n);
uint8_t *event_open(uint8_t *p, int kind, uint64_t what);
uint8_t *events_put_cpu(uint8_t *p, int32_t cpu);
uint8_t *event_put_depth(uint8_t *p, int32_t depth);
uint8_t *event_close(uint8_t *record, uint8_t *end);
uint8_t *value_open(uint8_t *p, int field);
uint8_t *value_close(uint8_t *body, uint8_t *end);
uint8_t *value_put_integer(uint8_t *p, int64_t n);
uint8_t *value_put_floating(uint8_t *p, double number);
uint8_t *value_put_address(uint8_t *p, const void *address);

#define VALUE_DEPTH_MAX ...
struct event {
    int kind;
    bool is_trailing, has_later;
    uint32_t code, line;
    uint64_t count, time;
    bool has_elapsed;
    uint64_t elapsed;
    bool has_depth;
    int32_t depth;
    uint32_t value_count, name_count;
    ...;
};
struct value {
    int content, constant;
    int64_t integer;
    double floating;
    const uint8_t *bytes;
    size_t size;
    int container, named;
    uint64_t address;
    uint32_t type;
    bool has_length;
    uint64_t length;
    uint32_t form, item_count;
    const uint8_t *keyword;
    size_t keyword_size;
    ...;
};
long event_decode(const uint8_t *data, size_t size, struct event *event);
long event_skim(const uint8_t *data, size_t size, struct event *event);
bool event_value(const struct event *event, const uint8_t **cursor, struct value *value);
bool event_name(const struct event *event, const uint8_t **cursor, const uint8_t **name, size_t *size);
struct event_variables { uint32_t changed; ...; };
void event_variables(const struct event *event, struct event_variables *walk);
bool event_variable(struct event_variables *walk, uint32_t *variable);
bool value_item(const struct value *value, const uint8_t **cursor, struct value *item);
"""

# text.h, as far as records and predicates need it
TEXTS = """
struct string { const char *text; size_t size; };
struct text_names {
    const char *(*type_name)(void *context, uint32_t number);
    void *context;
    const struct string *(*field_name)(void *context, uint32_t type, uint32_t position);
    const struct string *(*attribute_name)(void *context, uint32_t type, uint32_t position);
};
size_t text_value(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);
size_t text_bare(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);
size_t text_type(const struct value *value, const struct text_names *names, char *buffer, size_t capacity);
"""

# where the core module's own declarations have been made
SEGMENTS = (
    """
struct segment_clock { int64_t epoch_ns; uint64_t epoch_units; uint64_t scale; };
int64_t segment_clock_ns(const struct segment_clock *clock, uint64_t units);
int64_t segment_duration_ns(const struct segment_clock *clock, uint64_t units);
struct segment_walk {
    uint64_t time; int32_t open; uint32_t later, between, index; const uint8_t *task; uint32_t task_size;
    int32_t cpu; ...;
};
void segment_open(struct segment_walk *walk, const uint8_t *data, size_t size, uint64_t base_time,
                  int32_t base_depth);
struct segment_event {
    struct event event;
    uint32_t index;
    uint64_t time;
    int32_t depth;
    bool has_duration;
    uint64_t duration;
    ...;
};
int segment_next(struct segment_walk *walk, struct segment_event *event);
int segment_skim(struct segment_walk *walk, struct segment_event *event);
int segment_head(struct segment_walk *walk, struct segment_event *event);

"""
    + TEXTS
    + """
size_t text_plain(const uint8_t *bytes, size_t size, char *buffer, size_t capacity);

struct summary_code { uint32_t number; uint64_t calls; };
const uint8_t *summary_next(const uint8_t *p, const uint8_t *end, struct summary_code *code, bool *bad);
"""
)


def load(name: str, path: Path) -> ModuleType:
    """A module from a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def copy_sources(folder: Path) -> None:
    """The C sources with what is generated for them, apart from a tree that others may build in."""
    shutil.copytree(
        ROOT / "csrc",
        folder,
        ignore=shutil.ignore_patterns("unprintable.h", "__pycache__"),
        dirs_exist_ok=True,
    )
    core_build = load("core_build", ROOT / "csrc" / "core_build.py")
    core_build.write_unprintable(folder / core_build.UNPRINTABLE)


def load_built(name: str, folder: Path) -> ModuleType:
    """The module of that name that cffi has compiled into the folder: `ffi` and `lib`."""
    [path] = folder.glob(f"{name}.*.so")
    return load(name, path)


def build_native(folder: Path) -> None:
    """Compiles the records' C code as a cffi module."""
    copy_sources(folder)
    core = sys.modules["core_build"].DECLARATIONS
    builder = cffi.FFI()
    builder.cdef(RECORDS)
    builder.cdef(core[core.index("/* summary.h */") :])
    builder.cdef(SEGMENTS)
    builder.set_source(
        "pytrace_test_records",
        '#include "format/segment.h"\n#include "format/summary.h"\n#include "query/text.h"\n',
        sources=[str(folder / f"{name}.c") for name in SOURCES],
        include_dirs=[str(folder)],
        extra_compile_args=["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror"],
    )
    builder.compile(tmpdir=str(folder))


class Native:
    """The C encoder and decoder, and the text of values, from the folder that `build_native`
    filled."""

    def __init__(self, folder: Path, types: dict[int, str] | None = None) -> None:
        module = load_built("pytrace_test_records", folder)
        self.ffi, self.lib = module.ffi, module.lib
        self.types: dict[int, str] = types or {}
        self._names: list[Any] = []

        def type_name(_: Any, number: int) -> Any:
            if number not in self.types:
                return self.ffi.NULL
            self._names[:] = [self.ffi.new("char[]", self.types[number].encode())]
            return self._names[0]

        self._type_name = self.ffi.callback("const char *(void *, uint32_t)", type_name)
        self.names = self.ffi.new("struct text_names *", {"type_name": self._type_name})

    # -- writing --

    def encode(self, *records: Record) -> bytes:
        """A chunk's body with these records, as the hook writes it."""
        buffer = self.ffi.new("uint8_t[]", 1 << 20)
        end = buffer + 0
        for record in records:
            end = self._put_record(end, record)
        return bytes(self.ffi.buffer(buffer, end - buffer))

    def encode_value(self, value: Val) -> bytes:
        """One record whose only value this is."""
        return self.encode(Record("return", 1, values=(value,)))

    def _put_record(self, start: Any, record: Record) -> Any:
        lib = self.lib
        p = lib.event_open(start, NUMBERS[record.kind], record.what)
        p = lib.event_put(p, 10, record.time)
        if record.elapsed is not None:
            p = lib.event_put(p, 11, record.elapsed)
        if record.line:
            p = lib.event_put(p, 12, record.line)
        if record.depth is not None:
            p = lib.event_put_depth(p, record.depth)
        if record.trailing:
            p = lib.event_put(p, 34, 1)
        for value in record.values:
            p = self._put_value(p, 14, value)
        for name in record.names:
            p = lib.wire_put_bytes(p, 15, name, len(name))
        if record.variables:
            packed = b"".join(map(varint, record.variables))
            p = lib.wire_put_bytes(p, 32, packed, len(packed))
        if record.changed is not None:
            p = lib.event_put(p, 33, record.changed)
        return lib.event_close(start, p)

    def _put_value(self, p: Any, field: int, value: Val) -> Any:
        lib, body = self.lib, self.lib.value_open(p, field)
        p = body
        match value.what:
            case "integer":
                p = lib.value_put_integer(p, value.content)
            case "floating":
                p = lib.value_put_floating(p, value.content)
            case "address":
                p = lib.value_put_address(p, self.ffi.cast("void *", value.content))
            case "text" | "data" | "big" | "repr":
                p = lib.wire_put_bytes(p, CONTENTS[value.what], value.content, len(value.content))
            case _:
                p = lib.event_put(p, CONTENTS[value.what], value.content)
        for item in value.items:
            p = self._put_value(p, 10, item)
        if value.type:
            p = lib.event_put(p, 11, value.type)
        if value.length:
            p = lib.event_put(p, 12, value.length)
        if value.name:
            p = lib.wire_put_bytes(p, 14, value.name, len(value.name))
        if value.form:
            p = lib.event_put(p, 16, value.form)
        if value.keyword:
            p = lib.wire_put_bytes(p, 17, value.keyword, len(value.keyword))
        return lib.value_close(body, p)

    # -- reading --

    def status(self, data: bytes, skim: bool = False) -> int:
        """The answer to decoding the record at the start: its size, or a decode_error."""
        event = self.ffi.new("struct event *")
        decode = self.lib.event_skim if skim else self.lib.event_decode
        return int(decode(self.ffi.from_buffer(data), len(data), event))

    def decode(self, data: bytes, skim: bool = False) -> list[Record]:
        """The records of a chunk's body. ValueError: it cannot be decoded."""
        held = self.ffi.from_buffer(data)
        records, position = [], 0
        while position < len(data):
            event = self.ffi.new("struct event *")
            decode = self.lib.event_skim if skim else self.lib.event_decode
            size = decode(held + position, len(data) - position, event)
            if size < 0:
                raise ValueError(size)
            records.append(self._record(event))
            position += size
        return records

    def _record(self, event: Any) -> Record:
        kind = NAMES[event.kind]
        values = tuple(self._value(value) for value in self._walk(self.lib.event_value, event))
        names, cursor = [], self.ffi.new("const uint8_t **")
        name, size = self.ffi.new("const uint8_t **"), self.ffi.new("size_t *")
        while self.lib.event_name(event, cursor, name, size):
            names.append(bytes(self.ffi.buffer(name[0], size[0])))
        walk, variable = self.ffi.new("struct event_variables *"), self.ffi.new("uint32_t *")
        self.lib.event_variables(event, walk)
        variables = []
        while self.lib.event_variable(walk, variable):
            variables.append(variable[0])
        assert len(values) == event.value_count
        assert len(names) == event.name_count
        return Record(
            kind,
            event.count if kind == "lost" else event.code,
            event.time,
            event.elapsed if event.has_elapsed else None,
            event.line,
            event.depth if event.has_depth else None,
            values,
            tuple(names),
            tuple(variables),
            walk.changed if walk.changed != ALL else None,
            event.is_trailing,
        )

    def _walk(self, walker: Callable[..., bool], parent: Any) -> list[Any]:
        found, cursor = [], self.ffi.new("const uint8_t **")
        while walker(parent, cursor, value := self.ffi.new("struct value *")):
            found.append(value)
        return found

    def _value(self, value: Any) -> Val:
        what = {number: name for name, number in CONTENTS.items()}[value.content]
        if what in ("text", "data", "big", "repr"):
            content = bytes(self.ffi.buffer(value.bytes, value.size)) if value.size else b""
        else:
            content = getattr(value, what)
        items = tuple(self._value(item) for item in self._walk(self.lib.value_item, value))
        assert len(items) == value.item_count
        assert value.has_length == (value.length != 0)
        named = what == "named" and value.size
        name = bytes(self.ffi.buffer(value.bytes, value.size)) if named else b""
        keyword = bytes(self.ffi.buffer(value.keyword, value.keyword_size)) if value.keyword_size else b""
        return Val(what, content, items, value.type, value.length, name, value.form, keyword)

    # -- text --

    def text(self, value: Val, what: str = "value", capacity: int = 1 << 16) -> str:
        """text_value, text_bare or text_type of a value."""
        return self.raw_text(value, what, capacity)[0].decode()

    def raw_text(self, value: Val, what: str, capacity: int) -> tuple[bytes, int]:
        """The bytes of the buffer that are written, and the length of the whole."""
        data = self.encode_value(value)
        held = self.ffi.from_buffer(data)
        event, cursor = self.ffi.new("struct event *"), self.ffi.new("const uint8_t **")
        c_value = self.ffi.new("struct value *")
        assert self.lib.event_decode(held, len(data), event) == len(data)
        assert self.lib.event_value(event, cursor, c_value)
        buffer = self.ffi.new("char[]", b"#" * capacity)
        size = getattr(self.lib, f"text_{what}")(c_value, self.names, buffer, capacity)
        assert self.ffi.buffer(buffer)[capacity:] == b"\0", "written behind the buffer"
        return self.ffi.buffer(buffer)[: min(size, capacity)], size


# ---- Google's ---------------------------------------------------------------------------------


def generate(folder: Path) -> None:
    """Makes Python classes of proto/trace.proto."""
    answer = protoc.main(
        ["protoc", f"-I{ROOT / 'proto'}", f"--python_out={folder}", str(ROOT / "proto" / "trace.proto")]
    )
    assert not answer


class Google:
    """The same through protobuf's own implementation, from the folder that `generate` filled."""

    def __init__(self, folder: Path) -> None:
        self.messages: Any = load("pytrace_test_trace_pb2", folder / "trace_pb2.py")

    def encode(self, *records: Record) -> bytes:
        events = self.messages.Events()
        for record in records:
            event = events.event.add()
            if record.kind in LATER:
                event.MergeFromString(varint(NUMBERS[record.kind] << 3) + varint(record.what))
            else:
                setattr(event, FIELDS.get(record.kind, record.kind), record.what)
            event.time = record.time
            event.line = record.line
            for name in ("elapsed", "depth"):
                if getattr(record, name) is not None:
                    setattr(event, name, getattr(record, name))
            for value in record.values:
                self._fill(event.value.add(), value)
            event.name.extend(record.names)
            event.variable.extend(record.variables)
            if record.changed is not None:
                event.changed = record.changed
            event.trailing = record.trailing
        return bytes(events.SerializeToString())

    def _fill(self, message: Any, value: Val) -> None:
        setattr(message, value.what, value.content)
        message.type, message.length, message.name = value.type, value.length, value.name
        message.form, message.keyword = value.form, value.keyword
        for item in value.items:
            self._fill(message.item.add(), item)

    def decode(self, data: bytes) -> list[Record]:
        return [self._record(event) for event in self.messages.Events.FromString(data).event]

    def _record(self, event: Any) -> Record:
        kind = event.WhichOneof("what")
        if kind is None:  # it keeps what it does not know
            ((number, what),) = [
                (field.field_number, field.data)
                for field in UnknownFieldSet(event)
                if field.field_number < 32 and field.wire_type == 0
            ]
            kind = NAMES[number]
        else:
            what = getattr(event, kind)
            kind = {field: kind for kind, field in FIELDS.items()}.get(kind, kind)
        return Record(
            kind,
            what,
            event.time,
            event.elapsed if event.HasField("elapsed") else None,
            event.line,
            event.depth if event.HasField("depth") else None,
            tuple(self._value(value) for value in event.value),
            tuple(event.name),
            tuple(event.variable),
            event.changed if event.HasField("changed") else None,
            event.trailing,
        )

    def _value(self, value: Any) -> Val:
        what = value.WhichOneof("content")
        items = tuple(self._value(item) for item in value.item)
        return Val(
            what,
            getattr(value, what),
            items,
            value.type,
            value.length,
            value.name,
            value.form,
            value.keyword,
        )


# ---- Python's ---------------------------------------------------------------------------------


def val(obj: object) -> Val:
    """A Python object of the built-in types, whole, as the hook stores it."""
    match obj:
        case None:
            return Val("constant", 0)
        case bool():
            return Val("constant", 2 if obj else 1)
        case _ if obj is ...:
            return Val("constant", 3)
        case _ if obj is NotImplemented:
            return Val("constant", 4)
        case int() if -(1 << 63) <= obj < 1 << 63:
            return Val("integer", obj)
        case int():
            size = (obj.bit_length() + 7) // 8
            return Val("big", bytes([obj < 0]) + abs(obj).to_bytes(size))
        case float():
            return Val("floating", obj)
        case str():
            return Val("text", obj.encode("utf-8", "surrogatepass"))
        case bytes():
            return Val("data", obj)
        case dict():
            return container("DICT", *(item for pair in obj.items() for item in pair))
        case list() | tuple() | set() | frozenset():
            return container(type(obj).__name__.upper(), *obj)
    raise TypeError(obj)


def container(kind: str, *items: object, type: int = 0, length: int = 0) -> Val:
    """A container of these items."""
    values = tuple(item if isinstance(item, Val) else val(item) for item in items)
    return Val("container", CONTAINERS.index(kind), values, type, length)
