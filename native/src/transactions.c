/* The transaction and the table of each message, and the feed's rows from them. */

#include "loops.h"
#include "tags.h"

#define FREE (-1)

typedef struct {
    int64_t wrong;
    bool is_open;
    int64_t changes;
} Followed;

static bool follow_tags(const Array *arrays, const int64_t *scalars, void *result)
{
    const Array tags = arrays[0], truncated = arrays[1];
    uint8_t *const transaction_of = arrays[2].bytes, *const ordinals = arrays[3].bytes;
    if (arrays[2].length < tags.length || arrays[3].length < tags.length) {
        return false;
    }
    bool is_open = scalars[0] != 0;
    /* Unsigned, as a caller's number may wrap around. */
    uint64_t changes = (uint64_t)scalars[1];
    int64_t number = 0, truncates = 0, row = 0;
    for (; row < tags.length; row++) {
        const uint8_t tag = tags.bytes[row];
        if (tag == BEGIN) {
            if (is_open) {
                break;
            }
            is_open = true;
            number++;
            changes = 0;
        } else if (tag != MESSAGE && is_open == (tag == STREAM_ABORT)) {
            break;
        }
        write64(transaction_of, row, number);
        write64(ordinals, row, (int64_t)changes);
        is_open = is_open && tag != COMMIT;
        changes += tag == INSERT || tag == UPDATE || tag == DELETE || tag == MESSAGE;
        if (tag == TRUNCATE) {
            if (truncates == truncated.length) {
                return false;
            }
            changes += (uint64_t)read64(truncated.bytes, truncates++);
        }
    }
    *(Followed *)result = (Followed){row == tags.length ? -1 : row, is_open, (int64_t)changes};
    return true;
}

PyObject *follow(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Followed followed;
    if (!run_loop(objects, count, "r1n n r8w8w8", follow_tags, &followed)) {
        return NULL;
    }
    return Py_BuildValue("LOL", (long long)followed.wrong, followed.is_open ? Py_True : Py_False,
                         (long long)followed.changes);
}

/* Writes the number of each change's table. The result is the first change whose table has none, or -1. */
static bool number_changes(const Array *arrays, const int64_t *scalars, void *result)
{
    int64_t *const unknown = result;
    const int64_t first = scalars[0], last = scalars[1];
    const Array tags = arrays[0], oids = arrays[1], buckets = arrays[2], tables = arrays[3];
    const int64_t bucket_count = buckets.length / 2, mask = bucket_count - 1;
    if (first < 0 || last > tags.length || last > oids.length || last > tables.length || bucket_count == 0 ||
        (bucket_count & mask) != 0) {
        return false;
    }
    for (int64_t row = first; row < last; row++) {
        const uint8_t tag = tags.bytes[row];
        if (tag != INSERT && tag != UPDATE && tag != DELETE) {
            continue;
        }
        const int64_t oid = read_uint32(oids.bytes, row);
        int64_t bucket = oid & mask;
        /* Damaged buckets may have no free one. */
        for (int64_t tries = 0; read64(buckets.bytes, 2 * bucket) != oid; tries++) {
            if (tries == bucket_count || read64(buckets.bytes, 2 * bucket) == FREE) {
                *unknown = row;
                return true;
            }
            bucket = (bucket + 1) & mask;
        }
        write32(tables.bytes, row, read64(buckets.bytes, 2 * bucket + 1));
    }
    *unknown = -1;
    return true;
}

PyObject *number_tables(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    int64_t unknown;
    if (!run_loop(objects, count, "r1r4n n r8w4", number_changes, &unknown)) {
        return NULL;
    }
    return PyLong_FromLongLong(unknown);
}

enum { ROWS, TAGS, LSNS, TABLES, TRANSACTION_OF, ORDINALS, OIDS, WIDTHS, NAME_SIZES, FINAL_LSNS, TIMESTAMPS, XIDS, COLUMNS };

typedef struct {
    int64_t values;
    int64_t names;
} Totals;

static bool fill(const Array *arrays, const int64_t *scalars, void *result)
{
    (void)scalars;
    const Array rows = arrays[ROWS], tags = arrays[TAGS], lsns = arrays[LSNS], table_of = arrays[TABLES];
    const Array transaction_of = arrays[TRANSACTION_OF], ordinals = arrays[ORDINALS];
    const Array oids = arrays[OIDS], widths = arrays[WIDTHS], name_sizes = arrays[NAME_SIZES];
    const Array final_lsns = arrays[FINAL_LSNS], timestamps = arrays[TIMESTAMPS], xids = arrays[XIDS];
    uint8_t *to[8];
    for (int column = 0; column < 8; column++) {
        to[column] = arrays[COLUMNS + column].bytes;
        if (arrays[COLUMNS + column].length < rows.length) {
            return false;
        }
    }
    if (lsns.length < tags.length || table_of.length < tags.length || transaction_of.length < tags.length ||
        ordinals.length < tags.length || widths.length < oids.length || name_sizes.length < oids.length ||
        timestamps.length < final_lsns.length || xids.length < final_lsns.length) {
        return false;
    }
    uint64_t values = 0, names = 0;
    for (int64_t index = 0; index < rows.length; index++) {
        const int64_t row = read64(rows.bytes, index);
        if (!has_index(&tags, row)) {
            return false;
        }
        const int64_t table = read_int32(table_of.bytes, row), transaction = read64(transaction_of.bytes, row);
        if (!has_index(&oids, table) || !has_index(&final_lsns, transaction)) {
            return false;
        }
        const uint8_t tag = tags.bytes[row];
        write32(to[0], index, tag == INSERT ? 0 : tag == UPDATE ? 1 : 2);
        write32(to[1], index, table);
        write64(to[2], index, read64(oids.bytes, table));
        write64(to[3], index, read64(lsns.bytes, row));
        write64(to[4], index, read64(final_lsns.bytes, transaction));
        write64(to[5], index, read64(timestamps.bytes, transaction));
        write64(to[6], index, read64(xids.bytes, transaction));
        write64(to[7], index, read64(ordinals.bytes, row));
        values += (uint64_t)read64(widths.bytes, table);
        names += (uint64_t)read64(name_sizes.bytes, table);
    }
    *(Totals *)result = (Totals){(int64_t)values, (int64_t)names};
    return true;
}

PyObject *fill_rows(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Totals totals;
    if (!run_loop(objects, count, "r8(r1r8r4r8r8)(r8r8r8)(r8r8r8)(w4w4w8w8w8w8w8w8)", fill, &totals)) {
        return NULL;
    }
    return Py_BuildValue("LL", (long long)totals.values, (long long)totals.names);
}
