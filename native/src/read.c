/* Runs a program over the bytes of a message. What is refused here, the parser in Python reads again for its error. */

#include "program.h"

/* Measures of a layout that need no allocation. */
#define FEW 8

/* The measure of a value that is null. */
#define NO_VALUE -1

typedef struct {
    Reader *reader;
    const unsigned char *at;
    const unsigned char *end;
    PyObject *encoding;
    PyObject *const *facts;
} Cursor;

static PyObject *read_program(Cursor *cursor, const Program *program);

static bool has(const Cursor *cursor, Py_ssize_t size)
{
    return cursor->end - cursor->at >= size;
}

static uint64_t take(Cursor *cursor, int width)
{
    uint64_t number = 0;
    for (int index = 0; index < width; index++) {
        number = number << 8 | cursor->at[index];
    }
    cursor->at += width;
    return number;
}

static long long extended(uint64_t number, int width)
{
    uint64_t sign = (uint64_t)1 << (8 * width - 1);
    return (long long)((number ^ sign) - sign);
}

static PyObject *integer_of(const Operation *operation, uint64_t number)
{
    if (operation->is_signed) {
        return PyLong_FromLongLong(extended(number, operation->width));
    }
    return PyLong_FromUnsignedLongLong(number);
}

static PyObject *wrapped(const Cursor *cursor, const Operation *operation, PyObject *plain)
{
    if (plain == NULL || operation->wrapper == NULL) {
        return plain;
    }
    PyObject *arguments = PyTuple_New(1);
    if (arguments == NULL) {
        Py_DECREF(plain);
        return NULL;
    }
    if (PyTuple_SetItem(arguments, 0, plain) < 0) {
        Py_DECREF(arguments);
        return NULL;
    }
    PyObject *value = operation->is_subclass
                          ? cursor->reader->new_integer((PyTypeObject *)operation->wrapper, arguments, NULL)
                          : PyObject_CallObject(operation->wrapper, arguments);
    Py_DECREF(arguments);
    return value;
}

static PyObject *read_integer(Cursor *cursor, const Operation *operation)
{
    if (!has(cursor, operation->width)) {
        return NULL;
    }
    uint64_t number = take(cursor, operation->width);
    long long code = operation->is_signed ? extended(number, operation->width) : (long long)number;
    for (Py_ssize_t index = 0; index < operation->code_count; index++) {
        if (operation->codes[index].code == code) {
            if (operation->kind == VALUE) {
                Py_INCREF(operation->codes[index].object);
                return operation->codes[index].object;
            }
            return NULL;
        }
    }
    return operation->kind == VALUE ? NULL : wrapped(cursor, operation, integer_of(operation, number));
}

static PyObject *read_text(Cursor *cursor)
{
    const unsigned char *zero = memchr(cursor->at, 0, (size_t)(cursor->end - cursor->at));
    if (zero == NULL) {
        return NULL;
    }
    const char *text = (const char *)cursor->at;
    Py_ssize_t size = zero - cursor->at;
    cursor->at = zero + 1;
    if (PyUnicode_CompareWithASCIIString(cursor->encoding, "utf-8") == 0) {
        return PyUnicode_DecodeUTF8(text, size, NULL);
    }
    Py_ssize_t length;
    const char *encoding = PyUnicode_AsUTF8AndSize(cursor->encoding, &length);
    if (encoding == NULL || strlen(encoding) != (size_t)length) {
        return NULL;
    }
    return PyUnicode_Decode(text, size, encoding, NULL);
}

static PyObject *read_character(Cursor *cursor)
{
    return has(cursor, 1) && *cursor->at != 0 ? PyUnicode_FromOrdinal(*cursor->at++) : NULL;
}

static PyObject *read_bytes(Cursor *cursor, Py_ssize_t size)
{
    if (!has(cursor, size)) {
        return NULL;
    }
    cursor->at += size;
    return PyBytes_FromStringAndSize((const char *)cursor->at - size, size);
}

static PyObject *read_item(Cursor *cursor, const Operation *item)
{
    switch (item->kind) {
    case TEXT:
        return read_text(cursor);
    case GROUP:
        return read_program(cursor, item->program);
    case CHARACTER:
        return read_character(cursor);
    default:
        return read_integer(cursor, item);
    }
}

/* Every item takes a byte at least, so that a count is never believed beyond the message. */
static PyObject *read_items(Cursor *cursor, const Operation *operation, Py_ssize_t count)
{
    if (count < 0 || count > (cursor->end - cursor->at) / operation->size) {
        return NULL;
    }
    PyObject *items = PyTuple_New(count);
    for (Py_ssize_t index = 0; items != NULL && index < count; index++) {
        PyObject *value = read_item(cursor, operation->body);
        if (value == NULL || PyTuple_SetItem(items, index, value) < 0) {
            Py_CLEAR(items);
        }
    }
    return items;
}

static PyObject *read_items_until(Cursor *cursor, const Operation *operation)
{
    PyObject *items = PyList_New(0);
    while (items != NULL &&
           !(has(cursor, operation->size) && memcmp(cursor->at, operation->bytes, (size_t)operation->size) == 0)) {
        PyObject *value = read_item(cursor, operation->body);
        if (value == NULL || PyList_Append(items, value) < 0) {
            Py_CLEAR(items);
        }
        Py_XDECREF(value);
    }
    if (items == NULL) {
        return NULL;
    }
    cursor->at += operation->is_consumed ? operation->size : 0;
    PyObject *values = PyList_AsTuple(items);
    Py_DECREF(items);
    return values;
}

/* Fills the kinds, and returns the values. */
static PyObject *read_choices(Cursor *cursor, const Operation *operation, unsigned char *kinds, Py_ssize_t count)
{
    PyObject *values = PyTuple_New(count);
    if (values == NULL) {
        return NULL;
    }
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *value = NULL;
        if (has(cursor, 1)) {
            unsigned char kind = kinds[index] = *cursor->at++;
            if (operation->cases[kind] == BARE) {
                value = Py_None;
                Py_INCREF(value);
            } else if (operation->cases[kind] == VALUED && has(cursor, operation->width)) {
                uint64_t size = take(cursor, operation->width);
                /* A negative size, read as unsigned, lies beyond the message like any that is too large. */
                if (size <= (uint64_t)(cursor->end - cursor->at)) {
                    value = read_bytes(cursor, (Py_ssize_t)size);
                }
            }
        }
        if (value == NULL || PyTuple_SetItem(values, index, value) < 0) {
            Py_DECREF(values);
            return NULL;
        }
    }
    return values;
}

static bool set(PyObject *object, const Program *program, Py_ssize_t attribute, PyObject *value)
{
    if (value == NULL) {
        return false;
    }
    PyObject **slot = slot_in(object, program, attribute), *previous = *slot;
    *slot = value;
    Py_XDECREF(previous);
    return true;
}

static bool set_choices(Cursor *cursor, const Program *program, const Operation *operation, Py_ssize_t count,
                        PyObject *object)
{
    if (count < 0 || count > cursor->end - cursor->at) {
        return false;
    }
    PyObject *kinds = PyBytes_FromStringAndSize(NULL, count);
    if (kinds == NULL) {
        return false;
    }
    PyObject *values = read_choices(cursor, operation, (unsigned char *)PyBytes_AsString(kinds), count);
    if (values == NULL) {
        Py_DECREF(kinds);
        return false;
    }
    if (!set(object, program, operation->attribute, kinds)) {
        Py_DECREF(values);
        return false;
    }
    return set(object, program, operation->values, values);
}

static bool take_measure(Cursor *cursor, const Operation *operation, Py_ssize_t *measure)
{
    if (!has(cursor, operation->width)) {
        return false;
    }
    uint64_t number = take(cursor, operation->width);
    if (operation->is_signed && extended(number, operation->width) < 0) {
        *measure = NO_VALUE;
        return operation->is_nullable && extended(number, operation->width) == NO_VALUE;
    }
    if (number > (uint64_t)PY_SSIZE_T_MAX) {
        return false;
    }
    *measure = (Py_ssize_t)number;
    return true;
}

static PyObject *read_measured(Cursor *cursor, Py_ssize_t size)
{
    if (size == NO_VALUE) {
        Py_RETURN_NONE;
    }
    return read_bytes(cursor, size);
}

/* Whether the message ends where its length says. */
static bool take_length(Cursor *cursor, const Operation *operation)
{
    Py_ssize_t size = cursor->end - cursor->at;
    return size >= operation->width && take(cursor, operation->width) == (uint64_t)size;
}

/* Returns 1 where the body is there, 0 where not, -1 with an exception. */
static int goes_on(const Cursor *cursor, const Operation *operation)
{
    if (operation->kind == FACT) {
        return PyObject_IsTrue(cursor->facts[operation->fact]);
    }
    return has(cursor, 1) && memchr(operation->bytes, *cursor->at, (size_t)operation->size) != NULL;
}

static bool run(Cursor *cursor, const Program *program, const Operation *operations, Py_ssize_t count,
                Py_ssize_t *measures, PyObject *object)
{
    for (const Operation *operation = operations; operation < operations + count; operation++) {
        PyObject *value = NULL;
        switch (operation->kind) {
        case CONSTANT:
            if (!has(cursor, operation->size) ||
                memcmp(cursor->at, operation->bytes, (size_t)operation->size) != 0) {
                return false;
            }
            cursor->at += operation->size;
            continue;
        case LENGTH:
            if (!take_length(cursor, operation)) {
                return false;
            }
            continue;
        case MEASURE:
            if (!take_measure(cursor, operation, &measures[operation->measure])) {
                return false;
            }
            continue;
        case CHOICES:
            if (!set_choices(cursor, program, operation, measures[operation->measure], object)) {
                return false;
            }
            continue;
        case FACT:
        case AHEAD: {
            int there = goes_on(cursor, operation);
            if (there < 0) {
                return false;
            }
            if (there) {
                if (!run(cursor, program, operation->body, operation->body_count, measures, object)) {
                    return false;
                }
                continue;
            }
            for (Py_ssize_t index = 0; index < operation->absent_count; index++) {
                Py_INCREF(Py_None);
                if (!set(object, program, operation->absent[index], Py_None)) {
                    return false;
                }
            }
            continue;
        }
        case INTEGER:
        case VALUE:
            value = read_integer(cursor, operation);
            break;
        case CHARACTER:
            value = read_character(cursor);
            break;
        case TEXT:
            value = read_text(cursor);
            break;
        case BYTES:
            value = read_measured(cursor, measures[operation->measure]);
            break;
        case FIXED:
            value = read_bytes(cursor, operation->size);
            break;
        case REST:
            value = read_bytes(cursor, cursor->end - cursor->at);
            break;
        case GROUP:
            value = read_program(cursor, operation->program);
            break;
        case ITEMS:
            value = read_items(cursor, operation, measures[operation->measure]);
            break;
        case UNTIL:
            value = read_items_until(cursor, operation);
            break;
        }
        if (!set(object, program, operation->attribute, value)) {
            return false;
        }
    }
    return true;
}

static PyObject *read_program(Cursor *cursor, const Program *program)
{
    Py_ssize_t few[FEW] = {0};
    Py_ssize_t *measures = few;
    if (program->measure_count > FEW) {
        measures = PyMem_Calloc((size_t)program->measure_count, sizeof(Py_ssize_t));
        if (measures == NULL) {
            return PyErr_NoMemory();
        }
    }
    PyObject *object = PyType_GenericAlloc(program->class, 0);
    if (object != NULL &&
        !run(cursor, program, program->operations, program->operation_count, measures, object)) {
        Py_CLEAR(object);
    }
    if (measures != few) {
        PyMem_Free(measures);
    }
    return object;
}

PyObject *read_message(Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *encoding,
                       PyObject *const *facts)
{
    const Program *program = find_program(reader, data, size, facts);
    if (program == NULL) {
        return NULL;
    }
    Cursor cursor = {reader, data, data + size, encoding, facts};
    PyObject *message = read_program(&cursor, program);
    if (message != NULL && cursor.at != cursor.end) {
        Py_CLEAR(message);
    }
    return message;
}
