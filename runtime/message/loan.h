/* SPDX-License-Identifier: Apache-2.0 */
/* Messages without a copy, between ranks of one node that read each other's memory (node_memory.h): the receiver's
 * tasks read the elements where the sender has them. Each end counts in a cell of its rank's memory, which the other
 * one reads: the sender how often the elements were there, the receiver how often its readers were done. Idle workers
 * look at the cells, and workers that have ended a task. */
#ifndef LOAN_H
#define LOAN_H

#include "message.h"

/* One end of a message that is posted again and again. */
typedef struct loan loan;

/* The cell of an end, for the other one: where it lies, and its count now. */
typedef struct loan_cell {
    int64_t at;
    uint64_t count;
} loan_cell;

/* NULL where the node's memory has no room. bytes: of the elements. */
loan *loan_make(trama_context *c, size_t bytes);
void loan_end(loan **l); /* nothing in flight; NULL is allowed */

/* Tells the ends of each other, before the first post. */
loan_cell loan_here(const loan *l);
void loan_meet(loan *l, int rank, loan_cell there);

/* In place of message_send: tasks that write the handle wait until the receiver's readers are done. The envelope's tag
 * and priority have no meaning for loans. */
void loan_give(trama_context *c, loan *l, starpu_data_handle_t handle, envelope m, fence *f);

/* In place of message_receive: handle is of a shard of shard_borrow. loan_return comes behind all its readers. */
void loan_take(trama_context *c, loan *l, starpu_data_handle_t handle, envelope m, fence *f);
void loan_return(loan *l, starpu_data_handle_t handle, fence *f);

#endif
