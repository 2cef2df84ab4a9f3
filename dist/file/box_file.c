/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes of a row-major tensor in a file. */
#define _XOPEN_SOURCE 700 /* pread, pwrite */
#include "box_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_RUN = 4096, MOST_SPAN = 1 << 20 };

/* ---- Runs ---- */

box_runs box_runs_of(trama_shape shape, size_t element, const box *b)
{
    box_runs r = {.n = box_count(b) != 0, .bytes = (int64_t)element, .shape = shape, .of = *b, .element = element};
    int d = b->ndim;
    while (d > 0 && (d == b->ndim || b->n[d] == shape.dim[d]))
        r.bytes *= b->n[--d];
    r.outer = d;
    while (d > 0)
        r.n *= b->n[--d];
    return r;
}

int64_t box_run_at(const box_runs *r, int64_t i)
{
    int64_t at = 0, stride = 1;
    for (int d = r->of.ndim - 1; d >= 0; d--) {
        int64_t index = r->of.lo[d];
        if (d < r->outer) {
            index += i % r->of.n[d];
            i /= r->of.n[d];
        }
        at += index * stride;
        stride *= r->shape.dim[d];
    }
    return at * (int64_t)r->element;
}

/* ---- Slabs ---- */

box_slabs box_slabs_of(const box *b, size_t element, int64_t most)
{
    box_slabs s = {.of = *b, .dim = -1, .thick = 1, .n = box_count(b) != 0};
    int64_t row = box_count(b) * (int64_t)element;
    for (int d = 0; s.n && d < b->ndim; d++) {
        row /= b->n[d];
        s.dim = d;
        if (row <= most || d == b->ndim - 1) {
            s.thick = max_i64(1, most / max_i64(row, 1));
            s.n *= (b->n[d] + s.thick - 1) / s.thick;
            break;
        }
        s.n *= b->n[d];
    }
    return s;
}

box box_slab(const box_slabs *s, int64_t i)
{
    box b = s->of;
    for (int d = s->dim; d >= 0; d--) {
        int64_t thick = d == s->dim ? s->thick : 1, pieces = (s->of.n[d] + thick - 1) / thick;
        int64_t first = i % pieces * thick;
        b.lo[d] += first;
        b.n[d] = min_i64(thick, s->of.n[d] - first);
        i /= pieces;
    }
    return b;
}

/* ---- Reads and writes ---- */

bool file_read_at(int descriptor, void *data, int64_t bytes, int64_t at)
{
    for (ssize_t n = 0; bytes > 0; bytes -= n, at += n, data = (char *)data + n) {
        n = pread(descriptor, data, (size_t)bytes, at);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0) {
            errno = n ? errno : EIO;
            return false;
        }
    }
    return true;
}

bool file_write_at(int descriptor, const void *data, int64_t bytes, int64_t at)
{
    for (ssize_t n = 0; bytes > 0; bytes -= n, at += n, data = (const char *)data + n) {
        n = pwrite(descriptor, data, (size_t)bytes, at);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n < 0)
            return false;
    }
    return true;
}

/* Short runs at equal distances are read together with the bytes between them. */
static bool read_rows(int descriptor, int64_t at, const box_runs *r, char *data)
{
    int64_t rows = r->of.n[r->outer - 1], ld = (int64_t)r->element;
    for (int d = r->outer; d < r->of.ndim; d++)
        ld *= r->shape.dim[d];
    int64_t together = min_i64(rows, 1 + (MOST_SPAN - r->bytes) / ld), span = (together - 1) * ld + r->bytes;
    char *room = trama_try_alloc((size_t)span);
    bool good = room != NULL;
    for (int64_t i = 0, n; good && i < r->n; i += n) {
        n = min_i64(together, rows - i % rows);
        good = file_read_at(descriptor, room, (n - 1) * ld + r->bytes, at + box_run_at(r, i));
        for (int64_t j = 0; good && j < n; j++)
            memcpy(data + (i + j) * r->bytes, room + j * ld, (size_t)r->bytes);
    }
    free(room);
    return good;
}

bool box_read(int descriptor, int64_t at, trama_shape shape, size_t element, const box *b, void *data)
{
    box_runs r = box_runs_of(shape, element, b);
    if (r.n > 1 && r.bytes < SHORT_RUN)
        return read_rows(descriptor, at, &r, data);
    for (int64_t i = 0; i < r.n; i++)
        if (!file_read_at(descriptor, (char *)data + i * r.bytes, r.bytes, at + box_run_at(&r, i)))
            return false;
    return true;
}

bool box_write(int descriptor, int64_t at, trama_shape shape, size_t element, const box *b, const void *data)
{
    box_runs r = box_runs_of(shape, element, b);
    for (int64_t i = 0; i < r.n; i++)
        if (!file_write_at(descriptor, (const char *)data + i * r.bytes, r.bytes, at + box_run_at(&r, i)))
            return false;
    return true;
}
