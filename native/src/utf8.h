#ifndef LOGICALREP_UTF8_H
#define LOGICALREP_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Whether bytes are UTF-8 as Python defines it: shortest forms, no surrogates, up to U+10FFFF. */
bool is_utf8(const uint8_t *at, const uint8_t *end);

/* Whether adjacent texts are UTF-8: faster than for each alone. `ends` has `count` ends of texts, of 32 bits, up to
   `size`. */
bool are_texts_utf8(const uint8_t *texts, int64_t size, const uint8_t *ends, int64_t count);

#endif
