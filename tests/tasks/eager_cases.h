/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode, for one rank and for several: what holds for any values. Every case starts with a live context. */
#ifndef EAGER_CASES_H
#define EAGER_CASES_H

#include "eager_harness.h"

/* ---- Every layout ---- */

static const char *const eager_layouts[] = {"R,R",
                                            "S(0),R",
                                            "R,S(0)",
                                            "S(0),S(1)",
                                            "S(1),S(0)",
                                            "S(0),S(0)",
                                            "S(1),S(1)",
                                            "S(0)[1],S(0)[0]",
                                            "P(sum),R",
                                            "P(sum),S(0)",
                                            "S(1),P(max)",
                                            "P(avg),R",
                                            "P(min),P(min)",
                                            "P(sum),P(sum)",
                                            "R,S(0) mask{1,1,0,0}",
                                            "S(0),R mask{1,0,0,1}"};
enum { N_EAGER_LAYOUTS = sizeof eager_layouts / sizeof *eager_layouts };

/* x [5, 3] comes in, goes on by ops, and out, in a layout; text too. */
static inline void eager_in_a_layout(const char *spec, const char *layout)
{
    trama_mesh *mesh = mesh_of(spec);
    trama_layout l; /* masks are for one size of mesh */
    if (trama_layout_parse(mesh, 2, layout, &l)) {
        trama_mesh_destroy(&mesh);
        return;
    }
    eager g = eager_begin();
    double data[15], negative[15], product[9], transposed[15], sum = 0;
    char *words, begin[100];
    for (int i = 0; i < 15; i++) {
        data[i] = i * 4 % 15 - 6;
        negative[i] = -data[i];
        transposed[i % 3 * 5 + i / 3] = data[i];
        sum += data[i];
    }
    for (int i = 0; i < 9; i++) {
        product[i] = 0;
        for (int k = 0; k < 5; k++)
            product[i] += data[3 * k + i / 3] * data[3 * k + i % 3];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5, 3), data, mesh, layout);
    demand_value(&g, x, data, layout);
    must(trama_print(g.e, x, 1, &words));
    snprintf(begin, sizeof begin, "%s f64[5,3] as %s\n[[-6 ", trama_value_name(x), layout);
    demand(!strncmp(words, begin, strlen(begin)), "printed \"%s\" instead of \"%s\"", words, begin);
    free(words);
    demand_value(&g, trama_neg(x), negative, layout);
    demand_value(&g, trama_sum(x), &sum, layout);
    demand_value(&g, trama_matmul_trans(x, x, true, false), product, layout);
    demand_value(&g, trama_transpose(x, NULL), transposed, layout);
    for (int k = 0; k < N_EAGER_LAYOUTS; k++) {
        if (trama_layout_parse(mesh, 2, eager_layouts[k], &l))
            continue;
        trama_value *y = trama_reshard(x, mesh, eager_layouts[k]);
        demand_value(&g, y, data, eager_layouts[k]);
        must(trama_layout_of(g.e, y, &words));
        demand(!strcmp(words, eager_layouts[k]), "a reshard to %s gives %s", eager_layouts[k], words);
        free(words);
    }
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

static inline void eager_crosses_meshes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[7] = {1, 2, 3, 4, 5, 6, 7}, twice[7], gradient[7];
    for (int i = 0; i < 7; i++) {
        twice[i] = 2 * data[i];
        gradient[i] = 4 * data[i];
    }
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(7), data, a, "S(0)");
    trama_value *y = trama_reshard(x, b, "S(0)"), *z = trama_add(y, y), *back = trama_reshard(z, a, "R");
    demand_value(&g, z, twice, "over there");
    demand_value(&g, back, twice, "back again");
    trama_value *loss = trama_sum(trama_mul(y, z)); /* 2 x^2 */
    demand_value(&g, trama_gradient(loss, x), gradient, "the gradient across meshes");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

/* Ops of a scope run on its mesh, with operands as their names say; another scope over the same ops makes other plans.
 */
static inline void eager_scopes(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    static const char *const ways[] = {"S(0),R", "R,S(0)", "S(0),S(0)"};
    eager g = eager_begin();
    double data[7] = {1, 2, 3, 4, 5, 6, 7}, square[7], gradient[7], ones[7];
    char *words;
    for (int i = 0; i < 7; i++) {
        square[i] = data[i] * data[i];
        gradient[i] = 2 * data[i];
        ones[i] = 1;
    }
    trama_value *x = trama_value_rename(trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(7), data, a, "S(0)"), "x");
    for (int i = 0; i < 3; i++) {
        must(trama_shard_begin(g.p, b, "x", ways[i]));
        trama_value *y = trama_mul(x, x), *one = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(7), 1);
        must(trama_shard_end(g.p));
        must(trama_layout_of(g.e, y, &words));
        demand(!strcmp(words, ways[i]), "a result in a scope lies as %s", words);
        free(words);
        demand_value(&g, y, square, "in a scope");
        demand_value(&g, trama_gradient(trama_sum(y), x), gradient, "the gradient out of a scope");
        demand_value(&g, one, ones, "a source in a scope");
    }
    demand(trama_shard_end(g.p) == TRAMA_E_ORDER, "an end without a begin");
    trama_program_clear_error(g.p);
    demand(!trama_annotation_clear(x) && trama_program_status(g.p) == TRAMA_E_ORDER,
           "an annotation of what is computed");
    trama_program_clear_error(g.p);
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

/* ---- Host arrays ---- */

/* Arrays of one shape share their plans, never their content; on the mesh of the others, replicated. */
static inline void eager_takes_host_arrays(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[6] = {1, 2, 3, 4, 5, 6}, wanted[6];
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(2, 3), data, mesh, "S(1)");
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 20; i++) {
        double row[3] = {i, 10 * i, 100 * i}, factor = i + 0.5;
        trama_value *r = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
        trama_value *f = trama_constant(g.p, TRAMA_F64, TRAMA_SCALAR, &factor);
        trama_value *y = trama_mul(f, trama_add(x, r)); /* the scalar first: it lends no mesh */
        for (int k = 0; k < 6; k++)
            wanted[k] = factor * (data[k] + row[k % 3]);
        row[0] = row[1] = row[2] = factor = NAN; /* they were copied */
        demand_value(&g, y, wanted, "arrays from the host");
        char *words;
        must(trama_layout_of(g.e, r, &words));
        demand(!strcmp(words, "R"), "an array from the host lies as %s", words);
        free(words);
        must(trama_program_rewind(g.p, mark));
    }
    demand_value(&g,
                 trama_add(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})),
                           trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){5, 7}))),
                 (double[]){6, 9}, "nothing but arrays from the host");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* A host array goes where it is used, whoever looked at it before, and wherever it was used before. */
static inline void eager_lends_host_arrays(const char *first, const char *second)
{
    trama_mesh *a = mesh_of(first), *b = mesh_of(second);
    eager g = eager_begin();
    double data[3] = {1, 2, 3}, row[3] = {10, 20, 30}, sum[3] = {11, 22, 33}, negative[3] = {-10, -20, -30};
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, a, "S(0)");
    trama_value *y = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(3), data, b, "S(0)");
    int mark = trama_program_mark(g.p);
    trama_value *c = trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row);
    trama_value *kept = trama_keep(trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(3), row));
    trama_value *f = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(3), 10);
    demand_value(&g, c, row, "an array that is looked at");
    demand_value(&g, f, (double[]){10, 10, 10}, "a fill that is looked at");
    demand_value(&g, trama_add(c, x), sum, "on one mesh");
    demand_value(&g, trama_add(y, c), sum, "on another");
    demand_value(&g, trama_neg(c), negative, "alone");
    demand_value(&g, trama_add(c, x), sum, "on the first one again");
    demand_value(&g, trama_add(f, y), (double[]){11, 12, 13}, "a fill on a mesh");
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, trama_add(kept, y), sum, "a kept array on a mesh");
    eager_end_now(&g);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

static inline void eager_makes_numbers(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double wanted[35];
    for (int i = 0; i < 35; i++)
        wanted[i] = plain_uniform(UINT64_C(0x123456789), 3, 5, (uint64_t)i, -1, 1);
    trama_value *u = trama_uniform_fixed(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_value *v = trama_uniform_fixed(g.p, TRAMA_F64, TRAMA_SHAPE(7, 5), -1, 1, UINT64_C(0x123456789), 3, 5);
    trama_shard(u, mesh, "S(1)");
    demand_value(&g, u, wanted, "uniform, split");
    demand_value(&g, v, wanted, "uniform, without a mesh");
    for (int i = 0; i < 35; i++)
        wanted[i] += 2.5;
    demand_value(&g, trama_add(u, trama_fill(g.p, TRAMA_F64, TRAMA_SCALAR, 2.5)), wanted, "uniform and fill");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* ---- Marks ---- */

static inline void eager_forgets_and_keeps(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[5] = {1, 2, 3, 4, 5}, power[5], sum = 15;
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), data, mesh, "S(0)"), *kept = x;
    for (int i = 0; i < 5; i++)
        power[i] = data[i];
    int outer = trama_program_mark(g.p);
    for (int round = 0; round < 4; round++) {
        trama_value *forgotten = trama_neg(x), *next = trama_keep(trama_mul(kept, x)), *total = trama_sum(next);
        int inner = trama_program_mark(g.p);
        trama_value *partial = trama_keep(trama_keep(trama_sum(x))); /* may lie as terms; kept once */
        trama_value *declared = trama_keep(trama_constant(g.p, TRAMA_F64, TRAMA_SCALAR, &(double){round}));
        trama_value *never_used = trama_keep(trama_fill(g.p, TRAMA_I32, TRAMA_SHAPE(2), round));
        must(trama_program_rewind(g.p, inner));
        for (int i = 0; i < 5; i++)
            power[i] *= data[i];
        double all = 0;
        for (int i = 0; i < 5; i++)
            all += power[i];
        demand_value(&g, total, &all, "before the inner mark");
        demand_value(&g, trama_neg(forgotten), data, "before the inner mark");
        must(trama_program_rewind(g.p, outer));
        kept = next;
        demand_value(&g, kept, power, "kept");
        demand_value(&g, partial, &sum, "a kept sum");
        demand_value(&g, declared, &(double){round}, "a kept host array");
        demand_value(&g, never_used, (double[]){round, round}, "a kept fill that nobody used");
        outer = trama_program_mark(g.p);
    }
    for (int i = 0; i < 5; i++)
        power[i] = 2 * power[i];
    trama_value *square = trama_mul(kept, kept), *d = trama_gradient(trama_sum(square), kept);
    demand_value(&g, d, power, "the gradient of what was kept");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

static inline void eager_derives_after_rewinding(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double data[5] = {1, 2, 3, 4, 5}, wanted[5];
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), data, mesh, "S(0)");
    trama_value *y = trama_square(x), *loss = trama_sum(y);
    int mark = trama_program_mark(g.p);
    for (int round = 1; round < 4; round++) {
        for (int i = 0; i < 5; i++)
            wanted[i] = 2 * data[i];
        demand_value(&g, trama_gradient(loss, x), wanted, "the same loss again");
        demand_value(&g, trama_gradient(loss, y), (double[]){1, 1, 1, 1, 1}, "an inner gradient");
        trama_value *other = trama_sum(trama_mul(y, trama_scale(x, round))); /* round x^3 */
        for (int i = 0; i < 5; i++)
            wanted[i] = 3 * round * data[i] * data[i];
        demand_value(&g, trama_gradient(other, x), wanted, "another loss in the same place");
        must(trama_program_rewind(g.p, mark));
    }
    trama_value *d = trama_gradient(loss, x), *second = trama_gradient(trama_sum(trama_mul(d, d)), x); /* of 4 x^2 */
    for (int i = 0; i < 5; i++)
        wanted[i] = 8 * data[i];
    demand_value(&g, second, wanted, "the gradient of a gradient");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* An updated value stands for its state, kept or not. */
static inline void eager_keeps_updates(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    trama_init three = {3, 3, 0, 0};
    int mark = trama_program_mark(g.p);
    trama_value *before = trama_fill(g.p, TRAMA_F64, TRAMA_SHAPE(2), 1);
    trama_value *s = trama_shard(trama_state(g.p, "s", TRAMA_F64, TRAMA_SHAPE(2), &three), mesh, "S(0)");
    trama_value *both[] = {s, trama_add(s, trama_constant(g.p, TRAMA_F64, TRAMA_SHAPE(2), ((double[]){1, 2})))};
    trama_value *updated = trama_apply_at(TRAMA_HERE, g.p, trama_op_find("assign"), 2, both, NULL);
    trama_keep(updated);
    trama_keep(trama_assign(s, both[1])); /* an update is nothing that could be kept, and does no harm */
    demand_value(&g, updated, (double[]){4, 5}, "an updated value");
    demand_value(&g, trama_neg(before), (double[]){-1, -1}, "what goes");
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, updated, (double[]){4, 5}, "a kept updated value");
    demand_value(&g, trama_neg(updated), (double[]){-4, -5}, "its negative");
    demand_value(&g, s, (double[]){4, 5}, "its state");
    char *words = trama_program_text(g.p);
    demand(strstr(words, "neg"), "a program without its op:\n%s", words);
    free(words);
    must(trama_program_rewind(g.p, mark));
    demand_value(&g, trama_add(s, updated), (double[]){8, 10}, "both");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* ---- State ---- */

static inline void eager_updates_state(const char *spec, const char *layout)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    double wanted[5] = {0}, row[5] = {1, 2, 3, 4, 5};
    trama_value *s = trama_state(g.p, "s", TRAMA_F64, TRAMA_SHAPE(5), NULL);
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), row, mesh, "S(0)");
    trama_shard(s, mesh, layout);
    int mark = trama_program_mark(g.p);
    for (int i = 0; i < 50; i++) {
        trama_value *old = trama_add(s, x), *twice = trama_add(old, old);
        trama_assign(s, old);
        for (int k = 0; k < 5; k++)
            wanted[k] += row[k];
        if (i % 10 == 9) {
            demand_value(&g, s, wanted, "state after its update");
            double doubled[5];
            for (int k = 0; k < 5; k++)
                doubled[k] = 2 * wanted[k];
            demand_value(&g, twice, doubled, "a value of the old state");
        }
        must(trama_program_rewind(g.p, mark));
    }
    for (int k = 0; k < 5; k++)
        wanted[k] = -k;
    must(trama_write(g.e, s, wanted, sizeof wanted));
    demand_value(&g, s, wanted, "what was written");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* A state without an annotation may be read before the first op says where it is used. */
static inline void eager_state_follows_its_use(const char *spec)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    trama_init three = {3, 3, 0, 0};
    double row[5] = {1, 2, 3, 4, 5}, zeros[5] = {0};
    trama_value *s = trama_state(g.p, "s", TRAMA_F64, TRAMA_SHAPE(5), &three);
    demand_value(&g, s, (double[]){3, 3, 3, 3, 3}, "a state read first");
    must(trama_write(g.e, s, zeros, sizeof zeros));
    trama_value *x = trama_tensor(g.p, TRAMA_F64, TRAMA_SHAPE(5), row, mesh, "S(0)");
    demand(trama_assign(s, trama_add(s, x)), "%s", trama_program_error(g.p));
    demand_value(&g, s, row, "a state updated on another mesh");
    demand(trama_assign(s, trama_scale(s, 2)), "%s", trama_program_error(g.p));
    demand_value(&g, s, (double[]){2, 4, 6, 8, 10}, "a state updated again");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

/* More ops than may be under way, without a read between them. */
static inline void eager_long_chain(const char *spec, int n)
{
    trama_mesh *mesh = mesh_of(spec);
    eager g = eager_begin();
    trama_value *x = trama_tensor(g.p, TRAMA_I64, TRAMA_SHAPE(3), ((int64_t[]){1, 2, 3}), mesh, "S(0)"), *y = x;
    for (int i = 0; i < n; i++)
        y = i % 2 ? trama_add(x, y) : trama_add(y, x);
    demand_value(&g, y, (double[]){n + 1, 2 * n + 2, 3 * n + 3}, "a long chain");
    eager_end_now(&g);
    trama_mesh_destroy(&mesh);
}

#endif
