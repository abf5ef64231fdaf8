/* Makes predicates; see predicate.h. predicate_parse.c reads their text form, predicate_ask.c asks
 * them, predicate_rest.c makes them smaller.
 *
 * The members of a group are sorted by cost, so that a cheap one can give the answer.
 */
#include "query/predicate_tree.h"

#include <stdlib.h>

/* ---- making ------------------------------------------------------------------------------ */

/* Roughly ns. A condition on a value costs most: it may have to be rendered. */
static uint32_t cost_of(enum op op, enum field field)
{
    static const uint32_t costs[] = {
        [FIELD_THREAD] = 4, [FIELD_TASK] = 4, [FIELD_KIND] = 1, [FIELD_LAYER] = 4, [FIELD_MODULE] = 4,
        [FIELD_FILE] = 4, [FIELD_QUALNAME] = 4, [FIELD_FUNC] = 5, [FIELD_NAME] = 5, [FIELD_VALUE] = 60,
        [FIELD_TEXT] = 50, [FIELD_EITHER] = 80,
        [FIELD_TYPE] = 30,
    };
    return (field < FIELD_THREAD ? 1 : costs[field]) * (op == OP_LIKE ? 4 : op == OP_NUMBERS ? 2 : 1);
}

struct predicate *predicate_make(enum op op, enum field field)
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
    struct predicate *made = predicate_make(OP_RANGE, field);
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
    struct predicate *made = predicate_make(OP_NUMBERS, field);
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

/* Whether it may be a part of an integer, or (with `head`) of "argument N" or "variable N". */
static bool may_be_number(const char *text, size_t size, const char *head)
{
    size_t start = 0;
    if (head && size && (text[0] < '0' || text[0] > '9')) {
        /* a piece of the head; if the text goes on behind it, it is the end of the head */
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

int predicate_compare_texts(const void *a, const void *b)
{
    const struct string *left = a, *right = b;
    if (left->size != right->size)
        return left->size < right->size ? -1 : 1;
    return memcmp(left->text, right->text, left->size);
}

static bool may_be_numbered(const char *text, size_t size)
{
    return may_be_number(text, size, "argument ") || may_be_number(text, size, "variable ");
}

static bool is_value(enum field field)
{
    return field == FIELD_VALUE || field == FIELD_TEXT || field == FIELD_EITHER;
}

static struct predicate *make_texts(enum field field, const struct string *texts, size_t count)
{
    struct predicate *made = predicate_make(OP_TEXTS, field);
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
        made->not_numbered &= !may_be_numbered(p, texts[i].size);
        p += texts[i].size;
    }
    made->texts.count = count;
    qsort(made->texts.all, count, sizeof *made->texts.all, predicate_compare_texts);
    if (count)
        made->longest = made->texts.all[count - 1].size;
    if (count == 1 && is_value(field) && !required_literal_make(&made->literal, made->texts.bytes, size)) {
        predicate_free(made);
        return NULL;
    }
    return made;
}

/* A condition on the kind becomes a set of kinds. */
static struct predicate *to_kinds(struct predicate *texts)
{
    struct predicate *made = texts ? predicate_make(OP_KINDS, FIELD_KIND) : NULL;
    if (made)
        for (int kind = 0; kind < EVENT_KINDS; kind++) {
            const char *name = event_kind_name(kind);
            if (name && predicate_test_text(texts, name, strlen(name)))
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
    struct predicate *made = predicate_make(OP_LIKE, field);
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
    made->not_numbered = !may_be_numbered(literal, size);
    made->longest = like_is_literal(made->like) ? size : SIZE_MAX;
    if (is_value(field) && !required_literal_make(&made->literal, literal, size)) {
        predicate_free(made);
        return NULL;
    }
    return field == FIELD_KIND ? to_kinds(made) : made;
}

struct predicate *predicate_plain(enum field field)
{
    struct predicate *made = predicate_make(OP_PLAIN, field);
    if (made)
        made->longest = SIZE_MAX;
    return field == FIELD_KIND ? to_kinds(made) : made;
}

struct predicate *predicate_shown(enum view view)
{
    struct predicate *made = predicate_make(OP_SHOWN, FIELD_ID);
    if (made)
        made->view = view;
    return made;
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
        made = predicate_make((enum op)group, FIELD_ID);
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
    case OP_SHOWN:
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
    required_literal_free(&predicate->literal);
    free(predicate);
}

/* ---- what is known of it ----------------------------------------------------------------- */

struct bounds predicate_bounds(const struct predicate *predicate, enum field field)
{
    struct bounds bounds = {INT64_MIN, INT64_MAX};

    if (predicate->op == OP_AND) {
        for (size_t i = 0; i < predicate->members.count; i++) {
            struct bounds one = predicate_bounds(predicate->members.all[i], field);
            bounds.low = one.low > bounds.low ? one.low : bounds.low;
            bounds.high = one.high < bounds.high ? one.high : bounds.high;
        }
    } else if (predicate->op == OP_OR) {
        bounds = (struct bounds){INT64_MAX, INT64_MIN};
        for (size_t i = 0; i < predicate->members.count; i++) {
            struct bounds one = predicate_bounds(predicate->members.all[i], field);
            bounds.low = one.low < bounds.low ? one.low : bounds.low;
            bounds.high = one.high > bounds.high ? one.high : bounds.high;
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

bool predicate_asks_levels(const struct predicate *predicate)
{
    if (predicate->op > OP_ANY)
        return predicate->op == OP_SHOWN || predicate->field == FIELD_OWN_DEPTH ||
               predicate->field == FIELD_NEAR_DEPTH || predicate->field == FIELD_NEAR;
    for (size_t i = 0; i < predicate->members.count; i++)
        if (predicate_asks_levels(predicate->members.all[i]))
            return true;
    return false;
}

static void add_required_literals(const struct predicate *predicate, struct required_literals *literals)
{
    if (predicate->op <= OP_ANY) {
        for (size_t i = 0; i < predicate->members.count && literals->count < REQUIRED_LITERALS_MAX; i++)
            add_required_literals(predicate->members.all[i], literals);
    } else if (predicate->literal.text && literals->count < REQUIRED_LITERALS_MAX) {
        literals->all[literals->count++] = &predicate->literal;
    }
}

void predicate_required_literals(const struct predicate *predicate, struct required_literals *literals)
{
    literals->count = 0;
    add_required_literals(predicate, literals);
}
