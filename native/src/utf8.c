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

bool are_utf8(const uint8_t *texts, int64_t length, const uint8_t *ends, int64_t count)
{
    int64_t first = 0;
    for (; length - first >= 32; first += 32) {
        uint64_t eights[4];
        memcpy(eights, texts + first, 32);
        if ((eights[0] | eights[1] | eights[2] | eights[3]) & 0x8080808080808080) {
            break;
        }
    }
    while (first < length && texts[first] < 0x80) {
        first++;
    }
    if (first == length) {
        return true;
    }
    /* Whether a byte cannot follow the three bytes before it. */
    uint8_t errors = 0;
    for (int64_t index = first; index < length; index++) {
        const uint8_t here = texts[index], previous = texts[index - 1];
        const uint8_t continues = (uint8_t)((here & 0xC0) == 0x80);
        const uint8_t is_to = (uint8_t)((previous >= 0xC0) | (texts[index - 2] >= 0xE0) | (texts[index - 3] >= 0xF0));
        errors |= (uint8_t)((continues ^ is_to) | ((here & 0xFE) == 0xC0) | (here >= 0xF5));
        errors |= (uint8_t)(((previous == 0xE0) & (here < 0xA0)) | ((previous == 0xED) & (here >= 0xA0)));
        errors |= (uint8_t)(((previous == 0xF0) & (here < 0x90)) | ((previous == 0xF4) & (here >= 0x90)));
    }
    errors |= texts[length - 1] >= 0xC0 || texts[length - 2] >= 0xE0 || texts[length - 3] >= 0xF0;
    /* If all texts together are UTF-8, so is each text that does not begin in the middle of a character. */
    for (int64_t index = 0; index < count; index++) {
        uint32_t start;
        memcpy(&start, ends + 4 * index, 4);
        errors |= (uint8_t)((texts[start] & 0xC0) == 0x80);
    }
    return errors == 0;
}
