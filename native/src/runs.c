/* Reads adjacent framed messages in one call, as long as none changes the session's state. */

#include "program.h"

/* The limits of a run, so that the objects of few messages exist at once. */
#define MOST_MESSAGES 256
#define MOST_BYTES (1 << 16)

typedef struct {
    Reader *reader;
    const char *tags;
    Py_ssize_t tag_count;
    Py_ssize_t offset; /* of a message's length, which does not count the bytes before */
    int width;
    bool is_signed;
    Py_ssize_t most; /* of a message's bytes */
    PyObject *encoding;
    PyObject *const *facts;
} Run;

/* The size of the message that begins here; 0 if it belongs to no run, or is incomplete. */
static Py_ssize_t framed_size(const Run *run, const unsigned char *at, Py_ssize_t size)
{
    if (size < run->offset + run->width || memchr(run->tags, *at, (size_t)run->tag_count) == NULL) {
        return 0;
    }
    uint64_t length = 0;
    for (int index = 0; index < run->width; index++) {
        length = length << 8 | at[run->offset + index];
    }
    /* A negative length, read as unsigned, is over the limit. */
    uint64_t limit = (uint64_t)(run->most < size ? run->most : size) - (uint64_t)run->offset;
    bool is_whole = length >= (uint64_t)run->width && length <= limit &&
                    !(run->is_signed && length >> (8 * run->width - 1));
    return is_whole ? run->offset + (Py_ssize_t)length : 0;
}

/* A pair of the bytes and the message; NULL without an exception for bytes that Python has to read. */
static PyObject *read_pair(const Run *run, const unsigned char *at, Py_ssize_t size)
{
    PyObject *message = read_or_refuse(run->reader, at, size, run->encoding, run->facts);
    if (message == NULL) {
        return NULL;
    }
    PyObject *data = PyBytes_FromStringAndSize((const char *)at, size);
    PyObject *pair = data == NULL ? NULL : PyTuple_Pack(2, data, message);
    Py_XDECREF(data);
    Py_DECREF(message);
    return pair;
}

static PyObject *read_pairs(const Run *run, const unsigned char *data, Py_ssize_t size)
{
    PyObject *pairs = PyList_New(0);
    Py_ssize_t offset = 0;
    for (int count = 0; pairs != NULL && count < MOST_MESSAGES && offset < size && offset < MOST_BYTES; count++) {
        Py_ssize_t own = framed_size(run, data + offset, size - offset);
        PyObject *pair = own == 0 ? NULL : read_pair(run, data + offset, own);
        if (pair == NULL && !PyErr_Occurred()) {
            break;
        }
        if (pair == NULL || PyList_Append(pairs, pair) < 0) {
            Py_CLEAR(pairs);
        }
        Py_XDECREF(pair);
        offset += own;
    }
    PyObject *result = pairs == NULL ? NULL : Py_BuildValue("(On)", pairs, offset);
    Py_XDECREF(pairs);
    return result;
}

static bool is_run(const Run *run)
{
    bool is_width = run->width == 1 || run->width == 2 || run->width == 4 || run->width == 8;
    if (!is_width || run->offset < 0 || run->offset > 64 || run->most < run->offset || !PyUnicode_Check(run->encoding)) {
        PyErr_SetString(PyExc_ValueError, "the frame of the messages is out of range");
        return false;
    }
    return true;
}

PyObject *read_run(Reader *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 5 + self->fact_count || !PyBytes_Check(arguments[1]) || !PyTuple_Check(arguments[2])) {
        PyErr_Format(PyExc_TypeError,
                     "read_run takes a buffer, tags, a frame, a limit, the name of an encoding, and %zd session facts",
                     self->fact_count);
        return NULL;
    }
    Run run = {.reader = self, .encoding = arguments[4], .facts = arguments + 5};
    char *tags;
    int is_signed;
    if (PyBytes_AsStringAndSize(arguments[1], &tags, &run.tag_count) < 0 ||
        !PyArg_ParseTuple(arguments[2], "nip", &run.offset, &run.width, &is_signed)) {
        return NULL;
    }
    run.tags = tags;
    run.is_signed = is_signed;
    run.most = PyLong_AsSsize_t(arguments[3]);
    if ((run.most == -1 && PyErr_Occurred()) || !is_run(&run)) {
        return NULL;
    }
    Py_buffer buffer;
    if (PyObject_GetBuffer(arguments[0], &buffer, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    PyObject *result = read_pairs(&run, buffer.buf, buffer.len);
    PyBuffer_Release(&buffer);
    return result;
}
