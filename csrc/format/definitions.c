/* The decoder of definitions.h: a definition's hash and number. */
#include "format/definitions.h"

#include <stddef.h>

/* The position behind the length of a field of bytes, NULL if it is none; *end: its end. */
static const uint8_t *open_bytes(const uint8_t *p, const uint8_t *limit, uint32_t *tag, const uint8_t **end)
{
    uint64_t length;
    p = wire_get_tag(p, limit, tag);
    if (!p || (*tag & 7) != WIRE_BYTES || !(p = wire_get_varint(p, limit, &length))
        || length > (uint64_t)(limit - p))
        return NULL;
    *end = p + length;
    return p;
}

const uint8_t *definition_next(const uint8_t *p, const uint8_t *end, struct definition *found)
{
    const uint8_t *record_end, *fields_end, *field;
    uint32_t tag;
    uint64_t number = 0;

    *found = (struct definition){0};
    if (p >= end || !(p = open_bytes(p, end, &tag, &record_end)))
        return NULL;
    const uint8_t *fields = open_bytes(p, record_end, &tag, &fields_end);
    if (!fields)
        return record_end;
    found->kind = tag >> 3;
    p = fields;
    do {
        field = p;
        p = wire_get_tag(p, fields_end, &tag);
        if (p && tag != WIRE_TAG(1, WIRE_VARINT))
            p = wire_skip(p, fields_end, tag);
        else if (p)
            p = wire_get_varint(p, fields_end, &number);
    } while (p && p < fields_end);
    if (p && tag == WIRE_TAG(1, WIRE_VARINT) && number <= UINT32_MAX
        && (found->kind == DEFINITION_CODE || found->kind == DEFINITION_TYPE)) {
        found->number = (uint32_t)number;
        found->hash = definition_hash((enum definition_kind)found->kind, fields, field);
    }
    return record_end;
}
