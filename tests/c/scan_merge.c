/* The scan over segments of several threads that overlap in time: every event once, in order,
 * both ways, whole segments and picked events, broken segments reported, and errors of the
 * caller passed on. Run under sanitizers; the scan uses its own threads. */
#include <stdio.h>
#include <stdlib.h>

#include "query/scan.h"
#include "query/zstd.h"

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);           \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

enum { STREAMS = 5, CHUNKS = 60, EVENTS = 200, SEGMENTS = STREAMS * CHUNKS };

static struct run_thread threads[STREAMS];
static const struct run_code codes[] = {
    {.module = {"", 0}, .func = {"", 0}, .file = {"", 0}, .last = {"", 0}},
    {.module = {"m", 1}, .func = {"often", 5}, .file = {"f", 1}, .last = {"often", 5}},
    {.module = {"m", 1}, .func = {"seldom", 6}, .file = {"f", 1}, .last = {"seldom", 6}},
};
static const struct run_definitions run = {
    .run = 1, .clock = {1000, 0, (uint64_t)1 << 32}, .code_count = 3, .codes = codes,
    .thread_count = STREAMS, .threads = threads};

static struct {
    struct scan_segment segment;
    uint8_t data[EVENTS * 32 + 64];
    size_t data_size;
    int64_t size;
} stored[SEGMENTS];

static int fetches, fetch_error_at, damages;

static int fetch(void *context, const struct scan_segment *segment, struct scan_data *data)
{
    (void)context;
    if (fetch_error_at && ++fetches == fetch_error_at)
        return -9;
    *data = (struct scan_data){.size = stored[segment->id - 1].size, .data = stored[segment->id - 1].data,
                               .data_size = stored[segment->id - 1].data_size};
    return 1;
}

static void damaged(void *context, const struct scan_segment *segment, uint32_t read, const char *reason)
{
    (void)context;
    CHECK(segment->id > 0 && reason && read < EVENTS);
    damages++;
}

/* Hands out a list a few at a time, at times none. */
struct portions {
    size_t given;
};

static int more(void *list, size_t *count)
{
    struct portions *portions = list;
    portions->given += (size_t)(rand() % 8);
    *count = portions->given = portions->given < SEGMENTS ? portions->given : SEGMENTS;
    return portions->given < SEGMENTS;
}

static int by_start(const void *left, const void *right)
{
    const struct scan_segment *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static int by_end(const void *left, const void *right)
{
    const struct scan_segment *a = left, *b = right;
    return (a->end < b->end) - (a->end > b->end);
}

/* One raw block in a frame: zstd without a compressor. RFC 8878, section 3.1.1. */
static size_t frame(uint8_t *out, const uint8_t *body, size_t size)
{
    const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0xa0, (uint8_t)size, (uint8_t)(size >> 8), 0, 0,
                            (uint8_t)(1 | (size << 3)), (uint8_t)(size >> 5), (uint8_t)(size >> 13)};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, body, size);
    return sizeof head + size;
}

/* Events of seldom, those with a needle, and those that are both; needles are in every fourth
 * segment. */
static int all_seldom, all_needles, both;

static void make(void)
{
    uint64_t time[STREAMS] = {0};
    uint8_t body[EVENTS * 32];

    srand(1);
    for (int i = 0; i < SEGMENTS; i++) {
        int stream = rand() % STREAMS;
        uint64_t base = time[stream];
        uint8_t *end = body;

        for (int j = 0; j < EVENTS; j++) {
            bool seldom = rand() % 50 == 0, last = j == EVENTS - 1;
            bool needle = i % 4 == 0 && !last && rand() % 60 == 0;
            uint8_t *record = end, *p = event_open(end, EVENT_CALL, seldom ? 2 : 1);
            uint64_t span = (uint64_t)(rand() % 20);
            p = event_put(p, EVENT_TIME, span);
            if (needle || (!last && rand() % 2)) {
                uint8_t *value = value_open(p, EVENT_VALUE);
                p = wire_put_bytes(value, VALUE_TEXT, (const uint8_t *)(needle ? "a needle" : "needless"), 8);
                p = value_close(value, p);
            }
            end = event_close(record, p);
            all_seldom += seldom;
            all_needles += needle;
            both += seldom && needle;
            time[stream] += span;
        }
        stored[i].size = end - body;
        stored[i].data_size = frame(stored[i].data, body, (size_t)(end - body));
        stored[i].segment = (struct scan_segment){
            .id = i + 1, .run = &run, .thread = &threads[stream], .start = 1000 + (int64_t)base,
            .end = 1000 + (int64_t)time[stream], .base_time = base, .count = EVENTS};
    }
}

static int count_listed(const struct predicate *predicate, bool all, bool descending, int stop_after,
                        bool in_portions)
{
    struct portions portions = {0};
    struct scan_calls calls = {
        .fetch = fetch, .damaged = damaged, .more = in_portions ? more : NULL, .list = &portions};
    struct scan_segment *segments = malloc(SEGMENTS * sizeof *segments);
    struct scan_at at;
    int64_t last_time = descending ? INT64_MAX : INT64_MIN, last_id = last_time;
    int found = 0, answer;

    CHECK(segments);
    for (int i = 0; i < SEGMENTS; i++) {
        segments[i] = stored[i].segment;
        segments[i].all = all;
    }
    if (in_portions)
        qsort(segments, SEGMENTS, sizeof *segments, descending ? by_end : by_start);
    struct scan *scan =
        scan_new(predicate, segments, in_portions ? 0 : SEGMENTS, descending, false, &calls);
    CHECK(scan);
    while (found < stop_after && (answer = scan_next(scan, &at)) > 0) {
        int64_t id = (at.segment->id << SCAN_INDEX_BITS) + at.row->index;
        bool later = at.row->time > last_time || (at.row->time == last_time && id > last_id);
        bool earlier = at.row->time < last_time || (at.row->time == last_time && id < last_id);
        CHECK(descending ? earlier : later);
        CHECK(at.row->time >= at.segment->start && at.row->time <= at.segment->end);
        last_time = at.row->time;
        last_id = id;
        found++;
    }
    if (found < stop_after && answer < 0) {
        CHECK(answer == -9 && scan_next(scan, &at) == -9);
        found = answer;
    }
    scan_free(scan);
    free(segments);
    return found;
}

/* How many events come, and that they do in order: the same, if segments are listed in portions.
 * `stop_after`: the rest is left. */
static int count(const struct predicate *predicate, bool all, bool descending, int stop_after)
{
    int before = fetches, damages_before = damages;
    int found = count_listed(predicate, all, descending, stop_after, true);
    fetches = before;
    damages = damages_before;
    CHECK(count_listed(predicate, all, descending, stop_after, false) == found);
    return found;
}

int main(void)
{
    const char *missing = zstd_find();
    struct predicate *seldom = predicate_equal(FIELD_FUNC, "seldom", 6);
    int few;

    if (missing) {
        fprintf(stderr, "%s\n", missing);
        return 1;
    }
    for (int i = 0; i < STREAMS; i++)
        threads[i] = (struct run_thread){.stream = (uint32_t)i + 1, .name = {"", 0}};
    make();
    CHECK(count(NULL, true, false, INT32_MAX) == SEGMENTS * EVENTS);
    CHECK(count(NULL, true, true, INT32_MAX) == SEGMENTS * EVENTS);
    few = count(seldom, false, false, INT32_MAX);
    CHECK(few > 0 && few < SEGMENTS * EVENTS / 10);
    CHECK(few == all_seldom && count(seldom, false, true, INT32_MAX) == few);
    const struct {
        const char *text;
        int count;
    } asked[] = {
        {"(any (like value \"%needle'%\"))", all_needles},
        {"(and (= func \"seldom\") (any (like value \"%NEEDLE'\")))", both},
        {"(or (= func \"seldom\") (any (like value \"'a needle'\")))", all_seldom + all_needles - both},
        {"(and (any (like value \"%needle'\")) (any (like value \"%needless'\")))", 0},
        {"(not (or (= func \"often\") (any (like value \"%needle'\"))))", all_seldom - both},
        {"(any (like value \"%haystack%\"))", 0},
    };
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char message[100];
        struct predicate *made = predicate_parse(asked[i].text, strlen(asked[i].text), message, sizeof message);
        CHECK(made);
        for (int descending = 0; descending < 2; descending++)
            CHECK(count(made, false, descending, INT32_MAX) == asked[i].count);
        predicate_free(made);
    }
    for (int stop = 0; stop < 20000; stop = stop * 3 + 1)
        CHECK(count(NULL, true, stop & 1, stop) == stop);

    fetch_error_at = 40;
    CHECK(count(NULL, true, false, INT32_MAX) == -9);
    fetch_error_at = 0;

    memset(stored[7].data + 4, 0xff, 20);                  /* no zstd */
    stored[9].size += 1;                                   /* another size than it says */
    memset(stored[11].data + stored[11].data_size - 5, 0xff, 5); /* breaks in its last event */
    CHECK(count(NULL, true, false, INT32_MAX) == (SEGMENTS - 2) * EVENTS - 1 && damages == 3);
    predicate_free(seldom);
    return 0;
}
