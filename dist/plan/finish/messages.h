/* SPDX-License-Identifier: Apache-2.0 */
/* The order of messages, which sender and receiver know alike. */
#ifndef MESSAGES_H
#define MESSAGES_H

/* Compares two plan_step ** of messages of one place. */
int messages_compare(const void *a, const void *b);

#endif
