/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the verifier that checks which calls of a step are done as one (fused.h). */
#ifndef VERIFY_CALLS_H
#define VERIFY_CALLS_H

#include "plan.h"

/* Verifies all runs of fused calls of a plan, and the values that a step keeps to itself: see verify_plan.h. */
trama_status calls_verify(const plan *p, const trama_program *program);

#endif
