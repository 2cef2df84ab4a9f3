/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of states by patterns, their other names in files, names in UTF-8, and endings of names of files. */
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

/* The bytes of the UTF-8 character there, without overlong forms and surrogates; 0: it is none. */
static int utf8_bytes(const unsigned char *s)
{
    static const struct {
        unsigned char least, most, second_least, second_most;
        int bytes;
    } forms[] = {{0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
                 {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (*s >= forms[i].least && *s <= forms[i].most) {
            bool good = forms[i].bytes == 1 || (s[1] >= forms[i].second_least && s[1] <= forms[i].second_most);
            for (int j = 2; j < forms[i].bytes && good; j++)
                good = (s[j] & 0xc0) == 0x80;
            return good ? forms[i].bytes : 0;
        }
    return 0;
}

bool name_is_utf8(const char *name)
{
    for (int n; *name; name += n)
        if (!(n = utf8_bytes((const unsigned char *)name)))
            return false;
    return true;
}

/* ---- Endings of files ---- */

static const char unfinished_end[] = ".part";

static bool ends_in(const char *name, size_t n, const char *ending)
{
    const size_t m = strlen(ending);
    return n > m && !strncmp(name + n - m, ending, m);
}

bool name_has_ending(const char *name, const char *ending)
{
    return ends_in(name, strlen(name), ending);
}

static size_t finished_length(const char *path)
{
    const size_t n = strlen(path);
    return ends_in(path, n, unfinished_end) ? n - strlen(unfinished_end) : n;
}

bool path_has_ending(const char *path, const char *ending)
{
    return ends_in(path, finished_length(path), ending);
}

char *unfinished_path(const char *path)
{
    text t = {0};
    text_add(&t, "%s%s", path, unfinished_end);
    return text_take(&t);
}

char *finished_path(const char *path)
{
    text t = {0};
    text_add(&t, "%.*s", (int)finished_length(path), path);
    return text_take(&t);
}
