/* SPDX-License-Identifier: Apache-2.0 */
#include "svg_text.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "picture_parts.h"

static int count_characters(const char *text)
{
    int n = 0;
    for (int length; (length = character_length(text)); n++)
        text += length < 0 ? 1 : length;
    return n;
}

void svg_cut(FILE *out, const char *text, int most)
{
    text = text ? text : "";
    bool cut = most < INT_MAX && count_characters(text) > most;
    most = cut ? most - 2 : most;
    for (int length; most > 0 && (length = character_length(text)); most--) {
        if (length < 0)
            fputc(*text == '\n' ? '\n' : *text == '\t' ? ' ' : '?', out);
        else if (strchr("<>&\"", *text))
            fprintf(out, "&#%d;", *text);
        else
            fprintf(out, "%.*s", length, text);
        text += length < 0 ? 1 : length;
    }
    fputs(cut ? ".." : "", out);
}

void svg_print(FILE *out, const char *format, ...)
{
    char text[1000];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    svg_cut(out, text, INT_MAX);
}

const char *svg_duration(char text[32], double ms)
{
    if (fabs(ms) < 1)
        snprintf(text, 32, "%.*f \u00b5s", fabs(ms) < 0.1 ? 2 : 1, ms * 1000);
    else if (fabs(ms) < 10000)
        snprintf(text, 32, "%.*f ms", fabs(ms) < 10 ? 3 : fabs(ms) < 1000 ? 1 : 0, ms);
    else
        snprintf(text, 32, "%.2f s", ms / 1000);
    return text;
}

const char *svg_bytes(char text[32], int64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double amount = (double)bytes / 1024;
    int unit = 0;
    if (bytes < 1024)
        snprintf(text, 32, "%" PRId64 " B", bytes);
    else {
        for (; amount >= 1024 && unit < 4; unit++)
            amount /= 1024;
        snprintf(text, 32, "%.*f %s", amount < 10 ? 2 : amount < 100 ? 1 : 0, amount, units[unit]);
    }
    return text;
}
