/* The summary of a segment: which records it reads the quick way, as nearly all are. */
#include "ring_test.h"
#include "format/summary.c"

static uint8_t *put(uint8_t *p, enum event_kind kind, uint32_t code, uint64_t time, uint32_t line,
                    bool values)
{
    uint8_t *record = p;
    p = event_put(event_open(p, kind, code), EVENT_TIME, time);
    if (line)
        p = event_put(p, EVENT_LINE, line);
    if (values) {
        uint8_t *value = value_open(p, EVENT_VALUE);
        p = value_close(value, value_put_integer(value, 5));
        p = wire_put_bytes(p, EVENT_VARIABLE, "\x01", 1);
        p = event_put(p, EVENT_CHANGED, 1);
    }
    return event_close(record, p);
}

static bool is_usual(enum event_kind kind, uint32_t code, uint64_t time, uint32_t line, bool values)
{
    uint8_t body[200] = {0};
    struct head head;
    uint8_t *end = put(body, kind, code, time, line, values);
    bool usual = read_usual(body, body + sizeof body, &head);
    if (usual) {
        CHECK_EQUAL(head.code, code);
        CHECK(head.motion & 1u << kind);
        CHECK(head.next == end);
    }
    return usual;
}

int main(void)
{
    for (int values = 0; values < 2; values++) {
        CHECK(is_usual(EVENT_CALL, 3, 5, 0, values));
        CHECK(is_usual(EVENT_AT_LINE, 3, 5, 12, values));
        CHECK(is_usual(EVENT_HAPPENED, 3, 5, 0, values));
        CHECK(is_usual(EVENT_AT_LINE, 16383, (1 << 28) - 1, (1 << 28) - 1, values));
        CHECK(is_usual(EVENT_RAISE, 300, 5, 12, values));
        CHECK(!is_usual(EVENT_AT_LINE, 16384, 5, 12, values));
        CHECK(!is_usual(EVENT_AT_LINE, 3, 1 << 28, 12, values));
        CHECK(!is_usual((enum event_kind)18, 3, 5, 12, values)); /* of a later version */
        /* no kind, though its tag has the same first byte */
        CHECK(!is_usual((enum event_kind)EVENT_VARIABLE, 3, 5, 12, values));
    }
    return 0;
}
