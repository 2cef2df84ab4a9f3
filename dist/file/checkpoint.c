/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints as data, and the questions of their users. It knows neither HDF5 nor the form of a seal. */
#define _XOPEN_SOURCE 700
#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "box_file.h"
#include "content_sum.h"

enum { SLAB = 4 << 20 };

/* ---- Life ---- */

static const checkpoint_format *format_of(const char *path)
{
    return path_is_safetensors(path)       ? &safetensors_format
           : path_has_ending(path, ".npz") ? &npz_format
           : path_is_npy(path)             ? &npy_format
                                           : &hdf5_format;
}

trama_checkpoint *checkpoint_new(const char *path)
{
    trama_checkpoint *c = trama_alloc(sizeof *c);
    c->path = trama_text_copy(path);
    c->format = format_of(path);
    c->descriptor = -1;
    return c;
}

void checkpoint_add(trama_checkpoint *c, const char *name, trama_dtype dtype, trama_shape shape)
{
    int64_t bytes = trama_shape_count(shape) * (int64_t)trama_dtype_size(dtype);
    *ARRAY_PUSH(&c->tensors) =
        (stored_tensor){.name = trama_text_copy(name), .dtype = dtype, .shape = shape, .at = -1, .bytes = bytes};
}

bool checkpoint_add_state(trama_checkpoint *c, const char *names, trama_dtype stored, const char *name,
                          trama_dtype dtype, trama_shape shape)
{
    char *other = name_in_file(names, name);
    const bool free_name = trama_checkpoint_find(c, other) < 0;
    if (free_name)
        checkpoint_add(c, other, stored != TRAMA_N_DTYPES && trama_dtype_is_float(dtype) ? stored : dtype, shape);
    free(other);
    return free_name;
}

void checkpoint_set(trama_checkpoint *c, const char *key, const char *words)
{
    *ARRAY_PUSH(&c->texts) = (stored_text){trama_text_copy(key), trama_text_copy(words)};
}

trama_status trama_checkpoint_open(const char *path, trama_checkpoint **checkpoint)
{
    if (!path || !checkpoint)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_checkpoint_open: the %s is NULL",
                          path ? "checkpoint's address" : "path");
    trama_checkpoint *c = checkpoint_new(path);
    trama_status status = c->format->open(c);
    if (status)
        trama_checkpoint_destroy(&c);
    else
        *checkpoint = c;
    return status;
}

void trama_checkpoint_destroy(trama_checkpoint **checkpoint)
{
    trama_checkpoint *c = checkpoint ? *checkpoint : NULL;
    if (!c)
        return;
    if (c->descriptor >= 0)
        close(c->descriptor);
    for (int i = 0; i < c->shards.n; i++) {
        if (c->shards.at[i].descriptor >= 0)
            close(c->shards.at[i].descriptor);
        free(c->shards.at[i].path);
    }
    for (int i = 0; i < c->tensors.n; i++)
        free(c->tensors.at[i].name);
    for (int i = 0; i < c->texts.n; i++) {
        free(c->texts.at[i].key);
        free(c->texts.at[i].text);
    }
    ARRAY_FREE(&c->shards);
    ARRAY_FREE(&c->tensors);
    ARRAY_FREE(&c->texts);
    free(c->missing.at);
    free(c->left_over.at);
    free(c->path);
    free(c);
    *checkpoint = NULL;
}

trama_status checkpoint_damaged(const char *path, const char *name, const char *reason)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM,
                      "%s: %s%s%s%s; load an older checkpoint, or restore this file from a copy", path,
                      name ? "dataset " : "", name ? name : "", name ? ": " : "", reason);
}

trama_status checkpoint_failed(const char *path, const char *doing, int error)
{
    return trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: %s: %s; check that the folder is there, may be used and has room",
                      path, doing, strerror(error));
}

/* ---- Files ---- */

trama_status checkpoint_open_file(const char *path, int how, int *descriptor, int64_t *bytes)
{
    struct stat s;
    *descriptor = open(path, how | O_NONBLOCK | O_CLOEXEC);
    if (*descriptor < 0 || fstat(*descriptor, &s))
        return checkpoint_failed(path, "cannot be opened", errno);
    if (!S_ISREG(s.st_mode))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: it is no regular file", path);
    *bytes = s.st_size;
    return TRAMA_OK;
}

int checkpoint_descriptor(const trama_checkpoint *c, const stored_tensor *t)
{
    return t->shard ? c->shards.at[t->shard - 1].descriptor : c->descriptor;
}

bool checkpoint_synchronise(const trama_checkpoint *c)
{
    for (int i = 0; i < c->shards.n; i++)
        if (fsync(c->shards.at[i].descriptor))
            return false;
    return !fsync(c->descriptor);
}

void checkpoint_remove(const trama_checkpoint *c)
{
    for (int i = 0; i < c->shards.n; i++)
        unlink(c->shards.at[i].path);
    unlink(c->path);
}

/* ---- Questions ---- */

const char *trama_checkpoint_path(const trama_checkpoint *c)
{
    return c ? c->path : "";
}

int64_t trama_checkpoint_step(const trama_checkpoint *c)
{
    const char *step = trama_checkpoint_get(c, "trama.step");
    return step ? strtoll(step, NULL, 10) : -1;
}

const char *trama_checkpoint_get(const trama_checkpoint *c, const char *key)
{
    for (int i = 0; c && key && i < c->texts.n; i++)
        if (!strcmp(c->texts.at[i].key, key))
            return c->texts.at[i].text;
    return NULL;
}

int trama_checkpoint_key_count(const trama_checkpoint *c)
{
    return c ? c->texts.n : 0;
}

const char *trama_checkpoint_key(const trama_checkpoint *c, int i)
{
    return c && i >= 0 && i < c->texts.n ? c->texts.at[i].key : NULL;
}

int trama_checkpoint_count(const trama_checkpoint *c)
{
    return c ? c->tensors.n : 0;
}

static const stored_tensor *tensor_of(const trama_checkpoint *c, int i)
{
    return c && i >= 0 && i < c->tensors.n ? &c->tensors.at[i] : NULL;
}

const char *trama_checkpoint_name(const trama_checkpoint *c, int i)
{
    const stored_tensor *t = tensor_of(c, i);
    return t ? t->name : NULL;
}

trama_dtype trama_checkpoint_dtype(const trama_checkpoint *c, int i)
{
    const stored_tensor *t = tensor_of(c, i);
    return t ? t->dtype : (trama_dtype)0;
}

trama_shape trama_checkpoint_shape(const trama_checkpoint *c, int i)
{
    const stored_tensor *t = tensor_of(c, i);
    return t ? t->shape : trama_shape_of(0, NULL);
}

int trama_checkpoint_find(const trama_checkpoint *c, const char *name)
{
    for (int i = 0; c && name && i < c->tensors.n; i++)
        if (!strcmp(c->tensors.at[i].name, name))
            return i;
    return -1;
}

const char *trama_checkpoint_missing(const trama_checkpoint *c)
{
    return c && c->missing.at ? c->missing.at : "";
}

const char *trama_checkpoint_left_over(const trama_checkpoint *c)
{
    return c && c->left_over.at ? c->left_over.at : "";
}

/* ---- Content ---- */

static trama_status find(const char *call, const trama_checkpoint *c, int i, const stored_tensor **t)
{
    *t = tensor_of(c, i);
    if (*t)
        return TRAMA_OK;
    return c ? trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: %s has %d states, there is no number %d", call, c->path,
                          c->tensors.n, i)
             : trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the checkpoint is NULL", call);
}

trama_status checkpoint_sum_slabs(const trama_checkpoint *c, const stored_tensor *t, int first, int step, uint64_t *sum)
{
    const box whole = box_whole(t->shape);
    const size_t element = trama_dtype_size(t->dtype);
    const box_slabs slabs = box_slabs_of(&whole, element, SLAB);
    char *data = trama_try_alloc((size_t)min_i64(SLAB, t->bytes) + 16);
    bool good = data != NULL;
    int error = ENOMEM;
    *sum = 0;
    for (int64_t i = first; i < slabs.n && good; i += step) {
        const box b = box_slab(&slabs, i);
        good = box_read(checkpoint_descriptor(c, t), t->at, t->shape, element, &b, data);
        error = errno;
        if (good)
            *sum += content_sum_box(t->shape, element, &b, data);
    }
    free(data);
    return good ? TRAMA_OK : checkpoint_failed(c->path, t->name, error);
}

bool trama_checkpoint_is_summed(const trama_checkpoint *c)
{
    return c && c->format->summed;
}

trama_status trama_checkpoint_verify(const trama_checkpoint *c, int i)
{
    const stored_tensor *t;
    uint64_t sum;
    trama_status status = find("trama_checkpoint_verify", c, i, &t);
    if (!status)
        status = checkpoint_sum_slabs(c, t, 0, 1, &sum);
    return status || !c->format->summed || sum == t->sum
               ? status
               : checkpoint_damaged(c->path, t->name, "its check sum is wrong");
}

static trama_status read_box(const char *call, const trama_checkpoint *c, const stored_tensor *t, const box *b,
                             void *data, size_t bytes)
{
    size_t want = (size_t)box_count(b) * trama_dtype_size(t->dtype);
    if (bytes != want || (!data && bytes))
        return trama_fail(NOWHERE, TRAMA_E_SHAPE, "%s: room for %zu bytes of dataset %s of %s, which has %zu", call,
                          data ? bytes : 0, t->name, c->path, want);
    return box_read(checkpoint_descriptor(c, t), t->at, t->shape, trama_dtype_size(t->dtype), b, data)
               ? TRAMA_OK
               : checkpoint_failed(c->path, t->name, errno);
}

trama_status trama_checkpoint_read(const trama_checkpoint *c, int i, void *data, size_t bytes)
{
    static const char call[] = "trama_checkpoint_read";
    const stored_tensor *t;
    trama_status status = find(call, c, i, &t);
    if (status)
        return status;
    const box whole = box_whole(t->shape);
    return read_box(call, c, t, &whole, data, bytes);
}

trama_status trama_checkpoint_read_box(const trama_checkpoint *c, int i, const int64_t *offset, const int64_t *extent,
                                       void *data, size_t bytes)
{
    static const char call[] = "trama_checkpoint_read_box";
    const stored_tensor *t;
    trama_status status = find(call, c, i, &t);
    if (status)
        return status;
    if (t->shape.ndim && (!offset || !extent))
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the %s is NULL", call, offset ? "extent" : "offset");
    box b = {.ndim = t->shape.ndim};
    for (int d = 0; d < b.ndim; d++) {
        if (offset[d] < 0 || extent[d] < 0 || offset[d] > t->shape.dim[d] || extent[d] > t->shape.dim[d] - offset[d])
            return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "%s: the box leaves dim %d of %s, which has %" PRId64, call, d,
                              t->name, t->shape.dim[d]);
        b.lo[d] = offset[d];
        b.n[d] = extent[d];
    }
    return read_box(call, c, t, &b, data, bytes);
}
