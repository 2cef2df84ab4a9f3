/* SPDX-License-Identifier: Apache-2.0 */
/* Contents and records of archives: members inflated, sums, and the records of an archive that is written. */
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "box_file.h"
#include "zip.h"

enum { BUFFER = 1 << 17 };

/* ---- Reading ---- */

typedef struct unpacking {
    int descriptor, to;
    const zip_member *m;
    int64_t most, read, written;
    uint32_t sum;
    unsigned char in[BUFFER], out[BUFFER];
    z_stream stream;
} unpacking;

/* Z_OK where more may come, Z_STREAM_END, or an error; errno of a file that failed. */
static int unpack_part(unpacking *u)
{
    z_stream *z = &u->stream;
    if (!z->avail_in && u->read < u->m->packed) {
        const int64_t n = min_i64(BUFFER, u->m->packed - u->read);
        if (!file_read_at(u->descriptor, u->in, n, u->m->at + u->read))
            return Z_ERRNO;
        u->read += n;
        z->next_in = u->in;
        z->avail_in = (uInt)n;
    }
    z->next_out = u->out;
    z->avail_out = (uInt)min_i64(BUFFER, u->most - u->written + 1); /* a byte more than there should be */
    const uInt room = z->avail_out;
    const int result = inflate(z, Z_NO_FLUSH);
    const int64_t n = min_i64(room - z->avail_out, u->most - u->written);
    const bool more = room - z->avail_out > n;
    u->sum = (uint32_t)crc32(u->sum, u->out, (uInt)n);
    if (!file_write_at(u->to, u->out, n, u->written))
        return Z_ERRNO;
    u->written += n;
    if (more)
        return u->most < u->m->bytes ? Z_STREAM_END : Z_DATA_ERROR;
    return result == Z_BUF_ERROR && !n ? Z_DATA_ERROR : result;
}

trama_status zip_unpack(const char *path, int descriptor, const zip_member *m, int64_t most, int to)
{
    unpacking *u = trama_try_alloc(sizeof *u);
    if (!u)
        return trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory to inflate %s", path, m->name);
    u->descriptor = descriptor;
    u->to = to;
    u->m = m;
    u->most = min_i64(most, m->bytes);
    int result = inflateInit2(&u->stream, -MAX_WBITS);
    errno = 0;
    while (result == Z_OK)
        result = unpack_part(u);
    const int error = errno;
    inflateEnd(&u->stream);
    const bool whole = most >= m->bytes,
               good = result == Z_STREAM_END && u->written == u->most && (!whole || u->sum == m->sum);
    free(u);
    if (good)
        return TRAMA_OK;
    return result == Z_ERRNO ? trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: member %s: %s", path, m->name, strerror(error))
                             : trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                                          "%s: member %s does not inflate to its size and check sum; write the "
                                          "archive again by numpy.savez, or restore it from a copy",
                                          path, m->name);
}

bool zip_sum(int descriptor, int64_t at, int64_t bytes, uint32_t *sum)
{
    unsigned char *buffer = trama_alloc(BUFFER);
    bool good = true;
    *sum = 0;
    for (int64_t n; good && bytes; bytes -= n, at += n) {
        n = min_i64(BUFFER, bytes);
        good = file_read_at(descriptor, buffer, n, at);
        if (good)
            *sum = (uint32_t)crc32(*sum, buffer, (uInt)n);
    }
    free(buffer);
    return good;
}

/* ---- Writing ---- */

enum { VERSION = 45 /* sizes of 64 bits */, UTF8 = 1 << 11, DAY = 1 << 5 | 1 /* 1 January 1980 */ };

static void add_number(text *t, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        text_add(t, "%c", (int)(x >> 8 * i & 255));
}

/* From the version on: what both records of a member have. Both sizes are in the extra part. */
static void add_common(text *t, const char *name, int extra)
{
    add_number(t, VERSION, 2);
    add_number(t, UTF8, 2);
    add_number(t, 0, 2); /* stored */
    add_number(t, 0, 2); /* time */
    add_number(t, DAY, 2);
    add_number(t, 0, 4); /* the sum comes later */
    add_number(t, UINT32_MAX, 4);
    add_number(t, UINT32_MAX, 4);
    add_number(t, strlen(name), 2);
    add_number(t, (uint64_t)extra, 2);
}

static void add_sizes(text *t, int64_t bytes, int extra)
{
    add_number(t, 1, 2);
    add_number(t, (uint64_t)extra - 4, 2);
    add_number(t, (uint64_t)bytes, 8);
    add_number(t, (uint64_t)bytes, 8);
}

void zip_add_local(text *t, const char *name, int64_t bytes)
{
    text_add(t, "%s", "PK\3\4");
    add_common(t, name, 20);
    text_add(t, "%s", name);
    add_sizes(t, bytes, 20);
}

void zip_add_entry(text *t, const char *name, int64_t bytes, int64_t local)
{
    text_add(t, "%s", "PK\1\2");
    add_number(t, VERSION, 2);
    add_common(t, name, 28);
    add_number(t, 0, 2); /* comment */
    add_number(t, 0, 2); /* disk */
    add_number(t, 0, 2);
    add_number(t, 0, 4);
    add_number(t, UINT32_MAX, 4);
    text_add(t, "%s", name);
    add_sizes(t, bytes, 28);
    add_number(t, (uint64_t)local, 8);
}

void zip_add_end(text *t, int64_t n, int64_t directory, int64_t at)
{
    text_add(t, "%s", "PK\6\6");
    add_number(t, 44, 8);
    add_number(t, VERSION, 2);
    add_number(t, VERSION, 2);
    add_number(t, 0, 8);
    add_number(t, (uint64_t)n, 8);
    add_number(t, (uint64_t)n, 8);
    add_number(t, (uint64_t)directory, 8);
    add_number(t, (uint64_t)at, 8);
    text_add(t, "%s", "PK\6\7");
    add_number(t, 0, 4);
    add_number(t, (uint64_t)(at + directory), 8);
    add_number(t, 1, 4);
    text_add(t, "%s", "PK\5\6");
    add_number(t, 0, 4);
    add_number(t, UINT16_MAX, 2);
    add_number(t, UINT16_MAX, 2);
    add_number(t, UINT32_MAX, 4);
    add_number(t, UINT32_MAX, 4);
    add_number(t, 0, 2);
}

bool zip_seal(int descriptor, const zip_member *m, uint32_t sum)
{
    const unsigned char words[] = {(unsigned char)sum, (unsigned char)(sum >> 8), (unsigned char)(sum >> 16),
                                   (unsigned char)(sum >> 24)};
    return file_write_at(descriptor, words, 4, m->local + 14) && file_write_at(descriptor, words, 4, m->entry + 16);
}
