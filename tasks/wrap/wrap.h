/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of what the host has wrapped: its boxes on all ranks, its instance, who uses it. */
#ifndef WRAP_H
#define WRAP_H

#include "executable.h"
#include "trama_wrap.h"

struct trama_wrapped {
    trama_context *context;
    context_tenant tenant; /* of it, until it is released */
    char *name;
    trama_dtype dtype;
    trama_shape shape;
    bool read_only, complete; /* complete: the boxes cover the tensor */
    bool released;            /* by the user; executables may still name it */
    int users;                /* the user, and executables that have seen it; the last one frees it */
    box_index user_boxes;
    planning planning;
    compiled_program *s; /* one value in the user boxes */
    instance *in;
    fence *f; /* moves into and out of it */
    const trama_executable *writer; /* whose value was last read into it; NULL */
    plan_cache moves;               /* into it from other wrapped tensors */
    ARRAY(trama_wrapped *) sources; /* those, which live as long */
    trama_traffic last;             /* what the last move cost */
};

/* wrap_boxes.c: whether name, dtype, shape and this rank's boxes can be; then the boxes of all ranks, in equal order on
 * all of them, into stated (collective). */
trama_status boxes_check(trama_where where, const trama_wrapped *w, int n, const trama_host_box *pieces);
trama_status boxes_gather(trama_where where, trama_wrapped *w, int n, const trama_host_box *pieces);
/* Strides as they are meant: row-major where none is given. */
void boxes_strides(const trama_host_box *piece, int ndim, int64_t *stride);

/* What a collective call on a wrapped tensor begins with, by the names of it and of what it goes to (NULL: to none): see
 * context_call. And trama_wrap: all ranks learn what is wrong with the boxes of one. */
trama_status wrapped_call(trama_where where, trama_context *context, const char *call, const char *name, const char *to);
trama_status wrap_agree(trama_where where, trama_context *context, const char *name, trama_status mine);

/* The wrapped tensor is there, its context the executable's, its dtype and shape those of a value: else an error that
 * names the call. */
trama_status wrapped_check(trama_where where, const char *call, const trama_wrapped *w, const trama_context *context);

/* The executable has seen it, and lets go of it when it is destroyed, or has seen another one after its release. */
void wrapped_seen(trama_executable *e, trama_wrapped *w);

/* It has moves from another one. */
void wrapped_source(trama_wrapped *w, trama_wrapped *from);
void wrapped_forget_sources(trama_wrapped *w); /* that were released */


#endif
