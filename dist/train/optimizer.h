/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the optimizers share, not public. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "program.h"
#include "trama_optimizer.h"

/* Whether every step is taken and the learning rate is constant; sets *lr to the optimizer's rate. */
bool updates_are_constant(const trama_update *update, double *lr);

/* A trained parameter, its gradient (NULL without one), and its optimizer. */
typedef struct trained {
    trama_value *parameter, *gradient;
    const trama_optimizer *optimizer;
} trained;
typedef ARRAY(trained) trained_list;

/* Lists the parameters that the optimizer trains, by its groups; false with an error for invalid options. */
bool optimizer_trains(trama_where where, trama_program *p, const trama_optimizer *optimizer, trained_list *list);

#endif
