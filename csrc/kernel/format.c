/* The kernel's description of events; see format.h. */
#include "kernel/format.h"

#include <string.h>

struct text {
    const char *next, *end;
};

/* The next line, without its end. False: there is none. */
static bool next_line(struct text *all, struct text *line)
{
    if (all->next == all->end)
        return false;
    const char *newline = memchr(all->next, '\n', (size_t)(all->end - all->next));
    *line = (struct text){all->next, newline ? newline : all->end};
    all->next = newline ? newline + 1 : all->end;
    while (line->next < line->end && (*line->next == ' ' || *line->next == '\t'))
        line->next++;
    return true;
}

/* Passes over a word that the text begins with. */
static bool take(struct text *text, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(text->end - text->next) < size || memcmp(text->next, word, size))
        return false;
    text->next += size;
    return true;
}

/* Passes over everything up to a word, and the word. */
static bool take_behind(struct text *text, const char *word)
{
    for (; text->next < text->end; text->next++)
        if (take(text, word))
            return true;
    return false;
}

/* A number of at most `most`. */
static bool take_number(struct text *text, uint32_t most, uint32_t *number)
{
    const char *start = text->next;
    *number = 0;
    for (; text->next < text->end && *text->next >= '0' && *text->next <= '9'; text->next++) {
        *number = *number * 10 + (uint32_t)(*text->next - '0');
        if (*number > most)
            return false;
    }
    return text->next > start;
}

static void copy_name(char name[KERNEL_NAME_MAX], const char *start, const char *end)
{
    size_t size = (size_t)(end - start) < KERNEL_NAME_MAX ? (size_t)(end - start) : KERNEL_NAME_MAX - 1;
    memcpy(name, start, size);
    name[size] = '\0';
}

static bool contains(const char *start, const char *end, const char *word)
{
    struct text text = {start, end};
    return take_behind(&text, word);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* "unsigned long args[6]": the name is the last word before a bracket. */
static bool read_declaration(const char *start, const char *end, struct kernel_field *field)
{
    const char *bracket = memchr(start, '[', (size_t)(end - start)), *name, *stop;
    bool is_data_loc = contains(start, end, "__data_loc"), is_rel_loc = contains(start, end, "__rel_loc");
    bool is_array = bracket != NULL;

    stop = end;
    if (bracket && !is_data_loc && !is_rel_loc)
        stop = bracket; /* of __data_loc char[] name, the brackets stand before the name */
    while (stop > start && !is_name_byte(stop[-1]))
        stop--;
    for (name = stop; name > start && is_name_byte(name[-1]); name--)
        continue;
    if (name == stop)
        return false;
    copy_name(field->name, name, stop);
    field->place = is_data_loc ? KERNEL_LOCATED : is_rel_loc ? KERNEL_LOCATED_BEHIND : KERNEL_HERE;
    if (is_array)
        field->shape = contains(start, name, "char") && !contains(start, name, "unsigned char") ? KERNEL_TEXT
                                                                                               : KERNEL_BYTES;
    else if (contains(start, name, "*") || !strcmp(field->name, "address") || !strcmp(field->name, "ip"))
        field->shape = KERNEL_ADDRESS;
    else
        field->shape = KERNEL_NUMBER;
    return true;
}

/* The types of system calls' arguments. All have 8 bytes, and the format file calls none of them
 * signed. */
static const struct {
    const char *name;
    uint8_t width;
    bool is_signed;
} argument_types[] = {
    {"int", 4, true},          {"pid_t", 4, true},         {"clockid_t", 4, true},
    {"const clockid_t", 4, true}, {"timer_t", 4, true},    {"key_t", 4, true},
    {"key_serial_t", 4, true}, {"mqd_t", 4, true},         {"rwf_t", 4, true},
    {"unsigned int", 4, false}, {"unsigned", 4, false},    {"u32", 4, false},
    {"__u32", 4, false},       {"uid_t", 4, false},        {"gid_t", 4, false},
    {"uint32_t", 4, false},    {"umode_t", 2, false},      {"qid_t", 4, false},
    {"long", 8, true},         {"loff_t", 8, true},        {"off_t", 8, true},
    {"ssize_t", 8, true},
};

static void read_width(const char *start, const char *end, struct kernel_field *field)
{
    size_t length = (size_t)(end - start), name = strlen(field->name);

    field->width = (uint8_t)field->size;
    if (field->shape != KERNEL_NUMBER || field->size != 8 || field->is_signed || length <= name)
        return;
    for (length -= name; length && start[length - 1] == ' '; length--)
        continue;
    for (size_t i = 0; i < sizeof argument_types / sizeof *argument_types; i++)
        if (strlen(argument_types[i].name) == length && !memcmp(argument_types[i].name, start, length)) {
            field->width = argument_types[i].width;
            field->is_signed = argument_types[i].is_signed;
        }
}

/* `field:DECLARATION; offset:N; size:N; signed:N;` */
static bool read_field(struct text line, struct kernel_field *field)
{
    uint32_t offset, size, is_signed = 0;
    const char *start = line.next, *end = memchr(start, ';', (size_t)(line.end - start));

    if (!end || !read_declaration(start, end, field))
        return false;
    line.next = end;
    if (!take_behind(&line, "offset:") || !take_number(&line, UINT16_MAX, &offset) ||
        !take_behind(&line, "size:") || !take_number(&line, UINT16_MAX, &size))
        return false;
    if (take_behind(&line, "signed:") && !take_number(&line, 1, &is_signed))
        return false;
    field->offset = (uint16_t)offset;
    field->size = (uint16_t)size;
    field->is_signed = is_signed;
    if (field->shape <= KERNEL_ADDRESS && size != 1 && size != 2 && size != 4 && size != 8)
        field->shape = KERNEL_BYTES;
    read_width(start, end, field);
    return true;
}

bool kernel_format_parse(const char *text, size_t size, struct kernel_format *format)
{
    struct text all = {text, text + size}, line;
    bool has_name = false, has_id = false, has_pid = false;
    uint32_t number;

    format->field_count = 0;
    while (next_line(&all, &line)) {
        struct kernel_field field;
        if (take(&line, "name: ")) {
            copy_name(format->name, line.next, line.end);
            has_name = line.next < line.end;
        } else if (take(&line, "ID: ")) {
            has_id = take_number(&line, UINT16_MAX, &number);
            format->id = (uint16_t)number;
        } else if (take(&line, "field:") && read_field(line, &field)) {
            if (!strcmp(field.name, "common_pid")) {
                has_pid = field.size == 4;
                format->pid_offset = field.offset;
            }
            if (strncmp(field.name, "common_", 7) && format->field_count < KERNEL_FIELDS_MAX)
                format->fields[format->field_count++] = field;
        }
    }
    return has_name && has_id && has_pid;
}

const struct kernel_field *kernel_format_field(const struct kernel_format *format, const char *name)
{
    for (uint32_t i = 0; i < format->field_count; i++)
        if (!strcmp(format->fields[i].name, name))
            return &format->fields[i];
    return NULL;
}

bool kernel_field_bytes(const struct kernel_field *field, const uint8_t *event, size_t size,
                        const uint8_t **bytes, size_t *length)
{
    size_t offset = field->offset, count = field->size;

    if (offset > size || count > size - offset)
        return false;
    if (field->place != KERNEL_HERE) { /* a word: offset, and length << 16 */
        uint32_t word;
        if (count != sizeof word)
            return false;
        memcpy(&word, event + offset, sizeof word);
        offset = (word & 0xffff) + (field->place == KERNEL_LOCATED_BEHIND ? offset + sizeof word : 0);
        count = word >> 16;
        if (offset > size || count > size - offset)
            return false;
    }
    *bytes = event + offset;
    *length = count;
    return true;
}

bool kernel_field_number(const struct kernel_field *field, const uint8_t *event, size_t size, int64_t *number)
{
    const uint8_t *bytes;
    size_t length;
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } raw;

    if (field->shape > KERNEL_ADDRESS || !kernel_field_bytes(field, event, size, &bytes, &length) ||
        length > sizeof raw)
        return false;
    memcpy(&raw, bytes, length);
    switch (field->width < length ? field->width : length) { /* little-endian */
    case 1:
        *number = field->is_signed ? (int8_t)raw.u8 : raw.u8;
        return true;
    case 2:
        *number = field->is_signed ? (int16_t)raw.u16 : raw.u16;
        return true;
    case 4:
        *number = field->is_signed ? (int32_t)raw.u32 : (int64_t)raw.u32;
        return true;
    case 8:
        *number = (int64_t)raw.u64;
        return true;
    default:
        return false;
    }
}
