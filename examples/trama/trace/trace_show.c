/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "picture_parts.h"
#include "starvz.h"
#include "trace_output.h"
#include "trace_summary.h"

static const char *const results[] = {"paje.trace", "tasks.rec",  "data.rec",    "comms.rec",    "dag.dot",
                                      "papi.rec",   "starvz.png", "starvz.yaml", "timeline.svg", "trace.json"};
enum { N_RESULTS = sizeof results / sizeof *results };

static void write_files(const trace *t, const trace_picture *picture, const char *scratch)
{
    FILE *file = trace_output_open(scratch, "starvz.yaml");
    starvz_configure(t, file);
    trace_output_close(file, scratch, "starvz.yaml");
    trace_output_pictures(scratch, t, picture);
}

static void print_results(const trace_request *r)
{
    printf("\nwritten into %s:", r->out);
    for (int i = 0; i < N_RESULTS; i++)
        if (strcmp(results[i], "papi.rec") && strcmp(results[i], "starvz.png"))
            printf("%s %s", i ? "," : "", results[i]);
    puts("");
    fflush(stdout);
}

/* Where timeline.svg shows others than those that were asked for. */
static void print_unknown_steps(const trace *t, const trace_picture *asked)
{
    int n, found = 0;
    trace_step *steps = trace_steps(t, true, &n);
    for (int i = 0; i < n; i++)
        found += steps[i].number >= asked->first_step && steps[i].number <= asked->last_step;
    if (asked->first_step >= 0 && !found && n == 0)
        printf("the steps asked for are not in the trace, which has none\n");
    else if (asked->first_step >= 0 && !found)
        printf("the steps asked for are not in the trace, which has steps %ld to %ld: timeline.svg shows others\n",
               steps[0].number, steps[n - 1].number);
    free(steps);
}

void trace_show(const trace *t, const trace_request *r, const char *scratch)
{
    static const char *const picture[] = {"starvz.png"};
    write_files(t, &r->picture, scratch);
    trace_output_publish(scratch, r->out, N_RESULTS, results);
    trace_summarize(t, r->longest, stdout);
    print_results(r);
    print_unknown_steps(t, &r->picture);
    if (!r->no_starvz && starvz_draw(t, r->out, scratch, stdout))
        trace_output_publish(scratch, r->out, 1, picture);
}
