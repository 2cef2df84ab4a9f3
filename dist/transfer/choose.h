/* SPDX-License-Identifier: Apache-2.0 */
/* How one change of layout is made: decided once, from meshes, layouts and sizes. The plan makes it so; completion and
 * the estimate of traffic count it so. */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "collective_choice.h"

typedef enum {
    RESHARD_IN_PLACE,   /* every process has the whole tensor: nobody sends */
    RESHARD_DIRECT,     /* holders send boxes, or terms, to targets; see transfer_is_scattered and transfer_is_sliced */
    RESHARD_COLLECTIVE, /* GPUs make it together */
    RESHARD_NEW_KIND,   /* by a route: terms become terms of another kind; each process sums a slice, its new term */
    RESHARD_TWO_HOPS,   /* by a route: each process would send many small messages */
    RESHARD_SLICED_SUM, /* by a route: the processes of the source sum a slice each, from which targets take theirs */
} reshard_form;

/* What a change is a part of: a hop of two is split again where it has few messages, and neither hop sums by slices. */
typedef enum { PART_OF_NOTHING, PART_OF_SLICED_SUM, PART_OF_TWO_HOPS } reshard_part;

/* Two changes of layout for one. from and to are those of the transfer, or the same distributed values on another mesh.
 */
typedef struct route {
    const trama_mesh *from_mesh, *mesh, *to_mesh;
    trama_layout from, between, to;
    trama_mesh *owned; /* mesh, where it was made for this; NULL */
} route;

typedef struct reshard_choice {
    reshard_form form;
    transfer t;  /* with lines of the mesh kept that sum on their own */
    route route; /* of the forms that have one; the caller owns route.owned */
    collective_choice collective;
} reshard_choice;

/* What a change depends on besides its layouts. */
typedef struct reshard_setting {
    bool distinct; /* each process of both meshes has a place of its own; else no route but of a new kind is taken */
    reshard_part within;
    bool collectives; /* each target process has a GPU to itself, and these can exchange together */
    bool nccl_sums;   /* and sum in whatever order */
    int root;         /* with collectives; as find_collective takes it */
} reshard_setting;
reshard_choice reshard_choose(const transfer *t, const reshard_setting *s);

/* The change as it is made where it goes directly. */
transfer reshard_directly(const transfer *t, bool distinct);

static inline bool reshard_has_route(const reshard_choice *c)
{
    return c->route.mesh != NULL;
}

/* What the hops of a route are parts of, where the whole is a part of `within`. */
reshard_part reshard_hop_of(const reshard_choice *c, reshard_part within);

/* Both hops of a route. */
typedef struct route_hops {
    transfer to, from;
} route_hops;
route_hops route_hops_of(const route *r, const transfer *t);

/* The most bytes that any process receives, each having a place of its own. */
int64_t reshard_most_bytes(const transfer *t);

#endif
