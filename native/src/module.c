/* The module logicalrep_native: a reader of messages for a table of layouts. It has no state of its own. */

#include "columns.h"
#include "decoding.h"
#include "loaders.h"
#include "loops.h"
#include "program.h"

#include <stddef.h>
#include <structmember.h>

static bool fill(PyObject *object, PyObject *table)
{
    Reader *self = (Reader *)object;
    if (!PyTuple_Check(table) || PyTuple_Size(table) != 2 || !PyTuple_Check(PyTuple_GetItem(table, 1))) {
        PyErr_SetString(PyExc_TypeError, "a table is a pair of its number and its messages");
        return false;
    }
    long number = PyLong_AsLong(PyTuple_GetItem(table, 0));
    if (number != TABLE_NUMBER) {
        if (!PyErr_Occurred()) {
            PyErr_Format(PyExc_ValueError, "the table has the number %ld, and this reader reads %d", number,
                         TABLE_NUMBER);
        }
        return false;
    }
    self->new_integer = (newfunc)PyType_GetSlot(&PyLong_Type, Py_tp_new);
    return compile_messages(self, PyTuple_GetItem(table, 1)) && prepare_writing(self);
}

static PyObject *reader_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    return new_tabled(type, arguments, keywords, "O:Reader", fill);
}

static int reader_clear(Reader *self)
{
    PyMem_Free(self->written);
    self->written = NULL;
    self->written_count = 0;
    free_messages(self);
    Py_CLEAR(self->table);
    return 0;
}

PyObject *read_or_refuse(Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *encoding,
                         PyObject *const *facts)
{
    PyObject *message = read_message(reader, data, size, encoding, facts);
    if (message != NULL) {
        reader->accepted++;
        return message;
    }
    if (PyErr_Occurred()) {
        /* A text that cannot be decoded, or an encoding that nobody knows: the parser in Python says which. */
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_LookupError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    reader->refused++;
    return NULL;
}

/* Reader has no subclasses, so its instances are the objects that its function clears. */
bool is_reader(PyObject *object)
{
    return PyType_GetSlot(Py_TYPE(object), Py_tp_clear) == (void *)reader_clear;
}

static PyObject *reader_read(Reader *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 2 + self->fact_count || !PyBytes_Check(arguments[0]) || !PyUnicode_Check(arguments[1])) {
        PyErr_Format(PyExc_TypeError, "read takes bytes, the name of an encoding, and %zd session facts",
                     self->fact_count);
        return NULL;
    }
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(arguments[0], &data, &size) < 0) {
        return NULL;
    }
    PyObject *message = read_or_refuse(self, (const unsigned char *)data, size, arguments[1], arguments + 2);
    if (message == NULL && !PyErr_Occurred()) {
        Py_RETURN_NONE;
    }
    return message;
}

PyDoc_STRVAR(read_doc, "read(data, encoding, *facts)\n--\n\n"
                       "Return the message that the bytes are; None where they are none.");

static PyObject *reader_write(Reader *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 2 || !PyUnicode_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "write takes a message and the name of an encoding");
        return NULL;
    }
    PyObject *data = write_message(self, arguments[0], arguments[1]);
    if (data == NULL && !PyErr_Occurred()) {
        Py_RETURN_NONE;
    }
    return data;
}

PyDoc_STRVAR(write_doc, "write(message, encoding)\n--\n\n"
                        "Return a message's bytes; None where the writer in Python has to say what is wrong.");

PyDoc_STRVAR(read_run_doc,
             "read_run(buffer, tags, frame, most, encoding, *facts)\n--\n\n"
             "Return adjacent messages that begin with one of the tags, each with its bytes, and their size.\n\n"
             "The frame is the offset and width of a message's length, and whether it is signed.");

static PyMethodDef reader_methods[] = {
    {"read", (PyCFunction)(void (*)(void))reader_read, METH_FASTCALL, read_doc},
    {"write", (PyCFunction)(void (*)(void))reader_write, METH_FASTCALL, write_doc},
    {"read_run", (PyCFunction)(void (*)(void))read_run, METH_FASTCALL, read_run_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef reader_members[] = {
    {"accepted", T_ULONGLONG, offsetof(Reader, accepted), READONLY, "The messages that were read."},
    {"refused", T_ULONGLONG, offsetof(Reader, refused), READONLY, "The bytes that were left to the parser in Python."},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(reader_doc, "Reader(table)\n--\n\n"
                         "Reads messages by a table of layouts, which logicalrep_runtime.native makes.");

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, (void *)reader_doc},
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, dealloc_tabled},
    {Py_tp_traverse, traverse_tabled},
    {Py_tp_clear, reader_clear},
    {Py_tp_methods, reader_methods},
    {Py_tp_members, reader_members},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    "logicalrep_native.Reader",
    sizeof(Reader),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    reader_slots,
};

static bool add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
    int result = type == NULL ? -1 : PyModule_AddObjectRef(module, name, type);
    Py_XDECREF(type);
    return result == 0;
}

static int module_exec(PyObject *module)
{
    prepare_loaders();
    bool is_filled = add_type(module, "Reader", &reader_spec) && add_type(module, "Decoding", &decoding_spec) &&
                     add_walks(module) && add_loops(module);
    return is_filled ? PyModule_AddIntConstant(module, "TABLE_NUMBER", TABLE_NUMBER) : -1;
}

PyDoc_STRVAR(measure_rows_doc, "measure_rows(columns, old, new, cells)\n--\n\n"
                               "Write an upper limit of the bytes of each column's texts.");
PyDoc_STRVAR(load_rows_doc,
             "load_rows(data, columns, old, new, rows, cells, block, texts, left_columns, left_rows)\n--\n\n"
             "Load the values of rows. Return the number of values that are left to the types' loaders.");

PyDoc_STRVAR(walk_doc,
             "walk(number, data, offsets, row, facts, stops, tags, status, known_tags, columns, block, spans, cells)\n"
             "--\n\n"
             "Walk messages from a row on. Return the first unread row, the facts there, and the reason.");
PyDoc_STRVAR(items_doc, "items(number, column, data, lists, fields)\n--\n\n"
                        "Write the fields of the items of a column's lists; return the bytes of each field's texts.");

static PyMethodDef module_methods[] = {
    {"measure_rows", measure_rows, METH_VARARGS, measure_rows_doc},
    {"load_rows", load_rows, METH_VARARGS, load_rows_doc},

    {"walk", walk, METH_VARARGS, walk_doc},
    {"items", items, METH_VARARGS, items_doc},
    {"gather", gather, METH_VARARGS, "gather(data, starts, lengths, offsets, values)\n--\n\nConcatenate values."},
    {"gather_texts", gather_texts, METH_VARARGS, "gather_texts(data, spans, offsets, values)\n--\n\nConcatenate texts."},
    {"spread_lists", spread_lists, METH_VARARGS, "spread_lists(spans, offsets)\n--\n\nWrite the offsets of lists."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    "logicalrep_native",
    "Reads logical replication messages into the classes of logicalrep_protocol; optional, and found by it.",
    0,
    module_methods,
    module_slots,
    NULL,
    NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_logicalrep_native(void)
{
    return PyModuleDef_Init(&module);
}
