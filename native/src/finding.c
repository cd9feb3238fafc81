/* The rows of each table in a batch, and the positions of their values. */

#include "loops.h"
#include "tags.h"

#define FEW_TABLES (1 << 11)

/* Tables by their OIDs: a hash table with two buckets for each table. */
typedef struct {
    int64_t most; /* a power of two */
    int64_t count;
    uint32_t *buckets; /* one more than the table's number; 0 is free */
    uint32_t *oids;
    int64_t *ends; /* of each table's rows; first the number of them */
    uint32_t *numbers; /* of each row's table */
} Tables;

static bool allocate(Tables *tables, int64_t most, int64_t rows)
{
    *tables = (Tables){
        .most = most,
        .buckets = PyMem_Calloc(2 * (size_t)most, sizeof(uint32_t)),
        .oids = PyMem_Malloc((size_t)most * sizeof(uint32_t)),
        .ends = PyMem_Malloc((size_t)most * sizeof(int64_t)),
        .numbers = PyMem_Malloc((size_t)rows * sizeof(uint32_t)),
    };
    return tables->buckets != NULL && tables->oids != NULL && tables->ends != NULL && tables->numbers != NULL;
}

static void deallocate(Tables *tables)
{
    PyMem_Free(tables->buckets);
    PyMem_Free(tables->oids);
    PyMem_Free(tables->ends);
    PyMem_Free(tables->numbers);
}

/* Returns the number of an OID's table; -1 if there are too many. */
static inline int64_t table_number(Tables *tables, uint32_t oid)
{
    const uint64_t mask = 2 * (uint64_t)tables->most - 1;
    uint64_t bucket = (uint64_t)oid * 0x9E3779B1 >> 8 & mask;
    for (; tables->buckets[bucket] != 0; bucket = (bucket + 1) & mask) {
        const uint32_t number = tables->buckets[bucket] - 1;
        if (tables->oids[number] == oid) {
            return number;
        }
    }
    if (tables->count == tables->most) {
        return -1;
    }
    tables->oids[tables->count] = oid;
    tables->ends[tables->count] = 0;
    tables->buckets[bucket] = (uint32_t)++tables->count;
    return tables->count - 1;
}

typedef enum { GROUPED, TOO_MANY, OUTSIDE } Grouping;

static Grouping group(Tables *tables, const Array rows, const Array oids, const Array grouped)
{
    for (int64_t index = 0; index < rows.length; index++) {
        const int64_t row = read64(rows.bytes, index);
        if (!has_index(&oids, row)) {
            return OUTSIDE;
        }
        const int64_t number = table_number(tables, (uint32_t)read_uint32(oids.bytes, row));
        if (number < 0) {
            return TOO_MANY;
        }
        tables->numbers[index] = (uint32_t)number;
        tables->ends[number]++;
    }
    int64_t start = 0;
    for (int64_t number = 0; number < tables->count; number++) {
        const int64_t count = tables->ends[number];
        tables->ends[number] = start;
        start += count;
    }
    for (int64_t index = 0; index < rows.length; index++) {
        write64(grouped.bytes, tables->ends[tables->numbers[index]]++, read64(rows.bytes, index));
    }
    return GROUPED;
}

/* Returns the OID of each table and the number of its rows. */
static PyObject *pairs_of(const Tables *tables)
{
    PyObject *pairs = PyList_New(tables->count);
    for (int64_t number = 0; pairs != NULL && number < tables->count; number++) {
        const int64_t count = tables->ends[number] - (number > 0 ? tables->ends[number - 1] : 0);
        PyObject *pair = Py_BuildValue("kL", (unsigned long)tables->oids[number], (long long)count);
        if (pair == NULL || PyList_SetItem(pairs, number, pair) < 0) {
            Py_CLEAR(pairs);
        }
    }
    return pairs;
}

PyObject *group_rows(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Arguments of;
    if (!read_arguments(&of, objects, count, "r8r4w8")) {
        return NULL;
    }
    const Array rows = of.arrays[0];
    Grouping grouping = of.arrays[2].length < rows.length || rows.length > UINT32_MAX / 2 ? OUTSIDE : TOO_MANY;
    PyObject *result = NULL;
    for (int64_t most = FEW_TABLES; grouping == TOO_MANY; most *= 16) {
        Tables tables;
        if (!allocate(&tables, most, rows.length)) {
            deallocate(&tables);
            release(&of.views);
            return PyErr_NoMemory();
        }
        Py_BEGIN_ALLOW_THREADS;
        grouping = group(&tables, rows, of.arrays[1], of.arrays[2]);
        Py_END_ALLOW_THREADS;
        result = grouping == GROUPED ? pairs_of(&tables) : NULL;
        deallocate(&tables);
    }
    if (grouping == OUTSIDE) {
        return refuse(&of);
    }
    release(&of.views);
    return result;
}

typedef struct {
    int64_t count;
    int64_t whole_count;
    int64_t wrong;
    bool has_more;
} Rows;

/* The result is the rows. */
static bool find(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars;
    Rows *const to = result;
    const Array rows = arrays[0], offsets = arrays[1], validity = arrays[2], kinds = arrays[3], in_key = arrays[4];
    const Array key_kinds = arrays[5];
    uint8_t *const present_rows = arrays[6].bytes, *const present_cells = arrays[7].bytes;
    uint8_t *const whole_rows = arrays[8].bytes, *const whole_cells = arrays[9].bytes;
    for (int array = 6; array < 10; array++) {
        if (arrays[array].length < rows.length) {
            return false;
        }
    }
    /* The rows that all arrays have. */
    uint64_t limit = offsets.length > 0 ? (uint64_t)offsets.length - 1 : 0;
    limit = limit < 8 * (uint64_t)validity.length ? limit : 8 * (uint64_t)validity.length;
    if (key_kinds.length > 0 && (uint64_t)key_kinds.length < limit) {
        limit = (uint64_t)key_kinds.length;
    }
    int64_t count = 0, whole_count = 0;
    bool has_more = false;
    to->wrong = -1;
    for (int64_t index = 0; index < rows.length; index++) {
        const int64_t row = read64(rows.bytes, index);
        if ((uint64_t)row >= limit) {
            return false;
        }
        if (!has_bit(&validity, row)) {
            continue;
        }
        const int64_t cell = read64(offsets.bytes, row), end = read64(offsets.bytes, row + 1);
        if (cell < 0 || end < cell) {
            return false;
        }
        if (end - cell != in_key.length) {
            to->wrong = index;
            break;
        }
        write64(present_rows, count, index);
        write64(present_cells, count, cell);
        count++;
        if (key_kinds.length == 0 || key_kinds.bytes[row] != KEY) {
            write64(whole_rows, whole_count, index);
            write64(whole_cells, whole_count, cell);
            whole_count++;
        } else if (!has_more) {
            if (!lies_in(&kinds, cell, in_key.length)) {
                return false;
            }
            for (int64_t column = 0; column < in_key.length; column++) {
                has_more |= in_key.bytes[column] == 0 && kinds.bytes[cell + column] != NULL_VALUE;
            }
        }
    }
    to->count = count;
    to->whole_count = whole_count;
    to->has_more = has_more;
    return true;
}

PyObject *find_rows(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Rows rows;
    if (!run_loop(objects, count, "r8r8r1r1r1r1(w8w8)(w8w8)", find, &rows)) {
        return NULL;
    }
    return Py_BuildValue("LLLO", (long long)rows.count, (long long)rows.whole_count, (long long)rows.wrong,
                         rows.has_more ? Py_True : Py_False);
}
