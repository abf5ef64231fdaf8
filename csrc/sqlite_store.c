/* Reading the ordinary tables; see sqlite_store.h. */
#include "sqlite_store.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>

#include "summary.h"
#include "zstd.h"

#define EXPORTED __attribute__((visibility("default")))
#define DAMAGES_MAX 1000      /* that are remembered one by one */
/* Codes and types are numbered together, without gaps but where definitions were lost. Numbers far beyond
 * how many there are make no sense, and must not cost memory. */
#define NUMBERS_MAX (1 << 26)
#define NUMBERS_SPARE (1 << 16)
#define NUMBERS_GAPS 16 /* to each that is there */
#define STRIDE 32             /* events between two places where a walk can be taken up */

#define SUMMARY "id, start, \"end\", count, stream, min_depth, max_depth, kinds, max_duration, codes"

static const char *const statements[STATEMENTS] = {
    [RUNS] = "SELECT id FROM main.run ORDER BY id",
    [RUN] = "SELECT clock_epoch_ns, clock_epoch_units, clock_scale FROM main.run WHERE id = ?1",
    [COUNTS] = "SELECT (SELECT max(number) FROM main.code WHERE run = ?1),"
               " (SELECT count(*) FROM main.code WHERE run = ?1),"
               " (SELECT max(number) FROM main.type WHERE run = ?1),"
               " (SELECT count(*) FROM main.type WHERE run = ?1)",
    [CODES] = "SELECT number, module, func, file, line, arguments FROM main.code WHERE run = ?1",
    [THREADS] = "SELECT stream, coalesce(pid, 0), tid, name FROM main.thread LEFT JOIN main.process"
                " ON process.run = thread.run AND number = process WHERE thread.run = ?1 ORDER BY stream",
    [TYPES] = "SELECT number, name FROM main.type WHERE run = ?1",
    /* answered by the index segment_time alone */
    [SEGMENTS] = "SELECT " SUMMARY " FROM main.segment WHERE run = ?1 AND start <= ?2 AND \"end\" >= ?3",
    [SEGMENTS_BY_ID] = "SELECT " SUMMARY " FROM main.segment WHERE +run = ?1 AND id BETWEEN ?2 AND ?3",
    [DATA] = "SELECT base_depth, size, data FROM main.segment WHERE id = ?1",
    [ROW] = "SELECT run, size, start, \"end\", count, stream FROM main.segment WHERE id = ?1",
    [TIMELINE] = "SELECT id, start, \"end\", count, stream, min_depth, max_duration, codes FROM main.segment"
                 " WHERE run = ?1 ORDER BY start",
    [VERSION] = "PRAGMA main.data_version",
};

int trace_statement(struct trace *trace, enum statement number, sqlite3_stmt **prepared)
{
    int answer = SQLITE_OK;
    if (!trace->prepared[number])
        answer = sqlite3_prepare_v3(trace->db, statements[number], -1, SQLITE_PREPARE_PERSISTENT,
                                    &trace->prepared[number], NULL);
    *prepared = trace->prepared[number];
    if (*prepared)
        sqlite3_reset(*prepared);
    return answer;
}

/* ---- arenas ------------------------------------------------------------------------------- */

static void *arena_take(struct arena *arena, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (size > arena->left) {
        size_t room = size > 64 << 10 ? size : 64 << 10;
        struct arena_block *block = malloc(sizeof *block + 15 + room);
        if (!block)
            return NULL;
        block->next = arena->blocks;
        arena->blocks = block;
        arena->next = (char *)(((uintptr_t)(block + 1) + 15) & ~(uintptr_t)15);
        arena->left = room;
    }
    void *taken = arena->next;
    arena->next += size;
    arena->left -= size;
    return taken;
}

static void arena_free(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    *arena = (struct arena){0};
}

/* Bytes, kept. A NUL follows them. */
static bool keep(struct arena *arena, const void *bytes, size_t size, struct string *string)
{
    char *copy = arena_take(arena, size + 1);
    if (!copy)
        return false;
    if (size && bytes)
        memcpy(copy, bytes, size);
    copy[bytes ? size : 0] = 0;
    *string = (struct string){copy, bytes ? size : 0};
    return true;
}

static bool keep_text(struct arena *arena, sqlite3_stmt *row, int column, struct string *string)
{
    const void *text = sqlite3_column_text(row, column);
    return keep(arena, text, (size_t)sqlite3_column_bytes(row, column), string);
}

static bool keep_blob(struct arena *arena, sqlite3_stmt *row, int column, struct string *string)
{
    const void *blob = sqlite3_column_blob(row, column);
    return keep(arena, blob, (size_t)sqlite3_column_bytes(row, column), string);
}

/* ---- definitions -------------------------------------------------------------------------- */

static void names_release(struct names *names)
{
    if (!names || --names->references)
        return;
    arena_free(&names->arena);
    free(names);
}

static void timeline_free(struct definitions *definitions)
{
    if (definitions->timeline)
        free(definitions->timeline->segments);
    free(definitions->timeline);
    definitions->timeline = NULL;
}

void definitions_release(struct definitions *definitions)
{
    if (!definitions || --definitions->references)
        return;
    timeline_free(definitions);
    names_release(definitions->names);
    arena_free(&definitions->arena);
    free(definitions);
}

static int read_hex4(const char *p, const char *end)
{
    int n = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int c = p[i] | 0x20;
        int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        n = n << 4 | digit;
    }
    return n;
}

static size_t put_utf8(char *out, uint32_t code)
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size; i-- > 1; code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(first[size] | code);
    return size;
}

/* The strings of a JSON array of strings. False: it is none (names then holds those before). */
static bool read_names(const char *p, const char *end, struct string *names, uint32_t capacity,
                       uint32_t *count, char *room)
{
    *count = 0;
    while (p < end && *p != '[')
        p++;
    if (p == end)
        return false;
    p++;
    while (p < end && *p != ']' && *count < capacity) {
        if (*p == ' ' || *p == ',' || *p == '\n' || *p == '\t') {
            p++;
            continue;
        }
        if (*p++ != '"')
            return false;
        char *start = room;
        while (p < end && *p != '"') {
            if (*p != '\\') {
                *room++ = *p++;
                continue;
            }
            if (++p == end)
                return false;
            char c = *p++;
            if (c == 'u') {
                int code = read_hex4(p, end);
                if (code < 0)
                    return false;
                p += 4;
                if (code >= 0xd800 && code < 0xdc00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u') {
                    int low = read_hex4(p + 2, end);
                    if (low >= 0xdc00 && low < 0xe000) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        p += 6;
                    }
                }
                room += put_utf8(room, (uint32_t)code);
            } else {
                *room++ = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b'
                        : c == 'f' ? '\f' : c;
            }
        }
        if (p == end)
            return false;
        p++;
        names[(*count)++] = (struct string){start, (size_t)(room - start)};
    }
    return p < end;
}

static bool keep_code(struct arena *arena, sqlite3_stmt *row, struct run_code *code)
{
    struct string json;
    if (!keep_text(arena, row, 1, &code->module) || !keep_text(arena, row, 2, &code->func) ||
        !keep_text(arena, row, 3, &code->file) || !keep_text(arena, row, 5, &json))
        return false;
    code->last = code->func;
    for (size_t i = code->func.size; i-- > 0;)
        if (code->func.text[i] == '.') {
            code->last = (struct string){code->func.text + i + 1, code->func.size - i - 1};
            break;
        }
    code->line = (uint32_t)sqlite3_column_int64(row, 4);
    uint32_t commas = 1;
    for (size_t i = 0; i < json.size; i++)
        commas += json.text[i] == ',';
    if (json.size <= 2)
        return true;
    struct string *names = arena_take(arena, commas * sizeof *names);
    char *room = arena_take(arena, json.size);
    if (!names || !room)
        return false;
    code->arguments = names;
    read_names(json.text, json.text + json.size, names, commas, &code->argument_count, room);
    return true;
}

/* Codes and types are numbered together, without gaps but where definitions were lost. Numbers far beyond
 * how many there are make no sense, and must not cost memory. */
#define NUMBERS_MAX (1 << 26)
#define NUMBERS_SPARE (1 << 16)
#define NUMBERS_GAPS 16 /* to each that is there */

static int load_codes(struct trace *trace, int64_t run, struct names *names)
{
    size_t count = (size_t)names->counts[0] + 1;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, CODES, &row);

    names->codes = arena_take(&names->arena, count * sizeof *names->codes);
    if (answer || !names->codes)
        return answer ? answer : SQLITE_NOMEM;
    names->code_count = (uint32_t)count;
    names->codes[0] = (struct run_code){.module = {"", 0}, .func = {"", 0}, .file = {"", 0}, .last = {"", 0}};
    for (size_t i = 1; i < count; i++)
        names->codes[i] = run_code_undefined;
    sqlite3_bind_int64(row, 1, run);
    while ((answer = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(row, 0);
        struct run_code code = {0};
        if (number <= 0 || (size_t)number >= count)
            continue;
        if (!keep_code(&names->arena, row, &code)) {
            answer = SQLITE_NOMEM;
            break;
        }
        names->codes[number] = code;
    }
    sqlite3_reset(row);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int load_types(struct trace *trace, int64_t run, struct names *names)
{
    size_t count = (size_t)names->counts[2] + 1;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, TYPES, &row);

    names->types = arena_take(&names->arena, count * sizeof *names->types);
    if (answer || !names->types)
        return answer ? answer : SQLITE_NOMEM;
    names->type_count = (uint32_t)count;
    memset(names->types, 0, count * sizeof *names->types);
    sqlite3_bind_int64(row, 1, run);
    while ((answer = sqlite3_step(row)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(row, 0);
        struct string name;
        if (number <= 0 || (size_t)number >= count)
            continue;
        if (!keep_text(&names->arena, row, 1, &name)) {
            answer = SQLITE_NOMEM;
            break;
        }
        names->types[number] = name.text;
    }
    sqlite3_reset(row);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

/* The names of a run; those of `before` where they are still the same. */
static int load_names(struct trace *trace, struct definitions *made, const struct definitions *before)
{
    int64_t counts[4], run = made->run.run;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, COUNTS, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, run);
    answer = sqlite3_step(row);
    for (int i = 0; i < 4; i++) {
        counts[i] = sqlite3_column_int64(row, i);
        counts[i] = counts[i] < 0 ? 0 : counts[i] > NUMBERS_MAX ? NUMBERS_MAX : counts[i];
    }
    int64_t most = (counts[1] + counts[3]) * NUMBERS_GAPS + NUMBERS_SPARE;
    for (int i = 0; i < 4; i += 2)
        counts[i] = counts[i] > most ? most : counts[i];
    sqlite3_reset(row);
    if (answer != SQLITE_ROW)
        return answer;
    if (before && !memcmp(before->names->counts, counts, sizeof counts)) {
        made->names = before->names;
        made->names->references++;
        return SQLITE_OK;
    }
    if (!(made->names = calloc(1, sizeof *made->names)))
        return SQLITE_NOMEM;
    made->names->references = 1;
    memcpy(made->names->counts, counts, sizeof counts);
    answer = load_codes(trace, run, made->names);
    return answer ? answer : load_types(trace, run, made->names);
}

static int load_threads(struct trace *trace, struct definitions *made)
{
    struct run_thread *threads = NULL;
    size_t count = 0, capacity = 0;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, THREADS, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, made->run.run);
    while ((answer = sqlite3_step(row)) == SQLITE_ROW) {
        if (count == capacity) {
            capacity = capacity * 2 + 16;
            struct run_thread *larger = arena_take(&made->arena, capacity * sizeof *larger);
            if (!larger) {
                answer = SQLITE_NOMEM;
                break;
            }
            if (count)
                memcpy(larger, threads, count * sizeof *threads);
            threads = larger;
        }
        threads[count] = (struct run_thread){
            .stream = (uint32_t)sqlite3_column_int64(row, 0),
            .pid = sqlite3_column_int64(row, 1),
            .tid = sqlite3_column_int64(row, 2),
        };
        if (!keep_text(&made->arena, row, 3, &threads[count++].name)) {
            answer = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_reset(row);
    made->run.threads = threads;
    made->run.thread_count = (uint32_t)count;
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int load_clock(struct trace *trace, struct run_definitions *run)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, RUN, &row);
    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, run->run);
    answer = sqlite3_step(row);
    if (answer == SQLITE_ROW)
        run->clock = (struct segment_clock){
            .epoch_ns = sqlite3_column_int64(row, 0),
            .epoch_units = (uint64_t)sqlite3_column_int64(row, 1),
            .scale = (uint64_t)sqlite3_column_int64(row, 2),
        };
    sqlite3_reset(row);
    return answer == SQLITE_ROW || answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int data_version(struct trace *trace, int64_t *version)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, VERSION, &row);
    if (answer)
        return answer;
    answer = sqlite3_step(row);
    *version = sqlite3_column_int64(row, 0);
    sqlite3_reset(row);
    return answer == SQLITE_ROW ? SQLITE_OK : answer;
}

int definitions_get(struct trace *trace, int64_t run, struct definitions **found)
{
    struct definitions **place = &trace->definitions, *before, *made;
    int64_t version;
    int answer = data_version(trace, &version);

    if (answer)
        return answer;
    while (*place && (*place)->run.run != run)
        place = &(*place)->next;
    before = *place;
    if (!before || before->version != version) {
        if (!(made = calloc(1, sizeof *made)))
            return SQLITE_NOMEM;
        made->references = 1; /* the list's */
        made->version = version;
        made->run.run = run;
        if ((answer = load_clock(trace, &made->run)) || (answer = load_names(trace, made, before)) ||
            (answer = load_threads(trace, made))) {
            definitions_release(made);
            return answer;
        }
        made->run.codes = made->names->codes;
        made->run.code_count = made->names->code_count;
        made->run.types = made->names->types;
        made->run.type_count = made->names->type_count;
        made->next = before ? before->next : NULL;
        *place = made;
        definitions_release(before);
    }
    (*place)->references++;
    *found = *place;
    return SQLITE_OK;
}

struct definitions *definitions_of(const struct scan_segment *segment)
{
    return (struct definitions *)((char *)segment->run - offsetof(struct definitions, run));
}

/* ---- the timeline of a run ---------------------------------------------------------------- */

static const struct run_thread thread_unknown = {.name = {"", 0}};

static const struct run_thread *find_thread(const struct run_definitions *run, int64_t stream)
{
    const struct run_thread *thread = run_thread_find(run, (uint32_t)stream);
    return thread ? thread : &thread_unknown;
}

static bool keep_segment(struct definitions *definitions, sqlite3_stmt *row, size_t *capacity)
{
    struct timeline *timeline = definitions->timeline;
    struct string codes;

    if (timeline->count == *capacity) {
        *capacity = *capacity * 2 + 256;
        struct timeline_segment *larger = realloc(timeline->segments, *capacity * sizeof *larger);
        if (!larger)
            return false;
        timeline->segments = larger;
    }
    if (!keep_blob(&definitions->arena, row, 7, &codes))
        return false;
    timeline->segments[timeline->count++] = (struct timeline_segment){
        .id = sqlite3_column_int64(row, 0),
        .start = (uint64_t)sqlite3_column_int64(row, 1),
        .end = (uint64_t)sqlite3_column_int64(row, 2),
        .count = (uint32_t)sqlite3_column_int64(row, 3),
        .stream = (uint32_t)sqlite3_column_int64(row, 4),
        .min_depth = (int32_t)sqlite3_column_int64(row, 5),
        .max_duration = (uint64_t)sqlite3_column_int64(row, 6),
        .pid = find_thread(&definitions->run, sqlite3_column_int64(row, 4))->pid,
        .codes = (const uint8_t *)codes.text,
        .codes_end = (const uint8_t *)codes.text + codes.size,
    };
    return true;
}

int timeline_get(struct trace *trace, struct definitions *definitions, const struct timeline **timeline)
{
    size_t capacity = 0;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, TIMELINE, &row);

    *timeline = definitions->timeline;
    if (answer || *timeline)
        return answer;
    if (!(definitions->timeline = calloc(1, sizeof *definitions->timeline)))
        return SQLITE_NOMEM;
    sqlite3_bind_int64(row, 1, definitions->run.run);
    while ((answer = sqlite3_step(row)) == SQLITE_ROW)
        if (!keep_segment(definitions, row, &capacity)) {
            answer = SQLITE_NOMEM;
            break;
        }
    sqlite3_reset(row);
    if (answer == SQLITE_DONE)
        answer = timeline_link(definitions->timeline) ? SQLITE_OK : SQLITE_NOMEM;
    if (answer)
        timeline_free(definitions);
    *timeline = definitions->timeline;
    return answer;
}

/* ---- what could not be read --------------------------------------------------------------- */

void trace_damaged(void *context, const struct scan_segment *segment, uint32_t read, const char *reason)
{
    struct trace *trace = context;
    struct damage damage = {segment->id, segment->run->run, segment->count, read, reason};

    for (size_t i = 0; i < trace->damage_count; i++)
        if (trace->damages[i].segment == segment->id) {
            trace->damages[i] = damage;
            return;
        }
    if (trace->damage_count == DAMAGES_MAX)
        return;
    if (trace->damage_count == trace->damage_capacity) {
        size_t capacity = trace->damage_capacity * 2 + 16;
        struct damage *larger = realloc(trace->damages, capacity * sizeof *larger);
        if (!larger)
            return;
        trace->damages = larger;
        trace->damage_capacity = capacity;
    }
    trace->damages[trace->damage_count++] = damage;
}

/* ---- segments ----------------------------------------------------------------------------- */

void list_free(struct list *list)
{
    for (size_t i = 0; i < list->definitions_count; i++)
        definitions_release(list->definitions[i]);
    free(list->definitions);
    free(list->segments);
    *list = (struct list){0};
}

/* Whether the predicate may be true of an event in a function, by code number; asked once for each. */
struct code_answers {
    const struct predicate *predicate;
    const struct run_definitions *run;
    uint8_t *answers; /* 1 + enum answer; 0: not asked yet */
};

static bool code_may_match(struct code_answers *codes, uint32_t number)
{
    if (number >= codes->run->code_count)
        return true;
    if (!codes->answers[number]) {
        struct facts facts = facts_unknown;
        facts.run = codes->run;
        facts.code = run_code_find(codes->run, number);
        codes->answers[number] = (uint8_t)(1 + predicate_ask(codes->predicate, &facts));
    }
    return codes->answers[number] - 1 != NEVER;
}

/* False: none of the functions in the segment is asked for. */
static bool codes_may_match(struct code_answers *codes, sqlite3_stmt *row)
{
    const uint8_t *p = sqlite3_column_blob(row, 9), *end = p ? p + sqlite3_column_bytes(row, 9) : p;
    struct summary_code code = {0};
    bool bad = false;

    while (p && (p = summary_next(p, end, &code, &bad)))
        if (code_may_match(codes, code.number))
            return true;
    return bad;
}

/* What the segment of a row of SUMMARY may hold; false: nothing that is asked for. */
static bool segment_of_row(sqlite3_stmt *row, const struct definitions *definitions,
                           const struct predicate *predicate, struct code_answers *codes,
                           struct scan_segment *segment)
{
    const struct segment_clock *clock = &definitions->run.clock;
    const uint32_t timed = 1u << EVENT_RETURN | 1u << EVENT_EXCEPTION | 1u << EVENT_YIELD;
    const uint32_t inside = 1u << EVENT_RAISE | 1u << EVENT_LOG | 1u << EVENT_LOST;

    *segment = (struct scan_segment){
        .id = sqlite3_column_int64(row, 0),
        .run = &definitions->run,
        .thread = find_thread(&definitions->run, sqlite3_column_int64(row, 4)),
        .base_time = (uint64_t)sqlite3_column_int64(row, 1),
        .count = (uint32_t)sqlite3_column_int64(row, 3),
        .all = true,
    };
    segment->start = segment_clock_ns(clock, segment->base_time);
    segment->end = segment_clock_ns(clock, (uint64_t)sqlite3_column_int64(row, 2));
    if (!predicate)
        return true;
    int64_t first = (int64_t)((uint64_t)segment->id << SCAN_INDEX_BITS);
    int64_t depth = sqlite3_column_int64(row, 5);
    uint32_t kinds = (uint32_t)sqlite3_column_int64(row, 7) & ~(uint32_t)SUMMARY_TASKS;
    struct facts facts = facts_unknown;
    facts.id = (struct bounds){first, first + (1 << SCAN_INDEX_BITS) - 1};
    facts.time = (struct bounds){segment->start, segment->end};
    /* what happens in a function has its depth, one less than there are calls open */
    facts.depth = (struct bounds){depth > 0 && kinds & inside ? depth - 1 : depth, sqlite3_column_int64(row, 6)};
    facts.kinds = kinds;
    facts.has_duration = kinds & timed;
    facts.duration = (struct bounds){
        0, segment_duration_ns(clock, (uint64_t)sqlite3_column_int64(row, 8))};
    facts.run = &definitions->run;
    facts.thread = segment->thread;
    enum answer answer = predicate_ask(predicate, &facts);
    segment->all = answer == ALWAYS;
    return answer == ALWAYS || (answer == MAYBE && codes_may_match(codes, row));
}

/* Clock units of a time, and `slack` more, as rounding could be that wrong; `unknown` where the clock does
 * not tell. */
static int64_t units_at(const struct segment_clock *clock, int64_t ns, int slack, int64_t unknown)
{
    __extension__ typedef __int128 wide;
    if (!clock->scale)
        return unknown;
    wide units = ((wide)ns - clock->epoch_ns) * ((wide)1 << 32) / (wide)clock->scale + (wide)clock->epoch_units + slack;
    return units > INT64_MAX ? INT64_MAX : units < INT64_MIN ? INT64_MIN : (int64_t)units;
}

static int list_run(struct trace *trace, const struct predicate *predicate, int64_t run, struct list *list)
{
    struct bounds ids = predicate ? predicate_bounds(predicate, FIELD_ID) : (struct bounds){INT64_MIN, INT64_MAX};
    struct bounds times = predicate ? predicate_bounds(predicate, FIELD_TIME) : (struct bounds){INT64_MIN, INT64_MAX};
    bool by_id = ids.low > 0 && ids.high > 0 && (ids.high >> SCAN_INDEX_BITS) - (ids.low >> SCAN_INDEX_BITS) < 256;
    struct definitions **larger, *definitions;
    struct code_answers codes = {.predicate = predicate};
    sqlite3_stmt *row;
    int answer = definitions_get(trace, run, &definitions);

    if (answer)
        return answer;
    larger = realloc(list->definitions, (list->definitions_count + 1) * sizeof(struct definitions *));
    if (!larger) {
        definitions_release(definitions);
        return SQLITE_NOMEM;
    }
    list->definitions = larger;
    list->definitions[list->definitions_count++] = definitions;
    codes.run = &definitions->run;
    if (predicate && !(codes.answers = calloc(codes.run->code_count + 1, 1)))
        return SQLITE_NOMEM;
    answer = trace_statement(trace, by_id ? SEGMENTS_BY_ID : SEGMENTS, &row);
    if (!answer) {
        sqlite3_bind_int64(row, 1, run);
        if (by_id) {
            sqlite3_bind_int64(row, 2, ids.low >> SCAN_INDEX_BITS);
            sqlite3_bind_int64(row, 3, ids.high >> SCAN_INDEX_BITS);
        } else {
            sqlite3_bind_int64(row, 2, units_at(&codes.run->clock, times.high, 2, INT64_MAX));
            sqlite3_bind_int64(row, 3, units_at(&codes.run->clock, times.low, -2, INT64_MIN));
        }
        while ((answer = sqlite3_step(row)) == SQLITE_ROW) {
            struct scan_segment segment;
            if (!segment_of_row(row, definitions, predicate, &codes, &segment))
                continue;
            if (list->count == list->capacity) {
                size_t capacity = list->capacity * 2 + 64;
                struct scan_segment *more = realloc(list->segments, capacity * sizeof *more);
                if (!more) {
                    answer = SQLITE_NOMEM;
                    break;
                }
                list->segments = more;
                list->capacity = capacity;
            }
            list->segments[list->count++] = segment;
        }
        sqlite3_reset(row);
    }
    free(codes.answers);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

int list_segments(struct trace *trace, const struct predicate *predicate, struct list *list)
{
    int64_t *runs = NULL;
    size_t count = 0;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, RUNS, &row);

    if (answer)
        return answer;
    while ((answer = sqlite3_step(row)) == SQLITE_ROW) {
        struct bounds run = {sqlite3_column_int64(row, 0), sqlite3_column_int64(row, 0)};
        struct bounds asked = predicate ? predicate_bounds(predicate, FIELD_RUN) : run;
        if (run.low < asked.low || run.low > asked.high)
            continue;
        int64_t *larger = realloc(runs, (count + 1) * sizeof *runs);
        if (!larger) {
            answer = SQLITE_NOMEM;
            break;
        }
        runs = larger;
        runs[count++] = run.low;
    }
    sqlite3_reset(row);
    if (answer == SQLITE_DONE)
        answer = SQLITE_OK;
    for (size_t i = 0; i < count && !answer; i++)
        answer = list_run(trace, predicate, runs[i], list);
    free(runs);
    return answer;
}

/* What cannot be in a segment's row or its run's; NULL: nothing. */
static const char *nonsense(const struct scan_segment *segment, int64_t base_depth)
{
    return segment->run->clock.scale > INT64_MAX ? "its run's clock makes no sense"
           : segment->base_time > INT64_MAX     ? "its start makes no sense"
           : base_depth != (int32_t)base_depth ? "its depth makes no sense" : NULL;
}

/* 1: *data is there; 0: it is not, or makes no sense; negative: an error of SQLite. */
static int fetch_data(struct trace *trace, const struct scan_segment *segment, struct scan_data *data)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, DATA, &row);

    if (answer)
        return -answer;
    sqlite3_bind_int64(row, 1, segment->id);
    answer = sqlite3_step(row);
    if (answer == SQLITE_DONE)
        return 0;
    if (answer != SQLITE_ROW)
        return -answer;
    const char *reason = nonsense(segment, sqlite3_column_int64(row, 0));
    if (reason) {
        trace_damaged(trace, segment, 0, reason);
        return 0;
    }
    *data = (struct scan_data){
        .base_depth = (int32_t)sqlite3_column_int64(row, 0),
        .size = sqlite3_column_int64(row, 1),
        .data = sqlite3_column_blob(row, 2),
        .data_size = (size_t)sqlite3_column_bytes(row, 2),
    };
    return 1;
}

/* What sqlite_trace_progress and sqlite_trace_reached tell; a thread's own, as is the scan that it runs. */
static _Thread_local int64_t progress[2];
static _Thread_local const struct scan *fetching; /* the scan looks for its next event */

int trace_fetch(void *context, const struct scan_segment *segment, struct scan_data *data)
{
    progress[0]++; /* the next event may be many segments away */
    return fetch_data(context, segment, data);
}

/* Segments opened, and all, of the scan that this thread is in: for SQLite's progress handler. */
EXPORTED void sqlite_trace_progress(int64_t *opened, int64_t *count);
EXPORTED void sqlite_trace_progress(int64_t *opened, int64_t *count)
{
    *opened = progress[0];
    *count = progress[1];
}

/* 1: this thread looks for the next event of a scan, and all before *time (backwards: behind it) have come.
 * For SQLite's progress handler, that may interrupt the scan: the rest can be asked for from there on. */
EXPORTED int sqlite_trace_reached(int64_t *time);
EXPORTED int sqlite_trace_reached(int64_t *time)
{
    if (!fetching)
        return 0;
    *time = scan_reached(fetching);
    return 1;
}

int trace_next(struct trace *trace, struct scan *scan, size_t count, struct scan_at *at)
{
    progress[0] = (int64_t)scan_opened(scan);
    progress[1] = (int64_t)count;
    fetching = scan;
    int answer = scan_next(scan, at);
    fetching = NULL;
    if (answer <= 0 && trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]);
    return answer;
}

/* ---- single segments ---------------------------------------------------------------------- */

void body_release(struct body *body)
{
    if (!body || --body->references)
        return;
    definitions_release(body->definitions);
    free(body->data);
    free(body->places);
    free(body);
}

/* Walks the body once, and notes where. */
static int body_walk(struct trace *trace, struct body *body, int32_t base_depth)
{
    struct segment_walk walk;
    struct segment_event event;
    size_t capacity = 0;
    int answer = 1;

    segment_open(&walk, body->data, (size_t)body->size, body->segment.base_time, base_depth);
    for (;;) {
        if (body->count % STRIDE == 0) {
            if (body->count / STRIDE == capacity) {
                capacity = capacity * 2 + 32;
                struct segment_walk *larger = realloc(body->places, capacity * sizeof *larger);
                if (!larger)
                    return SQLITE_NOMEM;
                body->places = larger;
            }
            body->places[body->count / STRIDE] = walk;
        }
        answer = segment_head(&walk, &event);
        if (answer <= 0 || body->count >> SCAN_INDEX_BITS)
            break;
        body->count++;
    }
    if (answer < 0)
        trace_damaged(trace, &body->segment, body->count, "its content makes no sense");
    return SQLITE_OK;
}

static int body_read(struct trace *trace, struct body *body)
{
    struct scan_data data = {0};
    if (!trace->zstd && !(trace->zstd = zstd_context_new()))
        return SQLITE_NOMEM;
    int answer = fetch_data(trace, &body->segment, &data);
    if (answer < 0)
        return -answer;
    const char *reason = answer ? scan_decompress(trace->zstd, &data, &body->data, &body->capacity) : NULL;
    if (reason)
        trace_damaged(trace, &body->segment, 0, reason);
    if (reason || !answer)
        body->size = 0;
    if (trace->prepared[DATA])
        sqlite3_reset(trace->prepared[DATA]); /* as long as it runs, nothing newer is seen */
    return body_walk(trace, body, data.base_depth);
}

int body_get(struct trace *trace, int64_t id, struct body **found)
{
    struct body **place = &trace->bodies[0], *made;
    struct definitions *definitions;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, ROW, &row);

    *found = NULL;
    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, id);
    answer = sqlite3_step(row);
    if (answer != SQLITE_ROW) {
        sqlite3_reset(row);
        return answer == SQLITE_DONE ? SQLITE_OK : answer;
    }
    int64_t run = sqlite3_column_int64(row, 0), size = sqlite3_column_int64(row, 1);
    int64_t stream = sqlite3_column_int64(row, 5);
    struct scan_segment segment = {
        .id = id,
        .base_time = (uint64_t)sqlite3_column_int64(row, 2),
        .count = (uint32_t)sqlite3_column_int64(row, 4),
    };
    uint64_t end = (uint64_t)sqlite3_column_int64(row, 3);
    sqlite3_reset(row);
    if ((answer = definitions_get(trace, run, &definitions)))
        return answer;
    for (int i = 0; i < BODIES; i++) {
        struct body *body = trace->bodies[i];
        if (body && body->segment.id == id && body->segment.count == segment.count && body->size == size &&
            body->definitions == definitions) {
            definitions_release(definitions);
            body->used = ++trace->clock;
            body->references++;
            *found = body;
            return SQLITE_OK;
        }
        if (*place && (!body || body->used < (*place)->used || body->segment.id == id))
            place = &trace->bodies[i];
    }
    if (!(made = calloc(1, sizeof *made))) {
        definitions_release(definitions);
        return SQLITE_NOMEM;
    }
    segment.run = &definitions->run;
    segment.thread = find_thread(&definitions->run, stream);
    segment.start = segment_clock_ns(&definitions->run.clock, segment.base_time);
    segment.end = segment_clock_ns(&definitions->run.clock, end);
    made->references = 1;
    made->definitions = definitions;
    made->segment = segment;
    made->size = size;
    made->used = ++trace->clock;
    if ((answer = body_read(trace, made))) {
        body_release(made);
        return answer;
    }
    body_release(*place);
    *place = made;
    made->references++;
    *found = made;
    return SQLITE_OK;
}

bool body_at(const struct body *body, uint32_t index, struct scan_row *row, struct scan_at *at)
{
    struct segment_walk walk;
    struct segment_event event;

    if (index >= body->count)
        return false;
    walk = body->places[index / STRIDE];
    do {
        if (segment_head(&walk, &event) <= 0)
            return false;
    } while (event.index != index);
    scan_row_of(&body->segment, body->data, &walk, &event, row);
    *at = (struct scan_at){.segment = &body->segment,
                           .row = row,
                           .body = body->data,
                           .body_size = (size_t)body->size,
                           .base_depth = body->places[0].open};
    return true;
}

/* ---- the whole ---------------------------------------------------------------------------- */

struct trace *trace_new(sqlite3 *db)
{
    struct trace *trace = calloc(1, sizeof *trace);
    if (trace)
        trace->db = db;
    return trace;
}

void trace_rest(struct trace *trace)
{
    for (int i = 0; i < STATEMENTS; i++) {
        sqlite3_finalize(trace->prepared[i]);
        trace->prepared[i] = NULL;
    }
    for (int i = 0; i < BODIES; i++) {
        body_release(trace->bodies[i]);
        trace->bodies[i] = NULL;
    }
    while (trace->definitions) {
        struct definitions *definitions = trace->definitions;
        trace->definitions = definitions->next;
        definitions_release(definitions);
    }
    zstd_context_free(trace->zstd);
    trace->zstd = NULL;
}

void trace_free(struct trace *trace)
{
    trace_rest(trace);
    free(trace->damages);
    free(trace);
}

/* ---- virtual tables ----------------------------------------------------------------------- */

int trace_connect(sqlite3 *db, struct trace *trace, const char *declaration, sqlite3_vtab **made)
{
    struct trace_table *table;
    int answer = sqlite3_declare_vtab(db, declaration);
    if (answer)
        return answer;
    if (!(table = calloc(1, sizeof *table)))
        return SQLITE_NOMEM;
    sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS); /* may be used in views: it only reads */
    table->trace = trace;
    trace->tables++;
    *made = &table->base;
    return SQLITE_OK;
}

int trace_disconnect(sqlite3_vtab *base)
{
    struct trace *trace = ((struct trace_table *)base)->trace;
    if (!--trace->tables)
        trace_rest(trace);
    free(base);
    return SQLITE_OK;
}

int trace_fail(sqlite3_vtab *vtab, const char *message)
{
    sqlite3_free(vtab->zErrMsg);
    vtab->zErrMsg = sqlite3_mprintf("%s", message);
    return SQLITE_ERROR;
}

int trace_ready(sqlite3_vtab *vtab)
{
    const char *missing = zstd_find();
    return missing ? trace_fail(vtab, missing) : SQLITE_OK;
}
