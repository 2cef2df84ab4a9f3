/* SPDX-License-Identifier: Apache-2.0 */
/* Files of safetensors, read: the header of each file, and the index of several. Headers may come from anybody, so
 * every number is checked before its use. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "box_file.h"
#include "safetensors.h"
#include "safetensors_json.h"

/* One file of the checkpoint. */
typedef struct source {
    trama_checkpoint *c;
    int shard; /* as in stored_tensor */
    const char *path;
    int descriptor;
    int64_t bytes;
    int64_t data; /* the first byte of the contents */
} source;

/* ---- A tensor ---- */

static trama_status read_shape(const source *f, const cJSON *item, trama_dtype dtype, trama_shape *shape)
{
    const cJSON *list = json_member(item, "shape"), *extent;
    text why = {0};
    *shape = (trama_shape){.ndim = 0};
    if (!cJSON_IsArray(list))
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string, "its shape is no list" AGAIN);
    cJSON_ArrayForEach(extent, list)
    {
        if (shape->ndim == TRAMA_MAX_NDIM)
            return safetensors_refuse(f->path, TRAMA_E_SHAPE, item->string, "it has more than %d dims; reshape it",
                                      TRAMA_MAX_NDIM);
        if (!json_number(extent, &shape->dim[shape->ndim++]))
            return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string,
                                      "its extents are no whole numbers below 2^53" AGAIN);
    }
    const bool good = shape_check(*shape, dtype, false, &why);
    trama_status status =
        good ? TRAMA_OK : safetensors_refuse(f->path, TRAMA_E_SHAPE, item->string, "%s" AGAIN, why.at);
    free(why.at);
    return status;
}

static trama_status read_dtype(const source *f, const cJSON *item, trama_dtype *dtype)
{
    const cJSON *words = json_member(item, "dtype");
    if (!cJSON_IsString(words))
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string, "it has no dtype" AGAIN);
    *dtype = safetensors_dtype_of(words->valuestring);
    if (*dtype != TRAMA_N_DTYPES)
        return TRAMA_OK;
    char *name = json_shown(words->valuestring);
    trama_status status = safetensors_refuse(f->path, TRAMA_E_DTYPE, item->string,
                                             "Trama has no elements %.60s; store it as BF16 or F32", name);
    free(name);
    return status;
}

/* Offsets from the first byte of the contents. */
static trama_status read_place(const source *f, const cJSON *item, stored_tensor *t)
{
    const cJSON *list = json_member(item, "data_offsets");
    int64_t begin, end;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 || !json_number(list->child, &begin) ||
        !json_number(list->child->next, &end))
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string,
                                  "its data_offsets are no two whole numbers" AGAIN);
    if (begin > end || end > f->bytes - f->data)
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string,
                                  "its bytes %" PRId64 " to %" PRId64 " lie outside the %" PRId64
                                  " bytes of contents" AGAIN,
                                  begin, end, f->bytes - f->data);
    if (end - begin != t->bytes)
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string,
                                  "its dtype and shape need %" PRId64 " bytes, and it has %" PRId64 AGAIN, t->bytes,
                                  end - begin);
    t->at = f->data + begin;
    return TRAMA_OK;
}

static trama_status read_tensor(const source *f, const cJSON *item)
{
    trama_dtype dtype = TRAMA_F32;
    trama_shape shape;
    if (!cJSON_IsObject(item))
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, item->string, "its entry is no JSON object" AGAIN);
    trama_status status = read_dtype(f, item, &dtype);
    if (!status)
        status = read_shape(f, item, dtype, &shape);
    if (status)
        return status;
    checkpoint_add(f->c, item->string, dtype, shape);
    stored_tensor *t = &f->c->tensors.at[f->c->tensors.n - 1];
    t->shard = f->shard;
    return read_place(f, item, t);
}

static trama_status read_texts(const source *f, const cJSON *list)
{
    const cJSON *item;
    if (!cJSON_IsObject(list))
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, NULL, "%s is no JSON object" AGAIN, metadata_name);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return safetensors_refuse(f->path, TRAMA_E_SYSTEM, NULL, "%s has other values than texts" AGAIN,
                                      metadata_name);
        if (f->shard <= 1)
            checkpoint_set(f->c, item->string, item->valuestring);
    }
    return TRAMA_OK;
}

/* ---- A file ---- */

static int by_place(const void *a, const void *b)
{
    const stored_tensor *const *x = a, *const *y = b;
    if ((*x)->at != (*y)->at)
        return (*x)->at < (*y)->at ? -1 : 1;
    return (*x)->bytes < (*y)->bytes ? -1 : (*x)->bytes > (*y)->bytes;
}

/* The contents of the tensors from number `first` on lie one behind the other, without gaps, to the end of the file. */
static trama_status check_places(const source *f, int first)
{
    const int n = f->c->tensors.n - first;
    const stored_tensor **sorted = trama_alloc((size_t)(n + 1) * sizeof *sorted);
    int64_t at = f->data;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < n; i++)
        sorted[i] = &f->c->tensors.at[first + i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_place);
    for (int i = 0; i < n && !status; i++) {
        if (sorted[i]->at != at)
            status = safetensors_refuse(f->path, TRAMA_E_SYSTEM, sorted[i]->name, "%s" AGAIN,
                                        sorted[i]->at < at ? "its bytes overlap those of another tensor"
                                                           : "there is a gap before its bytes");
        at = sorted[i]->at + sorted[i]->bytes;
    }
    free(sorted);
    if (!status && at != f->bytes)
        status = safetensors_refuse(f->path, TRAMA_E_SYSTEM, NULL,
                                    "%" PRId64 " bytes at its end belong to no tensor" AGAIN, f->bytes - at);
    return status;
}

static trama_status read_entries(const source *f, const cJSON *root)
{
    const cJSON *item;
    const int first = f->c->tensors.n;
    trama_status status = TRAMA_OK;
    cJSON_ArrayForEach(item, root)
    {
        status = strcmp(item->string, metadata_name) ? read_tensor(f, item) : read_texts(f, item);
        if (status)
            return status;
    }
    return check_places(f, first);
}

static trama_status read_file(source *f)
{
    unsigned char length[8];
    uint64_t n = 0;
    cJSON *root = NULL;
    if (f->bytes < (int64_t)sizeof length)
        return safetensors_refuse(f->path, TRAMA_E_ARGUMENT, NULL,
                                  "it is shorter than 8 bytes, so it is no file of safetensors");
    if (!file_read_at(f->descriptor, length, sizeof length, 0))
        return checkpoint_failed(f->path, "cannot be read", errno);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > MOST_HEADER)
        return safetensors_refuse(f->path, TRAMA_E_ARGUMENT, NULL,
                                  "its header would have %" PRIu64
                                  " bytes, and at most %d are allowed, so it is no file of "
                                  "safetensors",
                                  n, MOST_HEADER);
    if ((int64_t)n > f->bytes - (int64_t)sizeof length)
        return safetensors_refuse(f->path, TRAMA_E_SYSTEM, NULL, "it ends within its header of %" PRIu64 " bytes" AGAIN,
                                  n);
    f->data = (int64_t)sizeof length + (int64_t)n;
    trama_status status = json_read(f->path, f->descriptor, sizeof length, (int64_t)n, &root);
    if (!status)
        status = read_entries(f, root);
    cJSON_Delete(root);
    return status;
}

/* ---- An index of several files ---- */

/* 1 + the number of the shard of that name, which is opened the first time; 0 with an error. */
static trama_status find_shard(trama_checkpoint *c, const char *folder, const char *name, int how, int *shard)
{
    text path = {0};
    text_add(&path, "%s/%s%s", folder, name, how == O_RDWR ? ".part" : "");
    for (*shard = c->shards.n; *shard; --*shard)
        if (!strcmp(c->shards.at[*shard - 1].path, path.at))
            break;
    trama_status status = TRAMA_OK;
    if (!*shard) {
        stored_shard *s = ARRAY_PUSH(&c->shards);
        *s = (stored_shard){.path = trama_text_copy(path.at), .descriptor = -1};
        *shard = c->shards.n;
        status = checkpoint_open_file(s->path, how, &s->descriptor, &s->bytes);
    }
    free(path.at);
    return status;
}

static bool stays_in_folder(const cJSON *name)
{
    return cJSON_IsString(name) && *name->valuestring && !strchr(name->valuestring, '/') &&
           path_is_safetensors(name->valuestring);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stored_tensor *)a)->name, ((const stored_tensor *)b)->name);
}

static void sort_by_name(trama_checkpoint *c)
{
    if (c->tensors.n)
        qsort(c->tensors.at, (size_t)c->tensors.n, sizeof *c->tensors.at, by_name);
}

/* The shards have the tensors that the index says, and no others. */
static trama_status check_map(trama_checkpoint *c, const char *folder, const cJSON *map, int how)
{
    const cJSON *item;
    int n = 0;
    sort_by_name(c);
    cJSON_ArrayForEach(item, map)
    {
        const stored_tensor key = {.name = item->string};
        const stored_tensor *t =
            c->tensors.n ? bsearch(&key, c->tensors.at, (size_t)c->tensors.n, sizeof key, by_name) : NULL;
        int shard;
        trama_status status = find_shard(c, folder, item->valuestring, how, &shard);
        if (status)
            return status;
        if (!t || t->shard != shard)
            return safetensors_refuse(c->path, TRAMA_E_SYSTEM, item->string, "the file %.200s does not have it" AGAIN,
                                      item->valuestring);
        n++;
    }
    return n == c->tensors.n ? TRAMA_OK
                             : safetensors_refuse(c->path, TRAMA_E_SYSTEM, NULL,
                                                  "it lists %d tensors, and its files have %d" AGAIN, n, c->tensors.n);
}

static trama_status read_shards(trama_checkpoint *c, const char *folder, const cJSON *map, int how)
{
    const cJSON *item;
    trama_status status = TRAMA_OK;
    int shard;
    if (!cJSON_IsObject(map))
        return safetensors_refuse(c->path, TRAMA_E_SYSTEM, NULL, "it has no weight_map" AGAIN);
    cJSON_ArrayForEach(item, map)
    {
        if (!stays_in_folder(item))
            return safetensors_refuse(c->path, TRAMA_E_SYSTEM, item->string,
                                      "its file is no name of a file .safetensors in the same folder" AGAIN);
        status = find_shard(c, folder, item->valuestring, how, &shard);
        if (status)
            return status;
    }
    for (int i = 0; i < c->shards.n && !status; i++) {
        const stored_shard *s = &c->shards.at[i];
        source f = {.c = c, .shard = i + 1, .path = s->path, .descriptor = s->descriptor, .bytes = s->bytes};
        status = read_file(&f);
    }
    return status ? status : check_map(c, folder, map, how);
}

static trama_status read_index(trama_checkpoint *c, int how)
{
    cJSON *root = NULL;
    if (c->bytes > MOST_HEADER || c->bytes < 1)
        return safetensors_refuse(c->path, TRAMA_E_ARGUMENT, NULL,
                                  "it is empty, or longer than %d bytes, so it is no index", MOST_HEADER);
    trama_status status = json_read(c->path, c->descriptor, 0, c->bytes, &root);
    if (!status) {
        char *folder = folder_of(c->path);
        status = read_shards(c, folder, json_member(root, "weight_map"), how);
        free(folder);
    }
    cJSON_Delete(root);
    return status;
}

/* ---- Opening ---- */

static trama_status check_names(trama_checkpoint *c)
{
    sort_by_name(c);
    for (int i = 1; i < c->tensors.n; i++)
        if (!strcmp(c->tensors.at[i - 1].name, c->tensors.at[i].name))
            return safetensors_refuse(c->path, TRAMA_E_SYSTEM, c->tensors.at[i].name,
                                      "there are two of this name" AGAIN);
    return TRAMA_OK;
}

static trama_status open_for(trama_checkpoint *c, int how)
{
    trama_status status = checkpoint_open_file(c->path, how, &c->descriptor, &c->bytes);
    if (status)
        return status;
    source f = {.c = c, .path = c->path, .descriptor = c->descriptor, .bytes = c->bytes};
    status = path_is_index(c->path) ? read_index(c, how) : read_file(&f);
    return status ? status : check_names(c);
}

trama_status safetensors_open(trama_checkpoint *c)
{
    return open_for(c, O_RDONLY);
}

trama_status safetensors_open_unfinished(trama_checkpoint *c)
{
    return open_for(c, O_RDWR);
}
