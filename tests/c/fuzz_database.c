/* Asks a database in which arbitrary things were put, through SQLite and with the extension in it.
 * The input: which question (a byte), then changes of the cells of run 1 (see enum change). Besides
 * touching nothing that is not theirs, the virtual tables must come to an end, with rows or with an
 * error.
 *
 * SCHEMA is the path of schema.sql.
 */
#include "fuzz.h"

#include "format/event.h"

#include <sqlite3.h>

int sqlite3_sqlitetrace_init(sqlite3 *db, char **error, const void *api);

#define ROWS_MAX 2000 /* of an answer */

static const char *const questions[] = {
    "SELECT *, args FROM event WHERE event MATCH ?1",
    "SELECT *, args FROM event",
    "SELECT * FROM event ORDER BY time DESC, id DESC LIMIT 10 OFFSET 3",
    "SELECT * FROM event WHERE func LIKE '%a%' AND duration > 1 AND depth < 5",
    "SELECT * FROM event WHERE kind IN ('call', 'log') AND module = 'app' AND pid > 0",
    "SELECT *, args FROM event WHERE id IN (SELECT id FROM event)",
    "SELECT e.*, e.args FROM segment AS s JOIN event AS e ON e.id = (s.id << 18) + 1",
    "SELECT *, run, time FROM argument",
    "SELECT * FROM argument WHERE value LIKE '%ob%' AND name = 'user'",
    "SELECT * FROM call",
    "SELECT * FROM call WHERE func LIKE '%' ORDER BY time DESC",
    "SELECT stack.* FROM event JOIN stack(event.id) AS stack",
    "SELECT variable.*, items FROM event JOIN variable(event.id) AS variable",
    "SELECT * FROM hot",
    "SELECT *, mine FROM line",
    "SELECT id, own_depth, near_depth, near FROM event WHERE event MATCH '(or (shown own) (shown near))'",
    "SELECT id, trailing FROM event WHERE trailing = 1 OR event MATCH '(and (= trailing 0) (= line 2))'",
    "SELECT own_depth FROM event WHERE near_depth < 3 OR near = 0 ORDER BY time DESC LIMIT 9",
    "SELECT * FROM hot WHERE func LIKE 'p%' AND thread = 'MainThread'",
};
#define QUESTIONS (sizeof questions / sizeof *questions)

static const struct {
    const char *table, *column;
} cells[] = {
    {"segment", "id"}, {"segment", "run"}, {"segment", "stream"}, {"segment", "sequence"},
    {"segment", "process"}, {"segment", "start"}, {"segment", "\"end\""}, {"segment", "base_depth"},
    {"segment", "min_depth"}, {"segment", "max_depth"}, {"segment", "count"}, {"segment", "lost"},
    {"segment", "size"}, {"segment", "complete"}, {"segment", "kinds"}, {"segment", "max_duration"},
    {"segment", "codes"}, {"segment", "data"}, {"run", "clock_epoch_ns"}, {"run", "clock_epoch_units"},
    {"run", "clock_scale"}, {"run", "id"}, {"process", "number"}, {"process", "pid"}, {"thread", "stream"},
    {"thread", "process"}, {"thread", "tid"}, {"thread", "name"}, {"code", "number"}, {"code", "module"},
    {"code", "func"}, {"code", "file"}, {"code", "line"}, {"code", "arguments"},
    {"type", "number"}, {"type", "name"}, {"type", "fields"}, {"type", "attributes"},
    {"run", "features"}, {"segment", "kind"}, {"segment", "open"}, {"code", "variables"},
    {"source_file", "run"}, {"source_file", "file"}, {"source_file", "changed"}, {"source_file", "size"},
    {"source_file", "data"},
};
#define CELLS (sizeof cells / sizeof *cells)

/* CELL: which, and a value, in the rows of run 1. BODY: which segment, and its records, rightly
 * compressed. MATCH: the text of the question that asks by one. */
enum change { CELL, BODY, MATCH, CHANGES };
enum content { SMALL, LARGE, TEXT, BLOB, NOTHING, CONTENTS };

static unsigned char *image; /* of the database as it was made */
static sqlite3_int64 image_size;

/* ---- the input ------------------------------------------------------------------------------ */

struct input {
    const uint8_t *data;
    size_t size;
};

static unsigned take(struct input *input)
{
    if (!input->size)
        return 0;
    input->size--;
    return *input->data++;
}

/* A length (two bytes), and as many. */
static const uint8_t *take_bytes(struct input *input, size_t *size)
{
    *size = take(input);
    *size |= (size_t)take(input) << 8;
    if (*size > input->size)
        *size = input->size;
    const uint8_t *bytes = input->data;
    input->data += *size;
    input->size -= *size;
    return bytes;
}

/* ---- the database --------------------------------------------------------------------------- */

static void execute(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &error))
        fprintf(stderr, "%s\n", error);
    CHECK(!error);
}

static void take_out(char *text, const char *words)
{
    for (char *at; (at = strstr(text, words));)
        memset(at, ' ', strlen(words));
}

/* schema.sql, in which columns take what they should not. */
static void make_tables(sqlite3 *db)
{
    static char schema[32768];
    FILE *file = fopen(SCHEMA, "r");
    CHECK(file);
    size_t size = fread(schema, 1, sizeof schema - 1, file);
    CHECK(size && size < sizeof schema - 1);
    fclose(file);
    for (char *at; (at = strstr(schema, "STRICT, WITHOUT"));)
        memcpy(at, "        WITHOUT", 15);
    take_out(schema, "STRICT");
    take_out(schema, "NOT NULL");
    execute(db, schema);
}

/* A zstd frame of one segment with uncompressed blocks; `frame` has size + 20 bytes. */
static int put_frame(uint8_t *frame, const uint8_t *data, size_t size)
{
    /* magic; single segment, its size in 4 bytes */
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0};
    uint8_t *p = (uint8_t *)memcpy(frame, head, sizeof head) + sizeof head;
    for (int i = 0; i < 4; i++)
        *p++ = (uint8_t)(size >> 8 * i);
    CHECK(size < 1u << 17); /* else it takes more than one block */
    uint32_t block = (uint32_t)(size << 3 | 1); /* raw, and the last */
    for (int i = 0; i < 3; i++)
        *p++ = (uint8_t)(block >> 8 * i);
    if (size)
        memcpy(p, data, size);
    return (int)(p + size - frame);
}

static void put_body(sqlite3 *db, unsigned segment, const uint8_t *data, size_t size)
{
    uint8_t *frame = malloc(size + 20);
    sqlite3_stmt *statement;
    CHECK(frame);
    CHECK(!sqlite3_prepare_v2(db, "UPDATE segment SET size = ?1, data = ?2 WHERE run = 1 AND sequence = ?3", -1,
                              &statement, NULL));
    sqlite3_bind_int64(statement, 1, (sqlite3_int64)size);
    sqlite3_bind_blob(statement, 2, frame, put_frame(frame, data, size), SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, segment);
    sqlite3_step(statement);
    sqlite3_finalize(statement);
    free(frame);
}

static size_t some_records(uint8_t *body)
{
    static const enum event_kind kinds[] = {EVENT_CALL, EVENT_CALL, EVENT_YIELD, EVENT_RESUME, EVENT_RAISE,
                                            EVENT_EXCEPTION, EVENT_LOG, EVENT_AT_LINE, EVENT_RETURN};
    uint8_t *p = body;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint8_t *record = p;
        p = event_put(event_open(p, kinds[i], 1 + i % 2), EVENT_TIME, i);
        uint8_t *value = value_open(p, EVENT_VALUE);
        p = value_close(value, wire_put_bytes(value, VALUE_TEXT, (const uint8_t *)"bob", 3));
        if (kinds[i] == EVENT_LOG)
            p = wire_put_bytes(p, EVENT_NAME, (const uint8_t *)"user", 4);
        if (kinds[i] == EVENT_AT_LINE)
            p = wire_put_bytes(p, EVENT_VARIABLE, (const uint8_t *)"\x01", 1);
        p = event_close(record, p);
    }
    return (size_t)(p - body);
}

static void make_database(void)
{
    uint8_t body[1024];
    sqlite3 *db;

    CHECK(!sqlite3_open(":memory:", &db));
    make_tables(db);
    execute(db, "INSERT INTO run (id, recording, command, directory, python, started, clock_epoch_ns,"
                " clock_epoch_units, clock_scale) VALUES (1, 'a', 'app.py', '/', '3.13.0', 5, 5, 5, 1 << 34),"
                " (2, 'b', 'app.py', '/', '3.13.0', 5, 5, 5, 1 << 34)");
    for (int run = 1; run <= 2; run++) {
        char sql[1200];
        snprintf(sql, sizeof sql,
                 "INSERT INTO process (run, number, pid, started) VALUES (%d, 0, 100, 5);"
                 "INSERT INTO thread VALUES (%d, 1, 0, 100, 'MainThread', 'thread');"
                 "INSERT INTO code VALUES"
                 " (%d, 1, 'app', 'pay', 'app.py', 3, '[\"user\", \"amount\"]', 3, 'python', 1,"
                 " '[\"user\", \"total\"]', NULL, NULL, NULL),"
                 " (%d, 2, 'app', 'Shop.walk', 'app.py', 9, '[\"a\"]', 35, 'python', 0, '[]',"
                 " 'libapp.so', 'beef', 256);"
                 "INSERT INTO type VALUES (%d, 1, 'app.Order', '[\"x\", \"y\"]', '[\"user\", \"total\"]');"
                 "INSERT INTO segment SELECT NULL, %d, 1, value, 0, 100 * value, 100 * value + 90, 0, 0, 3, 9, 0, 0, 1,"
                 " 66046, 9, 0, x'0102', x'03', x'' FROM (SELECT 0 AS value UNION SELECT 1 UNION SELECT 2)",
                 run, run, run, run, run, run);
        execute(db, sql);
    }
    put_body(db, 0, (const uint8_t *)"def pay(user):\n", 15);
    execute(db, "INSERT INTO source_file (run, file, changed, size, data)"
                " SELECT run.id, 'app.py', 0, size, data FROM run, segment WHERE run = 1 AND sequence = 0");
    size_t size = some_records(body);
    for (unsigned segment = 0; segment < 3; segment++)
        put_body(db, segment, body, size);
    execute(db, "UPDATE segment SET (size, data) = (SELECT size, data FROM segment WHERE run = 1) WHERE run = 2");
    image = sqlite3_serialize(db, "main", &image_size, 0);
    CHECK(image);
    sqlite3_close(db);
}

/* A copy of it; a connection of its own, so that nothing is known from the last one. */
static sqlite3 *open_copy(void)
{
    char *error = NULL;
    sqlite3 *db;
    CHECK(!sqlite3_open(":memory:", &db));
    unsigned char *copy = sqlite3_malloc64((sqlite3_uint64)image_size);
    CHECK(copy);
    memcpy(copy, image, (size_t)image_size);
    CHECK(!sqlite3_deserialize(db, "main", copy, image_size, image_size,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE));
    CHECK(!sqlite3_sqlitetrace_init(db, &error, NULL));
    return db;
}

static void change_cell(sqlite3 *db, struct input *input)
{
    unsigned cell = take(input) % CELLS;
    char sql[200];
    sqlite3_stmt *statement;
    size_t size = 0;
    const uint8_t *bytes;
    sqlite3_int64 number = 0;

    snprintf(sql, sizeof sql, "UPDATE OR REPLACE %s SET %s = ?1 WHERE %s = 1", cells[cell].table, cells[cell].column,
             strcmp(cells[cell].table, "run") ? "run" : "id");
    CHECK(!sqlite3_prepare_v2(db, sql, -1, &statement, NULL));
    switch ((enum content)(take(input) % CONTENTS)) {
    case SMALL:
        sqlite3_bind_int(statement, 1, (int8_t)take(input));
        break;
    case LARGE:
        for (int i = 0; i < 8; i++)
            number = (sqlite3_int64)((uint64_t)number << 8 | take(input));
        sqlite3_bind_int64(statement, 1, number);
        break;
    case TEXT:
        bytes = take_bytes(input, &size);
        sqlite3_bind_text(statement, 1, (const char *)bytes, (int)size, SQLITE_TRANSIENT);
        break;
    case BLOB:
        bytes = take_bytes(input, &size);
        sqlite3_bind_blob(statement, 1, bytes, (int)size, SQLITE_TRANSIENT);
        break;
    default:
        break;
    }
    sqlite3_step(statement); /* a number that is no number of a row is refused */
    sqlite3_finalize(statement);
}

/* Rows must keep what was promised to the planner (sqlite_verify.h), unless a segment's row lies
 * of its events. */
static void ask(sqlite3 *db, const char *question, const uint8_t *match, size_t match_size, bool intact)
{
    sqlite3_stmt *statement;
    int answer = SQLITE_ROW;

    if (sqlite3_prepare_v2(db, question, -1, &statement, NULL))
        return; /* the answer is an error */
    if (sqlite3_bind_parameter_count(statement))
        sqlite3_bind_text(statement, 1, (const char *)match, (int)match_size, SQLITE_TRANSIENT);
    for (int rows = 0; rows < ROWS_MAX && (answer = sqlite3_step(statement)) == SQLITE_ROW; rows++)
        for (int column = 0; column < sqlite3_column_count(statement); column++)
            sqlite3_column_blob(statement, column);
    CHECK(!intact || answer == SQLITE_ROW || answer == SQLITE_DONE || strncmp(sqlite3_errmsg(db), "verify:", 7));
    sqlite3_finalize(statement);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    const uint8_t *match = (const uint8_t *)"", *bytes;
    size_t match_size = 0;
    bool intact = true;

    if (!image)
        make_database();
    sqlite3 *db = open_copy();
    const char *question = questions[take(&input) % QUESTIONS];
    while (input.size) {
        unsigned segment;
        switch ((enum change)(take(&input) % CHANGES)) {
        case BODY:
            segment = take(&input) % 3;
            bytes = take_bytes(&input, &size);
            put_body(db, segment, bytes, size);
            intact = false;
            break;
        case MATCH:
            match = take_bytes(&input, &match_size);
            break;
        default:
            change_cell(db, &input);
            intact = false;
        }
    }
    ask(db, question, match, match_size, intact);
    ask(db, "SELECT * FROM damage", NULL, 0, false);
    ask(db, "SELECT * FROM skipped", NULL, 0, false);
    ask(db, "SELECT *, changed FROM source", NULL, 0, false);
    ask(db, "SELECT source.text FROM code JOIN source USING (run, file)", NULL, 0, false);
    CHECK(!sqlite3_close(db));
    return 0;
}
