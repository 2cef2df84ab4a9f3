/* SPDX-License-Identifier: Apache-2.0 */
/* The seal of a checkpoint: the first bytes of the file, written last. It has the size of the file, a check sum of each
 * dataset, one of all other bytes, and one of itself. */
#define _XOPEN_SOURCE 700 /* fsync */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "box_file.h"
#include "checkpoint.h"
#include "content_sum.h"
#include "hash.h"

static const char magic[16] = "TRAMA sealed 1\n";
enum { BUFFER = 1 << 18, LEAST = 4096, MOST_SEALED = 1 << 22 };

typedef struct seal_head {
    char magic[16];
    int64_t bytes;  /* of the file */
    int64_t n;      /* datasets */
    uint64_t other; /* sum of the bytes that are neither seal nor content */
    uint64_t self;  /* hash of the fields above and of the rows below */
} seal_head;

typedef struct seal_row {
    int64_t at, bytes;
    uint64_t sum;
} seal_row;

size_t seal_bytes(int n)
{
    size_t bytes = LEAST;
    while (bytes < sizeof(seal_head) + (size_t)n * sizeof(seal_row))
        bytes *= 2;
    return bytes;
}

static uint64_t hash_seal(const seal_head *head, const seal_row *rows)
{
    uint64_t hash = hash_bytes(HASH_START, head, offsetof(seal_head, self));
    return hash_bytes(hash, rows, (size_t)head->n * sizeof *rows);
}

static int compare_rows(const void *a, const void *b)
{
    const seal_row *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Adds the bytes of the file in [from, to). */
static bool add_bytes(int descriptor, int64_t from, int64_t to, uint64_t *sum)
{
    char *buffer = trama_alloc(BUFFER);
    bool good = true;
    for (int64_t n; from < to && good; from += n) {
        n = min_i64(BUFFER, to - from);
        good = file_read_at(descriptor, buffer, n, from);
        if (good)
            *sum += content_sum(buffer, from, n, 1);
    }
    free(buffer);
    return good;
}

/* The sum of all bytes that are neither seal nor content. Rows are sorted by place. */
static bool sum_others(int descriptor, const seal_head *head, const seal_row *rows, uint64_t *sum)
{
    int64_t at = (int64_t)sizeof *head + head->n * (int64_t)sizeof *rows;
    bool good = true;
    *sum = 0;
    for (int64_t i = 0; i < head->n && good; i++) {
        good = rows[i].at < at || add_bytes(descriptor, at, rows[i].at, sum);
        at = max_i64(at, rows[i].at + rows[i].bytes);
    }
    return good && add_bytes(descriptor, at, head->bytes, sum);
}

static seal_row *rows_of(const trama_checkpoint *c)
{
    seal_row *rows = trama_alloc((size_t)(c->tensors.n + 1) * sizeof *rows);
    for (int i = 0; i < c->tensors.n; i++) {
        const stored_tensor *t = &c->tensors.at[i];
        rows[i] = (seal_row){t->bytes ? t->at : -1, t->bytes, t->sum};
    }
    qsort(rows, (size_t)c->tensors.n, sizeof *rows, compare_rows);
    return rows;
}

static trama_status seal(const trama_checkpoint *c)
{
    seal_row *rows = rows_of(c);
    seal_head head = {.bytes = c->bytes, .n = c->tensors.n};
    memcpy(head.magic, magic, sizeof magic);
    bool good = sum_others(c->descriptor, &head, rows, &head.other);
    head.self = hash_seal(&head, rows);
    good = good && file_write_at(c->descriptor, rows, head.n * (int64_t)sizeof *rows, sizeof head) &&
           file_write_at(c->descriptor, &head, sizeof head, 0) && !fsync(c->descriptor);
    int error = errno;
    free(rows);
    return good ? TRAMA_OK : checkpoint_failed(c->path, "cannot be sealed", error);
}

/* ---- Opening ---- */

/* Without a seal, for writing. */
static trama_status open_unfinished(trama_checkpoint *c)
{
    trama_status status = checkpoint_open_file(c->path, O_RDWR, &c->descriptor, &c->bytes);
    return status ? status : hdf5_read_frame(c);
}

static bool rows_lie_within(const seal_head *head, const seal_row *rows)
{
    int64_t at = (int64_t)seal_bytes((int)head->n);
    for (int64_t i = 0; i < head->n; i++) {
        if (!rows[i].bytes)
            continue;
        if (rows[i].bytes < 0 || rows[i].at < at || rows[i].bytes > head->bytes - rows[i].at)
            return false;
        at = rows[i].at + rows[i].bytes;
    }
    return true;
}

static trama_status check_rows(trama_checkpoint *c, const seal_head *head, seal_row *rows)
{
    uint64_t other = 0;
    if (!file_read_at(c->descriptor, rows, head->n * (int64_t)sizeof *rows, sizeof *head))
        return checkpoint_failed(c->path, "cannot be read", errno);
    if (hash_seal(head, rows) != head->self || !rows_lie_within(head, rows))
        return checkpoint_damaged(c->path, NULL, "its seal is damaged");
    if (head->bytes != c->bytes)
        return checkpoint_damaged(c->path, NULL, "it does not have the size that it was written with");
    if (!sum_others(c->descriptor, head, rows, &other))
        return checkpoint_failed(c->path, "cannot be read", errno);
    return other == head->other ? TRAMA_OK
                                : checkpoint_damaged(c->path, NULL, "its bytes outside datasets have changed");
}

/* Each tensor takes the sum of the row at its place. */
static trama_status give_sums(trama_checkpoint *c, const seal_head *head, const seal_row *rows)
{
    for (int i = 0; i < c->tensors.n; i++) {
        stored_tensor *t = &c->tensors.at[i];
        const seal_row key = {.at = t->at};
        const seal_row *row = t->bytes ? bsearch(&key, rows, (size_t)head->n, sizeof *rows, compare_rows) : NULL;
        if (t->bytes && (!row || row->bytes != t->bytes))
            return checkpoint_damaged(c->path, t->name, "the seal does not know it");
        t->sum = row ? row->sum : 0;
    }
    return TRAMA_OK;
}

/* Compares size and sums of all bytes that are not content. */
static trama_status open_sealed(trama_checkpoint *c)
{
    seal_head head;
    trama_status status = checkpoint_open_file(c->path, O_RDONLY, &c->descriptor, &c->bytes);
    if (status)
        return status;
    if (c->bytes < LEAST || !file_read_at(c->descriptor, &head, sizeof head, 0) ||
        memcmp(head.magic, magic, sizeof magic))
        return trama_fail(
            NOWHERE, TRAMA_E_ARGUMENT,
            "%s: it is no checkpoint, or one whose writing did not end; give a file that trama_save wrote", c->path);
    if (head.n < 0 || head.n > MOST_SEALED || (int64_t)seal_bytes((int)head.n) > c->bytes)
        return checkpoint_damaged(c->path, NULL, "its seal is damaged");
    seal_row *rows = trama_alloc((size_t)(head.n + 1) * sizeof *rows);
    status = check_rows(c, &head, rows);
    if (!status)
        status = hdf5_read_frame(c);
    if (!status)
        status = give_sums(c, &head, rows);
    free(rows);
    return status;
}

const checkpoint_format hdf5_format = {true, hdf5_write_frame, open_sealed, open_unfinished, seal};
