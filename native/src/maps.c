/* Maps from column names to values, for the old or new rows of many messages. */

#include "loops.h"
#include "tags.h"

typedef struct {
    Array offsets, validity, kinds, starts, lengths;
} Side;

typedef struct {
    Array first, widths, is_key, names, name_ends;
} Columns;

typedef struct {
    Array names, name_ends, values, value_ends, value_bits, binary_entries, binary_columns, ends, row_bits, unsent;
    Array unsent_ends;
} Entries;

/* The numbers of filled entries, as the Sizes of logicalrep.arrow.loops.maps. */
typedef struct {
    int64_t entries, names, values, nulls, binary, missing, unsent, wrong;
} Sizes;

#define ROW_IS_MISSING (-1)
#define ROW_LIES_OUTSIDE (-2)
#define ROW_IS_WRONG (-3)

/* Returns the first value of a message's row of this width, or why there is none. */
static inline int64_t first_cell(const Side *side, int64_t row, int64_t width)
{
    if (side->offsets.length == 0) {
        return ROW_IS_MISSING;
    }
    if (row < 0 || row >= side->offsets.length - 1 || row >> 3 >= side->validity.length) {
        return ROW_LIES_OUTSIDE;
    }
    if (!has_bit(&side->validity, row)) {
        return ROW_IS_MISSING;
    }
    const int64_t cell = read64(side->offsets.bytes, row), end = read64(side->offsets.bytes, row + 1);
    if (cell < 0 || end < cell) {
        return ROW_LIES_OUTSIDE;
    }
    if (end - cell != width) {
        return ROW_IS_WRONG;
    }
    return end <= side->kinds.length && end <= side->starts.length && end <= side->lengths.length ? cell
                                                                                                : ROW_LIES_OUTSIDE;
}

static inline void clear_bit(const Array *bits, int64_t index)
{
    bits->bytes[index >> 3] &= (uint8_t)~(1 << (index & 7));
}

static inline int64_t at_most(int64_t least, int64_t length)
{
    return length < least ? length : least;
}

/* Returns how many entries there is room for. */
static int64_t room_in(const Entries *to)
{
    int64_t most = at_most(to->name_ends.length - 1, to->value_ends.length - 1);
    most = at_most(most, 8 * to->value_bits.length);
    most = at_most(most, to->binary_entries.length);
    most = at_most(most, to->binary_columns.length);
    return at_most(most, to->unsent.length);
}

static bool has_room_for_rows(const Entries *to, int64_t count)
{
    return to->name_ends.length > 0 && to->value_ends.length > 0 && to->ends.length > count &&
           to->unsent_ends.length > count && 8 * to->row_bits.length >= count;
}

/* The result is the sizes of the entries. */
static bool fill_entries(const Array *arrays, const int64_t *scalars, void *result)
{
    const bool are_new = scalars[0] != 0;
    const Array rows = arrays[0], tables = arrays[1], old_kinds = arrays[17], data = arrays[18];
    Columns columns;
    Side side, other;
    Entries to;
    memcpy(&columns, arrays + 2, sizeof(columns));
    memcpy(&side, arrays + 7, sizeof(side));
    memcpy(&other, arrays + 12, sizeof(other));
    memcpy(&to, arrays + 19, sizeof(to));
    const int64_t most = room_in(&to);
    if (tables.length < rows.length || !has_room_for_rows(&to, rows.length)) {
        return false;
    }
    write32(to.name_ends.bytes, 0, 0);
    write32(to.value_ends.bytes, 0, 0);
    write32(to.ends.bytes, 0, 0);
    write32(to.unsent_ends.bytes, 0, 0);
    int64_t entry = 0, names_size = 0, values_size = 0, nulls = 0, binary = 0, missing = 0, unsent = 0, wrong = -1;
    for (int64_t index = 0; index < rows.length; index++) {
        const int64_t row = read64(rows.bytes, index), table = read_int32(tables.bytes, index);
        if (!lies_in(&columns.first, table, 1) || !lies_in(&columns.widths, table, 1)) {
            return false;
        }
        const int64_t first = read64(columns.first.bytes, table), width = read64(columns.widths.bytes, table);
        const int64_t cell = first_cell(&side, row, width);
        if (cell == ROW_LIES_OUTSIDE) {
            return false;
        }
        if (cell == ROW_IS_WRONG) {
            wrong = index;
            break;
        }
        if (cell == ROW_IS_MISSING) {
            missing++;
            clear_bit(&to.row_bits, index);
        } else {
            if (!lies_in(&columns.is_key, first, width) || first >= columns.name_ends.length - width ||
                width > most - entry || width > most - unsent || (old_kinds.length > 0 && !has_index(&old_kinds, row))) {
                return false;
            }
            const uint8_t old_kind = old_kinds.length == 0 ? 0 : old_kinds.bytes[row];
            int64_t whole = ROW_IS_MISSING;
            if (are_new && old_kind == WHOLE_ROW) {
                whole = first_cell(&other, row, width);
                if (whole == ROW_LIES_OUTSIDE) {
                    return false;
                }
                if (whole == ROW_IS_WRONG) {
                    wrong = index;
                    break;
                }
            }
            const bool is_key = !are_new && old_kind == KEY;
            /* Most rows have all their columns: names are copied together, or one by one once a column is left out. */
            int64_t name_start = read_int32(columns.name_ends.bytes, first);
            if (!copy_bytes(&to.names, names_size, &columns.names, name_start,
                            read_int32(columns.name_ends.bytes, first + width) - name_start)) {
                return false;
            }
            bool is_whole = true;
            for (int64_t column = 0; column < width; column++) {
                const int64_t name_end = read_int32(columns.name_ends.bytes, first + column + 1);
                if (name_end < name_start) {
                    return false;
                }
                uint8_t kind = side.kinds.bytes[cell + column];
                int64_t start = read64(side.starts.bytes, cell + column);
                int64_t length = read_uint32(side.lengths.bytes, cell + column);
                if (kind != TEXT) {
                    if (kind == UNCHANGED && whole >= 0) {
                        kind = other.kinds.bytes[whole + column];
                        start = read64(other.starts.bytes, whole + column);
                        length = read_uint32(other.lengths.bytes, whole + column);
                    }
                    if (kind == UNCHANGED && are_new) {
                        write32(to.unsent.bytes, unsent++, first + column);
                        is_whole = false;
                        name_start = name_end;
                        continue;
                    }
                    if (is_key && kind == NULL_VALUE && columns.is_key.bytes[first + column] == 0) {
                        is_whole = false;
                        name_start = name_end;
                        continue;
                    }
                    if (kind == BINARY) {
                        write32(to.binary_entries.bytes, binary, entry);
                        write32(to.binary_columns.bytes, binary, first + column);
                        binary++;
                    } else if (kind != TEXT) {
                        nulls++;
                        length = 0;
                        clear_bit(&to.value_bits, entry);
                    }
                }
                if (!is_whole &&
                    !copy_bytes(&to.names, names_size, &columns.names, name_start, name_end - name_start)) {
                    return false;
                }
                names_size += name_end - name_start;
                name_start = name_end;
                if (length > 0 && !copy_bytes(&to.values, values_size, &data, start, length)) {
                    return false;
                }
                values_size += length;
                entry++;
                write32(to.name_ends.bytes, entry, names_size);
                write32(to.value_ends.bytes, entry, values_size);
            }
        }
        write32(to.ends.bytes, index + 1, entry);
        write32(to.unsent_ends.bytes, index + 1, unsent);
    }
    *(Sizes *)result = (Sizes){entry, names_size, values_size, nulls, binary, missing, unsent, wrong};
    return true;
}

PyObject *fill_maps(PyObject *module, PyObject *const *objects, Py_ssize_t count)
{
    (void)module;
    Sizes sizes;
    if (!run_loop(objects, count, "r8r4(r8r8r1r1r4)(r8r1r1r8r4)(r8r1r1r8r4)n r1r1(w1w4w1w4w1w4w4w4w1w4w4)",
                  fill_entries, &sizes)) {
        return NULL;
    }
    return Py_BuildValue("LLLLLLLL", (long long)sizes.entries, (long long)sizes.names, (long long)sizes.values,
                         (long long)sizes.nulls, (long long)sizes.binary, (long long)sizes.missing,
                         (long long)sizes.unsent, (long long)sizes.wrong);
}
