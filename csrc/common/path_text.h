/* Names of files as text: every reader of the database can show it, and get the same bytes back.
 *
 *   a byte that is not UTF-8       \xff       four characters, as Python's `backslashreplace` has it
 *   a backslash before an x        \x5cx      so that each \x in the text is one that was made here
 *   everything else                as it is
 *
 *   "caf" e9 ".py"  ->  caf\xe9.py            back: each \xNN is the byte NN
 *   "a\x41.py"      ->  a\x5cx41.py
 *
 * pytracer/start.py has the same for the paths that it knows, reader/paths.py and
 * dumper/sources.py the way back.
 */
#ifndef PYTRACE_PATH_TEXT_H
#define PYTRACE_PATH_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The number of bytes that have to be replaced at this place of a text in UTF-8; 0: none. A byte
 * that is no UTF-8 is a surrogate from U+DC80 to U+DCFF in the text (Python's
 * `surrogateescape`). */
static inline size_t path_text_special(const uint8_t *p, const uint8_t *end)
{
    if (end - p >= 3 && p[0] == 0xed && (p[1] == 0xb2 || p[1] == 0xb3))
        return 3;
    return end - p >= 2 && p[0] == '\\' && p[1] == 'x' ? 1 : 0;
}

/* Writes the text's form at `out`: at most `room` bytes, and no part of a \xNN. Returns their
 * number. */
static inline size_t path_text(uint8_t *out, size_t room, const uint8_t *text, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *end = text + size;
    size_t made = 0;
    for (const uint8_t *p = text; p < end;) {
        size_t special = path_text_special(p, end);
        if (made + (special ? 4 : 1) > room)
            break;
        if (!special) {
            out[made++] = *p++;
            continue;
        }
        uint8_t byte = special == 1 ? *p : (uint8_t)((p[1] & 1) << 6 | (p[2] & 0x3f) | 0x80);
        memcpy(out + made, "\\x", 2);
        out[made + 2] = (uint8_t)digits[byte >> 4];
        out[made + 3] = (uint8_t)digits[byte & 15];
        made += 4;
        p += special;
    }
    return made;
}

#endif
