/* The global offset table of a loaded shared object: finding the entries of a function, and
 * changing them. No Python, no allocation, no lock.
 *
 * Calls of a function in another object go through an entry of this table, which the dynamic
 * linker has filled in, or fills in at the first call. The relocations of the object tell where
 * its entries are. Tables that are read-only after start (RELRO) are writable for a moment.
 */
#ifndef PYTRACE_GOT_H
#define PYTRACE_GOT_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A function, and what its entries are to be. */
struct got_change {
    const char *name;
    void *to; /* NULL: they are only counted */
};

/* Changes the entries of these functions in an object, unless it defines the function itself.
 * Returns how many entries are now as wanted. */
size_t got_change(const struct dl_phdr_info *object, const struct got_change *changes, size_t count);

/* Whether the object that has this address calls a function of that name in another object. */
bool got_imports(uintptr_t address, const char *name);

/* The address range of an object. False: it has none (the kernel's own). */
bool got_range(const struct dl_phdr_info *object, uintptr_t *start, uintptr_t *end);

#define GOT_BUILD_ID_MAX 32
/* The object's build id; returns its size, 0: it has none. */
size_t got_build_id(const struct dl_phdr_info *object, uint8_t id[GOT_BUILD_ID_MAX]);

#endif
