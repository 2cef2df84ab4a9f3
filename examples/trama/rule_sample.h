/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all ops. */
#ifndef EXAMPLES_RULE_SAMPLE_H
#define EXAMPLES_RULE_SAMPLE_H

#include <argp.h>

/* Prints a line for each op: its name, "operands -> results", which dims of its operands may be split in a sample call,
 * its attributes. state: for messages. */
void list_ops(const struct argp_state *state);

#endif
