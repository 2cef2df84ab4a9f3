/* SPDX-License-Identifier: Apache-2.0 */
/* trama trace: what a run did, from the events that it left in a folder. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "starvz.h"
#include "trace_build.h"
#include "trace_convert.h"
#include "trace_output.h"
#include "trace_read.h"
#include "trace_summary.h"

enum { OPTION_LONGEST = 256, OPTION_OUT, OPTION_NO_STARVZ, MOST_LONGEST = 1000 };

static const struct argp_option options[] = {
    {"longest", OPTION_LONGEST, "N", 0, "so many of the tasks that workers waited for longest (10)", 0},
    {"out", OPTION_OUT, "FOLDER", 0, "where the results go (the folder of the trace)", 0},
    {"no-starvz", OPTION_NO_STARVZ, NULL, 0, "do not run StarVZ", 0},
    {0}};

static const char doc[] =
    "Shows what a run did, from the events that it left in FOLDER: run a program with TRAMA_TRACE=FOLDER, then this.\v"
    "Prints a summary: the makespan and its bounds, the workers' time by role, op and place, what is moved and how "
    "much "
    "of that is hidden behind computation, and the tasks that workers waited for longest, with what they waited "
    "for.\n\n"
    "Writes into FOLDER\n"
    "  paje.trace, tasks.rec, data.rec, comms.rec, dag.dot   for StarVZ and ViTE\n"
    "  starvz.yaml   StarVZ's configuration, with a colour for each op\n"
    "  starvz.png    StarVZ's picture, where it is installed\n\n"
    "The files of all ranks must lie in FOLDER. What an interrupted run left is shown, with what is missing. A folder "
    "of "
    "another StarPU program's prof_file_* is read as well. TRAMA_FXT_TOOL=FILE is the starpu_fxt_tool to be used.";

static const char *const results[] = {"paje.trace", "tasks.rec", "data.rec",   "comms.rec",
                                      "dag.dot",    "papi.rec",  "starvz.yaml"};
enum { N_RESULTS = sizeof results / sizeof *results };

typedef struct request {
    const char *folder, *out;
    int longest;
    bool no_starvz;
} request;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case OPTION_LONGEST:
        r->longest = (int)argument_integer(state, "--longest", text, 0, MOST_LONGEST);
        return 0;
    case OPTION_OUT:
        r->out = text;
        return 0;
    case OPTION_NO_STARVZ:
        r->no_starvz = true;
        return 0;
    case ARGP_KEY_ARG:
        if (r->folder)
            argp_error(state, "'%s': there is one FOLDER only", text);
        r->folder = text;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "the FOLDER of a trace is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void write_files(const trace *t, const char *scratch)
{
    FILE *file = trace_output_open(scratch, "starvz.yaml");
    starvz_configure(t, file);
    trace_output_close(file, scratch, "starvz.yaml");
}

static void print_results(const request *r)
{
    printf("\nwritten into %s:", r->out);
    for (int i = 0; i < N_RESULTS; i++)
        if (strcmp(results[i], "papi.rec"))
            printf("%s %s", i ? "," : "", results[i]);
    puts("");
    fflush(stdout);
}

/* All that is made here is in the scratch folder, so that what has its final name is whole. */
static int look_at_trace(const char *scratch, void *closure)
{
    static const char *const picture[] = {"starvz.png"};
    const request *r = closure;
    trace t = {.n_ranks = 0};
    trace_folder folder;
    trace_folder_read(&folder, r->folder, &t);
    trace_read(scratch, trace_convert(&folder, scratch, &t), &t);
    write_files(&t, scratch);
    trace_output_publish(scratch, r->out, N_RESULTS, results);
    trace_summarize(&t, r->longest, stdout);
    print_results(r);
    if (!r->no_starvz && starvz_draw(&t, r->out, scratch, stdout))
        trace_output_publish(scratch, r->out, 1, picture);
    trace_destroy(&t);
    trace_folder_destroy(&folder);
    if (fflush(stdout) || ferror(stdout))
        fail("the summary cannot be written");
    return EXIT_SUCCESS;
}

int command_trace(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .args_doc = "FOLDER", .doc = doc};
    request r = {.longest = 10};
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    r.out = r.out ? r.out : r.folder;
    return trace_output_work(r.out, look_at_trace, &r);
}
