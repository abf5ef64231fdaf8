/* The inside of a predicate, only for predicate_make.c, predicate_ask.c and predicate_rest.c. */
#ifndef PYTRACE_PREDICATE_TREE_H
#define PYTRACE_PREDICATE_TREE_H

#include "query/like.h"
#include "query/predicate.h"

enum op {
    OP_AND, OP_OR, OP_NOT, OP_ANY, /* as enum group */
    OP_RANGE, OP_NUMBERS, OP_KINDS, OP_SHOWN, OP_TEXTS, OP_LIKE, OP_PLAIN,
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
    bool not_numbered;    /* ... nor does "argument N", nor "variable N" */
    size_t longest;       /* ... nor any text that is longer */
    struct required_literal literal;   /* of a condition on a value; text NULL: there is none */
    union {
        struct range range;
        struct numbers numbers;
        uint32_t kinds;   /* 1 << kind for each that meets it */
        enum view view;
        struct texts texts;
        struct like *like;
        struct members members;
    };
};

/* An empty node; NULL: no memory. */
struct predicate *predicate_make(enum op op, enum field field);

/* Compares two struct string by size, then bytes; for qsort and bsearch. */
int predicate_compare_texts(const void *left, const void *right);

/* Whether a text meets a condition on texts. */
bool predicate_test_text(const struct predicate *predicate, const char *text, size_t size);

/* The answer of any(predicate) for events with these facts. If values are not known, it depends on
 * the names of the arguments that they may have. */
enum answer predicate_ask_any(const struct predicate *predicate, const struct facts *facts);
enum answer predicate_any_by_name(const struct predicate *predicate, const struct facts *facts);

static inline bool is_of_argument(enum field field) { return field >= FIELD_NAME || field == FIELD_POSITION; }

static inline enum answer not(enum answer answer)
{
    return answer == MAYBE ? MAYBE : answer == ALWAYS ? NEVER : ALWAYS;
}

#endif
