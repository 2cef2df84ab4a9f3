/* SPDX-License-Identifier: Apache-2.0 */
/* One option and one call, so that --auto is the same in all programs that have it. */
#include "auto_option.h"

#include "machine_file.h"

enum { KEY_AUTO = 0x3000 }; /* beyond the keys of the programs and of their other children */

static const struct argp_option options[] = {
    {"auto", KEY_AUTO, "MACHINE", 0,
     "Instead of --mesh: choose mesh and layouts by the times that this job's ranks would take on the machine of a "
     "file (trama calibrate writes one), or builtin; print a table",
     0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    const char **machine = state->input;
    if (key != KEY_AUTO)
        return ARGP_ERR_UNKNOWN;
    if (!*text)
        argp_error(state, "--auto: takes the name of a file, or builtin");
    *machine = text;
    return 0;
}

const struct argp auto_argp = {.options = options, .parser = parse_option};

void auto_check(const struct argp_state *state, const char *machine, trama_mesh **mesh)
{
    if (machine && *mesh)
        argp_error(state, "--mesh and --auto: --auto chooses the mesh; leave one of them out");
    if (!machine && !*mesh)
        *mesh = trama_mesh_create("1");
}

void auto_choose(trama_context *context, trama_target *target, const char *machine, int64_t fed)
{
    const int ranks = trama_context_ranks(context);
    if (!machine)
        return;
    trama_cluster *cluster = machine_read(machine, ranks);
    choose_layouts(target, cluster, (trama_auto_options){.processes = ranks, .any = fed},
                   trama_context_rank(context) == 0);
    trama_cluster_destroy(&cluster);
}
