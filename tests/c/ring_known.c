/* Definitions that are in the database: known to all processes of a recording, by what they say. */
#include "ring_test.h"
#include "wire.h"

static struct ring ring;

/* A code or a type as the hook defines it: a name in field 2, the number behind it. Returns the end, and what it
 * is known by. */
static uint8_t *put_definition(uint8_t *p, int kind, const char *name, uint32_t number, uint64_t *hash)
{
    uint8_t *record = wire_open(p, 1), *fields = wire_open(record, kind);
    uint8_t *end = wire_put_bytes(fields, 2, name, strlen(name));
    *hash = ring_known_hash((uint32_t)kind, fields, end);
    *end++ = WIRE_TAG(1, WIRE_VARINT);
    end = wire_put_varint(end, number);
    return wire_close(record, wire_close(fields, end));
}

static void know(int kind, const char *name, uint32_t number, uint64_t *hash)
{
    uint8_t records[300];
    uint8_t *end = put_definition(records, kind, name, number, hash);
    ring_know(&ring, records, (size_t)(end - records));
}

static uint32_t next_numbers(uint32_t count)
{
    uint32_t first = ring_next_number(&ring);
    while (--count)
        ring_next_number(&ring);
    return first;
}

static void test_known(void)
{
    uint8_t records[300], *end = records;
    uint32_t first = next_numbers(4);
    uint64_t pay, order, thread, same;

    end = put_definition(end, 1, "app.pay", first, &pay);
    end = put_definition(end, 2, "app.Order", first + 1, &order);
    end = put_definition(end, 3, "a thread", first + 2, &thread);
    CHECK_EQUAL(ring_known_find(&ring, pay), 0);
    ring_know(&ring, records, (size_t)(end - records));
    CHECK_EQUAL(ring_known_find(&ring, pay), first);
    CHECK_EQUAL(ring_known_find(&ring, order), first + 1);
    CHECK_EQUAL(ring_known_find(&ring, thread), 0); /* neither code nor type */

    know(1, "app.pay", first + 3, &same); /* another process was as quick: the first stays */
    CHECK_EQUAL(same, pay);
    CHECK_EQUAL(ring_known_find(&ring, pay), first);
    know(2, "app.pay", first + 3, &same); /* a type is no code */
    CHECK(same != pay);
    CHECK_EQUAL(ring_known_find(&ring, same), first + 3);
}

static void test_another_process(void)
{
    uint64_t hash;
    uint32_t number = next_numbers(1);
    know(1, "app.main", number, &hash);
    pid_t pid = fork();
    if (!pid) {
        struct ring mine;
        int lock;
        CHECK_EQUAL(ring_attach(&mine, ring_path, RING_PRODUCER, &lock), 0);
        CHECK_EQUAL(ring_known_find(&mine, hash), number);
        _exit(0);
    }
    CHECK_EQUAL(wait_for(pid), 0);
}

/* Numbers that nobody has given out are not believed, and neither are records that are none. */
static void test_nonsense(void)
{
    uint8_t records[300];
    uint64_t hash;
    know(1, "app.later", ring_next_number(&ring) + 1, &hash);
    CHECK_EQUAL(ring_known_find(&ring, hash), 0);
    ring_next_number(&ring);
    CHECK(ring_known_find(&ring, hash) != 0);

    uint8_t *end = put_definition(records, 1, "app.cut", next_numbers(1), &hash);
    for (size_t size = 0; size < (size_t)(end - records); size++) {
        uint8_t *cut = malloc(size + 1);
        CHECK(cut);
        memcpy(cut, records, size);
        ring_know(&ring, cut, size); /* a sanitizer sees what is read behind it */
        free(cut);
        CHECK_EQUAL(ring_known_find(&ring, hash), 0);
    }
    srandom(7);
    for (int i = 0; i < 20000; i++) {
        size_t size = (size_t)(end - records);
        uint8_t *changed = malloc(size);
        CHECK(changed);
        memcpy(changed, records, size);
        changed[random() % (long)size] = (uint8_t)random();
        ring_know(&ring, changed, size);
        free(changed);
    }
}

/* What finds no place stays unknown; what has one is found, under its own number. */
static void test_more_than_there_is_room_for(void)
{
    enum { MANY = RING_KNOWN * 2 };
    static uint64_t hashes[MANY];
    uint32_t first = next_numbers(MANY), found = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "app.f%u", i);
        know(1, name, first + i, &hashes[i]);
    }
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t number = ring_known_find(&ring, hashes[i]);
        CHECK(number == 0 || number == first + i);
        found += number != 0;
    }
    CHECK(found > RING_KNOWN * 9 / 10);
}

int main(void)
{
    make_ring(&ring, RING_MIN_CHUNKS * RING_MIN_CHUNK_SIZE);
    test_known();
    test_another_process();
    test_nonsense();
    test_more_than_there_is_room_for();
    return 0;
}
