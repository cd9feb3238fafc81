/* Batches of messages to columns: the functions walk and items of the module. */

#ifndef LOGICALREP_COLUMNS_H
#define LOGICALREP_COLUMNS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>

PyObject *walk(PyObject *module, PyObject *arguments);
PyObject *items(PyObject *module, PyObject *arguments);
PyObject *gather(PyObject *module, PyObject *arguments);
PyObject *gather_texts(PyObject *module, PyObject *arguments);
PyObject *spread_lists(PyObject *module, PyObject *arguments);

/* Adds the digests of the walks that this module has. */
bool add_walks(PyObject *module);

#endif
