/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of NumPy as states of a checkpoint: one file .npy, or all of a folder, each under the name of its file. */
#define _XOPEN_SOURCE 700 /* scandir */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "npy.h"

static const char ending[] = ".npy";

bool path_is_npy(const char *path)
{
    return path_is_folder(path) || name_has_ending(path, ending);
}

static void add_named(trama_checkpoint *c, const char *path, const npy_header *h)
{
    const char *slash = strrchr(path, '/');
    char *name = trama_text_copy(slash ? slash + 1 : path);
    name[strlen(name) - strlen(ending)] = 0;
    checkpoint_add(c, name, h->dtype, h->shape);
    c->tensors.at[c->tensors.n - 1].at = h->bytes;
    free(name);
}

static trama_status read_header_of(const char *path, npy_header *h)
{
    FILE *f = fopen(path, "rb");
    trama_status status = f ? npy_read_header(path, f, h) : checkpoint_failed(path, "cannot be opened", errno);
    if (f)
        fclose(f);
    return status;
}

static trama_status open_array(trama_checkpoint *c, const char *path, int *descriptor, int64_t *bytes)
{
    npy_header h;
    trama_status status = checkpoint_open_file(path, O_RDONLY, descriptor, bytes);
    if (!status)
        status = read_header_of(path, &h);
    if (status)
        return status;
    add_named(c, path, &h);
    return npy_check_length(path, &h, *bytes);
}

static int is_array(const struct dirent *entry)
{
    return *entry->d_name != '.' && name_has_ending(entry->d_name, ending);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

bool folder_has_arrays(const char *folder)
{
    struct dirent **found;
    const int n = scandir(folder, &found, is_array, by_name);
    for (int i = 0; i < n; i++)
        free(found[i]);
    if (n >= 0)
        free(found);
    return n > 0;
}

static trama_status open_folder(trama_checkpoint *c)
{
    struct dirent **found;
    const int n = scandir(c->path, &found, is_array, by_name);
    trama_status status =
        n > 0 ? TRAMA_OK
              : trama_fail(NOWHERE, TRAMA_E_ARGUMENT,
                           "%s: the folder has no files .npy; name a file, or a folder of arrays", c->path);
    for (int i = 0; i < n; i++) {
        text path = {0};
        text_add(&path, "%s/%s", c->path, found[i]->d_name);
        if (!status) {
            stored_shard *s = ARRAY_PUSH(&c->shards);
            *s = (stored_shard){.path = trama_text_copy(path.at), .descriptor = -1};
            status = open_array(c, s->path, &s->descriptor, &s->bytes);
        }
        if (!status)
            c->tensors.at[c->tensors.n - 1].shard = c->shards.n;
        free(path.at);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return status;
}

static trama_status open_arrays(trama_checkpoint *c)
{
    return path_is_folder(c->path) ? open_folder(c) : open_array(c, c->path, &c->descriptor, &c->bytes);
}

const checkpoint_format npy_format = {.open = open_arrays};
