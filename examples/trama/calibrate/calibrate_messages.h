/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between ranks of one node, and memory that ranks lend each other, for trama calibrate. */
#ifndef EXAMPLES_CALIBRATE_MESSAGES_H
#define EXAMPLES_CALIBRATE_MESSAGES_H

#include "calibrate_programs.h"

/* Writes the lines message, op message, op lent and local, where there are several ranks. */
void measure_messages(const calibration *c);

#endif
