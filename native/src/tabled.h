/* What the types Reader and Decoding share: an object is made of a table, and owns it. */

#ifndef LOGICALREP_TABLED_H
#define LOGICALREP_TABLED_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

/* The first members of an object: the table owns all objects that the other members borrow; NULL once it is cleared. */
#define TABLED_HEAD \
    PyObject_HEAD \
    PyObject *table;

/* Makes an object and fills it from its table; `format` parses one argument. */
PyObject *new_tabled(PyTypeObject *type, PyObject *arguments, PyObject *keywords, const char *format,
                     bool (*fill)(PyObject *self, PyObject *table));

int traverse_tabled(PyObject *self, visitproc visit, void *arg);

/* Clears the object by its type's `tp_clear`, and frees it. */
void dealloc_tabled(PyObject *self);

#endif
