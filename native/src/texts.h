/* Texts of a known form, and bytes, recognized in place: see digits.h. */

#ifndef LOGICALREP_TEXTS_H
#define LOGICALREP_TEXTS_H

#include "digits.h"

/* Characters that are compared at once. */
#define LANES 32
#define ONES 0x0101010101010101u

/* Returns the values of eight lowercase hexadecimal digits; other bytes set bits of `wrong`. */
ALWAYS_INLINED uint64_t hexadecimal(uint64_t characters, uint64_t *wrong)
{
    const uint64_t values = (characters & 15 * ONES) + 9 * (characters >> 6 & ONES);
    const uint64_t are_letters = (values + 6 * ONES) >> 4 & ONES;
    /* Each value has one digit, with which its character must agree. */
    *wrong |= (characters ^ (values + ZEROS + 0x27 * are_letters)) | (values & 16 * ONES);
    return values;
}

/* Returns the four bytes that eight hexadecimal digits stand for. */
ALWAYS_INLINED uint32_t four_bytes(uint64_t values)
{
    values = (values | values >> 4) & 0x00FF00FF00FF00FF;
    values = (values | values >> 8) & 0x0000FFFF0000FFFF;
    return (uint32_t)(values | values >> 16);
}

ALWAYS_INLINED void store32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

/* Writes the bytes that hexadecimal digits stand for; false for an odd number of digits, and for other characters. */
ALWAYS_INLINED bool from_hexadecimal(const uint8_t *at, int64_t length, uint8_t *to)
{
    uint64_t wrong = 0;
    const uint8_t *const last = at + (length & ~(int64_t)7);
    for (; at < last; at += 8, to += 4) {
        store32(to, four_bytes(hexadecimal(load64(at), &wrong)));
    }
    uint8_t rest[8] = {'0', '0', '0', '0', '0', '0', '0', '0'}, bytes[4];
    memcpy(rest, at, (size_t)(length & 7));
    store32(bytes, four_bytes(hexadecimal(load64(rest), &wrong)));
    memcpy(to, bytes, (size_t)(length & 7) / 2);
    return wrong == 0 && length % 2 == 0;
}


/* Collects what is wrong with LANES characters of a UUID, where `hyphens` has 1 for a hyphen. */
ALWAYS_INLINED uint8_t wrong_uuid(const uint8_t *at, const uint8_t *hyphens)
{
    uint8_t wrong = 0;
    for (int index = 0; index < LANES; index++) {
        const uint8_t character = at[index], hyphen = hyphens[index];
        const uint8_t is_none = ((uint8_t)(character - '0') > 9) & ((uint8_t)(character - 'a') > 5);
        wrong |= (uint8_t)((is_none ^ hyphen) | ((character ^ '-') & (uint8_t)-hyphen));
    }
    return wrong;
}

ALWAYS_INLINED bool is_uuid(const Source *source, const Value *value)
{
    static const uint8_t hyphens[36] = {[8] = 1, [13] = 1, [18] = 1, [23] = 1};
    if (value->kind != TEXT || value->length != 36) {
        return false;
    }
    const uint8_t *at = source->data + value->start;
    return (wrong_uuid(at, hyphens) | wrong_uuid(at + 4, hyphens + 4)) == 0;
}

/* Whether the text is a decimal number without leading zeros, as the server prints it. */
ALWAYS_INLINED bool is_number(const Source *source, const Value *value)
{
    const bool negative = has_minus(source, value);
    const uint8_t *at = source->data + value->start + negative;
    const int64_t size = value->length - negative;
    if (value->kind != TEXT || size <= 0 || at[0] == '.' || at[size - 1] == '.' ||
        (at[0] == '0' && size > 1 && at[1] != '.')) {
        return false;
    }
    int64_t points = 0;
    uint8_t wrong = 0;
    if (size <= LANES && value->start + negative + LANES <= source->size) {
        /* Whatever the length, which spares an unpredictable branch. */
        uint8_t count = 0;
        for (uint8_t lane = 0; lane < LANES; lane++) {
            const uint8_t byte = at[lane], is_point = byte == '.';
            const uint8_t is_within = lane < (uint8_t)size;
            count = (uint8_t)(count + (is_point & is_within));
            wrong |= (uint8_t)(((uint8_t)(byte - '0') > 9) & !is_point & is_within);
        }
        points = count;
    } else {
        for (int64_t index = 0; index < size; index++) {
            points += at[index] == '.';
            wrong |= at[index] != '.' && (uint8_t)(at[index] - '0') > 9;
        }
    }
    return points <= 1 && !wrong;
}

#endif
