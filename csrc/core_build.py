"""Builds `pytracer._core`: the ring, and summaries of segments, for the dumper (cffi, API mode).

setup.py calls `ffi` through `cffi_modules`, in the project's root. The module's `lib` holds exactly
what stands in DECLARATIONS; the headers in this folder say what each does. Every call releases the
GIL.

Also writes `query/unprintable.h`, the building Python's answers to str.isprintable (`python
csrc/core_build.py` writes that alone).
"""

import os
import sys
from pathlib import Path

import cffi

FOLDER = Path("csrc")
UNPRINTABLE = "query/unprintable.h"
SOURCES = ("ring", "format", "kernel")  # folders

DECLARATIONS = """
/* ring.h */
#define RING_PROCESSES ...
#define RING_SMALL_CHUNK_SIZE ...
#define RING_MESSAGE_SIZE ...
#define RING_EXIT_UNKNOWN ...
enum ring_role { RING_PRODUCER, RING_DUMPER, RING_READER };
enum chunk_state { CHUNK_FREE, CHUNK_CLAIMED, CHUNK_SEALED };
enum chunk_kind { CHUNK_EVENTS, CHUNK_DEFINITIONS };
enum process_state {
    PROCESS_NONE, PROCESS_STARTING, PROCESS_RUNNING, PROCESS_EXITED, PROCESS_SAVED,
    PROCESS_LEAVING, PROCESS_LEFT
};
enum dumper_state { DUMPER_STARTING, DUMPER_READY, DUMPER_REFUSED, DUMPER_FINISHED };
struct ring { uint32_t chunk_size; uint32_t chunk_count; uint32_t small_count; ...; };
struct chunk_view {
    uint32_t index, state, process, kind;
    uint32_t stream, sequence;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time, lost_before, tid;
    uint32_t pid;
    uint32_t used, count;
    const uint8_t *body;
    ...;
};
const char *ring_chunk_state_name(uint32_t state);
const char *ring_process_state_name(uint32_t state);
const char *ring_dumper_state_name(uint32_t state);
uint32_t ring_chunk_size(uint64_t buffer_size);
int ring_create(const char *path, uint64_t buffer_size, const char *settings, size_t settings_size);
int ring_attach(struct ring *ring, const char *path, enum ring_role role, int *lock_fd);
void ring_detach(struct ring *ring);
int ring_has_dumper(const char *path);
uint32_t ring_clock_kind(const struct ring *ring);
void ring_clock_calibrate(struct ring *ring);
uint64_t ring_clock_scale(const struct ring *ring);
int64_t ring_epoch_ns(const struct ring *ring);
int64_t ring_now_ns(const struct ring *ring);
uint64_t ring_epoch_units(const struct ring *ring);
uint64_t ring_features(const struct ring *ring);
const char *ring_settings(const struct ring *ring, size_t *size);
void ring_process_saved(struct ring *ring, uint32_t process);
void ring_process_left(struct ring *ring, uint32_t process);
enum process_state ring_process_state(const struct ring *ring, uint32_t process);
bool ring_process_alive(const struct ring *ring, uint32_t process);
bool ring_process_replaced(const struct ring *ring, uint32_t process);
int64_t ring_process_registered_ns(const struct ring *ring, uint32_t process);
uint32_t ring_turned_away(const struct ring *ring);
void ring_known_add(struct ring *ring, uint64_t hash, uint32_t number);
uint64_t ring_process_lost(const struct ring *ring, uint32_t process);
uint32_t ring_process_pid(const struct ring *ring, uint32_t process);
uint64_t ring_process_start_time(const struct ring *ring, uint32_t process);
uint32_t ring_process_parent(const struct ring *ring, uint32_t process);
int32_t ring_process_exit_status(const struct ring *ring, uint32_t process);
uint64_t ring_start_time(uint32_t pid);
void ring_dumper_say(struct ring *ring, enum dumper_state state, const char *message);
enum dumper_state ring_dumper_state(const struct ring *ring);
const char *ring_dumper_message(const struct ring *ring);
void ring_dumper_say_so_far(struct ring *ring, const char *message);
void ring_dumper_pass_ended(struct ring *ring);
#define RING_TROUBLE_SIZE ...
void ring_dumper_say_trouble(struct ring *ring, const char *why);
void ring_dumper_trouble(const struct ring *ring, char *why);
struct ring_unsaved { uint32_t chunks; uint64_t bytes, events; };
void ring_count_unsaved(const struct ring *ring, struct ring_unsaved *unsaved);
int64_t ring_process_ended_ns(const struct ring *ring, uint32_t process);
uint64_t ring_dumper_passes(const struct ring *ring);
int ring_look(const struct ring *ring, uint32_t index, struct chunk_view *view);
uint32_t ring_look_all(const struct ring *ring, struct chunk_view *views, uint32_t *bad);
void ring_release(struct ring *ring, uint32_t index);
uint32_t ring_next_number(struct ring *ring);

/* kernel/format.h, kernel/pages.h */
enum kernel_shape { KERNEL_NUMBER, KERNEL_ADDRESS, KERNEL_TEXT, KERNEL_BYTES };
struct kernel_field { char name[...]; uint8_t shape; bool is_signed; ...; };
struct kernel_format { uint16_t id, pid_offset; uint32_t field_count; struct kernel_field fields[...]; ...; };
bool kernel_format_parse(const char *text, size_t size, struct kernel_format *format);
bool kernel_field_bytes(const struct kernel_field *field, const uint8_t *event, size_t size,
                        const uint8_t **bytes, size_t *length);
bool kernel_field_number(const struct kernel_field *field, const uint8_t *event, size_t size,
                         int64_t *number);
struct kernel_layout { uint32_t page_size; ...; };
bool kernel_layout_parse(const char *text, size_t size, struct kernel_layout *layout);
struct kernel_page { bool has_missed; uint64_t missed; ...; };
struct kernel_event { uint64_t time; const uint8_t *data; size_t size; };
bool kernel_page_open(struct kernel_page *page, const struct kernel_layout *layout, const uint8_t *data,
                      size_t size);
int kernel_page_next(struct kernel_page *page, struct kernel_event *event);

/* kernel/record.h */
struct kernel;
enum kernel_role { KERNEL_EVENT, KERNEL_ENTER, KERNEL_EXIT };
struct kernel *kernel_new(struct ring *ring, const char *page, size_t page_size, const char *const *errors,
                          uint32_t error_count, uint32_t error_type, uint32_t address_type, bool all);
void kernel_free(struct kernel *kernel);
int kernel_add_event(struct kernel *kernel, const char *format, size_t size, enum kernel_role role,
                     bool shown);
int kernel_pair(struct kernel *kernel, int enter, int exit);
int kernel_tells_of(struct kernel *kernel, int id, const char *field, bool begins);
void kernel_tells_end(struct kernel *kernel, int id);
void kernel_go_on(struct kernel *kernel);
int kernel_add_perf(struct kernel *kernel, uint32_t number);
int kernel_attach(struct kernel *kernel, uint32_t tid, bool faults);
void kernel_stop_perf(struct kernel *kernel);
int kernel_add_processor(struct kernel *kernel, uint32_t number, int fd, int stats_fd);
int kernel_add_thread(struct kernel *kernel, uint32_t tid);
int kernel_drain(struct kernel *kernel, size_t most);
int kernel_follow(struct kernel *kernel, const struct chunk_view *chunk);
int kernel_make(struct kernel *kernel, bool all);
bool kernel_next_code(struct kernel *kernel, uint32_t *number, uint32_t *id);
struct kernel_birth { uint32_t tid, parent, stream; bool is_processor, is_process; };
bool kernel_next_birth(struct kernel *kernel, struct kernel_birth *birth);
struct kernel_body {
    uint32_t stream, sequence, tid, records;
    bool whole;
    int32_t base_depth, min_depth;
    uint64_t base_time, last_time;
    const uint8_t *body;
    size_t size;
};
void kernel_first_body(struct kernel *kernel);
bool kernel_next_body(struct kernel *kernel, bool live, struct kernel_body *body);
void kernel_stored(struct kernel *kernel, uint32_t stream, uint32_t sequence, uint32_t records);
void kernel_finish(struct kernel *kernel);
struct kernel_counts { uint64_t events, lost, nonsense, bytes, waiting, threads; };
int perf_allowed(void);
void kernel_count(const struct kernel *kernel, struct kernel_counts *counts);

/* definitions.h */
struct definition { uint32_t kind, number; uint64_t hash; };
const uint8_t *definition_next(const uint8_t *p, const uint8_t *end, struct definition *found);

/* summary.h */
struct summary {
    int32_t max_depth;
    uint32_t kinds;
    uint64_t max_duration;
    const uint8_t *codes;
    size_t codes_size;
    uint32_t events;
    const uint8_t *open;
    size_t open_size;
};
struct summary_maker *summary_maker_new(void);
void summary_maker_free(struct summary_maker *maker);
bool summary_own(struct summary_maker *maker, uint32_t number, bool own);
bool summary_make(struct summary_maker *maker, const uint8_t *body, size_t size, int32_t base_depth,
                  const uint8_t *open, size_t open_size, struct summary *summary);
"""


def unprintable_ranges() -> list[tuple[int, int]]:
    """Code points that str.isprintable denies, as sorted ranges, both ends included."""
    ranges: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if chr(code).isprintable():
            continue
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1] = (ranges[-1][0], code)
        else:
            ranges.append((code, code))
    return ranges


def write_unprintable(path: Path) -> None:
    """Writes the header, unless it is there as it should be: a build beside this one may read
    it."""
    rows = "".join(f"    {{{first:#x}, {last:#x}}},\n" for first, last in unprintable_ranges())
    text = (
        "/* What str.isprintable denies; made by core_build.py. */\n"
        "static const struct { uint32_t first, last; } unprintable[] = {\n" + rows + "};\n"
    )
    if not path.exists() or path.read_text() != text:
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.write_text(text)
        new.replace(path)


def ffi() -> cffi.FFI:
    """The module's builder; setup.py asks for it by this name."""
    write_unprintable(FOLDER / UNPRINTABLE)
    flags = ["-std=gnu11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra"]
    if os.environ.get("PYTRACE_WERROR"):
        flags.append("-Werror")
    builder = cffi.FFI()
    builder.cdef(DECLARATIONS)
    builder.set_source(
        "pytracer._core",
        '#include "ring/ring.h"\n#include "format/definitions.h"\n#include "format/summary.h"\n'
        '#include "kernel/format.h"\n#include "kernel/pages.h"\n'
        '#include "kernel/record.h"\n#include "kernel/perf.h"\n',
        sources=sorted(str(path) for folder in SOURCES for path in FOLDER.glob(f"{folder}/*.c")),
        depends=sorted(str(header) for header in FOLDER.glob("*/*.h")),
        include_dirs=[str(FOLDER)],
        extra_compile_args=flags,
    )
    return builder


if __name__ == "__main__":
    write_unprintable(Path(__file__).parent / UNPRINTABLE)
