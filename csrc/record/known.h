/* Objects of types that everybody uses, as their parts (CONTAINER_PARTS of proto/trace.proto).
 *
 * Only what lies in the object itself is read: members that its class names by their offsets, its
 * dictionary, or a layout of CPython's that is no secret. No code of the program runs, and nothing
 * is formatted: the reader does that.
 *
 * A type is known by itself, not by its name: it is what its module has under this name, if the
 * program has imported the module. One in C has to be in C and of the size that is expected; one in
 * Python has to come from the standard library. Otherwise, and where an object is not as its class
 * makes them (half-built, changed), it is read as if this file did not exist.
 */
#ifndef PYTRACE_RECORD_KNOWN_H
#define PYTRACE_RECORD_KNOWN_H

/* Before the first event: from now on types_find_known and values_put_known are those of this file.
 * May call anything. */
void known_prepare(void);

#endif
