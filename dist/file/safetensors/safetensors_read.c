/* SPDX-License-Identifier: Apache-2.0 */
/* Files of safetensors, read: the header of each file, and the index of several. Headers may come from anybody, so
 * every number is checked before its use. */
#include <cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "box_file.h"
#include "safetensors.h"

/* One file of the checkpoint. */
typedef struct source {
    trama_checkpoint *c;
    int shard; /* as in stored_tensor */
    const char *path;
    int descriptor;
    int64_t bytes;
    int64_t data; /* the first byte of the contents */
} source;

/* ---- Errors ---- */

/* Names come from the file: control characters do not reach the terminal. */
static char *shown(const char *name)
{
    char *s = trama_text_copy(name);
    for (char *at = s; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    if (strlen(s) > 200)
        strcpy(s + 197, "...");
    return s;
}

__attribute__((format(printf, 4, 5))) static trama_status refuse(const char *path, trama_status status,
                                                                 const char *tensor, const char *format, ...)
{
    text reason = {0};
    char words[400], *name = shown(tensor ? tensor : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    text_add(&reason, "%s%s%s%s", tensor ? "tensor " : "", name, tensor ? ": " : "", words);
    free(name);
    trama_fail(NOWHERE, status, "%s: %s", path, reason.at);
    free(reason.at);
    return status;
}

#define AGAIN "; write the file again, or restore it from a copy"

/* ---- JSON ---- */

/* Zero bytes would end names early. */
static bool has_zero(const char *words, size_t n)
{
    if (memchr(words, 0, n))
        return true;
    for (size_t i = 0; i + 5 < n; i++)
        if (words[i] == '\\') {
            if (!strncmp(words + i + 1, "u0000", 5))
                return true;
            i++;
        }
    return false;
}

/* A parsed element takes 40 times the bytes of the shortest one, and no writer makes so short ones only. */
static bool is_crowded(const char *words, size_t n)
{
    size_t commas = 0;
    for (const char *at = words; (at = memchr(at, ',', n - (size_t)(at - words))); at++)
        commas++;
    return commas > 64 + n / 4;
}

static bool is_blank(const char *words)
{
    return words[strspn(words, " \t\r\n")] == 0;
}

/* words [n] and a zero byte behind them */
static trama_status parse(const char *path, const char *words, size_t n, cJSON **root)
{
    const char *end = NULL;
    if (*words != '{')
        return refuse(path, TRAMA_E_SYSTEM, NULL, "its header is no JSON object" AGAIN);
    if (has_zero(words, n) || !name_is_utf8(words))
        return refuse(path, TRAMA_E_SYSTEM, NULL, "its header is not UTF-8, or has a zero byte" AGAIN);
    if (is_crowded(words, n))
        return refuse(path, TRAMA_E_SYSTEM, NULL, "its header has more elements than tensors need" AGAIN);
    *root = cJSON_ParseWithLengthOpts(words, n + 1, &end, false);
    if (!*root || !is_blank(end))
        return refuse(path, TRAMA_E_SYSTEM, NULL, "its header is no JSON after byte %d" AGAIN,
                      end ? (int)(end - words) : 0);
    return TRAMA_OK;
}

static trama_status read_json(const char *path, int descriptor, int64_t at, int64_t bytes, cJSON **root)
{
    char *words = trama_try_alloc((size_t)bytes + 1);
    if (!words)
        return refuse(path, TRAMA_E_MEMORY, NULL, "no memory for its header of %" PRId64 " bytes", bytes);
    trama_status status =
        file_read_at(descriptor, words, bytes, at) ? TRAMA_OK : checkpoint_failed(path, "cannot be read", errno);
    if (!status)
        status = parse(path, words, (size_t)bytes, root);
    free(words);
    return status;
}

/* A whole number from 0 to 2^53, which a double has exactly. */
static bool take_number(const cJSON *item, int64_t *x)
{
    const bool good = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= 0x1p53 &&
                      item->valuedouble == floor(item->valuedouble);
    *x = good ? (int64_t)item->valuedouble : 0;
    return good;
}

/* The one member of that name; NULL where there is none, or more. */
static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *item, *found = NULL;
    cJSON_ArrayForEach(item, object) if (!strcmp(item->string, name))
    {
        if (found)
            return NULL;
        found = item;
    }
    return found;
}

/* ---- A tensor ---- */

static trama_status read_shape(const source *f, const cJSON *item, trama_dtype dtype, trama_shape *shape)
{
    const cJSON *list = member(item, "shape"), *extent;
    text why = {0};
    *shape = (trama_shape){.ndim = 0};
    if (!cJSON_IsArray(list))
        return refuse(f->path, TRAMA_E_SYSTEM, item->string, "its shape is no list" AGAIN);
    cJSON_ArrayForEach(extent, list)
    {
        if (shape->ndim == TRAMA_MAX_NDIM)
            return refuse(f->path, TRAMA_E_SHAPE, item->string, "it has more than %d dims; reshape it", TRAMA_MAX_NDIM);
        if (!take_number(extent, &shape->dim[shape->ndim++]))
            return refuse(f->path, TRAMA_E_SYSTEM, item->string, "its extents are no whole numbers below 2^53" AGAIN);
    }
    const bool good = shape_check(*shape, dtype, false, &why);
    trama_status status = good ? TRAMA_OK : refuse(f->path, TRAMA_E_SHAPE, item->string, "%s" AGAIN, why.at);
    free(why.at);
    return status;
}

static trama_status read_dtype(const source *f, const cJSON *item, trama_dtype *dtype)
{
    const cJSON *words = member(item, "dtype");
    if (!cJSON_IsString(words))
        return refuse(f->path, TRAMA_E_SYSTEM, item->string, "it has no dtype" AGAIN);
    *dtype = safetensors_dtype_of(words->valuestring);
    if (*dtype != TRAMA_N_DTYPES)
        return TRAMA_OK;
    char *name = shown(words->valuestring);
    trama_status status =
        refuse(f->path, TRAMA_E_DTYPE, item->string, "Trama has no elements %.60s; store it as BF16 or F32", name);
    free(name);
    return status;
}

/* Offsets from the first byte of the contents. */
static trama_status read_place(const source *f, const cJSON *item, stored_tensor *t)
{
    const cJSON *list = member(item, "data_offsets");
    int64_t begin, end;
    if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) != 2 || !take_number(list->child, &begin) ||
        !take_number(list->child->next, &end))
        return refuse(f->path, TRAMA_E_SYSTEM, item->string, "its data_offsets are no two whole numbers" AGAIN);
    if (begin > end || end > f->bytes - f->data)
        return refuse(f->path, TRAMA_E_SYSTEM, item->string,
                      "its bytes %" PRId64 " to %" PRId64 " lie outside the %" PRId64 " bytes of contents" AGAIN, begin,
                      end, f->bytes - f->data);
    if (end - begin != t->bytes)
        return refuse(f->path, TRAMA_E_SYSTEM, item->string,
                      "its dtype and shape need %" PRId64 " bytes, and it has %" PRId64 AGAIN, t->bytes, end - begin);
    t->at = f->data + begin;
    return TRAMA_OK;
}

static trama_status read_tensor(const source *f, const cJSON *item)
{
    trama_dtype dtype = TRAMA_F32;
    trama_shape shape;
    if (!cJSON_IsObject(item))
        return refuse(f->path, TRAMA_E_SYSTEM, item->string, "its entry is no JSON object" AGAIN);
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
        return refuse(f->path, TRAMA_E_SYSTEM, NULL, "%s is no JSON object" AGAIN, metadata_name);
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item))
            return refuse(f->path, TRAMA_E_SYSTEM, NULL, "%s has other values than texts" AGAIN, metadata_name);
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
            status = refuse(f->path, TRAMA_E_SYSTEM, sorted[i]->name, "%s" AGAIN,
                            sorted[i]->at < at ? "its bytes overlap those of another tensor"
                                               : "there is a gap before its bytes");
        at = sorted[i]->at + sorted[i]->bytes;
    }
    free(sorted);
    if (!status && at != f->bytes)
        status = refuse(f->path, TRAMA_E_SYSTEM, NULL, "%" PRId64 " bytes at its end belong to no tensor" AGAIN,
                        f->bytes - at);
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
        return refuse(f->path, TRAMA_E_ARGUMENT, NULL, "it is shorter than 8 bytes, so it is no file of safetensors");
    if (!file_read_at(f->descriptor, length, sizeof length, 0))
        return checkpoint_failed(f->path, "cannot be read", errno);
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > MOST_HEADER)
        return refuse(f->path, TRAMA_E_ARGUMENT, NULL,
                      "its header would have %" PRIu64 " bytes, and at most %d are allowed, so it is no file of "
                      "safetensors",
                      n, MOST_HEADER);
    if ((int64_t)n > f->bytes - (int64_t)sizeof length)
        return refuse(f->path, TRAMA_E_SYSTEM, NULL, "it ends within its header of %" PRIu64 " bytes" AGAIN, n);
    f->data = (int64_t)sizeof length + (int64_t)n;
    trama_status status = read_json(f->path, f->descriptor, sizeof length, (int64_t)n, &root);
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
            return refuse(c->path, TRAMA_E_SYSTEM, item->string, "the file %.200s does not have it" AGAIN,
                          item->valuestring);
        n++;
    }
    return n == c->tensors.n ? TRAMA_OK
                             : refuse(c->path, TRAMA_E_SYSTEM, NULL, "it lists %d tensors, and its files have %d" AGAIN,
                                      n, c->tensors.n);
}

static trama_status read_shards(trama_checkpoint *c, const char *folder, const cJSON *map, int how)
{
    const cJSON *item;
    trama_status status = TRAMA_OK;
    int shard;
    if (!cJSON_IsObject(map))
        return refuse(c->path, TRAMA_E_SYSTEM, NULL, "it has no weight_map" AGAIN);
    cJSON_ArrayForEach(item, map)
    {
        if (!stays_in_folder(item))
            return refuse(c->path, TRAMA_E_SYSTEM, item->string,
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
        return refuse(c->path, TRAMA_E_ARGUMENT, NULL, "it is empty, or longer than %d bytes, so it is no index",
                      MOST_HEADER);
    trama_status status = read_json(c->path, c->descriptor, 0, c->bytes, &root);
    if (!status) {
        char *folder = folder_of(c->path);
        status = read_shards(c, folder, member(root, "weight_map"), how);
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
            return refuse(c->path, TRAMA_E_SYSTEM, c->tensors.at[i].name, "there are two of this name" AGAIN);
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
