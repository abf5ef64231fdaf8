/* Definitions: the functions, types, … that events refer to by number. A chunk of definitions is a
 * row of these records (proto/trace.proto, Definitions):
 *
 *   0a LENGTH                 a record
 *      KIND<<3|2 LENGTH       one definition of that kind
 *         fields              of the kind; of a code and a type all but field 1
 *         08 NUMBER           of a code and a type: their number, behind all others
 *
 *   0a 0f | 12 0d | 12 09 61 70 70 2e 4f 72 64 65 72 | 08 05       the type app.Order has number 5
 *
 * A definition's key is a hash over its kind and all its bytes except the number. So processes that
 * define the same share one number. The hook writes definitions (encoder), and the dumper tells the
 * ring of them (decoder); dumper/definitions.py makes their rows. No Python, no ring.
 */
#ifndef PYTRACE_DEFINITIONS_H
#define PYTRACE_DEFINITIONS_H

#include "format/wire.h"

enum definition_kind {
    DEFINITION_CODE = 1,
    DEFINITION_TYPE = 2,
    DEFINITION_THREAD = 3,
    DEFINITION_PROCESS = 4,
};

/* FNV-1a, RFC 9923; never 0. */
static inline uint64_t definition_hash(enum definition_kind kind, const uint8_t *fields, const uint8_t *end)
{
    uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)kind;
    for (const uint8_t *p = fields; p < end; p++)
        hash = (hash ^ *p) * 0x100000001b3u;
    return hash ? hash : 1;
}

/* ---- encoder ------------------------------------------------------------------------------ */

/* A definition in the making. */
struct definition_writer {
    enum definition_kind kind;
    uint8_t *record, *fields;
};

/* Begins one at p; the fields follow at writer->fields. */
static inline void definition_open(struct definition_writer *writer, uint8_t *p, enum definition_kind kind)
{
    writer->kind = kind;
    writer->record = wire_open(p, 1);
    writer->fields = wire_open(writer->record, (int)kind);
}

/* Ends it behind its fields, with its number (0: none); returns the end. Takes up to 6 bytes for
 * the number, and twice WIRE_CLOSE_MAX. */
static inline uint8_t *definition_close(const struct definition_writer *writer, uint8_t *end, uint32_t number)
{
    if (number) {
        *end++ = WIRE_TAG(1, WIRE_VARINT);
        end = wire_put_varint(end, number);
    }
    return wire_close(writer->record, wire_close(writer->fields, end));
}

/* ---- decoder ------------------------------------------------------------------------------ */

struct definition {
    uint32_t kind;   /* enum definition_kind, or one of a later version */
    uint32_t number; /* 0: none, or it makes no sense */
    uint64_t hash;   /* if it has a number */
};

/* Reads the record at p; returns its end, NULL if there is none or it makes no sense. */
const uint8_t *definition_next(const uint8_t *p, const uint8_t *end, struct definition *found);

#endif
