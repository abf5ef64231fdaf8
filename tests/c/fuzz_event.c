/* Feeds arbitrary bytes to the decoder, the walkers and the texts of values; to be built with the
 * address and undefined behaviour sanitizers. What they must hold to, besides touching nothing that
 * is not theirs: skimming agrees with decoding, a decoded record's walkers do not fail, a text's
 * length does not depend on the room there is, and a summary agrees with a walk.
 */
#include "fuzz.h"

#include "query/arguments.h"
#include "format/summary.h"
#include "query/frame_variables.h"
#include "query/text.h"

static const char *type_name(void *context, uint32_t number)
{
    (void)context;
    return number % 3 ? "app.Gr\xc3\xb6\xc3\x9f" "e" : NULL;
}

static const struct string *field_name(void *context, uint32_t type, uint32_t position)
{
    static const struct string field = {"xy", 2};
    (void)context;
    return type % 5 == 1 && position < 3 ? &field : NULL;
}

/* Types of even numbers have attributes. */
static const struct string *attribute_name(void *context, uint32_t type, uint32_t position)
{
    static const struct string attributes[] = {{"user", 4}, {"Gr\xc3\xb6\xc3\x9f" "e\n\xff", 10}, {"", 0}};
    (void)context;
    return type % 2 || position >= 3 ? NULL : &attributes[position];
}

static const struct text_names names = {type_name, NULL, field_name, attribute_name};

typedef size_t writer(const struct value *, const struct text_names *, char *, size_t);

/* Into buffers of exactly the size they are said to have. */
static void write_into(writer *write, const struct value *value, size_t capacity, size_t expected)
{
    char *buffer = malloc(capacity ? capacity : 1);
    CHECK(buffer);
    CHECK(write(value, &names, buffer, capacity) == expected);
    if (capacity >= expected)
        CHECK(!memchr(buffer, 0, expected));
    free(buffer);
}

static void check_text(writer *write, const struct value *value)
{
    size_t size = write(value, &names, NULL, 0);
    write_into(write, value, size, size);
    write_into(write, value, size / 2, size);
    write_into(write, value, size ? size - 1 : 0, size);
}

static void check_value(const struct value *value, int depth)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;

    CHECK(depth <= VALUE_DEPTH_MAX);
    for (; value_item(value, &cursor, &item); count++)
        check_value(&item, depth + 1);
    CHECK(count == value->item_count);
}

/* Variables of an event that may not have been decoded. */
static void check_variables(const struct event *event, bool decoded)
{
    struct event_variables walk;
    uint32_t variable, count = 0;

    event_variables(event, &walk);
    for (; event_variable(&walk, &variable); count++)
        CHECK(count < event->fields_end - event->fields);
    CHECK(!decoded || !walk.next || walk.next == walk.end);
}

static void check_event(const struct event *event)
{
    const uint8_t *cursor = NULL, *name;
    struct value value;
    uint32_t count = 0;
    size_t size;

    CHECK(EVENT_ANY >> event->kind & 1);
    CHECK(!event_kind_name((int)event->kind) == !event_is_known(event->kind));
    for (; event_value(event, &cursor, &value); count++) {
        check_value(&value, 1);
        check_text(text_value, &value);
        check_text(text_bare, &value);
        check_text(text_type, &value);
    }
    CHECK(count == event->value_count);
    cursor = NULL;
    for (count = 0; event_name(event, &cursor, &name, &size); count++) {
        size_t length = text_plain(name, size, NULL, 0);
        char *buffer = malloc(length ? length : 1);
        CHECK(buffer && text_plain(name, size, buffer, length) == length);
        free(buffer);
    }
    CHECK(count == event->name_count);
    check_variables(event, true);
}

/* Walks as far as it goes; returns how many records there were. */
static uint32_t walk(const uint8_t *data, size_t size, int (*step)(struct segment_walk *, struct segment_event *),
                     bool look)
{
    struct segment_walk cursor;
    struct segment_event event;

    segment_open(&cursor, data, size, UINT64_MAX - 5, -1);
    while (step(&cursor, &event) == 1) {
        CHECK(event.depth >= 0);
        if (look)
            check_event(&event.event);
        else
            check_variables(&event.event, false);
    }
    CHECK(cursor.next == cursor.end);
    return cursor.index;
}

/* The arguments as JSON: one line of printable ASCII, with as many objects as the event has
 * values and they attributes. */
static void check_arguments(const uint8_t *data, size_t size)
{
    static struct text_buffer json;
    struct segment_walk cursor;
    struct segment_event event;

    segment_open(&cursor, data, size, 0, INT32_MAX);
    while (segment_next(&cursor, &event) == 1) {
        bool is_line = event.event.kind == EVENT_AT_LINE;
        uint32_t objects = 0, expected = event.event.kind == EVENT_LOST ? 1 : event.event.value_count;
        const uint8_t *values = NULL;
        struct event_variables variables;
        struct value value, item;
        struct string name;
        event_variables(&event.event, &variables);
        if (is_line && variables.changed < expected)
            expected = variables.changed;
        for (uint32_t i = 0; event.event.kind != EVENT_LOST && (!is_line || i < variables.changed) &&
                             event_value(&event.event, &values, &value); i++)
            for (struct attribute_walk attributes = {0};
                 attribute_next(&attributes, &value, &names, &name, &item);)
                expected++;
        bool in_text = false;
        json.size = 0;
        CHECK(arguments_json(&json, &event.event, &run_code_undefined, &names));
        for (size_t at = 0; at < json.size; at++) {
            char c = json.text[at];
            CHECK(c >= ' ' && c < 0x7f);
            if (c == '\\')
                at++;
            else if (c == '"')
                in_text = !in_text;
            else
                objects += !in_text && c == '{';
        }
        CHECK(!in_text && objects == expected);
    }
}

/* The number of calls of a code that the list says; if it is not in it, UINT64_MAX. */
static uint64_t listed(const struct summary *summary, uint32_t number)
{
    const uint8_t *p = summary->codes, *end = p + summary->codes_size;
    struct summary_code code = {0};
    bool bad = false;

    if (!summary->codes_size)
        return UINT64_MAX;
    while ((p = summary_next(p, end, &code, &bad)))
        if (code.number == number)
            return code.calls;
    CHECK(!bad);
    return UINT64_MAX;
}

/* The summary's open levels are those of a walk. */
static void check_open(const struct summary *summary, const struct levels *levels)
{
    uint32_t own = 0;

    CHECK(summary->open_size && summary->open_size <= OPEN_MAX);
    CHECK(summary->open[0] == (levels->after_own ? OPEN_AFTER_OWN : 0) +
                                  (levels->after_near ? OPEN_AFTER_NEAR : 0));
    for (int64_t level = 0; level < levels->open && level < LEVELS_MAX; level++) {
        size_t at = 1 + (size_t)level / 8;
        bool bit = at < summary->open_size && summary->open[at] >> level % 8 & 1;
        CHECK(bit == levels_bit(levels, level));
        own += bit;
    }
    CHECK(levels->own == own);
}

static void check_summary(const uint8_t *data, size_t size)
{
    static struct summary_maker *maker;
    static struct levels levels;
    struct level_place place;
    const uint8_t open[] = {0, 1};
    struct summary summary;
    struct segment_walk cursor;
    struct segment_event event;
    int32_t max_depth = 0;
    uint32_t kinds = 0;
    uint64_t max_duration = 0;
    bool has_cpu = false;

    if (!maker)
        maker = summary_maker_new();
    for (uint32_t code = 1; code < 100; code += 2)
        CHECK(maker && summary_own(maker, code, true));
    CHECK(summary_make(maker, data, size, 1, open, sizeof open, &summary));
    segment_open(&cursor, data, size, 0, 1);
    levels_begin(&levels, open, sizeof open, 1);
    while (segment_head(&cursor, &event) == 1) {
        uint32_t code = event.event.code;
        levels_step(&levels, &event.event, cursor.open, code < 100 && code % 2, &place);
        CHECK(place.near_depth >= place.own_depth && place.own_depth <= (uint32_t)event.depth);
        max_depth = event.depth > max_depth ? event.depth : max_depth;
        kinds |= 1u << event.event.kind;
        CHECK(cursor.cpu >= CPU_UNKNOWN);
        has_cpu |= cursor.cpu != CPU_UNKNOWN;
        max_duration = event.duration > max_duration ? event.duration : max_duration;
        CHECK(listed(&summary, event.event.code) != UINT64_MAX);
    }
    CHECK(summary.max_depth == max_depth && summary.max_duration == max_duration);
    CHECK((summary.kinds & ~(uint32_t)(SUMMARY_TASKS | SUMMARY_CPUS)) == kinds);
    CHECK(!has_cpu || summary.kinds & SUMMARY_CPUS);
    check_open(&summary, &levels);
}

/* The variables at some of the records: each once, in order, with texts. */
static void check_frames(const uint8_t *data, size_t size, uint32_t records)
{
    static const struct string variables[] = {{"self", 4}, {"x", 1}, {"total", 5}};
    static const struct run_code codes[3] = {
        [1] = {.variable_count = 3, .variables = variables, .argument_count = 2, .arguments = variables},
    };
    static const struct run_definitions run = {.code_count = 3, .codes = codes};
    static struct text_buffer json;

    for (uint32_t index = 0; index <= records; index += records / 4 + 1) {
        struct frame_variable *all;
        size_t count;
        CHECK(frame_variables(data, size, 0, 1, &run, index, &all, &count));
        CHECK(index < records || !count);
        for (size_t i = 0; i < count; i++) {
            CHECK(!i || all[i - 1].number < all[i].number);
            CHECK(all[i].set <= index);
            check_text(text_value, &all[i].value);
            json.size = 0;
            CHECK(items_json(&json, &all[i].value, &names) && json.size >= 2);
        }
        free(all);
    }
}

static void check_body(const uint8_t *data, size_t size)
{
    struct event event, skimmed;
    long decoded = event_decode(data, size, &event);
    uint32_t count;

    if (decoded > 0) {
        CHECK(event_skim(data, size, &skimmed) == decoded && skimmed.value_count == event.value_count);
    } else if (event_skim(data, size, &skimmed) > 0) { /* then it is a value that cannot be read */
        const uint8_t *cursor = NULL;
        struct value value;
        while (event_value(&skimmed, &cursor, &value))
            ;
    }
    count = walk(data, size, segment_next, true);
    CHECK(walk(data, size, segment_skim, false) >= count);
    check_frames(data, size, walk(data, size, segment_head, false));
    check_arguments(data, size);
    check_summary(data, size);
}

/* The same bytes with lengths around them that are right, so that what is inside is looked at: as
 * the record's fields (values = 0), or as those of a value in it, or of a value in that, .... */
static void check_inside(const uint8_t *data, size_t size, enum event_kind kind, int values)
{
    uint8_t *body = malloc(size + 64), *exact, *end;
    uint8_t *opened[8];

    CHECK(body && values < 8);
    end = event_open(body, kind, 1);
    for (int i = 0; i < values; i++)
        end = opened[i] = value_open(end, i ? VALUE_ITEM : EVENT_VALUE);
    if (size)
        memcpy(end, data, size);
    end += size;
    for (int i = values; i-- > 0;)
        end = value_close(opened[i], end);
    end = event_close(body, end);
    size = (size_t)(end - body);
    exact = malloc(size); /* so that a read behind the end is seen */
    CHECK(exact);
    memcpy(exact, body, size);
    check_body(exact, size);
    free(exact);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_body(data, size);
    for (int values = 0; values < 3; values++)
        check_inside(data, size, EVENT_CALL, values);
    check_inside(data, size, EVENT_AT_LINE, 0);
    check_inside(data, size, EVENT_HAPPENED, 0);
    return 0;
}
