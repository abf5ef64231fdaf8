/* The kernel's own description of an event: events/SYSTEM/NAME/format of a tracefs, as
 *
 *   name: sys_enter_read
 *   ID: 842
 *   format:
 *           field:unsigned short common_type;   offset:0;   size:2;   signed:0;
 *           ...
 *           field:char * buf;                   offset:24;  size:8;   signed:0;
 *
 *   print fmt: ...
 *
 * and the values of the fields in an event's bytes. It reads no print format: fields are stored as
 * they are. No Python, no allocation.
 */
#ifndef PYTRACE_KERNEL_FORMAT_H
#define PYTRACE_KERNEL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_FIELDS_MAX 64  /* others are left out */
#define KERNEL_NAME_MAX 64    /* bytes of a name, with its NUL; longer ones are cut */
#define KERNEL_TEXT_MAX 200   /* bytes of a field that are stored */

enum kernel_shape {
    KERNEL_NUMBER,   /* of 1, 2, 4 or 8 bytes */
    KERNEL_ADDRESS,  /* the same, shown as 0x... */
    KERNEL_TEXT,     /* characters up to a NUL */
    KERNEL_BYTES,    /* anything else */
};

/* The place of a field's bytes: in the event; or somewhere behind, as a word in the event says. */
enum kernel_place { KERNEL_HERE, KERNEL_LOCATED, KERNEL_LOCATED_BEHIND };

struct kernel_field {
    char name[KERNEL_NAME_MAX];
    uint16_t offset, size;
    uint8_t shape, place; /* of the enums above */
    uint8_t width;        /* bytes of a number that count: a system call's int lies in 8 */
    bool is_signed;
};

struct kernel_format {
    uint16_t id;
    uint16_t pid_offset;      /* of common_pid, an int */
    char name[KERNEL_NAME_MAX];
    uint32_t field_count;     /* without the common ones */
    struct kernel_field fields[KERNEL_FIELDS_MAX];
};

/* Reads a format file. False: it is none. */
bool kernel_format_parse(const char *text, size_t size, struct kernel_format *format);

/* The field with this name, or NULL. */
const struct kernel_field *kernel_format_field(const struct kernel_format *format, const char *name);

/* The bytes of a field in the `size` bytes of an event. False: it does not reach so far. */
bool kernel_field_bytes(const struct kernel_field *field, const uint8_t *event, size_t size,
                        const uint8_t **bytes, size_t *length);

/* A number, in the machine's own order; false: it is not of 1, 2, 4 or 8 bytes. */
bool kernel_field_number(const struct kernel_field *field, const uint8_t *event, size_t size, int64_t *number);

#endif
