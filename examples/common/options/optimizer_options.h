/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command that trains: the optimizer, its rate, clipping and scaling of gradients. */
#ifndef EXAMPLES_OPTIMIZER_OPTIONS_H
#define EXAMPLES_OPTIMIZER_OPTIONS_H

#include <argp.h>
#include <stdint.h>

#include "trama.h"

/* Choices of the command line; zeros: none, which is adamw at its usual rate. */
typedef struct optimizer_options {
    int optimizer, schedule;
    double lr, momentum, clip, loss_scale;
    int64_t warmup;
} optimizer_options;

/* A child of a command's parser; its input is an optimizer_options, zeroed. */
extern const struct argp optimizer_argp;

/* The optimizer for a training of so many steps, over which its schedule goes. */
trama_optimizer optimizer_chosen(const optimizer_options *options, int64_t steps);

#endif
