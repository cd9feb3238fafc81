/* Arrays of a caller as memory with a known number of items. Every access is by memcpy, so alignment does not matter. */

#ifndef LOGICALREP_BUFFERS_H
#define LOGICALREP_BUFFERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef _MSC_VER
#define ALWAYS_INLINED static __forceinline
#define NEVER_INLINED static __declspec(noinline)
#else
#define ALWAYS_INLINED static inline __attribute__((always_inline))
#define NEVER_INLINED static __attribute__((noinline))
#endif
#define MOST_VIEWS 64

/* The views of a call, released together. */
typedef struct {
    Py_buffer views[MOST_VIEWS];
    int count;
} Views;

typedef struct {
    uint8_t *bytes;
    int64_t length; /* in items */
} Array;

/* Fills `array` with the memory of an object whose items have this width; false with an exception. */
static inline bool view_array(Views *views, PyObject *object, int width, bool writes, Array *array)
{
    if (views->count == MOST_VIEWS) {
        PyErr_SetString(PyExc_ValueError, "too many arrays");
        return false;
    }
    Py_buffer *view = &views->views[views->count];
    if (PyObject_GetBuffer(object, view, writes ? PyBUF_WRITABLE : PyBUF_SIMPLE) < 0) {
        return false;
    }
    views->count++;
    if (view->itemsize != width) {
        PyErr_Format(PyExc_ValueError, "an array has items of %zd bytes instead of %d", view->itemsize, width);
        return false;
    }
    array->bytes = view->buf;
    array->length = view->len / width;
    return true;
}

static inline void release(Views *views)
{
    while (views->count > 0) {
        PyBuffer_Release(&views->views[--views->count]);
    }
}

static inline int64_t read64(const uint8_t *bytes, int64_t index)
{
    int64_t value;
    memcpy(&value, bytes + 8 * index, 8);
    return value;
}

static inline void write64(uint8_t *bytes, int64_t index, int64_t value)
{
    memcpy(bytes + 8 * index, &value, 8);
}

static inline void write32(uint8_t *bytes, int64_t index, int64_t value)
{
    uint32_t low = (uint32_t)value;
    memcpy(bytes + 4 * index, &low, 4);
}

static inline void write16(uint8_t *bytes, int64_t index, int64_t value)
{
    uint16_t low = (uint16_t)value;
    memcpy(bytes + 2 * index, &low, 2);
}

static inline void write8(uint8_t *bytes, int64_t index, int64_t value)
{
    bytes[index] = (uint8_t)value;
}

/* Writes an integer of 1, 2, 4 or 8 bytes. */
static inline void write_integer(uint8_t *bytes, int width, int64_t index, int64_t value)
{
    switch (width) {
    case 8:
        write64(bytes, index, value);
        break;
    case 4:
        write32(bytes, index, value);
        break;
    case 2:
        write16(bytes, index, value);
        break;
    default:
        bytes[index] = (uint8_t)value;
    }
}

/* Integers in network byte order. Compilers do not always see that shifts of bytes are one load. */
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint64_t load64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return __builtin_bswap64(value);
}

static inline uint32_t load32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return __builtin_bswap32(value);
}

static inline uint16_t load16(const uint8_t *at)
{
    uint16_t value;
    memcpy(&value, at, 2);
    return __builtin_bswap16(value);
}
#else
static inline uint64_t load64(const uint8_t *at)
{
    return (uint64_t)at[0] << 56 | (uint64_t)at[1] << 48 | (uint64_t)at[2] << 40 | (uint64_t)at[3] << 32 |
           (uint64_t)at[4] << 24 | (uint64_t)at[5] << 16 | (uint64_t)at[6] << 8 | at[7];
}

static inline uint32_t load32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static inline uint16_t load16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}
#endif

static inline int64_t load_integer(const uint8_t *at, int width, bool is_signed)
{
    switch (width) {
    case 8:
        return (int64_t)load64(at);
    case 4:
        return is_signed ? (int32_t)load32(at) : (int64_t)load32(at);
    case 2:
        return is_signed ? (int16_t)load16(at) : (int64_t)load16(at);
    default:
        return is_signed ? (int8_t)*at : (int64_t)*at;
    }
}

#endif
