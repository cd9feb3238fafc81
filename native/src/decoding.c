/* Decodes a session's messages: reads a message, compares it with the session's state, and changes the state.

   The state is the attributes of a SessionDecoder in Python, which this module reaches by their slots. What is refused
   here, the decoder in Python reads again: with the same state, as nothing has changed by then. */

#include "decoding.h"

#include <stddef.h>

/* The fields of a message that refer to described objects, and the facts that a message changes. */
#define FEW 4

#define MOST_FACTS 64

typedef struct {
    Py_ssize_t slot;
    PyObject *object; /* the name of the describing message, or the new value of a fact */
} Slot;

/* A message of the session. */
typedef struct {
    Reader *reader;
    PyTypeObject *class;
    PyObject *places;
    Slot lookups[FEW];
    Py_ssize_t lookup_count;
    Slot describes; /* without an object for a message that describes nothing */
    PyObject *opens;
    PyObject *closes;
    Slot changes[FEW];
    Py_ssize_t change_count;
} Entry;

typedef struct {
    TABLED_HEAD
    PyTypeObject *class;
    Py_ssize_t block;
    Py_ssize_t described;
    Py_ssize_t encoding;
    Py_ssize_t facts[MOST_FACTS];
    Py_ssize_t fact_count;
    PyObject *outside;
    Entry *entries;
    Py_ssize_t entry_count;
    unsigned char entry_of[256]; /* by tag, the number of the entry from 1 on; 0 for none */
} Decoding;

static bool wrong(const char *what)
{
    PyErr_Format(PyExc_TypeError, "the table of a session has %s of another form", what);
    return false;
}

static bool are_texts(PyObject *object)
{
    bool are = PyTuple_Check(object);
    for (Py_ssize_t index = 0; are && index < PyTuple_Size(object); index++) {
        are = PyUnicode_Check(PyTuple_GetItem(object, index));
    }
    return are;
}

/* Slots of a class, each with an object: pairs of a descriptor and the object. */
static bool fill_slots(PyTypeObject *class, PyObject *pairs, bool are_named, Slot *slots, Py_ssize_t *count)
{
    if (!PyTuple_Check(pairs) || PyTuple_Size(pairs) > FEW) {
        return wrong("pairs");
    }
    for (*count = 0; *count < PyTuple_Size(pairs); ++*count) {
        PyObject *pair = PyTuple_GetItem(pairs, *count);
        if (!is_tuple(pair, 2) || (are_named && !PyUnicode_Check(PyTuple_GetItem(pair, 1)))) {
            return wrong("a pair");
        }
        slots[*count].object = PyTuple_GetItem(pair, 1);
        if (!find_slot(class, PyTuple_GetItem(pair, 0), &slots[*count].slot)) {
            return false;
        }
    }
    return true;
}

static bool fill_entry(Decoding *self, PyObject *source, Entry *entry)
{
    if (!is_tuple(source, 9)) {
        return wrong("a message");
    }
    PyObject *part[9];
    for (Py_ssize_t index = 0; index < 9; index++) {
        part[index] = PyTuple_GetItem(source, index);
    }
    if (!is_reader(part[1]) || !PyType_Check(part[2]) || !are_texts(part[3]) || !are_texts(part[6]) ||
        !are_texts(part[7]) || PyTuple_Size(part[6]) > 1) {
        return wrong("a message");
    }
    entry->reader = (Reader *)part[1];
    entry->class = (PyTypeObject *)part[2];
    entry->places = part[3];
    entry->opens = PyTuple_Size(part[6]) ? PyTuple_GetItem(part[6], 0) : NULL;
    entry->closes = part[7];
    Slot describes[FEW];
    Py_ssize_t describes_count;
    if (entry->reader->fact_count > self->fact_count ||
        !fill_slots(entry->class, part[4], true, entry->lookups, &entry->lookup_count) ||
        !fill_slots(entry->class, part[5], true, describes, &describes_count) || describes_count > 1 ||
        !fill_slots(self->class, part[8], false, entry->changes, &entry->change_count)) {
        return PyErr_Occurred() == NULL ? wrong("a message") : false;
    }
    if (describes_count) {
        entry->describes = describes[0];
    }
    return true;
}

static bool fill_entries(Decoding *self, PyObject *sources)
{
    if (!PyTuple_Check(sources) || PyTuple_Size(sources) > 255) {
        return wrong("messages");
    }
    self->entries = PyMem_Calloc((size_t)PyTuple_Size(sources) + 1, sizeof(Entry));
    if (self->entries == NULL) {
        PyErr_NoMemory();
        return false;
    }
    while (self->entry_count < PyTuple_Size(sources)) {
        PyObject *source = PyTuple_GetItem(sources, self->entry_count);
        if (!fill_entry(self, source, &self->entries[self->entry_count++])) {
            return false;
        }
        long tag = PyLong_AsLong(PyTuple_GetItem(source, 0));
        if (tag < 0 || tag > 255) {
            return PyErr_Occurred() == NULL ? wrong("a tag") : false;
        }
        self->entry_of[tag] = (unsigned char)self->entry_count;
    }
    return true;
}

static bool fill(PyObject *object, PyObject *table)
{
    Decoding *self = (Decoding *)object;
    if (!is_tuple(table, 7) || !PyType_Check(PyTuple_GetItem(table, 0)) || !PyUnicode_Check(PyTuple_GetItem(table, 5))) {
        return wrong("parts");
    }
    self->class = (PyTypeObject *)PyTuple_GetItem(table, 0);
    self->outside = PyTuple_GetItem(table, 5);
    PyObject *facts = PyTuple_GetItem(table, 4);
    if (!PyTuple_Check(facts) || PyTuple_Size(facts) > MOST_FACTS) {
        return wrong("facts");
    }
    for (; self->fact_count < PyTuple_Size(facts); self->fact_count++) {
        if (!find_slot(self->class, PyTuple_GetItem(facts, self->fact_count), &self->facts[self->fact_count])) {
            return false;
        }
    }
    return find_slot(self->class, PyTuple_GetItem(table, 1), &self->block) &&
           find_slot(self->class, PyTuple_GetItem(table, 2), &self->described) &&
           find_slot(self->class, PyTuple_GetItem(table, 3), &self->encoding) &&
           fill_entries(self, PyTuple_GetItem(table, 6));
}

static PyObject *decoding_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    return new_tabled(type, arguments, keywords, "O:Decoding", fill);
}

static int decoding_clear(Decoding *self)
{
    memset(self->entry_of, 0, sizeof(self->entry_of));
    PyMem_Free(self->entries);
    self->entries = NULL;
    Py_CLEAR(self->table);
    return 0;
}

static PyObject **at(PyObject *object, Py_ssize_t slot)
{
    return (PyObject **)((char *)object + slot);
}

static void set(PyObject *object, Py_ssize_t slot, PyObject *value)
{
    PyObject *previous = *at(object, slot);
    Py_INCREF(value);
    *at(object, slot) = value;
    Py_XDECREF(previous);
}

/* Nearly always the objects are the same. */
static bool contains(PyObject *texts, PyObject *text)
{
    Py_ssize_t count = PyTuple_Size(texts);
    for (Py_ssize_t index = 0; index < count; index++) {
        if (PyTuple_GetItem(texts, index) == text) {
            return true;
        }
    }
    for (Py_ssize_t index = 0; index < count && PyUnicode_CheckExact(text); index++) {
        if (PyUnicode_Compare(PyTuple_GetItem(texts, index), text) == 0) {
            return true;
        }
    }
    return false;
}

/* The objects that messages of a name described; a new reference. NULL where there is no such dict. */
static PyObject *described_by(const Decoding *self, PyObject *decoder, PyObject *name)
{
    PyObject *described = *at(decoder, self->described);
    PyObject *objects =
        described != NULL && PyDict_CheckExact(described) ? PyDict_GetItemWithError(described, name) : NULL;
    if (objects == NULL || !PyDict_CheckExact(objects)) {
        return NULL;
    }
    Py_INCREF(objects);
    return objects;
}

static bool are_all_in(PyObject *objects, PyObject *number)
{
    if (!PyTuple_CheckExact(number)) {
        return PyDict_Contains(objects, number) == 1;
    }
    for (Py_ssize_t index = 0; index < PyTuple_Size(number); index++) {
        if (PyDict_Contains(objects, PyTuple_GetItem(number, index)) != 1) {
            return false;
        }
    }
    return true;
}

static bool is_legal(const Decoding *self, const Entry *entry, PyObject *decoder, PyObject *message)
{
    PyObject *block = *at(decoder, self->block);
    if (block == NULL || Py_TYPE(message) != entry->class || !contains(entry->places, block)) {
        return false;
    }
    for (Py_ssize_t index = 0; index < entry->lookup_count; index++) {
        PyObject *number = *at(message, entry->lookups[index].slot);
        PyObject *objects = number == NULL ? NULL : described_by(self, decoder, entry->lookups[index].object);
        bool are_described = objects != NULL && are_all_in(objects, number);
        Py_XDECREF(objects);
        if (!are_described) {
            return false;
        }
    }
    return true;
}

static bool change_state(const Decoding *self, const Entry *entry, PyObject *decoder, PyObject *message)
{
    if (entry->describes.object != NULL) {
        PyObject *number = *at(message, entry->describes.slot);
        PyObject *objects = number == NULL ? NULL : described_by(self, decoder, entry->describes.object);
        bool is_stored = objects != NULL && PyDict_SetItem(objects, number, message) == 0;
        Py_XDECREF(objects);
        if (!is_stored) {
            return false;
        }
    }
    if (entry->opens != NULL) {
        set(decoder, self->block, entry->opens);
    } else if (PyTuple_Size(entry->closes) > 0 && contains(entry->closes, *at(decoder, self->block))) {
        set(decoder, self->block, self->outside);
    }
    for (Py_ssize_t index = 0; index < entry->change_count; index++) {
        set(decoder, entry->changes[index].slot, entry->changes[index].object);
    }
    return true;
}

/* Reads a message with the decoder's facts; they stay until it is read, whatever a codec in Python does. */
static PyObject *read_with_facts(const Decoding *self, const Entry *entry, PyObject *decoder, PyObject *data)
{
    PyObject *encoding = *at(decoder, self->encoding), *facts[MOST_FACTS];
    char *bytes;
    Py_ssize_t size, count = 0;
    if (encoding == NULL || !PyUnicode_Check(encoding) || PyBytes_AsStringAndSize(data, &bytes, &size) < 0) {
        return NULL;
    }
    for (; count < self->fact_count; count++) {
        facts[count] = *at(decoder, self->facts[count]);
        if (facts[count] == NULL) {
            break;
        }
        Py_INCREF(facts[count]);
    }
    Py_INCREF(encoding);
    PyObject *message = count == self->fact_count ? read_message(entry->reader, (const unsigned char *)bytes, size,
                                                                 encoding, facts)
                                                  : NULL;
    Py_DECREF(encoding);
    while (count > 0) {
        Py_DECREF(facts[--count]);
    }
    return message;
}

static PyObject *decode(Decoding *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (self->table == NULL || count != 2 || !PyObject_TypeCheck(arguments[0], self->class)) {
        PyErr_SetString(PyExc_TypeError, "decode takes a decoder of the session and bytes");
        return NULL;
    }
    PyObject *decoder = arguments[0], *data = arguments[1];
    unsigned char number = PyBytes_CheckExact(data) && PyBytes_Size(data) > 0
                               ? self->entry_of[(unsigned char)*PyBytes_AsString(data)]
                               : 0;
    if (number == 0) {
        Py_RETURN_NONE;
    }
    const Entry *entry = &self->entries[number - 1];
    PyObject *message = read_with_facts(self, entry, decoder, data);
    if (message != NULL && is_legal(self, entry, decoder, message) && change_state(self, entry, decoder, message)) {
        return message;
    }
    Py_XDECREF(message);
    if (PyErr_Occurred() != NULL) {
        /* An unhashable number, a text that cannot be decoded, or an unknown encoding: Python says which. */
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(decode_doc, "decode(decoder, data)\n--\n\n"
                         "Return the next message of the decoder's session; None where Python says what is wrong.");

static PyMethodDef methods[] = {
    {"decode", (PyCFunction)(void (*)(void))decode, METH_FASTCALL, decode_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(decoding_doc, "Decoding(table)\n--\n\n"
                           "Decodes messages of sessions by a table, which logicalrep_runtime.native_decoding makes.");

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)decoding_doc},
    {Py_tp_new, decoding_new},
    {Py_tp_dealloc, dealloc_tabled},
    {Py_tp_traverse, traverse_tabled},
    {Py_tp_clear, decoding_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec decoding_spec = {
    "logicalrep_native.Decoding",
    sizeof(Decoding),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    slots,
};
