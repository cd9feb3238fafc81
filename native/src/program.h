/* A table of layouts as the reader runs it. The objects in it are borrowed: the reader holds the table that owns them. */

#ifndef LOGICALREP_PROGRAM_H
#define LOGICALREP_PROGRAM_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of the table's form; logicalrep_runtime/native.py has the same one. */
#define TABLE_NUMBER 4

/* Layouts within layouts, and conditions within conditions. */
#define DEEPEST 32

typedef enum {
    CONSTANT,
    INTEGER,
    VALUE,
    MEASURE,
    TEXT,
    BYTES,
    REST,
    GROUP,
    INTEGERS,
    GROUPS,
    CHOICES,
    FACT,
    AHEAD,
} Kind;

/* How a byte of a choice goes on. */
enum { ILLEGAL, BARE, VALUED };

typedef struct {
    long long code;
    PyObject *object; /* NULL for a value that is refused */
} Code;

typedef struct Program Program;
typedef struct Operation Operation;

struct Operation {
    Kind kind;
    Py_ssize_t attribute; /* for choices, that of the kinds; that of the values follows */
    Py_ssize_t values;
    Py_ssize_t measure;
    int width;
    bool is_signed;
    PyObject *wrapper; /* NULL for plain integers */
    bool is_subclass;  /* whether the wrapper is a subclass of int, made as by int.__new__ */
    bool is_plain;     /* whether its instances are compared as integers are */
    const unsigned char *bytes;
    Py_ssize_t size;
    Py_ssize_t fact;
    Code *codes;
    Py_ssize_t code_count;
    unsigned char *cases;
    Program *program;
    Operation *body;
    Py_ssize_t body_count;
    Py_ssize_t *absent; /* attributes that are None where the body is not there */
    Py_ssize_t absent_count;
};

struct Program {
    PyTypeObject *class;
    Py_ssize_t *slots; /* the attributes' offsets in an instance */
    Py_ssize_t attribute_count;
    Py_ssize_t measure_count;
    Py_ssize_t smallest; /* bytes that it takes at least */
    Operation *operations;
    Py_ssize_t operation_count;
};

typedef struct {
    PyTypeObject *class;
    const Program *program;
} Written;

typedef struct {
    PyObject_HEAD
    PyObject *table; /* NULL once it is cleared */
    Program *programs[256];
    Written *written; /* the programs by their classes */
    Py_ssize_t written_count;
    Py_ssize_t fact_count;
    newfunc new_integer;
    unsigned long long accepted;
    unsigned long long refused;
} Reader;

/* Makes a program of its part of the table; NULL with an exception where that has another form. */
Program *compile_program(Reader *reader, PyObject *source, int depth);
void free_program(Program *program);

/* The place of an attribute in an instance of the program's class. */
static inline PyObject **slot_in(PyObject *object, const Program *program, Py_ssize_t attribute)
{
    return (PyObject **)((char *)object + program->slots[attribute]);
}

/* Reads one message; NULL without an exception where the bytes are none. */
PyObject *read_message(Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *encoding,
                       PyObject *const *facts);

/* Makes a reader's programs ready for `write_message`; false with an exception. */
bool prepare_writing(Reader *reader);

/* Writes one message; NULL where that is left to Python, without an exception unless memory is short. */
PyObject *write_message(Reader *reader, PyObject *message, PyObject *encoding);

#endif
