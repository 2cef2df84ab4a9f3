/* SPDX-License-Identifier: Apache-2.0 */
/* Eager mode on one rank and on several: marks, values that are kept, gradients after rewinding, and state. */
#include "eager_harness.h"

static void eager_forgets_and_keeps(const char *spec)
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

/* An updated value stands for its state, kept or not. */
static void eager_keeps_updates(const char *spec)
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

START_TEST(rewinding_forgets_and_keeping_keeps)
{
    start();
    eager_forgets_and_keeps("1");
    eager_forgets_and_keeps("2");
    eager_forgets_and_keeps("7");
    eager_keeps_updates("1");
    eager_keeps_updates("2");
    stop();
}
END_TEST

static void eager_derives_after_rewinding(const char *spec)
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

START_TEST(gradients_are_derived_afresh_after_rewinding)
{
    start();
    eager_derives_after_rewinding("1");
    eager_derives_after_rewinding("2");
    stop();
}
END_TEST

/* ---- State ---- */

static void eager_updates_state(const char *spec, const char *layout)
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
static void eager_state_follows_its_use(const char *spec)
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

START_TEST(state_is_updated_at_once)
{
    start();
    eager_updates_state("1", "R");
    eager_updates_state("2", "R");
    eager_updates_state("2", "S(0)");
    eager_updates_state("4", "S(0)");
    eager_updates_state("7", "S(0)");
    eager_state_follows_its_use("2");
    eager_state_follows_its_use("3:2,0,1");
    stop();
}
END_TEST

TESTS(rewinding_forgets_and_keeping_keeps, gradients_are_derived_afresh_after_rewinding, state_is_updated_at_once)
