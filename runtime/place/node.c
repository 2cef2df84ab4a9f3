/* SPDX-License-Identifier: Apache-2.0 */
/* Cards: the processors, time and GPUs that a process may use; and the ranks that share a node. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "node.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "place.h"

static bool read_file(const char *path, char *buffer, size_t size)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(buffer, 1, size - 1, file);
    fclose(file);
    buffer[n] = '\0';
    return n > 0;
}

/* The quota of a control group in CPUs, 0 without a limit. Version 2: "<quota|max> <period>" in cpu.max. Version 1: two
 * files, -1 for no limit. */
static double quota_of_group(const char *group)
{
    char path[4200], line[128];
    double quota = -1, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", group);
    if (read_file(path, line, sizeof line))
        return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", group);
    if (!read_file(path, line, sizeof line) || sscanf(line, "%lf", &quota) != 1 || quota <= 0)
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", group);
    if (!read_file(path, line, sizeof line) || sscanf(line, "%lf", &period) != 1 || period <= 0)
        return 0;
    return quota / period;
}

/* The least quota of the group and the groups above it, down to base (a container sees its own group as the base). */
static double quota_of_branch(const char *base, const char *group)
{
    char path[4096];
    double least = 0;
    if (snprintf(path, sizeof path, "%s%s", base, group) >= (int)sizeof path)
        return 0;
    for (;;) {
        double quota = quota_of_group(path);
        if (quota > 0 && (least == 0 || quota < least))
            least = quota;
        char *slash = strrchr(path, '/');
        if (strlen(path) <= strlen(base) || !slash)
            return least;
        *slash = '\0';
    }
}

double node_quota(const char *root, const char *membership)
{
    double least = 0;
    for (const char *line = membership; *line;) {
        char controllers[256] = "", group[2048] = "", base[2400];
        int length = (int)strcspn(line, "\n");
        if (length < 2300 && (sscanf(line, "%*d:%255[^:\n]:%2047[^\n]", controllers, group) == 2 ||
                              sscanf(line, "0::%2047[^\n]", group) == 1)) {
            bool cpu = !*controllers || strcmp(controllers, "cpu") == 0 || strstr(controllers, "cpu,") ||
                       strstr(controllers, ",cpu");
            snprintf(base, sizeof base, "%s%s", root, *controllers ? "/cpu" : "");
            double quota = cpu ? quota_of_branch(base, strcmp(group, "/") ? group : "") : 0;
            if (quota > 0 && (least == 0 || quota < least))
                least = quota;
        }
        line += length + (line[length] == '\n');
    }
    return least;
}

static void identify_node(node_card *card)
{
    char name[NODE_TEXT] = "node";
    if (!read_file("/proc/sys/kernel/random/boot_id", name, sizeof name) && gethostname(name, sizeof name - 1))
        strcpy(name, "node");
    name[strcspn(name, "\n")] = '\0';
    snprintf(card->node, sizeof card->node, "%s", name);
}

/* An OpenMP runtime that binds threads binds the main thread when it is loaded, so the cores of all its places count.
 * LLVM's runtime binds the calling thread when it is asked; the thread gets its binding back. */
static void add_openmp_places(hwloc_topology_t topology, hwloc_bitmap_t bound)
{
    int (*places)(void), (*processors)(int);
    void (*processors_of)(int, int *);
    *(void **)&places = dlsym(RTLD_DEFAULT, "omp_get_num_places");
    *(void **)&processors = dlsym(RTLD_DEFAULT, "omp_get_place_num_procs");
    *(void **)&processors_of = dlsym(RTLD_DEFAULT, "omp_get_place_proc_ids");
    if (!places || !processors || !processors_of)
        return;
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    bool known = !hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_THREAD);
    for (int p = 0, n = places(); p < n; p++) {
        int many = processors(p), *ids = trama_alloc((size_t)many * sizeof *ids);
        processors_of(p, ids);
        for (int i = 0; i < many; i++)
            hwloc_bitmap_set(bound, (unsigned)ids[i]);
        free(ids);
    }
    if (known)
        hwloc_set_cpubind(topology, mine, HWLOC_CPUBIND_THREAD);
    hwloc_bitmap_free(mine);
}

void node_card_fill(node_card *card, hwloc_topology_t topology, const char *cpu_kind)
{
    char membership[8192];
    hwloc_bitmap_t bound = hwloc_bitmap_alloc();
    memset(card, 0, sizeof *card);
    identify_node(card);
    snprintf(card->cpu_kind, sizeof card->cpu_kind, "%s", cpu_kind);
    if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) || hwloc_bitmap_iszero(bound))
        hwloc_bitmap_copy(bound, hwloc_topology_get_allowed_cpuset(topology));
    add_openmp_places(topology, bound);
    hwloc_bitmap_and(bound, bound, hwloc_topology_get_allowed_cpuset(topology));
    int pu = -1;
    while ((pu = hwloc_bitmap_next(bound, pu)) >= 0 && pu < NODE_MAX_PUS)
        card->allowed[pu / 64] |= UINT64_C(1) << (pu % 64);
    hwloc_bitmap_free(bound);
    if (read_file("/proc/self/cgroup", membership, sizeof membership))
        card->quota = node_quota("/sys/fs/cgroup", membership);
}

void node_allowed(const node_card *card, hwloc_bitmap_t set)
{
    hwloc_bitmap_zero(set);
    for (unsigned pu = 0; pu < NODE_MAX_PUS; pu++)
        if (card->allowed[pu / 64] >> (pu % 64) & 1)
            hwloc_bitmap_set(set, pu);
}

static bool same_node(const node_card *a, const node_card *b)
{
    return strcmp(a->node, b->node) == 0;
}

static bool same_cores(const node_card *a, const node_card *b)
{
    return memcmp(a->allowed, b->allowed, sizeof a->allowed) == 0;
}

int node_sharers(const node_card *cards, int n_ranks, int rank, int *index)
{
    int n = 0;
    for (int r = 0; r < n_ranks; r++) {
        if (r == rank)
            *index = n;
        n += same_node(&cards[r], &cards[rank]) && same_cores(&cards[r], &cards[rank]);
    }
    return n;
}

bool node_overlap(const node_card *cards, int n_ranks, int rank)
{
    const node_card *mine = &cards[rank];
    for (int r = 0; r < n_ranks; r++) {
        if (!same_node(&cards[r], mine) || same_cores(&cards[r], mine))
            continue;
        for (size_t i = 0; i < sizeof mine->allowed / sizeof *mine->allowed; i++)
            if (cards[r].allowed[i] & mine->allowed[i])
                return true;
    }
    return false;
}

int node_pus(const node_card *cards, int n_ranks, int rank)
{
    int n = 0;
    for (size_t i = 0; i < sizeof cards->allowed / sizeof *cards->allowed; i++) {
        uint64_t any = 0;
        for (int r = 0; r < n_ranks; r++)
            any |= same_node(&cards[r], &cards[rank]) ? cards[r].allowed[i] : 0;
        n += __builtin_popcountll(any);
    }
    return n;
}

int node_local_rank(const node_card *cards, int rank)
{
    int n = 0;
    for (int r = 0; r < rank; r++)
        n += same_node(&cards[r], &cards[rank]);
    return n;
}

int node_ranks(const node_card *cards, int n_ranks, int rank)
{
    int n = 0;
    for (int r = 0; r < n_ranks; r++)
        n += same_node(&cards[r], &cards[rank]);
    return n;
}

int node_index(const node_card *cards, int rank)
{
    int first = 0, index = 0;
    while (!same_node(&cards[first], &cards[rank]))
        first++;
    for (int r = 0; r < first; r++)
        index += node_local_rank(cards, r) == 0;
    return index;
}

static const char *kind_text(const node_card *cards, int rank, int gpu)
{
    return gpu < 0 ? cards[rank].cpu_kind : cards[rank].gpu[gpu].kind;
}

/* Kind i in the list of all ranks' CPUs, then all ranks' GPUs; NULL after the last one. */
static const char *kind_at(const node_card *cards, int n_ranks, int i)
{
    if (i < n_ranks)
        return cards[i].cpu_kind;
    i -= n_ranks;
    for (int r = 0; r < n_ranks; i -= cards[r++].n_gpus)
        if (i < cards[r].n_gpus)
            return cards[r].gpu[i].kind;
    return NULL;
}

static bool appeared(const node_card *cards, int n_ranks, int i)
{
    for (int k = 0; k < i; k++)
        if (!strcmp(kind_at(cards, n_ranks, k), kind_at(cards, n_ranks, i)))
            return true;
    return false;
}

int node_kind(const node_card *cards, int n_ranks, int rank, int gpu)
{
    const char *kind = kind_text(cards, rank, gpu);
    int number = 0;
    for (int i = 0; strcmp(kind_at(cards, n_ranks, i), kind); i++)
        number += !appeared(cards, n_ranks, i);
    return number;
}

static bool same_gpus(const node_card *a, const node_card *b)
{
    bool same = same_node(a, b) && a->n_gpus == b->n_gpus;
    for (int i = 0; same && i < a->n_gpus; i++)
        same = !memcmp(a->gpu[i].uuid, b->gpu[i].uuid, sizeof a->gpu[i].uuid);
    return same;
}

int node_gpus(const node_card *cards, int n_ranks, int rank, int *mine)
{
    int sharers = 0, index = 0, first = 0;
    if (cards[rank].n_gpus == 0)
        return 0;
    for (int r = 0; r < n_ranks; r++) {
        index = r == rank ? sharers : index;
        sharers += same_gpus(&cards[r], &cards[rank]);
    }
    int n = share_of(cards[rank].n_gpus, sharers, index, &first);
    for (int i = 0; i < n; i++)
        mine[i] = first + i;
    return n;
}

static bool takes(const node_card *cards, int n_ranks, int rank, const uint8_t *uuid)
{
    int mine[NODE_MAX_GPUS], n = node_gpus(cards, n_ranks, rank, mine);
    for (int i = 0; i < n; i++)
        if (!memcmp(cards[rank].gpu[mine[i]].uuid, uuid, sizeof cards[rank].gpu[0].uuid))
            return true;
    return false;
}

int node_gpu_sharers(const node_card *cards, int n_ranks, int rank, int gpu)
{
    int n = 0;
    for (int r = 0; r < n_ranks; r++)
        n += same_node(&cards[r], &cards[rank]) && takes(cards, n_ranks, r, cards[rank].gpu[gpu].uuid);
    return n;
}
