/* Makes programs of a table, which logicalrep_runtime/native.py describes; whatever has another form is refused. */

#include "program.h"

#include <structmember.h>

/* The limit of a fixed number of bytes: the greatest sums of them are far from an overflow. */
#define LARGEST (1 << 30)

static bool compile_operations(Reader *reader, Program *program, PyObject *sources, Operation **operations,
                               Py_ssize_t *count, int depth);

bool is_tuple(PyObject *object, Py_ssize_t size)
{
    if (PyTuple_Check(object) && (size < 0 || PyTuple_Size(object) == size)) {
        return true;
    }
    PyErr_Format(PyExc_TypeError, "the table has %R where a tuple is expected", object);
    return false;
}

static bool wrong(const char *what)
{
    PyErr_Format(PyExc_ValueError, "the table has %s that is out of range", what);
    return false;
}

bool index_of(PyObject *object, Py_ssize_t limit, Py_ssize_t *index)
{
    *index = PyLong_AsSsize_t(object);
    if (*index == -1 && PyErr_Occurred()) {
        return false;
    }
    return (*index >= 0 && *index < limit) || wrong("an index");
}

bool bytes_of(PyObject *object, const unsigned char **bytes, Py_ssize_t *size)
{
    char *start;
    if (PyBytes_AsStringAndSize(object, &start, size) < 0) {
        return false;
    }
    *bytes = (const unsigned char *)start;
    return true;
}

static bool width_of(PyObject *width, PyObject *sign, Operation *operation)
{
    Py_ssize_t bytes;
    if (!index_of(width, 9, &bytes)) {
        return false;
    }
    operation->width = (int)bytes;
    operation->is_signed = sign == Py_True;
    return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || wrong("a width");
}

/* Whether a base's own `__new__` may make instances of a class, as the reader does; TypeError where it may not.
   Python refuses it for bool, and for each class with a part in C that another `__new__` has to fill. */
static bool is_made_by(PyTypeObject *base, PyObject *class, const char *format)
{
    PyObject *object = PyObject_CallMethod((PyObject *)base, "__new__", format, class, 0);
    Py_XDECREF(object);
    return object != NULL;
}

static bool have_same(PyTypeObject *class, PyTypeObject *other, int slot)
{
    return PyType_GetSlot(class, slot) == PyType_GetSlot(other, slot);
}

static bool wrapper_of(PyObject *wrapper, Operation *operation)
{
    if (wrapper == Py_None) {
        return true;
    }
    operation->wrapper = wrapper;
    if (PyType_Check(wrapper) && PyType_IsSubtype((PyTypeObject *)wrapper, &PyLong_Type)) {
        operation->is_subclass = true;
        operation->is_plain = have_same((PyTypeObject *)wrapper, &PyLong_Type, Py_nb_bool) &&
                              have_same((PyTypeObject *)wrapper, &PyLong_Type, Py_tp_richcompare);
        return is_made_by(&PyLong_Type, wrapper, "Oi");
    }
    return PyCallable_Check(wrapper) || wrong("a wrapper");
}

void *cleared(Py_ssize_t count, size_t size)
{
    void *memory = PyMem_Calloc(count ? (size_t)count : 1, size);
    if (memory == NULL) {
        PyErr_NoMemory();
    }
    return memory;
}

/* Pairs of a value and its object, or values that are refused. */
static bool codes_of(PyObject *source, bool have_objects, Operation *operation)
{
    if (!is_tuple(source, -1)) {
        return false;
    }
    Py_ssize_t count = PyTuple_Size(source);
    operation->codes = cleared(count, sizeof(Code));
    if (operation->codes == NULL) {
        return false;
    }
    operation->code_count = count;
    for (Py_ssize_t index = 0; index < count; index++) {
        PyObject *item = PyTuple_GetItem(source, index);
        if (have_objects) {
            if (!is_tuple(item, 2)) {
                return false;
            }
            operation->codes[index].object = PyTuple_GetItem(item, 1);
            item = PyTuple_GetItem(item, 0);
        }
        operation->codes[index].code = PyLong_AsLongLong(item);
        if (operation->codes[index].code == -1 && PyErr_Occurred()) {
            return false;
        }
    }
    return true;
}

static bool cases_of(PyObject *valued, PyObject *bare, Operation *operation)
{
    const unsigned char *bytes;
    Py_ssize_t size;
    operation->cases = cleared(256, 1);
    if (operation->cases == NULL) {
        return false;
    }
    PyObject *sources[] = {bare, valued};
    for (int which = 0; which < 2; which++) {
        if (!bytes_of(sources[which], &bytes, &size)) {
            return false;
        }
        for (Py_ssize_t index = 0; index < size; index++) {
            operation->cases[bytes[index]] = which ? VALUED : BARE;
        }
    }
    return true;
}

static bool body_of(Reader *reader, Program *program, PyObject *body, PyObject *absent, Operation *operation, int depth)
{
    if (!is_tuple(absent, -1) ||
        !compile_operations(reader, program, body, &operation->body, &operation->body_count, depth)) {
        return false;
    }
    operation->absent = cleared(PyTuple_Size(absent), sizeof(Py_ssize_t));
    if (operation->absent == NULL) {
        return false;
    }
    operation->absent_count = PyTuple_Size(absent);
    for (Py_ssize_t index = 0; index < operation->absent_count; index++) {
        if (!index_of(PyTuple_GetItem(absent, index), program->attribute_count, &operation->absent[index])) {
            return false;
        }
    }
    return true;
}

static bool program_of(Reader *reader, PyObject *source, Operation *operation, int depth)
{
    operation->program = compile_program(reader, source, depth);
    return operation->program != NULL;
}

static Py_ssize_t smallest_of(const Operation *operation)
{
    switch (operation->kind) {
    case CONSTANT:
    case FIXED:
        return operation->size;
    case INTEGER:
    case VALUE:
    case MEASURE:
    case LENGTH:
        return operation->width;
    case CHARACTER:
    case TEXT:
        return 1;
    case GROUP:
        return operation->program->smallest;
    case UNTIL:
        return operation->is_consumed ? operation->size : 0;
    default:
        return 0;
    }
}

/* The item of a list: an operation that makes one value, of a byte or more, so that a list ends with the message. */
static bool item_of(Reader *reader, Program *program, PyObject *source, Operation *operation, int depth)
{
    PyObject *sources = PyTuple_Pack(1, source);
    if (sources == NULL) {
        return false;
    }
    bool is_compiled =
        compile_operations(reader, program, sources, &operation->body, &operation->body_count, depth);
    Py_DECREF(sources);
    if (!is_compiled) {
        return false;
    }
    switch (operation->body->kind) {
    case INTEGER:
    case VALUE:
    case CHARACTER:
    case TEXT:
    case GROUP:
        return smallest_of(operation->body) > 0 || wrong("a repeated part of no bytes, one");
    default:
        return wrong("an item");
    }
}

typedef struct {
    const char *name;
    Kind kind;
    Py_ssize_t size;
} Form;

static const Form FORMS[] = {
    {"constant", CONSTANT, 2}, {"integer", INTEGER, 6},     {"value", VALUE, 5}, {"measure", MEASURE, 5},
    {"length", LENGTH, 3},     {"character", CHARACTER, 2}, {"text", TEXT, 2},   {"bytes", BYTES, 3},
    {"fixed", FIXED, 3},       {"rest", REST, 2},           {"group", GROUP, 3}, {"items", ITEMS, 4},
    {"until", UNTIL, 5},       {"choices", CHOICES, 7},     {"fact", FACT, 4},   {"ahead", AHEAD, 4},
};

static const Form *form_of(PyObject *source)
{
    if (!is_tuple(source, -1) || PyTuple_Size(source) == 0) {
        return NULL;
    }
    PyObject *name = PyTuple_GetItem(source, 0);
    for (size_t index = 0; PyUnicode_Check(name) && index < sizeof(FORMS) / sizeof(Form); index++) {
        if (PyUnicode_CompareWithASCIIString(name, FORMS[index].name) == 0) {
            return is_tuple(source, FORMS[index].size) ? &FORMS[index] : NULL;
        }
    }
    PyErr_Format(PyExc_ValueError, "the table has the operation %R, which is unknown", name);
    return NULL;
}

static bool compile_operation(Reader *reader, Program *program, PyObject *source, Operation *operation, int depth)
{
    const Form *form = form_of(source);
    if (form == NULL) {
        return false;
    }
    PyObject *part[7];
    for (Py_ssize_t index = 0; index < form->size; index++) {
        part[index] = PyTuple_GetItem(source, index);
    }
    Py_ssize_t attributes = program->attribute_count, measures = program->measure_count;
    operation->kind = form->kind;
    switch (form->kind) {
    case CONSTANT:
        return bytes_of(part[1], &operation->bytes, &operation->size);
    case INTEGER:
        return index_of(part[1], attributes, &operation->attribute) && width_of(part[2], part[3], operation) &&
               wrapper_of(part[4], operation) && codes_of(part[5], false, operation);
    case VALUE:
        return index_of(part[1], attributes, &operation->attribute) && width_of(part[2], part[3], operation) &&
               codes_of(part[4], true, operation);
    case MEASURE:
        operation->is_nullable = part[4] == Py_True;
        return index_of(part[1], measures, &operation->measure) && width_of(part[2], part[3], operation);
    case LENGTH:
        return width_of(part[1], part[2], operation);
    case CHARACTER:
    case TEXT:
    case REST:
        return index_of(part[1], attributes, &operation->attribute);
    case FIXED:
        return index_of(part[1], attributes, &operation->attribute) &&
               index_of(part[2], LARGEST, &operation->size);
    case BYTES:
        return index_of(part[1], attributes, &operation->attribute) && index_of(part[2], measures, &operation->measure);
    case GROUP:
        return index_of(part[1], attributes, &operation->attribute) && program_of(reader, part[2], operation, depth);
    case ITEMS:
        return index_of(part[1], attributes, &operation->attribute) &&
               index_of(part[2], measures, &operation->measure) &&
               item_of(reader, program, part[3], operation, depth) &&
               (operation->size = smallest_of(operation->body)) > 0;
    case UNTIL:
        operation->is_consumed = part[3] == Py_True;
        return index_of(part[1], attributes, &operation->attribute) &&
               bytes_of(part[2], &operation->bytes, &operation->size) && (operation->size > 0 || wrong("an end")) &&
               item_of(reader, program, part[4], operation, depth);
    case CHOICES:
        return index_of(part[1], attributes, &operation->attribute) &&
               index_of(part[2], attributes, &operation->values) && index_of(part[3], measures, &operation->measure) &&
               cases_of(part[4], part[5], operation) && width_of(part[6], Py_False, operation);
    case FACT:
        return fact_of(reader, part[1], &operation->fact) &&
               body_of(reader, program, part[2], part[3], operation, depth);
    case AHEAD:
        return bytes_of(part[1], &operation->bytes, &operation->size) &&
               body_of(reader, program, part[2], part[3], operation, depth);
    }
    return wrong("an operation");
}

static bool compile_operations(Reader *reader, Program *program, PyObject *sources, Operation **operations,
                               Py_ssize_t *count, int depth)
{
    if (!is_tuple(sources, -1)) {
        return false;
    }
    if (depth > DEEPEST) {
        return wrong("a depth");
    }
    Py_ssize_t wanted = PyTuple_Size(sources);
    *operations = cleared(wanted, sizeof(Operation));
    if (*operations == NULL) {
        return false;
    }
    for (*count = 0; *count < wanted;) {
        Operation *operation = &(*operations)[(*count)++];
        if (!compile_operation(reader, program, PyTuple_GetItem(sources, *count - 1), operation, depth + 1)) {
            return false;
        }
    }
    return true;
}

bool find_slot(PyTypeObject *class, PyObject *descriptor, Py_ssize_t *slot)
{
    if (Py_TYPE(descriptor) != &PyMemberDescr_Type) {
        return wrong("a descriptor");
    }
    PyObject *owner = PyObject_GetAttrString(descriptor, "__objclass__");
    PyObject *name = owner == NULL ? NULL : PyObject_GetAttrString(descriptor, "__name__");
    const char *text = name == NULL ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
    bool is_found = false;
    if (text != NULL && PyType_IsSubtype(class, (PyTypeObject *)owner) &&
        PyType_GetFlags((PyTypeObject *)owner) & Py_TPFLAGS_HEAPTYPE) {
        const PyMemberDef *member = PyType_GetSlot((PyTypeObject *)owner, Py_tp_members);
        for (; member != NULL && member->name != NULL && !is_found; member++) {
            is_found = member->type == T_OBJECT_EX && member->flags == 0 && strcmp(member->name, text) == 0;
            *slot = member->offset;
        }
    }
    Py_XDECREF(owner);
    Py_XDECREF(name);
    return is_found || (!PyErr_Occurred() && wrong("a descriptor"));
}

static bool slots_of(PyObject *descriptors, Program *program)
{
    if (!is_tuple(descriptors, -1)) {
        return false;
    }
    Py_ssize_t count = PyTuple_Size(descriptors);
    program->slots = cleared(count, sizeof(Py_ssize_t));
    if (program->slots == NULL) {
        return false;
    }
    program->attribute_count = count;
    for (Py_ssize_t index = 0; index < count; index++) {
        if (!find_slot(program->class, PyTuple_GetItem(descriptors, index), &program->slots[index])) {
            return false;
        }
    }
    return true;
}

static bool fill_program(Reader *reader, PyObject *source, Program *program, int depth)
{
    if (!is_tuple(source, 4)) {
        return false;
    }
    PyObject *class = PyTuple_GetItem(source, 0);
    if (!PyType_Check(class) || (PyType_GetFlags((PyTypeObject *)class) & Py_TPFLAGS_HEAPTYPE) == 0) {
        return wrong("a class");
    }
    if (!is_made_by(&PyBaseObject_Type, class, "O")) {
        return false;
    }
    program->class = (PyTypeObject *)class;
    if (!slots_of(PyTuple_GetItem(source, 1), program) ||
        !index_of(PyTuple_GetItem(source, 2), 1024, &program->measure_count) ||
        !compile_operations(reader, program, PyTuple_GetItem(source, 3), &program->operations,
                            &program->operation_count, depth)) {
        return false;
    }
    for (Py_ssize_t index = 0; index < program->operation_count; index++) {
        program->smallest += smallest_of(&program->operations[index]);
    }
    return true;
}

Program *compile_program(Reader *reader, PyObject *source, int depth)
{
    Program *program = cleared(1, sizeof(Program));
    if (program != NULL && !fill_program(reader, source, program, depth)) {
        free_program(program);
        return NULL;
    }
    return program;
}

static void free_operations(Operation *operations, Py_ssize_t count)
{
    for (Py_ssize_t index = 0; operations != NULL && index < count; index++) {
        Operation *operation = &operations[index];
        PyMem_Free(operation->codes);
        PyMem_Free(operation->cases);
        PyMem_Free(operation->absent);
        free_program(operation->program);
        free_operations(operation->body, operation->body_count);
    }
    PyMem_Free(operations);
}

void free_program(Program *program)
{
    if (program == NULL) {
        return;
    }
    free_operations(program->operations, program->operation_count);
    PyMem_Free(program->slots);
    PyMem_Free(program);
}
