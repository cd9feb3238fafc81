/* Writes a message by the program that reads it. What is refused here, `build` in Python writes, or raises its error. */

#include "program.h"

/* A longer message is written twice: the first time counts its bytes. */
#define SHORT 1024

/* Measures of a layout; layouts with more are left to Python. */
#define FEW 8

typedef struct {
    char *bytes;
    Py_ssize_t size; /* may exceed the capacity: bytes without room are counted only */
    Py_ssize_t capacity;
    PyObject *encoding;
} Output;

/* The place of a count, which is written when its items are. */
typedef struct {
    const Operation *measure;
    Py_ssize_t offset;
} Place;

static bool write_program(Output *output, const Program *program, PyObject *object);

/* Counts bytes, and returns their place; NULL where there is no room. */
static char *added(Output *output, Py_ssize_t size)
{
    Py_ssize_t offset = output->size;
    output->size = size > PY_SSIZE_T_MAX - offset ? PY_SSIZE_T_MAX : offset + size;
    return output->size <= output->capacity ? output->bytes + offset : NULL;
}

static void add_bytes(Output *output, const char *bytes, Py_ssize_t size)
{
    char *place = added(output, size);
    if (place != NULL) {
        memcpy(place, bytes, (size_t)size);
    }
}

static void put(char *place, uint64_t number, int width)
{
    for (int index = width - 1; index >= 0; index--) {
        place[index] = (char)(number & 0xFF);
        number >>= 8;
    }
}

static void add_number(Output *output, uint64_t number, int width)
{
    char *place = added(output, width);
    if (place != NULL) {
        put(place, number, width);
    }
}

static bool fits(long long number, int width, bool is_signed)
{
    if (!is_signed && number < 0) {
        return false;
    }
    int bits = 8 * width - is_signed;
    return bits >= 63 || (number >> bits) == (number < 0 ? -1 : 0);
}

static bool write_count(Output *output, const Place *place, Py_ssize_t count)
{
    if (place->measure == NULL || !fits(count, place->measure->width, place->measure->is_signed)) {
        return false;
    }
    if (place->offset <= output->capacity - place->measure->width) {
        put(output->bytes + place->offset, (uint64_t)count, place->measure->width);
    }
    return true;
}

/* Integers of other classes may compare as they like, so Python asks them. */
static bool write_integer(Output *output, const Operation *operation, PyObject *value)
{
    if (!PyLong_CheckExact(value) &&
        !(operation->is_plain && Py_TYPE(value) == (PyTypeObject *)operation->wrapper)) {
        return false;
    }
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow > 0 && operation->width == 8 && !operation->is_signed) {
        number = (long long)PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred()) {
            return false;
        }
    } else if (overflow != 0 || !fits(number, operation->width, operation->is_signed)) {
        return false;
    }
    for (Py_ssize_t index = 0; index < operation->code_count; index++) {
        if (operation->codes[index].code == number) {
            return false;
        }
    }
    add_number(output, (uint64_t)number, operation->width);
    return true;
}

static bool write_value(Output *output, const Operation *operation, PyObject *value)
{
    for (Py_ssize_t index = 0; index < operation->code_count; index++) {
        if (operation->codes[index].object == value) {
            add_number(output, (uint64_t)operation->codes[index].code, operation->width);
            return true;
        }
    }
    return false;
}

static bool write_terminated(Output *output, const char *text, Py_ssize_t size)
{
    if (memchr(text, 0, (size_t)size) != NULL) {
        return false;
    }
    add_bytes(output, text, size);
    add_number(output, 0, 1);
    return true;
}

static bool write_text(Output *output, PyObject *value)
{
    Py_ssize_t size;
    if (!PyUnicode_CheckExact(value)) {
        return false;
    }
    if (PyUnicode_CompareWithASCIIString(output->encoding, "utf-8") == 0) {
        const char *text = PyUnicode_AsUTF8AndSize(value, &size);
        return text != NULL && write_terminated(output, text, size);
    }
    const char *encoding = PyUnicode_AsUTF8AndSize(output->encoding, &size);
    if (encoding == NULL || strlen(encoding) != (size_t)size) {
        return false;
    }
    PyObject *text = PyUnicode_AsEncodedString(value, encoding, NULL);
    bool is_written = text != NULL && write_terminated(output, PyBytes_AsString(text), PyBytes_Size(text));
    Py_XDECREF(text);
    return is_written;
}

static bool write_measured(Output *output, const Place *place, PyObject *value)
{
    if (!PyBytes_CheckExact(value) || (place != NULL && !write_count(output, place, PyBytes_Size(value)))) {
        return false;
    }
    add_bytes(output, PyBytes_AsString(value), PyBytes_Size(value));
    return true;
}

static bool write_group(Output *output, const Operation *operation, PyObject *value)
{
    return Py_TYPE(value) == operation->program->class && write_program(output, operation->program, value);
}

static bool write_item(Output *output, const Operation *item, PyObject *value)
{
    switch (item->kind) {
    case INTEGER:
        return write_integer(output, item, value);
    case TEXT:
        return write_text(output, value);
    case GROUP:
        return write_group(output, item, value);
    default:
        return false;
    }
}

static bool write_items(Output *output, const Operation *item, const Place *place, PyObject *values)
{
    if (!PyTuple_CheckExact(values) || !write_count(output, place, PyTuple_Size(values))) {
        return false;
    }
    for (Py_ssize_t index = 0; index < PyTuple_Size(values); index++) {
        if (!write_item(output, item, PyTuple_GetItem(values, index))) {
            return false;
        }
    }
    return true;
}

static bool write_choice(Output *output, const Operation *operation, unsigned char kind, PyObject *value)
{
    if (operation->cases[kind] == BARE && value == Py_None) {
        add_number(output, kind, 1);
        return true;
    }
    if (operation->cases[kind] != VALUED || !PyBytes_CheckExact(value)) {
        return false;
    }
    Py_ssize_t size = PyBytes_Size(value);
    /* The size is read as unsigned, yet it may be signed. */
    if (!fits(size, operation->width, true)) {
        return false;
    }
    add_number(output, kind, 1);
    add_number(output, (uint64_t)size, operation->width);
    add_bytes(output, PyBytes_AsString(value), size);
    return true;
}

static bool write_choices(Output *output, const Operation *operation, const Place *place, PyObject *kinds,
                          PyObject *values)
{
    if (!PyBytes_CheckExact(kinds) || values == NULL || !PyTuple_CheckExact(values) ||
        PyBytes_Size(kinds) != PyTuple_Size(values) || !write_count(output, place, PyBytes_Size(kinds))) {
        return false;
    }
    const unsigned char *bytes = (const unsigned char *)PyBytes_AsString(kinds);
    for (Py_ssize_t index = 0; index < PyTuple_Size(values); index++) {
        if (!write_choice(output, operation, bytes[index], PyTuple_GetItem(values, index))) {
            return false;
        }
    }
    return true;
}

/* The state of a program's run over an object. */
typedef struct {
    const Program *program;
    PyObject *object;
    Place places[FEW];
    uint64_t asked;   /* the session facts that conditions had */
    uint64_t holding; /* those whose attributes are there */
} Run;

/* Whether the attributes of a condition are there, all of them or none, and alike for all conditions on one fact. */
static bool is_consistent(Run *run, const Operation *operation, bool *is_present)
{
    Py_ssize_t present = 0;
    for (Py_ssize_t index = 0; index < operation->absent_count; index++) {
        PyObject *value = *slot_in(run->object, run->program, operation->absent[index]);
        if (value == NULL) {
            return false;
        }
        present += value != Py_None;
    }
    if (operation->absent_count == 0 || (present != 0 && present != operation->absent_count)) {
        return false;
    }
    *is_present = present != 0;
    if (operation->kind == FACT) {
        uint64_t fact = (uint64_t)1 << operation->fact, held = *is_present ? fact : 0;
        if ((run->asked & fact) && (run->holding & fact) != held) {
            return false;
        }
        run->asked |= fact;
        run->holding |= held;
    }
    return true;
}

static bool write_attribute(Output *output, Run *run, const Operation *operation, PyObject *value)
{
    switch (operation->kind) {
    case INTEGER:
        return write_integer(output, operation, value);
    case VALUE:
        return write_value(output, operation, value);
    case TEXT:
        return write_text(output, value);
    case BYTES:
        return write_measured(output, &run->places[operation->measure], value);
    case REST:
        return write_measured(output, NULL, value);
    case GROUP:
        return write_group(output, operation, value);
    case ITEMS:
        return write_items(output, operation->body, &run->places[operation->measure], value);
    case CHOICES: {
        PyObject *values = *slot_in(run->object, run->program, operation->values);
        Py_XINCREF(values);
        bool is_written = write_choices(output, operation, &run->places[operation->measure], value, values);
        Py_XDECREF(values);
        return is_written;
    }
    default:
        return false;
    }
}

static bool write_operations(Output *output, Run *run, const Operation *operations, Py_ssize_t count)
{
    for (const Operation *operation = operations; operation < operations + count; operation++) {
        switch (operation->kind) {
        case CONSTANT:
            add_bytes(output, (const char *)operation->bytes, operation->size);
            continue;
        case MEASURE:
            run->places[operation->measure] = (Place){operation, output->size};
            add_number(output, 0, operation->width);
            continue;
        case FACT:
        case AHEAD: {
            bool is_present;
            if (!is_consistent(run, operation, &is_present) ||
                (is_present && !write_operations(output, run, operation->body, operation->body_count))) {
                return false;
            }
            continue;
        }
        default: {
            /* A codec written in Python may change the object. */
            PyObject *value = *slot_in(run->object, run->program, operation->attribute);
            Py_XINCREF(value);
            bool is_written = value != NULL && write_attribute(output, run, operation, value);
            Py_XDECREF(value);
            if (!is_written) {
                return false;
            }
        }
        }
    }
    return true;
}

static bool write_program(Output *output, const Program *program, PyObject *object)
{
    Run run = {.program = program, .object = object};
    return write_operations(output, &run, program->operations, program->operation_count);
}

static bool is_writable(const Program *program);

/* Whether each operation is one that the writer has. */
static bool are_writable(const Operation *operations, Py_ssize_t count)
{
    for (const Operation *operation = operations; operation < operations + count; operation++) {
        switch (operation->kind) {
        case LENGTH:
        case CHARACTER:
        case FIXED:
        case UNTIL:
            return false;
        case MEASURE:
            if (operation->is_nullable) {
                return false;
            }
            break;
        case GROUP:
            if (!is_writable(operation->program)) {
                return false;
            }
            break;
        default:
            if (!are_writable(operation->body, operation->body_count)) {
                return false;
            }
        }
    }
    return true;
}

static bool is_writable(const Program *program)
{
    return program->measure_count <= FEW && are_writable(program->operations, program->operation_count);
}

bool prepare_writing(Reader *reader)
{
    reader->written = cleared(reader->message_count, sizeof(Written));
    if (reader->written == NULL) {
        return false;
    }
    for (Py_ssize_t index = 0; index < reader->message_count; index++) {
        const Program *program = reader->messages[index].program;
        if (program != NULL && is_writable(program)) {
            reader->written[reader->written_count++] = (Written){program->class, program};
        }
    }
    return true;
}

static const Program *program_of(const Reader *reader, PyTypeObject *class)
{
    for (Py_ssize_t index = 0; index < reader->written_count; index++) {
        if (reader->written[index].class == class) {
            return reader->written[index].program;
        }
    }
    return NULL;
}

/* Forgets an exception that Python raises anew, as one of a codec; returns NULL. */
static PyObject *refused(void)
{
    if (PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        PyErr_Clear();
    }
    return NULL;
}

PyObject *write_message(Reader *reader, PyObject *message, PyObject *encoding)
{
    const Program *program = program_of(reader, Py_TYPE(message));
    if (program == NULL) {
        return NULL;
    }
    char bytes[SHORT];
    Output output = {bytes, 0, SHORT, encoding};
    if (!write_program(&output, program, message)) {
        return refused();
    }
    if (output.size <= SHORT) {
        return PyBytes_FromStringAndSize(bytes, output.size);
    }
    PyObject *data = PyBytes_FromStringAndSize(NULL, output.size);
    if (data == NULL) {
        return NULL;
    }
    output = (Output){PyBytes_AsString(data), 0, output.size, encoding};
    if (!write_program(&output, program, message) || output.size != output.capacity) {
        Py_DECREF(data);
        return refused();
    }
    return data;
}
