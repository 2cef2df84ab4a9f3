/* SPDX-License-Identifier: Apache-2.0 */
/* A program that counts its runs, to be watched on any number of ranks. */
#ifndef WATCHING_H
#define WATCHING_H

#include "harness.h"

enum { WATCHED = 7 }; /* elements */

/* After step i of a run, from 1, each element is i, total is WATCHED * i, and 2 of it is twice. */
typedef struct counting {
    trama_mesh *mesh;
    trama_program *program;
    trama_value *elements, *total, *twice;
    trama_target *step;
    trama_executable *e;
} counting;

static inline counting counting_new(const char *mesh, const char *layout)
{
    counting c = {.mesh = mesh_of(mesh), .program = trama_program_create()};
    double one = 1;
    trama_value *add = trama_constant(c.program, TRAMA_F64, TRAMA_SCALAR, &one);
    c.elements = trama_state(c.program, "elements", TRAMA_F64, TRAMA_SHAPE(WATCHED), NULL);
    trama_shard(c.elements, c.mesh, layout);
    trama_value *next = trama_add(c.elements, add);
    c.total = trama_sum(next);
    c.twice = trama_scale(next, 2);
    c.step = trama_target_create(c.program, "step", trama_assign(c.elements, next), c.total, c.twice);
    c.e = compile(c.program);
    return c;
}

static inline void counting_free(counting *c)
{
    must(trama_executable_destroy(&c->e));
    trama_program_destroy(&c->program);
    trama_mesh_destroy(&c->mesh);
}

#endif
