/* SPDX-License-Identifier: Apache-2.0 */
/* The optimizers and schedules that can be chosen, and their options. */
#include "optimizer_options.h"

#include <string.h>

#include "arguments.h"

enum { KEY_OPTIMIZER = 1024, KEY_LR, KEY_MOMENTUM, KEY_CLIP, KEY_SCHEDULE, KEY_WARMUP, KEY_LOSS_SCALE };

static const struct argp_option options_of_argp[] = {
    {"optimizer", KEY_OPTIMIZER, "NAME", 0, "adamw (the default), adam, lamb or sgd", 0},
    {"lr", KEY_LR, "X", 0, "Learning rate (adamw, adam: 1e-3, lamb: 1e-2, sgd: 0.1)", 0},
    {"momentum", KEY_MOMENTUM, "X", 0, "Of sgd, from 0 and below 1 (0)", 0},
    {"clip", KEY_CLIP, "NORM", 0, "Scale gradients so that their norm is at most NORM", 0},
    {"schedule", KEY_SCHEDULE, "NAME", 0,
     "Of the rate over all steps: constant (the default); cosine, to 0; step, to a tenth after each third; one-cycle",
     0},
    {"warmup", KEY_WARMUP, "N", 0, "Steps in which the rate rises before that (0)", 0},
    {"loss-scale", KEY_LOSS_SCALE, "X", 0, "Scale the loss, by X at first; leave out steps that are not finite", 0},
    {0},
};

static const char *const names[] = {"adamw", "adam", "lamb", "sgd"};
static const struct {
    trama_optimizer (*make)(double lr);
    double lr;
} optimizers[] = {{trama_adamw, 1e-3}, {trama_adam, 1e-3}, {trama_lamb, 1e-2}, {trama_sgd, 0.1}};
enum { N_OPTIMIZERS = sizeof optimizers / sizeof *optimizers, SGD = N_OPTIMIZERS - 1 };

typedef enum { CONSTANT, COSINE, STAIRS, ONE_CYCLE } schedule_kind;
static const char *const schedules[] = {"constant", "cosine", "step", "one-cycle"};

static error_t parse_option(int key, char *text, struct argp_state *state)
{
    optimizer_options *o = state->input;
    switch (key) {
    case KEY_OPTIMIZER:
        o->optimizer = argument_word(state, "--optimizer", text, N_OPTIMIZERS, names);
        return 0;
    case KEY_LR:
        o->lr = argument_positive(state, "--lr", text);
        return 0;
    case KEY_MOMENTUM:
        o->momentum = argument_number(state, "--momentum", text);
        if (o->momentum < 0 || o->momentum >= 1)
            argp_error(state, "--momentum '%s': takes a number from 0 and below 1", text);
        return 0;
    case KEY_CLIP:
        o->clip = argument_positive(state, "--clip", text);
        return 0;
    case KEY_SCHEDULE:
        o->schedule = argument_word(state, "--schedule", text, sizeof schedules / sizeof *schedules, schedules);
        return 0;
    case KEY_WARMUP:
        o->warmup = argument_integer(state, "--warmup", text, 0, INT64_C(1000000000000));
        return 0;
    case KEY_LOSS_SCALE:
        o->loss_scale = argument_positive(state, "--loss-scale", text);
        return 0;
    case ARGP_KEY_END:
        if (o->momentum > 0 && o->optimizer != SGD)
            argp_error(state, "--momentum: %s has none; --optimizer sgd has", names[o->optimizer]);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp optimizer_argp = {.options = options_of_argp, .parser = parse_option};

static trama_schedule schedule_over(schedule_kind kind, int64_t steps)
{
    switch (kind) {
    case COSINE:
        return trama_schedule_cosine(steps, 0);
    case STAIRS:
        return trama_schedule_step((steps + 2) / 3, 0.1);
    case ONE_CYCLE:
        return trama_schedule_one_cycle(steps > 1 ? steps : 2);
    default:
        return trama_schedule_constant(0);
    }
}

trama_optimizer optimizer_chosen(const optimizer_options *o, int64_t steps)
{
    trama_optimizer optimizer = optimizers[o->optimizer].make(o->lr > 0 ? o->lr : optimizers[o->optimizer].lr);
    int64_t rest = steps > o->warmup ? steps - o->warmup : 1;
    optimizer.momentum = o->momentum;
    if (o->clip > 0)
        optimizer.clip_norm = o->clip;
    optimizer.schedule = schedule_over((schedule_kind)o->schedule, rest);
    optimizer.schedule.warmup = o->warmup;
    if (o->loss_scale > 0) {
        optimizer.loss_scale = trama_loss_scale_dynamic();
        optimizer.loss_scale.initial = o->loss_scale;
    }
    return optimizer;
}
