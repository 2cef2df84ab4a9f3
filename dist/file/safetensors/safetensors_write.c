/* SPDX-License-Identifier: Apache-2.0 */
/* Files of safetensors, written: headers and places without content, the index of several files, final names. */
#define _XOPEN_SOURCE 700 /* ftruncate, fsync */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "box_file.h"
#include "safetensors.h"

/* ---- JSON ---- */

static void add_json(text *t, const char *words)
{
    text_add(t, "\"");
    for (size_t n; *words; words += n) {
        for (n = 0; (unsigned char)words[n] >= ' ' && words[n] != '"' && words[n] != '\\';)
            n++;
        text_add(t, "%.*s", (int)n, words);
        if (words[n])
            text_add(t, words[n] == '"' || words[n] == '\\' ? "\\%c" : "\\u%04x", (unsigned char)words[n]), n++;
    }
    text_add(t, "\"");
}

static trama_status check_name(const trama_checkpoint *c, const char *name)
{
    if (name_is_utf8(name) && strcmp(name, metadata_name))
        return TRAMA_OK;
    return trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                      "%s: a file of safetensors cannot have the name or text '%s', which is reserved or not UTF-8; "
                      "give another in options.names",
                      c->path, name);
}

static trama_status check_all(const trama_checkpoint *c)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < c->tensors.n && !status; i++) {
        const stored_tensor *t = &c->tensors.at[i];
        status = check_name(c, t->name);
        if (!status && !safetensors_name_of(t->dtype))
            status = trama_fail(NOWHERE, TRAMA_E_DTYPE,
                                "%s: %s: a file of safetensors cannot have elements %s; leave it out by "
                                "options.states, or save a checkpoint in a folder",
                                c->path, t->name, trama_dtype_name(t->dtype));
    }
    for (int i = 0; i < c->texts.n && !status; i++) {
        status = check_name(c, c->texts.at[i].key);
        if (!status)
            status = check_name(c, c->texts.at[i].text);
    }
    return status;
}

/* ---- One file ---- */

/* Large elements come first, so that all are aligned. */
static int by_element(const void *a, const void *b)
{
    const stored_tensor *const *x = a, *const *y = b;
    const size_t n = trama_dtype_size((*x)->dtype), m = trama_dtype_size((*y)->dtype);
    return n != m ? (n > m ? -1 : 1) : strcmp((*x)->name, (*y)->name);
}

static void add_tensor(text *t, const stored_tensor *of, int64_t *at)
{
    add_json(t, of->name);
    text_add(t, ":{\"dtype\":\"%s\",\"shape\":[", safetensors_name_of(of->dtype));
    for (int d = 0; d < of->shape.ndim; d++)
        text_add(t, "%s%" PRId64, d ? "," : "", of->shape.dim[d]);
    text_add(t, "],\"data_offsets\":[%" PRId64 ",%" PRId64 "]}", *at, *at + of->bytes);
    *at += of->bytes;
}

/* The header of a shard with its length before it; *bytes: of its contents. */
static text header_of(const trama_checkpoint *c, int shard, int64_t *bytes)
{
    const stored_tensor **sorted = trama_alloc((size_t)(c->tensors.n + 1) * sizeof *sorted);
    text t = {0};
    int n = 0;
    for (int i = 0; i < c->tensors.n; i++)
        if (c->tensors.at[i].shard == shard)
            sorted[n++] = &c->tensors.at[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_element);
    text_add(&t, "########{");
    for (int i = 0; i < c->texts.n; i++) {
        if (!i)
            text_add(&t, "\"%s\":", metadata_name);
        text_add(&t, i ? "," : "{");
        add_json(&t, c->texts.at[i].key);
        text_add(&t, ":");
        add_json(&t, c->texts.at[i].text);
    }
    text_add(&t, c->texts.n ? "}" : "");
    *bytes = 0;
    for (int i = 0; i < n; i++) {
        text_add(&t, i || c->texts.n ? "," : "");
        add_tensor(&t, sorted[i], bytes);
    }
    text_add(&t, "}");
    while (t.n % HEADER_ALIGNMENT)
        text_add(&t, " ");
    for (int i = 0; i < 8; i++)
        t.at[i] = (char)((uint64_t)(t.n - 8) >> 8 * i);
    free(sorted);
    return t;
}

static trama_status write_words(const char *path, const text *words, int64_t more)
{
    const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const bool good = to >= 0 && file_write_at(to, words->at, (int64_t)words->n, 0) &&
                      !ftruncate(to, (off_t)((int64_t)words->n + more));
    const int error = errno;
    if (to >= 0)
        close(to);
    return good ? TRAMA_OK : checkpoint_failed(path, "cannot be created", error);
}

static trama_status write_file(const trama_checkpoint *c, int shard, const char *path)
{
    int64_t bytes;
    text header = header_of(c, shard, &bytes);
    trama_status status =
        header.n - 8 > MOST_HEADER
            ? trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: its header would be longer than %d bytes; save fewer states",
                         path, MOST_HEADER)
            : write_words(path, &header, bytes);
    free(header.at);
    return status;
}

/* ---- Several files ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static trama_status write_index(const trama_checkpoint *c)
{
    text t = {0};
    int64_t bytes = 0;
    for (int i = 0; i < c->tensors.n; i++)
        bytes += c->tensors.at[i].bytes;
    text_add(&t, "{\"metadata\":{\"total_size\":%" PRId64 "},\"weight_map\":{", bytes);
    for (int i = 0; i < c->tensors.n; i++) {
        char *file = finished_path(c->shards.at[c->tensors.at[i].shard - 1].path);
        text_add(&t, i ? ",\n" : "\n");
        add_json(&t, c->tensors.at[i].name);
        text_add(&t, ":");
        add_json(&t, last_part(file));
        free(file);
    }
    text_add(&t, "}}\n");
    trama_status status = write_words(c->path, &t, 0);
    free(t.at);
    return status;
}

static trama_status write_frame(const trama_checkpoint *c)
{
    trama_status status = check_all(c);
    for (int i = 0; i < c->shards.n && !status; i++)
        status = write_file(c, i + 1, c->shards.at[i].path);
    if (!status)
        status = c->shards.n ? write_index(c) : write_file(c, 0, c->path);
    return status;
}

/* The number of shards, and of each tensor its shard, in the order of the list. */
static int divide(trama_checkpoint *c, int64_t most)
{
    int n = 1;
    int64_t filled = 0;
    for (int i = 0; i < c->tensors.n; i++) {
        stored_tensor *t = &c->tensors.at[i];
        if (filled && t->bytes > most - filled) {
            n++;
            filled = 0;
        }
        t->shard = n;
        filled += t->bytes;
    }
    return n;
}

void safetensors_divide(trama_checkpoint *c, int64_t most, char **path)
{
    static const char ending[] = ".safetensors";
    const int n = most ? divide(c, most) : 1;
    if (n == 1) {
        for (int i = 0; i < c->tensors.n; i++)
            c->tensors.at[i].shard = 0;
        return;
    }
    for (int i = 1; i <= n; i++) {
        text t = {0};
        text_add(&t, "%.*s-%05d-of-%05d%s", (int)(strlen(*path) - strlen(ending)), *path, i, n, ending);
        *ARRAY_PUSH(&c->shards) = (stored_shard){.path = unfinished_path(t.at), .descriptor = -1};
        free(t.at);
    }
    text t = {0};
    text_add(&t, "%s%s", *path, index_ending);
    free(*path);
    *path = text_take(&t);
    free(c->path);
    c->path = unfinished_path(*path);
}

trama_status checkpoint_name_shards(const trama_checkpoint *c)
{
    trama_status status = TRAMA_OK;
    for (int i = 0; i < c->shards.n && !status; i++) {
        char *path = finished_path(c->shards.at[i].path);
        if (rename(c->shards.at[i].path, path))
            status = checkpoint_failed(path, "cannot take its name", errno);
        free(path);
    }
    return status;
}

static trama_status seal(const trama_checkpoint *c)
{
    return checkpoint_synchronise(c) ? TRAMA_OK : checkpoint_failed(c->path, "cannot be synchronised", errno);
}

const checkpoint_format safetensors_format = {false, write_frame, safetensors_open, safetensors_open_unfinished, seal};
