/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the optimizers share beyond trama_optimizer.h. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "program.h"
#include "trama_optimizer.h"

/* Whether every step is taken, and at one learning rate, *lr. */
bool updates_are_constant(const trama_update *update, double *lr);

/* A parameter that is trained, its gradient (NULL where there is none), and what updates it. */
typedef struct trained {
    trama_value *parameter, *gradient;
    const trama_optimizer *optimizer;
} trained;
typedef ARRAY(trained) trained_list;

/* Lists what the optimizer trains, by its groups; false with an error where its options make no sense. */
bool optimizer_trains(trama_where where, trama_program *p, const trama_optimizer *optimizer, trained_list *list);

#endif
