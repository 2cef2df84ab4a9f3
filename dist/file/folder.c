/* SPDX-License-Identifier: Apache-2.0 */
/* A folder of checkpoints: their names, the newest by content, the final name of a new one, the removal of old ones. */
#define _XOPEN_SOURCE 700 /* fsync, dirfd */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"

static const char unfinished_end[] = ".h5.part", end[] = ".h5";

static bool ends_in(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && !strcmp(name + n - m, suffix);
}

bool path_is_folder(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

char *folder_path(const char *folder, int64_t step, bool unfinished)
{
    text t = {0};
    text_add(&t, "%s/step-%012" PRId64 "%s", folder, step, unfinished ? unfinished_end : end);
    return text_take(&t);
}

/* ---- Listing ---- */

static int newest_first(const void *a, const void *b)
{
    const found_checkpoint *x = a, *y = b;
    return x->step > y->step ? -1 : x->step < y->step ? 1 : strcmp(x->path, y->path);
}

static void add_found(const char *path, folder_tell *tell, void *data, found_checkpoints *found)
{
    trama_checkpoint *c = NULL;
    if (!trama_checkpoint_open(path, &c))
        *ARRAY_PUSH(found) = (found_checkpoint){trama_checkpoint_step(c), trama_text_copy(path)};
    else if (tell)
        tell(data, trama_error());
    trama_checkpoint_destroy(&c);
}

trama_status folder_list(const char *folder, folder_tell *tell, void *data, found_checkpoints *found)
{
    DIR *d = opendir(folder);
    if (!d)
        return checkpoint_failed(folder, "the folder cannot be read", errno);
    for (struct dirent *entry; (entry = readdir(d));)
        if (ends_in(entry->d_name, end)) {
            text path = {0};
            text_add(&path, "%s/%s", folder, entry->d_name);
            add_found(path.at, tell, data, found);
            free(path.at);
        }
    closedir(d);
    if (found->n)
        qsort(found->at, (size_t)found->n, sizeof *found->at, newest_first);
    return TRAMA_OK;
}

void folder_list_free(found_checkpoints *found)
{
    for (int i = 0; i < found->n; i++)
        free(found->at[i].path);
    ARRAY_FREE(found);
}

/* ---- Writing ---- */

char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    text t = {0};
    text_add(&t, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    if (slash == path)
        text_add(&t, "/");
    return text_take(&t);
}

trama_status folder_make(const char *folder)
{
    return mkdir(folder, 0777) && errno != EEXIST ? checkpoint_failed(folder, "the folder cannot be made", errno)
                                                  : TRAMA_OK;
}

trama_status folder_begin(const char *folder)
{
    trama_status status = folder_make(folder);
    if (status)
        return status;
    DIR *d = opendir(folder);
    if (!d)
        return checkpoint_failed(folder, "the folder cannot be read", errno);
    for (struct dirent *entry; (entry = readdir(d));)
        if (!strncmp(entry->d_name, "step-", 5) && ends_in(entry->d_name, unfinished_end))
            unlinkat(dirfd(d), entry->d_name, 0);
    closedir(d);
    return TRAMA_OK;
}

/* Makes the names in the folder last. File systems that cannot do so answer EINVAL. */
static bool fsync_folder(const char *folder)
{
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = descriptor >= 0 && (!fsync(descriptor) || errno == EINVAL);
    int error = errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = error;
    return good;
}

static void remove_old(const char *folder, const char *newest, int keep)
{
    found_checkpoints found = {0};
    int kept = 1;
    if (!folder_list(folder, NULL, NULL, &found))
        for (int i = 0; i < found.n; i++)
            if (strcmp(found.at[i].path, newest) && ++kept > keep)
                unlink(found.at[i].path);
    folder_list_free(&found);
}

trama_status folder_finish(const char *folder, const char *unfinished, const char *path, int keep)
{
    if (rename(unfinished, path))
        return checkpoint_failed(path, "cannot take its name", errno);
    if (!fsync_folder(folder))
        return checkpoint_failed(folder, "the folder cannot be synchronised", errno);
    if (keep)
        remove_old(folder, path, keep);
    return TRAMA_OK;
}
