/* The meanings of the numbers in records: definitions of codes, types, threads and processes,
 * written through a stream of their own. All of it runs under the GIL, except what native functions
 * need: define_begin, define_native, define_thread. */
#ifndef PYTRACE_DEFINE_H
#define PYTRACE_DEFINE_H

#include "format/definitions.h"
#include "record/pycompat.h"
#include "ring/ring.h"

/* Opens the stream of definitions in this recording. */
void define_open(struct ring *ring, uint32_t process);
/* In a forked child: drops the parent's stream; nothing can be defined until define_open. */
void define_after_fork(void);
void define_close(void);
/* The ring is well in use: seals the chunk if nothing has been defined since the last call. */
void define_give_back(void);

#define DEFINITION_MAX (RING_MIN_CHUNK_SIZE / 2)

/* Begins a definition, which no other thread does until its end: define_number or define_native.
 * Room for up to `size` bytes, at most DEFINITION_MAX, with its start written;
 * NULL: there is none now. */
uint8_t *define_begin(struct definition_writer *writer, enum definition_kind kind, size_t size);
/* Ends a definition of a code or a type at `end`, where only the number is missing. Writes it with
 * a new number, unless this process or one that it was forked from has written the same definition,
 * or the database has it. Returns the number. */
uint32_t define_number(const struct definition_writer *writer, uint8_t *end);
/* The same without memory of what has been written: it allocates nothing. */
uint32_t define_native(const struct definition_writer *writer, uint8_t *end);
/* A field with the text of an object, of at most `size` bytes. Returns the position behind it. */
uint8_t *define_text(uint8_t *p, int field, PyObject *object, size_t size);

/* False: no room now. */
bool define_thread(uint32_t stream, uint64_t tid, const char *name, size_t size);
bool define_process(uint32_t parent, const char *command, size_t size, const char *python);

#endif
