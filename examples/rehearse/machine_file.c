/* SPDX-License-Identifier: Apache-2.0 */
/* Machine files and reports. */
#include "machine_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"
#include "node_topology.h"

enum { MOST_BYTES = 1 << 24, RUNS = 12, BUILTIN_RANKS = 4096 };

static const char builtin[] = "kind node\n"
                              "  cores 16\n"
                              "  core f32 60Gflop/s\n"
                              "  core f64 30Gflop/s\n"
                              "  core memory 8GB/s\n"
                              "  task 3us\n"
                              "  submit 1us\n"
                              "  message 3us\n"
                              "  local 10GB/s 1us\n"
                              "switch all\n"
                              "nodes %d node in all 25GB/s 1us\n"; /* 1 us up and 1 us down */

/* The caller frees. */
static char *read_file(const char *name)
{
    FILE *file = fopen(name, "r");
    if (!file)
        fail("machine '%s': %s", name, strerror(errno));
    char *text = must_allocate(MOST_BYTES + 1, 1);
    const size_t n = fread(text, 1, MOST_BYTES, file);
    if (ferror(file) || n == MOST_BYTES)
        fail("machine '%s': %s", name, ferror(file) ? strerror(errno) : "the file is larger than 16 MiB");
    fclose(file);
    return text;
}

trama_cluster *machine_read(const char *name, int ranks)
{
    trama_cluster *made = NULL;
    char *text;
    if (strcmp(name, "builtin")) {
        char *given = read_file(name);
        text = with_topologies(name, given);
        free(given);
    } else {
        text = must_allocate(sizeof builtin + 16, 1);
        snprintf(text, sizeof builtin + 16, builtin, ranks);
    }
    if (trama_cluster_create(text, &made))
        fail("machine '%s': %s", name, trama_error());
    free(text);
    return made;
}

void choose_layouts(trama_target *target, const trama_cluster *cluster, trama_auto_options options, bool speaks)
{
    char *table;
    options.size = sizeof options;
    must(trama_auto_shard(target, cluster, &options, &table));
    if (speaks)
        fputs(table, stdout);
    trama_text_free(&table);
}

void rehearse_and_print(const trama_target *target, const char *machine, trama_rehearsal_options options)
{
    trama_cluster *cluster = machine_read(machine, BUILTIN_RANKS);
    options.size = sizeof options;
    options.runs = RUNS;
    trama_rehearsal *rehearsal = NULL;
    char *text;
    must(trama_rehearse(target, cluster, &options, &rehearsal));
    must(trama_rehearsal_text(rehearsal, &text));
    fputs(text, stdout);
    trama_text_free(&text);
    trama_rehearsal_destroy(&rehearsal);
    trama_cluster_destroy(&cluster);
}
