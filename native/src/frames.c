/* Messages out of frames, bytes out of messages, and messages of rows of COPY in text format. */

#include "loops.h"
#include "tags.h"

typedef struct {
    int64_t count;
    int64_t size;
} Taken;

/* As in logicalrep.transactions.frames. */
#define LONGEST_MESSAGE (1 << 30)

/* The result is what was taken. */
static bool copy_all(const Array *arrays, const int64_t *scalars, void *result)
{
    const int64_t header = scalars[0];
    const Array source = arrays[0], lsns = arrays[1], offsets = arrays[2], tags = arrays[3], target = arrays[4];
    /* A header ends with the LSN, of 8 bytes, and the length, of 4. */
    if (header < 12 || offsets.length == 0) {
        return false;
    }
    int64_t count = 0, offset = 0, start = 0;
    write32(offsets.bytes, 0, 0);
    while (source.length - start >= header) {
        const uint8_t *const at = source.bytes + start + header;
        const int64_t length = (int32_t)load32(at - 4);
        if (length < 0 || length > LONGEST_MESSAGE || length > source.length - start - header) {
            break;
        }
        if (count >= lsns.length || count >= tags.length || count + 1 >= offsets.length ||
            !copy_bytes(&target, offset, &source, start + header, length)) {
            return false;
        }
        write64(lsns.bytes, count, (int64_t)load64(at - 12));
        tags.bytes[count] = length > 0 ? *at : 0;
        offset += length;
        start += header + length;
        count++;
        write32(offsets.bytes, count, offset);
    }
    *(Taken *)result = (Taken){count, start};
    return true;
}

PyObject *copy_frames(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Taken taken;
    if (!run_loop(objects, count, "r1n w8w4w1w1", copy_all, &taken)) {
        return NULL;
    }
    return Py_BuildValue("LL", (long long)taken.count, (long long)taken.size);
}

static bool cut(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)result;
    const int64_t start = scalars[0], length = scalars[1];
    const Array source = arrays[0], begins = arrays[1], offsets = arrays[2], target = arrays[3];
    if (start < 0 || start > INT32_MAX || length < 0 || length > INT32_MAX || begins.length == 0 ||
        offsets.length < begins.length) {
        return false;
    }
    int64_t to = 0;
    write32(offsets.bytes, 0, 0);
    for (int64_t index = 0; index < begins.length - 1; index++) {
        const int64_t begin = read_int32(begins.bytes, index), behind = begin + start + length;
        const int64_t rest = read_int32(begins.bytes, index + 1) - behind;
        if (!copy_bytes(&target, to, &source, begin, start) ||
            !copy_bytes(&target, to + start, &source, behind, rest)) {
            return false;
        }
        to += start + rest;
        write32(offsets.bytes, index + 1, to);
    }
    return true;
}

PyObject *cut_out(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    if (!run_loop(objects, count, "r1r4n n w4w1", cut, NULL)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

#define VALUE_HEADER 5
#define ARE_WRONG (-1)

/* Writes a value without its escapes, for which there is room; returns its end. */
static int64_t unescape(const uint8_t *source, int64_t start, int64_t end, const uint8_t *meanings, uint8_t *target,
                        int64_t to)
{
    while (start < end) {
        uint8_t byte = source[start++];
        if (byte == '\\' && start < end) {
            byte = meanings[source[start++]];
        }
        target[to++] = byte;
    }
    return to;
}

/* The result is the number of rows, or ARE_WRONG. */
static bool insert_rows(const Array *arrays, const int64_t *scalars, void *result)
{
    int64_t *const rows = result;
    const int64_t columns = scalars[0];
    const Array source = arrays[0], beginning = arrays[1], meanings = arrays[2], offsets = arrays[3];
    const Array target = arrays[4];
    const uint8_t *const bytes = source.bytes;
    if (meanings.length != 256 || offsets.length == 0 || (source.length > 0 && bytes[source.length - 1] != '\n')) {
        return false;
    }
    int64_t count = 0, offset = 0, start = 0;
    write64(offsets.bytes, 0, 0);
    while (start < source.length) {
        if (!copy_bytes(&target, offset, &beginning, 0, beginning.length)) {
            return false;
        }
        offset += beginning.length;
        for (int64_t column = 1; column <= columns; column++) {
            /* Behind the last column is a newline, and so is the last byte. */
            if (start == source.length) {
                *rows = ARE_WRONG;
                return true;
            }
            int64_t end = start;
            bool has_escapes = false;
            for (; bytes[end] != '\t' && bytes[end] != '\n'; end++) {
                has_escapes |= bytes[end] == '\\';
            }
            if ((bytes[end] == '\n') != (column == columns)) {
                *rows = ARE_WRONG;
                return true;
            }
            if (has_escapes && end - start == 2 && bytes[start + 1] == 'N') {
                if (!has_index(&target, offset)) {
                    return false;
                }
                target.bytes[offset++] = NULL_VALUE;
            } else {
                const int64_t value = offset + VALUE_HEADER;
                int64_t length = end - start;
                if (!lies_in(&target, value, length)) {
                    return false;
                }
                if (has_escapes) {
                    length = unescape(bytes, start, end, meanings.bytes, target.bytes, value) - value;
                } else {
                    copy_bytes(&target, value, &source, start, length);
                }
                target.bytes[offset] = TEXT;
                for (int index = 0; index < 4; index++) {
                    target.bytes[offset + 1 + index] = (uint8_t)(length >> 8 * (3 - index));
                }
                offset = value + length;
            }
            start = end + 1;
        }
        if (columns == 0 && bytes[start++] != '\n') {
            *rows = ARE_WRONG;
            return true;
        }
        if (++count >= offsets.length) {
            return false;
        }
        write64(offsets.bytes, count, offset);
    }
    *rows = count;
    return true;
}

PyObject *insert_messages(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    int64_t rows;
    if (!run_loop(objects, count, "r1r1n r1w8w1", insert_rows, &rows)) {
        return NULL;
    }
    return PyLong_FromLongLong(rows);
}
