/* Reads the text form of predicates; see predicate.h. */
#include "query/predicate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct parser {
    const char *start, *p, *end;
    char *message;
    size_t message_size;
    bool failed;
    bool in_any;
    /* texts of the condition being read; one room for all */
    char *text;
    size_t text_capacity;
};

/* A list that grows. */
struct list {
    void *all;
    size_t count, capacity;
};

static void *list_add(struct list *list, size_t element)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 8;
        void *all = realloc(list->all, capacity * element);
        if (!all)
            return NULL;
        list->all = all;
        list->capacity = capacity;
    }
    return (char *)list->all + element * list->count++;
}

/* Reports a mistake at `at`, unless there was one before. Returns NULL. */
static __attribute__((format(printf, 3, 4))) void *fail(struct parser *parser, const char *at,
                                                        const char *format, ...)
{
    if (!parser->failed && parser->message_size) {
        va_list arguments;
        size_t position = (size_t)(at - parser->start);
        int size = snprintf(parser->message, parser->message_size, "position %zu: ", position);
        va_start(arguments, format);
        if (size > 0 && (size_t)size < parser->message_size)
            vsnprintf(parser->message + size, parser->message_size - (size_t)size, format, arguments);
        va_end(arguments);
    }
    parser->failed = true;
    return NULL;
}

static void *no_memory(struct parser *parser) { return fail(parser, parser->p, "out of memory"); }

static void skip_spaces(struct parser *parser)
{
    while (parser->p < parser->end && (*parser->p == ' ' || (*parser->p >= '\t' && *parser->p <= '\r')))
        parser->p++;
}

static bool at_close(struct parser *parser)
{
    skip_spaces(parser);
    return parser->p < parser->end && *parser->p == ')';
}

/* The text up to the next space, parenthesis or quote. */
static struct string read_word(struct parser *parser)
{
    skip_spaces(parser);
    const char *start = parser->p;
    while (parser->p < parser->end && *parser->p != ' ' && !(*parser->p >= '\t' && *parser->p <= '\r') &&
           *parser->p != '(' && *parser->p != ')' && *parser->p != '"')
        parser->p++;
    return (struct string){start, (size_t)(parser->p - start)};
}

static bool is(struct string word, const char *text)
{
    return word.size == strlen(text) && !memcmp(word.text, text, word.size);
}

/* For messages: a word may be of any length. */
#define SHOW(word) ((word).size > 40 ? 40 : (int)(word).size), (word).text

static bool read_field(struct parser *parser, enum field *field)
{
    static const char *const names[] = {
        [FIELD_ID] = "id", [FIELD_RUN] = "run", [FIELD_TIME] = "time", [FIELD_PID] = "pid",
        [FIELD_TID] = "tid", [FIELD_LINE] = "line", [FIELD_DEPTH] = "depth",
        [FIELD_DURATION] = "duration", [FIELD_MINE] = "mine", [FIELD_TRAILING] = "trailing",
        [FIELD_OWN_DEPTH] = "own_depth", [FIELD_NEAR_DEPTH] = "near_depth", [FIELD_NEAR] = "near",
        [FIELD_CPU] = "cpu", [FIELD_STREAM] = "stream", [FIELD_PROCESS] = "process",
        [FIELD_POSITION] = "position", [FIELD_THREAD] = "thread",
        [FIELD_TASK] = "task",
        [FIELD_KIND] = "kind", [FIELD_LAYER] = "layer", [FIELD_MODULE] = "module", [FIELD_FILE] = "file",
        [FIELD_QUALNAME] = "qualname", [FIELD_FUNC] = "func", [FIELD_NAME] = "name",
        [FIELD_VALUE] = "value", [FIELD_TEXT] = "text", [FIELD_EITHER] = "either", [FIELD_TYPE] = "type",
    };
    struct string word = read_word(parser);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is(word, names[i])) {
            *field = (enum field)i;
            if ((*field >= FIELD_NAME || *field == FIELD_POSITION) && !parser->in_any)
                return fail(parser, word.text, "%s is an argument's: it stands inside of (any ...)",
                            names[i]);
            return true;
        }
    return fail(parser, word.text, word.size ? "there is no field '%.*s'" : "a field is missing%.*s",
                SHOW(word));
}

static bool read_number(struct parser *parser, int64_t *number)
{
    struct string word = read_word(parser);
    bool negative = word.size && word.text[0] == '-', fits = true;
    uint64_t most = (uint64_t)INT64_MAX + negative, n = 0;
    size_t i = negative;

    if (i == word.size)
        return fail(parser, word.text, "a number is missing");
    for (; i < word.size; i++) {
        uint64_t digit = (uint64_t)(word.text[i] - '0');
        if (word.text[i] < '0' || word.text[i] > '9')
            return fail(parser, word.text, "'%.*s' is not a number", SHOW(word));
        fits = fits && n <= (most - digit) / 10;
        n = fits ? n * 10 + digit : 0;
    }
    if (!fits)
        return fail(parser, word.text, "%.*s does not fit in 64 bits", SHOW(word));
    *number = negative ? (int64_t)-n : (int64_t)n;
    return true;
}

/* A text in quotes. It stays in the parser's room, behind `kept` bytes of other texts. */
static bool read_text(struct parser *parser, size_t kept, size_t *size)
{
    skip_spaces(parser);
    const char *start = parser->p;
    if (start == parser->end || *start != '"')
        return fail(parser, start, "a text in \" is missing");
    *size = 0;
    for (parser->p++; parser->p < parser->end && *parser->p != '"'; parser->p++) {
        if (*parser->p == '\\') {
            parser->p++;
            if (parser->p == parser->end || (*parser->p != '"' && *parser->p != '\\'))
                return fail(parser, parser->p - 1, "a backslash in a text stands before \" or \\");
        }
        if (kept + *size == parser->text_capacity) {
            size_t capacity = parser->text_capacity ? parser->text_capacity * 2 : 256;
            char *text = realloc(parser->text, capacity);
            if (!text)
                return no_memory(parser);
            parser->text = text;
            parser->text_capacity = capacity;
        }
        parser->text[kept + (*size)++] = *parser->p;
    }
    if (parser->p == parser->end)
        return fail(parser, start, "a text has no closing \"");
    parser->p++;
    return true;
}

/* NULL: no memory, or `predicate` was NULL. */
static struct predicate *negate(struct predicate *predicate)
{
    return predicate_group(GROUP_NOT, &predicate, 1);
}

/* Every number but one. It is not `not (= ...)`, which events without the number would meet. */
static struct predicate *unequal(enum field field, int64_t number)
{
    struct predicate *sides[2];
    size_t count = 0;
    if (number > INT64_MIN)
        sides[count++] = predicate_range(field, INT64_MIN, number - 1);
    if (number < INT64_MAX)
        sides[count++] = predicate_range(field, number + 1, INT64_MAX);
    return predicate_group(GROUP_OR, sides, count);
}

static struct predicate *never(void) { return predicate_group(GROUP_OR, NULL, 0); }

static struct predicate *parse_in_numbers(struct parser *parser, enum field field)
{
    struct list list = {0};
    struct predicate *made = NULL;
    while (!at_close(parser)) {
        int64_t *number = list_add(&list, sizeof *number);
        if (!number) {
            no_memory(parser);
            break;
        }
        if (!read_number(parser, number))
            break;
    }
    if (!parser->failed && !(made = predicate_numbers(field, list.all, list.count)))
        no_memory(parser);
    free(list.all);
    return made;
}

static struct predicate *parse_in_texts(struct parser *parser, enum field field)
{
    struct list list = {0};
    struct predicate *made = NULL;
    size_t kept = 0;
    while (!at_close(parser)) {
        struct string *text = list_add(&list, sizeof *text);
        if (!text) {
            no_memory(parser);
            break;
        }
        if (!read_text(parser, kept, &text->size))
            break;
        kept += text->size;
    }
    if (!parser->failed) {
        struct string *texts = list.all;
        kept = 0;
        for (size_t i = 0; i < list.count; i++) {
            texts[i].text = texts[i].size ? parser->text + kept : "";
            kept += texts[i].size;
        }
        made = predicate_in(field, texts, list.count);
        if (!made)
            no_memory(parser);
    }
    free(list.all);
    return made;
}

static struct predicate *parse_numeric(struct parser *parser, struct string word, enum field field)
{
    struct predicate *made;
    int64_t number, high = 0;

    if (is(word, "in"))
        return parse_in_numbers(parser, field);
    if (is(word, "like") || is(word, "plain"))
        return fail(parser, word.text, "%.*s is for texts, not for numbers", SHOW(word));
    if (!read_number(parser, &number) || (is(word, "between") && !read_number(parser, &high)))
        return NULL;
    if (is(word, "="))
        made = predicate_range(field, number, number);
    else if (is(word, "!="))
        made = unequal(field, number);
    else if (is(word, "<"))
        made = number == INT64_MIN ? never() : predicate_range(field, INT64_MIN, number - 1);
    else if (is(word, "<="))
        made = predicate_range(field, INT64_MIN, number);
    else if (is(word, ">"))
        made = number == INT64_MAX ? never() : predicate_range(field, number + 1, INT64_MAX);
    else if (is(word, ">="))
        made = predicate_range(field, number, INT64_MAX);
    else
        made = predicate_range(field, number, high);
    return made ? made : no_memory(parser);
}

static struct predicate *parse_textual(struct parser *parser, struct string word, enum field field)
{
    struct predicate *made;
    size_t size;

    if (is(word, "in"))
        return parse_in_texts(parser, field);
    if (is(word, "plain")) {
        made = predicate_plain(field);
        return made ? made : no_memory(parser);
    }
    if (!is(word, "=") && !is(word, "!=") && !is(word, "like"))
        return fail(parser, word.text, "%.*s is for numbers, not for texts", SHOW(word));
    if (!read_text(parser, 0, &size))
        return NULL;
    const char *text = size ? parser->text : "";
    if (is(word, "like"))
        made = predicate_like(field, text, size, '\\');
    else
        made = predicate_equal(field, text, size);
    if (is(word, "!="))
        made = negate(made);
    return made ? made : no_memory(parser);
}

static struct predicate *parse_shown(struct parser *parser)
{
    struct string word = read_word(parser);
    if (!is(word, "own") && !is(word, "near"))
        return fail(parser, word.text, "shown is own or near");
    struct predicate *made = predicate_shown(is(word, "own") ? VIEW_OWN : VIEW_NEAR);
    return made ? made : no_memory(parser);
}

static struct predicate *parse(struct parser *parser, int depth);

static struct predicate *parse_group(struct parser *parser, struct string word, enum group group, int depth)
{
    struct list list = {0};
    struct predicate *made = NULL;
    bool single = group == GROUP_NOT || group == GROUP_ANY;

    if (group == GROUP_ANY) {
        if (parser->in_any)
            return fail(parser, word.text, "any inside of any");
        parser->in_any = true;
    }
    while (!at_close(parser)) {
        if (single && list.count) {
            fail(parser, parser->p, "%.*s has one member", SHOW(word));
            break;
        }
        struct predicate *member = parse(parser, depth + 1), **place;
        if (!member)
            break;
        place = list_add(&list, sizeof *place);
        if (!place) {
            predicate_free(member);
            no_memory(parser);
            break;
        }
        *place = member;
    }
    if (!parser->failed && single && !list.count)
        fail(parser, parser->p, "%.*s has one member", SHOW(word));
    if (group == GROUP_ANY)
        parser->in_any = false;
    if (!parser->failed) {
        made = predicate_group(group, list.all, list.count);
        if (!made)
            no_memory(parser);
    } else {
        for (size_t i = 0; i < list.count; i++)
            predicate_free(((struct predicate **)list.all)[i]);
    }
    free(list.all);
    return made;
}

static struct predicate *parse_condition(struct parser *parser, struct string word)
{
    static const char *const words[] = {"=", "!=", "<", "<=", ">", ">=", "between", "in", "like", "plain"};
    enum field field = FIELD_ID;
    size_t i = 0;

    while (i < sizeof words / sizeof *words && !is(word, words[i]))
        i++;
    if (is(word, "shown"))
        return parse_shown(parser);
    if (i == sizeof words / sizeof *words)
        return fail(parser, word.text,
                    word.size ? "'%.*s' is none of and or not any = != < <= > >= between in like plain shown"
                              : "an operator is missing%.*s", SHOW(word));
    if (!read_field(parser, &field))
        return NULL;
    return field < FIELD_THREAD ? parse_numeric(parser, word, field) : parse_textual(parser, word, field);
}

static struct predicate *parse(struct parser *parser, int depth)
{
    static const char *const groups[] = {
        [GROUP_AND] = "and", [GROUP_OR] = "or", [GROUP_NOT] = "not", [GROUP_ANY] = "any"};
    struct predicate *made;
    struct string word;
    size_t group = 0;

    skip_spaces(parser);
    if (parser->p == parser->end || *parser->p != '(')
        return fail(parser, parser->p, "a ( is missing");
    if (depth > PREDICATE_DEPTH_MAX)
        return fail(parser, parser->p, "nested more than %d deep", PREDICATE_DEPTH_MAX);
    parser->p++;
    word = read_word(parser);
    while (group < sizeof groups / sizeof *groups && !is(word, groups[group]))
        group++;
    if (group < sizeof groups / sizeof *groups)
        made = parse_group(parser, word, (enum group)group, depth);
    else
        made = parse_condition(parser, word);
    if (made && !at_close(parser)) {
        fail(parser, parser->p, "a ) is missing");
        predicate_free(made);
        return NULL;
    }
    if (made)
        parser->p++;
    return made;
}

struct predicate *predicate_parse(const char *text, size_t size, char *message, size_t message_size)
{
    struct parser parser = {
        .start = text, .p = text, .end = text + size, .message = message, .message_size = message_size};
    struct predicate *made = parse(&parser, 1);

    skip_spaces(&parser);
    if (made && parser.p != parser.end) {
        fail(&parser, parser.p, "something stands behind the end");
        predicate_free(made);
        made = NULL;
    }
    free(parser.text);
    return made;
}
