/* The clock of a recording: the processor's own counter if it runs at one rate on all cores, else
 * CLOCK_MONOTONIC. Each recorded call reads it twice, so only the last resort is a function call.
 * No Python, no atomics.
 */
#ifndef PYTRACE_CLOCK_H
#define PYTRACE_CLOCK_H

#include "ring/ring_abi.h" /* enum clock_kind */

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* For tests, which move the counter. */
#ifdef RING_TEST_POINTS
extern uint64_t clock_test_offset;
#define CLOCK_TEST_OFFSET clock_test_offset
#else
#define CLOCK_TEST_OFFSET 0
#endif

static inline uint64_t clock_ns(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The counter itself; useful only if clock_detect returns CLOCK_TICKS. Neither form waits for the
 * instructions before it, as that costs too much for events tens of ns apart. */
static inline uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc() + CLOCK_TEST_OFFSET;
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks + CLOCK_TEST_OFFSET;
#else
    return clock_ns(CLOCK_MONOTONIC);
#endif
}

/* Now, in the clock units of a ring with this clock_kind and clock_shift. */
static inline uint64_t clock_units(uint32_t kind, uint32_t shift)
{
    return __builtin_expect(kind == CLOCK_TICKS, 1) ? clock_ticks() >> shift : clock_ns(CLOCK_MONOTONIC);
}

/* False: the kernel has found that the cores' time stamp counters disagree, and does not offer
 * "tsc". If the kernel does not tell, the processor's word counts. */
static inline bool clock_kernel_trusts_tsc(void)
{
    char names[256];
    int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    ssize_t size = read(fd, names, sizeof names - 1);
    close(fd);
    if (size <= 0)
        return true;
    names[size] = '\0';
    return strstr(names, "tsc") != NULL;
}

static inline enum clock_kind clock_detect(void)
{
#if defined(__x86_64__)
    /* Leaf 0x80000007, EDX bit 8: the rate does not change with the core's frequency or sleep. */
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && edx & 1u << 8 && clock_kernel_trusts_tsc())
        return CLOCK_TICKS;
    return CLOCK_NANOSECONDS;
#elif defined(__aarch64__)
    return CLOCK_TICKS; /* the architecture promises it */
#else
    return CLOCK_NANOSECONDS;
#endif
}

#endif
