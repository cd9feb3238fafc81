/* What messages and values begin with, as in logicalrep.transactions.tags. */

#ifndef LOGICALREP_TAGS_H
#define LOGICALREP_TAGS_H

enum {
    BEGIN = 'B',
    COMMIT = 'C',
    INSERT = 'I',
    UPDATE = 'U',
    DELETE = 'D',
    TRUNCATE = 'T',
    MESSAGE = 'M',
    STREAM_ABORT = 'A',
    KEY = 'K',
    WHOLE_ROW = 'O',
    NULL_VALUE = 'n',
    UNCHANGED = 'u',
    TEXT = 't',
    BINARY = 'b'
};

#endif
