/* SPDX-License-Identifier: Apache-2.0 */
/* A program, a mesh, a layout and a shape, for calls of which another argument is NULL. */
#ifndef NULL_PROGRAM_H
#define NULL_PROGRAM_H

#include "nulls.h"
#include "suite.h"
#include "trama_ops.h"

static trama_program *p;
static trama_value *x, *w, *loss; /* [4,6] fed, [6,3] a parameter, a scalar */
static trama_mesh *mesh;
static trama_layout layout;
static trama_shape shape;

static inline void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("a=2,b=2");
    shape = TRAMA_SHAPE(4, 6);
    x = trama_input(p, "x", TRAMA_F64, shape);
    w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(6, 3), NULL);
    loss = trama_mean(trama_matmul(x, w));
    ck_assert(loss && !trama_layout_parse(mesh, 2, "S(0),R", &layout));
}

static inline void tear_down(void)
{
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

#endif
