/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules that are here know beyond trama_optimizer.h. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "program.h"
#include "trama_optimizer.h"

/* Whether every step is taken, and at one learning rate, *lr. */
bool updates_are_constant(const trama_update *update, double *lr);

#endif
