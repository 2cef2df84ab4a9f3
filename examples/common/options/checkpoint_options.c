/* SPDX-License-Identifier: Apache-2.0 */
/* Saving and going on, the same in all programs that iterate. */
#include "checkpoint_options.h"

#include <stdio.h>

#include "arguments.h"
#include "must.h"

enum { KEY_SAVE = 0x2000, KEY_EVERY, KEY_KEEP, KEY_RESTART }; /* beyond the keys of the programs */

static int64_t written = -1; /* the step whose checkpoint may still be under way; -1: none */

static const struct argp_option options[] = {
    {"save", KEY_SAVE, "FOLDER", 0, "Save the state there at the end, as a checkpoint", 0},
    {"save-every", KEY_EVERY, "N", 0, "And every N steps, while the program goes on", 0},
    {"keep", KEY_KEEP, "N", 0, "Keep the newest N checkpoints (all)", 0},
    {"restart", KEY_RESTART, "FOLDER", 0, "Go on from the newest checkpoint there; without one, begin", 0},
    {0},
};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    checkpoint_options *o = state->input;
    switch (key) {
    case KEY_SAVE:
    case KEY_RESTART:
        if (!*text)
            argp_error(state, "--%s: takes the name of a folder", key == KEY_SAVE ? "save" : "restart");
        *(key == KEY_SAVE ? &o->save : &o->restart) = text;
        return 0;
    case KEY_EVERY:
        o->every = argument_integer(state, "--save-every", text, 1, INT64_C(1000000000000));
        return 0;
    case KEY_KEEP:
        o->keep = (int)argument_integer(state, "--keep", text, 1, 1 << 20);
        return 0;
    case ARGP_KEY_END:
        if (!o->save && (o->every || o->keep))
            argp_error(state, "--%s: without --save nothing is saved", o->every ? "save-every" : "keep");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp checkpoint_argp = {.options = options, .parser = parse_option};

int64_t checkpoint_restart(trama_executable *executable, const checkpoint_options *o, int64_t steps)
{
    trama_checkpoint *found = NULL;
    int64_t step = 0;
    if (!o->restart)
        return 0;
    must(trama_load(executable, o->restart, &(trama_load_options){.states = o->states}, &found));
    if (found)
        step = trama_checkpoint_step(found);
    if (step > steps)
        fail("--restart %s: %s is of step %lld, and there are %lld steps to do", o->restart,
             trama_checkpoint_path(found), (long long)step, (long long)steps);
    trama_checkpoint_destroy(&found);
    return step;
}

/* Waits for the checkpoint under way, and tells that it is complete. */
static void wait_for_written(trama_context *context, trama_executable *executable)
{
    if (written < 0)
        return;
    must(trama_save_wait(executable));
    if (trama_context_rank(context) == 0)
        fprintf(stderr, "saved step %lld\n", (long long)written);
    written = -1;
}

void checkpoint_after(trama_context *context, trama_executable *executable, const checkpoint_options *o, int64_t done)
{
    if (!o->save || !o->every || done % o->every)
        return;
    wait_for_written(context, executable);
    must(trama_save(executable, o->save,
                    &(trama_save_options){.step = done, .keep = o->keep, .states = o->states, .asynchronous = true}));
    written = done;
}

void checkpoint_end(trama_context *context, trama_executable *executable, const checkpoint_options *o, int64_t done)
{
    const bool saved = written == done;
    wait_for_written(context, executable);
    if (!o->save || saved)
        return;
    must(trama_save(executable, o->save, &(trama_save_options){.step = done, .keep = o->keep, .states = o->states}));
    written = done;
    wait_for_written(context, executable);
}
