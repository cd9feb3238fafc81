/* A table of layouts as the reader runs it. The objects in it are borrowed: the reader holds the table that owns them. */

#ifndef LOGICALREP_PROGRAM_H
#define LOGICALREP_PROGRAM_H

#include "tabled.h"

#include <stdint.h>
#include <string.h>

/* The number of the table's form; logicalrep_runtime/native.py has the same one. */
#define TABLE_NUMBER 5

/* Layouts within layouts, and conditions within conditions. */
#define DEEPEST 32

typedef enum {
    CONSTANT,
    INTEGER,
    VALUE,
    CHARACTER,
    LENGTH,
    MEASURE,
    TEXT,
    BYTES,
    FIXED,
    REST,
    GROUP,
    ITEMS,
    UNTIL,
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
    bool is_nullable; /* whether the measure -1 is legal, for no value */
    bool is_consumed; /* whether the bytes after a list are read with the list */
    PyObject *wrapper; /* NULL for plain integers */
    bool is_subclass;  /* whether the wrapper is a subclass of int, made as by int.__new__ */
    bool is_plain;     /* whether its instances are compared as integers are */
    const unsigned char *bytes;
    Py_ssize_t size; /* for a measured list, of its smallest item */
    Py_ssize_t fact;
    Code *codes;
    Py_ssize_t code_count;
    unsigned char *cases;
    Program *program;
    Operation *body; /* for a list, its one item */
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
    Py_ssize_t offset;
    const unsigned char *bytes;
    Py_ssize_t size;
} Constant;

/* A message, with the conditions that identify it. */
typedef struct {
    const unsigned char *first; /* the legal first bytes; none for any */
    Py_ssize_t first_size;
    Py_ssize_t fact; /* the session fact that must have the value; -1 for none */
    PyObject *value;
    Constant *constants;
    Py_ssize_t constant_count;
    Program *program; /* NULL for a message that is left to Python */
} Message;

typedef struct {
    TABLED_HEAD
    Message *messages;
    Py_ssize_t message_count;
    Py_ssize_t starts[256]; /* by a first byte, the first message that may begin with it */
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

/* Finds the offset of a descriptor's slot in instances of a class; false with an exception where there is none. */
bool find_slot(PyTypeObject *class, PyObject *descriptor, Py_ssize_t *slot);

/* The place of an attribute in an instance of the program's class. */
static inline PyObject **slot_in(PyObject *object, const Program *program, Py_ssize_t attribute)
{
    return (PyObject **)((char *)object + program->slots[attribute]);
}

/* What a table consists of: false, or NULL, with an exception where it has another form. */
bool is_tuple(PyObject *object, Py_ssize_t size);
bool index_of(PyObject *object, Py_ssize_t limit, Py_ssize_t *index);
bool bytes_of(PyObject *object, const unsigned char **bytes, Py_ssize_t *size);
bool fact_of(Reader *reader, PyObject *object, Py_ssize_t *fact);
void *cleared(Py_ssize_t count, size_t size);

/* Makes the messages of a table; false with an exception where they have another form. */
bool compile_messages(Reader *reader, PyObject *sources);
void free_messages(Reader *reader);

/* The program of the first message whose conditions hold; NULL for none, or with an exception. */
const Program *find_program(const Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *const *facts);

/* Reads one message; NULL without an exception where the bytes are none. */
PyObject *read_message(Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *encoding,
                       PyObject *const *facts);

/* Reads one message, and counts it; NULL without an exception also where its texts have another encoding. */
PyObject *read_or_refuse(Reader *reader, const unsigned char *data, Py_ssize_t size, PyObject *encoding,
                         PyObject *const *facts);

PyObject *read_run(Reader *self, PyObject *const *arguments, Py_ssize_t count);

/* Makes a reader's programs ready for `write_message`; false with an exception. */
bool prepare_writing(Reader *reader);

/* Writes one message; NULL where that is left to Python, without an exception unless memory is short. */
PyObject *write_message(Reader *reader, PyObject *message, PyObject *encoding);

#endif
