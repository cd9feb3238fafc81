/* Values copied together by their positions: the functions gather, gather_texts and spread_lists of the module. */

#include "columns.h"

#include "walk.h"

/* Views offsets of 32 or 64 bits; returns their width, 0 with an exception. */
static int view_offsets(Views *views, PyObject *object, Array *offsets)
{
    if (view_array(views, object, 8, true, offsets)) {
        return 8;
    }
    if (!PyErr_ExceptionMatches(PyExc_ValueError)) {
        return 0;
    }
    PyErr_Clear();
    return view_array(views, object, 4, true, offsets) ? 4 : 0;
}

/* Copies a value to `end`; false if it is not within the data, or the target is full. */
static inline bool append(const Array *data, int64_t start, int64_t length, const Array *values, int64_t end)
{
    if (start < 0 || length < 0 || start > data->length || length > data->length - start ||
        length > values->length - end) {
        return false;
    }
    if (length <= BLOCK && data->length - start >= BLOCK && values->length - end >= BLOCK) {
        memcpy(values->bytes + end, data->bytes + start, BLOCK);
    } else {
        memcpy(values->bytes + end, data->bytes + start, (size_t)length);
    }
    return true;
}

static PyObject *finish(Views *views, bool is_done)
{
    release(views);
    if (is_done) {
        Py_RETURN_NONE;
    }
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "positions lie outside of the data, or the arrays are too short");
    }
    return NULL;
}

PyObject *gather(PyObject *module, PyObject *arguments)
{
    (void)module;
    Views views = {.count = 0};
    Array data, starts, lengths, offsets, values;
    PyObject *objects[5];
    int width;
    if (!PyArg_ParseTuple(arguments, "OOOOO:gather", &objects[0], &objects[1], &objects[2], &objects[3], &objects[4]) ||
        !view_array(&views, objects[0], 1, false, &data) || !view_array(&views, objects[1], 8, false, &starts) ||
        !view_array(&views, objects[2], 4, false, &lengths) || !(width = view_offsets(&views, objects[3], &offsets)) ||
        !view_array(&views, objects[4], 1, true, &values)) {
        return finish(&views, false);
    }
    bool is_done = lengths.length >= starts.length && offsets.length > starts.length;
    int64_t end = 0;
    for (int64_t index = 0; is_done && index < starts.length; index++) {
        uint32_t length;
        memcpy(&length, lengths.bytes + 4 * index, 4);
        write_integer(offsets.bytes, width, index, end);
        is_done = append(&data, read64(starts.bytes, index), length, &values, end);
        end += length;
    }
    if (is_done) {
        write_integer(offsets.bytes, width, starts.length, end);
    }
    return finish(&views, is_done);
}

/* Writes the offset of each row; `values` is NULL for lists, whose items are not copied. */
static bool spread(const Array *data, const Array *spans, const Array *offsets, int width, const Array *values)
{
    int64_t row = 0, end = 0;
    for (int64_t index = 0; index < spans->length / 3; index++) {
        int64_t last = read64(spans->bytes, 3 * index), length = read64(spans->bytes, 3 * index + 2);
        if (last >= offsets->length || length < 0 || length > INT64_MAX - end) {
            return false;
        }
        for (; row <= last; row++) {
            write_integer(offsets->bytes, width, row, end);
        }
        if (values != NULL && !append(data, read64(spans->bytes, 3 * index + 1), length, values, end)) {
            return false;
        }
        end += length;
    }
    for (; row < offsets->length; row++) {
        write_integer(offsets->bytes, width, row, end);
    }
    return true;
}

PyObject *gather_texts(PyObject *module, PyObject *arguments)
{
    (void)module;
    Views views = {.count = 0};
    Array data, spans, offsets, values;
    PyObject *objects[4];
    int width;
    bool is_done = PyArg_ParseTuple(arguments, "OOOO:gather_texts", &objects[0], &objects[1], &objects[2], &objects[3]) &&
                   view_array(&views, objects[0], 1, false, &data) && view_array(&views, objects[1], 8, false, &spans) &&
                   (width = view_offsets(&views, objects[2], &offsets)) &&
                   view_array(&views, objects[3], 1, true, &values) && spread(&data, &spans, &offsets, width, &values);
    return finish(&views, is_done);
}

PyObject *spread_lists(PyObject *module, PyObject *arguments)
{
    (void)module;
    Views views = {.count = 0};
    Array spans, offsets;
    PyObject *objects[2];
    int width;
    bool is_done = PyArg_ParseTuple(arguments, "OO:spread_lists", &objects[0], &objects[1]) &&
                   view_array(&views, objects[0], 8, false, &spans) && (width = view_offsets(&views, objects[1], &offsets)) &&
                   spread(NULL, &spans, &offsets, width, NULL);
    return finish(&views, is_done);
}
