/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes as a host states them. */
#ifndef STATING_H
#define STATING_H

#include "box_index.h"
#include "machine.h"

static inline void state_box(box_index *s, const machine *m, int rank, const box *b)
{
    int number = 0;
    for (int i = 0; i < s->at.n; i++)
        number += s->at.at[i].rank == rank;
    *ARRAY_PUSH(&s->at) = (indexed_box){.b = *b, .place = machine_first_place(m, rank), .rank = rank, .number = number};
}

#endif
