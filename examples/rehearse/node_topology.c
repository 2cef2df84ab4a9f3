/* SPDX-License-Identifier: Apache-2.0 */
/* Counting the objects of a topology. */
#include "node_topology.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

enum { MOST_PATH = 4096, MOST_GPUS = 256 };

/* A line of the machine's file. */
typedef struct place {
    const char *name;
    int line;
} place;

static hwloc_topology_t load(const char *path, place at)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology))
        fail("machine '%s', line %d: hwloc_topology_init failed", at.name, at.line);
    if (hwloc_topology_set_xml(topology, path) ||
        hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) || hwloc_topology_load(topology))
        fail("machine '%s', line %d: hwloc cannot read '%s': write it with `lstopo %s` on a node", at.name, at.line,
             path, path);
    return topology;
}

static int count_cores(hwloc_topology_t topology)
{
    const int cores = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    return cores > 0 ? cores : hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
}

/* A device that computes: of CUDA, ROCm, OpenCL or Level Zero, or with a management interface of such a card. */
static int computes(const struct hwloc_obj *device)
{
    return device->attr->osdev.type == HWLOC_OBJ_OSDEV_COPROC ||
           (device->attr->osdev.type == HWLOC_OBJ_OSDEV_GPU && device->name &&
            (!strncmp(device->name, "nvml", 4) || !strncmp(device->name, "rsmi", 4)));
}

/* Cards, each of which may have several devices. */
static int count_gpus(hwloc_topology_t topology)
{
    hwloc_obj_t device = NULL, cards[MOST_GPUS];
    int n = 0;
    while ((device = hwloc_get_next_osdev(topology, device))) {
        hwloc_obj_t card = device;
        while (card && card->type != HWLOC_OBJ_PCI_DEVICE)
            card = card->parent;
        int known = !card || !computes(device) || n == MOST_GPUS;
        for (int i = 0; i < n && !known; i++)
            known = cards[i] == card;
        if (!known)
            cards[n++] = card;
    }
    return n;
}

/* The path of a file beside the machine's. */
static void find_beside(const char *name, const char *file, char *path)
{
    const char *slash = strrchr(name, '/');
    const int folder = *file == '/' || !slash ? 0 : (int)(slash - name) + 1;
    snprintf(path, MOST_PATH, "%.*s%s", folder, name, file);
}

/* Whether a line gives a number by a topology: "cores FILE.xml", perhaps with a comment. */
static int asks(const char *line, char *word, char *file)
{
    char rest[2] = "#";
    if (sscanf(line, " %15s %1023s %1s", word, file, rest) < 2 || *rest != '#')
        return 0;
    const size_t n = strlen(file);
    return (!strcmp(word, "cores") || !strcmp(word, "gpus")) && n > 4 && !strcmp(file + n - 4, ".xml");
}

static int count(const char *word, const char *file, place at)
{
    char path[MOST_PATH];
    find_beside(at.name, file, path);
    hwloc_topology_t topology = load(path, at);
    const int n = *word == 'c' ? count_cores(topology) : count_gpus(topology);
    hwloc_topology_destroy(topology);
    return n;
}

char *with_topologies(const char *name, const char *text)
{
    const size_t room = 2 * strlen(text) + 64; /* a number is shorter than a name that ends in .xml */
    char *all = must_allocate((int64_t)room, 1), *to = all;
    place at = {name, 1};
    for (const char *line = text; *line; at.line++) {
        const size_t n = strcspn(line, "\n");
        char copy[2048], word[16], file[1024];
        snprintf(copy, sizeof copy, "%.*s", (int)(n < sizeof copy ? n : sizeof copy - 1), line);
        if (asks(copy, word, file))
            to += sprintf(to, "%s %d", word, count(word, file, at));
        else
            to = (char *)memcpy(to, line, n) + n;
        line += n;
        if (*line)
            *to++ = *line++;
    }
    *to = 0;
    return all;
}
