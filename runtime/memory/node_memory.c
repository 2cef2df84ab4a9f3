/* SPDX-License-Identifier: Apache-2.0 */
/* The files are made by memfd_create, and opened by the others through /proc. */
#define _GNU_SOURCE /* memfd_create */
#include "node_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "mapping.h"

/* Bytes of this rank's memory that no buffer has. */
typedef struct hole {
    size_t from, to;
} hole;

struct node_memory {
    int n_ranks, rank;
    size_t bytes; /* of each rank's memory */
    size_t page;
    char **of;         /* [ranks] NULL: on another node; the own one can be written */
    ARRAY(hole) holes; /* by address; they neither overlap nor touch */
};

/* How the other ranks find a rank's file. The stamp, which begins the file, tells it from that of a process that has
 * the same number in another container. */
typedef struct file_card {
    int pid, file; /* file -1: none */
    uint64_t stamp;
} file_card;

/* ---- Start and end ---- */

/* At a multiple of a large page. */
static void *map_file(int file, size_t bytes, int protection)
{
    void *at = mapping_make(bytes, LARGE_PAGE, PROT_NONE, MAP_NORESERVE);
    if (!at || mmap(at, bytes, protection, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, file, 0) != MAP_FAILED)
        return at;
    munmap(at, bytes);
    return NULL;
}

/* The rank's part of the machine's memory. */
static size_t bytes_of_rank(const trama_context *c)
{
    const size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    return memory / (size_t)c->node.ranks / LARGE_PAGE * LARGE_PAGE;
}

/* Under strict accounting a page that is refused would end the process when it is written. */
static bool is_accounted(void)
{
    char mode = '2';
    FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
    if (f && fread(&mode, 1, 1, f) != 1)
        mode = '2';
    if (f)
        fclose(f);
    return mode == '2';
}

static bool may_make(size_t bytes)
{
    struct rlimit limit;
    return bytes > LARGE_PAGE && !is_accounted() && !context_has_limited_room() && !getrlimit(RLIMIT_FSIZE, &limit) &&
           (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes);
}

/* Makes and maps this rank's file; card->file -1 where that fails. The first page has the stamp. */
static void make_file(node_memory *m, size_t bytes, file_card *card)
{
    *card = (file_card){.pid = (int)getpid(), .file = may_make(bytes) ? memfd_create("trama", MFD_CLOEXEC) : -1};
    if (card->file < 0)
        return;
    char *own = NULL;
    if (getrandom(&card->stamp, sizeof card->stamp, 0) == sizeof card->stamp && !ftruncate(card->file, (off_t)bytes))
        own = map_file(card->file, bytes, PROT_READ | PROT_WRITE);
    if (own) {
        memcpy(own, &card->stamp, sizeof card->stamp);
        *ARRAY_PUSH(&m->holes) = (hole){m->page, bytes};
        m->of[m->rank] = own;
        m->bytes = bytes;
    } else {
        close(card->file);
        card->file = -1;
    }
}

static bool map_other(node_memory *m, int rank, const file_card *card)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", card->pid, card->file);
    const int file = card->file < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return false;
    const off_t bytes = lseek(file, 0, SEEK_END);
    if (bytes == (off_t)m->bytes)
        m->of[rank] = map_file(file, m->bytes, PROT_READ);
    close(file);
    if (!m->of[rank])
        return false;
    madvise(m->of[rank], m->bytes, MADV_DONTDUMP);
    return !memcmp(m->of[rank], &card->stamp, sizeof card->stamp);
}

/* Nodes have numbers in the order of their first ranks. */
static bool has_neighbours(const machine *m)
{
    int last = 0;
    for (int i = 0; i < m->n_places; i++)
        last = m->places[i].path[0] > last ? m->places[i].path[0] : last;
    return last + 1 < m->n_ranks;
}

/* Why this rank knows that no memory is shared, as all others do; NULL: it may be. */
static const char *unwanted_why(const trama_context *c)
{
    return c->config.loan_bytes > INT64_C(1) << 30 ? "config.loan_bytes is above 2^30"
           : !has_neighbours(c->place.machine)     ? "no node has two ranks"
                                                   : NULL;
}

/* The files of the other ranks of the node, each once though a rank may have several places. */
static bool map_others(node_memory *m, const trama_context *c, const file_card *files)
{
    const machine *all = c->place.machine;
    bool mapped = files[m->rank].file >= 0;
    for (int i = 0; i < all->n_places && mapped; i++) {
        const int rank = all->places[i].rank;
        if (!m->of[rank] && machine_same_node(all, i, c->place.first))
            mapped = map_other(m, rank, &files[rank]);
    }
    return mapped;
}

/* Whether all ranks say so. */
static trama_status all_say(trama_context *c, bool mine, bool *all)
{
    bool *of = trama_alloc((size_t)c->comm.ranks * sizeof *of);
    trama_status status = context_gather(c, "trama_start", &mine, sizeof mine, of);
    *all = !status;
    for (int r = 0; r < c->comm.ranks; r++)
        *all &= of[r];
    free(of);
    return status;
}

trama_status node_memory_start(trama_context *c)
{
    c->node.unshared_why = unwanted_why(c);
    if (c->node.unshared_why)
        return TRAMA_OK;
    node_memory *m = trama_alloc(sizeof *m);
    m->n_ranks = c->comm.ranks;
    m->rank = c->comm.rank;
    m->page = (size_t)sysconf(_SC_PAGESIZE);
    m->of = trama_alloc((size_t)m->n_ranks * sizeof *m->of);
    file_card mine, *files = trama_alloc((size_t)m->n_ranks * sizeof *files);
    make_file(m, bytes_of_rank(c), &mine);
    trama_status status = context_gather(c, "trama_start", &mine, sizeof mine, files);
    bool all = false;
    if (!status)
        status = all_say(c, map_others(m, c, files), &all);
    free(files);
    if (mine.file >= 0)
        close(mine.file);
    c->node_memory = m;
    if (!all) {
        node_memory_stop(&c->node_memory);
        c->node.unshared_why =
            "a rank cannot make or map the shared memory (/proc, limits of address space and of files, overcommit)";
    }
    c->place.machine->loan_bytes = all ? c->config.loan_bytes : 0;
    return status;
}

void node_memory_stop(node_memory **m)
{
    if (!*m)
        return;
    for (int r = 0; r < (*m)->n_ranks; r++)
        if ((*m)->of[r])
            munmap((*m)->of[r], (*m)->bytes);
    ARRAY_FREE(&(*m)->holes);
    free((*m)->of);
    free(*m);
    *m = NULL;
}

/* ---- Bytes of this rank ---- */

static void remove_hole(node_memory *m, int i)
{
    m->holes.n--;
    for (; i < m->holes.n; i++)
        m->holes.at[i] = m->holes.at[i + 1];
}

static void insert_hole(node_memory *m, int i, hole h)
{
    ARRAY_PUSH(&m->holes);
    for (int k = m->holes.n - 1; k > i; k--)
        m->holes.at[k] = m->holes.at[k - 1];
    m->holes.at[i] = h;
}

void *node_memory_take(node_memory *m, size_t bytes, size_t *taken)
{
    if (!m)
        return NULL;
    const size_t unit = bytes >= LARGE_BUFFER ? LARGE_PAGE : m->page, size = mapping_padded(bytes ? bytes : 1, unit);
    for (int i = 0; i < m->holes.n; i++) {
        const hole h = m->holes.at[i];
        const size_t from = mapping_padded(h.from, unit);
        if (from >= h.to || h.to - from < size)
            continue;
        remove_hole(m, i);
        if (from + size < h.to)
            insert_hole(m, i, (hole){from + size, h.to});
        if (h.from < from)
            insert_hole(m, i, (hole){h.from, from});
        if (unit == LARGE_PAGE)
            madvise(m->of[m->rank] + from, size, MADV_HUGEPAGE);
        *taken = size;
        return m->of[m->rank] + from;
    }
    return NULL;
}

void node_memory_give(node_memory *m, void *data, size_t taken)
{
    hole h = {(size_t)((char *)data - m->of[m->rank]), 0};
    h.to = h.from + taken;
    madvise(data, taken, MADV_REMOVE);
    int i = 0;
    while (i < m->holes.n && m->holes.at[i].from < h.from)
        i++;
    if (i < m->holes.n && m->holes.at[i].from == h.to) {
        h.to = m->holes.at[i].to;
        remove_hole(m, i);
    }
    if (i > 0 && m->holes.at[i - 1].to == h.from)
        m->holes.at[i - 1].to = h.to;
    else
        insert_hole(m, i, h);
}

/* ---- Reading ---- */

int64_t node_memory_at(const node_memory *m, const void *data)
{
    const char *own = m ? m->of[m->rank] : NULL;
    return own && (const char *)data >= own && (const char *)data < own + m->bytes ? (const char *)data - own : -1;
}

void *node_memory_of(const node_memory *m, int rank, int64_t at)
{
    return m && m->of[rank] && at >= 0 && (size_t)at < m->bytes ? m->of[rank] + at : NULL;
}
