#ifndef LOGICALREP_UTF8_H
#define LOGICALREP_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Whether bytes are UTF-8 as Python defines it: shortest forms, no surrogates, up to U+10FFFF. */
bool is_utf8(const uint8_t *at, const uint8_t *end);

#endif
