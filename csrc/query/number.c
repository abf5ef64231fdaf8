/* Numbers as Python's repr writes them; see number.h. */
#include "query/number.h"

#include "common/decimal.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t number_integer(int64_t n, char *text)
{
    size_t sign = n < 0;
    char digits[DECIMAL_MAX], *end = digits + sizeof digits;
    char *start = decimal_before(end, sign ? -(uint64_t)n : (uint64_t)n);

    if (sign)
        text[0] = '-';
    memcpy(text + sign, start, (size_t)(end - start));
    return sign + (size_t)(end - start);
}

/* ---- floats ------------------------------------------------------------------------------- */

#define DIGITS_MAX 17 /* always enough for a double */

/* 0.DIGITS times ten to the power of `point`. */
struct decimal {
    char digits[NUMBER_INTEGER_MAX]; /* at most DIGITS_MAX, and NUL if needed */
    int count;
    int point;
};

/* The nearest decimal of so many digits. Reads printf's answer without its decimal point, which is
 * the locale's. */
static void round_to(double number, int count, struct decimal *decimal)
{
    char text[64];
    const char *p = text;

    snprintf(text, sizeof text, "%.*e", count - 1, number);
    for (decimal->count = 0; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            decimal->digits[decimal->count++] = *p;
    decimal->digits[count] = '\0';
    decimal->point = atoi(p + 1) + 1;
}

static bool gives(const struct decimal *decimal, double number)
{
    char text[64]; /* no decimal point: the locale does not matter */
    snprintf(text, sizeof text, "%se%d", decimal->digits, decimal->point - decimal->count);
    return strtod(text, NULL) == number;
}

/* The next larger decimal of as many digits; false if it would need one more. */
static bool step_up(struct decimal *decimal)
{
    int i = decimal->count - 1;
    for (; i >= 0 && decimal->digits[i] == '9'; i--)
        decimal->digits[i] = '0';
    if (i < 0)
        return false;
    decimal->digits[i]++;
    return true;
}

/* The decimal of up to DBL_DIG digits that gives the number again, if there is one and it is easily
 * found: true for most numbers that people write. An integer below 2^53 and a power of ten up to
 * 10^22 are doubles without any loss, so that their quotient or product is rounded once, as strtod
 * would. However it was guessed, it is the right one: no two such decimals give the same double. */
static bool easy(double number, struct decimal *decimal)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int places; /* behind the point, so that DBL_DIG digits are before it */
    uint64_t digits;

    if (!(number >= 1e-7 && number < 1e15))
        return false;
    for (places = DBL_DIG; places > 0 && number >= powers[DBL_DIG - places]; places--)
        ;
    for (double below = 0.1; number < below && places < 22; below /= 10)
        places++;
    digits = (uint64_t)(number * powers[places] + 0.5);
    if (!digits || digits >= 1000000000000000u || (double)digits / powers[places] != number)
        return false;
    for (; digits % 10 == 0; places--)
        digits /= 10;
    decimal->count = (int)number_integer((int64_t)digits, decimal->digits);
    decimal->point = decimal->count - places;
    return true;
}

/* The shortest decimal that gives the number again, of those the nearest. number > 0, finite. */
static void shortest(double number, struct decimal *decimal)
{
    int exponent;
    /* A decimal of up to DBL_DIG digits survives the way through a normal double. So if a shorter
     * one exists, that of DBL_DIG digits is the same with zeros behind it. */
    int count = number < DBL_MIN ? 1 : DBL_DIG;
    bool power_of_two = frexp(number, &exponent) == 0.5;

    for (; count < DIGITS_MAX; count++) {
        round_to(number, count, decimal);
        if (gives(decimal, number))
            break;
        /* Above a power of two, doubles lie twice as far apart as below. So a decimal above may
         * give it if the nearest one, below, does not. */
        if (power_of_two && step_up(decimal) && gives(decimal, number))
            break;
    }
    if (count == DIGITS_MAX)
        round_to(number, count, decimal);
    while (decimal->count > 1 && decimal->digits[decimal->count - 1] == '0')
        decimal->count--;
}

static char *put_exponent(char *p, int exponent)
{
    return p + sprintf(p, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
}

size_t number_floating(double number, char *text)
{
    struct decimal decimal = {.digits = "0", .count = 1, .point = 1};
    char *p = text;

    if (isnan(number)) {
        memcpy(text, "nan", 3);
        return 3;
    }
    if (signbit(number))
        *p++ = '-';
    if (isinf(number)) {
        memcpy(p, "inf", 3);
        return (size_t)(p - text) + 3;
    }
    if (number != 0 && !easy(fabs(number), &decimal))
        shortest(fabs(number), &decimal);

    int before = decimal.point; /* digits before the point */
    if (before > 16 || before < -3) {
        *p++ = decimal.digits[0];
        if (decimal.count > 1) {
            *p++ = '.';
            memcpy(p, decimal.digits + 1, (size_t)decimal.count - 1);
            p += decimal.count - 1;
        }
        return (size_t)(put_exponent(p, before - 1) - text);
    }
    if (before <= 0)
        *p++ = '0';
    for (int i = 0; i < before; i++)
        *p++ = i < decimal.count ? decimal.digits[i] : '0';
    *p++ = '.';
    for (int i = before; i < 0; i++)
        *p++ = '0';
    int rest = before > 0 ? before : 0;
    if (rest >= decimal.count)
        *p++ = '0';
    for (; rest < decimal.count; rest++)
        *p++ = decimal.digits[rest];
    return (size_t)(p - text);
}

/* ---- ints beyond 64 bits ------------------------------------------------------------------ */

#define BASE 1000000000u /* nine decimal digits a place */
#define PLACE_DIGITS 9

#define WHOLE_BYTES 2048 /* more than any recorded int has */
#define WHOLE_PLACES 549 /* of WHOLE_BYTES bytes: 4933 digits */

/* Bytes, the most significant first, as places, the least significant first; returns how many. */
static size_t to_places(const uint8_t *bytes, size_t size, uint32_t *places)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        uint64_t carry = bytes[i];
        for (size_t k = 0; k < count; k++) {
            uint64_t n = ((uint64_t)places[k] << 8) + carry;
            places[k] = (uint32_t)(n % BASE);
            carry = n / BASE;
        }
        if (carry)
            places[count++] = (uint32_t)carry;
    }
    return count;
}

/* The first without leading zeros, the rest with; most significant first. */
static size_t put_place(char *text, uint32_t place, bool first)
{
    char digits[PLACE_DIGITS];
    size_t skip = 0;
    for (int i = PLACE_DIGITS - 1; i >= 0; i--, place /= 10)
        digits[i] = (char)('0' + place % 10);
    while (first && skip < PLACE_DIGITS - 1 && digits[skip] == '0')
        skip++;
    memcpy(text, digits + skip, PLACE_DIGITS - skip);
    return PLACE_DIGITS - skip;
}

/* A bound of a number too long to be written out: 0.PLACES times BASE to the power of `exponent`,
 * the most significant place first and not 0. Rounded down for a lower bound, up for an upper. */
#define BOUND_PLACES 30
#define BOUND_BYTES 96 /* have at most 232 digits, which fit */

struct bound {
    uint32_t places[BOUND_PLACES];
    uint64_t exponent;
};

static void bound_step_up(struct bound *bound)
{
    int i = BOUND_PLACES - 1;
    for (; i >= 0 && bound->places[i] == BASE - 1; i--)
        bound->places[i] = 0;
    if (i >= 0) {
        bound->places[i]++;
    } else {
        bound->places[0] = 1;
        bound->exponent++;
    }
}

static void bound_set(struct bound *bound, const uint32_t *places, size_t count)
{
    memset(bound, 0, sizeof *bound);
    bound->exponent = count;
    for (size_t i = 0; i < count; i++)
        bound->places[i] = places[count - 1 - i];
}

static void bound_multiply(struct bound *a, const struct bound *b, bool up)
{
    uint32_t product[2 * BOUND_PLACES] = {0};

    for (int i = BOUND_PLACES - 1; i >= 0; i--) {
        uint64_t carry = 0;
        for (int k = BOUND_PLACES - 1; k >= 0; k--) {
            uint64_t n = (uint64_t)a->places[i] * b->places[k] + product[i + k + 1] + carry;
            product[i + k + 1] = (uint32_t)(n % BASE);
            carry = n / BASE;
        }
        product[i] = (uint32_t)carry;
    }
    int shift = product[0] ? 0 : 1;
    memcpy(a->places, product + shift, sizeof a->places);
    a->exponent += b->exponent - (uint64_t)shift;
    if (up)
        bound_step_up(a);
}

/* Times two to the power of `shift`. */
static void bound_shift(struct bound *bound, uint64_t shift, bool up)
{
    struct bound power;
    bound_set(&power, (const uint32_t[]){2}, 1);
    for (; shift; shift >>= 1) {
        if (shift & 1)
            bound_multiply(bound, &power, up);
        if (shift > 1)
            bound_multiply(&power, &power, up);
    }
}

/* The digits that both bounds begin with: all numbers between them begin so, too. */
static size_t put_common(char *text, const struct bound *low, const struct bound *high)
{
    size_t length = 0;
    if (low->exponent != high->exponent)
        return 0;
    for (int i = 0; i < BOUND_PLACES; i++) {
        char a[PLACE_DIGITS], b[PLACE_DIGITS];
        size_t size = put_place(a, low->places[i], i == 0), same = 0;
        if (size != put_place(b, high->places[i], i == 0))
            break;
        while (same < size && a[same] == b[same])
            same++;
        memcpy(text + length, a, same);
        length += same;
        if (same < size)
            break;
    }
    return length;
}

static size_t put_leading(char *text, const uint8_t *bytes, size_t size, uint64_t whole_bytes)
{
    uint32_t places[BOUND_PLACES];
    struct bound low, high;
    uint64_t shift;

    while (size && !*bytes) { /* the hook does not write it, but files may have it */
        bytes++;
        size--;
        whole_bytes--;
    }
    if (!size)
        return 0;
    if (size > BOUND_BYTES)
        size = BOUND_BYTES;
    shift = 8 * (whole_bytes - size);
    bound_set(&low, places, to_places(bytes, size, places));
    high = low;
    /* the unknown bytes are less than one of the last that is known */
    for (size_t i = high.exponent; i-- > 0;) {
        if (high.places[i] < BASE - 1) {
            high.places[i]++;
            break;
        }
        high.places[i] = 0;
        if (i == 0) {
            high.places[0] = 1;
            high.exponent++;
        }
    }
    bound_shift(&low, shift, false);
    bound_shift(&high, shift, true);
    return put_common(text, &low, &high);
}

size_t number_big(const uint8_t *bytes, size_t size, uint64_t bits, char *text, bool *whole)
{
    uint64_t whole_bytes = bits / 8 + (bits % 8 != 0);
    size_t length = 0;

    *whole = true;
    if (size && *bytes)
        text[length++] = '-';
    if (size) {
        bytes++;
        size--;
    }
    if (whole_bytes <= size && size <= WHOLE_BYTES) {
        uint32_t places[WHOLE_PLACES];
        size_t count = to_places(bytes, size, places);
        if (!count)
            text[length++] = '0';
        for (size_t i = count; i-- > 0;)
            length += put_place(text + length, places[i], i == count - 1);
        return length;
    }
    *whole = false;
    return length + put_leading(text + length, bytes, size, whole_bytes > size ? whole_bytes : size);
}
