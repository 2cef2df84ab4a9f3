/* SPDX-License-Identifier: Apache-2.0 */
/* The form in which one change of layout is made, chosen once from meshes, layouts and sizes. Plans follow this choice;
 * completion and the estimate of traffic count by it. */
#ifndef CHOOSE_H
#define CHOOSE_H

#include "collective_choice.h"

typedef enum {
    RESHARD_IN_PLACE,   /* every process has the whole tensor: no messages */
    RESHARD_DIRECT,     /* holders send boxes, or terms, to targets; see transfer_is_scattered and transfer_is_sliced */
    RESHARD_COLLECTIVE, /* GPUs make it by collectives */
    RESHARD_NEW_KIND,   /* by a route: terms become terms of another kind; each process sums a slice, its new term */
    RESHARD_TWO_HOPS,   /* by a route, since directly a process would send many small messages */
    RESHARD_SLICED_SUM, /* by a route: each process of the source sums a slice, and targets take parts of these */
} reshard_form;

/* The route of which a change is a hop. One of two hops splits again above MANY_IN_A_HOP messages, not MANY_MESSAGES;
 * no hop sums by slices. */
typedef enum { PART_OF_NOTHING, PART_OF_SLICED_SUM, PART_OF_TWO_HOPS } reshard_part;

/* Two changes of layout in place of one. from and to are those of the transfer, or the same distributed values written
 * on another mesh. */
typedef struct route {
    const trama_mesh *from_mesh, *mesh, *to_mesh;
    trama_layout from, between, to;
    trama_mesh *owned; /* mesh, where it was made for this route; else NULL */
} route;

typedef struct reshard_choice {
    reshard_form form;
    transfer t;  /* kept also has the axes whose lines sum on their own */
    route route; /* of the forms that have one; the caller owns route.owned */
    collective_choice collective;
} reshard_choice;

/* Facts besides the transfer that decide the form. */
typedef struct reshard_setting {
    bool distinct; /* each process of both meshes has a place of its own; else only RESHARD_NEW_KIND takes a route */
    reshard_part within;
    bool collectives; /* each target process has a GPU of its own, and these can run collectives */
    bool nccl_sums;   /* and may sum in any order */
    int root;         /* with collectives; as find_collective takes it */
} reshard_setting;
reshard_choice reshard_choose(const transfer *t, const reshard_setting *s);

/* The transfer as a direct change makes it. */
transfer reshard_directly(const transfer *t, bool distinct);

static inline bool reshard_has_route(const reshard_choice *c)
{
    return c->route.mesh != NULL;
}

/* The part that each hop of a route is, where the whole change is a part of `within`. */
reshard_part reshard_hop_of(const reshard_choice *c, reshard_part within);

/* Both hops of a route. */
typedef struct route_hops {
    transfer to, from;
} route_hops;
route_hops route_hops_of(const route *r, const transfer *t);

/* The most bytes that a process receives, where each process has a place of its own. */
int64_t reshard_most_bytes(const transfer *t);

#endif
