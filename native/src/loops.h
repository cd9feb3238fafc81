/* Loops over values: the functions of the module, and how they take arrays. */

#ifndef LOGICALREP_LOOPS_H
#define LOGICALREP_LOOPS_H

#include "buffers.h"

#define MOST_NUMBERS 3

/* The arrays and numbers among a function's arguments, in their order. The views stay until `release`. */
typedef struct {
    Views views;
    Array arrays[MOST_VIEWS];
    int64_t numbers[MOST_NUMBERS];
} Arguments;

/* Reads a function's arguments by their forms, two characters each: r1 to r8 an array of items of so many bytes, w1 to w8
   an array that the function writes, "n " a number; "(" and ")" enclose a tuple's items. False with an exception. */
bool read_arguments(Arguments *arguments, PyObject *const *objects, Py_ssize_t count, const char *forms);

/* Ends a function whose arrays do not fit together. */
PyObject *refuse(Arguments *arguments);

/* The work of a loop over its arrays and numbers; `result` is of the loop's own type. False if positions lie outside of the
   arrays. */
typedef bool Body(const Array *arrays, const int64_t *scalars, void *result);

/* Reads the arguments, and runs the body without the GIL; false with an exception. */
bool run_loop(PyObject *const *objects, Py_ssize_t count, const char *forms, Body *body, void *result);

static inline bool has_index(const Array *array, int64_t index)
{
    return (uint64_t)index < (uint64_t)array->length;
}

/* Whether `count` items from `start` on lie within the array. */
static inline bool lies_in(const Array *array, int64_t start, int64_t count)
{
    return start >= 0 && count >= 0 && start <= array->length - count;
}

/* Copies bytes to `to`, short ones as a block, whose excess the next copy overwrites; false if they do not fit. */
static inline bool copy_bytes(const Array *target, int64_t to, const Array *source, int64_t start, int64_t length)
{
    enum { BLOCK_SIZE = 32 };
    if ((uint64_t)length <= BLOCK_SIZE && (start | to) >= 0 && start <= source->length - BLOCK_SIZE &&
        to <= target->length - BLOCK_SIZE) {
        memcpy(target->bytes + to, source->bytes + start, BLOCK_SIZE);
        return true;
    }
    bool fits = lies_in(source, start, length) && lies_in(target, to, length);
    if (fits) {
        memcpy(target->bytes + to, source->bytes + start, (size_t)length);
    }
    return fits;
}

static inline int64_t read_int32(const uint8_t *bytes, int64_t index)
{
    int32_t value;
    memcpy(&value, bytes + 4 * index, 4);
    return value;
}

static inline int64_t read_uint32(const uint8_t *bytes, int64_t index)
{
    uint32_t value;
    memcpy(&value, bytes + 4 * index, 4);
    return value;
}

static inline bool has_bit(const Array *bits, int64_t index)
{
    return bits->bytes[index >> 3] >> (index & 7) & 1;
}

/* Adds the loops to the module. */
bool add_loops(PyObject *module);

typedef PyObject *Loop(PyObject *module, PyObject *const *objects, Py_ssize_t count);

Loop group_rows, find_rows;                       /* finding.c */
Loop follow, number_tables, fill_rows;            /* transactions.c */
Loop fill_maps;                                   /* maps.c */
Loop find_keys, find_names, copy_names, are_utf8; /* names.c */
Loop copy_frames, cut_out, insert_messages;       /* frames.c */

#endif
