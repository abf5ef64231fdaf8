/* Suspended generators: a hash table by the frame's address, with linear probing; generators.h. */

#include "record/generators.h"

#include "record/pycompat.h"

struct suspended {
    const void *frame; /* NULL: an empty place */
    uint64_t start;
    void *kept;
};

static struct suspended *table;
static size_t size, used; /* size: a power of two, or 0 */

static size_t home(const void *frame)
{
    return (size_t)(((uint64_t)(uintptr_t)frame >> 4) * 0x9E3779B97F4A7C15u >> 32) & (size - 1);
}

/* The place of the frame, or the empty place for it. */
static size_t find(const void *frame)
{
    size_t at = home(frame);
    while (table[at].frame != NULL && table[at].frame != frame)
        at = (at + 1) & (size - 1);
    return at;
}

uint64_t generators_start(const void *frame)
{
    if (frame == NULL || used == 0)
        return 0;
    size_t at = find(frame);
    return table[at].frame != NULL ? table[at].start : 0;
}

static bool grow(void)
{
    struct suspended *old = table;
    size_t old_size = size, larger = old_size ? old_size * 2 : 1024;
    struct suspended *grown = PyMem_RawCalloc(larger, sizeof *grown);
    if (grown == NULL)
        return false;
    table = grown;
    size = larger;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].frame != NULL)
            table[find(old[i].frame)] = old[i];
    PyMem_RawFree(old);
    return true;
}

void generators_suspended(const void *frame, uint64_t start)
{
    if (frame == NULL || (used * 2 >= size && !grow()))
        return;
    size_t at = find(frame);
    used += table[at].frame == NULL;
    PyMem_RawFree(table[at].kept);
    table[at] = (struct suspended){frame, start, NULL};
}

void **generators_kept(const void *frame)
{
    if (frame == NULL || used == 0)
        return NULL;
    size_t at = find(frame);
    return table[at].frame != NULL ? &table[at].kept : NULL;
}

bool generators_ended(const void *frame, uint64_t *start)
{
    if (frame == NULL || used == 0)
        return false;
    size_t hole = find(frame), at = hole, mask = size - 1;
    if (table[hole].frame == NULL)
        return false;
    if (start != NULL)
        *start = table[hole].start;
    PyMem_RawFree(table[hole].kept);
    /* Entries behind it that belong to its place, or to an earlier one, move up. */
    for (;;) {
        at = (at + 1) & mask;
        if (table[at].frame == NULL)
            break;
        if (((at - home(table[at].frame)) & mask) >= ((at - hole) & mask)) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole] = (struct suspended){NULL, 0, NULL};
    used--;
    return true;
}

void generators_forget(void)
{
    for (size_t i = 0; i < size; i++)
        PyMem_RawFree(table[i].kept);
    if (size)
        memset(table, 0, size * sizeof *table);
    used = 0;
}
