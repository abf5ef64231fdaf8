/* Recorded values as text; see text.h. Numbers are in number.c.
 *
 * Everything goes through `struct out`, which counts what does not fit; so no length is ever
 * computed twice.
 */
#include "text.h"

#include "number.h"
#include "unprintable.h" /* made by core_build.py: what str.isprintable denies */

struct out {
    char *buffer;
    size_t capacity; /* shrinks to what is written once something did not fit */
    size_t length;   /* of the whole */
};

static const char hex[] = "0123456789abcdef";

/* ASCII: may be cut anywhere. */
static void put(struct out *out, const char *text, size_t size)
{
    if (out->length < out->capacity) {
        size_t room = out->capacity - out->length;
        memcpy(out->buffer + out->length, text, size < room ? size : room);
    }
    out->length += size;
}

static void put_string(struct out *out, const char *text) { put(out, text, strlen(text)); }

/* One character beyond ASCII: all of it or nothing, and then nothing more. */
static void put_character(struct out *out, const uint8_t *utf8, size_t size)
{
    if (out->length < out->capacity && out->capacity - out->length < size) {
        memset(out->buffer + out->length, 0, out->capacity - out->length);
        out->capacity = out->length;
    }
    put(out, (const char *)utf8, size);
}

static void put_hex(struct out *out, char letter, uint32_t code, int digits)
{
    char text[10] = {'\\', letter};
    for (int i = 0; i < digits; i++)
        text[2 + i] = hex[code >> 4 * (digits - 1 - i) & 15];
    put(out, text, 2 + (size_t)digits);
}

/* ---- strings and bytes -------------------------------------------------------------------- */

/* Decodes one character beyond ASCII, lone surrogates included. Returns its size, or 0 for what is
 * no UTF-8. */
static size_t get_character(const uint8_t *p, const uint8_t *end, uint32_t *code)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = *p >= 0xf8 ? 0 : *p >= 0xf0 ? 4 : *p >= 0xe0 ? 3 : *p >= 0xc0 ? 2 : 0;

    if (!size || (size_t)(end - p) < size)
        return 0;
    *code = *p & (0x7fu >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3f);
    }
    return *code < smallest[size] || *code > 0x10ffff ? 0 : size;
}

static bool is_printable(uint32_t code)
{
    size_t low = 0, high = sizeof unprintable / sizeof *unprintable;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (code > unprintable[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    /* the last range ends at the last code point */
    return code < unprintable[low].first;
}

/* What is escaped besides lone surrogates and NUL. */
enum escapes {
    BARE,      /* nothing */
    ONE_LINE,  /* what is not printable */
    IN_QUOTES, /* the backslash and the quote, too */
};

static void put_escape(struct out *out, uint32_t code)
{
    if (code == '\n' || code == '\r' || code == '\t')
        put_string(out, code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t");
    else if (code <= 0xff)
        put_hex(out, 'x', code, 2);
    else if (code <= 0xffff)
        put_hex(out, 'u', code, 4);
    else
        put_hex(out, 'U', code, 8);
}

static void put_text(struct out *out, const uint8_t *p, size_t size, enum escapes escapes, char quote)
{
    const uint8_t *end = size ? p + size : p; /* p may be NULL when there is nothing */
    while (p < end) {
        /* as is: most of most texts */
        const uint8_t *run = p;
        while (p < end && *p >= ' ' && *p < 0x7f && !(escapes == IN_QUOTES && (*p == '\\' || *p == quote)))
            p++;
        put(out, (const char *)run, (size_t)(p - run));
        if (p == end)
            break;
        if (*p < 0x80) {
            if (*p >= ' ' && *p < 0x7f)
                put(out, (char[]){'\\', (char)*p}, 2);
            else if (escapes == BARE && *p)
                put(out, (const char *)p, 1);
            else
                put_escape(out, *p);
            p++;
            continue;
        }
        uint32_t code;
        size_t length = get_character(p, end, &code);
        if (!length) {
            put_character(out, (const uint8_t *)"\xef\xbf\xbd", 3); /* U+FFFD */
            p++;
        } else {
            bool surrogate = code >= 0xd800 && code <= 0xdfff;
            if (surrogate || (escapes != BARE && !is_printable(code)))
                put_escape(out, code);
            else
                put_character(out, p, length);
            p += length;
        }
    }
}

/* ' unless that would need escapes that " does not. */
static char quote_for(const uint8_t *bytes, size_t size)
{
    return size && memchr(bytes, '\'', size) && !memchr(bytes, '"', size) ? '"' : '\'';
}

static void put_quoted(struct out *out, const uint8_t *bytes, size_t size)
{
    char quote = quote_for(bytes, size);
    put(out, &quote, 1);
    put_text(out, bytes, size, IN_QUOTES, quote);
    put(out, &quote, 1);
}

static void put_data(struct out *out, const uint8_t *bytes, size_t size)
{
    char quote = quote_for(bytes, size);
    put(out, (char[]){'b', quote}, 2);
    for (size_t i = 0; i < size; i++) {
        char c = (char)bytes[i];
        if (c == quote || c == '\\')
            put(out, (char[]){'\\', c}, 2);
        else if (bytes[i] >= ' ' && bytes[i] < 0x7f)
            put(out, &c, 1);
        else
            put_escape(out, bytes[i]);
    }
    put(out, &quote, 1);
}

/* ---- types -------------------------------------------------------------------------------- */

static const char *type_name(const struct value *value, const struct text_names *names)
{
    return value->type && names ? names->type_name(names->context, value->type) : NULL;
}

/* The whole name, or its last part, as __name__ and __qualname__ have it. */
static void put_type(struct out *out, const char *name, bool last)
{
    const char *dot = name && last ? strrchr(name, '.') : NULL;
    if (!name)
        name = "?";
    if (dot)
        name = dot + 1;
    put_text(out, (const uint8_t *)name, strlen(name), ONE_LINE, 0);
}

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
    };
    static const char *const containers[] = {
        [CONTAINER_LIST] = "list", [CONTAINER_TUPLE] = "tuple",         [CONTAINER_DICT] = "dict",
        [CONTAINER_SET] = "set",   [CONTAINER_FROZENSET] = "frozenset", [CONTAINER_EXCEPTION] = NULL,
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
    };
    put_string(out, texts[constant]);
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

static void put_integer(struct out *out, int64_t n)
{
    char text[NUMBER_INTEGER_MAX];
    put(out, text, number_integer(n, text));
}

static void put_floating(struct out *out, double number)
{
    char text[NUMBER_FLOATING_MAX];
    put(out, text, number_floating(number, text));
}

static void put_big(struct out *out, const struct value *value)
{
    char text[NUMBER_BIG_MAX];
    bool whole;
    size_t size = number_big(value->bytes, value->size, value->length, text, &whole);
    put(out, text, size);
    if (!whole)
        put_string(out, "...");
}

static void put_items(struct out *out, const struct value *value, const struct text_names *names)
{
    const uint8_t *cursor = NULL;
    struct value item;
    bool pairs = value->container == CONTAINER_DICT;
    uint32_t count = 0;

    for (; value_item(value, &cursor, &item); count++) {
        if (count)
            put_string(out, pairs && count % 2 ? ": " : ", ");
        put_value(out, &item, names);
    }
    if (pairs && count % 2)
        put_string(out, ": ...");
    if (value->has_length)
        put_string(out, count ? ", ..." : "...");
    else if (value->container == CONTAINER_TUPLE && count == 1)
        put_string(out, ",");
}

/* `subclass`: the type's name stands in front already. */
static void put_container(struct out *out, const struct value *value, const struct text_names *names,
                          bool subclass)
{
    static const char *const brackets[] = {
        [CONTAINER_LIST] = "[]", [CONTAINER_TUPLE] = "()",     [CONTAINER_DICT] = "{}",
        [CONTAINER_SET] = "{}",  [CONTAINER_FROZENSET] = "{}", [CONTAINER_EXCEPTION] = "()",
    };
    const char *bracket = brackets[value->container];
    bool set = value->container == CONTAINER_SET || value->container == CONTAINER_FROZENSET;
    bool empty = !value->item_count && !value->has_length;
    bool call = value->container == CONTAINER_FROZENSET && !subclass;

    if (set && empty) { /* {} is a dict: set(), frozenset(), Tags() */
        if (!subclass)
            put_string(out, value->container == CONTAINER_SET ? "set()" : "frozenset()");
        return;
    }
    if (call)
        put_string(out, "frozenset(");
    put(out, bracket, 1);
    put_items(out, value, names);
    put(out, bracket + 1, 1);
    if (call)
        put_string(out, ")");
}

static void put_named(struct out *out, const struct value *value, const struct text_names *names)
{
    static const char *const heads[] = {
        [NAMED_FUNCTION] = "<function ", [NAMED_METHOD] = "<bound method ", [NAMED_BUILTIN] = "<built-in function ",
        [NAMED_CLASS] = "<class '",      [NAMED_MODULE] = "<module '",
    };
    bool quoted = value->named == NAMED_CLASS || value->named == NAMED_MODULE;

    put_string(out, heads[value->named]);
    if (value->named == NAMED_CLASS)
        put_type(out, type_name(value, names), false);
    else
        put_text(out, value->bytes, value->size, ONE_LINE, 0);
    if (value->has_length)
        put_string(out, "...");
    put_string(out, quoted ? "'>" : ">");
}

static void put_address(struct out *out, const struct value *value, const struct text_names *names)
{
    char text[16];
    size_t size = 0;
    uint64_t rest = value->address;

    do
        text[sizeof text - ++size] = hex[rest & 15];
    while (rest >>= 4);
    put_string(out, "<");
    put_type(out, type_name(value, names), false);
    put_string(out, " at 0x");
    put(out, text + sizeof text - size, size);
    put_string(out, ">");
}

/* The content of an instance of a built-in type or of a subclass of it. */
static void put_content(struct out *out, const struct value *value, const struct text_names *names,
                        bool subclass)
{
    switch (value->content) {
    case VALUE_INTEGER:
        put_integer(out, value->integer);
        break;
    case VALUE_BIG:
        put_big(out, value);
        return;
    case VALUE_FLOATING:
        put_floating(out, value->floating);
        break;
    case VALUE_TEXT:
        put_quoted(out, value->bytes, value->size);
        break;
    case VALUE_DATA:
        put_data(out, value->bytes, value->size);
        break;
    default:
        put_container(out, value, names, subclass);
        return;
    }
    if (value->has_length)
        put_string(out, "...");
}

static void put_value(struct out *out, const struct value *value, const struct text_names *names)
{
    switch (value->content) {
    case VALUE_CONSTANT:
        if (value->constant == CONSTANT_CYCLE)
            put_string(out, cycle_text(type_name(value, names)));
        else
            put_constant(out, value->constant);
        break;
    case VALUE_NAMED:
        put_named(out, value, names);
        break;
    case VALUE_ADDRESS:
        put_address(out, value, names);
        break;
    case VALUE_REPR:
        put_text(out, value->bytes, value->size, ONE_LINE, 0);
        if (value->has_length)
            put_string(out, "...");
        break;
    case VALUE_INTEGER:
    case VALUE_FLOATING:
    case VALUE_TEXT:
    case VALUE_DATA:
    case VALUE_BIG:
    case VALUE_CONTAINER:
        if (value->content == VALUE_CONTAINER && value->container == CONTAINER_EXCEPTION) {
            put_type(out, type_name(value, names), true);
            put_container(out, value, names, true);
        } else if (value->type) {
            put_type(out, type_name(value, names), true);
            put_string(out, "(");
            put_content(out, value, names, true);
            put_string(out, ")");
        } else {
            put_content(out, value, names, false);
        }
        break;
    default: /* no content, or one that a later version writes */
        put_string(out, "<unknown>");
    }
}

/* ---- what others call --------------------------------------------------------------------- */

size_t text_value(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {buffer, capacity, 0};
    put_value(&out, value, names);
    return out.length;
}

size_t text_bare(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {buffer, capacity, 0};
    if (value->content != VALUE_TEXT)
        return text_value(value, names, buffer, capacity);
    put_text(&out, value->bytes, value->size, BARE, 0);
    if (value->has_length)
        put_string(&out, "...");
    return out.length;
}

size_t text_type(const struct value *value, const struct text_names *names, char *buffer, size_t capacity)
{
    struct out out = {buffer, capacity, 0};
    bool itself = value->content == VALUE_NAMED && value->named == NAMED_CLASS;
    const char *name = itself || !value->type ? implied_type(value) : type_name(value, names);
    if (name)
        put_type(&out, name, false);
    return out.length;
}

size_t text_plain(const uint8_t *bytes, size_t size, char *buffer, size_t capacity)
{
    struct out out = {buffer, capacity, 0};
    put_text(&out, bytes, size, ONE_LINE, 0);
    return out.length;
}
