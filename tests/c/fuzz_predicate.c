/* Feeds arbitrary bytes to the reader of the text form, and asks what it makes about arbitrary
 * records; to be built with the address and undefined behaviour sanitizers. The input is a text
 * form, a NUL, and the fields of a record. What must hold, besides touching nothing that is not
 * theirs: the answer to a single event is definite, and the answers to less knowledge do not
 * contradict it; a LIKE finds what plain code finds; nothing is kept, also if memory ends
 * somewhere.
 *
 * What allocates is compiled with malloc, calloc, realloc and free renamed to test_malloc, ....
 */
#include "fuzz.h"

#include "query/like.h"
#include "query/predicate.h"

/* ---- memory -------------------------------------------------------------------------------- */

static long blocks;       /* in use */
static long left = -1;    /* allocations until there is no more memory; negative: any number */

static bool ended(void)
{
    if (left > 0)
        left--;
    else if (!left)
        return true;
    return false;
}

void *test_malloc(size_t size);
void *test_calloc(size_t count, size_t size);
void *test_realloc(void *block, size_t size);
void test_free(void *block);

void *test_malloc(size_t size)
{
    void *block = ended() ? NULL : malloc(size);
    blocks += block != NULL;
    return block;
}

void *test_calloc(size_t count, size_t size)
{
    void *block = ended() ? NULL : calloc(count, size);
    blocks += block != NULL;
    return block;
}

void *test_realloc(void *block, size_t size)
{
    void *moved = ended() ? NULL : realloc(block, size);
    blocks += !block && moved;
    return moved;
}

void test_free(void *block)
{
    blocks -= block != NULL;
    free(block);
}

/* ---- what is checked ----------------------------------------------------------------------- */

#define STRING(literal) {literal, sizeof literal - 1}
static const struct string arguments[] = {STRING("user"), STRING("")};
static const struct run_code codes[] = {
    {.module = {"", 0}, .func = {"", 0}, .file = {"", 0}, .last = {"", 0}},
    {.module = STRING("app"), .func = STRING("Order.pay"), .file = STRING("app.py"), .last = STRING("pay"),
     .line = 7, .argument_count = 2, .arguments = arguments, .variable_count = 2, .variables = arguments},
};
static const char *const types[] = {NULL, "app.Order", "app.Gr\xc3\xb6\xc3\x9f" "e"};
static const struct string attribute_names[] = {STRING("user"), STRING("needle")};
static const struct run_names attributes[] = {{0}, {2, attribute_names}, {1, attribute_names + 1}};
static const struct run_thread threads[] = {{.stream = 1, .pid = 5, .tid = 6, .name = STRING("MainThread")}};
static const struct run_definitions run = {
    .run = 1, .code_count = 2, .codes = codes, .thread_count = 1, .threads = threads, .type_count = 3,
    .types = types, .attributes = attributes,
};

static bool in_types(const struct required_literal *trail)
{
    for (uint32_t i = 0; i < run.type_count; i++)
        for (uint32_t j = 0; j < run.attributes[i].count; j++) {
            struct string name = run.attributes[i].names[j];
            if (required_literal_is_in(trail, (const uint8_t *)name.text, name.size))
                return true;
        }
    for (uint32_t i = 0; i < run.type_count; i++)
        if (run.types[i] && required_literal_is_in(trail, (const uint8_t *)run.types[i], strlen(run.types[i])))
            return true;
    return false;
}

static void facts_of_event(const struct event *event, struct facts *facts)
{
    bool lasts = event->kind == EVENT_RETURN;
    *facts = (struct facts){
        .id = {3, 3}, .time = {9, 9}, .depth = {1, 1}, .duration = {lasts ? 8 : -1, lasts ? 8 : -1},
        .has_duration = lasts, .lacks_duration = !lasts, .kinds = 1u << event->kind, .run = &run,
        .task_known = true, .task = {"Task-1", 6},
        .thread = run_thread_find(&run, 1), .code = run_code_find(&run, event->code), .event = event,
    };
    facts->line.low = facts->line.high = event->line ? event->line : facts->code->line;
}

/* The rest of the predicate if run, function and kind are known. */
static void check_rest(const struct predicate *predicate, const struct event *event, enum answer answer)
{
    const struct predicate *rest = NULL;
    struct facts facts = facts_unknown;

    facts.run = &run;
    facts.code = run_code_find(&run, event->code);
    facts.kinds = 1u << event->kind;
    for (long allocations = 0; !rest && allocations < 50; allocations++) {
        left = allocations;
        rest = predicate_rest(predicate, &facts);
        left = -1;
    }
    predicate_rest_free(rest);
    rest = predicate_rest(predicate, &facts);
    facts_of_event(event, &facts);
    CHECK(predicate_ask(rest, &facts) == answer);
    predicate_rest_free(rest);
}

static void check_answers(const struct predicate *predicate, const uint8_t *fields, size_t size)
{
    uint8_t *body = malloc(size + 16), *record, *end = body;
    struct event event;

    CHECK(body);
    end = wire_put_bytes(end, EVENTS_EVENT, fields, size);
    size = (size_t)(end - body);
    record = malloc(size); /* so that a read behind the end is seen */
    CHECK(record);
    memcpy(record, body, size);
    free(body);
    if (event_skim(record, size, &event) > 0) {
        struct facts facts;
        facts_of_event(&event, &facts);
        enum answer answer = predicate_ask(predicate, &facts), other;
        CHECK(answer != MAYBE);
        facts.event = NULL;
        other = predicate_ask(predicate, &facts);
        CHECK(other == answer || other == MAYBE);
        facts = facts_unknown;
        other = predicate_ask(predicate, &facts);
        CHECK(other == answer || other == MAYBE);
        check_rest(predicate, &event, answer);
        if (event_decode(record, size, &event) > 0) {
            struct required_literals trails, missing = {.count = 0};
            predicate_required_literals(predicate, &trails);
            for (size_t i = 0; i < trails.count; i++)
                if (!required_literal_is_in(trails.all[i], record, size) && !in_types(trails.all[i]))
                    missing.all[missing.count++] = trails.all[i];
            facts.run = &run;
            facts.missing = &missing;
            other = predicate_ask(predicate, &facts);
            CHECK(other == answer || other == MAYBE);
        }
    }
    free(record);
}

static void check_bounds(const struct predicate *predicate)
{
    for (int field = FIELD_ID; field <= FIELD_POSITION; field++)
        predicate_bounds(predicate, (enum field)field);
}

static void check_text(const char *text, size_t size, const uint8_t *fields, size_t fields_size)
{
    char message[64];
    struct predicate *made = predicate_parse(text, size, message, sizeof message);

    if (made) {
        check_bounds(made);
        check_answers(made, fields, fields_size);
        predicate_free(made);
    } else {
        CHECK(!strncmp(message, "position ", 9) && memchr(message, 0, sizeof message));
    }
    CHECK(!blocks);
    /* and again, with less memory than it takes */
    bool finished = !made;
    for (long allocations = 0; !finished && allocations < 50; allocations++) {
        left = allocations;
        made = predicate_parse(text, size, message, sizeof message);
        left = -1;
        finished = made;
        predicate_free(made);
        CHECK(!blocks);
    }
}

/* Backtracking at every %, each byte by itself. */
static bool matches(const uint8_t *pattern, size_t pattern_size, const uint8_t *text, size_t size)
{
    for (; pattern_size; pattern++, pattern_size--) {
        if (*pattern == '%') {
            for (size_t i = 0; i <= size; i++)
                if (matches(pattern + 1, pattern_size - 1, text + i, size - i))
                    return true;
            return false;
        }
        if (!size || (*pattern != '_' && *pattern != *text))
            return false;
        text++;
        size--;
    }
    return !size;
}

/* A pattern and a text of few different bytes, so that there is something to find. */
static void check_like(const uint8_t *data, size_t size)
{
    uint8_t *text = malloc(size + 1);
    size_t split = size ? data[0] % (size < 8 ? size + 1 : 8) : 0, literal_size;

    CHECK(text);
    for (size_t i = 0; i < size; i++)
        text[i] = (uint8_t)"aaab%_abaaba.aaa"[data[i] & 15];
    for (size_t i = split; i < size; i++)
        text[i] = text[i] == '%' || text[i] == '_' ? 'b' : text[i];
    uint8_t *exact = malloc(size - split + 1);
    CHECK(exact);
    memcpy(exact, text + split, size - split);
    struct like *like = like_new((const char *)text, split, -1);
    CHECK(like);
    bool found = like_matches(like, (const char *)exact, size - split);
    CHECK(size - split > 24 || found == matches(text, split, exact, size - split));
    const char *literal = like_literal(like, &literal_size);
    CHECK(!found || like_find(exact, size - split, literal, literal_size));
    like_free(like);
    free(exact);
    free(text);
    CHECK(!blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    char *text = malloc(length + 1); /* the text form has no NUL at its end */

    CHECK(text);
    if (length)
        memcpy(text + 1, data, length);
    check_text(text + 1, length, end ? end + 1 : NULL, end ? size - length - 1 : 0);
    free(text);
    check_like(data, size);
    return 0;
}
