/* Conditions of SQL as predicates; see sqlite_conditions.h. */
#include "query/sqlite_conditions.h"
SQLITE_EXTENSION_INIT3

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "query/arguments.h"

static struct predicate *nothing(void) { return predicate_group(GROUP_OR, NULL, 0); }

/* The numbers n for which `n op value` is true. It never is for a missing number (a call's
 * duration). */
static struct predicate *number_condition(enum field field, unsigned char op, sqlite3_value *value)
{
    struct bounds bounds = {INT64_MIN, INT64_MAX};
    const double limit = 9223372036854775808.0;
    int type = sqlite3_value_numeric_type(value);

    if (type == SQLITE_NULL)
        return nothing();
    if (type == SQLITE_TEXT || type == SQLITE_BLOB) /* any number is less than any text */
        return op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE
                   ? predicate_range(field, INT64_MIN, INT64_MAX) : nothing();
    int64_t floor = sqlite3_value_int64(value);
    bool whole = true;
    if (type == SQLITE_FLOAT) {
        double number = sqlite3_value_double(value);
        bool beyond = number >= limit;
        if (beyond || number < -limit) {
            bool below = op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
            return op != SQLITE_INDEX_CONSTRAINT_EQ && below == beyond
                       ? predicate_range(field, INT64_MIN, INT64_MAX) : nothing();
        }
        floor = (int64_t)number;
        whole = (double)floor == number;
        floor -= !whole && number < 0;
    }
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        if (!whole)
            return nothing();
        bounds = (struct bounds){floor, floor};
        break;
    case SQLITE_INDEX_CONSTRAINT_LT:
        if (whole && floor == INT64_MIN)
            return nothing();
        bounds.high = floor - whole;
        break;
    case SQLITE_INDEX_CONSTRAINT_LE:
        bounds.high = floor;
        break;
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        if (op == SQLITE_INDEX_CONSTRAINT_GT || !whole) {
            if (floor == INT64_MAX)
                return nothing();
            floor++;
        }
        bounds.low = floor;
        break;
    }
    return predicate_range(field, bounds.low, bounds.high);
}

static struct predicate *text_condition(enum field field, unsigned char op, sqlite3_value *value)
{
    int type = sqlite3_value_type(value);
    const char *text = (const char *)sqlite3_value_text(value);

    bool no_blobs = op == SQLITE_INDEX_CONSTRAINT_EQ || sqlite3_compileoption_used("LIKE_DOESNT_MATCH_BLOBS");

    if (type == SQLITE_NULL || (type == SQLITE_BLOB && no_blobs))
        return nothing();
    if (!text)
        return NULL;
    if (op == SQLITE_INDEX_CONSTRAINT_LIKE)
        return predicate_like(field, text, strlen(text), -1); /* SQLite's ends at a NUL, too */
    return predicate_equal(field, text, (size_t)sqlite3_value_bytes(value));
}

static struct predicate *condition(const struct column *column, unsigned char op, sqlite3_value *value)
{
    enum field field = (enum field)column->field;
    return column->is_text ? text_condition(field, op, value) : number_condition(field, op, value);
}

/* Predicates that all must hold. */
struct members {
    struct predicate **all;
    size_t count, capacity;
};

/* Adds one, which is taken over; NULL is no memory. False: no memory. */
static bool members_add(struct members *members, struct predicate *predicate)
{
    if (predicate &&
        !array_reserve(&members->all, &members->capacity, members->count + 1, sizeof predicate)) {
        predicate_free(predicate);
        return false;
    }
    if (predicate)
        members->all[members->count++] = predicate;
    return predicate;
}

static void members_free(struct members *members)
{
    for (size_t i = 0; i < members->count; i++)
        predicate_free(members->all[i]);
    free(members->all);
    *members = (struct members){0};
}

/* All of them as one predicate; NULL: no memory. Empties them. */
static struct predicate *members_join(struct members *members)
{
    struct predicate *joined = predicate_group(GROUP_AND, members->all, members->count);
    free(members->all);
    *members = (struct members){0};
    return joined;
}

/* The elements of a list: numbers, or texts one behind the other in `buffer`. */
struct list_values {
    int64_t *numbers;
    struct string *texts;
    struct text_buffer buffer;
    size_t count, number_capacity, text_capacity;
};

static void list_values_free(struct list_values *listed)
{
    free(listed->numbers);
    free(listed->texts);
    free(listed->buffer.text);
}

/* Adds a value if a column's value can be equal to it. False: no memory. */
static bool list_values_add(struct list_values *listed, bool is_text, sqlite3_value *value)
{
    int type = is_text ? sqlite3_value_type(value) : sqlite3_value_numeric_type(value);

    if (!array_reserve(&listed->numbers, &listed->number_capacity, listed->count + 1,
                       sizeof *listed->numbers) ||
        !array_reserve(&listed->texts, &listed->text_capacity, listed->count + 1, sizeof *listed->texts))
        return false;
    if (type == SQLITE_NULL || type == SQLITE_BLOB)
        return true;
    if (is_text) {
        const char *text = (const char *)sqlite3_value_text(value);
        size_t size = (size_t)sqlite3_value_bytes(value);
        if (!text || !text_reserve(&listed->buffer, size + 1))
            return false;
        memcpy(listed->buffer.text + listed->buffer.size, text, size);
        listed->buffer.size += size;
        listed->texts[listed->count++].size = size;
    } else if (type == SQLITE_INTEGER ||
               (type == SQLITE_FLOAT && sqlite3_value_double(value) == (double)sqlite3_value_int64(value))) {
        listed->numbers[listed->count++] = sqlite3_value_int64(value);
    }
    return true;
}

static struct predicate *in_condition(const struct column *column, sqlite3_value *list)
{
    enum field field = (enum field)column->field;
    struct list_values listed = {0};
    struct predicate *made = NULL;
    sqlite3_value *value;
    bool good = true;

    for (int answer = sqlite3_vtab_in_first(list, &value); good && answer == SQLITE_OK;
         answer = sqlite3_vtab_in_next(list, &value))
        good = list_values_add(&listed, column->is_text, value);
    const char *text = listed.buffer.text;
    for (size_t i = 0; column->is_text && i < listed.count; text += listed.texts[i++].size)
        listed.texts[i].text = text;
    if (good && !listed.count)
        made = nothing();
    else if (good)
        made = column->is_text ? predicate_in(field, listed.texts, listed.count)
                               : predicate_numbers(field, listed.numbers, listed.count);
    list_values_free(&listed);
    return made;
}

int conditions_read(struct trace_table *vtab, const char *plan, int count, sqlite3_value **values,
                    struct conditions *made)
{
    const struct table *table = vtab->table;
    struct members events = {0}, arguments = {0}, again = {0};
    unsigned char op;
    int column, answer = SQLITE_NOMEM;

    *made = (struct conditions){0};
    if (table->kind && !members_add(&events, predicate_equal(FIELD_KIND, table->kind, strlen(table->kind))))
        goto failed;
    for (int i = 0; i < count; i++) {
        plan = plan_read(plan, table, &column, &op);
        if (!plan) { /* the last: OFFSET? */
            made->offset = sqlite3_value_int64(values[i]);
            break;
        }
        const struct column *about = &table->columns[column];
        if (op == SQLITE_INDEX_CONSTRAINT_MATCH) {
            char message[256] = "out of memory";
            const char *text = (const char *)sqlite3_value_text(values[i]);
            struct predicate *match = predicate_parse(text ? text : "",
                                                      (size_t)sqlite3_value_bytes(values[i]),
                                                      message, sizeof message);
            if (!match) {
                answer = trace_fail(&vtab->base, message);
                goto failed;
            }
            if (!members_add(&events, match))
                goto failed;
            continue;
        }
        for (int twice = 0; twice <= about->of_argument; twice++) {
            struct predicate *one = op ? condition(about, op, values[i]) : in_condition(about, values[i]);
            if (!members_add(about->of_argument ? twice ? &again : &arguments : &events, one))
                goto failed;
        }
    }
    if (arguments.count) {
        struct predicate *both = members_join(&again);
        made->argument = members_join(&arguments);
        if (!members_add(&events, predicate_group(GROUP_ANY, &both, 1)) || !made->argument)
            goto failed;
    }
    if (events.count && !(made->event = members_join(&events)))
        goto failed;
    return SQLITE_OK;
failed:
    members_free(&events);
    members_free(&arguments);
    members_free(&again);
    conditions_free(made);
    return answer;
}

void conditions_free(struct conditions *conditions)
{
    predicate_free(conditions->event);
    predicate_free(conditions->argument);
    *conditions = (struct conditions){0};
}
