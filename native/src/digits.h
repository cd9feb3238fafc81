/* Integers, decimals, floating point numbers and booleans, read in place from their text or binary format.

   Each function returns whether it has read the value; it reads exactly as its counterpart in logicalrep/values does, and
   leaves every other value. Offsets are of the data, whose value from `start` on the caller has checked. A text is read as
   two integers of eight characters that end at its end, with other bytes masked out: a loop over a few characters costs
   more in mispredicted branches. */

#ifndef LOGICALREP_DIGITS_H
#define LOGICALREP_DIGITS_H

#include "buffers.h"

#include <float.h>

#define TEXT 't'
#define BINARY 'b'

/* Compilers compare adjacent smaller fields at once, and wait for both to be written. */
typedef struct {
    int64_t row;
    int64_t start;
    int64_t length;
    int64_t kind;
} Value;

/* Where the values of a column are, and the modifier of their type. */
typedef struct {
    const uint8_t *data;
    int64_t size;
    int64_t precision;
    int64_t scale;
} Source;

/* For each byte of an integer: the character 0, the highest bit, and the addend that sets this bit if a byte exceeds 9. */
#define ZEROS 0x3030303030303030u
#define HIGH 0x8080808080808080u
#define TO_HIGH 0x7676767676767676u

static const int64_t POWERS[19] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    1000000,
    10000000,
    100000000,
    1000000000,
    10000000000,
    100000000000,
    1000000000000,
    10000000000000,
    100000000000000,
    1000000000000000,
    10000000000000000,
    100000000000000000,
    1000000000000000000,
};

/* Masks of the last 0 to 8 characters of an integer. */
static const uint64_t LAST[9] = {
    0,
    0xFF,
    0xFFFF,
    0xFFFFFF,
    0xFFFFFFFF,
    0xFFFFFFFFFF,
    0xFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFF,
    0xFFFFFFFFFFFFFFFF,
};

/* Returns in each byte the number of its digit and the previous digit, for an integer in network byte order. */
ALWAYS_INLINED uint64_t pairs(uint64_t digits)
{
    return (digits >> 8) * 10 + digits;
}

ALWAYS_INLINED uint64_t beyond_nine(uint64_t digits)
{
    return (digits | (digits + TO_HIGH)) & HIGH;
}

ALWAYS_INLINED int64_t eight_digits(uint64_t digits)
{
    const uint64_t numbers = pairs(digits);
    /* The upper half of each product holds two of these, times their weights. */
    const uint64_t first = numbers & 0x000000FF000000FF, second = numbers >> 16 & 0x000000FF000000FF;
    return (int64_t)((first * ((1ULL << 32) + 10000) + second * ((100ULL << 32) + 1000000)) >> 32);
}

/* Reads digits one by one: 17 or 18 of them, or digits at the beginning of the data. */
NEVER_INLINED int64_t few_digits(const uint8_t *at, const uint8_t *end)
{
    int64_t number = 0;
    for (; at < end; at++) {
        const uint8_t digit = (uint8_t)(*at - '0');
        if (digit > 9) {
            return -1;
        }
        number = 10 * number + digit;
    }
    return number;
}

/* Returns the number of the 0 to 8 digits before `end`; -1 if a byte is not a digit. */
ALWAYS_INLINED int64_t last_digits(const uint8_t *data, int64_t end, int64_t size)
{
    if (end < 8) {
        return few_digits(data + end - size, data + end);
    }
    const uint64_t digits = (load64(data + end - 8) ^ ZEROS) & LAST[size];
    return beyond_nine(digits) ? -1 : eight_digits(digits);
}

/* Returns the number that 1 to 18 digits stand for; -1 for other bytes, or more of them. */
ALWAYS_INLINED int64_t read_digits(const uint8_t *data, int64_t start, int64_t end)
{
    const int64_t size = end - start;
    if (size <= 0 || size > 18) {
        return -1;
    }
    if (size <= 8) {
        return last_digits(data, end, size);
    }
    if (size > 16 || end < 16) {
        return few_digits(data + start, data + end);
    }
    const uint64_t last = load64(data + end - 8) ^ ZEROS;
    const uint64_t former = (load64(data + end - 16) ^ ZEROS) & LAST[size - 8];
    if (beyond_nine(last) | beyond_nine(former)) {
        return -1;
    }
    return eight_digits(former) * 100000000 + eight_digits(last);
}

ALWAYS_INLINED bool has_minus(const Source *source, const Value *value)
{
    return value->length > 0 && source->data[value->start] == '-';
}

/* A sign is as unpredictable as a size, so there is no branch for it. */
ALWAYS_INLINED int64_t with_sign(int64_t number, bool negative)
{
    return (number ^ -(int64_t)negative) + negative;
}

ALWAYS_INLINED bool parse_integer(const Source *source, const Value *value, int64_t low, int64_t high, int width, bool is_signed, int64_t *number)
{
    if (value->kind == BINARY) {
        const bool is_whole = value->length == width;
        *number = is_whole ? load_integer(source->data + value->start, width, is_signed) : 0;
        return is_whole;
    }
    const bool negative = has_minus(source, value);
    const int64_t digits = read_digits(source->data, value->start + negative, value->start + value->length);
    *number = with_sign(digits, negative);
    return (digits >= 0) & (low <= *number) & (*number <= high);
}

ALWAYS_INLINED bool parse_int16(const Source *source, const Value *value, int64_t *number)
{
    return parse_integer(source, value, INT16_MIN, INT16_MAX, 2, true, number);
}

ALWAYS_INLINED bool parse_int32(const Source *source, const Value *value, int64_t *number)
{
    return parse_integer(source, value, INT32_MIN, INT32_MAX, 4, true, number);
}

ALWAYS_INLINED bool parse_int64(const Source *source, const Value *value, int64_t *number)
{
    return parse_integer(source, value, INT64_MIN, INT64_MAX, 8, true, number);
}

ALWAYS_INLINED bool parse_oid(const Source *source, const Value *value, int64_t *number)
{
    return parse_integer(source, value, 0, UINT32_MAX, 4, false, number);
}

ALWAYS_INLINED bool parse_boolean(const Source *source, const Value *value, int64_t *number)
{
    const uint8_t byte = value->length == 1 ? source->data[value->start] : 255;
    *number = byte == (value->kind == TEXT ? 't' : 1);
    return *number || byte == (value->kind == TEXT ? 'f' : 0);
}

/* Reads a decimal number's digits as an integer, and counts them, and those after the point; false if the text is not such
   a number, or has more than 18 digits. */
ALWAYS_INLINED bool read_scaled(const uint8_t *data, int64_t start, int64_t end, int64_t *number, int *digits,
                               int64_t *places)
{
    int64_t point = -1, sum = 0;
    int count = 0;
    for (int64_t offset = start; offset < end; offset++) {
        const uint8_t byte = data[offset], digit = (uint8_t)(byte - '0');
        if (byte == '.' && point < 0 && offset > start && offset + 1 < end) {
            point = offset;
        } else if (digit <= 9 && count < 18) {
            sum = 10 * sum + digit;
            count++;
        } else {
            return false;
        }
    }
    *number = sum;
    *digits = count;
    *places = point < 0 ? 0 : end - point - 1;
    return count > 0;
}

/* Returns the number in the 3 to 16 characters before `end` as an integer; -1 if a character is not a digit, except the
   point before the last 1 to 8. */
ALWAYS_INLINED int64_t without_point(const uint8_t *data, int64_t end, int64_t size, int64_t scale)
{
    uint64_t last = load64(data + end - 8) ^ ZEROS, former = load64(data + end - 16) ^ ZEROS;
    const uint64_t behind = LAST[scale];
    /* The characters before the point move into its place. */
    last = (last & behind) | ((last >> 8 | former << 56) & ~behind);
    if (size <= 9) {
        last &= LAST[size - 1];
        return beyond_nine(last) ? -1 : eight_digits(last);
    }
    former = former >> 8 & LAST[size - 9];
    if (beyond_nine(last) | beyond_nine(former)) {
        return -1;
    }
    return eight_digits(former) * 100000000 + eight_digits(last);
}

ALWAYS_INLINED bool parse_decimal(const Source *source, const Value *value, int64_t *number)
{
    if (value->kind != TEXT) {
        return false;
    }
    const uint8_t *data = source->data;
    const bool negative = has_minus(source, value);
    const int64_t start = value->start + negative, end = value->start + value->length, scale = source->scale;
    const int64_t point = end - scale - 1;
    int64_t digits;
    if (0 < scale && scale <= 8 && point > start && end - start <= 16 && end >= 16 && data[point] == '.') {
        /* The server prints all digits of the scale after the point. */
        digits = without_point(data, end, end - start, scale);
        if (digits < 0) {
            return false;
        }
    } else {
        int count;
        int64_t places;
        if (!read_scaled(data, start, end, &digits, &count, &places) || scale < places || scale - places > 18 - count) {
            return false;
        }
        digits *= POWERS[scale - places];
    }
    *number = with_sign(digits, negative);
    return source->precision >= 18 || digits < POWERS[source->precision];
}

/* Reads a number of few digits: an integer of up to `most`, the largest that is exact. Dividing it by a power of ten, exact
   too, rounds once. */
ALWAYS_INLINED bool parse_exact(const Source *source, const Value *value, int64_t most, int most_places, int64_t *number, int64_t *places)
{
    int count;
    const bool negative = has_minus(source, value);
    if (value->kind != TEXT || !read_scaled(source->data, value->start + negative, value->start + value->length, number,
                                            &count, places)) {
        return false;
    }
    /* A negative zero is left, to keep its sign; every number, where a division rounds twice. */
    const bool is_exact = *number <= most && *places <= most_places && !(negative && *number == 0);
    *number = with_sign(*number, negative);
    return is_exact && FLT_EVAL_METHOD == 0;
}

ALWAYS_INLINED bool parse_float32(const Source *source, const Value *value, int64_t *bits)
{
    static const float powers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
    int64_t number, places;
    if (!parse_exact(source, value, 1 << 24, 10, &number, &places)) {
        return false;
    }
    const float result = (float)number / powers[places];
    uint32_t result_bits;
    memcpy(&result_bits, &result, sizeof result);
    *bits = result_bits;
    return true;
}

ALWAYS_INLINED bool parse_float64(const Source *source, const Value *value, int64_t *bits)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    int64_t number, places;
    if (!parse_exact(source, value, 1LL << 53, 22, &number, &places)) {
        return false;
    }
    const double result = (double)number / powers[places];
    memcpy(bits, &result, sizeof result);
    return true;
}

#endif
