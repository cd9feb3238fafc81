/* The type of a session's decoder, and what it takes from the other files. */

#ifndef LOGICALREP_DECODING_H
#define LOGICALREP_DECODING_H

#include "program.h"

extern PyType_Spec decoding_spec;

/* Whether an object is a Reader of this module. */
bool is_reader(PyObject *object);

#endif
