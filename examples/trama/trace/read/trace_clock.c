/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem */
#include "trace_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "must.h"
#include "trace_build.h"

/* A record of FxT: time, thread, code, arguments, of 64 bits each; the code's low byte is their number plus 1. */
enum { BEFORE_CODE = 2, WORD = 8 };

/* StarPU-MPI's barrier (_STARPU_MPI_FUT_BARRIER, mpi/src/starpu_mpi_fxt.h): rank, ranks, key, instant, thread. The
 * instant, in ns of the rank's clock, stands for the record's time where it is not 0. */
enum { BARRIER = 0x5203 << 8 | 6, INSTANT = 4 /* words after the code */ };

enum { BEGIN, END, N_BARRIERS };

typedef struct barriers {
    int n;
    off_t code[N_BARRIERS]; /* of the first and of the last */
    int64_t time[N_BARRIERS];
} barriers;

static int64_t word_at(const char *p)
{
    int64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static barriers find_in(const char *data, size_t size, int rank, int n_ranks)
{
    const int64_t wanted[] = {BARRIER, rank, n_ranks};
    barriers b = {0};
    const char *end = data + size, *at = data;
    while ((at = memmem(at, (size_t)(end - at), wanted, sizeof wanted))) {
        if (at - data >= BEFORE_CODE * WORD && end - at >= (INSTANT + 1) * WORD) {
            int which = b.n ? END : BEGIN;
            b.code[which] = at - data;
            b.time[which] = word_at(at - BEFORE_CODE * WORD);
            b.n = which + 1;
        }
        at++;
    }
    return b;
}

static barriers find_barriers(const char *path, int rank, int n_ranks)
{
    barriers b = {0};
    struct stat file;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &file))
        fail("%s: %s", path, strerror(errno));
    char *data = file.st_size ? mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (data != MAP_FAILED) {
        b = find_in(data, (size_t)file.st_size, rank, n_ranks);
        munmap(data, (size_t)file.st_size);
    }
    close(fd);
    return b;
}

/* ---- Copies ---- */

static void copy_file(int from, int to, const char *path)
{
    static char part[1 << 20];
    for (ssize_t n, done; (n = read(from, part, sizeof part)) != 0;)
        for (done = 0; done < n || n < 0;) {
            ssize_t written = n < 0 ? -1 : write(to, part + done, (size_t)(n - done));
            if (written < 0)
                fail("%s: %s", path, strerror(errno));
            done += written;
        }
}

static char *copy_with(const char *into, const char *path, int rank, const barriers *b, const int64_t *instant)
{
    char *copy = trace_text("%s/prof_file_%d", into, rank);
    int from = open(path, O_RDONLY), to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (from < 0 || to < 0)
        fail("%s: %s", from < 0 ? path : copy, strerror(errno));
    copy_file(from, to, copy);
    for (int i = 0; i < b->n; i++)
        if (pwrite(to, &instant[i], sizeof *instant, b->code[i] + INSTANT * WORD) != sizeof *instant)
            fail("%s: %s", copy, strerror(errno));
    close(from);
    if (close(to))
        fail("%s: %s", copy, strerror(errno));
    return copy;
}

/* ---- All ---- */

/* The instants of the two barriers, by the clock of rank 0. */
static bool choose_instants(const trace_folder *f, const bool *with, const barriers *b, int64_t *instant)
{
    bool known[N_BARRIERS] = {false};
    for (int r = 0; r < f->n_ranks; r++) {
        if (with[r] && (f->ranks[r].n_clocks < 1 || b[r].n < 1))
            return false;
        for (int i = 0; with[r] && i < b[r].n; i++)
            if (!known[i]) {
                known[i] = true;
                instant[i] = b[r].time[i] - trace_rank_clock(&f->ranks[r], i);
            }
    }
    return known[BEGIN];
}

bool trace_clock_align(const trace_folder *f, const bool *with, const char *into, char **events)
{
    barriers *b = must_allocate(f->n_ranks, sizeof *b);
    int64_t common[N_BARRIERS] = {0};
    int n = 0;
    for (int r = 0; r < f->n_ranks; r++)
        if (with[r]) {
            b[r] = find_barriers(f->ranks[r].events, r, f->n_ranks);
            n++;
        }
    bool known = n > 1 && choose_instants(f, with, b, common);
    for (int r = 0; known && r < f->n_ranks; r++)
        if (with[r]) {
            int64_t own[N_BARRIERS];
            for (int i = 0; i < N_BARRIERS; i++)
                own[i] = common[i] + trace_rank_clock(&f->ranks[r], i);
            events[r] = copy_with(into, f->ranks[r].events, r, &b[r], own);
        }
    free(b);
    return known;
}
