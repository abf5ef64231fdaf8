/* Definitions: what is written is read again; what is none is passed over. */
#include "ring_test.h"
#include "format/definitions.h"

/* One with a name in field 2. */
static uint8_t *put(uint8_t *p, enum definition_kind kind, const char *name, uint32_t number, uint64_t *hash)
{
    struct definition_writer writer;
    definition_open(&writer, p, kind);
    uint8_t *end = wire_put_bytes(writer.fields, 2, name, strlen(name));
    *hash = definition_hash(kind, writer.fields, end);
    return definition_close(&writer, end, number);
}

static void test_example(void)
{
    static const uint8_t expected[] = "\x0a\x0f\x12\x0d\x12\x09" "app.Order\x08\x05";
    uint8_t record[100];
    uint64_t hash;
    struct definition found;
    uint8_t *end = put(record, DEFINITION_TYPE, "app.Order", 5, &hash);
    CHECK_EQUAL(end - record, sizeof expected - 1);
    CHECK(!memcmp(record, expected, sizeof expected - 1));
    CHECK(definition_next(record, end, &found) == end);
    CHECK_EQUAL(found.kind, DEFINITION_TYPE);
    CHECK_EQUAL(found.number, 5);
    CHECK_EQUAL(found.hash, hash);
    CHECK(!definition_next(end, end, &found));
}

static void test_round_trip(void)
{
    static uint8_t records[1 << 16];
    static char name[20001];
    uint8_t *end = records;
    uint64_t hashes[5], none;
    struct definition found;

    memset(name, 'x', sizeof name - 1);
    end = put(end, DEFINITION_CODE, "app.pay", 1, &hashes[0]);
    end = put(end, DEFINITION_TYPE, "app.pay", 200, &hashes[1]);
    end = put(end, DEFINITION_CODE, name, UINT32_MAX, &hashes[2]); /* lengths of three bytes */
    end = put(end, DEFINITION_THREAD, "a thread", 0, &none);
    end = put(end, DEFINITION_CODE, "", 3, &hashes[3]);
    CHECK(hashes[0] != hashes[1]); /* a type is no code */

    const uint32_t kinds[] = {1, 2, 1, 3, 1}, numbers[] = {1, 200, UINT32_MAX, 0, 3};
    const uint8_t *p = records;
    for (int i = 0, known = 0; i < 5; i++) {
        CHECK((p = definition_next(p, end, &found)) != NULL);
        CHECK_EQUAL(found.kind, kinds[i]);
        CHECK_EQUAL(found.number, numbers[i]);
        if (found.number)
            CHECK_EQUAL(found.hash, hashes[known++]);
    }
    CHECK(p == end);
}

static void test_nonsense(void)
{
    uint8_t records[300];
    uint64_t hash;
    struct definition found;
    size_t size = (size_t)(put(records, DEFINITION_CODE, "app.cut", 7, &hash) - records);
    for (size_t part = 0; part < size; part++) {
        uint8_t *cut = malloc(part + 1);
        CHECK(cut);
        memcpy(cut, records, part);
        CHECK(!definition_next(cut, cut + part, &found)); /* sanitizers see reads behind it */
        free(cut);
    }
    srandom(7);
    for (int i = 0; i < 20000; i++) {
        uint8_t *changed = malloc(size);
        CHECK(changed);
        memcpy(changed, records, size);
        changed[random() % (long)size] = (uint8_t)random();
        for (const uint8_t *p = changed; (p = definition_next(p, changed + size, &found)) != NULL;)
            CHECK(p <= changed + size);
        free(changed);
    }
}

int main(void)
{
    test_example();
    test_round_trip();
    test_nonsense();
    return 0;
}
