/* SPDX-License-Identifier: Apache-2.0 */
/* The command trama: finds the subcommand and hands it the rest of the line. */
#define _GNU_SOURCE /* program_invocation_short_name */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "must.h"

static const struct command {
    const char *name, *purpose;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"calibrate", "measures this machine, for trama rehearse", command_calibrate},
    {"checkpoint", "the states in a checkpoint: listed, verified, compared, as arrays of NumPy", command_checkpoint},
    {"info", "the version of Trama, and its use of this machine", command_info},
    {"layout", "the boxes of a tensor on each process, in words and drawn", command_layout},
    {"onnx", "an ONNX model on a mesh: its layouts, its plan, its results", command_onnx},
    {"rehearse", "a model of any size on a described machine: time, messages, memory, critical path", command_rehearse},
    {"reshard", "the messages of a change of layout, and the lower bound of their bytes", command_reshard},
    {"rule", "the layouts that an op computes on, given some of them", command_rule},
    {"trace", "a summary and pictures of a run, from its trace", command_trace},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "trama %s\n", trama_version());
}

void (*argp_program_version_hook)(FILE *, struct argp_state *) = print_version;

/* The commands, for the end of --help. */
static char *command_list(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)text;
    char *list = must_allocate(64 + 128 * N_COMMANDS, 1);
    strcpy(list, "Commands, each with a --help of its own:");
    for (int i = 0; i < N_COMMANDS; i++)
        sprintf(list + strlen(list), "\n  %-10s %.100s", commands[i].name, commands[i].purpose);
    return list;
}

static const struct command *find_command(struct argp_state *state, const char *name)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    argp_error(state, "there is no command '%s'", name);
    return NULL;
}

typedef struct chosen {
    const struct command *command;
    int at; /* its place in argv */
} chosen;

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    chosen *c = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        c->command = find_command(state, text);
        c->at = state->next - 1;
        state->next = state->argc; /* the rest is the command's */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a command is missing");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    const struct argp parser = {.parser = parse_option,
                                .args_doc = "COMMAND [ARGUMENT...]",
                                .doc = "Looks at Trama from the outside.\v",
                                .help_filter = command_list};
    chosen c = {.command = NULL};
    argp_parse(&parser, argc, argv, ARGP_IN_ORDER, NULL, &c);
    char name[64];
    snprintf(name, sizeof name, "%s %s", program_invocation_short_name, c.command->name);
    argv[c.at] = name;
    return c.command->run(argc - c.at, argv + c.at);
}
