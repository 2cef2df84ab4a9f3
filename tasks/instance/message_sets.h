/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of a plan's messages, as numbers: equal numbers are equal sets. */
#ifndef MESSAGE_SETS_H
#define MESSAGE_SETS_H

#include "base.h"
#include "hash_table.h"

enum { NO_MESSAGES = 0 }; /* the empty set */

typedef struct message_sets {
    int words;            /* of a set, a bit for each message */
    int n;                /* sets, the empty one among them */
    ARRAY(uint64_t) bits; /* [n][words] */
    hash_table by_bits;
    int unknown; /* of sets for which there is no memory: negative numbers, each equal to itself alone */
} message_sets;

message_sets message_sets_begin(int n_messages);
void message_sets_end(message_sets *s);

/* The set and one more message, 0 <= message < n_messages. */
int message_sets_with(message_sets *s, int set, int message);
int message_sets_union(message_sets *s, int a, int b);

#endif
