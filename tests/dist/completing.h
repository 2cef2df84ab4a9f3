/* SPDX-License-Identifier: Apache-2.0 */
/* A program to complete on a mesh 2,3, and the layouts that it gets. */
#ifndef COMPLETING_H
#define COMPLETING_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "complete.h"
#include "suite.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static trama_program *p;
static trama_mesh *mesh, *single;
static layouts l;

static inline void set_up(void)
{
    p = trama_program_create();
    mesh = trama_mesh_create("2,3");
    single = trama_mesh_create("1");
}

static inline void tear_down(void)
{
    layouts_free(&l);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&single);
}

static inline trama_value *tensor(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_input(p, name, TRAMA_F64, shape);
    if (layout)
        trama_shard(v, mesh, layout);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    return v;
}

static inline void complete(void)
{
    layouts_free(&l);
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    ck_assert_msg(!complete_program(p, 64, single, &l), "%s", trama_error());
}

static inline void expect_layout(const trama_mesh *on, const trama_layout *got, const char *wanted, int ndim,
                                 const char *what)
{
    trama_layout parsed;
    text t = {0};
    ck_assert_msg(!trama_layout_parse(on, ndim, wanted, &parsed), "%s", trama_error());
    layout_text(&t, on, got);
    ck_assert_msg(trama_layout_equal(got, &parsed), "%s is %s, not %s", what, t.at, wanted);
    free(t.at);
}

static inline void expect_value(const trama_value *v, const char *wanted)
{
    expect_layout(l.mesh[v->id], &l.value[v->id], wanted, v->shape.ndim, v->name);
}

/* The layout of an operand of v's op. */
static inline void expect_operand(const trama_value *v, int operand, const char *wanted)
{
    const op_layouts *op = l.op[v->node->id];
    expect_layout(op->mesh, &op->in[operand], wanted, v->node->in[operand]->shape.ndim, v->node->in[operand]->name);
}

#endif
