/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of files under libFuzzer; tests/fuzz/run builds it once for each ending of a file's name, FUZZ_ENDING, and
 * runs it. A file is refused with words that name it, or all of its states can be read. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trama_checkpoint.h"
#include "trama_npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 22 };

static void demand(bool holds, const char *words)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s: %s\n", words, trama_error());
    abort();
}

static void write_file(const char *path, const void *data, size_t size)
{
    const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    demand(to >= 0 && write(to, data, size) == (ssize_t)size, path);
    close(to);
}

static void remove_folder(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf /dev/shm/trama-fuzz-%d", (int)getpid());
    if (system(command))
        return;
}

/* A folder in memory, with two shards for indices that name them. */
static const char *in_folder(const char *name)
{
    static char folder[60], path[200];
    static const char shard[] =
        "\x3a\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}      x";
    if (!*folder) {
        char other[200];
        snprintf(folder, sizeof folder, "/dev/shm/trama-fuzz-%d", (int)getpid());
        snprintf(other, sizeof other, "mkdir -p %s", folder);
        demand(!system(other), folder);
        atexit(remove_folder);
        snprintf(other, sizeof other, "%s/s.safetensors", folder);
        write_file(other, shard, sizeof shard - 1);
        snprintf(other, sizeof other, "%s/t.safetensors", folder);
        write_file(other, shard, sizeof shard - 1);
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void read_states(const trama_checkpoint *c)
{
    for (int i = 0; i < trama_checkpoint_count(c); i++) {
        const size_t bytes =
            (size_t)trama_shape_count(trama_checkpoint_shape(c, i)) * trama_dtype_size(trama_checkpoint_dtype(c, i));
        demand(trama_checkpoint_find(c, trama_checkpoint_name(c, i)) == i, "two states of one name");
        if (bytes > MOST)
            continue;
        void *data = malloc(bytes + 1);
        demand(!trama_checkpoint_read(c, i, data, bytes), "a state cannot be read");
        demand(!trama_checkpoint_verify(c, i) || trama_checkpoint_is_summed(c), "a state cannot be verified");
        free(data);
    }
    for (int i = 0; i < trama_checkpoint_key_count(c); i++)
        demand(trama_checkpoint_get(c, trama_checkpoint_key(c, i)) != NULL, "a key without a text");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trama_checkpoint *c = NULL;
    trama_dtype dtype;
    trama_shape shape;
    void *array = NULL;
    const char *path = in_folder("f" FUZZ_ENDING);
    write_file(path, data, size);
    if (!trama_checkpoint_open(path, &c))
        read_states(c);
    else
        demand(!c && strstr(trama_error(), "/dev/shm/"), "refused without the name of the file");
    trama_checkpoint_destroy(&c);
    if (trama_read_npy(path, &dtype, &shape, &array))
        demand(!array && strstr(trama_error(), path), "refused without the name of the file");
    trama_npy_free(&array);
    return 0;
}
