/* SPDX-License-Identifier: Apache-2.0 */
/* Small programs whose layouts are searched, and the fewest bytes of all layouts that they have. */
#ifndef SEARCHED_PROGRAM_H
#define SEARCHED_PROGRAM_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "layout_graph.h"
#include "layout_search.h"
#include "process_memory.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static const trama_init init = {-1, 1, 9, 9};
static trama_program *p;
static trama_mesh *mesh, *alone;

static void set_up(void)
{
    p = trama_program_create();
    alone = trama_mesh_create("1");
}

static void tear_down(void)
{
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&alone);
}

static inline trama_value *input(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_input(p, name, TRAMA_F32, shape);
    if (layout)
        ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
}

static inline trama_value *parameter(const char *name, trama_shape shape, const char *layout)
{
    trama_value *v = trama_parameter(p, name, TRAMA_F32, shape, &init);
    if (layout)
        ck_assert_ptr_nonnull(trama_shard(v, mesh, layout));
    return v;
}

static inline trama_value *perceptron(int64_t batch)
{
    trama_value *w0 = parameter("w0", TRAMA_SHAPE(12, 16), NULL), *w1 = parameter("w1", TRAMA_SHAPE(16, 8), NULL);
    trama_value *y = trama_matmul(trama_relu(trama_matmul(input("x", TRAMA_SHAPE(batch, 12), "S(0)"), w0)), w1);
    return trama_mean(trama_square(y));
}

/* ---- All layouts ---- */

/* Whether each process has in one layout what it has in the other one, and no terms. */
static inline bool has_part(const trama_mesh *on, const box *whole, const trama_layout *holds, const trama_layout *part)
{
    for (int i = 0; i < on->size; i++) {
        box held, wanted;
        layout_box(on, holds, whole, i, &held);
        layout_box(on, part, whole, i, &wanted);
        if (!box_contains(&held, &wanted))
            return false;
    }
    return !layout_has(part, TRAMA_PARTIAL);
}

/* Whether each op updates its states as they lie, or a part of what each process has of them. */
static inline bool agrees(const layouts *l)
{
    for (int i = 0; i < p->nodes.n; i++)
        for (int t = 0; t < p->nodes.at[i]->op->n_in; t++) {
            const trama_value *v = p->nodes.at[i]->in[t];
            const box whole = box_whole(v->shape);
            if (node_updates(p->nodes.at[i], t) && !trama_layout_equal(&l->value[v->id], &l->op[i]->in[t]) &&
                !has_part(l->mesh[v->id], &whole, &l->value[v->id], &l->op[i]->in[t]))
                return false;
        }
    return true;
}

/* The fewest bytes over all states of ops and values by which a process needs at most `limit` bytes, counted as in the
 * program's own limit. */
static inline int64_t fewest(const layouts *start, int64_t limit, int64_t *tried)
{
    layout_graph g;
    int64_t least = INT64_MAX;
    layout_graph_build(&g, p, start, 64, (double)layouts_bytes(p, start, 64), 0);
    const int n = min_sum_variables(g.problem);
    int *state = trama_alloc((size_t)(n + 1) * sizeof *state), v;
    bool *counts = trama_alloc((size_t)n + 1); /* else the copies of a value */
    memset(counts, 1, (size_t)n);
    for (int i = 0; i < p->values.n; i++)
        if (g.value[i].holds >= 0)
            counts[g.value[i].holds] = false;
    do {
        layouts l;
        layout_graph_take(&g, state, &l);
        if (agrees(&l) && layouts_memory(p, &l, 64, p->search.of_states) <= limit) {
            least = min_i64(least, layouts_bytes(p, &l, 64));
            ++*tried;
        }
        layouts_free(&l);
        for (v = 0; v < n && (!counts[v] || ++state[v] == min_sum_states(g.problem, v)); v++)
            state[v] = 0;
    } while (v < n);
    free(state);
    free(counts);
    layout_graph_free(&g);
    return least;
}

/* A program as completed, searched, and compared with all layouts. */
typedef struct compared {
    layouts start;
    layout_search s;
    int64_t least, tried; /* the fewest bytes; how many layouts keep the limit */
} compared;

static inline compared compare_with_all(const char *name, int64_t limit)
{
    compared c = {.tried = 0};
    ck_assert_msg(!trama_program_status(p), "%s", trama_program_error(p));
    ck_assert_int_eq(complete_program(p, 64, alone, &c.start), TRAMA_OK);
    c.least = fewest(&c.start, limit, &c.tried);
    search_layouts(p, &c.start, 64, &c.s);
    printf("%s: %lld B as completed, %lld found, bound %lld, %lld the fewest of %lld\n", name, (long long)c.s.bytes,
           (long long)(c.s.found ? c.s.better_bytes : c.s.bytes), (long long)c.s.bound, (long long)c.least,
           (long long)c.tried);
    ck_assert_int_eq(c.s.bytes, layouts_bytes(p, &c.start, 64));
    return c;
}

static inline void compared_free(compared *c)
{
    if (c->s.found)
        layouts_free(&c->s.better);
    layouts_free(&c->start);
}

/* A program with a limit, and what a search within it must find. */
typedef struct limited_program {
    const char *name, *mesh;
    trama_value *(*build)(void);
    int64_t limit; /* bytes, of states alone or of all values */
    bool none;     /* no layouts keep it */
    int64_t gap;   /* bytes more than the fewest that may be found: prices do not reach all layouts */
    int64_t open;  /* and that the bound may be less */
} limited_program;

static inline void check_limit(const limited_program *x, trama_status (*limit)(trama_where, trama_program *, int64_t))
{
    mesh = trama_mesh_create(x->mesh);
    ck_assert_ptr_nonnull(x->build());
    ck_assert_int_eq(limit(TRAMA_HERE, p, x->limit), TRAMA_OK);
    compared c = compare_with_all(x->name, x->limit);
    const layouts *found = c.s.found ? &c.s.better : &c.start;
    const int64_t bytes = c.s.found ? c.s.better_bytes : c.s.bytes,
                  needed = layouts_memory(p, found, 64, p->search.of_states);
    ck_assert_int_eq(needed, c.s.found ? c.s.better_memory : c.s.memory);
    ck_assert_int_eq(c.s.fits, !x->none);
    ck_assert_int_eq(c.tried == 0, x->none);
    ck_assert_int_eq(needed > x->limit, x->none);
    ck_assert_int_le(c.s.bound, bytes);
    if (!x->none) {
        ck_assert_int_ge(bytes, c.least);
        ck_assert_int_le(bytes, c.least + x->gap);
        ck_assert_int_le(c.s.bound, c.least);
        ck_assert_int_ge(c.s.bound, c.least - x->open);
    }
    compared_free(&c);
}

#endif
