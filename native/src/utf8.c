/* UTF-8 validation. */

#include "utf8.h"

#include <string.h>

bool is_utf8(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        if (end - at >= 8) {
            uint64_t eight;
            memcpy(&eight, at, 8);
            if ((eight & 0x8080808080808080) == 0) {
                at += 8;
                continue;
            }
        }
        uint8_t first = *at++;
        if (first < 0x80) {
            continue;
        }
        int more;
        uint8_t low = 0x80, high = 0xBF;
        if (first >= 0xC2 && first <= 0xDF) {
            more = 1;
        } else if (first >= 0xE0 && first <= 0xEF) {
            more = 2;
            low = first == 0xE0 ? 0xA0 : low;
            high = first == 0xED ? 0x9F : high;
        } else if (first >= 0xF0 && first <= 0xF4) {
            more = 3;
            low = first == 0xF0 ? 0x90 : low;
            high = first == 0xF4 ? 0x8F : high;
        } else {
            return false;
        }
        if (end - at < more) {
            return false;
        }
        for (; more > 0; more--, at++) {
            if (*at < low || *at > high) {
                return false;
            }
            low = 0x80;
            high = 0xBF;
        }
    }
    return true;
}

/* Adjacent texts together. Compilers make vector instructions of these loops. */

#define CHUNK 1024

/* Returns a word with the bits of all bytes. */
static inline uint64_t bits_of(const uint8_t *at, int64_t size)
{
    uint64_t bits[8] = {0}, byte_bits = 0;
    int64_t index = 0;
    for (; index <= size - 64; index += 64) {
        for (int word = 0; word < 8; word++) {
            uint64_t value;
            memcpy(&value, at + index + 8 * word, 8);
            bits[word] |= value;
        }
    }
    for (; index < size; index++) {
        byte_bits |= at[index];
    }
    for (int word = 0; word < 8; word++) {
        byte_bits |= bits[word];
    }
    return byte_bits;
}

#define BEYOND_ASCII 0x8080808080808080

static bool is_ascii(const uint8_t *at, int64_t size)
{
    while (size > CHUNK && (bits_of(at, CHUNK) & BEYOND_ASCII) == 0) {
        at += CHUNK;
        size -= CHUNK;
    }
    return size <= CHUNK && (bits_of(at, size) & BEYOND_ASCII) == 0;
}

/* 0xFF if a condition holds, as vectors have it. */
#define MASK(condition) ((uint8_t)-(condition))
/* Vectors compare signed bytes alone: a flipped bit keeps the order. */
#define FLIPPED(byte) ((int8_t)((byte) ^ 0x80))
#define IS_ABOVE(flipped, limit) MASK((flipped) > FLIPPED(limit))
#define IS(flipped, byte) MASK((flipped) == FLIPPED(byte))

/* Whether a byte cannot follow the three bytes before it, which can be read. */
static inline bool has_errors(const uint8_t *at, int64_t size)
{
    uint8_t errors = 0;
    for (int64_t index = 0; index < size; index++) {
        const int8_t byte = FLIPPED(at[index]), last = FLIPPED(at[index - 1]);
        const int8_t second = FLIPPED(at[index - 2]), third = FLIPPED(at[index - 3]);
        const uint8_t continues = IS_ABOVE(byte, 0x7F) & ~IS_ABOVE(byte, 0xBF);
        errors |= continues ^ (IS_ABOVE(last, 0xBF) | IS_ABOVE(second, 0xDF) | IS_ABOVE(third, 0xEF));
        errors |= IS(byte, 0xC0) | IS(byte, 0xC1) | IS_ABOVE(byte, 0xF4);
        errors |= (IS(last, 0xE0) & ~IS_ABOVE(byte, 0x9F)) | (IS(last, 0xED) & IS_ABOVE(byte, 0x9F));
        errors |= (IS(last, 0xF0) & ~IS_ABOVE(byte, 0x8F)) | (IS(last, 0xF4) & IS_ABOVE(byte, 0x8F));
    }
    return errors != 0;
}

static bool is_utf8_together(const uint8_t *at, int64_t size)
{
    uint8_t window[3 + CHUNK] = {0};
    while (size > 0) {
        const int64_t part = size < CHUNK ? size : CHUNK;
        if (((bits_of(at, part) | bits_of(window, 3)) & BEYOND_ASCII) != 0) {
            memcpy(window + 3, at, (size_t)part);
            if (has_errors(window + 3, part)) {
                return false;
            }
            memmove(window, window + part, 3);
        }
        at += part;
        size -= part;
    }
    /* No character goes on behind the end. */
    return window[2] < 0xC0 && window[1] < 0xE0 && window[0] < 0xF0;
}

bool are_texts_utf8(const uint8_t *texts, int64_t size, const uint8_t *ends, int64_t count)
{
    if (is_ascii(texts, size)) {
        return true;
    }
    bool is_valid = is_utf8_together(texts, size);
    /* If all texts together are UTF-8, so is each text that does not begin in the middle of a character. */
    for (int64_t index = 0; index < count; index++) {
        uint32_t end;
        memcpy(&end, ends + 4 * index, 4);
        is_valid &= end == size || (texts[end] & 0xC0) != 0x80;
    }
    return is_valid;
}
