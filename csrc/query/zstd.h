/* Decompression by whatever zstd this process has: the system's libzstd, else the one that another
 * module (Python's) brought along. Found when it is first needed; no headers, no linking.
 */
#ifndef PYTRACE_ZSTD_H
#define PYTRACE_ZSTD_H

#include <stddef.h>

/* NULL: ready. Otherwise a message that says what is missing. Any thread may call it. */
const char *zstd_find(void);

/* One for each thread that decompresses; only after zstd_find said that it is ready. NULL: no
 * memory. */
struct zstd_context;
struct zstd_context *zstd_context_new(void);
void zstd_context_free(struct zstd_context *context); /* NULL is fine */

/* The size of what was decompressed into `out`; or -1, and *reason is a static text. */
long zstd_decompress(struct zstd_context *context, void *out, size_t capacity, const void *data, size_t size,
                     const char **reason);

#endif
