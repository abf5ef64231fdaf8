/* Definitions of a run by number; see run_definitions.h. */
#include "query/run_definitions.h"

#include "common/decimal.h"

#define STRING(literal) ((struct string){literal, sizeof literal - 1})

const struct run_code run_code_undefined = {
    .module = {"?", 1}, .func = {"?", 1}, .file = {"?", 1}, .last = {"?", 1},
    .layer = LAYER_PYTHON,
};

const struct run_code *run_code_find(const struct run_definitions *run, uint32_t number)
{
    return number < run->code_count ? &run->codes[number] : &run_code_undefined;
}

const struct run_thread *run_thread_find(const struct run_definitions *run, uint32_t stream)
{
    uint32_t low = 0, high = run->thread_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (run->threads[middle].stream < stream)
            low = middle + 1;
        else
            high = middle;
    }
    return low < run->thread_count && run->threads[low].stream == stream ? &run->threads[low] : NULL;
}

static const char *type_name(void *context, uint32_t number)
{
    const struct run_definitions *run = context;
    return number < run->type_count ? run->types[number] : NULL;
}

static const struct string *name_of(const struct run_names *names, uint32_t position)
{
    return position < names->count ? &names->names[position] : NULL;
}

static const struct string *field_name(void *context, uint32_t type, uint32_t position)
{
    const struct run_definitions *run = context;
    return run->fields && type < run->type_count ? name_of(&run->fields[type], position) : NULL;
}

static const struct string *attribute_name(void *context, uint32_t type, uint32_t position)
{
    const struct run_definitions *run = context;
    return run->attributes && type < run->type_count ? name_of(&run->attributes[type], position) : NULL;
}

struct text_names run_type_names(const struct run_definitions *run)
{
    /* text_names also serves functions that change their context; these do not */
    return (struct text_names){type_name, (void *)(uintptr_t)run, field_name, attribute_name};
}

/* Appends a text, cut at a character's boundary; returns the size. */
static size_t append(char *buffer, size_t size, size_t most, struct string text)
{
    size_t length = text.size;
    if (length > most - size) {
        length = most - size;
        while (length && (text.text[length] & 0xc0) == 0x80)
            length--;
    }
    if (length)
        memcpy(buffer + size, text.text, length);
    return size + length;
}

struct string run_attribute_name(struct string argument, struct string attribute,
                                 char buffer[RUN_ATTRIBUTE_NAME_MAX])
{
    size_t size = append(buffer, 0, RUN_ATTRIBUTE_NAME_MAX / 2, argument);
    buffer[size++] = '.';
    return (struct string){buffer, append(buffer, size, RUN_ATTRIBUTE_NAME_MAX, attribute)};
}

/* "argument N": an event has a value more than its definition has names. */
static struct string numbered(struct string head, uint64_t number, char buffer[32])
{
    char digits[DECIMAL_MAX], *end = digits + sizeof digits, *start = decimal_before(end, number);
    size_t size = (size_t)(end - start);

    memcpy(buffer, head.text, head.size);
    memcpy(buffer + head.size, start, size);
    return (struct string){buffer, head.size + size};
}

struct string run_variable_name(const struct run_code *code, uint32_t number, bool known, char buffer[32])
{
    return known && number < code->variable_count
               ? code->variables[number]
               : numbered(STRING("variable "), (uint64_t)number + 1, buffer);
}

struct string run_argument_name(const struct run_code *code, enum event_kind kind, uint32_t position,
                                struct string given, char buffer[32])
{
    if (kind == EVENT_CALL || kind == EVENT_HAPPENED) {
        if (position < code->argument_count)
            return code->arguments[position];
    } else if (kind == EVENT_LOG && position) {
        if (given.size)
            return given;
    } else if (!position) {
        switch (kind) {
        case EVENT_RETURN:
            return STRING("return value");
        case EVENT_EXCEPTION:
        case EVENT_THROW:
        case EVENT_RAISE:
            return STRING("exception");
        case EVENT_YIELD:
            return STRING("yield value");
        case EVENT_LOG:
            return STRING("message");
        case EVENT_LOST:
            return STRING("count");
        default:
            break;
        }
    }
    return numbered(STRING("argument "), (uint64_t)position + 1, buffer);
}
