/* SPDX-License-Identifier: Apache-2.0 */
/* The halves of a data set: finding and checking the files, and the order of samples in batches. */
#include "dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"

/* The generator behind trama_uniform: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
 * as 1, 2, 3", SC 2011, ten rounds of two 32 by 32 bit products as its figure 2 has them. Word i mod 4 of the block
 * with counter (low(i/4), high(i/4), stream, step) and key (low seed, high seed). */
static uint32_t philox_word(uint64_t seed, uint32_t stream, uint32_t step, uint64_t i)
{
    uint32_t c[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), stream, step};
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t first = (uint64_t)c[0] * 0xd2511f53u, second = (uint64_t)c[2] * 0xcd9e8d57u;
        c[0] = (uint32_t)(second >> 32) ^ c[1] ^ key[0];
        c[1] = (uint32_t)second;
        c[2] = (uint32_t)(first >> 32) ^ c[3] ^ key[1];
        c[3] = (uint32_t)first;
        key[0] += 0x9e3779b9u;
        key[1] += 0xbb67ae85u;
    }
    return c[i % 4];
}

/* ---- Files ---- */

enum { PATH_ROOM = 4096 };

/* The path of a file, gzipped or plain; whether there is one. With neither, path is the gzipped one. */
static bool find_file(const char *folder, const char *name, const char *kind, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%s-%s-ubyte", folder, name, kind);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, PATH_ROOM, "%s/%s-%s-ubyte.gz", folder, name, kind);
    return access(path, F_OK) == 0;
}

const char *dataset_folder(const char *given)
{
    static const char *const usual[] = {"/usr/share/datasets/fashion-mnist", "/usr/local/share/datasets/fashion-mnist",
                                        "fashion-mnist"};
    char path[PATH_ROOM];
    if (given)
        return given;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (find_file(usual[i], "train", "images-idx3", path))
            return usual[i];
    fail("no Fashion-MNIST in %s, %s or ./%s: install Debian's dataset-fashion-mnist, or give --data DIR", usual[0],
         usual[1], usual[2]);
}

static void check_pair(const dataset *data, const char *images, const char *labels, int classes)
{
    if (data->images.dim[0] != data->labels.dim[0])
        fail("%s has %lld images, but %s has %lld labels", images, (long long)data->images.dim[0], labels,
             (long long)data->labels.dim[0]);
    for (int64_t i = 0; i < data->labels.dim[0]; i++)
        if (data->labels.bytes[i] >= classes)
            fail("%s: label %d of sample %lld; there are the classes 0 to %d", labels, data->labels.bytes[i],
                 (long long)i, classes - 1);
}

dataset dataset_read(const char *folder, const char *name, int classes)
{
    char images[PATH_ROOM], labels[PATH_ROOM];
    find_file(folder, name, "images-idx3", images);
    find_file(folder, name, "labels-idx1", labels);
    dataset data = {.images = idx_read(images, 3), .labels = idx_read(labels, 1)};
    check_pair(&data, images, labels, classes);
    return data;
}

void dataset_free(dataset *data)
{
    idx_free(&data->images);
    idx_free(&data->labels);
}

int64_t dataset_samples(const dataset *data)
{
    return data->images.dim[0];
}

int64_t dataset_pixels(const dataset *data)
{
    return data->images.dim[1] * data->images.dim[2];
}

void dataset_gather(const dataset *data, const int64_t *index, int64_t first, int64_t n, trama_dtype dtype,
                    void *images, int64_t *labels)
{
    int64_t pixels = dataset_pixels(data);
    for (int64_t i = first; i < first + n; i++) {
        const unsigned char *from = data->images.bytes + index[i] * pixels;
        float *single = (float *)images + i * pixels;
        double *wide = (double *)images + i * pixels;
        labels[i] = data->labels.bytes[index[i]];
        if (dtype == TRAMA_F32)
            for (int64_t k = 0; k < pixels; k++)
                single[k] = (float)from[k] / 255;
        else
            for (int64_t k = 0; k < pixels; k++)
                wide[k] = from[k] / 255.0;
    }
}

/* ---- Files for streams ---- */

const char *dataset_file(const char *folder, const char *word, char *path, size_t room)
{
    snprintf(path, room, "%s/%s.npy", folder, word);
    return path;
}

/* Under another name until it is whole. */
static void write_array(const char *folder, const char *word, trama_dtype dtype, trama_shape shape, const void *array)
{
    char path[PATH_ROOM], unfinished[PATH_ROOM + 8];
    dataset_file(folder, word, path, sizeof path);
    snprintf(unfinished, sizeof unfinished, "%s.part", path);
    must(trama_write_npy(unfinished, dtype, shape, array));
    if (rename(unfinished, path))
        fail("%s: %s", path, strerror(errno));
}

void dataset_write(const dataset *data, const char *folder, trama_dtype dtype)
{
    const int64_t n = dataset_samples(data), pixels = dataset_pixels(data);
    char path[PATH_ROOM];
    if (!access(dataset_file(folder, "labels", path, sizeof path), F_OK)) /* the last one */
        return;
    if (mkdir(folder, 0777) && errno != EEXIST)
        fail("--stream %s: %s", folder, strerror(errno));
    int64_t *index = must_allocate(n, sizeof *index), *labels = must_allocate(n, sizeof *labels);
    void *images = must_allocate(n * pixels, trama_dtype_size(dtype));
    for (int64_t i = 0; i < n; i++)
        index[i] = i;
    dataset_gather(data, index, 0, n, dtype, images, labels);
    write_array(folder, "images", dtype, TRAMA_SHAPE(n, pixels), images);
    write_array(folder, "labels", TRAMA_I64, TRAMA_SHAPE(n), labels);
    free(index);
    free(labels);
    free(images);
}

/* ---- Order ---- */

static const uint32_t shuffle_stream = 0xffffffff; /* parameters count theirs from 0 */

static void shuffle(sampler *s)
{
    for (int64_t i = 0; i < s->samples; i++)
        s->index[i] = i;
    for (int64_t i = s->samples - 1; i > 0; i--) {
        uint64_t word = philox_word(s->seed, shuffle_stream, (uint32_t)s->epoch, (uint64_t)(s->samples - 1 - i));
        int64_t j = (int64_t)(word * (uint64_t)(i + 1) >> 32), swapped = s->index[i];
        s->index[i] = s->index[j];
        s->index[j] = swapped;
    }
}

sampler sampler_begin(int64_t samples, int64_t batch, sampler_order order, uint64_t seed)
{
    sampler s = {.samples = samples, .batch = batch, .order = order, .seed = seed};
    s.index = must_allocate(samples, sizeof *s.index);
    for (int64_t i = 0; i < samples; i++)
        s.index[i] = i;
    return s;
}

int64_t sampler_next(sampler *s, int64_t *index)
{
    if (s->order == SAMPLER_SHUFFLED && s->next == 0)
        shuffle(s);
    int64_t n = 0;
    while (n < s->batch) {
        index[n++] = s->index[s->next++];
        if (s->next < s->samples)
            continue;
        s->next = 0;
        s->epoch++;
        if (s->order != SAMPLER_REPEATED)
            break;
    }
    return n;
}

int64_t sampler_batches(const sampler *s)
{
    return (s->samples + s->batch - 1) / s->batch;
}

void sampler_end(sampler *s)
{
    free(s->index);
    *s = (sampler){0};
}
