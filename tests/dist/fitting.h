/* SPDX-License-Identifier: Apache-2.0 */
/* A fit of descent.h with an optimizer, interpreted on simulated ranks. */
#ifndef FITTING_H
#define FITTING_H

#include "descent.h"
#include "trama_ops.h"

#define TOLERANCE 1e-10

static inline fit_run run_new(const fit_layout *l, const trama_optimizer *o, const plain_fit *data, int ranks,
                              int variant)
{
    fit f = fit_new(l, TRAMA_F64);
    return fit_run_new(f, trama_target_create(f.program, "train", trama_minimize(f.loss, o), f.loss), data, ranks,
                       variant);
}

#endif
