/* What the ring's tests share: records whose content tells their place, and a store that keeps what
 * a dumper would keep, survives the dumper's death, and checks that nothing is missing or twice.
 */
#ifndef PYTRACE_RING_TEST_H
#define PYTRACE_RING_TEST_H

#include "ring/ring.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), abort()))

#define CHECK_EQUAL(left, right) \
    check_equal((int64_t)(left), (int64_t)(right), #left " == " #right, __FILE__, __LINE__)

static inline void check_equal(int64_t left, int64_t right, const char *text, const char *file, int line)
{
    if (left != right) {
        fprintf(stderr, "%s:%d: %s: %lld, %lld\n", file, line, text, (long long)left, (long long)right);
        abort();
    }
}

static char ring_path[256];

static inline void remove_ring(void)
{
    unlink(ring_path);
}

/* A path for this process's ring, removed at exit. */
static inline const char *name_ring(void)
{
    const char *folder = getenv("RING_FOLDER");
    snprintf(ring_path, sizeof ring_path, "%s/pytrace-test-%d", folder ? folder : "/dev/shm", (int)getpid());
    remove_ring();
    atexit(remove_ring);
    return ring_path;
}

static inline void make_ring(struct ring *ring, uint64_t buffer_size)
{
    int lock;
    CHECK_EQUAL(ring_create(name_ring(), buffer_size, "", 0), 0);
    CHECK_EQUAL(ring_attach(ring, ring_path, RING_PRODUCER, &lock), 0);
    CHECK_EQUAL(lock, -1);
}

/* A shared area that forked children see too. */
static inline void *share(size_t size)
{
    void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(area != MAP_FAILED);
    return area;
}

static inline int wait_for(pid_t pid)
{
    int status;
    CHECK_EQUAL(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- death at a test point ---------------------------------------------------------------- */

static const char *death_point;
static int death_count;

static inline void die_at_point(const char *name)
{
    if (death_point && !strcmp(name, death_point) && --death_count == 0)
        kill(getpid(), SIGKILL);
}

/* From now on this process dies when it comes to that point for the n-th time. */
static inline void die_at(const char *point, int count)
{
    death_point = point;
    death_count = count;
    ring_test_point = die_at_point;
}

/* ---- records ------------------------------------------------------------------------------ */

struct record {
    uint32_t size;
    uint32_t lost;     /* 1: number is how many were dropped here */
    uint64_t number;   /* of the record in its stream */
};

static inline uint32_t record_size(uint64_t number)
{
    return (uint32_t)(sizeof(struct record) + number * 7919 % 97);
}

static inline int32_t record_depth(uint64_t number)
{
    return (int32_t)(number * 31 % 11) - 3;
}

static inline uint8_t *put_record(uint8_t *p, uint32_t lost, uint64_t number)
{
    struct record record = {lost ? sizeof record : record_size(number), lost, number};
    memcpy(p, &record, sizeof record);
    for (uint32_t i = sizeof record; i < record.size; i++)
        p[i] = (uint8_t)(number + i);
    return p + record.size;
}

/* As the hook does it. False: dropped. */
static inline bool produce(struct stream *stream, uint64_t number)
{
    uint8_t *p = stream_reserve(stream, sizeof(struct record) + record_size(number));
    if (!p)
        return false;
    if (stream->lost) {
        stream_commit(stream, put_record(p, 1, stream->lost));
        stream->lost = 0;
        p = stream->next;
    }
    stream->time = number + 1;
    stream->depth = record_depth(number);
    stream_went_down(stream);
    stream_commit(stream, put_record(p, 0, number));
    return true;
}

/* ---- the store ---------------------------------------------------------------------------- */

struct row {
    struct chunk_view view; /* body: not to be used */
    size_t offset;          /* of its copy in data */
};

#define STORE_ROWS 100000
#define STORE_BYTES ((size_t)1 << 30)

/* Rows behind `committed` are a transaction under way. As a key's later row replaces the one
 * before, the table is what an upsert by (stream, sequence) would make of them. */
struct store {
    _Atomic size_t committed;
    size_t rows;
    struct row row[STORE_ROWS];
    uint8_t data[STORE_BYTES];
};

static inline struct store *make_store(void)
{
    return share(sizeof(struct store));
}

static inline size_t row_end(const struct store *store, size_t rows)
{
    return rows ? store->row[rows - 1].offset + store->row[rows - 1].view.used : 0;
}

static inline void store_insert(struct store *store, const struct chunk_view *view)
{
    CHECK(store->rows < STORE_ROWS);
    struct row *row = &store->row[store->rows];
    row->view = *view;
    row->offset = row_end(store, store->rows);
    CHECK(row->offset + view->used <= STORE_BYTES);
    memcpy(store->data + row->offset, view->body, view->used);
    store->rows++;
}

/* One pass of a dumper: 1. who has ended, 2. look, 3. store, commit, 4. release. Returns how many
 * chunks it released. live: unfinished chunks are stored as well. */
static inline uint32_t dump(struct ring *ring, struct store *store, bool live)
{
    static bool ended[RING_PROCESSES];
    struct chunk_view *views = calloc(ring->chunk_count, sizeof *views);
    uint32_t bad, released = 0;
    CHECK(views);

    for (uint32_t i = 0; i < RING_PROCESSES && ring_process_state(ring, i) != PROCESS_NONE; i++)
        ended[i] = !ring_process_alive(ring, i);
    RING_TEST_POINT(before_look);
    uint32_t found = ring_look_all(ring, views, &bad);
    CHECK_EQUAL(bad, 0);
    RING_TEST_POINT(after_look);

    store->rows = store->committed; /* rolls back what a dumper left that died */
    live = live && row_end(store, store->rows) < STORE_BYTES / 2; /* rest: must be stored */
    for (uint32_t i = 0; i < found; i++)
        if (views[i].used && (live || views[i].state == CHUNK_SEALED || ended[views[i].process]))
            store_insert(store, &views[i]);
    RING_TEST_POINT(before_commit);
    store->committed = store->rows;
    RING_TEST_POINT(after_commit);

    for (uint32_t i = 0; i < found; i++)
        if (views[i].state == CHUNK_SEALED || ended[views[i].process]) {
            ring_release(ring, views[i].index);
            released++;
        }
    ring_dumper_pass_ended(ring);
    free(views);
    return released;
}

static inline int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->view.stream != b->view.stream)
        return a->view.stream < b->view.stream ? -1 : 1;
    if (a->view.sequence != b->view.sequence)
        return a->view.sequence < b->view.sequence ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

struct found {
    uint64_t stored;
    uint64_t lost;  /* as told by lost records */
};

/* Walks one chunk, the next in its stream. */
static inline void check_row(const struct store *store, const struct row *row, struct found *found)
{
    const struct chunk_view *view = &row->view;
    const uint8_t *p = store->data + row->offset, *end = p + view->used;
    uint64_t number = found->stored + found->lost;
    uint64_t lost = 0;
    uint32_t count = 0;

    CHECK_EQUAL(view->base_time, number);
    CHECK_EQUAL(view->base_depth, number ? record_depth(number - 1) : 0);
    CHECK(view->min_depth <= view->base_depth);
    for (; p < end; count++) {
        struct record record;
        CHECK((size_t)(end - p) >= sizeof record);
        memcpy(&record, p, sizeof record);
        CHECK(record.size <= (size_t)(end - p));
        if (record.lost) {
            CHECK_EQUAL(count, 0); /* loss ends with a new chunk */
            lost = record.number;
        } else {
            CHECK_EQUAL(record.number, number + lost);
            CHECK_EQUAL(record.size, record_size(record.number));
            for (uint32_t i = sizeof record; i < record.size; i++)
                CHECK(p[i] == (uint8_t)(record.number + i));
            CHECK(view->min_depth <= record_depth(record.number));
            CHECK(view->last_time >= record.number + 1);
            number++;
        }
        p += record.size;
    }
    CHECK_EQUAL(count, view->count);
    CHECK_EQUAL(view->lost_before, lost);
    found->stored += count - (lost != 0);
    found->lost += lost;
}

/* Checks everything committed of one stream: its chunks are numbered without a gap, their records
 * in order, each there once or told as lost. Sorts the store. */
static inline struct found check_stream(struct store *store, uint32_t stream)
{
    struct found found = {0, 0};
    uint32_t sequence = 0;
    size_t rows = store->committed;

    for (size_t i = 0; i < rows; i++) {
        const struct row *row = &store->row[i], *next = i + 1 < rows ? row + 1 : NULL;
        if (row->view.stream != stream)
            continue;
        CHECK_EQUAL(row->view.sequence, sequence);
        if (next && next->view.stream == stream && next->view.sequence == sequence) {
            /* A later version of the same chunk: it goes on where this one ended. */
            CHECK(row->view.used <= next->view.used);
            CHECK(!memcmp(store->data + row->offset, store->data + next->offset, row->view.used));
            continue;
        }
        check_row(store, row, &found);
        sequence++;
    }
    return found;
}

/* To be called once before check_stream. */
static inline void store_sort(struct store *store)
{
    qsort(store->row, store->committed, sizeof *store->row, compare_rows);
}

static inline uint32_t chunks_in_use(const struct ring *ring)
{
    struct chunk_view view;
    uint32_t used = 0;
    for (uint32_t i = 0; i < ring->chunk_count; i++)
        used += ring_look(ring, i, &view) != 0;
    return used;
}

#endif
