/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of states by patterns, and their other names in files. */
#include <string.h>

#include "checkpoint.h"

/* The pattern is [p, end). After a mismatch the last * takes one more character. */
static bool fits(const char *p, const char *end, const char *name)
{
    const char *star = NULL, *retry = NULL;
    while (*name) {
        if (p < end && *p == '*') {
            star = p++;
            retry = name;
        } else if (p < end && (*p == '?' || *p == *name)) {
            p++;
            name++;
        } else if (star) {
            p = star + 1;
            name = ++retry;
        } else {
            return false;
        }
    }
    while (p < end && *p == '*')
        p++;
    return p == end;
}

bool name_is_chosen(const char *patterns, const char *name)
{
    for (const char *p = patterns; p;) {
        size_t n = strcspn(p, ",");
        if (fits(p, p + n, name))
            return true;
        p = p[n] ? p + n + 1 : NULL;
    }
    return !patterns;
}

char *name_in_file(const char *map, const char *name)
{
    size_t length = strlen(name);
    for (const char *p = map; p;) {
        size_t n = strcspn(p, ",");
        if (n > length && !strncmp(p, name, length) && p[length] == '=') {
            text other = {0};
            text_add(&other, "%.*s", (int)(n - length - 1), p + length + 1);
            return text_take(&other);
        }
        p = p[n] ? p + n + 1 : NULL;
    }
    return trama_text_copy(name);
}
