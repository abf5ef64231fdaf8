/* Trees of conditions, made and asked; see predicate.h. predicate_parse.c reads the text form.
 *
 * Members of a group are sorted by what they cost, so that an answer is found cheaply where one of
 * the cheap ones gives it.
 */
#include "predicate.h"

#include <stdlib.h>

#include "like.h"

enum op {
    OP_AND, OP_OR, OP_NOT, OP_ANY, /* as enum group */
    OP_RANGE, OP_NUMBERS, OP_KINDS, OP_TEXTS, OP_LIKE, OP_PLAIN,
};

struct range { int64_t low, high; };                         /* both included */
struct numbers { int64_t *all; size_t count; };              /* sorted */
struct texts { struct string *all; char *bytes; size_t count; }; /* sorted by size, then bytes */
struct members { struct predicate **all; size_t count; };

struct predicate {
    enum op op;
    enum field field;
    uint32_t cost;
    bool is_rest;         /* a group that rest_group has made */
    bool not_integer;     /* of a condition on a text: no integer as shown meets it */
    bool not_floating;    /* ... no float */
    bool not_numbered;    /* ... nor does "argument N" */
    size_t longest;       /* ... nor any text that is longer */
    struct trail trail;   /* of a condition on a value; text NULL: there is none */
    union {
        struct range range;
        struct numbers numbers;
        uint32_t kinds;   /* 1 << kind for each that meets it */
        struct texts texts;
        struct like *like;
        struct members members;
    };
};

#define ALL_KINDS ((2u << EVENT_LOST) - (1u << EVENT_CALL))

#define EVERYTHING {INT64_MIN, INT64_MAX}
const struct facts facts_unknown = {
    .id = EVERYTHING, .time = EVERYTHING, .depth = EVERYTHING, .duration = EVERYTHING,
    .has_duration = true, .lacks_duration = true, .line = EVERYTHING, .kinds = ALL_KINDS,
};

/* ---- making ------------------------------------------------------------------------------- */

/* Roughly ns. A condition on a value costs most: it may have to be rendered. */
static uint32_t cost_of(enum op op, enum field field)
{
    static const uint32_t costs[] = {
        [FIELD_THREAD] = 4, [FIELD_TASK] = 4, [FIELD_KIND] = 1, [FIELD_MODULE] = 4, [FIELD_FILE] = 4,
        [FIELD_QUALNAME] = 4, [FIELD_FUNC] = 5, [FIELD_NAME] = 5, [FIELD_VALUE] = 60, [FIELD_TEXT] = 50, [FIELD_EITHER] = 80,
        [FIELD_TYPE] = 30,
    };
    return (field < FIELD_THREAD ? 1 : costs[field]) * (op == OP_LIKE ? 4 : op == OP_NUMBERS ? 2 : 1);
}

static struct predicate *make(enum op op, enum field field)
{
    struct predicate *made = calloc(1, sizeof *made);
    if (made) {
        made->op = op;
        made->field = field;
        made->cost = cost_of(op, field);
    }
    return made;
}

struct predicate *predicate_range(enum field field, int64_t low, int64_t high)
{
    struct predicate *made = make(OP_RANGE, field);
    if (made)
        made->range = (struct range){low, high};
    return made;
}

static int compare_numbers(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

struct predicate *predicate_numbers(enum field field, const int64_t *numbers, size_t count)
{
    struct predicate *made = make(OP_NUMBERS, field);
    if (!made)
        return NULL;
    made->numbers.all = malloc((count ? count : 1) * sizeof *numbers);
    if (!made->numbers.all) {
        free(made);
        return NULL;
    }
    if (count) {
        memcpy(made->numbers.all, numbers, count * sizeof *numbers);
        qsort(made->numbers.all, count, sizeof *numbers, compare_numbers);
    }
    made->numbers.count = count;
    return made;
}

/* Whether it may be a part of an integer, or (with `head`) of "argument N". */
static bool may_be_number(const char *text, size_t size, const char *head)
{
    size_t start = 0;
    if (head && size && (text[0] < '0' || text[0] > '9')) {
        /* a piece of the head; where the text goes on behind it, it is the head's end */
        size_t head_size = strlen(head), length = 0;
        while (length < size && (text[length] < '0' || text[length] > '9'))
            length++;
        if (length > head_size)
            return false;
        if (length < size)
            return !strncmp(head + head_size - length, text, length) &&
                   may_be_number(text + length, size - length, NULL);
        for (size_t at = 0; at + length <= head_size; at++)
            if (!strncmp(head + at, text, length))
                return true;
        return false;
    }
    while (start < size && ((text[start] >= '0' && text[start] <= '9') || (!head && text[start] == '-')))
        start++;
    return start == size;
}

/* Whether it may be a part of a float as shown: 1.5e+16, -0.1, inf, nan. */
static bool may_be_floating(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!text[i] || !strchr("0123456789.e+-infa", text[i]))
            return false;
    return true;
}

static int compare_texts(const void *a, const void *b)
{
    const struct string *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? -1 : 1;
    return memcmp(left->text, right->text, left->size);
}

static bool is_value(enum field field)
{
    return field == FIELD_VALUE || field == FIELD_TEXT || field == FIELD_EITHER;
}

static bool is_of_argument(enum field field) { return field >= FIELD_NAME || field == FIELD_POSITION; }

static struct predicate *make_texts(enum field field, const struct string *texts, size_t count)
{
    struct predicate *made = make(OP_TEXTS, field);
    size_t size = 0;

    if (!made)
        return NULL;
    for (size_t i = 0; i < count; i++)
        size += texts[i].size;
    made->texts.all = malloc((count ? count : 1) * sizeof *texts);
    made->texts.bytes = malloc(size ? size : 1);
    if (!made->texts.all || !made->texts.bytes) {
        predicate_free(made);
        return NULL;
    }
    made->not_integer = made->not_floating = made->not_numbered = true;
    char *p = made->texts.bytes;
    for (size_t i = 0; i < count; i++) {
        made->texts.all[i] = (struct string){p, texts[i].size};
        if (texts[i].size)
            memcpy(p, texts[i].text, texts[i].size);
        made->not_integer &= !may_be_number(p, texts[i].size, NULL);
        made->not_floating &= !may_be_floating(p, texts[i].size);
        made->not_numbered &= !may_be_number(p, texts[i].size, "argument ");
        p += texts[i].size;
    }
    made->texts.count = count;
    qsort(made->texts.all, count, sizeof *made->texts.all, compare_texts);
    if (count)
        made->longest = made->texts.all[count - 1].size;
    if (count == 1 && is_value(field) && !trail_make(&made->trail, made->texts.bytes, size)) {
        predicate_free(made);
        return NULL;
    }
    return made;
}

static bool test_text(const struct predicate *predicate, const char *text, size_t size);

/* A condition on the kind becomes a set of kinds. */
static struct predicate *to_kinds(struct predicate *texts)
{
    struct predicate *made = texts ? make(OP_KINDS, FIELD_KIND) : NULL;
    if (made)
        for (int kind = EVENT_CALL; kind <= EVENT_LOST; kind++) {
            const char *name = event_kind_name(kind);
            if (test_text(texts, name, strlen(name)))
                made->kinds |= 1u << kind;
        }
    predicate_free(texts);
    return made;
}

struct predicate *predicate_in(enum field field, const struct string *texts, size_t count)
{
    struct predicate *made = make_texts(field, texts, count);
    return field == FIELD_KIND ? to_kinds(made) : made;
}

struct predicate *predicate_equal(enum field field, const char *text, size_t size)
{
    return predicate_in(field, &(struct string){text, size}, 1);
}

struct predicate *predicate_like(enum field field, const char *pattern, size_t size, int escape)
{
    struct predicate *made = make(OP_LIKE, field);
    const char *literal;

    if (!made)
        return NULL;
    made->like = like_new(pattern, size, escape);
    if (!made->like) {
        free(made);
        return NULL;
    }
    literal = like_literal(made->like, &size);
    made->not_integer = !may_be_number(literal, size, NULL);
    made->not_floating = !may_be_floating(literal, size);
    made->not_numbered = !may_be_number(literal, size, "argument ");
    made->longest = like_is_literal(made->like) ? size : SIZE_MAX;
    if (is_value(field) && !trail_make(&made->trail, literal, size)) {
        predicate_free(made);
        return NULL;
    }
    return field == FIELD_KIND ? to_kinds(made) : made;
}

struct predicate *predicate_plain(enum field field)
{
    struct predicate *made = make(OP_PLAIN, field);
    if (made)
        made->longest = SIZE_MAX;
    return field == FIELD_KIND ? to_kinds(made) : made;
}

static int compare_costs(const void *a, const void *b)
{
    const struct predicate *left = *(struct predicate *const *)a, *right = *(struct predicate *const *)b;
    return (left->cost > right->cost) - (left->cost < right->cost);
}

struct predicate *predicate_group(enum group group, struct predicate **members, size_t count)
{
    struct predicate *made = NULL;
    struct predicate **all = malloc((count ? count : 1) * sizeof *all);
    uint64_t cost = group == GROUP_ANY ? 40 : 1;
    bool whole = all;

    for (size_t i = 0; i < count; i++) {
        whole = whole && members[i];
        if (members[i])
            cost += members[i]->cost;
    }
    if (whole)
        made = make((enum op)group, FIELD_ID);
    if (!made) {
        for (size_t i = 0; i < count; i++)
            predicate_free(members[i]);
        free(all);
        return NULL;
    }
    if (count)
        memcpy(all, members, count * sizeof *all);
    qsort(all, count, sizeof *all, compare_costs);
    made->cost = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
    made->members = (struct members){all, count};
    return made;
}

void predicate_free(struct predicate *predicate)
{
    if (!predicate)
        return;
    switch (predicate->op) {
    case OP_RANGE:
    case OP_KINDS:
    case OP_PLAIN:
        break;
    case OP_NUMBERS:
        free(predicate->numbers.all);
        break;
    case OP_TEXTS:
        free(predicate->texts.all);
        free(predicate->texts.bytes);
        break;
    case OP_LIKE:
        like_free(predicate->like);
        break;
    default:
        for (size_t i = 0; i < predicate->members.count; i++)
            predicate_free(predicate->members.all[i]);
        free(predicate->members.all);
    }
    trail_free(&predicate->trail);
    free(predicate);
}

/* ---- asking: numbers and texts ------------------------------------------------------------- */

static enum answer not(enum answer answer)
{
    return answer == MAYBE ? MAYBE : answer == ALWAYS ? NEVER : ALWAYS;
}

static enum answer from(bool is) { return is ? ALWAYS : NEVER; }

/* The place of the first number that is not less. */
static size_t find_number(const struct numbers *numbers, int64_t number)
{
    size_t low = 0, high = numbers->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (numbers->all[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum answer ask_bounds(const struct predicate *predicate, struct bounds bounds)
{
    if (predicate->op == OP_RANGE) {
        struct range range = predicate->range;
        if (range.low > range.high || bounds.high < range.low || bounds.low > range.high)
            return NEVER;
        return bounds.low >= range.low && bounds.high <= range.high ? ALWAYS : MAYBE;
    }
    size_t at = find_number(&predicate->numbers, bounds.low);
    if (at == predicate->numbers.count || predicate->numbers.all[at] > bounds.high)
        return NEVER;
    return bounds.low == bounds.high ? ALWAYS : MAYBE;
}

/* Whether a text has nothing but printable ASCII. */
static bool is_plain(const char *text, size_t size)
{
    bool plain = true;
    for (size_t i = 0; i < size; i++)
        plain &= text[i] >= ' ' && text[i] < 0x7f;
    return plain;
}

/* Whether a text meets a condition on texts. */
static bool test_text(const struct predicate *predicate, const char *text, size_t size)
{
    if (!size)
        text = ""; /* which may have been NULL */
    if (predicate->op == OP_LIKE)
        return like_matches(predicate->like, text, size);
    if (predicate->op == OP_PLAIN)
        return is_plain(text, size);
    const struct texts *texts = &predicate->texts;
    if (texts->count == 1)
        return texts->all->size == size && !memcmp(texts->all->text, text, size);
    struct string wanted = {text, size};
    return texts->count && bsearch(&wanted, texts->all, texts->count, sizeof wanted, compare_texts);
}

static enum answer ask_string(const struct predicate *predicate, struct string string)
{
    return from(test_text(predicate, string.text, string.size));
}

/* ---- asking: an argument ------------------------------------------------------------------- */

#define SHOWN_SIZE (16 << 10) /* the default bounds of values stay far below it */

/* A text of a value, made when it is asked for first. */
struct shown {
    const char *text; /* NULL: not made yet */
    size_t size;
    char *longer;     /* what did not fit, or NULL */
    char buffer[SHOWN_SIZE];
};

/* What is known of an argument. Large, so it is not initialised as a whole. */
struct argument {
    struct bounds position;
    enum { NAME_UNKNOWN, NAME_NUMBERED, NAME_KNOWN, NAME_NOT_MADE } name_state;
    struct string name;
    struct string given;           /* for NAME_NOT_MADE */
    char number[32];
    enum { VALUE_UNKNOWN, VALUE_UNREAD, VALUE_READ, VALUE_BROKEN } value_state;
    const uint8_t *start, *end;    /* for VALUE_UNREAD: the field of the event that it is */
    const struct value *value;
    struct value read;
    struct shown shown, bare, type;
};

static void argument_begin(struct argument *argument)
{
    argument->shown.text = argument->bare.text = argument->type.text = NULL;
    argument->shown.longer = argument->bare.longer = argument->type.longer = NULL;
}

static void argument_end(struct argument *argument)
{
    if (argument->shown.text)
        free(argument->shown.longer);
    if (argument->bare.text)
        free(argument->bare.longer);
    if (argument->type.text)
        free(argument->type.longer);
}

static bool read_value(struct argument *argument)
{
    if (argument->value_state == VALUE_UNREAD) {
        struct event alone = {.fields = argument->start, .fields_end = argument->end};
        const uint8_t *cursor = NULL;
        bool good = event_value(&alone, &cursor, &argument->read);
        argument->value = &argument->read;
        argument->value_state = good ? VALUE_READ : VALUE_BROKEN;
    }
    return argument->value_state == VALUE_READ;
}

typedef size_t writer(const struct value *, const struct text_names *, char *, size_t);

static void show(struct shown *shown, writer *write, const struct value *value,
                 const struct run_definitions *run)
{
    struct text_names names = {0};
    if (run)
        names = run_type_names(run);
    shown->text = shown->buffer;
    shown->size = write(value, run ? &names : NULL, shown->buffer, SHOWN_SIZE);
    if (shown->size <= SHOWN_SIZE)
        return;
    shown->longer = malloc(shown->size);
    if (shown->longer) {
        shown->text = shown->longer;
        write(value, run ? &names : NULL, shown->longer, shown->size);
    } else {
        shown->size = SHOWN_SIZE;
    }
}

/* Text that repr shows in ' as it is. */
static bool is_simple(const uint8_t *p, size_t size)
{
    bool simple = true;
    for (size_t i = 0; i < size; i++)
        simple &= p[i] >= ' ' && p[i] < 0x7f && p[i] != '\'' && p[i] != '\\';
    return simple;
}

/* A short plain str, which most values are, is shown without the general way. */
static void show_value(struct argument *argument, const struct run_definitions *run)
{
    const struct value *value = argument->value;
    struct shown *shown = &argument->shown;
    if (value->content == VALUE_TEXT && !value->type && !value->has_length && value->size < SHOWN_SIZE - 2 &&
        is_simple(value->bytes, value->size)) {
        shown->buffer[0] = shown->buffer[value->size + 1] = '\'';
        if (value->size)
            memcpy(shown->buffer + 1, value->bytes, value->size);
        shown->text = shown->buffer;
        shown->size = value->size + 2;
    } else {
        show(shown, text_value, value, run);
    }
}

static bool test_value(const struct predicate *predicate, struct argument *argument,
                       const struct run_definitions *run)
{
    if (!argument->shown.text)
        show_value(argument, run);
    return test_text(predicate, argument->shown.text, argument->shown.size);
}

static bool test_bare(const struct predicate *predicate, struct argument *argument,
                      const struct run_definitions *run)
{
    if (argument->value->content != VALUE_TEXT)
        return test_value(predicate, argument, run);
    if (!argument->bare.text)
        show(&argument->bare, text_bare, argument->value, run);
    return test_text(predicate, argument->bare.text, argument->bare.size);
}

static bool type_has_trail(const struct trail *trail, const struct value *value,
                           const struct run_definitions *run)
{
    const char *name = run && value->type < run->type_count ? run->types[value->type] : NULL;
    return name && trail_is_in(trail, (const uint8_t *)name, strlen(name));
}

/* Whether a condition on its text cannot be met, by what is seen without the text. */
static bool is_hopeless(const struct predicate *predicate, const struct value *value,
                        const struct run_definitions *run)
{
    const struct trail *trail = &predicate->trail;
    bool class = value->content == VALUE_NAMED && value->named == NAMED_CLASS; /* shows its type alone */

    switch (class ? VALUE_CONSTANT : value->content) {
    case VALUE_INTEGER:
    case VALUE_FLOATING:
        if (!value->type && !value->has_length &&
            (value->content == VALUE_INTEGER ? predicate->not_integer : predicate->not_floating))
            return true;
        return trail->text && !type_has_trail(trail, value, run);
    case VALUE_ADDRESS:
        if (predicate->longest < strlen("<? at 0x0>"))
            return true;
        /* fall through */
    case VALUE_CONSTANT:
    case VALUE_BIG:
        return trail->text && !type_has_trail(trail, value, run);
    case VALUE_TEXT:
    case VALUE_DATA:
    case VALUE_NAMED:
    case VALUE_REPR:
        /* a text is never shorter than the bytes that it shows */
        return value->size > predicate->longest ||
               (trail->text && !(value->size && trail_is_in(trail, value->bytes, value->size)) &&
                !type_has_trail(trail, value, run));
    default:
        return false;
    }
}

/* Whether its text is printable ASCII, by what is seen without the text. */
static bool is_surely_plain(const struct value *value)
{
    return !value->type && !value->has_length &&
           (value->content == VALUE_INTEGER || value->content == VALUE_FLOATING || value->content == VALUE_CONSTANT);
}

static enum answer ask_value(const struct predicate *predicate, const struct facts *facts,
                             struct argument *argument)
{
    if (facts->missing && trails_have(facts->missing, &predicate->trail))
        return NEVER;
    if (!argument || argument->value_state == VALUE_UNKNOWN)
        return MAYBE;
    if (!read_value(argument))
        return NEVER;
    if (predicate->field != FIELD_TYPE && is_hopeless(predicate, argument->value, facts->run))
        return NEVER;
    if (predicate->op == OP_PLAIN && is_surely_plain(argument->value))
        return ALWAYS;
    switch (predicate->field) {
    case FIELD_VALUE:
        return from(test_value(predicate, argument, facts->run));
    case FIELD_TEXT:
        return from(test_bare(predicate, argument, facts->run));
    case FIELD_EITHER:
        return from(test_value(predicate, argument, facts->run) ||
                    (argument->value->content == VALUE_TEXT && test_bare(predicate, argument, facts->run)));
    default:
        if (!argument->type.text)
            show(&argument->type, text_type, argument->value, facts->run);
        return from(test_text(predicate, argument->type.text, argument->type.size));
    }
}

static enum answer ask_name(const struct predicate *predicate, const struct facts *facts,
                            struct argument *argument)
{
    if (!argument)
        return MAYBE;
    switch (argument->name_state) {
    case NAME_UNKNOWN:
        return MAYBE;
    case NAME_NUMBERED:
        return predicate->not_numbered ? NEVER : MAYBE;
    case NAME_NOT_MADE:
        argument->name = run_argument_name(facts->code, facts->event->kind,
                                           (uint32_t)argument->position.low, argument->given, argument->number);
        argument->name_state = NAME_KNOWN;
        break;
    case NAME_KNOWN:
        break;
    }
    return ask_string(predicate, argument->name);
}

/* ---- asking: an event ---------------------------------------------------------------------- */

static enum answer ask(const struct predicate *predicate, const struct facts *facts,
                       struct argument *argument);

/* An argument whose value is not known. */
static enum answer ask_named(const struct predicate *predicate, const struct facts *facts,
                             struct argument *argument, int64_t first, int64_t last, struct string name)
{
    argument->position = (struct bounds){first, last};
    argument->name_state = name.text ? NAME_KNOWN : NAME_UNKNOWN;
    argument->name = name;
    return ask(predicate, facts, argument);
}

static enum answer ask_numbered(const struct predicate *predicate, const struct facts *facts,
                                struct argument *argument, int64_t first)
{
    argument->position = (struct bounds){first, UINT32_MAX};
    argument->name_state = NAME_NUMBERED;
    return ask(predicate, facts, argument);
}

/* Whether an event of this kind can have such an argument. */
static bool kind_may_have(const struct predicate *predicate, const struct facts *facts,
                          struct argument *argument, enum event_kind kind)
{
    const struct string unknown = {NULL, 0};
    const struct run_code *code = facts->code;

    switch (kind) {
    case EVENT_CALL:
        if (!code)
            return ask_named(predicate, facts, argument, 0, UINT32_MAX, unknown) != NEVER;
        for (uint32_t i = 0; i < code->argument_count; i++)
            if (ask_named(predicate, facts, argument, i, i, code->arguments[i]) != NEVER)
                return true;
        return ask_numbered(predicate, facts, argument, code->argument_count) != NEVER;
    case EVENT_RESUME:
        return ask_numbered(predicate, facts, argument, 0) != NEVER;
    default: {
        struct string first = run_argument_name(NULL, kind, 0, unknown, argument->number);
        if (ask_named(predicate, facts, argument, 0, 0, first) != NEVER)
            return true;
        if (kind == EVENT_LOG)
            return ask_named(predicate, facts, argument, 1, UINT32_MAX, unknown) != NEVER;
        return kind != EVENT_LOST && ask_numbered(predicate, facts, argument, 1) != NEVER;
    }
    }
}

static enum answer any_by_name(const struct predicate *predicate, const struct facts *facts)
{
    struct argument argument;
    argument_begin(&argument);
    argument.value_state = VALUE_UNKNOWN;
    for (int kind = EVENT_CALL; kind <= EVENT_LOST; kind++)
        if (facts->kinds & 1u << kind && kind_may_have(predicate, facts, &argument, (enum event_kind)kind))
            return MAYBE;
    return NEVER;
}

static enum answer any_of_lost(const struct predicate *predicate, const struct facts *facts)
{
    uint64_t count = facts->event->count;
    struct argument argument;

    argument_begin(&argument);
    argument.position = (struct bounds){0, 0};
    argument.name_state = NAME_KNOWN;
    argument.name = run_argument_name(NULL, EVENT_LOST, 0, (struct string){NULL, 0}, argument.number);
    argument.read = (struct value){
        .content = VALUE_INTEGER, .integer = count > INT64_MAX ? INT64_MAX : (int64_t)count};
    argument.value = &argument.read;
    argument.value_state = VALUE_READ;
    enum answer answer = ask(predicate, facts, &argument);
    argument_end(&argument);
    return answer;
}

/* The next field of an event that is a value; *start is where it begins, the result is behind it. */
static const uint8_t *next_value(const uint8_t *p, const uint8_t *end, const uint8_t **start)
{
    while (p && p < end) {
        uint32_t tag;
        *start = p;
        p = wire_get_tag(p, end, &tag);
        if (p)
            p = wire_skip(p, end, tag);
        if (p && tag == WIRE_TAG(EVENT_VALUE, WIRE_BYTES))
            return p;
    }
    return NULL;
}

static enum answer any_of_event(const struct predicate *predicate, const struct facts *facts)
{
    const struct event *event = facts->event;
    const uint8_t *p = event->fields, *names = NULL;
    enum answer answer = NEVER;
    struct argument argument;
    bool more_names = event->kind == EVENT_LOG;

    for (uint32_t i = 0; (p = next_value(p, event->fields_end, &argument.start)); i++) {
        const uint8_t *name;
        argument_begin(&argument);
        argument.position = (struct bounds){i, i};
        argument.name_state = facts->code || event->kind != EVENT_CALL ? NAME_NOT_MADE : NAME_UNKNOWN;
        argument.given.size = 0;
        if (i && more_names) {
            more_names = event_name(event, &names, &name, &argument.given.size);
            argument.given.text = (const char *)name;
            if (!more_names)
                argument.given.size = 0;
        }
        argument.end = p;
        argument.value_state = VALUE_UNREAD;
        enum answer one = ask(predicate, facts, &argument);
        argument_end(&argument);
        if (argument.value_state == VALUE_BROKEN)
            break; /* nor is what follows looked at */
        if (one == ALWAYS)
            return ALWAYS;
        if (one == MAYBE)
            answer = MAYBE;
    }
    return answer;
}

/* ANY. Apart from `ask`: it needs much of the stack. */
static __attribute__((noinline)) enum answer ask_any(const struct predicate *predicate,
                                                     const struct facts *facts)
{
    if (!facts->event)
        return any_by_name(predicate, facts);
    return facts->event->kind == EVENT_LOST ? any_of_lost(predicate, facts) : any_of_event(predicate, facts);
}

static const uint32_t with_duration = 1u << EVENT_RETURN | 1u << EVENT_EXCEPTION | 1u << EVENT_YIELD;
static const uint32_t with_line = 1u << EVENT_RAISE | 1u << EVENT_LOG;

static enum answer ask_number(const struct predicate *predicate, const struct facts *facts,
                              const struct argument *argument)
{
    enum answer answer;

    switch (predicate->field) {
    case FIELD_ID:
        return ask_bounds(predicate, facts->id);
    case FIELD_TIME:
        return ask_bounds(predicate, facts->time);
    case FIELD_DEPTH:
        return ask_bounds(predicate, facts->depth);
    case FIELD_RUN:
        return facts->run ? ask_bounds(predicate, (struct bounds){facts->run->run, facts->run->run}) : MAYBE;
    case FIELD_PID:
        if (!facts->thread)
            return MAYBE;
        return ask_bounds(predicate, (struct bounds){facts->thread->pid, facts->thread->pid});
    case FIELD_TID:
        if (!facts->thread)
            return MAYBE;
        return ask_bounds(predicate, (struct bounds){facts->thread->tid, facts->thread->tid});
    case FIELD_LINE:
        if (facts->line.low != facts->line.high && facts->code && !(facts->kinds & with_line))
            return ask_bounds(predicate, (struct bounds){facts->code->line, facts->code->line});
        return ask_bounds(predicate, facts->line);
    case FIELD_DURATION:
        if (!facts->has_duration || !(facts->kinds & with_duration))
            return NEVER;
        answer = ask_bounds(predicate, facts->duration);
        return answer == ALWAYS && (facts->lacks_duration || facts->kinds & ~with_duration) ? MAYBE : answer;
    default: /* FIELD_POSITION */
        return argument ? ask_bounds(predicate, argument->position) : MAYBE;
    }
}

static enum answer ask_text(const struct predicate *predicate, const struct facts *facts,
                            struct argument *argument)
{
    const struct run_code *code = facts->code;

    switch (predicate->field) {
    case FIELD_THREAD:
        return facts->thread ? ask_string(predicate, facts->thread->name) : MAYBE;
    case FIELD_TASK:
        return facts->task_known ? ask_string(predicate, facts->task) : MAYBE;
    case FIELD_MODULE:
        return code ? ask_string(predicate, code->module) : MAYBE;
    case FIELD_FILE:
        return code ? ask_string(predicate, code->file) : MAYBE;
    case FIELD_QUALNAME:
        return code ? ask_string(predicate, code->func) : MAYBE;
    case FIELD_FUNC:
        if (!code)
            return MAYBE;
        return from(test_text(predicate, code->func.text, code->func.size) ||
                    (code->last.size != code->func.size &&
                     test_text(predicate, code->last.text, code->last.size)));
    case FIELD_NAME:
        return ask_name(predicate, facts, argument);
    default:
        return ask_value(predicate, facts, argument);
    }
}

static enum answer ask(const struct predicate *predicate, const struct facts *facts,
                       struct argument *argument)
{
    enum answer answer;
    size_t i;

    switch (predicate->op) {
    case OP_AND:
    case OP_OR: {
        enum answer decides = predicate->op == OP_AND ? NEVER : ALWAYS;
        answer = not(decides);
        for (i = 0; i < predicate->members.count; i++) {
            enum answer one = ask(predicate->members.all[i], facts, argument);
            if (one == decides)
                return one;
            if (one == MAYBE)
                answer = MAYBE;
        }
        return answer;
    }
    case OP_NOT:
        return not(ask(predicate->members.all[0], facts, argument));
    case OP_ANY:
        return ask_any(predicate->members.all[0], facts);
    case OP_KINDS:
        if (!(facts->kinds & predicate->kinds))
            return NEVER;
        return facts->kinds & ~predicate->kinds ? MAYBE : ALWAYS;
    case OP_RANGE:
    case OP_NUMBERS:
        return ask_number(predicate, facts, argument);
    default:
        return ask_text(predicate, facts, argument);
    }
}

enum answer predicate_ask(const struct predicate *predicate, const struct facts *facts)
{
    return ask(predicate, facts, NULL);
}

bool predicate_ask_argument(const struct predicate *predicate, const struct facts *facts, uint32_t position,
                            struct string name, const struct value *value)
{
    struct argument argument;
    argument_begin(&argument);
    argument.position = (struct bounds){position, position};
    argument.name_state = NAME_KNOWN;
    argument.name = name;
    argument.value_state = VALUE_READ;
    argument.value = value;
    enum answer answer = ask(predicate, facts, &argument);
    argument_end(&argument);
    return answer == ALWAYS;
}

struct bounds predicate_bounds(const struct predicate *predicate, enum field field)
{
    struct bounds bounds = {INT64_MIN, INT64_MAX};

    if (predicate->op == OP_AND) {
        for (size_t i = 0; i < predicate->members.count; i++) {
            struct bounds one = predicate_bounds(predicate->members.all[i], field);
            bounds.low = one.low > bounds.low ? one.low : bounds.low;
            bounds.high = one.high < bounds.high ? one.high : bounds.high;
        }
    } else if (predicate->op == OP_RANGE && predicate->field == field) {
        bounds = (struct bounds){predicate->range.low, predicate->range.high};
    } else if (predicate->op == OP_NUMBERS && predicate->field == field) {
        size_t count = predicate->numbers.count;
        bounds = (struct bounds){INT64_MAX, INT64_MIN};
        if (count)
            bounds = (struct bounds){predicate->numbers.all[0], predicate->numbers.all[count - 1]};
    }
    return bounds;
}

/* ---- rests --------------------------------------------------------------------------------- */

void predicate_rest_free(const struct predicate *rest)
{
    if (!rest || !rest->is_rest)
        return;
    for (size_t i = 0; i < rest->members.count; i++)
        predicate_rest_free(rest->members.all[i]);
    free(rest->members.all);
    free((void *)(uintptr_t)rest);
}

/* What is left of a group by what is left of its members: the group itself, where that is all of it. The
 * rests become its own, also where it answers NULL (no memory). */
static const struct predicate *rest_group(const struct predicate *group, const struct predicate *const *rests,
                                          size_t count)
{
    size_t same = 0;
    while (same < count && rests[same] == group->members.all[same])
        same++;
    if (same == group->members.count)
        return group;

    struct predicate *made = make(group->op, FIELD_ID);
    struct predicate **all = malloc((count ? count : 1) * sizeof *all);
    bool whole = made && all;
    for (size_t i = 0; i < count; i++)
        whole = whole && rests[i];
    if (!whole) {
        for (size_t i = 0; i < count; i++)
            predicate_rest_free(rests[i]);
        free(all);
        free(made);
        return NULL;
    }
    if (count)
        memcpy(all, rests, count * sizeof *all);
    made->is_rest = true;
    made->members = (struct members){all, count};
    return made;
}

static enum answer reduce(const struct predicate *predicate, const struct facts *facts, bool in_any,
                          const struct predicate **rest);

/* AND and OR. */
static enum answer reduce_members(const struct predicate *group, const struct facts *facts, bool in_any,
                                  const struct predicate **rest)
{
    enum answer decides = group->op == OP_AND ? NEVER : ALWAYS, answer = not(decides);
    const struct predicate **rests = malloc((group->members.count + 1) * sizeof *rests);
    size_t count = 0;

    *rest = NULL;
    if (!rests)
        return MAYBE;
    for (size_t i = 0; i < group->members.count && answer != decides; i++) {
        enum answer one = reduce(group->members.all[i], facts, in_any, &rests[count]);
        if (one != not(decides))
            answer = one;
        count += one == MAYBE;
    }
    if (answer != MAYBE)
        for (size_t i = 0; i < count; i++)
            predicate_rest_free(rests[i]);
    else
        *rest = count == 1 ? rests[0] : rest_group(group, rests, count);
    free(rests);
    return answer;
}

/* Answers as `ask` does; where that is MAYBE, *rest is what is left, the caller's (NULL: no memory). in_any:
 * it is asked of each argument that the events may have. */
static enum answer reduce(const struct predicate *predicate, const struct facts *facts, bool in_any,
                          const struct predicate **rest)
{
    enum answer answer;

    switch (predicate->op) {
    case OP_AND:
    case OP_OR:
        return reduce_members(predicate, facts, in_any, rest);
    case OP_NOT:
        answer = reduce(predicate->members.all[0], facts, in_any, rest);
        if (answer == MAYBE)
            *rest = rest_group(predicate, rest, 1);
        return not(answer);
    case OP_ANY:
        if (ask_any(predicate->members.all[0], facts) == NEVER)
            return NEVER;
        answer = reduce(predicate->members.all[0], facts, true, rest);
        if (answer == ALWAYS) /* if it has one */
            *rest = predicate;
        else if (answer == MAYBE)
            *rest = rest_group(predicate, rest, 1);
        return answer == NEVER ? NEVER : MAYBE;
    default:
        *rest = predicate;
        return in_any && is_of_argument(predicate->field) ? any_by_name(predicate, facts)
                                                          : ask(predicate, facts, NULL);
    }
}

const struct predicate *predicate_rest(const struct predicate *predicate, const struct facts *facts)
{
    static const struct predicate always = {.op = OP_AND}, never = {.op = OP_OR};
    const struct predicate *rest;
    enum answer answer = reduce(predicate, facts, false, &rest);
    return answer == MAYBE ? rest : answer == ALWAYS ? &always : &never;
}

/* ---- trails -------------------------------------------------------------------------------- */

static void add_trails(const struct predicate *predicate, struct trails *trails)
{
    if (predicate->op <= OP_ANY) {
        for (size_t i = 0; i < predicate->members.count && trails->count < TRAILS_MAX; i++)
            add_trails(predicate->members.all[i], trails);
    } else if (predicate->trail.text && trails->count < TRAILS_MAX) {
        trails->all[trails->count++] = &predicate->trail;
    }
}

void predicate_trails(const struct predicate *predicate, struct trails *trails)
{
    trails->count = 0;
    add_trails(predicate, trails);
}
