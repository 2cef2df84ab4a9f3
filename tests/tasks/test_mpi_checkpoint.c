/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints by hand, as trama_state.h tells to make them, by public functions only: a training that is saved, ended
 * and gone on with has the bits of one that was never stopped. */
#include "trained.h"

enum { STEPS = 14 };

static trama_value *weight(const training *t, const char *name, int rows, int columns, trama_dtype dtype)
{
    return trama_parameter(t->p, name, dtype, TRAMA_SHAPE(rows, columns),
                           &(trama_init){.low = -0.7, .high = 0.7, .seed = (uint64_t)(rows * columns)});
}

static training training_new(const kind *k)
{
    training t = {.mesh = mesh_of(k->mesh), .p = trama_program_create()};
    t.x = trama_shard(trama_input(t.p, "x", k->dtype, TRAMA_SHAPE(TRAMA_ANY, IN)), t.mesh, k->data);
    t.y = trama_input(t.p, "y", k->dtype, TRAMA_SHAPE(TRAMA_ANY, OUT));
    trama_value *w = trama_shard(weight(&t, "w", IN, HIDDEN, k->dtype), t.mesh, k->weight);
    trama_value *h = trama_tanh(trama_matmul(t.x, w)), *z = trama_matmul(h, weight(&t, "v", HIDDEN, OUT, k->dtype));
    t.loss = trama_mean(trama_square(trama_sub(z, t.y)));
    training_compile(&t, k);
    return t;
}

/* ---- The checkpoint: a list of names with bytes ---- */

typedef struct record {
    char name[100];
    int box; /* of this rank; -1: the global value */
    size_t bytes;
    char data[8 * IN * HIDDEN];
} record;

typedef struct checkpoint {
    int n;
    record at[64];
    trama_merge_cycle cycle;
} checkpoint;

static size_t bytes_of(const trama_value *s)
{
    return (size_t)trama_shape_count(trama_value_shape(s)) * trama_dtype_size(trama_value_dtype(s));
}

static record *record_new(checkpoint *c, const trama_value *s, int box, size_t bytes)
{
    demand(c->n < 64, "too many records");
    record *r = &c->at[c->n++];
    snprintf(r->name, sizeof r->name, "%s", trama_value_name(s));
    r->box = box;
    r->bytes = bytes;
    demand(bytes <= sizeof r->data, "%s has %zu bytes", r->name, bytes);
    return r;
}

static void save_boxes(const training *t, const trama_value *s, checkpoint *c)
{
    int n;
    must(trama_local_count(t->e, s, &n));
    for (int i = 0; i < n; i++) {
        int64_t offset[TRAMA_MAX_NDIM], extent[TRAMA_MAX_NDIM];
        must(trama_local_box(t->e, s, i, offset, extent));
        size_t bytes = trama_dtype_size(trama_value_dtype(s));
        for (int d = 0; d < trama_value_shape(s).ndim; d++)
            bytes *= (size_t)extent[d];
        record *r = record_new(c, s, i, bytes);
        must(trama_read_local(t->e, s, i, r->data, bytes));
    }
}

static void save(const training *t, const kind *k, bool by_boxes, checkpoint *c)
{
    c->n = 0;
    for (int i = 0; i < trama_state_count(t->e); i++) {
        const trama_value *s = trama_state_number(t->e, i);
        demand(trama_state_find(t->e, trama_value_name(s)) == s, "%s is another one by name", trama_value_name(s));
        if (by_boxes)
            save_boxes(t, s, c);
        else
            must(trama_read(t->e, s, record_new(c, s, -1, bytes_of(s))->data, bytes_of(s)));
    }
    if (k->k)
        must(trama_merge_position(t->e, t->train, &c->cycle));
}

static void restore(const training *t, const kind *k, const checkpoint *c)
{
    if (k->k)
        must(trama_merge_resume(t->e, t->train, &c->cycle));
    for (int i = 0; i < c->n; i++) {
        const record *r = &c->at[i];
        const trama_value *s = trama_state_find(t->e, r->name);
        demand(s, "there is no %s", r->name);
        if (r->box >= 0)
            must(trama_write_local(t->e, s, r->box, r->data, r->bytes));
        else
            must(trama_write(t->e, s, r->data, r->bytes));
    }
}

/* Stops after so many steps, and goes on in another executable of another context. */
static void go_on_after(const kind *k, int stop_after, bool by_boxes)
{
    static checkpoint saved, ends, wanted;
    double losses[STEPS];
    start_with(&(trama_config){.map_by_order = true});
    training t = training_new(k);
    for (int i = 0; i < STEPS; i++)
        losses[i] = training_step(&t, k, i);
    save(&t, k, true, &wanted);
    training_free(&t);
    t = training_new(k);
    for (int i = 0; i < stop_after; i++)
        training_step(&t, k, i);
    save(&t, k, by_boxes, &saved);
    training_free(&t);
    stop();
    start_with(&(trama_config){.map_by_order = true});
    t = training_new(k);
    restore(&t, k, &saved);
    for (int i = stop_after; i < STEPS; i++) {
        double loss = training_step(&t, k, i);
        demand(loss == losses[i], "%s, stopped after %d: the loss of step %d is %.17g instead of %.17g", k->mesh,
               stop_after, i, loss, losses[i]);
    }
    save(&t, k, true, &ends);
    demand(ends.n == wanted.n && ends.cycle.at == wanted.cycle.at, "the ends differ");
    for (int i = 0; i < ends.n; i++)
        demand(!strcmp(ends.at[i].name, wanted.at[i].name) &&
                   !memcmp(ends.at[i].data, wanted.at[i].data, wanted.at[i].bytes),
               "%s, stopped after %d: %s ends with other bits", k->mesh, stop_after, wanted.at[i].name);
    training_free(&t);
    stop();
}

static const kind momentum = {"2", "S(0),R", "R,R", trama_sgd, 0.9, 0, TRAMA_F64};
static const kind adam = {"2,2", "S(0),R", "R,S(1)", trama_adam, 0, 0, TRAMA_F32};
static const kind lamb = {"3", "S(0)", "S(0)", trama_lamb, 0, 0, TRAMA_F64};
static const kind merging = {"2,2", "S(0),R", "R,S(1)", trama_adamw, 0, 3, TRAMA_F32};
static const kind masked = {"2,2", "S(0),R", "R,S(1) mask{1,1,0,0}", trama_adam, 0, 0, TRAMA_F32};
static const kind masked_merging = {"2,2", "S(0),R", "R,S(1) mask{0,1,1,0}", trama_lamb, 0, 3, TRAMA_F64};
static const kind merging_one = {"1", "R", "R", trama_sgd, 0.9, 4, TRAMA_F64};

START_TEST(a_training_goes_on_with_the_bits_of_one_that_never_stopped)
{
    const kind *kinds[] = {&momentum, &adam, &lamb};
    for (int i = 0; i < 6; i++) {
        kind k = *kinds[i / 2];
        k.data = strchr(k.mesh, ',') ? "S(0),R" : "S(0)";
        k.weight = strchr(k.mesh, ',') ? "R,S(1)" : i / 2 ? "S(0)" : "R";
        go_on_after(&k, 5 + i, i % 2);
    }
}
END_TEST

START_TEST(masked_parameters_go_on_with_what_their_holders_have)
{
    go_on_after(&masked, 5, false);
    go_on_after(&masked, 6, true);
    go_on_after(&masked_merging, 6, false);
    go_on_after(&masked_merging, 7, true);
}
END_TEST

START_TEST(merged_gradients_go_on_between_cycles)
{
    go_on_after(&merging, 6, false);
    go_on_after(&merging, 9, true);
}
END_TEST

START_TEST(merged_gradients_go_on_within_a_cycle_box_by_box)
{
    go_on_after(&merging, 7, true);
    go_on_after(&merging, 5, true);
    go_on_after(&merging_one, 5, false); /* one process holds one term, which is the value */
    go_on_after(&merging_one, 7, true);
}
END_TEST

START_TEST(all_state_has_a_name)
{
    static const char *const parts[] = {"w", "v", "w.m", "w.v", "v.m", "v.v", "train.w.merged", "train.v.merged"};
    start();
    training t = training_new(&merging);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        demand(trama_state_find(t.e, parts[i]), "there is no %s", parts[i]);
    int scalars = 0, n = trama_state_count(t.e);
    for (int i = 0; i < n; i++)
        scalars += trama_value_shape(trama_state_number(t.e, i)).ndim == 0;
    demand(scalars == 3 && n == 8 + 3, "%d of state, %d of it scalars: step, scale and how often it was right", n,
           scalars);
    demand(!trama_state_number(t.e, n) && !trama_state_number(t.e, -1), "there is more than there is");
    demand(!trama_state_find(t.e, "x") && !trama_state_find(t.e, "loss") && !trama_state_find(t.e, NULL), "no state");
    demand(!trama_state_count(NULL) && !trama_state_number(NULL, 0) && !trama_state_find(NULL, "w"),
           "of no executable");
    training_free(&t);
    kind plain = merging;
    plain.k = 1; /* its buffers are not made */
    t = training_new(&plain);
    demand(trama_state_count(t.e) == 9 && !trama_state_find(t.e, "train.w.merged"), "buffers that are not there");
    must(trama_merge_set(t.e, t.train, 2));
    demand(trama_state_count(t.e) == 11 && trama_state_find(t.e, "train.w.merged"), "buffers that are there");
    training_free(&t);
    stop();
}
END_TEST

START_TEST(state_of_eager_programs_is_listed_too)
{
    start();
    trama_program *p;
    trama_executable *e;
    double read[2], numbers[2] = {3, 4};
    must(trama_eager(ctx, &p, &e));
    trama_value *s = trama_state(p, "s", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    demand(trama_state_count(e) == 1 && trama_state_number(e, 0) == s && trama_state_find(e, "s") == s, "the state");
    must(trama_write(e, trama_state_find(e, "s"), numbers, sizeof numbers));
    must(trama_read(e, trama_state_find(e, "s"), read, sizeof read));
    demand(read[0] == 3 && read[1] == 4, "%g %g", read[0], read[1]);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

START_TEST(wrong_pieces_and_positions_are_refused)
{
    start();
    training t = training_new(&merging);
    trama_merge_cycle c = {0};
    double numbers[IN * HIDDEN] = {0};
    int n;
    must(trama_merge_position(t.e, t.train, &c));
    demand(c.k == 3 && c.at == 0, "a new cycle is at %d of %d", (int)c.at, (int)c.k);
    const trama_merge_cycle wrong[] = {{.k = 0},
                                       {.k = 3, .at = 3},
                                       {.k = 3, .at = -1},
                                       {.k = 3, .at = 1, .first = NAN},
                                       {.k = 3, .at = 1, .first = 2, .sum = 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        expect_here(trama_merge_resume(t.e, t.train, &wrong[i]), TRAMA_E_ARGUMENT, "trama_merge_resume", "'train'",
                    "trama_merge_position");
    expect_here(trama_merge_resume(t.e, t.train, NULL), TRAMA_E_ARGUMENT, "trama_merge_resume", "NULL");
    expect_here(trama_merge_position(t.e, t.train, NULL), TRAMA_E_ARGUMENT, "trama_merge_position", "NULL");
    expect_here(trama_merge_position(NULL, t.train, &c), TRAMA_E_ARGUMENT, "trama_merge_position", "executable");
    const trama_value *w = trama_state_find(t.e, "w");
    must(trama_local_count(t.e, w, &n));
    expect_here(trama_write_local(t.e, w, n, numbers, 4), TRAMA_E_ARGUMENT, "trama_write_local", "there is no box",
                "w");
    expect_here(trama_write_local(t.e, w, -1, numbers, 4), TRAMA_E_ARGUMENT, "there is no box -1");
    expect_here(trama_write_local(t.e, t.x, 0, numbers, 4), TRAMA_E_ARGUMENT, "x is no parameter or state",
                "trama_feed");
    expect_here(trama_write_local(t.e, NULL, 0, numbers, 4), TRAMA_E_ARGUMENT, "trama_write_local", "value");
    if (n) {
        expect_here(trama_write_local(t.e, w, 0, numbers, 1), TRAMA_E_SHAPE, "1 bytes for box 0 of w");
        expect_here(trama_write_local(t.e, w, 0, NULL, 4 * IN * 4), TRAMA_E_SHAPE, "0 bytes for box 0 of w");
    }
    training_free(&t);
    stop();
}
END_TEST

TESTS(a_training_goes_on_with_the_bits_of_one_that_never_stopped, masked_parameters_go_on_with_what_their_holders_have,
      merged_gradients_go_on_between_cycles, merged_gradients_go_on_within_a_cycle_box_by_box, all_state_has_a_name,
      state_of_eager_programs_is_listed_too, wrong_pieces_and_positions_are_refused)
