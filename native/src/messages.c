/* Tells messages apart: by their first bytes, session facts and constants. */

#include "program.h"

/* Whether a message may begin with a byte. */
static bool may_begin(const Message *message, unsigned char byte)
{
    return message->first_size == 0 || memchr(message->first, byte, (size_t)message->first_size) != NULL;
}

bool fact_of(Reader *reader, PyObject *object, Py_ssize_t *fact)
{
    if (!index_of(object, 64, fact)) {
        return false;
    }
    if (*fact >= reader->fact_count) {
        reader->fact_count = *fact + 1;
    }
    return true;
}

static bool constants_of(PyObject *sources, Message *message)
{
    if (!is_tuple(sources, -1)) {
        return false;
    }
    message->constants = cleared(PyTuple_Size(sources), sizeof(Constant));
    if (message->constants == NULL) {
        return false;
    }
    message->constant_count = PyTuple_Size(sources);
    for (Py_ssize_t index = 0; index < message->constant_count; index++) {
        PyObject *source = PyTuple_GetItem(sources, index);
        Constant *constant = &message->constants[index];
        if (!is_tuple(source, 2) || !index_of(PyTuple_GetItem(source, 0), PY_SSIZE_T_MAX, &constant->offset) ||
            !bytes_of(PyTuple_GetItem(source, 1), &constant->bytes, &constant->size)) {
            return false;
        }
    }
    return true;
}

static bool compile_message(Reader *reader, PyObject *source, Message *message)
{
    message->fact = -1;
    if (!is_tuple(source, 4) || !bytes_of(PyTuple_GetItem(source, 0), &message->first, &message->first_size) ||
        !constants_of(PyTuple_GetItem(source, 2), message)) {
        return false;
    }
    PyObject *fact = PyTuple_GetItem(source, 1), *program = PyTuple_GetItem(source, 3);
    if (fact != Py_None) {
        if (!is_tuple(fact, 2) || !fact_of(reader, PyTuple_GetItem(fact, 0), &message->fact)) {
            return false;
        }
        message->value = PyTuple_GetItem(fact, 1);
    }
    if (program == Py_None) {
        return true;
    }
    message->program = compile_program(reader, program, 0);
    return message->program != NULL;
}

bool compile_messages(Reader *reader, PyObject *sources)
{
    if (!is_tuple(sources, -1)) {
        return false;
    }
    Py_ssize_t count = PyTuple_Size(sources);
    reader->messages = cleared(count, sizeof(Message));
    if (reader->messages == NULL) {
        return false;
    }
    while (reader->message_count < count) {
        Message *message = &reader->messages[reader->message_count];
        if (!compile_message(reader, PyTuple_GetItem(sources, reader->message_count++), message)) {
            return false;
        }
    }
    for (int byte = 0; byte < 256; byte++) {
        Py_ssize_t start = 0;
        while (start < count && !may_begin(&reader->messages[start], (unsigned char)byte)) {
            start++;
        }
        reader->starts[byte] = start;
    }
    return true;
}

void free_messages(Reader *reader)
{
    for (Py_ssize_t index = 0; reader->messages != NULL && index < reader->message_count; index++) {
        PyMem_Free(reader->messages[index].constants);
        free_program(reader->messages[index].program);
    }
    PyMem_Free(reader->messages);
    reader->messages = NULL;
    reader->message_count = 0;
}

static bool has_constants(const Message *message, const unsigned char *data, Py_ssize_t size)
{
    for (Py_ssize_t index = 0; index < message->constant_count; index++) {
        const Constant *constant = &message->constants[index];
        if (constant->size > size || constant->offset > size - constant->size ||
            memcmp(data + constant->offset, constant->bytes, (size_t)constant->size) != 0) {
            return false;
        }
    }
    return true;
}

const Program *find_program(const Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *const *facts)
{
    for (Py_ssize_t index = size ? reader->starts[data[0]] : reader->message_count; index < reader->message_count;
         index++) {
        const Message *message = &reader->messages[index];
        if (!may_begin(message, data[0])) {
            continue;
        }
        int holds = message->fact < 0 ? 1 : PyObject_RichCompareBool(facts[message->fact], message->value, Py_EQ);
        if (holds < 0) {
            return NULL;
        }
        if (holds && has_constants(message, data, size)) {
            return message->program;
        }
    }
    return NULL;
}
