/* UTF-8 validation of adjacent texts at once. Compilers make vector instructions of its loops. */

#include "loops.h"

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

/* Returns whether the texts are UTF-8; -1 if ends lie outside. */
static int check_texts(const Array texts, const Array ends)
{
    const int64_t size = ends.length > 0 ? read_int32(ends.bytes, ends.length - 1) : -1;
    if (size < 0 || size > texts.length) {
        return -1;
    }
    if (is_ascii(texts.bytes, size)) {
        return true;
    }
    bool is_valid = is_utf8_together(texts.bytes, size);
    /* If all texts together are UTF-8, so is each text that does not begin in the middle of a character. */
    for (int64_t index = 0; index < ends.length; index++) {
        const int64_t end = read_int32(ends.bytes, index);
        if (end < 0 || end > size) {
            return -1;
        }
        is_valid &= end == size || (texts.bytes[end] & 0xC0) != 0x80;
    }
    return is_valid;
}

PyObject *are_utf8(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r1r4")) {
        return NULL;
    }
    int result;
    Py_BEGIN_ALLOW_THREADS;
    result = check_texts(of.arrays[0], of.arrays[1]);
    Py_END_ALLOW_THREADS;
    if (result < 0) {
        return refuse(&of);
    }
    release(&of.views);
    return PyBool_FromLong(result);
}
