/* SPDX-License-Identifier: Apache-2.0 */
/* trama trace: shows a run, from the events that it left in a folder. */
#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"
#include "trace_build.h"
#include "trace_convert.h"
#include "trace_output.h"
#include "trace_read.h"
#include "trace_show.h"

enum { OPTION_LONGEST = 256, OPTION_OUT, OPTION_NO_STARVZ, OPTION_STEPS, MOST_LONGEST = 1000 };

static const struct argp_option options[] = {
    {"longest", OPTION_LONGEST, "N", 0, "so many of the tasks that workers waited for longest (10)", 0},
    {"out", OPTION_OUT, "FOLDER", 0, "where the results go (the folder of the trace)", 0},
    {"steps", OPTION_STEPS, "N[-N]", 0, "the steps that timeline.svg shows (some from the middle)", 0},
    {"no-starvz", OPTION_NO_STARVZ, NULL, 0, "do not run StarVZ", 0},
    {0}};

static const char doc[] =
    "Shows a run, from the events that it left in FOLDER: run a program with TRAMA_TRACE=FOLDER, then this.\v"
    "Prints a summary: the makespan and its bounds, the workers' time by role, op and place, bytes moved, the "
    "part of communication that is hidden behind computation, and the tasks that workers waited for longest, with "
    "the causes.\n\n"
    "Writes into FOLDER\n"
    "  paje.trace, tasks.rec, data.rec, comms.rec, dag.dot   for StarVZ and ViTE\n"
    "  timeline.svg  tasks and messages of some steps, for browsers\n"
    "  trace.json    the whole of it for ui.perfetto.dev and chrome://tracing\n"
    "  starvz.yaml   StarVZ's configuration, with a colour for each op\n"
    "  starvz.png    StarVZ's picture, where it is installed\n\n"
    "The files of all ranks must lie in FOLDER. The trace of an interrupted run is shown, with a list of missing "
    "parts. A folder of another StarPU program's prof_file_* is read as well. TRAMA_FXT_TOOL=FILE is the "
    "starpu_fxt_tool to be used.";

typedef struct request {
    const char *folder;
    trace_request how;
} request;

/* "3" or "3-7" */
static trace_picture read_steps(const struct argp_state *state, const char *text)
{
    char *end = (char *)text;
    errno = 0;
    long first = strtol(text, &end, 10), last = first;
    bool well = isdigit((unsigned char)*text);
    if (well && *end == '-') {
        well = isdigit((unsigned char)end[1]);
        last = strtol(end + 1, &end, 10);
    }
    if (!well || *end || errno)
        argp_error(state, "--steps '%s': takes a step, as in 3, or the first and the last one, as in 3-7", text);
    if (last < first)
        argp_error(state, "--steps '%s': the last step is before the first", text);
    return (trace_picture){first, last};
}

static const char *read_folder(const struct argp_state *state, const char *what, const char *text)
{
    if (!*text)
        argp_error(state, "%s '': takes the name of a folder, and this one is empty", what);
    return text;
}

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    request *r = state->input;
    switch (key) {
    case OPTION_LONGEST:
        r->how.longest = (int)argument_integer(state, "--longest", text, 0, MOST_LONGEST);
        return 0;
    case OPTION_OUT:
        r->how.out = read_folder(state, "--out", text);
        return 0;
    case OPTION_STEPS:
        r->how.picture = read_steps(state, text);
        return 0;
    case OPTION_NO_STARVZ:
        r->how.no_starvz = true;
        return 0;
    case ARGP_KEY_ARG:
        if (r->folder)
            argp_error(state, "'%s': there is one FOLDER only", text);
        r->folder = read_folder(state, "FOLDER", text);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "the FOLDER of a trace is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Makes all files in the scratch folder, so that a file with its final name is whole. */
static int look_at_trace(const char *scratch, void *closure)
{
    const request *r = closure;
    trace t = {.n_ranks = 0};
    trace_folder folder;
    trace_folder_read(&folder, r->folder, &t);
    trace_read(scratch, trace_convert(&folder, scratch, &t), &t);
    trace_folder_compare(&folder, &t);
    trace_show(&t, &r->how, scratch);
    trace_destroy(&t);
    trace_folder_destroy(&folder);
    return EXIT_SUCCESS;
}

int command_trace(int argc, char **argv)
{
    const struct argp parser = {.options = options, .parser = parse_option, .args_doc = "FOLDER", .doc = doc};
    request r = {.how = {.longest = 10, .picture = {-1, -1}}};
    argp_parse(&parser, argc, argv, 0, NULL, &r);
    r.how.out = r.how.out ? r.how.out : r.folder;
    return trace_output_work(r.how.out, look_at_trace, &r);
}
