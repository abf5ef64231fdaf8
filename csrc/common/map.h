/* A hash table from numbers to numbers that are not 0. A zeroed map is empty; call map_free at its
 * end. */
#ifndef PYTRACE_MAP_H
#define PYTRACE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct map_entry {
    uint64_t key, value; /* value 0: free */
};

struct map {
    struct map_entry *entries;
    size_t size, used; /* size: a power of two, at least twice `used`; or 0 */
};

/* The entry of a key, or the free entry for it. To be called only if the map has a size. */
static inline struct map_entry *map_entry(const struct map *map, uint64_t key)
{
    size_t mask = map->size - 1, at = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (map->entries[at].value && map->entries[at].key != key)
        at = (at + 1) & mask;
    return &map->entries[at];
}

/* The value of a key; 0: it has none. */
static inline uint64_t map_get(const struct map *map, uint64_t key)
{
    return map->size ? map_entry(map, key)->value : 0;
}

static inline bool map_grow(struct map *map)
{
    struct map larger = {.size = map->size ? map->size * 2 : 16, .used = map->used};
    if (!(larger.entries = calloc(larger.size, sizeof *larger.entries)))
        return false;
    for (size_t i = 0; i < map->size; i++)
        if (map->entries[i].value)
            *map_entry(&larger, map->entries[i].key) = map->entries[i];
    free(map->entries);
    *map = larger;
    return true;
}

/* The address of a key's value, which may be changed, but not to 0. A new key has the value
 * `first`. Valid until the next call. NULL: no memory. */
static inline uint64_t *map_put(struct map *map, uint64_t key, uint64_t first)
{
    if (map->used * 2 >= map->size && !map_grow(map))
        return NULL;
    struct map_entry *entry = map_entry(map, key);
    if (!entry->value) {
        *entry = (struct map_entry){key, first};
        map->used++;
    }
    return &entry->value;
}

static inline void map_free(struct map *map)
{
    free(map->entries);
    *map = (struct map){0};
}

#endif
