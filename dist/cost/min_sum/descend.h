/* SPDX-License-Identifier: Apache-2.0 */
/* Improves the states of a min_sum problem step by step. */
#ifndef DESCEND_H
#define DESCEND_H

#include "beliefs.h"

/* Changes one variable at a time, and its neighbours as suits them beside it, while that lessens the sum. The
 * neighbours matter where pairs forbid to change the variable alone. Between beliefs_start and beliefs_stop. Returns
 * how many sweeps over the variables it took. */
int descend(min_sum *m, int *state);

#endif
