#ifndef LOGICALREP_UTF8_H
#define LOGICALREP_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* Whether bytes are UTF-8 as Python defines it: shortest forms, no surrogates, up to U+10FFFF. */
bool is_utf8(const uint8_t *at, const uint8_t *end);

/* Whether all texts are UTF-8, in a fraction of the time. True is certain; after false check each text with is_utf8. The
   texts are adjacent, with memory that can be read before and behind them; `ends` has 0, then each text's end. */
bool are_utf8(const uint8_t *texts, int64_t length, const uint8_t *ends, int64_t count);

#endif
