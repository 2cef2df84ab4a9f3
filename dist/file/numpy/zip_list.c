/* SPDX-License-Identifier: Apache-2.0 */
/* The list of members of an archive. Archives may come from anybody, so every number is checked before its use. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "box_file.h"
#include "checkpoint.h"
#include "zip.h"

enum { END = 22, END64 = 56, LOCATOR = 20, ENTRY = 46, LOCAL = 30, MOST_COMMENT = 65535, MOST_DIRECTORY = 100000000 };
enum { STORED = 0, DEFLATED = 8, MOST_RATIO = 1032 };

typedef struct archive {
    const char *path;
    int descriptor;
    int64_t bytes;
    int64_t n, directory, at; /* members; bytes of the directory, and its place */
} archive;

static uint64_t number_at(const unsigned char *p, int bytes)
{
    uint64_t x = 0;
    while (bytes--)
        x = x << 8 | p[bytes];
    return x;
}

static trama_status damaged(const archive *a, const char *reason)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "%s: %s; write the archive again by numpy.savez, or restore it from a copy", a->path, reason);
}

static bool read_at(const archive *a, void *to, int64_t bytes, int64_t at)
{
    errno = 0;
    return at >= 0 && bytes <= a->bytes && at <= a->bytes - bytes && file_read_at(a->descriptor, to, bytes, at);
}

/* ---- The end of the archive ---- */

static bool take_end64(archive *a, int64_t end)
{
    unsigned char locator[LOCATOR], record[END64];
    if (!read_at(a, locator, LOCATOR, end - LOCATOR) || memcmp(locator, "PK\6\7", 4))
        return false;
    const uint64_t at = number_at(locator + 8, 8);
    if (at > (uint64_t)a->bytes || !read_at(a, record, END64, (int64_t)at) || memcmp(record, "PK\6\6", 4))
        return false;
    const uint64_t n = number_at(record + 32, 8), bytes = number_at(record + 40, 8), begin = number_at(record + 48, 8);
    if (bytes > MOST_DIRECTORY || n > bytes / ENTRY || begin > at || bytes > at - begin)
        return false;
    a->n = (int64_t)n;
    a->directory = (int64_t)bytes;
    a->at = (int64_t)begin;
    return true;
}

/* The record begins at byte `end` of the archive. */
static bool take_end(archive *a, const unsigned char *p, int64_t end)
{
    const uint64_t n = number_at(p + 10, 2), bytes = number_at(p + 12, 4), begin = number_at(p + 16, 4);
    if (n == UINT16_MAX || bytes == UINT32_MAX || begin == UINT32_MAX)
        return take_end64(a, end);
    a->n = (int64_t)n;
    a->directory = (int64_t)bytes;
    a->at = (int64_t)begin;
    return number_at(p + 4, 4) == 0 && a->directory <= MOST_DIRECTORY && a->n <= a->directory / ENTRY &&
           a->at + a->directory <= end;
}

static trama_status find_directory(archive *a)
{
    const int64_t n = min_i64(a->bytes, END + MOST_COMMENT);
    unsigned char *tail = trama_alloc((size_t)n + 1);
    bool found = false, good = false;
    if (n >= END && read_at(a, tail, n, a->bytes - n))
        for (int64_t i = n - END; i >= 0 && !found; i--) {
            found = !memcmp(tail + i, "PK\5\6", 4) && i + END + (int64_t)number_at(tail + i + 20, 2) == n;
            good = found && take_end(a, tail + i, a->bytes - n + i);
        }
    free(tail);
    if (good)
        return TRAMA_OK;
    return found ? damaged(a, "the place of its directory is wrong")
                 : trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: it is no archive of NumPy (.npz)", a->path);
}

/* ---- Members ---- */

/* The fields of 64 bits in the extra part of an entry, for those whose field of 32 bits is full. */
static bool take_wide(const unsigned char *extra, size_t n, uint64_t *fields[3])
{
    bool lacks = false;
    for (int i = 0; i < 3; i++)
        lacks |= *fields[i] == UINT32_MAX;
    for (size_t at = 0; lacks && at + 4 <= n;) {
        const size_t bytes = number_at(extra + at + 2, 2);
        if (bytes > n - at - 4)
            return false;
        if (number_at(extra + at, 2) == 1) {
            size_t used = 0;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX)
                    continue;
                if (used + 8 > bytes)
                    return false;
                *fields[i] = number_at(extra + at + 4 + used, 8);
                used += 8;
            }
            return true;
        }
        at += 4 + bytes;
    }
    return !lacks;
}

/* The first packed byte comes after the record that stands before the member. */
static bool find_content(const archive *a, zip_member *m)
{
    unsigned char local[LOCAL];
    if (m->local > a->at - LOCAL || !read_at(a, local, LOCAL, m->local) || memcmp(local, "PK\3\4", 4))
        return false;
    m->at = m->local + LOCAL + (int64_t)number_at(local + 26, 2) + (int64_t)number_at(local + 28, 2);
    return m->at <= a->at && m->packed <= a->at - m->at;
}

static trama_status check_member(const archive *a, zip_member *m, unsigned flags, unsigned method)
{
    text t = {0};
    const char *wrong = NULL;
    if (strlen(m->name) > 1000 || !name_is_utf8(m->name))
        wrong = "its name is not UTF-8 or too long";
    else if (flags & 1)
        wrong = "it has a password";
    else if (method != STORED && method != DEFLATED)
        wrong = "it is packed by a method that NumPy does not use";
    else if (m->packed < 0 || m->bytes < 0 || m->local < 0 || !find_content(a, m))
        wrong = "it lies outside the archive";
    else if (method == STORED ? m->packed != m->bytes : m->bytes / MOST_RATIO > m->packed)
        wrong = "its size is not possible";
    if (!wrong)
        return TRAMA_OK;
    text_add(&t, "member %.200s: %s", name_is_utf8(m->name) ? m->name : "?", wrong);
    trama_status status = damaged(a, t.at);
    free(t.at);
    return status;
}

/* words [a->directory]; *at: of the entry, which moves on */
static trama_status take_entry(const archive *a, const unsigned char *words, int64_t *at, zip_members *members)
{
    const unsigned char *p = words + *at;
    if (a->directory - *at < ENTRY || memcmp(p, "PK\1\2", 4))
        return damaged(a, "its directory is damaged");
    const int64_t name = (int64_t)number_at(p + 28, 2), extra = (int64_t)number_at(p + 30, 2);
    const int64_t whole = ENTRY + name + extra + (int64_t)number_at(p + 32, 2);
    uint64_t packed = number_at(p + 20, 4), bytes = number_at(p + 24, 4), local = number_at(p + 42, 4);
    if (whole > a->directory - *at || memchr(p + ENTRY, 0, (size_t)name) ||
        !take_wide(p + ENTRY + name, (size_t)extra, (uint64_t *[]){&bytes, &packed, &local}))
        return damaged(a, "its directory is damaged");
    zip_member *m = ARRAY_PUSH(members);
    text t = {0};
    text_add(&t, "%.*s", (int)name, (const char *)p + ENTRY);
    *m = (zip_member){.name = text_take(&t),
                      .deflated = number_at(p + 10, 2) == DEFLATED,
                      .sum = (uint32_t)number_at(p + 16, 4),
                      .packed = (int64_t)packed,
                      .bytes = (int64_t)bytes,
                      .local = (int64_t)local,
                      .entry = a->at + *at};
    *at += whole;
    return check_member(a, m, (unsigned)number_at(p + 8, 2), (unsigned)number_at(p + 10, 2));
}

static int by_place(const void *a, const void *b)
{
    const zip_member *x = a, *y = b;
    return x->local < y->local ? -1 : x->local > y->local;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const zip_member *)a)->name, ((const zip_member *)b)->name);
}

static trama_status check_apart(const archive *a, zip_members *members)
{
    if (members->n)
        qsort(members->at, (size_t)members->n, sizeof *members->at, by_place);
    for (int i = 1; i < members->n; i++)
        if (members->at[i - 1].at + members->at[i - 1].packed > members->at[i].local)
            return damaged(a, "two members overlap");
    if (members->n)
        qsort(members->at, (size_t)members->n, sizeof *members->at, by_name);
    for (int i = 1; i < members->n; i++)
        if (!strcmp(members->at[i - 1].name, members->at[i].name))
            return damaged(a, "two members have one name");
    return TRAMA_OK;
}

trama_status zip_list(const char *path, int descriptor, int64_t bytes, zip_members *members)
{
    archive a = {.path = path, .descriptor = descriptor, .bytes = bytes};
    trama_status status = find_directory(&a);
    if (status)
        return status;
    unsigned char *words = trama_try_alloc((size_t)a.directory + 1);
    if (!words)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory for its directory", path);
    if (!read_at(&a, words, a.directory, a.at))
        status = damaged(&a, "its directory cannot be read");
    int64_t at = 0;
    for (int64_t i = 0; i < a.n && !status; i++)
        status = take_entry(&a, words, &at, members);
    free(words);
    return status ? status : check_apart(&a, members);
}

void zip_free(zip_members *members)
{
    for (int i = 0; i < members->n; i++)
        free(members->at[i].name);
    ARRAY_FREE(members);
}
