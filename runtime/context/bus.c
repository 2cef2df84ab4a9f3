/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the bus for StarPU. Without a file of them StarPU measures, and for that it calls cudaDeviceReset on every
 * GPU that the process sees, also on those that it will not use: memory and streams of the program there are lost. No
 * scheduler that Trama chooses reads the figures, so this file writes nominal ones into a folder of its own. It
 * measures nothing and calls no CUDA. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "environment.h"
#include "state.h"

#if defined STARPU_USE_CUDA && TRAMA_HAVE_CUDA

enum { MBPS = 10000, LATENCY = 10 }; /* of a link: MB/s and microseconds */

/* As StarPU counts them: it measures again where a file has other counts. */
typedef struct counts {
    int cores, nodes, gpus;
} counts;

static int at_most(int n, int most)
{
    return n < most ? n : most;
}

static counts count(const trama_context *c, int gpus)
{
    int cores = hwloc_get_nbobjs_by_type(c->topology, HWLOC_OBJ_CORE);
    int nodes = hwloc_get_nbobjs_by_type(c->topology, HWLOC_OBJ_NUMANODE);
    return (counts){cores > 0 ? cores : hwloc_get_nbobjs_by_type(c->topology, HWLOC_OBJ_PU),
                    at_most(nodes > 0 ? nodes : 1, STARPU_MAXNUMANODES), at_most(gpus, STARPU_MAXCUDADEVS)};
}

static void write_config(text *to, const counts *n)
{
    text_add(to, "# Nominal, not measured\n%d # cores\n%d # NUMA nodes\n%d # CUDA\n", n->cores, n->nodes, n->gpus);
    for (int other = 0; other < 8; other++) /* no device of another kind */
        text_add(to, "0\n");
}

/* A line for each GPU: its number, and the NUMA nodes from the nearest on. */
static void write_affinity(text *to, const counts *n)
{
    text_add(to, "# GPU\tNUMA0\n"); /* StarPU looks for these words */
    for (int g = 0; g < n->gpus; g++) {
        text_add(to, "%d", g);
        for (int i = 0; i < n->nodes; i++)
            text_add(to, "\t%d", i);
        text_add(to, "\n");
    }
}

/* The same figure between any two memories. */
static void write_matrix(text *to, const counts *n, int figure)
{
    const int all = n->nodes + n->gpus;
    for (int i = 0; i < all; i++)
        for (int k = 0; k < all; k++)
            text_add(to, "%d%s", i == k ? 0 : figure, k + 1 < all ? "\t" : "\n");
}

static void write_bandwidth(text *to, const counts *n)
{
    write_matrix(to, n, MBPS);
}

static void write_latency(text *to, const counts *n)
{
    write_matrix(to, n, LATENCY);
}

/* SimGrid's, which StarPU writes for others and never reads here. */
static void write_platform(text *to, const counts *n)
{
    (void)n;
    text_add(to, "<!-- nominal figures have no platform -->\n");
}

/* A file appears whole or not at all, since several ranks write it. */
static bool write_file(const char *path, const text *content)
{
    text other = {0};
    text_add(&other, "%s.%d", path, (int)getpid());
    FILE *file = fopen(other.at, "w");
    bool good = file && fputs(content->at, file) >= 0;
    good = file && !fclose(file) && good;
    good = good && !rename(other.at, path);
    if (!good)
        unlink(other.at);
    free(other.at);
    return good;
}

/* StarPU's name of this machine. */
static void name_host(char *name, size_t room)
{
    const char *given = getenv("STARPU_HOSTNAME");
    if (given)
        snprintf(name, room, "%s", given);
    else if (gethostname(name, room))
        snprintf(name, room, "localhost");
    name[room - 1] = 0;
    name[strcspn(name, ".")] = 0;
}

static bool write_figures(const char *folder, const counts *n)
{
    /* the counts last: StarPU looks for that file first */
    static const struct {
        const char *kind;
        void (*write)(text *to, const counts *n);
    } files[] = {{"affinity", write_affinity},     {"bandwidth", write_bandwidth},      {"latency", write_latency},
                 {"platform.xml", write_platform}, {"platform.v4.xml", write_platform}, {"config", write_config}};
    char host[65];
    bool good = true;
    name_host(host, sizeof host);
    for (size_t i = 0; i < sizeof files / sizeof *files && good; i++) {
        text path = {0}, content = {0};
        text_add(&path, "%s/bus/%s.%s", folder, host, files[i].kind);
        files[i].write(&content, n);
        good = !access(path.at, R_OK) || write_file(path.at, &content);
        free(path.at);
        free(content.at);
    }
    return good;
}

/* Whether the user wants measured figures, or has said where they are. */
static bool is_measured(void)
{
    static const char *const variables[] = {"STARPU_SCHED", "STARPU_BUS_CALIBRATE", "STARPU_PERF_MODEL_DIR",
                                            "STARPU_HWLOC_INPUT", "STARPU_MPI_HOSTNAMES"};
    bool any = false;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        any = any || (getenv(variables[i]) && *getenv(variables[i]));
    return any;
}

void bus_prepare(const trama_context *c, int gpus)
{
    const counts n = count(c, gpus);
    text folder = {0}, bus = {0};
    if (is_measured())
        return;
    text_add(&folder, "%s/.starpu/nominal-%d-%d-%d", getenv("STARPU_HOME"), n.cores, n.nodes, n.gpus);
    text_add(&bus, "%s/bus", folder.at);
    mkdir(folder.at, S_IRWXU);
    mkdir(bus.at, S_IRWXU);
    if (write_figures(folder.at, &n))
        environment_set("STARPU_PERF_MODEL_DIR", folder.at, false);
    free(folder.at);
    free(bus.at);
}

#else

void bus_prepare(const trama_context *c, int gpus)
{
    (void)c, (void)gpus;
}

#endif
