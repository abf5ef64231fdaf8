/* One producer and one dumper in one thread: order, chunks in a circle, loss, hostile words. */
#include "ring_test.h"

#define CHUNK RING_MIN_CHUNK_SIZE

static struct ring ring;
static struct store *store;
static uint32_t process;

static void open_stream(struct stream *stream)
{
    stream_open(stream, &ring, process, 4711, CHUNK_EVENTS);
}

/* Many times round the ring, in order, with the unfinished chunk looked at in between. */
static void test_round(void)
{
    struct stream stream;
    uint64_t number = 0;
    open_stream(&stream);
    for (uint32_t pass = 0; pass < 40; pass++) {
        for (int i = 0; i < 3000; i++)
            CHECK(produce(&stream, number++));
        dump(&ring, store, pass % 2);
    }
    stream_close(&stream);
    dump(&ring, store, false);
    CHECK_EQUAL(chunks_in_use(&ring), 0);
    store_sort(store);
    struct found found = check_stream(store, stream.id);
    CHECK_EQUAL(found.stored, number);
    CHECK_EQUAL(found.lost, 0);
}

/* Full: what is dropped is counted, to the record; then it goes on. */
static void test_full(void)
{
    struct stream stream;
    uint64_t number = 0, dropped = 0, lost_before = ring_process_lost(&ring, process);
    open_stream(&stream);
    for (int round = 0; round < 5; round++) {
        while (produce(&stream, number))
            number++;
        CHECK_EQUAL(chunks_in_use(&ring), ring.chunk_count);
        uint64_t here = 1; /* the loop's last */
        for (int i = 0; i < 100 * round; i++)
            here += !produce(&stream, number);
        CHECK_EQUAL(here, 100 * round + 1);
        CHECK(!stream_claim(&stream, 1)); /* only asks: no record is dropped */
        CHECK_EQUAL(stream.lost, here);
        dropped += here;
        number += here;
        CHECK(dump(&ring, store, false) > 0);
        CHECK(produce(&stream, number++));
        CHECK_EQUAL(stream.lost, 0);
    }
    CHECK_EQUAL(ring_process_lost(&ring, process), lost_before + dropped);
    stream_close(&stream);
    dump(&ring, store, false);
    store_sort(store);
    struct found found = check_stream(store, stream.id);
    CHECK_EQUAL(found.lost, dropped);
    CHECK_EQUAL(found.stored, number - dropped);
}

/* A full ring is not searched again before something was freed. */
static void test_full_is_remembered(void)
{
    struct stream stream;
    uint64_t number = 0;
    open_stream(&stream);
    while (produce(&stream, number))
        number++;
    atomic_store(&ring.chunks[2].state, CHUNK_FREE); /* behind the dumper's back */
    CHECK(!produce(&stream, number));
    CHECK(!produce(&stream, number));
    atomic_store(&ring.chunks[2].published, 0);
    atomic_fetch_add(&ring.header->freed, 1);
    CHECK(produce(&stream, number + 3));
    CHECK_EQUAL(stream.chunk - ring.chunks, 2);
    stream_close(&stream);
    for (uint32_t i = 0; i < ring.chunk_count; i++)
        ring_release(&ring, i);
}

/* Records of every size up to the largest, and beyond. */
static void test_sizes(void)
{
    struct stream stream;
    struct chunk_view view;
    uint64_t bytes = 0;
    open_stream(&stream);
    for (size_t size = 1; size <= CHUNK / 2; size = size * 3 / 2 + 1) {
        uint8_t *p = stream_reserve(&stream, size);
        CHECK(p);
        CHECK((size_t)(stream.end - p) >= size);
        memset(p, 0x5a, size);
        stream_commit(&stream, p + size);
        bytes += size;
    }
    CHECK(!stream_reserve(&stream, CHUNK / 2 + 1 + (size_t)(stream.end - stream.next)));
    CHECK_EQUAL(stream.lost, 1);
    CHECK(stream.chunk); /* what has room is taken as before */
    stream.lost = 0;

    /* Reserved and not committed: no record. */
    uint32_t used = (uint32_t)(stream.next - stream.body);
    uint8_t *p = stream_reserve(&stream, 10);
    CHECK(p);
    memset(p, 0xff, 10);
    CHECK_EQUAL(ring_look(&ring, (uint32_t)(stream.chunk - ring.chunks), &view), 1);
    CHECK_EQUAL(view.used, used);
    stream_close(&stream);
    for (uint32_t i = 0; i < ring.chunk_count; i++) {
        if (ring_look(&ring, i, &view) == 1) {
            bytes -= view.used;
            ring_release(&ring, i);
        }
    }
    CHECK_EQUAL(bytes, 0);
}

/* A chunk that was claimed and not used takes no number, and no memory of loss. */
static void test_empty_chunk(void)
{
    struct stream stream;
    struct chunk_view view;
    open_stream(&stream);
    stream_close(&stream); /* without a chunk: nothing */
    CHECK(stream_reserve(&stream, 1));
    uint32_t index = (uint32_t)(stream.chunk - ring.chunks);
    CHECK_EQUAL(ring_look(&ring, index, &view), 1);
    CHECK_EQUAL(view.state, CHUNK_CLAIMED);
    CHECK_EQUAL(view.process, process);
    CHECK_EQUAL(view.used, 0);
    stream_close(&stream);
    CHECK_EQUAL(ring_look(&ring, index, &view), 1);
    CHECK_EQUAL(view.state, CHUNK_SEALED);
    CHECK_EQUAL(view.used, 0);
    dump(&ring, store, true);
    CHECK_EQUAL(ring_look(&ring, index, &view), 0);
    CHECK(produce(&stream, 0));
    CHECK_EQUAL(ring_look(&ring, (uint32_t)(stream.chunk - ring.chunks), &view), 1);
    CHECK_EQUAL(view.sequence, 0);
    CHECK_EQUAL(view.pid, getpid());
    CHECK_EQUAL(view.tid, 4711);
    CHECK_EQUAL(view.stream, stream.id);
    stream_close(&stream);
    dump(&ring, store, false);
}

/* What is abandoned stays as it is, for its owner; and an abandoned stream drops. */
static void test_abandon(void)
{
    struct stream stream, copy;
    open_stream(&stream);
    CHECK(produce(&stream, 0));
    copy = stream;
    stream_abandon(&copy);
    CHECK(!stream_reserve(&copy, 1));
    stream_close(&copy);
    CHECK(produce(&stream, 1));
    stream_close(&stream);
    dump(&ring, store, false);
    store_sort(store);
    CHECK_EQUAL(check_stream(store, stream.id).stored, 2);
}

static void put(struct stream *stream, size_t size)
{
    uint8_t *record = stream_reserve(stream, size);
    CHECK(record != NULL);
    memset(record, 0x55, size);
    stream_commit(stream, record + size);
}

/* The size of the chunk that the stream has. */
static uint32_t size_of_chunk(const struct stream *stream)
{
    return ring_body_size(stream->ring, (uint32_t)(stream->chunk - stream->ring->chunks));
}

/* A stream begins with a small chunk, and has large ones while it fills them. */
static void test_small_chunks(void)
{
    enum { BUFFER = 16 << 20, SMALL = BUFFER / 8 / RING_SMALL_CHUNK_SIZE };
    struct ring large;
    struct stream stream, others[SMALL];
    struct chunk_view view;
    remove_ring();
    make_ring(&large, BUFFER);
    CHECK_EQUAL(large.small_count, SMALL);
    CHECK_EQUAL(large.chunk_count, SMALL + (BUFFER - BUFFER / 8) / CHUNK);
    CHECK(ring_body(&large, large.chunk_count - 1) + CHUNK == large.bodies + BUFFER);
    uint32_t owner = (uint32_t)ring_process_register(&large, 0);

    stream_open(&stream, &large, owner, 1, CHUNK_EVENTS);
    for (size_t size = 0; size < RING_SMALL_CHUNK_SIZE; size += 1024, put(&stream, 1024))
        CHECK(size == 0 || size_of_chunk(&stream) == RING_SMALL_CHUNK_SIZE);
    CHECK_EQUAL(ring_look(&large, 0, &view), 1);
    CHECK_EQUAL(view.used, RING_SMALL_CHUNK_SIZE);
    put(&stream, 1);
    CHECK_EQUAL(size_of_chunk(&stream), CHUNK);
    stream_close(&stream); /* nearly empty */
    put(&stream, 1);
    CHECK_EQUAL(size_of_chunk(&stream), RING_SMALL_CHUNK_SIZE);
    put(&stream, RING_MIN_CHUNK_SIZE / 2); /* does not fit */
    CHECK_EQUAL(size_of_chunk(&stream), CHUNK);
    stream_close(&stream);

    /* When the small ones are taken, large ones are; and the other way round. */
    for (uint32_t i = 0; i < SMALL; i++) {
        stream_open(&others[i], &large, owner, 2, CHUNK_EVENTS);
        put(&others[i], 1);
    }
    CHECK_EQUAL(size_of_chunk(&others[SMALL - 3]), RING_SMALL_CHUNK_SIZE); /* 2 await the dumper */
    CHECK_EQUAL(size_of_chunk(&others[SMALL - 1]), CHUNK);
    ring_release(&large, 0);
    while (stream_claim(&others[0], RING_MIN_CHUNK_SIZE / 2))
        put(&others[0], RING_MIN_CHUNK_SIZE / 2);
    CHECK_EQUAL(ring_look(&large, 0, &view), 0);
    put(&others[1], 1);
    others[1].busy = true;
    ring_release(&large, 1);
    CHECK(stream_claim(&others[1], 1));
    CHECK_EQUAL(size_of_chunk(&others[1]), RING_SMALL_CHUNK_SIZE);
    ring_detach(&large);
}

/* If the large chunks are all in use, a record makes do with a small one, or with the rest of
 * it; and one that cannot leaves those alone that can. */
static void test_large_chunks_are_scarce(void)
{
    enum { BUFFER = 16 << 20, LARGE = RING_MIN_CHUNK_SIZE / 2, LEAST = RING_SMALL_RECORD };
    struct ring scarce;
    struct stream stream, holder;
    remove_ring();
    make_ring(&scarce, BUFFER);
    uint32_t owner = (uint32_t)ring_process_register(&scarce, 0);
    stream_open(&holder, &scarce, owner, 1, CHUNK_EVENTS);
    while (stream_claim(&holder, LARGE))
        put(&holder, LARGE);

    stream_open(&stream, &scarce, owner, 2, CHUNK_EVENTS);
    put(&stream, 100);
    struct chunk_header *first = stream.chunk;
    CHECK_EQUAL(size_of_chunk(&stream), RING_SMALL_CHUNK_SIZE);
    CHECK(stream_next_chunk(&stream, LARGE, LEAST) == stream.body + 100); /* the rest does */
    CHECK(stream.chunk == first);
    put(&stream, RING_SMALL_CHUNK_SIZE / 2);
    CHECK(stream_next_chunk(&stream, LARGE, LEAST) == stream.body); /* and now not */
    CHECK(stream.chunk != first);
    CHECK_EQUAL(stream.sequence, 1);
    put(&stream, 100);
    CHECK_EQUAL(stream.lost, 0);
    CHECK(!stream_next_chunk(&stream, LARGE, LARGE));
    CHECK_EQUAL(stream.lost, 1);
    put(&stream, 100);
    CHECK_EQUAL(size_of_chunk(&stream), RING_SMALL_CHUNK_SIZE);
    CHECK_EQUAL(stream.chunk->lost_before, 1);

    struct stream definitions; /* never a large one if a small one does */
    stream_open(&definitions, &scarce, owner, 0, CHUNK_DEFINITIONS);
    ring_release(&scarce, scarce.small_count);
    for (size_t size = 0; size < 4 * RING_SMALL_CHUNK_SIZE; size += 1024, put(&definitions, 1024))
        CHECK(size == 0 || size_of_chunk(&definitions) == RING_SMALL_CHUNK_SIZE);
    ring_detach(&scarce);
}

/* The dumper believes nothing. */
static void test_hostile_words(void)
{
    struct stream stream;
    struct chunk_view view;
    open_stream(&stream);
    CHECK(produce(&stream, 0));
    struct chunk_header *chunk = stream.chunk, good = *chunk;
    uint32_t index = (uint32_t)(chunk - ring.chunks), bad;
    struct chunk_view views[64];
    CHECK(ring.chunk_count <= 64);

#define HOSTILE(change) do { \
        change; \
        CHECK_EQUAL(ring_look(&ring, index, &view), -EPROTO); \
        ring_look_all(&ring, views, &bad); \
        CHECK_EQUAL(bad, 1); \
        memcpy((void *)chunk, &good, sizeof good); \
        CHECK_EQUAL(ring_look(&ring, index, &view), 1); \
    } while (0)

    HOSTILE(chunk->state = 3);
    HOSTILE(chunk->state = CHUNK_FREE | 1 << 8);
    HOSTILE(chunk->state = CHUNK_SEALED | RING_PROCESSES << 8);
    HOSTILE(chunk->state = UINT64_MAX);
    HOSTILE(chunk->published = UINT64_C(1) << 32 | (CHUNK + 1));
    HOSTILE(chunk->published = UINT64_C(1) << 32);     /* a record without bytes */
    HOSTILE(chunk->published = 1);                     /* bytes without a record */
    HOSTILE(chunk->published = UINT64_C(9) << 32 | 8); /* more records than bytes */
    HOSTILE(chunk->kind = 2);
    HOSTILE(chunk->stream = 0);
    HOSTILE(chunk->stream = stream.id + 1);
    HOSTILE(chunk->base_time = UINT64_MAX);
    HOSTILE(chunk->last_time = UINT64_C(1) << 63);
    HOSTILE(chunk->lost_before = UINT64_MAX);
    HOSTILE(chunk->tid = UINT64_MAX);

    /* Noise. */
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 200000; i++) {
        uint64_t words[sizeof *chunk / 8];
        for (size_t j = 0; j < sizeof words / sizeof *words; j++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            /* Sparse, so that some of it is nearly right. */
            words[j] = seed & seed >> 11 & (i % 2 ? UINT64_MAX : 0x0000ffff0000ffffu);
        }
        memcpy((void *)chunk, words, sizeof words);
        if (ring_look(&ring, index, &view) == 1)
            CHECK(view.used <= CHUNK && view.count <= view.used && view.process < RING_PROCESSES);
    }
    memcpy((void *)chunk, &good, sizeof good);
    stream_close(&stream);
    dump(&ring, store, false);
}

int main(void)
{
    store = make_store();
    make_ring(&ring, 8 * CHUNK);
    CHECK_EQUAL(ring.chunk_size, CHUNK);
    CHECK_EQUAL(ring.chunk_count, 8);
    process = (uint32_t)ring_process_register(&ring, 0);
    test_round();
    test_full();
    test_full_is_remembered();
    test_sizes();
    test_empty_chunk();
    test_abandon();
    test_hostile_words();
    CHECK_EQUAL(chunks_in_use(&ring), 0);
    ring_detach(&ring);
    test_small_chunks();
    test_large_chunks_are_scarce();
    return 0;
}
