/* Dates and timestamps, read in place from their text: see digits.h. */

#ifndef LOGICALREP_TIMESTAMPS_H
#define LOGICALREP_TIMESTAMPS_H

#include "digits.h"

#define DAY 86400000000
/* The beginning of the year 1 and of the year 10000, in UTC. */
#define FIRST_TIME (-62135596800000000)
#define END_TIME 253402300800000000
/* From the beginning of the year 0. */
#define DAYS_TO_1970 719528

/* Days from 1970-01-01 to each year, times 2, plus 1 for a leap year; fill_tables fills both tables once. */
static int32_t YEARS[10000];
/* The days before each month, times 32, plus the month's length: first in an ordinary year, then in a leap year. */
static int32_t MONTHS[2][128];

/* The tables spare a division and branches, which would take as long as all the rest. */
static void fill_tables(void)
{
    static const uint8_t lengths[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int32_t first = -719528;
    for (int year = 0; year < 10000; year++) {
        const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        YEARS[year] = 2 * first + leap;
        first += 365 + leap;
    }
    for (int leap = 0; leap < 2; leap++) {
        for (int month = 1, before = 0; month <= 12; month++) {
            const int length = lengths[month] + (leap && month == 2);
            MONTHS[leap][month] = 32 * before + length;
            before += length;
        }
    }
}

/* Returns the days from 1970-01-01 to a day, and whether the day exists. All numbers have two digits. */
ALWAYS_INLINED int64_t day_of(uint64_t century, uint64_t year, uint64_t month, uint64_t day, bool *exists)
{
    const uint64_t years = 100 * century + year;
    const int64_t first = YEARS[years];
    const int64_t days_before = MONTHS[first & 1][month];
    /* Other months than 1 to 12 have no days, and there is no year 0. */
    *exists = (day > 0) & ((int64_t)day <= (days_before & 31)) & (years > 0);
    return (first >> 1) + (days_before >> 5) + (int64_t)day - 1;
}

/* Collects what is wrong with eight characters of the form 2024-06-, and returns their digits in pairs. */
ALWAYS_INLINED uint64_t year_and_month(const uint8_t *at, uint64_t *wrong)
{
    const uint64_t digits = load64(at) ^ 0x303030302D30302D;
    *wrong |= beyond_nine(digits) | (digits & 0x00000000FF0000FF);
    return pairs(digits);
}

ALWAYS_INLINED bool parse_date(const Source *source, const Value *value, int64_t *days)
{
    if (value->kind != TEXT || value->length != 10) {
        return false;
    }
    const uint8_t *at = source->data + value->start;
    uint64_t wrong = 0;
    const uint64_t months = year_and_month(at, &wrong), digits = load16(at + 8) ^ 0x3030;
    if (wrong | beyond_nine(digits)) {
        return false;
    }
    bool exists;
    *days = day_of(months >> 48 & 0xFF, months >> 32 & 0xFF, months >> 8 & 0xFF, pairs(digits) & 0xFF, &exists);
    return exists;
}

/* Reads microseconds since 1970-01-01; false if it is not a timestamp of the years 1 to 9999. */
ALWAYS_INLINED bool parse_time(const Source *source, const Value *value, bool zone, int64_t *microseconds)
{
    const int64_t length = value->length - 3 * zone;
    if (value->kind != TEXT || length < 19 || length > 26) {
        return false;
    }
    const uint8_t *at = source->data + value->start;
    uint64_t wrong = 0;
    const uint64_t months = year_and_month(at, &wrong);
    /* The forms are "30 23:59" and ":59". */
    const uint64_t digits = load64(at + 8) ^ 0x30302030303A3030;
    const uint64_t more = (load32(at + 15) & 0xFFFFFF) ^ 0x3A3030;
    if (wrong | beyond_nine(digits) | beyond_nine(more) | (digits & 0x0000FF0000FF0000) | (more & 0xFF0000)) {
        return false;
    }
    const uint64_t numbers = pairs(digits);
    const int64_t hour = numbers >> 24 & 0xFF, minute = numbers & 0xFF, second = pairs(more) & 0xFF;
    int64_t fraction = 0;
    if (length > 19) {
        const int64_t places = length - 20;
        fraction = last_digits(source->data, value->start + length, places);
        if (at[19] != '.' || places == 0 || fraction < 0) {
            return false;
        }
        fraction *= POWERS[6 - places];
    }
    bool exists;
    const int64_t days = day_of(months >> 48 & 0xFF, months >> 32 & 0xFF, months >> 8 & 0xFF, numbers >> 48 & 0xFF, &exists);
    int64_t time = days * DAY + ((hour * 60 + minute) * 60 + second) * 1000000 + fraction;
    if (zone) {
        const uint8_t sign = at[length];
        const uint64_t hours_digits = load16(at + length + 1) ^ 0x3030;
        const int64_t hours = pairs(hours_digits) & 0xFF;
        if ((sign != '+' && sign != '-') || beyond_nine(hours_digits) || hours > 15) {
            return false;
        }
        time += hours * (sign == '-' ? 3600000000 : -3600000000);
    }
    *microseconds = time;
    return exists & (hour < 24) & (minute < 60) & (second < 60) & (time >= FIRST_TIME) & (time < END_TIME);
}

ALWAYS_INLINED bool parse_timestamp(const Source *source, const Value *value, int64_t *microseconds)
{
    return parse_time(source, value, false, microseconds);
}

ALWAYS_INLINED bool parse_timestamptz(const Source *source, const Value *value, int64_t *microseconds)
{
    return parse_time(source, value, true, microseconds);
}

#endif
