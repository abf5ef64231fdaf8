/* Recorded values as text; see text.h. Numbers are in number.c.
 *
 * Everything goes through `struct out`, which counts what does not fit; so no length is ever
 * computed twice.
 */
#include "query/text.h"

#include "query/known.h"
#include "query/number.h"

/* The type that the content alone implies; NULL: none. */
static const char *implied_type(const struct value *value)
{
    static const char *const constants[] = {
        [CONSTANT_NONE] = "NoneType",
        [CONSTANT_FALSE] = "bool",
        [CONSTANT_TRUE] = "bool",
        [CONSTANT_ELLIPSIS] = "ellipsis",
        [CONSTANT_NOT_IMPLEMENTED] = "NotImplementedType",
        [CONSTANT_CYCLE] = NULL,
        [CONSTANT_DELETED] = NULL, /* and the size of the array */
    };
    static const char *const containers[] = {
        [CONTAINER_LIST] = "list", [CONTAINER_TUPLE] = "tuple",         [CONTAINER_DICT] = "dict",
        [CONTAINER_SET] = "set",   [CONTAINER_FROZENSET] = "frozenset", [CONTAINER_EXCEPTION] = NULL,
        [CONTAINER_PARTS] = NULL,
    };
    static const char *const named[] = {
        [NAMED_FUNCTION] = "function",
        [NAMED_METHOD] = "method",
        [NAMED_BUILTIN] = "builtin_function_or_method",
        [NAMED_CLASS] = "type",
        [NAMED_MODULE] = "module",
    };
    switch (value->content) {
    case VALUE_CONSTANT:
        return constants[value->constant];
    case VALUE_INTEGER:
    case VALUE_BIG:
        return "int";
    case VALUE_FLOATING:
        return "float";
    case VALUE_TEXT:
        return "str";
    case VALUE_DATA:
        return "bytes";
    case VALUE_CONTAINER:
        return containers[value->container];
    case VALUE_NAMED:
        return named[value->named];
    default:
        return NULL;
    }
}

/* ---- values ------------------------------------------------------------------------------- */

bool attribute_next(struct attribute_walk *walk, const struct value *value, const struct text_names *names,
                    struct string *name, struct value *item)
{
    const struct string *found;
    if (!walk->next && !text_has_attributes(value, names))
        return false;
    found = names->attribute_name(names->context, value->type, walk->next);
    if (!found || !value_item(value, &walk->items, item))
        return false;
    *name = *found;
    walk->next++;
    return true;
}

static void put_value(struct out *out, const struct value *value, const struct text_names *names);

static void put_constant(struct out *out, enum value_constant constant)
{
    static const char *const texts[] = {
        [CONSTANT_NONE] = "None",
        [CONSTANT_FALSE] = "False",
        [CONSTANT_TRUE] = "True",
        [CONSTANT_ELLIPSIS] = "Ellipsis",
        [CONSTANT_NOT_IMPLEMENTED] = "NotImplemented",
        [CONSTANT_REDACTED] = "<redacted>",
        [CONSTANT_CUT] = "...",
        [CONSTANT_UNBOUND] = "<unbound>",
        [CONSTANT_DELETED] = "<deleted>",
    };
    out_string(out, texts[constant]);
}

/* A container within itself: repr shows the empty brackets of its kind. */
static const char *cycle_text(const char *type)
{
    static const struct { const char *type, *text; } cycles[] = {
        {"list", "[...]"}, {"tuple", "(...)"}, {"dict", "{...}"}, /* sets cannot */
    };
    for (size_t i = 0; type && i < sizeof cycles / sizeof *cycles; i++)
        if (!strcmp(type, cycles[i].type))
            return cycles[i].text;
    return "...";
}

static void put_floating(struct out *out, double number)
{
    char text[NUMBER_FLOATING_MAX];
    out_put(out, text, number_floating(number, text));
}

static void put_big(struct out *out, const struct value *value)
{
    char text[NUMBER_BIG_MAX];
    bool whole;
    size_t size = number_big(value->bytes, value->size, value->length, text, &whole);
    out_put(out, text, size);
    if (!whole)
        out_string(out, "...");
}

static void put_items(struct out *out, const struct value *value, const struct text_names *names)
{
    const uint8_t *cursor = NULL;
    struct value item;
    bool pairs = value->container == CONTAINER_DICT;
    uint32_t count = 0;

    for (; value_item(value, &cursor, &item); count++) {
        if (count)
            out_string(out, pairs && count % 2 ? ": " : ", ");
        put_value(out, &item, names);
    }
    if (pairs && count % 2)
        out_string(out, ": ...");
    if (value->has_length)
        out_string(out, count ? ", ..." : "...");
    else if (value->container == CONTAINER_TUPLE && count == 1)
        out_string(out, ",");
}

/* `subclass`: the type's name stands in front already. */
static void put_container(struct out *out, const struct value *value, const struct text_names *names,
                          bool subclass)
{
    static const char *const brackets[] = {
        [CONTAINER_LIST] = "[]", [CONTAINER_TUPLE] = "()",     [CONTAINER_DICT] = "{}",
        [CONTAINER_SET] = "{}",  [CONTAINER_FROZENSET] = "{}", [CONTAINER_EXCEPTION] = "()",
        [CONTAINER_PARTS] = "<>",
    };
    const char *bracket = brackets[value->container];
    bool set = value->container == CONTAINER_SET || value->container == CONTAINER_FROZENSET;
    bool empty = !value->item_count && !value->has_length;
    bool call = value->container == CONTAINER_FROZENSET && !subclass;

    if (set && empty) { /* {} is a dict: set(), frozenset(), Tags() */
        if (!subclass)
            out_string(out, value->container == CONTAINER_SET ? "set()" : "frozenset()");
        return;
    }
    if (call)
        out_string(out, "frozenset(");
    out_put(out, bracket, 1);
    put_items(out, value, names);
    out_put(out, bracket + 1, 1);
    if (call)
        out_string(out, ")");
}

static void put_named(struct out *out, const struct value *value, const struct text_names *names)
{
    static const char *const heads[] = {
        [NAMED_FUNCTION] = "<function ", [NAMED_METHOD] = "<bound method ",
            [NAMED_BUILTIN] = "<built-in function ",
        [NAMED_CLASS] = "<class '",      [NAMED_MODULE] = "<module '",
    };
    bool quoted = value->named == NAMED_CLASS || value->named == NAMED_MODULE;

    out_string(out, heads[value->named]);
    if (value->named == NAMED_CLASS)
        out_type(out, out_type_name(value, names), false);
    else
        out_text(out, value->bytes, value->size, ONE_LINE, 0);
    if (value->has_length)
        out_string(out, "...");
    out_string(out, quoted ? "'>" : ">");
}

static void put_address(struct out *out, const struct value *value, const struct text_names *names)
{
    static const char hex[] = "0123456789abcdef";
    char text[16];
    size_t size = 0;
    uint64_t rest = value->address;

    do
        text[sizeof text - ++size] = hex[rest & 15];
    while (rest >>= 4);
    out_string(out, "<");
    out_type(out, out_type_name(value, names), false);
    out_string(out, " at 0x");
    out_put(out, text + sizeof text - size, size);
    out_string(out, ">");
}

static const struct string *field_name(const struct value *value, const struct text_names *names, uint32_t position)
{
    return value->type && names && names->field_name ? names->field_name(names->context, value->type, position)
                                                     : NULL;
}

/* A named tuple with the names of its items. */
static void put_named_tuple(struct out *out, const struct value *value, const struct text_names *names)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;

    out_type(out, out_type_name(value, names), true);
    out_string(out, "(");
    for (; value_item(value, &cursor, &item); count++) {
        const struct string *name = field_name(value, names, count);
        out_string(out, count ? ", " : "");
        if (name) {
            out_text(out, (const uint8_t *)name->text, name->size, ONE_LINE, 0);
            out_string(out, "=");
        }
        put_value(out, &item, names);
    }
    if (value->has_length)
        out_string(out, count ? ", ..." : "...");
    out_string(out, ")");
}

static void put_attributes(struct out *out, const struct value *value, const struct text_names *names)
{
    struct attribute_walk walk = {0};
    struct string name;
    struct value item;

    out_type(out, out_type_name(value, names), false);
    out_string(out, "(");
    while (attribute_next(&walk, value, names, &name, &item)) {
        if (walk.next > 1)
            out_string(out, ", ");
        out_text(out, (const uint8_t *)name.text, name.size, ONE_LINE, 0);
        out_string(out, "=");
        put_value(out, &item, names);
    }
    out_string(out, value->has_length ? ", ...)" : ")");
}

/* Content of a later version: its type, if it has one. */
static void put_only_type(struct out *out, const struct value *value, const struct text_names *names)
{
    out_string(out, "<");
    if (value->type)
        out_type(out, out_type_name(value, names), false);
    else
        out_string(out, "unknown");
    out_string(out, ">");
}

/* The content of an instance of a built-in type or of a subclass of it. */
static void put_content(struct out *out, const struct value *value, const struct text_names *names,
                        bool subclass)
{
    switch (value->content) {
    case VALUE_INTEGER:
        out_integer(out, value->integer);
        break;
    case VALUE_BIG:
        put_big(out, value);
        return;
    case VALUE_FLOATING:
        put_floating(out, value->floating);
        break;
    case VALUE_TEXT:
        out_quoted(out, value->bytes, value->size);
        break;
    case VALUE_DATA:
        out_data(out, value->bytes, value->size);
        break;
    default:
        put_container(out, value, names, subclass);
        return;
    }
    if (value->has_length)
        out_string(out, "...");
}

static void put_value(struct out *out, const struct value *value, const struct text_names *names)
{
    switch (value->content) {
    case VALUE_CONSTANT:
        if (value->constant == CONSTANT_CYCLE)
            out_string(out, cycle_text(out_type_name(value, names)));
        else
            put_constant(out, value->constant);
        break;
    case VALUE_NAMED:
        put_named(out, value, names);
        break;
    case VALUE_ADDRESS:
        if (text_has_attributes(value, names))
            put_attributes(out, value, names);
        else
            put_address(out, value, names);
        break;
    case VALUE_REPR:
        out_text(out, value->bytes, value->size, ONE_LINE, 0);
        if (value->has_length)
            out_string(out, "...");
        break;
    case VALUE_INTEGER:
    case VALUE_FLOATING:
    case VALUE_TEXT:
    case VALUE_DATA:
    case VALUE_BIG:
    case VALUE_CONTAINER:
        if (value->content == VALUE_CONTAINER && value->container == CONTAINER_TUPLE &&
            field_name(value, names, 0)) {
            put_named_tuple(out, value, names);
        } else if (value->content == VALUE_CONTAINER && value->container == CONTAINER_PARTS) {
            if (!known_value(out, value, names))
                put_only_type(out, value, names);
        } else if (value->content == VALUE_CONTAINER && value->container == CONTAINER_EXCEPTION) {
            out_type(out, out_type_name(value, names), true);
            put_container(out, value, names, true);
        } else if (value->type) {
            out_type(out, out_type_name(value, names), true);
            out_string(out, "(");
            put_content(out, value, names, true);
            out_string(out, ")");
        } else {
            put_content(out, value, names, false);
        }
        break;
    default: /* no content, or one that a later version writes */
        put_only_type(out, value, names);
    }
}

/* ---- what others call --------------------------------------------------------------------- */

size_t text_value(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {.buffer = buffer, .capacity = capacity, .value = put_value};
    put_value(&out, value, names);
    return out.length;
}

size_t text_bare(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {.buffer = buffer, .capacity = capacity, .value = put_value};
    if (text_is_bare(value, names))
        return text_value(value, names, buffer, capacity);
    if (value->content == VALUE_ADDRESS) {
        put_address(&out, value, names);
        return out.length;
    }
    out_text(&out, value->bytes, value->size, BARE, 0);
    if (value->has_length)
        out_string(&out, "...");
    return out.length;
}

size_t text_type(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {.buffer = buffer, .capacity = capacity, .value = put_value};
    bool itself = value->content == VALUE_NAMED && value->named == NAMED_CLASS;
    const char *name = itself || !value->type ? implied_type(value) : out_type_name(value, names);
    if (name)
        out_type(&out, name, false);
    return out.length;
}

size_t text_plain(const uint8_t *bytes, size_t size, char *buffer, size_t capacity)
{
    struct out out = {.buffer = buffer, .capacity = capacity, .value = put_value};
    out_text(&out, bytes, size, ONE_LINE, 0);
    return out.length;
}
