/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an IDX file and believes nothing it says: magic, dims and length are checked, and gzip's own checksum. */
#include "idx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "must.h"

enum { UNSIGNED_BYTES = 0x08 };
static const int64_t most_bytes = (int64_t)1 << 33, most_at_once = (int64_t)1 << 24;

/* Reads up to n bytes and returns how many came; ends the program where the file cannot be read. */
static int64_t read_bytes(gzFile file, const char *path, unsigned char *to, int64_t n)
{
    int64_t got = 0;
    while (got < n) {
        int64_t want = n - got < most_at_once ? n - got : most_at_once;
        int came = gzread(file, to + got, (unsigned)want);
        int code;
        const char *what = gzerror(file, &code);
        if (code == Z_BUF_ERROR)
            fail("%s: the file is truncated", path);
        if (came < 0 || (code != Z_OK && code != Z_STREAM_END))
            fail("%s", what); /* names the file */
        if (came == 0)
            break;
        got += came;
    }
    return got;
}

static int64_t big_endian(const unsigned char *bytes)
{
    return (int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 | bytes[3];
}

/* Magic number and dims; returns how many bytes must follow. */
static int64_t read_header(gzFile file, const char *path, int ndim, idx *header)
{
    unsigned char head[4 + 4 * IDX_MAX_NDIM] = {0};
    int64_t length = 4 + 4 * ndim, bytes = 1;
    if (read_bytes(file, path, head, length) < length)
        fail("%s: the file is truncated: an IDX header of %d dims has %lld bytes", path, ndim, (long long)length);
    if (head[0] || head[1] || head[2] != UNSIGNED_BYTES || head[3] != ndim)
        fail("%s: magic number %02x%02x%02x%02x, an IDX file of bytes in %d dims begins with 000008%02x", path, head[0],
             head[1], head[2], head[3], ndim, ndim);
    header->ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        header->dim[d] = big_endian(head + 4 + 4 * d);
        if (header->dim[d] < 1 || header->dim[d] > most_bytes / bytes)
            fail("%s: extent %lld of dim %d is out of range", path, (long long)header->dim[d], d);
        bytes *= header->dim[d];
    }
    return bytes;
}

idx idx_read(const char *path, int ndim)
{
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file)
        fail("%s: %s", path, errno ? strerror(errno) : "no memory to open it");
    idx read = {0};
    int64_t bytes = read_header(file, path, ndim, &read);
    read.bytes = must_allocate(bytes, 1);
    int64_t came = read_bytes(file, path, read.bytes, bytes);
    if (came < bytes)
        fail("%s: the file is truncated: its header promises %lld bytes, %lld follow", path, (long long)bytes,
             (long long)came);
    unsigned char more;
    if (read_bytes(file, path, &more, 1))
        fail("%s: its header promises %lld bytes, more follow", path, (long long)bytes);
    gzclose(file);
    return read;
}

void idx_free(idx *file)
{
    free(file->bytes);
    *file = (idx){0};
}
