/* SPDX-License-Identifier: Apache-2.0 */
/* A wrapped tensor: its boxes on all ranks, its instance, its users. */
#ifndef WRAP_H
#define WRAP_H

#include "executable.h"
#include "trama_wrap.h"

struct trama_wrapped {
    trama_context *context;
    context_tenant tenant; /* its entry in the context, until trama_release */
    char *name;
    trama_dtype dtype;
    trama_shape shape;
    bool read_only, complete; /* complete: the boxes cover the tensor */
    bool released;            /* by the user; executables may still refer to it */
    int users; /* the user until trama_release, executables that have seen it, and tensors that have moves from it; the
                  last one frees it */
    box_index user_boxes;
    planning planning;
    compiled_program *s; /* a program of one value, in the user boxes */
    instance *in;
    fence *f;                       /* moves into and out of it */
    const trama_executable *writer; /* the executable whose value was last read into it; NULL */
    plan_cache moves;               /* plans of moves into it from other wrapped tensors */
    ARRAY(trama_wrapped *) sources; /* these tensors, held */
    trama_traffic last;             /* traffic of the last move */
};

/* wrap_boxes.c: checks name, dtype, shape and this rank's boxes; then gathers the boxes of all ranks into user_boxes,
 * in the same order on all ranks (collective). */
trama_status boxes_check(trama_where where, const trama_wrapped *w, int n, const trama_host_box *pieces);
trama_status boxes_gather(trama_where where, trama_wrapped *w, int n, const trama_host_box *pieces);
/* The strides of a box: row-major where all given ones are 0. */
void boxes_strides(const trama_host_box *piece, int ndim, int64_t *stride);

/* wrap_memory.c: finds two of a rank's boxes [n] of elements of `size` bytes that share an element in memory; the boxes
 * are right on their own. Sorts the boxes, and compares those whose areas meet: exactly where their strides are equal;
 * else it may give up after many steps, and finds no pair then. */
bool boxes_share_memory(int n, const trama_host_box *pieces, int ndim, size_t size, int *one, int *other);

/* Begins a collective call on a wrapped tensor, by context_call; `to` names the target of a move, or is NULL.
 * wrap_agree does so for trama_wrap, and gives all ranks the error that one rank found in its boxes. */
trama_status wrapped_call(trama_where where, trama_context *context, const char *call, const char *name,
                          const char *to);
trama_status wrap_agree(trama_where where, trama_context *context, const char *name, trama_status mine);

/* Checks that the tensor is not NULL, not released and of this context (NULL: any). */
trama_status wrapped_check(trama_where where, const char *call, const trama_wrapped *w, const trama_context *context);

/* Notes that the executable uses the tensor. It lets go of it when it is destroyed, or when it sees another tensor
 * after this one was released. */
void wrapped_seen(trama_executable *e, trama_wrapped *w);

/* Notes that w has moves from another tensor. */
void wrapped_source(trama_wrapped *w, trama_wrapped *from);
void wrapped_forget_sources(trama_wrapped *w); /* forgets the sources that were released */

#endif
