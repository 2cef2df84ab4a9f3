/* SPDX-License-Identifier: Apache-2.0 */
/* Archives of NumPy: members NAME.npy, stored or deflated. The content of a stored one is read where it lies; a
 * deflated one is inflated into a file without a name. Written members are stored. */
#define _XOPEN_SOURCE 700 /* fmemopen, ftruncate, fsync */
#include "npz.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "box_file.h"
#include "checkpoint.h"
#include "zip.h"

static const char ending[] = ".npy";
enum { MOST_HEADER = (1 << 16) + 12, MOST_NAME = 900 };

/* An array of the archive. */
typedef struct array {
    npy_header header;
    int descriptor; /* a file of its own; -1: the archive */
    int64_t at;     /* the first byte of its content there */
} array;

static bool is_array(const zip_member *m)
{
    const size_t n = strlen(m->name), k = strlen(ending);
    return n >= k && !strcmp(m->name + n - k, ending);
}

/* ---- The place of an array ---- */

static trama_status open_unnamed(const char *path, int *descriptor)
{
    FILE *f = tmpfile();
    *descriptor = f ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 0) : -1;
    const int error = errno;
    if (f)
        fclose(f);
    return *descriptor < 0 ? checkpoint_failed(path, "no temporary file to inflate it", error) : TRAMA_OK;
}

/* The header is at byte `at` of the file; the member has so many bytes. */
static trama_status read_header(const char *path, int descriptor, int64_t at, int64_t bytes, npy_header *h)
{
    const int64_t n = min_i64(bytes, MOST_HEADER);
    char *words = trama_alloc((size_t)n + 1);
    FILE *f = NULL;
    trama_status status =
        file_read_at(descriptor, words, n, at) ? TRAMA_OK : checkpoint_failed(path, "cannot be read", errno);
    if (!status && !(f = fmemopen(words, (size_t)n + 1, "rb")))
        status = checkpoint_failed(path, "no memory for its header", errno);
    if (!status)
        status = npy_read_header(path, f, h);
    if (f)
        fclose(f);
    free(words);
    return status ? status : npy_check_length(path, h, bytes);
}

/* path: of the archive and the member, for messages. The caller closes a->descriptor. */
static trama_status locate(const char *path, int archive, const zip_member *m, array *a)
{
    *a = (array){.descriptor = -1};
    if (!m->deflated) {
        trama_status status = read_header(path, archive, m->at, m->bytes, &a->header);
        a->at = m->at + a->header.bytes;
        return status;
    }
    trama_status status = open_unnamed(path, &a->descriptor);
    if (!status) /* the header first: its shape must need the bytes that the archive promises */
        status = zip_unpack(path, archive, m, MOST_HEADER, a->descriptor);
    if (!status)
        status = read_header(path, a->descriptor, 0, m->bytes, &a->header);
    if (!status && m->bytes > MOST_HEADER)
        status = zip_unpack(path, archive, m, m->bytes, a->descriptor);
    a->at = a->header.bytes;
    return status;
}

static char *name_of(const zip_member *m)
{
    text t = {0};
    text_add(&t, "%.*s", (int)(strlen(m->name) - strlen(ending)), m->name);
    return text_take(&t);
}

static char *path_of(const char *archive, const zip_member *m)
{
    char *name = name_of(m);
    text t = {0};
    text_add(&t, "%s:%s", archive, name);
    free(name);
    return text_take(&t);
}

/* ---- As a checkpoint ---- */

static trama_status add_array(trama_checkpoint *c, const zip_member *m)
{
    array a;
    char *path = path_of(c->path, m), *name = name_of(m);
    trama_status status = locate(path, c->descriptor, m, &a);
    if (a.descriptor >= 0)
        *ARRAY_PUSH(&c->shards) = (stored_shard){trama_text_copy(path), a.descriptor, m->bytes};
    if (!status) {
        checkpoint_add(c, name, a.header.dtype, a.header.shape);
        stored_tensor *t = &c->tensors.at[c->tensors.n - 1];
        t->at = a.at;
        t->shard = a.descriptor >= 0 ? c->shards.n : 0;
    }
    free(path);
    free(name);
    return status;
}

static trama_status open_for(trama_checkpoint *c, int how)
{
    zip_members members = {0};
    trama_status status = checkpoint_open_file(c->path, how, &c->descriptor, &c->bytes);
    if (!status)
        status = zip_list(c->path, c->descriptor, c->bytes, &members);
    for (int i = 0; i < members.n && !status; i++)
        if (is_array(&members.at[i]))
            status = add_array(c, &members.at[i]);
    zip_free(&members);
    return status;
}

static trama_status open_archive(trama_checkpoint *c)
{
    return open_for(c, O_RDONLY);
}

static trama_status open_unfinished(trama_checkpoint *c)
{
    return open_for(c, O_RDWR);
}

/* ---- Writing ---- */

static trama_status check_names(const trama_checkpoint *c)
{
    for (int i = 0; i < c->tensors.n; i++) {
        const char *name = c->tensors.at[i].name;
        if (!name_is_utf8(name) || strlen(name) > MOST_NAME)
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                              "%s: the name %.40s... is not UTF-8, or has more than %d bytes; give another in "
                              "options.names",
                              c->path, name, MOST_NAME);
    }
    return TRAMA_OK;
}

/* Writes the records before a member, which begins at byte *at, and moves to the end of its content. */
static bool write_member(int to, const stored_tensor *t, int64_t *at, text *directory)
{
    text records = {0}, header = {0}, name = {0};
    npy_add_header(&header, t->dtype, t->shape);
    text_add(&name, "%s%s", t->name, ending);
    const int64_t bytes = (int64_t)header.n + t->bytes;
    zip_add_entry(directory, name.at, bytes, *at);
    zip_add_local(&records, name.at, bytes);
    const bool good = file_write_at(to, records.at, (int64_t)records.n, *at) &&
                      file_write_at(to, header.at, (int64_t)header.n, *at + (int64_t)records.n);
    *at += (int64_t)records.n + bytes;
    free(records.at);
    free(header.at);
    free(name.at);
    return good;
}

static bool write_archive(const trama_checkpoint *c, int to)
{
    text directory = {0};
    int64_t at = 0;
    bool good = true;
    for (int i = 0; i < c->tensors.n && good; i++)
        good = write_member(to, &c->tensors.at[i], &at, &directory);
    zip_add_end(&directory, c->tensors.n, (int64_t)directory.n, at);
    good = good && file_write_at(to, directory.at, (int64_t)directory.n, at);
    free(directory.at);
    return good;
}

static trama_status write_frame(const trama_checkpoint *c)
{
    trama_status status = check_names(c);
    if (status)
        return status;
    const int to = open(c->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool good = to >= 0 && write_archive(c, to);
    const int error = errno;
    if (to >= 0)
        close(to);
    return good ? TRAMA_OK : checkpoint_failed(c->path, "cannot be created", error);
}

/* Sums the contents. */
static trama_status seal(const trama_checkpoint *c)
{
    zip_members members = {0};
    trama_status status = zip_list(c->path, c->descriptor, c->bytes, &members);
    bool good = true;
    for (int i = 0; i < members.n && !status && good; i++) {
        uint32_t sum;
        good = zip_sum(c->descriptor, members.at[i].at, members.at[i].bytes, &sum) &&
               zip_seal(c->descriptor, &members.at[i], sum);
    }
    good = good && !fsync(c->descriptor);
    zip_free(&members);
    return status || good ? status : checkpoint_failed(c->path, "cannot be written", errno);
}

const checkpoint_format npz_format = {false, write_frame, open_archive, open_unfinished, seal};

/* ---- One array ---- */

/* The member with the name, or the only one where name is "". */
static trama_status choose(const char *archive, const zip_members *members, const char *name, const zip_member **chosen)
{
    int n = 0;
    text names = {0};
    *chosen = NULL;
    for (int i = 0; i < members->n; i++) {
        const zip_member *m = &members->at[i];
        if (!is_array(m))
            continue;
        char *own = name_of(m);
        if (!*name || !strcmp(own, name))
            *chosen = m;
        if (n++ < 10)
            text_add(&names, "%s%s", n > 1 ? ", " : "", own);
        free(own);
    }
    trama_status status = *chosen && (*name || n == 1)
                              ? TRAMA_OK
                              : trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: it has %d arrays: %s; name one as %s:NAME",
                                           archive, n, names.at ? names.at : "none", archive);
    free(names.at);
    return status;
}

static trama_status read_array(const char *path, int archive, const zip_member *m, npy_header *h, char **content)
{
    array a;
    uint32_t sum = m->sum;
    trama_status status = locate(path, archive, m, &a);
    const int from = a.descriptor >= 0 ? a.descriptor : archive;
    const int64_t bytes = status ? 0 : m->bytes - a.header.bytes;
    if (!status && !(*content = trama_try_alloc((size_t)bytes + 1)))
        status = trama_fail(NOWHERE, TRAMA_E_MEMORY, "%s: no memory for %" PRId64 " bytes", path, bytes);
    if (!status &&
        (!file_read_at(from, *content, bytes, a.at) || (!m->deflated && !zip_sum(archive, m->at, m->bytes, &sum))))
        status = checkpoint_failed(path, "cannot be read", errno);
    if (!status && sum != m->sum)
        status = checkpoint_damaged(path, NULL, "its check sum is wrong");
    if (status) {
        free(*content);
        *content = NULL;
    }
    *h = a.header;
    if (a.descriptor >= 0)
        close(a.descriptor);
    return status;
}

trama_status npz_read(const char *path, npy_header *h, char **content)
{
    const char *name = npz_member(path);
    char *archive = trama_text_copy(path);
    int descriptor;
    int64_t bytes;
    zip_members members = {0};
    const zip_member *m;
    if (*name)
        archive[name - path - 1] = 0;
    trama_status status = checkpoint_open_file(archive, O_RDONLY, &descriptor, &bytes);
    if (!status)
        status = zip_list(archive, descriptor, bytes, &members);
    if (!status)
        status = choose(archive, &members, name, &m);
    if (!status)
        status = read_array(path, descriptor, m, h, content);
    zip_free(&members);
    if (descriptor >= 0)
        close(descriptor);
    free(archive);
    return status;
}
