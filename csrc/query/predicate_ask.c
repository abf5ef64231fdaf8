/* Asks predicates; see predicate.h. One function, `ask`, answers for sets of events and for single
 * ones. */
#include "query/predicate_tree.h"

#include <stdlib.h>

#include "common/saturate.h"

#define EVERYTHING {INT64_MIN, INT64_MAX}
const struct facts facts_unknown = {
    .id = EVERYTHING, .time = EVERYTHING, .depth = EVERYTHING, .duration = EVERYTHING,
    .has_duration = true, .lacks_duration = true, .line = EVERYTHING, .stream = EVERYTHING,
    .own_depth = EVERYTHING, .near_depth = EVERYTHING, .near = {0, 1}, .trailing = {0, 1},
    .has_levels = true, .lacks_levels = true, .cpu = {0, INT32_MAX}, .has_cpu = true, .lacks_cpu = true,
    .shown = {MAYBE, MAYBE},
    .kinds = EVENT_KNOWN,
};

static enum answer from(bool is) { return is ? ALWAYS : NEVER; }

/* ---- numbers and texts ------------------------------------------------------------------- */

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

bool predicate_test_text(const struct predicate *predicate, const char *text, size_t size)
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
    return texts->count && bsearch(&wanted, texts->all, texts->count, sizeof wanted, predicate_compare_texts);
}

static enum answer ask_string(const struct predicate *predicate, struct string string)
{
    return from(predicate_test_text(predicate, string.text, string.size));
}

/* ---- an argument ------------------------------------------------------------------------- */

#define SHOWN_SIZE (16 << 10) /* the default bounds of values stay far below it */

/* A text of a value, made at its first use. */
struct shown {
    const char *text; /* NULL: not made yet */
    size_t size;
    char *longer;     /* a text that did not fit, or NULL */
    char buffer[SHOWN_SIZE];
};

/* The known facts of an argument. The struct is large, so it is not initialised as a whole. */
struct argument {
    struct bounds position;
    enum { NAME_UNKNOWN, NAME_NUMBERED, NAME_KNOWN, NAME_STEM, NAME_NOT_MADE, NAME_OF_ATTRIBUTE } name_state;
    struct string name;            /* NAME_STEM: of the argument, whose attribute it is */
    struct string given;           /* for the last two states */
    struct string attribute;       /* for the last one */
    uint32_t variable;             /* its number, of a line ... */
    bool variable_known;           /* ... if the record tells it */
    char number[32], whole[RUN_ATTRIBUTE_NAME_MAX];
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

/* Whether repr shows the text unchanged between '. */
static bool is_simple(const uint8_t *p, size_t size)
{
    bool simple = true;
    for (size_t i = 0; i < size; i++)
        simple &= p[i] >= ' ' && p[i] < 0x7f && p[i] != '\'' && p[i] != '\\';
    return simple;
}

/* Shows a value. Most are a short plain str, which has a quick way. */
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
    return predicate_test_text(predicate, argument->shown.text, argument->shown.size);
}

static bool is_bare(const struct argument *argument, const struct run_definitions *run)
{
    struct text_names names = run ? run_type_names(run) : (struct text_names){0};
    return text_is_bare(argument->value, &names);
}

static bool test_bare(const struct predicate *predicate, struct argument *argument,
                      const struct run_definitions *run)
{
    if (is_bare(argument, run))
        return test_value(predicate, argument, run);
    if (!argument->bare.text)
        show(&argument->bare, text_bare, argument->value, run);
    return predicate_test_text(predicate, argument->bare.text, argument->bare.size);
}

static bool type_has_literal(const struct required_literal *literal, const struct value *value,
                           const struct run_definitions *run)
{
    const char *name = run && value->type < run->type_count ? run->types[value->type] : NULL;
    return name && required_literal_is_in(literal, (const uint8_t *)name, strlen(name));
}

/* Whether a condition on its text cannot hold, by facts that need no text. */
static bool is_hopeless(const struct predicate *predicate, const struct value *value,
                        const struct run_definitions *run)
{
    const struct required_literal *literal = &predicate->literal;
    /* a class shows its type alone */
    bool class = value->content == VALUE_NAMED && value->named == NAMED_CLASS;

    switch (class ? VALUE_CONSTANT : value->content) {
    case VALUE_INTEGER:
    case VALUE_FLOATING:
        if (!value->type && !value->has_length &&
            (value->content == VALUE_INTEGER ? predicate->not_integer : predicate->not_floating))
            return true;
        return literal->text && !type_has_literal(literal, value, run);
    case VALUE_ADDRESS:
        if (value->item_count && run && run->attributes && predicate->field != FIELD_TEXT)
            return false;
        if (predicate->longest < strlen("<? at 0x0>"))
            return true;
        /* fall through */
    case VALUE_CONSTANT:
    case VALUE_BIG:
        return literal->text && !type_has_literal(literal, value, run);
    case VALUE_TEXT:
    case VALUE_DATA:
    case VALUE_NAMED:
    case VALUE_REPR:
        /* a text is never shorter than the bytes that it shows */
        return value->size > predicate->longest ||
               (literal->text &&
                !(value->size && required_literal_is_in(literal, value->bytes, value->size)) &&
                !type_has_literal(literal, value, run));
    default:
        return false;
    }
}

/* Whether its text is printable ASCII, by facts that need no text. */
static bool is_surely_plain(const struct value *value)
{
    return !value->type && !value->has_length &&
           (value->content == VALUE_INTEGER || value->content == VALUE_FLOATING ||
            value->content == VALUE_CONSTANT);
}

static enum answer ask_value(const struct predicate *predicate, const struct facts *facts,
                             struct argument *argument)
{
    if (facts->missing && required_literals_have(facts->missing, &predicate->literal))
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
                    (!is_bare(argument, facts->run) && test_bare(predicate, argument, facts->run)));
    default:
        if (!argument->type.text)
            show(&argument->type, text_type, argument->value, facts->run);
        return from(predicate_test_text(predicate, argument->type.text, argument->type.size));
    }
}

/* An attribute of an argument whose name is known. */
static enum answer ask_stem(const struct predicate *predicate, struct string stem)
{
    if (predicate->op != OP_TEXTS || stem.size > RUN_ATTRIBUTE_NAME_MAX / 2)
        return MAYBE;
    for (size_t i = 0; i < predicate->texts.count; i++) {
        struct string text = predicate->texts.all[i];
        if (text.size > stem.size && text.text[stem.size] == '.' &&
            !(stem.size && memcmp(text.text, stem.text, stem.size)))
            return MAYBE;
    }
    return NEVER;
}

static struct string made_name(const struct facts *facts, struct argument *argument)
{
    if (facts->event->kind == EVENT_AT_LINE)
        return run_variable_name(facts->code, argument->variable, argument->variable_known,
                                 argument->number);
    return run_argument_name(facts->code, facts->event->kind, (uint32_t)argument->position.low, argument->given,
                             argument->number);
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
        argument->name = made_name(facts, argument);
        argument->name_state = NAME_KNOWN;
        break;
    case NAME_OF_ATTRIBUTE:
        argument->name = run_attribute_name(made_name(facts, argument), argument->attribute, argument->whole);
        argument->name_state = NAME_KNOWN;
        break;
    case NAME_STEM:
        return ask_stem(predicate, argument->name);
    case NAME_KNOWN:
        break;
    }
    return ask_string(predicate, argument->name);
}

/* ---- an event ---------------------------------------------------------------------------- */

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

static bool may_have_attributes(const struct facts *facts) { return !facts->run || facts->run->attributes; }

/* The same of it, at a position between these, and its attributes. */
static bool may_meet(const struct predicate *predicate, const struct facts *facts, struct argument *argument,
                     int64_t first, int64_t last, struct string name)
{
    if (ask_named(predicate, facts, argument, first, last, name) != NEVER)
        return true;
    argument->name_state = NAME_STEM;
    return may_have_attributes(facts) && ask(predicate, facts, argument) != NEVER;
}

/* Those from a position on, whose names are numbers, and their attributes. */
static bool may_numbered_meet(const struct predicate *predicate, const struct facts *facts,
                              struct argument *argument, int64_t first)
{
    argument->position = (struct bounds){first, UINT32_MAX};
    argument->name_state = may_have_attributes(facts) ? NAME_UNKNOWN : NAME_NUMBERED;
    return ask(predicate, facts, argument) != NEVER;
}

/* Whether an event of this kind can have such an argument. */
static bool kind_may_have(const struct predicate *predicate, const struct facts *facts,
                          struct argument *argument, enum event_kind kind)
{
    const struct string unknown = {NULL, 0};
    const struct run_code *code = facts->code;

    switch (kind) {
    case EVENT_CALL:
    case EVENT_HAPPENED:
        if (!code)
            return ask_named(predicate, facts, argument, 0, UINT32_MAX, unknown) != NEVER;
        for (uint32_t i = 0; i < code->argument_count; i++)
            if (may_meet(predicate, facts, argument, i, i, code->arguments[i]))
                return true;
        return may_numbered_meet(predicate, facts, argument, code->argument_count);
    case EVENT_AT_LINE: /* any of the variables may be at any place */
        if (!code)
            return ask_named(predicate, facts, argument, 0, UINT32_MAX, unknown) != NEVER;
        for (uint32_t i = 0; i < code->variable_count; i++)
            if (may_meet(predicate, facts, argument, 0, UINT32_MAX, code->variables[i]))
                return true;
        return may_numbered_meet(predicate, facts, argument, 0);
    case EVENT_RESUME:
        return may_numbered_meet(predicate, facts, argument, 0);
    default: {
        struct string first = run_argument_name(NULL, kind, 0, unknown, argument->number);
        if (may_meet(predicate, facts, argument, 0, 0, first))
            return true;
        if (kind == EVENT_LOG)
            return ask_named(predicate, facts, argument, 1, UINT32_MAX, unknown) != NEVER;
        return kind != EVENT_LOST && may_numbered_meet(predicate, facts, argument, 1);
    }
    }
}

/* The variables of which one may meet a condition on arguments. */
static uint64_t variables_of(const struct predicate *predicate, const struct facts *facts)
{
    const struct run_code *code = facts->code;
    struct argument argument;
    uint64_t found;

    argument_begin(&argument);
    argument.value_state = VALUE_UNKNOWN;
    if (!code || ask_named(predicate, facts, &argument, 0, UINT32_MAX, (struct string){NULL, 0}) == NEVER)
        return code ? 0 : NEWS_ALL;
    found = may_numbered_meet(predicate, facts, &argument, 0) ? NEWS_ALL : 0;
    for (uint32_t i = 0; i < code->variable_count; i++) {
        uint64_t bit = 1ull << (i < NEWS_OTHERS ? i : NEWS_OTHERS);
        if (may_meet(predicate, facts, &argument, 0, UINT32_MAX, code->variables[i]))
            found |= bit;
        else if (i < NEWS_OTHERS)
            found &= ~bit;
    }
    return found;
}

uint64_t predicate_news(const struct predicate *predicate, const struct facts *facts)
{
    uint64_t found = predicate->op == OP_OR ? 0 : NEWS_ALL;

    if (predicate->op == OP_ANY)
        return variables_of(predicate->members.all[0], facts);
    for (size_t i = 0; (predicate->op == OP_AND || predicate->op == OP_OR) && i < predicate->members.count; i++) {
        uint64_t one = predicate_news(predicate->members.all[i], facts);
        if (predicate->op == OP_OR)
            found |= one;
        else if (__builtin_popcountll(one) < __builtin_popcountll(found))
            found = one;
    }
    return found;
}

enum answer predicate_any_by_name(const struct predicate *predicate, const struct facts *facts)
{
    struct argument argument;
    argument_begin(&argument);
    argument.value_state = VALUE_UNKNOWN;
    for (int kind = 0; kind < EVENT_KINDS; kind++)
        if (facts->kinds & 1u << kind && kind_may_have(predicate, facts, &argument, (enum event_kind)kind))
            return MAYBE;
    return NEVER;
}

static enum answer any_of_lost(const struct predicate *predicate, const struct facts *facts)
{
    struct argument argument;

    argument_begin(&argument);
    argument.position = (struct bounds){0, 0};
    argument.name_state = NAME_KNOWN;
    argument.name = run_argument_name(NULL, EVENT_LOST, 0, (struct string){NULL, 0}, argument.number);
    argument.read = (struct value){
        .content = VALUE_INTEGER, .integer = saturate_signed(facts->event->count)};
    argument.value = &argument.read;
    argument.value_state = VALUE_READ;
    enum answer answer = ask(predicate, facts, &argument);
    argument_end(&argument);
    return answer;
}

/* The next field of an event that is a value: *start is its start, the result its end. */
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

/* Asks about each attribute of the argument that was asked about last. */
static enum answer any_of_attributes(const struct predicate *predicate, const struct facts *facts,
                                     struct argument *argument)
{
    struct text_names names = run_type_names(facts->run);
    struct attribute_walk walk = {0};
    enum answer answer = NEVER;
    struct value whole, item;
    bool known = argument->name_state != NAME_UNKNOWN;

    if (!read_value(argument))
        return NEVER;
    whole = *argument->value;
    while (answer != ALWAYS && attribute_next(&walk, &whole, &names, &argument->attribute, &item)) {
        argument_begin(argument);
        argument->name_state = known ? NAME_OF_ATTRIBUTE : NAME_UNKNOWN;
        argument->value = &item;
        enum answer one = ask(predicate, facts, argument);
        argument_end(argument);
        if (one != NEVER)
            answer = one;
    }
    return answer;
}

/* The kinds whose values have names that their code tells. */
static const uint32_t named_by_code = 1u << EVENT_CALL | 1u << EVENT_AT_LINE | 1u << EVENT_HAPPENED;

static enum answer any_of_event(const struct predicate *predicate, const struct facts *facts)
{
    const struct event *event = facts->event;
    const uint8_t *p = event->fields, *names = NULL;
    enum answer answer = NEVER;
    struct argument argument;
    bool more_names = event->kind == EVENT_LOG, is_line = event->kind == EVENT_AT_LINE;
    bool is_named = facts->code || !(named_by_code >> event->kind & 1);
    struct event_variables variables = {.changed = UINT32_MAX};

    if (is_line)
        event_variables(event, &variables);
    for (uint32_t i = 0; i < variables.changed; i++) {
        if (!(p = next_value(p, event->fields_end, &argument.start)))
            break;
        const uint8_t *name;
        argument_begin(&argument);
        argument.position = (struct bounds){i, i};
        argument.name_state = is_named ? NAME_NOT_MADE : NAME_UNKNOWN;
        argument.given.size = 0;
        if (i && more_names) {
            more_names = event_name(event, &names, &name, &argument.given.size);
            argument.given.text = (const char *)name;
            if (!more_names)
                argument.given.size = 0;
        }
        if (is_line) {
            argument.variable_known = event_variable(&variables, &argument.variable);
            if (!argument.variable_known)
                argument.variable = i;
        }
        argument.end = p;
        argument.value_state = VALUE_UNREAD;
        enum answer one = ask(predicate, facts, &argument);
        argument_end(&argument);
        if (one != ALWAYS && facts->run && facts->run->attributes) {
            enum answer other = any_of_attributes(predicate, facts, &argument);
            one = other == NEVER ? one : other;
        }
        if (argument.value_state == VALUE_BROKEN)
            break; /* the rest is not read either */
        if (one == ALWAYS)
            return ALWAYS;
        if (one == MAYBE)
            answer = MAYBE;
    }
    return answer;
}

/* ANY. Apart from `ask`: it needs much of the stack. */
__attribute__((noinline)) enum answer predicate_ask_any(const struct predicate *predicate,
                                                        const struct facts *facts)
{
    if (!facts->event)
        return predicate_any_by_name(predicate, facts);
    return facts->event->kind == EVENT_LOST ? any_of_lost(predicate, facts) : any_of_event(predicate, facts);
}

static const uint32_t with_duration = 1u << EVENT_RETURN | 1u << EVENT_EXCEPTION | 1u << EVENT_YIELD;
static const uint32_t with_line = 1u << EVENT_RAISE | 1u << EVENT_LOG | 1u << EVENT_AT_LINE;

/* A number that some have, and some may lack. */
static enum answer ask_known(const struct predicate *predicate, bool has, bool lacks, struct bounds bounds)
{
    if (!has)
        return NEVER;
    enum answer answer = ask_bounds(predicate, bounds);
    return answer == ALWAYS && lacks ? MAYBE : answer;
}

/* A number that follows from the open levels. */
static enum answer ask_levels(const struct predicate *predicate, const struct facts *facts,
                              struct bounds bounds)
{
    return ask_known(predicate, facts->has_levels, facts->lacks_levels, bounds);
}

/* Events of own code are shown in any case, and so are losses. */
static enum answer ask_shown(const struct predicate *predicate, const struct facts *facts)
{
    enum answer answer = facts->shown[predicate->view];
    bool surely = (facts->code && facts->code->mine) || facts->kinds == 1u << EVENT_LOST;
    return answer == MAYBE && surely ? ALWAYS : answer;
}

static enum answer ask_number(const struct predicate *predicate, const struct facts *facts,
                              const struct argument *argument)
{
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
    case FIELD_MINE:
        if (!facts->code)
            return MAYBE;
        return ask_bounds(predicate, (struct bounds){facts->code->mine, facts->code->mine});
    case FIELD_TRAILING:
        if (!(facts->kinds & 1u << EVENT_AT_LINE))
            return ask_bounds(predicate, (struct bounds){0, 0});
        return ask_bounds(predicate, facts->trailing);
    case FIELD_OWN_DEPTH:
        return ask_levels(predicate, facts, facts->own_depth);
    case FIELD_NEAR_DEPTH:
        return ask_levels(predicate, facts, facts->near_depth);
    case FIELD_NEAR:
        return ask_levels(predicate, facts, facts->near);
    case FIELD_CPU:
        return ask_known(predicate, facts->has_cpu, facts->lacks_cpu, facts->cpu);
    case FIELD_STREAM:
        return ask_bounds(predicate, facts->stream);
    case FIELD_PROCESS:
        if (!facts->thread)
            return MAYBE;
        if (facts->thread->process < 0) /* a comparison with a missing value */
            return NEVER;
        return ask_bounds(predicate, (struct bounds){facts->thread->process, facts->thread->process});
    case FIELD_LINE:
        if (facts->line.low != facts->line.high && facts->code && !(facts->kinds & with_line))
            return ask_bounds(predicate, (struct bounds){facts->code->line, facts->code->line});
        return ask_bounds(predicate, facts->line);
    case FIELD_DURATION:
        if (!facts->has_duration || !(facts->kinds & with_duration))
            return NEVER;
        return ask_known(predicate, true, facts->lacks_duration || facts->kinds & ~with_duration,
                         facts->duration);
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
    case FIELD_LAYER:
        return code ? ask_string(predicate, code->layer) : MAYBE;
    case FIELD_MODULE:
        return code ? ask_string(predicate, code->module) : MAYBE;
    case FIELD_FILE:
        return code ? ask_string(predicate, code->file) : MAYBE;
    case FIELD_QUALNAME:
        return code ? ask_string(predicate, code->func) : MAYBE;
    case FIELD_FUNC:
        if (!code)
            return MAYBE;
        return from(predicate_test_text(predicate, code->func.text, code->func.size) ||
                    (code->last.size != code->func.size &&
                     predicate_test_text(predicate, code->last.text, code->last.size)));
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
        return predicate_ask_any(predicate->members.all[0], facts);
    case OP_KINDS:
        if (!(facts->kinds & predicate->kinds))
            return NEVER;
        return facts->kinds & ~predicate->kinds ? MAYBE : ALWAYS;
    case OP_SHOWN:
        return ask_shown(predicate, facts);
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
