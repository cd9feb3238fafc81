/* UTF-8 validation. */

#include "utf8.h"

#include <string.h>

bool is_utf8(const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        if (end - at >= 8) {
            uint64_t eight;
            memcpy(&eight, at, 8);
            if ((eight & 0x8080808080808080) == 0) {
                at += 8;
                continue;
            }
        }
        uint8_t first = *at++;
        if (first < 0x80) {
            continue;
        }
        int more;
        uint8_t low = 0x80, high = 0xBF;
        if (first >= 0xC2 && first <= 0xDF) {
            more = 1;
        } else if (first >= 0xE0 && first <= 0xEF) {
            more = 2;
            low = first == 0xE0 ? 0xA0 : low;
            high = first == 0xED ? 0x9F : high;
        } else if (first >= 0xF0 && first <= 0xF4) {
            more = 3;
            low = first == 0xF0 ? 0x90 : low;
            high = first == 0xF4 ? 0x8F : high;
        } else {
            return false;
        }
        if (end - at < more) {
            return false;
        }
        for (; more > 0; more--, at++) {
            if (*at < low || *at > high) {
                return false;
            }
            low = 0x80;
            high = 0xBF;
        }
    }
    return true;
}
