/* A run's definitions, read; see sqlite_definitions.h. */
#include "query/sqlite_definitions.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/map.h"
#include "common/utf8.h"
#include "common/feature.h"

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

/* ---- definitions -------------------------------------------------------------------------- */

static void names_release(struct names *names)
{
    if (!names || --names->references)
        return;
    arena_free(&names->arena);
    free(names);
}

void summaries_release(struct summaries *summaries)
{
    if (!summaries || --summaries->references)
        return;
    free(summaries->all);
    free((void *)summaries->by_end);
    free(summaries);
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
    summaries_release(definitions->summaries);
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

/* The strings of a JSON array of strings. False: it is none (`names` holds the strings so far). */
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
                room += utf8_put((uint8_t *)room, (uint32_t)code);
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

/* The strings of a JSON array of strings, kept. False: no memory. */
static bool keep_names(struct arena *arena, struct string json, const struct string **names, uint32_t *count)
{
    uint32_t commas = 1;
    for (size_t i = 0; i < json.size; i++)
        commas += json.text[i] == ',';
    if (json.size <= 2)
        return true;
    struct string *all = arena_take(arena, commas * sizeof *all);
    char *room = arena_take(arena, json.size);
    if (!all || !room)
        return false;
    *names = all;
    read_names(json.text, json.text + json.size, all, commas, count, room);
    return true;
}

static bool keep_code(struct arena *arena, sqlite3_stmt *row, struct run_code *code)
{
    struct string json, variables;
    if (!keep_text(arena, row, 1, &code->module) || !keep_text(arena, row, 2, &code->func) ||
        !keep_text(arena, row, 3, &code->file) || !keep_text(arena, row, 5, &json) ||
        !keep_text(arena, row, 7, &variables) || !keep_text(arena, row, 8, &code->layer))
        return false;
    code->last = code->func;
    for (size_t i = code->func.size; i-- > 0;)
        if (code->func.text[i] == '.') {
            code->last = (struct string){code->func.text + i + 1, code->func.size - i - 1};
            break;
        }
    code->line = (uint32_t)sqlite3_column_int64(row, 4);
    code->mine = sqlite3_column_int64(row, 6) != 0;
    return keep_names(arena, json, &code->arguments, &code->argument_count) &&
           keep_names(arena, variables, &code->variables, &code->variable_count);
}

/* The names in a column of a type's row, if there are any, in the types' array, which is made with
 * the first of them. False: no memory. */
static bool keep_type_names(struct names *names, sqlite3_stmt *row, int column, int64_t number,
                            struct run_names **all)
{
    struct string json;
    if (sqlite3_column_type(row, column) == SQLITE_NULL)
        return true;
    if (!*all) {
        size_t size = names->type_count * sizeof **all;
        if (!(*all = arena_take(&names->arena, size)))
            return false;
        memset(*all, 0, size);
    }
    struct run_names *kept = &(*all)[number];
    *kept = (struct run_names){0};
    return keep_text(&names->arena, row, column, &json) &&
           keep_names(&names->arena, json, &kept->names, &kept->count);
}

/* Codes and types are numbered together; there are gaps only if definitions were lost. Numbers far
 * beyond the count make no sense, and must not cost memory. */
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
    names->codes[0].layer = LAYER_PYTHON;
    for (size_t i = 1; i < count; i++)
        names->codes[i] = run_code_undefined;
    sqlite3_bind_int64(row, 1, run);
    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
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
    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
        int64_t number = sqlite3_column_int64(row, 0);
        struct string name;
        if (number <= 0 || (size_t)number >= count)
            continue;
        if (!keep_text(&names->arena, row, 1, &name) || !keep_type_names(names, row, 2, number, &names->fields) ||
            !keep_type_names(names, row, 3, number, &names->attributes)) {
            answer = SQLITE_NOMEM;
            break;
        }
        names->types[number] = name.text;
    }
    sqlite3_reset(row);
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

/* The names of a run; those of `before` if they are still the same. */
static int load_names(struct trace *trace, struct definitions *made, const struct definitions *before)
{
    int64_t counts[4], run = made->run.run;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, COUNTS, &row);

    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, run);
    answer = trace_step(trace, row);
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

static uint64_t thread_key(const struct run_thread *thread)
{
    return (uint64_t)thread->pid << 32 ^ (uint64_t)thread->tid;
}

/* Finds the own streams of threads whose kernel streams are among these. Of two threads of a
 * process with one tid, which was used again, it is the later one. False: no memory. */
static bool link_threads(struct run_thread *threads, size_t count)
{
    struct map owns = {0}, named = {0}; /* places of threads, from 1 on */
    bool done = true;

    for (size_t i = 0; i < count && done; i++) {
        if (threads[i].is_kernel)
            continue;
        uint64_t key = thread_key(&threads[i]), *place = map_put(&owns, key, i + 1);
        uint64_t *name = threads[i].name.size ? map_put(&named, key, i + 1) : NULL;
        done = place && (name || !threads[i].name.size);
        if (place)
            *place = i + 1;
        if (name)
            *name = i + 1;
    }
    for (size_t i = 0; i < count && done; i++) {
        if (!threads[i].is_kernel)
            continue;
        uint64_t own = map_get(&owns, thread_key(&threads[i])), name = map_get(&named, thread_key(&threads[i]));
        if (own)
            threads[i].own = threads[own - 1].stream;
        if (name)
            threads[i].name = threads[name - 1].name;
    }
    map_free(&owns);
    map_free(&named);
    return done;
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
    while ((answer = trace_step(trace, row)) == SQLITE_ROW) {
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
            .process = sqlite3_column_int64(row, 4),
            .is_kernel = sqlite3_column_int(row, 5),
        };
        if (!keep_text(&made->arena, row, 3, &threads[count++].name)) {
            answer = SQLITE_NOMEM;
            break;
        }
    }
    sqlite3_reset(row);
    if (!link_threads(threads, count) && answer == SQLITE_DONE)
        answer = SQLITE_NOMEM;
    made->run.threads = threads;
    made->run.thread_count = (uint32_t)count;
    return answer == SQLITE_DONE ? SQLITE_OK : answer;
}

/* The run's clock. Refuses the run if it needs a newer version. */
static int load_run(struct trace *trace, struct run_definitions *run)
{
    uint64_t refused = 0;
    sqlite3_stmt *row;
    int answer = trace_statement(trace, RUN, &row);
    if (answer)
        return answer;
    sqlite3_bind_int64(row, 1, run->run);
    answer = trace_step(trace, row);
    if (answer == SQLITE_ROW) {
        run->clock = (struct segment_clock){
            .epoch_ns = sqlite3_column_int64(row, 0),
            .epoch_units = (uint64_t)sqlite3_column_int64(row, 1),
            .scale = (uint64_t)sqlite3_column_int64(row, 2),
        };
        refused = features_refused((uint64_t)sqlite3_column_int64(row, 3));
    }
    sqlite3_reset(row);
    if (refused)
        return trace_refuse(trace, SQLITE_ERROR,
                            "run %lld was recorded by a newer pytrace, which is needed to read it (feature %d)",
                            run->run, __builtin_ctzll(refused));
    return answer == SQLITE_ROW || answer == SQLITE_DONE ? SQLITE_OK : answer;
}

static int data_version(struct trace *trace, int64_t *version)
{
    sqlite3_stmt *row;
    int answer = trace_statement(trace, VERSION, &row);
    if (answer)
        return answer;
    answer = trace_step(trace, row);
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
        if ((answer = load_run(trace, &made->run)) || (answer = load_names(trace, made, before)) ||
            (answer = load_threads(trace, made))) {
            definitions_release(made);
            return answer;
        }
        made->run.codes = made->names->codes;
        made->run.code_count = made->names->code_count;
        made->run.types = made->names->types;
        made->run.fields = made->names->fields;
        made->run.attributes = made->names->attributes;
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

/* ---- the segments of a run ---------------------------------------------------------------- */

static const struct run_thread thread_unknown = {.process = -1, .name = {"", 0}};

const struct run_thread *definitions_thread(const struct run_definitions *run, int64_t stream)
{
    const struct run_thread *thread = run_thread_find(run, (uint32_t)stream);
    return thread ? thread : &thread_unknown;
}

static struct string blob_of(sqlite3_stmt *row, int column)
{
    const char *bytes = sqlite3_column_blob(row, column);
    return (struct string){bytes, bytes ? (size_t)sqlite3_column_bytes(row, column) : 0};
}

struct segment_summary summary_of_row(sqlite3_stmt *row, bool open)
{
    struct segment_summary summary = {
        .id = sqlite3_column_int64(row, 0),
        .start = sqlite3_column_int64(row, 1),
        .end = sqlite3_column_int64(row, 2),
        .count = (uint32_t)sqlite3_column_int64(row, 3),
        .stream = sqlite3_column_int64(row, 4),
        .min_depth = sqlite3_column_int64(row, 5),
        .max_depth = sqlite3_column_int64(row, 6),
        .kinds = (uint32_t)sqlite3_column_int64(row, 7),
        .max_duration = sqlite3_column_int64(row, 8),
        .codes = blob_of(row, 9),
    };
    if (open && sqlite3_column_type(row, 10) == SQLITE_BLOB)
        summary.open = blob_of(row, 10);
    return summary;
}

static bool keep_summary(struct arena *arena, struct summaries *summaries, struct segment_summary summary,
                         size_t *capacity)
{
    if (!array_reserve(&summaries->all, capacity, summaries->count + 1, sizeof summary))
        return false;
    if (!keep(arena, summary.codes.text, summary.codes.size, &summary.codes))
        return false;
    if (summary.open.text && !keep(arena, summary.open.text, summary.open.size, &summary.open))
        return false;
    summaries->all[summaries->count++] = summary;
    return true;
}

int summaries_get(struct trace *trace, struct definitions *definitions, bool open)
{
    struct summaries *made, *known = definitions->summaries;
    size_t capacity = 0;
    sqlite3_stmt *row;

    if (known && (known->has_open || !open))
        return SQLITE_OK;
    int answer = trace_statement(trace, open ? SEGMENTS_OPEN : SEGMENTS, &row);
    if (answer)
        return answer;
    if (!(made = calloc(1, sizeof *made)))
        return SQLITE_NOMEM;
    *made = (struct summaries){.references = 1, .has_open = open};
    sqlite3_bind_int64(row, 1, definitions->run.run);
    sqlite3_bind_int64(row, 2, INT64_MAX);
    sqlite3_bind_int64(row, 3, INT64_MIN);
    while ((answer = trace_step(trace, row)) == SQLITE_ROW)
        if (!keep_summary(&definitions->arena, made, summary_of_row(row, open), &capacity)) {
            answer = SQLITE_NOMEM;
            break;
        }
    sqlite3_reset(row);
    if (answer != SQLITE_DONE) {
        summaries_release(made);
        return answer;
    }
    summaries_release(known);
    definitions->summaries = made;
    return SQLITE_OK;
}

static int by_end(const void *left, const void *right)
{
    int64_t a = (*(const struct segment_summary *const *)left)->end;
    int64_t b = (*(const struct segment_summary *const *)right)->end;
    return (a < b) - (a > b);
}

bool summaries_order(struct summaries *summaries)
{
    if (summaries->by_end)
        return true;
    if (!(summaries->by_end = malloc((summaries->count + (size_t)1) * sizeof *summaries->by_end)))
        return false;
    for (uint32_t i = 0; i < summaries->count; i++) /* nearly in order */
        summaries->by_end[i] = &summaries->all[summaries->count - 1 - i];
    if (summaries->count > 1)
        qsort(summaries->by_end, summaries->count, sizeof *summaries->by_end, by_end);
    return true;
}

static struct timeline_segment segment_of_summary(const struct run_definitions *run,
                                                  const struct segment_summary *summary)
{
    const uint8_t *codes = (const uint8_t *)summary->codes.text;
    return (struct timeline_segment){
        .id = summary->id,
        .start = (uint64_t)summary->start,
        .end = (uint64_t)summary->end,
        .count = summary->count,
        .stream = (uint32_t)summary->stream,
        .min_depth = (int32_t)summary->min_depth,
        .max_duration = (uint64_t)summary->max_duration,
        .pid = definitions_thread(run, summary->stream)->pid,
        .own = definitions_thread(run, summary->stream)->own,
        .codes = codes,
        .codes_end = codes + summary->codes.size,
    };
}

int timeline_get(struct trace *trace, struct definitions *definitions, const struct timeline **timeline)
{
    const struct summaries *summaries;
    struct timeline *made;

    *timeline = definitions->timeline;
    if (*timeline)
        return SQLITE_OK;
    int answer = summaries_get(trace, definitions, false);
    if (answer)
        return answer;
    summaries = definitions->summaries;
    if (!(made = definitions->timeline = calloc(1, sizeof *made)) ||
        !(made->segments = calloc(summaries->count + (size_t)1, sizeof *made->segments))) {
        timeline_free(definitions);
        return SQLITE_NOMEM;
    }
    for (; made->count < summaries->count; made->count++)
        made->segments[made->count] = segment_of_summary(&definitions->run, &summaries->all[made->count]);
    if (!timeline_link(made)) {
        timeline_free(definitions);
        return SQLITE_NOMEM;
    }
    *timeline = made;
    return SQLITE_OK;
}
