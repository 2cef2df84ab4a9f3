/* SPDX-License-Identifier: Apache-2.0 */
/* trama info: the library, and its use of this machine. */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"
#include "commands.h"
#include "must.h"

enum { KEY_DEVICE = 256 };

static const struct argp_option options[] = {
    {"device", KEY_DEVICE, "KIND", 0, "As a program with TRAMA_DEVICE=KIND: cpu (the default), gpu or auto", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    if (key == KEY_DEVICE) {
        argument_device(state, "--device", text);
        return 0;
    }
    if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s': there are no arguments", text);
    return ARGP_ERR_UNKNOWN;
}

int command_info(int argc, char **argv)
{
    const struct argp parser = {.options = options,
                                .parser = parse_option,
                                .doc = "Says which Trama this is, what it was built with, and which cores, workers and "
                                       "places it uses here."};
    argp_parse(&parser, argc, argv, 0, NULL, NULL);
    trama_context *context = NULL;
    must(trama_start(NULL, &context));
    char *text = trama_context_describe(context);
    if (trama_context_rank(context) == 0)
        fputs(text, stdout);
    trama_text_free(&text);
    must(trama_stop(&context));
    return EXIT_SUCCESS;
}
