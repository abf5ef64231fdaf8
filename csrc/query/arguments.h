/* An event's arguments as JSON: [{"name": "user", "value": "'bob'", "type": "str"}], in ASCII, as
 * docs/json.md has them, those with attributes with a list of them. No Python, no SQLite.
 */
#ifndef PYTRACE_ARGUMENTS_H
#define PYTRACE_ARGUMENTS_H

#include "query/run_definitions.h"

/* A text that grows. Zeroed it is empty; free(text) at the end. */
struct text_buffer {
    char *text;
    size_t size, capacity;
};

/* Makes room for `more` bytes at the end. False: no memory. */
bool text_reserve(struct text_buffer *buffer, size_t more);

typedef size_t text_writer(const struct value *, const struct text_names *, char *, size_t);

/* Appends the text of text_value, text_bare or text_type. False: no memory. */
bool text_append(struct text_buffer *buffer, text_writer *write, const struct value *value,
                 const struct text_names *names);

/* False: the string has lone surrogates, or is no UTF-8 at all; readers of UTF-8 would fail at
 * it. */
bool string_is_utf8(struct string string);

/* Appends a name as text_plain shows it. */
bool text_append_plain(struct text_buffer *buffer, struct string name);

/* Walks an event's arguments as SQL and JSON have them: each with its name, and only those that
 * have one; also the count of a lost event. Of a line only the variables that have changed. Start
 * with a zeroed walk. */
struct argument_walk {
    uint32_t next;                       /* position of the next one */
    const uint8_t *values, *names;       /* the places of event_value and event_name */
    struct event_variables variables;    /* of a line */
    char number[32];                     /* for names that are made */
};

struct argument {
    uint32_t position;                   /* from 0 */
    struct string name;                  /* valid until the walk goes on */
    struct value value;
};

bool argument_next(struct argument_walk *walk, const struct event *event, const struct run_code *code,
                   struct argument *argument);

/* Appends the JSON array. False: no memory. */
bool arguments_json(struct text_buffer *buffer, const struct event *event, const struct run_code *code,
                    const struct text_names *names);

/* Whether a value has parts that can be looked at one by one. */
bool value_has_items(const struct value *value, const struct text_names *names);

/* Appends them as JSON: [{"name": "[0]", "value": "1", "type": "int"}], those with parts of their
 * own with a list "items". Names are as one would write them behind the value: [0], ['key']; an
 * attribute's or a named tuple's is bare. False: no memory. */
bool items_json(struct text_buffer *buffer, const struct value *value, const struct text_names *names);

#endif
