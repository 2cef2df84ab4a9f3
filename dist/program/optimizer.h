/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules that are here know beyond trama_optimizer.h. */
#ifndef OPTIMIZER_H
#define OPTIMIZER_H

#include "program.h"
#include "trama_optimizer.h"

/* Whether the step is taken: 0-d, u8. Updates do nothing where it is 0. */
trama_value *updates_apply(const trama_update *update);

/* Whether every step is taken, and at one learning rate, *lr. */
bool updates_are_constant(const trama_update *update, double *lr);

#endif
