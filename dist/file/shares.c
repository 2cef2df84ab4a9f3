/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of ranks in an unfinished checkpoint. */
#define _GNU_SOURCE /* fallocate */
#include "shares.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "box_file.h"
#include "hash.h"

enum { SHARE_ABSENT, SHARE_DONE, SHARE_FAILED };

static size_t share_bytes(const trama_checkpoint *c)
{
    return (2 + (size_t)c->tensors.n) * sizeof(uint64_t);
}

static int64_t share_at(const trama_checkpoint *c, int rank)
{
    return c->bytes + rank * (int64_t)share_bytes(c);
}

/* words: hash of all that follows, state, sums */
static uint64_t hash_share(const trama_checkpoint *c, int rank, const uint64_t *words)
{
    return hash_bytes(hash_word(HASH_START, (uint64_t)rank), words + 1, share_bytes(c) - sizeof *words);
}

static trama_status make_room(const char *path, int descriptor, int64_t bytes)
{
    if (ftruncate(descriptor, bytes))
        return checkpoint_failed(path, "cannot grow", errno);
    if (bytes && fallocate(descriptor, 0, 0, bytes) && errno != EOPNOTSUPP && errno != ENOSYS)
        return checkpoint_failed(path, "cannot grow", errno);
    return TRAMA_OK;
}

trama_status shares_begin(const trama_checkpoint *c, int ranks)
{
    trama_status status = make_room(c->path, c->descriptor, share_at(c, ranks));
    for (int i = 0; i < c->shards.n && !status; i++)
        status = make_room(c->shards.at[i].path, c->shards.at[i].descriptor, c->shards.at[i].bytes);
    return status;
}

bool share_write(const trama_checkpoint *c, int rank, bool failed, const uint64_t *sums)
{
    uint64_t *words = trama_alloc(share_bytes(c));
    words[1] = failed ? SHARE_FAILED : SHARE_DONE;
    for (int i = 0; i < c->tensors.n && !failed; i++)
        words[2 + i] = sums[i];
    words[0] = hash_share(c, rank, words);
    bool good = file_write_at(c->descriptor, words, (int64_t)share_bytes(c), share_at(c, rank));
    free(words);
    return good;
}

static bool file_is_there(const trama_checkpoint *c)
{
    struct stat own, named;
    return !fstat(c->descriptor, &own) && !stat(c->path, &named) && own.st_ino == named.st_ino;
}

/* Reads a rank's share until it is there. */
static trama_status wait_for_share(const trama_checkpoint *c, int rank, uint64_t *words)
{
    for (long wait = 100000;; wait = wait < 10000000 ? 2 * wait : wait) {
        if (!file_read_at(c->descriptor, words, (int64_t)share_bytes(c), share_at(c, rank)))
            return checkpoint_failed(c->path, "cannot be read", errno);
        if (words[1] != SHARE_ABSENT && words[0] == hash_share(c, rank, words))
            break;
        if (!file_is_there(c))
            return checkpoint_failed(c->path, "it has vanished", ENOENT);
        nanosleep(&(struct timespec){.tv_nsec = wait}, NULL);
    }
    return words[1] == SHARE_DONE
               ? TRAMA_OK
               : trama_fail(NOWHERE, TRAMA_E_SYSTEM, "%s: rank %d could not write its boxes", c->path, rank);
}

trama_status shares_end(trama_checkpoint *c, int ranks)
{
    trama_status status = TRAMA_OK;
    uint64_t *words = trama_alloc(share_bytes(c));
    for (int r = 0; r < ranks && !status; r++) {
        status = wait_for_share(c, r, words);
        for (int i = 0; i < c->tensors.n && !status; i++)
            c->tensors.at[i].sum += words[2 + i];
    }
    free(words);
    if (!status && ftruncate(c->descriptor, c->bytes))
        status = checkpoint_failed(c->path, "cannot be cut", errno);
    return status;
}
