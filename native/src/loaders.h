/* Values of rows to Arrow's arrays: the functions measure_rows and load_rows of the module. */

#ifndef LOGICALREP_LOADERS_H
#define LOGICALREP_LOADERS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

PyObject *measure_rows(PyObject *module, PyObject *arguments);
PyObject *load_rows(PyObject *module, PyObject *arguments);

/* Fills the tables that the loaders read; called before them, once. */
void prepare_loaders(void);

#endif
