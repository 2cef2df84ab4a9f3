/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout by chance: meshes of up to 64 processes and 4 axes, or of many, weighted, masked, partial, one
 * inside, across or beside the other, tensors of up to 1,200 elements, or 4,800, that divide by nothing. Equal seeds
 * give equal samples. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "change.h"

enum { MOST_PROCESSES = 64, MANY_PROCESSES = 400 };

/* How the processes of the target mesh lie to those of the source. */
typedef enum { SAME, REWEIGHTED, PERMUTED, CHILD, DISJOINT, OVERLAPPING, N_RELATIONS } relation;

typedef struct variety {
    bool partials, masks, one_place_each;
    bool many; /* up to MANY_PROCESSES processes, so that some changes go in two hops */
} variety;

typedef struct sample {
    change c;
    relation relation;
    trama_mesh *from, *to;
    machine *machine;
    process_map *map;
} sample;

sample sample_random(const variety *v, uint64_t *seed); /* moves the seed on */
void sample_free(sample *s);

#endif
