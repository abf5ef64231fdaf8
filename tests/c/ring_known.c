/* Definitions that are in the database: known to all processes of a recording, by what they say. */
#include "ring_test.h"

static struct ring ring;

static uint32_t next_numbers(uint32_t count)
{
    uint32_t first = ring_next_number(&ring);
    while (--count)
        ring_next_number(&ring);
    return first;
}

static void test_known(void)
{
    const uint64_t pay = 0x123456789abcdef0, order = pay + 1; /* neighbours in the table */
    uint32_t first = next_numbers(3);
    CHECK_EQUAL(ring_known_find(&ring, pay), 0);
    ring_known_add(&ring, pay, first);
    ring_known_add(&ring, order, first + 1);
    CHECK_EQUAL(ring_known_find(&ring, pay), first);
    CHECK_EQUAL(ring_known_find(&ring, order), first + 1);
    ring_known_add(&ring, pay, first + 2); /* another process was as quick: the first stays */
    CHECK_EQUAL(ring_known_find(&ring, pay), first);
}

static void test_another_process(void)
{
    const uint64_t hash = 77;
    uint32_t number = next_numbers(1);
    ring_known_add(&ring, hash, number);
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

/* Numbers that nobody has given out are not believed. */
static void test_nonsense(void)
{
    const uint64_t hash = 78;
    ring_known_add(&ring, hash, ring_next_number(&ring) + 1);
    CHECK_EQUAL(ring_known_find(&ring, hash), 0);
    ring_next_number(&ring);
    CHECK(ring_known_find(&ring, hash) != 0);
}

/* What finds no place stays unknown; what has one is found, under its own number. */
static void test_more_than_there_is_room_for(void)
{
    enum { MANY = RING_KNOWN * 2 };
    static uint64_t hashes[MANY];
    uint32_t first = next_numbers(MANY), found = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        hashes[i] = (i + 1000) * UINT64_C(0x9e3779b97f4a7c15);
        ring_known_add(&ring, hashes[i], first + i);
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
