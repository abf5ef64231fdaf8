/* Features: a word of bits that says what is in a recording which a reader of another version may
 * not know. It stands in the ring's header and in the table `run`.
 *
 * A version that adds something to the format gives it a bit. A bit below 32 is compatible: a
 * reader that does not know it is right about everything else, and skips the unknown. A bit from 32
 * on is required: a reader that does not know it would be wrong, and must say that a newer version
 * is needed. For example
 *
 *   0000000000000001   tasks
 *   0000000100000001   tasks, and a feature that this version refuses
 *
 * The reader has the same table, with the meanings: reader/features.py.
 */
#ifndef PYTRACE_FEATURE_H
#define PYTRACE_FEATURE_H

#include <stdint.h>

enum feature {
    FEATURE_TASKS = 0, /* events say which task of asyncio or trio they are of: Events.task */
    FEATURE_LINES = 1, /* lines and variables: Event.at_line */
    FEATURE_LAYERS = 2, /* C functions, native functions, the kernel: Event.happened, Events.cpu */
};

#define FEATURES_KNOWN                                                                               \
    (UINT64_C(1) << FEATURE_TASKS | UINT64_C(1) << FEATURE_LINES | UINT64_C(1) << FEATURE_LAYERS)
#define FEATURES_MADE FEATURES_KNOWN /* by the hook of this version */
/* The highest bit is no feature: SQL's integers are signed. */
#define FEATURES_REQUIRED UINT64_C(0x7fffffff00000000)

/* The features that forbid reading; 0: none. */
static inline uint64_t features_refused(uint64_t features)
{
    return features & FEATURES_REQUIRED & ~FEATURES_KNOWN;
}

#endif
