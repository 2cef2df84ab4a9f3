/* SPDX-License-Identifier: Apache-2.0 */
/* One parser and one printer, so that these options are the same everywhere. */
#include "run_options.h"

#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "machine_file.h"

enum { KEY_PLAN = 0x1000, KEY_TRACE, KEY_DEVICE, KEY_REHEARSE }; /* beyond the keys of the programs */

static const char *machine; /* of --rehearse; a process has one command line */

static const struct argp_option options[] = {
    {"plan", KEY_PLAN, "FORM", OPTION_ARG_OPTIONAL,
     "Print the plan of a run on rank 0, and stop: table (the default), steps, or dot for Graphviz", 0},
    {"rehearse", KEY_REHEARSE, "MACHINE", 0,
     "Simulate runs on the machine that a file describes (see trama rehearse --help), on rank 0, and stop", 0},
    {"device", KEY_DEVICE, "KIND", 0,
     "Run on the cores (cpu, the default), on the GPUs (gpu), or on both as places of one mesh (auto)", 0},
    {"trace", KEY_TRACE, "FOLDER", 0, "Record tasks and messages with their times, for: trama trace FOLDER", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    static const char *const forms[] = {"table", "steps", "dot"};
    plan_form *form = state->input;
    switch (key) {
    case KEY_PLAN:
        *form = PLAN_TABLE + (text ? argument_word(state, "--plan", text, 3, forms) : 0);
        return 0;
    case KEY_REHEARSE:
        if (!*text)
            argp_error(state, "--rehearse: takes the name of a file, or builtin");
        *form = PLAN_REHEARSAL;
        machine = text;
        return 0;
    case KEY_DEVICE:
        argument_device(state, "--device", text);
        return 0;
    case KEY_TRACE:
        if (!*text)
            argp_error(state, "--trace: takes the name of a folder");
        setenv("TRAMA_TRACE", text, 1); /* trama_start reads it */
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp run_argp = {.options = options, .parser = parse_option};

/* ---- Alone ---- */

static error_t parse_alone(int key, char *text, struct argp_state *state)
{
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = state->input;
        return 0;
    default:
        return argument_unknown(key, text, state);
    }
}

plan_form plan_asked_for(int argc, char **argv, const char *doc)
{
    const struct argp_child children[] = {{.argp = &run_argp}, {0}};
    const struct argp parser = {.parser = parse_alone, .doc = doc, .children = children};
    plan_form form = PLAN_NONE;
    argp_parse(&parser, argc, argv, 0, NULL, &form);
    return form;
}

/* ---- Printing ---- */

void plan_rehearse(trama_context *context, const trama_target *target, trama_rehearsal_options how)
{
    if (trama_context_rank(context) == 0)
        rehearse_and_print(target, machine, how);
}

trama_status plan_print(trama_context *context, trama_executable *executable, const trama_target *target,
                        plan_form form, int64_t fed)
{
    char *text;
    if (form == PLAN_REHEARSAL) {
        plan_rehearse(context, target, (trama_rehearsal_options){.any = fed});
        return TRAMA_OK;
    }
    trama_status status = form == PLAN_DOT ? trama_plan_graph(executable, target, &text)
                                           : trama_plan_text(executable, target, form == PLAN_STEPS, &text);
    if (status)
        return status;
    if (trama_context_rank(context) == 0)
        fputs(text, stdout);
    trama_text_free(&text);
    return TRAMA_OK;
}
