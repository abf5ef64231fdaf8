/* Objects of known types as text; see known.h. Each form has its writer, in a table at the end.
 *
 * The parts come from a file and may be anything: what is missing or of another kind is shown as a
 * question mark.
 */
#include "query/known.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "query/number.h"

#define PARTS 8 /* that any form but those of any length has at most */

/* An object and its parts, decoded. */
struct known {
    struct out *out;
    const struct value *value;
    const struct text_names *names;
    struct value parts[PARTS];
    uint32_t count;
};

/* ---- parts -------------------------------------------------------------------------------- */

static const struct value *part(const struct known *known, uint32_t i)
{
    return i < known->count ? &known->parts[i] : NULL;
}

static int64_t integer(const struct known *known, uint32_t i)
{
    const struct value *found = part(known, i);
    return found && found->content == VALUE_INTEGER ? found->integer : 0;
}

static bool is_true(const struct known *known, uint32_t i)
{
    const struct value *found = part(known, i);
    return found && found->content == VALUE_CONSTANT && found->constant == CONSTANT_TRUE;
}

static bool is_none(const struct known *known, uint32_t i)
{
    const struct value *found = part(known, i);
    return !found || (found->content == VALUE_CONSTANT && found->constant == CONSTANT_NONE);
}

/* The bytes of a text or of data; NULL: it is none. */
static const uint8_t *bytes(const struct known *known, uint32_t i, size_t *size)
{
    const struct value *found = part(known, i);
    *size = 0;
    if (!found || (found->content != VALUE_TEXT && found->content != VALUE_DATA))
        return NULL;
    *size = found->size;
    return found->bytes;
}

static void put(struct known *known, const char *text) { out_string(known->out, text); }

static void put_number(struct known *known, int64_t n) { out_integer(known->out, n); }

static void put_part(struct known *known, uint32_t i)
{
    const struct value *found = part(known, i);
    if (found)
        known->out->value(known->out, found, known->names);
    else
        put(known, "?");
}

/* A text without quotes; any other value as it is. */
static void put_bare(struct known *known, uint32_t i)
{
    size_t size;
    const uint8_t *text = bytes(known, i, &size);
    const struct value *found = part(known, i);
    if (!text || found->content != VALUE_TEXT) {
        put_part(known, i);
        return;
    }
    out_text(known->out, text, size, ONE_LINE, 0);
    if (found->has_length)
        put(known, "...");
}

static void put_hex(struct known *known, uint64_t n)
{
    char text[16];
    size_t size = 0;
    do
        text[sizeof text - ++size] = "0123456789abcdef"[n & 15];
    while (n >>= 4);
    put(known, "0x");
    out_put(known->out, text + sizeof text - size, size);
}

static void put_where(struct known *known, uint32_t i)
{
    const struct value *found = part(known, i);
    put(known, " at ");
    put_hex(known, found && found->content == VALUE_ADDRESS ? found->address : 0);
}

/* The type's name: its last part, or all of it. */
static void put_type(struct known *known, bool last)
{
    const char *name = out_type_name(known->value, known->names);
    if (name && !strcmp(name, "types.SimpleNamespace")) /* it calls itself so */
        name = "namespace";
    else if (name && !strcmp(name, "_contextvars.ContextVar"))
        name = "ContextVar";
    out_type(known->out, name, last);
}

/* That of the type itself with its module, that of a subclass without. */
static void put_type_of(struct known *known, const char *type)
{
    const char *name = out_type_name(known->value, known->names);
    put_type(known, !name || strcmp(name, type) != 0);
}

/* ---- forms of any number of items --------------------------------------------------------- */

enum { NAMELESS, NAMED_ITEM, BEFORE };

static int naming(const struct value *item)
{
    return !item->keyword ? NAMELESS : item->keyword_size ? NAMED_ITEM : BEFORE;
}

static void put_items(struct known *known, const char *separator, bool pairs, const char *open, const char *close)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;

    put(known, open);
    while (value_item(known->value, &cursor, &item)) {
        if (naming(&item) != NAMELESS)
            continue;
        if (count)
            put(known, pairs && count % 2 ? separator : ", ");
        if (*separator == ',' && pairs && count % 2 == 0)
            put(known, "(");
        known->out->value(known->out, &item, known->names);
        if (*separator == ',' && pairs && count % 2)
            put(known, ")");
        count++;
    }
    if (pairs && count % 2)
        put(known, *separator == ',' ? ", ...)" : ": ...");
    if (known->value->has_length)
        put(known, count ? ", ..." : "...");
    put(known, close);
}

/* Type(before, […], name=named) */
static void put_collection(struct known *known, const char *separator, bool pairs, const char *open,
                           const char *close)
{
    const uint8_t *cursor = NULL;
    struct value item;

    put_type(known, true);
    put(known, "(");
    while (value_item(known->value, &cursor, &item))
        if (naming(&item) == BEFORE) {
            known->out->value(known->out, &item, known->names);
            put(known, ", ");
        }
    put_items(known, separator, pairs, open, close);
    for (cursor = NULL; value_item(known->value, &cursor, &item);)
        if (naming(&item) == NAMED_ITEM) {
            put(known, ", ");
            out_text(known->out, item.keyword, item.keyword_size, ONE_LINE, 0);
            put(known, "=");
            known->out->value(known->out, &item, known->names);
        }
    put(known, ")");
}

static void put_list(struct known *known) { put_collection(known, ", ", false, "[", "]"); }

static bool is_empty(const struct known *known)
{
    const uint8_t *cursor = NULL;
    struct value item;
    while (value_item(known->value, &cursor, &item))
        if (naming(&item) == NAMELESS)
            return false;
    return !known->value->has_length;
}

static void put_dict(struct known *known)
{
    const char *name = out_type_name(known->value, known->names);
    if (is_empty(known) && name && !strcmp(name, "collections.OrderedDict"))
        put(known, "OrderedDict()");
    else
        put_collection(known, ": ", true, "{", "}");
}

static void put_pairs(struct known *known) { put_collection(known, ", ", true, "[", "]"); }

/* Whether numbers can be ordered: all but a NaN and what is cut. */
static bool is_ordered(const struct value *number)
{
    return number->content == VALUE_INTEGER || (number->content == VALUE_FLOATING && !isnan(number->floating)) ||
           (number->content == VALUE_BIG && !number->has_length && number->size > 1) ||
           (number->content == VALUE_CONSTANT &&
            (number->constant == CONSTANT_TRUE || number->constant == CONSTANT_FALSE));
}

static long double magnitude(const struct value *number)
{
    long double sum = 0;
    if (number->content == VALUE_INTEGER)
        return (long double)number->integer;
    if (number->content == VALUE_FLOATING)
        return (long double)number->floating;
    if (number->content == VALUE_CONSTANT)
        return number->constant == CONSTANT_TRUE;
    for (uint32_t i = 1; i < number->size; i++)
        sum = sum * 256 + number->bytes[i];
    return number->bytes[0] ? -sum : sum;
}

static bool is_more(const struct value *one, const struct value *other)
{
    long double difference = magnitude(one) - magnitude(other);
    if (difference != 0 || one->content != VALUE_BIG || other->content != VALUE_BIG || one->size != other->size)
        return magnitude(one) > magnitude(other);
    int order = memcmp(one->bytes + 1, other->bytes + 1, one->size - 1);
    return one->bytes[0] ? order < 0 : order > 0;
}

/* Counts from the largest, those that are equal in their order. */
#define COUNTS 16

static void put_counter(struct known *known)
{
    struct value items[2 * COUNTS];
    const uint8_t *cursor = NULL;
    uint32_t count = 0;

    if (is_empty(known)) {
        put_type(known, true);
        put(known, "()");
        return;
    }
    while (count < 2 * COUNTS && value_item(known->value, &cursor, &items[count]))
        count++;
    bool sortable = !known->value->has_length && count % 2 == 0 && count == known->value->item_count;
    for (uint32_t i = 1; i < count && sortable; i += 2)
        sortable = is_ordered(&items[i]);
    if (!sortable) {
        put_dict(known);
        return;
    }
    put_type(known, true);
    put(known, "({");
    for (uint32_t shown = 0; shown < count; shown += 2) {
        uint32_t largest = count;
        for (uint32_t i = 1; i < count; i += 2)
            if (items[i].content && (largest == count || is_more(&items[i], &items[largest])))
                largest = i;
        put(known, shown ? ", " : "");
        known->out->value(known->out, &items[largest - 1], known->names);
        put(known, ": ");
        known->out->value(known->out, &items[largest], known->names);
        items[largest].content = 0;
    }
    put(known, "})");
}

static void put_arguments(struct known *known)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;

    put(known, "(");
    for (; value_item(known->value, &cursor, &item); count++) {
        put(known, count ? ", " : "");
        if (item.keyword) {
            out_text(known->out, item.keyword, item.keyword_size, ONE_LINE, 0);
            put(known, item.keyword_size ? "=" : "");
        }
        known->out->value(known->out, &item, known->names);
    }
    if (known->value->has_length)
        put(known, count ? ", ..." : "...");
    put(known, ")");
}

static void put_call(struct known *known)
{
    put_type(known, true);
    put_arguments(known);
}

static void put_qualified(struct known *known)
{
    put_type(known, false);
    put_arguments(known);
}

static void put_states(struct known *known, const char *separator)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;

    put(known, "<");
    put_type(known, false);
    for (; value_item(known->value, &cursor, &item); count++) {
        put(known, count ? separator : " ");
        if (item.content == VALUE_ADDRESS && !item.type) {
            put(known, "at ");
            put_hex(known, item.address);
        } else if (item.content == VALUE_TEXT && !item.keyword_size) {
            out_text(known->out, item.bytes, item.size, ONE_LINE, 0);
        } else {
            out_text(known->out, item.keyword, item.keyword_size, ONE_LINE, 0);
            put(known, item.keyword_size ? "=" : "");
            known->out->value(known->out, &item, known->names);
        }
    }
    put(known, ">");
}

static void put_state(struct known *known) { put_states(known, " "); }
static void put_state_list(struct known *known) { put_states(known, ", "); }

/* ---- times -------------------------------------------------------------------------------- */

static void put_zone(struct known *known)
{
    if (known->count > 1) {
        put(known, ", tzinfo=");
        put_part(known, 1);
    }
}

static void put_day(struct known *known, const uint8_t *data)
{
    put_number(known, data[0] << 8 | data[1]);
    put(known, ", ");
    put_number(known, data[2]);
    put(known, ", ");
    put_number(known, data[3]);
}

/* hour, minute[, second[, microsecond]][, fold=1][, tzinfo=…]; a time has its fold at the end. */
static void put_clock(struct known *known, const uint8_t *data, bool is_time)
{
    int microsecond = data[3] << 16 | data[4] << 8 | data[5];

    put_number(known, data[0]);
    put(known, ", ");
    put_number(known, data[1]);
    if (data[2] || microsecond) {
        put(known, ", ");
        put_number(known, data[2]);
    }
    if (microsecond) {
        put(known, ", ");
        put_number(known, microsecond);
    }
    if (is_time)
        put_zone(known);
    if (data[6])
        put(known, ", fold=1");
    if (!is_time)
        put_zone(known);
}

static void put_date(struct known *known)
{
    size_t size;
    const uint8_t *data = bytes(known, 0, &size);
    put_type_of(known, "datetime.date");
    put(known, "(");
    if (size == 4)
        put_day(known, data);
    put(known, ")");
}

static void put_time(struct known *known)
{
    size_t size;
    const uint8_t *data = bytes(known, 0, &size);
    put_type_of(known, "datetime.time");
    put(known, "(");
    if (size == 7)
        put_clock(known, data, true);
    put(known, ")");
}

static void put_datetime(struct known *known)
{
    size_t size;
    const uint8_t *data = bytes(known, 0, &size);
    put_type_of(known, "datetime.datetime");
    put(known, "(");
    if (size == 11) {
        put_day(known, data);
        put(known, ", ");
        put_clock(known, data + 4, false);
    }
    put(known, ")");
}

static void put_timedelta(struct known *known)
{
    static const char *const names[] = {"days=", "seconds=", "microseconds="};
    bool any = false;

    put_type_of(known, "datetime.timedelta");
    put(known, "(");
    for (uint32_t i = 0; i < 3; i++)
        if (integer(known, i)) {
            put(known, any ? ", " : "");
            put(known, names[i]);
            put_number(known, integer(known, i));
            any = true;
        }
    put(known, any ? ")" : "0)");
}

static void put_timezone(struct known *known)
{
    put_type_of(known, "datetime.timezone");
    if (!known->count) {
        put(known, ".utc");
        return;
    }
    put_arguments(known);
}

/* ---- numbers ------------------------------------------------------------------------------ */

#define DECIMAL_SHOWN 228 /* digits: 12 words of 19 */

static void put_exponent(struct known *known, int64_t exponent)
{
    put(known, exponent < 0 ? "E" : "E+");
    put_number(known, exponent);
}

/* The digits with the point, as decimal's to-scientific-string. `whole`: all digits are there. */
static void put_coefficient(struct known *known, const char *digits, size_t size, int64_t total, int64_t exponent)
{
    bool whole = (int64_t)size == total;
    int64_t left = exponent > INT64_MAX / 2 || exponent < INT64_MIN / 2 || total > INT64_MAX / 2
                       ? 0
                       : total + exponent; /* before the point */
    bool plain = exponent <= 0 && left > -6;
    int64_t point = plain ? left : 1;

    if (!whole) { /* the first of them, and how large it is */
        out_put(known->out, digits, 1);
        put(known, ".");
        out_put(known->out, digits + 1, size - 1);
        put(known, "...");
        put_exponent(known, left - 1);
        return;
    }
    if (point <= 0) {
        put(known, "0.");
        for (; point < 0; point++)
            put(known, "0");
        out_put(known->out, digits, size);
    } else if ((uint64_t)point >= size) {
        out_put(known->out, digits, size);
    } else {
        out_put(known->out, digits, (size_t)point);
        put(known, ".");
        out_put(known->out, digits + point, size - (size_t)point);
    }
    if (!plain && left - 1)
        put_exponent(known, left - 1);
}

static void put_decimal(struct known *known)
{
    char digits[DECIMAL_SHOWN];
    int64_t flags = integer(known, 0), exponent = integer(known, 1), total = integer(known, 2);
    size_t size, count = 0;
    const uint8_t *data = bytes(known, 3, &size);

    /* the first word has what is left of the digits behind whole words */
    for (size_t at = 0; data && at + 8 <= size && total > 0; at += 8) {
        int in_word = at || total % 19 == 0 ? 19 : (int)(total % 19);
        uint64_t word = 0;
        for (int i = 0; i < 8; i++)
            word = word << 8 | data[at + (size_t)i];
        if (count + (size_t)in_word > sizeof digits || (int64_t)(count + (size_t)in_word) > total)
            break;
        for (int i = in_word; i-- > 0; word /= 10)
            digits[count + (size_t)i] = (char)('0' + word % 10);
        count += (size_t)in_word;
    }
    put_type(known, true);
    put(known, flags & 1 ? "('-" : "('");
    if (flags & 2)
        put(known, "Infinity");
    else if (flags & 12)
        put(known, flags & 8 ? "sNaN" : "NaN");
    if (flags & 12)
        out_put(known->out, digits, count);
    else if (!(flags & 2) && count)
        put_coefficient(known, digits, count, total, exponent);
    put(known, "')");
}

/* Without `.0`, with a sign where it is asked for. */
static void put_floating(struct known *known, uint32_t i, bool sign)
{
    const struct value *found = part(known, i);
    char text[NUMBER_FLOATING_MAX];
    if (!found || found->content != VALUE_FLOATING) {
        put(known, "?");
        return;
    }
    size_t size = number_floating(found->floating, text);
    if (size > 2 && text[size - 2] == '.' && text[size - 1] == '0')
        size -= 2;
    if (sign && text[0] != '-')
        put(known, "+");
    out_put(known->out, text, size);
}

static void put_complex(struct known *known)
{
    const struct value *real = part(known, 0);
    uint64_t bits = 1;
    const char *name = out_type_name(known->value, known->names);
    bool subclass = name && strcmp(name, "complex") != 0;

    if (real)
        memcpy(&bits, &real->floating, sizeof bits);
    if (subclass) {
        put_type(known, true);
        put(known, "(");
    }
    if (!bits) { /* exactly +0.0 */
        put_floating(known, 1, false);
        put(known, "j");
    } else {
        put(known, "(");
        put_floating(known, 0, false);
        put_floating(known, 1, true);
        put(known, "j)");
    }
    put(known, subclass ? ")" : "");
}

/* An int of up to 128 bits, the most significant byte first. */
static void get_bytes16(const struct value *number, uint8_t all[16])
{
    memset(all, 0, 16);
    if (number && number->content == VALUE_INTEGER)
        for (int i = 0; i < 8; i++)
            all[15 - i] = (uint8_t)((uint64_t)number->integer >> 8 * i);
    else if (number && number->content == VALUE_BIG && number->size <= 17 && number->size > 1)
        memcpy(all + 17 - number->size, number->bytes + 1, number->size - 1);
}

static void put_byte(struct known *known, uint8_t byte)
{
    out_put(known->out, (char[]){"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]}, 2);
}

static void put_uuid(struct known *known)
{
    uint8_t all[16];
    get_bytes16(part(known, 0), all);
    put_type(known, true);
    put(known, "('");
    for (int i = 0; i < 16; i++) {
        put(known, i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "");
        put_byte(known, all[i]);
    }
    put(known, "')");
}

/* ---- addresses ---------------------------------------------------------------------------- */

static void put_quad(struct known *known, const uint8_t *four)
{
    for (int i = 0; i < 4; i++) {
        put(known, i ? "." : "");
        put_number(known, four[i]);
    }
}

/* `quote`: that before the address. */
static void put_prefix(struct known *known, char quote)
{
    for (uint32_t i = 1; i < known->count; i++)
        if (known->parts[i].keyword) {
            put(known, "/");
            put_number(known, integer(known, i));
        }
    out_put(known->out, &quote, 1);
    put(known, ")");
}

static void put_ipv4(struct known *known)
{
    uint8_t all[16];
    get_bytes16(part(known, 0), all);
    put_type(known, true);
    put(known, "('");
    put_quad(known, all + 12);
    put_prefix(known, '\'');
}

static void put_ipv6(struct known *known)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t all[16];
    unsigned groups[8], most = 0, from = 0;
    char text[8];

    size_t scope_size;
    const uint8_t *scope = known->count > 1 && !known->parts[1].keyword ? bytes(known, 1, &scope_size) : NULL;
    char quote = scope && memchr(scope, '\'', scope_size) && !memchr(scope, '"', scope_size) ? '"' : '\'';

    get_bytes16(part(known, 0), all);
    put_type(known, true);
    put(known, "(");
    out_put(known->out, &quote, 1);
    for (unsigned i = 0; i < 8; i++)
        groups[i] = (unsigned)all[2 * i] << 8 | all[2 * i + 1];
    for (unsigned i = 0, run = 0; i < 8; i++) {
        run = groups[i] ? 0 : run + 1;
        if (run > most) {
            most = run;
            from = i + 1 - run;
        }
    }
    if (!memcmp(all, mapped, sizeof mapped)) {
        put(known, "::ffff:");
        put_quad(known, all + 12);
    } else {
        for (unsigned i = 0; i < 8; i++) {
            if (most > 1 && i == from) {
                put(known, "::");
                i += most - 1;
                continue;
            }
            put(known, i && !(most > 1 && i == from + most) ? ":" : "");
            size_t size = 0;
            for (unsigned rest = groups[i]; !size || rest; rest >>= 4)
                text[sizeof text - ++size] = "0123456789abcdef"[rest & 15];
            out_put(known->out, text + sizeof text - size, size);
        }
    }
    if (scope) {
        put(known, "%");
        out_text(known->out, scope, scope_size, IN_QUOTES, quote);
        put(known, known->parts[1].has_length ? "..." : "");
    }
    put_prefix(known, quote);
}

/* ---- others ------------------------------------------------------------------------------- */

static void put_enum(struct known *known)
{
    put(known, "<");
    put_type(known, true);
    if (!is_none(known, 0)) {
        put(known, ".");
        put_bare(known, 0);
    }
    put(known, ": ");
    put_part(known, 1);
    put(known, ">");
}

/* One name of a path. `any`: there is one before it. */
static void put_name(struct known *known, const uint8_t *name, size_t size, char quote, bool *any)
{
    if (*any)
        put(known, "/");
    out_text(known->out, name, size, IN_QUOTES, quote);
    *any = true;
}

/* As os.path.join joins them, without empty names and `.` between the slashes. */
static void put_path(struct known *known)
{
    struct value item;
    const uint8_t *cursor = NULL, *from = NULL;
    bool any = false, single = false, two = false;
    size_t slashes = 0;

    /* the last absolute one is where it begins; the quote is that of the whole */
    while (value_item(known->value, &cursor, &item))
        if (item.content == VALUE_TEXT && item.size && item.bytes[0] == '/')
            from = item.bytes;
    bool begun = !from;
    for (cursor = NULL; value_item(known->value, &cursor, &item);) {
        begun = begun || item.bytes == from;
        if (begun && item.content == VALUE_TEXT && item.size) {
            single = single || memchr(item.bytes, '\'', item.size);
            two = two || memchr(item.bytes, '"', item.size);
        }
    }
    char quote = single && !two ? '"' : '\'';
    put_type(known, true);
    put(known, "(");
    out_put(known->out, &quote, 1);
    begun = !from;
    for (cursor = NULL; value_item(known->value, &cursor, &item);) {
        if (item.content != VALUE_TEXT || (!begun && item.bytes != from))
            continue;
        const uint8_t *p = item.bytes, *end = p + item.size;
        if (!begun) {
            while (p + slashes < end && p[slashes] == '/')
                slashes++;
            put(known, slashes == 2 ? "//" : "/");
        }
        begun = true;
        while (p < end) {
            const uint8_t *slash = memchr(p, '/', (size_t)(end - p)), *stop = slash ? slash : end;
            if (stop > p && !(stop - p == 1 && *p == '.'))
                put_name(known, p, (size_t)(stop - p), quote, &any);
            p = stop + 1;
        }
        if (item.has_length)
            put(known, "...");
    }
    if (!any && !from)
        put(known, ".");
    out_put(known->out, &quote, 1);
    put(known, known->value->has_length ? "...)" : ")");
}

static void put_pattern(struct known *known)
{
    static const struct { const char *name; int64_t flag; } flags[] = {
        {"re.IGNORECASE", 2}, {"re.LOCALE", 4},   {"re.MULTILINE", 8}, {"re.DOTALL", 16},
        {"re.UNICODE", 32},   {"re.VERBOSE", 64}, {"re.DEBUG", 128},   {"re.ASCII", 256},
    };
    const struct value *pattern = part(known, 0);
    int64_t rest = integer(known, 1);
    const char *before = ", ";

    if (pattern && pattern->content == VALUE_TEXT && (rest & (4 | 32 | 256)) == 32)
        rest &= ~(int64_t)32; /* what a str has anyhow */
    put(known, "re.compile(");
    put_part(known, 0);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (rest & flags[i].flag) {
            put(known, before);
            put(known, flags[i].name);
            before = "|";
            rest &= ~flags[i].flag;
        }
    if (rest) {
        put(known, before);
        put_hex(known, (uint64_t)rest);
    }
    put(known, ")");
}

static void put_match(struct known *known)
{
    put(known, "<");
    put_type(known, false);
    put(known, " object; span=(");
    put_number(known, integer(known, 0));
    put(known, ", ");
    put_number(known, integer(known, 1));
    put(known, "), match=");
    put_part(known, 2);
    put(known, ">");
}

static void put_reference(struct known *known)
{
    const struct value *to = part(known, 1);
    const char *name = out_type_name(known->value, known->names);

    put(known, "<");
    if (name && !strncmp(name, "weakref.", 8) && strcmp(name, "weakref.ReferenceType") != 0)
        put(known, "weakproxy");
    else if (name && (!strcmp(name, "weakref.ReferenceType") || !strcmp(name, "weakref")))
        put(known, "weakref");
    else
        put_type(known, false);
    put_where(known, 0);
    if (to) {
        put(known, "; to '");
        out_type(known->out, out_type_name(to, known->names), false);
        put(known, "'");
        put_where(known, 1);
    } else {
        put(known, "; dead");
    }
    put(known, ">");
}

static void put_object(struct known *known)
{
    put(known, "<");
    put_type(known, false);
    put(known, " object ");
    put_bare(known, 0);
    put_where(known, 1);
    put(known, ">");
}

static void put_lock(struct known *known)
{
    put(known, is_true(known, 0) ? "<locked " : "<unlocked ");
    put_type(known, false);
    put(known, " object");
    if (known->count > 2) {
        put(known, " owner=");
        put_number(known, integer(known, 2));
        put(known, " count=");
        put_number(known, integer(known, 3));
    }
    put_where(known, 1);
    put(known, ">");
}

static void put_frame(struct known *known)
{
    put(known, "<");
    put_type(known, false);
    put_where(known, 3);
    put(known, ", file ");
    put_part(known, 0);
    put(known, ", line ");
    put_number(known, integer(known, 1));
    put(known, ", code ");
    put_bare(known, 2);
    put(known, ">");
}

static void put_code(struct known *known)
{
    put(known, "<code object ");
    put_bare(known, 0);
    put_where(known, 3);
    put(known, ", file \"");
    put_bare(known, 1);
    put(known, "\", line ");
    put_number(known, integer(known, 2));
    put(known, ">");
}

static void put_thread(struct known *known)
{
    put(known, "<");
    put_type(known, true);
    put(known, "(");
    put_bare(known, 0);
    put(known, is_none(known, 2) ? ", initial" : is_true(known, 3) ? ", started" : ", stopped");
    if (is_true(known, 1))
        put(known, " daemon");
    if (!is_none(known, 2)) {
        put(known, " ");
        put_part(known, 2);
    }
    put(known, ")>");
}

/* array('i', [1, 2]) */
static void put_array(struct known *known)
{
    const uint8_t *cursor = NULL;
    struct value item;
    uint32_t count = 0;
    bool text = part(known, 1) && known->parts[1].content == VALUE_TEXT;

    put_type(known, true);
    put(known, "(");
    put_part(known, 0);
    if (text) {
        put(known, ", ");
        put_part(known, 1);
    }
    for (; !text && value_item(known->value, &cursor, &item); count++)
        if (count) {
            put(known, count > 1 ? ", " : ", [");
            known->out->value(known->out, &item, known->names);
        }
    if (known->value->has_length)
        put(known, count > 1 ? ", ...]" : ", [...]");
    else
        put(known, count > 1 ? "]" : "");
    put(known, ")");
}

/* As numpy calls it: int64 of l and 8, '>i4' in another order than usual, '<U3', 'S3', object; the
 * format itself, if it is another one. */
static void put_kind(struct known *known)
{
    size_t size;
    const uint8_t *format = bytes(known, 0, &size);
    bool swapped = size > 1 && (format[0] == '>' || format[0] == '!');
    uint64_t item = (uint64_t)integer(known, 1) % 65536;
    static const struct { const char *letters, *name, *brief; unsigned bits; } kinds[] = {
        {"bhilqn", "int", "i", 8}, {"BHILQN", "uint", "u", 8}, {"efdg", "float", "f", 8}, {"Z", "complex", "c", 8},
        {"?", "bool", "b", 0},     {"O", "object", "O", 0},    {"s", "'S", "S", 1},       {"w", "'<U", "U", 0},
    };
    if (size > 1 && strchr("@=<>!", format[0])) {
        format++;
        size--;
    }
    if (size == 2 && format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd'))
        size = 1;
    while (size > 1 && format[0] >= '0' && format[0] <= '9' && (format[size - 1] == 's' || format[size - 1] == 'w')) {
        format++;
        size--;
    }
    for (size_t i = 0; size == 1 && i < sizeof kinds / sizeof *kinds; i++) {
        bool text = kinds[i].name[0] == '\'';
        if (!format[0] || !strchr(kinds[i].letters, format[0]))
            continue;
        if (swapped && (kinds[i].bits > 1 || format[0] == 'w')) {
            put(known, "'>");
            put(known, kinds[i].brief);
            put_number(known, (int64_t)(format[0] == 'w' ? item / 4 : item));
        } else {
            put(known, kinds[i].name);
            if (text || kinds[i].bits)
                put_number(known, (int64_t)(format[0] == 'w' ? item / 4 : item * kinds[i].bits));
        }
        put(known, text || (swapped && kinds[i].bits > 1) ? "'" : "");
        return;
    }
    put_part(known, 0);
}

/* The number that a float of 32 bits is shown as: of those that round to it, the one with the
 * fewest digits. */
static double with_few_digits(double number)
{
    char text[40];
    for (int digits = 6; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        double shown = strtod(text, NULL); /* in the same locale */
        if ((float)shown == (float)number)
            return shown;
    }
    return number;
}

/* array([1, 2, ...], dtype=int64, shape=(1000,)): what there is of it, flat. */
static void put_buffer(struct known *known)
{
    const uint8_t *cursor = NULL;
    struct value item;
    const struct value *shape = part(known, 2);
    uint32_t dimensions = shape ? shape->item_count : 0, count = 0;
    const char *name = out_type_name(known->value, known->names);

    if (name && !strcmp(name, "numpy.ndarray")) { /* it calls itself so */
        put(known, "array");
    } else {
        put(known, !dimensions && name && !strncmp(name, "numpy.", 6) ? "np." : "");
        put_type(known, true);
    }
    put(known, dimensions ? "([" : "(");
    for (uint32_t i = 0; value_item(known->value, &cursor, &item); i++)
        if (i > 2) {
            put(known, count++ ? ", " : "");
            if (item.content == VALUE_FLOATING && integer(known, 1) == 4)
                item.floating = with_few_digits(item.floating);
            known->out->value(known->out, &item, known->names);
        }
    if (known->value->has_length)
        put(known, count ? ", ..." : "...");
    if (dimensions) {
        put(known, "], dtype=");
        put_kind(known);
        put(known, ", shape=");
        put_part(known, 2);
    }
    put(known, ")");
}

/* ---- all of them -------------------------------------------------------------------------- */

bool known_value(struct out *out, const struct value *value, const struct text_names *names)
{
    static void (*const forms[])(struct known *) = {
        [FORM_CALL] = put_call,           [FORM_QUALIFIED] = put_qualified, [FORM_SEQUENCE] = put_list,
        [FORM_MAPPING] = put_dict,           [FORM_PAIRS] = put_pairs,         [FORM_COUNTER] = put_counter,
        [FORM_STATE] = put_state,         [FORM_STATE_LIST] = put_state_list, [FORM_ENUM] = put_enum,
        [FORM_DATE] = put_date,           [FORM_TIME] = put_time,           [FORM_DATETIME] = put_datetime,
        [FORM_TIMEDELTA] = put_timedelta, [FORM_TIMEZONE] = put_timezone,   [FORM_DECIMAL] = put_decimal,
        [FORM_UUID] = put_uuid,           [FORM_COMPLEX] = put_complex,     [FORM_PATH] = put_path,
        [FORM_PATTERN] = put_pattern,     [FORM_MATCH] = put_match,         [FORM_REFERENCE] = put_reference,
        [FORM_OBJECT] = put_object,       [FORM_LOCK] = put_lock,           [FORM_FRAME] = put_frame,
        [FORM_CODE] = put_code,           [FORM_THREAD] = put_thread,       [FORM_IPV4] = put_ipv4,
        [FORM_IPV6] = put_ipv6,           [FORM_ARRAY] = put_array,         [FORM_BUFFER] = put_buffer,
    };
    struct known known = {.out = out, .value = value, .names = names};
    const uint8_t *cursor = NULL;

    if (value->form >= sizeof forms / sizeof *forms || !forms[value->form])
        return false;
    while (known.count < PARTS && value_item(value, &cursor, &known.parts[known.count]))
        known.count++;
    forms[value->form](&known);
    return true;
}
