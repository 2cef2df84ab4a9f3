/* SPDX-License-Identifier: Apache-2.0 */
/* trama_load: finds the file, the newest of a folder, and passes over damaged ones. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "saving.h"
#include "sized.h"

static const char call[] = "trama_load";

/* ---- The choice of a file ---- */

enum { MOST_PATH = 4096 };

static void log_damaged(void *data, const char *message)
{
    context_log(((const trama_executable *)data)->context, TRAMA_LOG_WARNING, "trama_load passes over a checkpoint: %s",
                message);
}

/* Rank 0's file number i of the folder, or the path itself; "" where there is none. All ranks take rank 0's. */
static trama_status choose(trama_executable *e, const char *path, const found_checkpoints *found, int i, char *chosen)
{
    const int ranks = context_ranks(e->context);
    char *all = trama_alloc((size_t)ranks * MOST_PATH), mine[MOST_PATH] = "";
    if (context_rank(e->context) == 0)
        snprintf(mine, sizeof mine, "%s", path ? path : i < found->n ? found->at[i].path : "");
    trama_status status = context_gather(e->context, call, mine, MOST_PATH, all);
    memcpy(chosen, all, MOST_PATH);
    free(all);
    return status;
}

static trama_status load_newest(trama_executable *e, const char *folder, const trama_load_options *o,
                                trama_checkpoint **loaded)
{
    found_checkpoints found = {0};
    char path[MOST_PATH] = "";
    bool damaged = true;
    trama_status status = TRAMA_OK;
    if (context_rank(e->context) == 0)
        status = folder_list(folder, log_damaged, e, &found);
    if (!status && !found.n && folder_has_arrays(folder))
        *ARRAY_PUSH(&found) = (found_checkpoint){0, trama_text_copy(folder)};
    status = context_agree(e->context, call, status);
    for (int i = 0; !status && damaged; i++) {
        status = choose(e, NULL, &found, i, path);
        if (status || !*path)
            break;
        status = state_load_file(e, path, o, loaded, &damaged);
        if (status && damaged && context_rank(e->context) == 0)
            log_damaged(e, trama_error());
        if (status && damaged)
            status = TRAMA_OK;
        else
            break;
    }
    folder_list_free(&found);
    return status;
}

/* 0: there is nothing; 1: a file; 2: a folder: as rank 0 sees it. */
static trama_status look_at(trama_executable *e, const char *path, char *kind)
{
    struct stat s;
    const char mine = path_is_folder(path) ? 2 : !stat(path, &s) || errno != ENOENT;
    char *all = trama_alloc((size_t)context_ranks(e->context));
    trama_status status = context_gather(e->context, call, &mine, 1, all);
    *kind = all[0];
    free(all);
    return status;
}

static bool is_file_name(const char *path)
{
    static const char *const endings[] = {".h5", ".safetensors", ".safetensors.index.json", ".npy", ".npz"};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (path_has_ending(path, endings[i]))
            return true;
    return false;
}

trama_status trama_load_at(trama_where where, trama_executable *e, const char *path, const trama_load_options *given,
                           trama_checkpoint **checkpoint)
{
    trama_load_options o = {0};
    trama_checkpoint *loaded = NULL;
    char kind = 0, chosen[MOST_PATH];
    bool damaged;
    if (!e || !path || !*path || strlen(path) >= MOST_PATH - 64)
        return trama_fail(where, TRAMA_E_ARGUMENT, "%s: the %s", call,
                          !e ? "executable is NULL" : "path is NULL, empty or longer than 4,000 bytes");
    trama_status status = given ? sized_read(where, call, SIZED(trama_load_options, names), &o, given) : TRAMA_OK;
    if (!status)
        status = executable_begin_call(e, where, call, call);
    if (!status)
        status = trama_save_wait_at(where, e);
    if (!status)
        status = trama_wait(e);
    if (!status)
        status = look_at(e, path, &kind);
    if (!status && kind == 2)
        status = load_newest(e, path, &o, &loaded);
    else if (!status && kind == 1 && !(status = choose(e, path, NULL, 0, chosen)))
        status = state_load_file(e, chosen, &o, &loaded, &damaged);
    else if (!status && !kind && is_file_name(path))
        status = trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: there is no such file; give a checkpoint or a folder", path);
    status = saving_error(where, call, status);
    if (checkpoint && !status)
        *checkpoint = loaded;
    else
        trama_checkpoint_destroy(&loaded);
    return status;
}
