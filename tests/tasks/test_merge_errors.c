/* SPDX-License-Identifier: Apache-2.0 */
/* Wrong uses of gradient merge and of optimizers that merge: each answers with its status and a message that names the
 * line, and changes nothing. */
#include "merging.h"
#include "program.h"

/* ---- While the program is built ---- */

/* A network with its training, and what else there may be. */
typedef struct wrong {
    network net;
    trama_value *step, *w, *count; /* the result of trama_minimize; a parameter of floats and one of integers */
    trama_optimizer sgd;
    int line;
} wrong;

enum { AVG = TRAMA_MERGE_AVG }; /* short, so that a call stands in one line, which messages name */

static wrong wrong_new(void)
{
    wrong b = {.net = network_new(NULL, TRAMA_F64, false, 3, small_sizes), .sgd = trama_sgd(0.1)};
    b.step = b.net.train->values.at[0];
    b.w = b.net.w[0];
    b.count = trama_parameter(b.net.program, "count", TRAMA_I64, TRAMA_SHAPE(3), NULL);
    return b;
}

static void refused(wrong *b, const void *built, trama_status status, const char *what, const char *also)
{
    expect_broken(b->net.program, __FILE__, b->line, built, status, what, also);
    network_free(&b->net);
}

/* `before` is right, `build` is wrong. */
#define REFUSE_AFTER(before, build, status, what, also)                                                                \
    do {                                                                                                               \
        wrong b = wrong_new();                                                                                         \
        before;                                                                                                        \
        must(trama_program_status(b.net.program));                                                                     \
        b.line = __LINE__;                                                                                             \
        const void *built = build;                                                                                     \
        refused(&b, built, status, what, also);                                                                        \
    } while (0)
#define REFUSE(build, status, what, also) REFUSE_AFTER((void)0, build, status, what, also)

START_TEST(targets_that_cannot_merge_are_refused)
{
    start();
    REFUSE(trama_gradient_merge(b.net.train, 0, AVG), TRAMA_E_ARGUMENT, "k is 0", "1 or more");
    REFUSE(trama_gradient_merge(b.net.train, -3, TRAMA_MERGE_SUM), TRAMA_E_ARGUMENT, "k is -3", "1 or more");
    REFUSE(trama_gradient_merge(b.net.train, 2, 8), TRAMA_E_ARGUMENT, "AVG", "TRAMA_MERGE_SUM");
    REFUSE(trama_gradient_merge(b.net.eval, 2, AVG), TRAMA_E_ARGUMENT, "'eval'", "nothing to merge");
    REFUSE(trama_gradient_merge(trama_target_create(b.net.program, "state", trama_assign(b.w, trama_neg(b.w))), 2, AVG),
           TRAMA_E_ARGUMENT, "'state'", "trama_minimize");
    REFUSE_AFTER(trama_gradient_merge(b.net.train, 2, AVG), trama_gradient_merge(b.net.train, 4, AVG), TRAMA_E_ARGUMENT,
                 "'train' merges already", __FILE__);
    REFUSE_AFTER(trama_gradient_merge(b.net.train, 1, AVG), trama_gradient_merge(b.net.train, 1, AVG), TRAMA_E_ARGUMENT,
                 "'train' merges already", __FILE__);
    REFUSE_AFTER(trama_target_create(b.net.program, "again", b.step), trama_gradient_merge(b.net.train, 2, AVG),
                 TRAMA_E_ARGUMENT, "the same trama_minimize", "'again'");
    stop();
}
END_TEST

START_TEST(merged_gradients_of_what_is_not_trained_are_refused)
{
    const trama_parameter_group frozen[] = {{"w0", NULL}};
    trama_optimizer adam = trama_adam(0.1);
    adam.n_groups = 1;
    adam.groups = frozen;
    start();
    wrong other = wrong_new();
    REFUSE(trama_merged_gradient(b.step, b.count), TRAMA_E_ARGUMENT, "merged gradient", "does not train count");
    REFUSE(trama_merged_gradient(b.step, b.net.x), TRAMA_E_ARGUMENT, "merged gradient", "does not train x");
    REFUSE(trama_merged_gradient(b.step, b.net.loss), TRAMA_E_ARGUMENT, "merged gradient", "does not train");
    REFUSE(trama_merged_gradient(b.step, other.w), TRAMA_E_ARGUMENT, "merged gradient", "does not train w0");
    REFUSE(trama_merged_gradient(b.net.loss, b.w), TRAMA_E_ARGUMENT, "merged gradient", "does not train w0");
    REFUSE(trama_merged_gradient(trama_minimize(b.net.loss, &adam), b.w), TRAMA_E_ARGUMENT, "adam", "not train w0");
    network_free(&other.net);
    stop();
}
END_TEST

START_TEST(optimizers_that_have_nothing_to_do_or_do_it_twice_are_refused)
{
    trama_optimizer adam = trama_adam(0.1), clipped = trama_sgd(0.1), scaled = trama_sgd(0.1), wavy = trama_sgd(0.1);
    const trama_parameter_group twice[] = {{"w*", &adam}, {"w0", NULL}}, unknown[] = {{"count", &adam}};
    clipped.clip_norm = 0;
    scaled.loss_scale = (trama_loss_scale){.initial = -1};
    wavy.schedule = trama_schedule_cosine(0, 0);
    start();
    REFUSE(trama_minimize(b.net.loss, NULL), TRAMA_E_ARGUMENT, "minimize", "optimizer is NULL");
    REFUSE(trama_minimize(b.net.loss, &clipped), TRAMA_E_ARGUMENT, "clip_norm must be above 0", "it is 0");
    REFUSE(trama_minimize(b.net.loss, &scaled), TRAMA_E_ARGUMENT, "loss scale", "it is -1");
    REFUSE(trama_minimize(b.net.loss, &wavy), TRAMA_E_ARGUMENT, "cosine takes at least 1 step", "it is 0");
    REFUSE(trama_minimize(b.net.logits, &b.sgd), TRAMA_E_SHAPE, "minimize", "scalar");
    REFUSE(trama_minimize(trama_sum(b.count), &b.sgd), TRAMA_E_SHAPE, "minimize", "float scalar");
    REFUSE(trama_minimize(trama_sum(trama_cast(b.count, TRAMA_F64)), &b.sgd), TRAMA_E_ARGUMENT, "minimize",
           "no parameter that is trained");
    REFUSE_AFTER(trama_minimize(b.net.loss, &adam), trama_minimize(b.net.loss, &adam), TRAMA_E_ARGUMENT,
                 "another optimizer updates it", __FILE__);
    REFUSE((b.sgd.n_groups = 2, b.sgd.groups = twice, trama_minimize(b.net.loss, &b.sgd)), TRAMA_E_ARGUMENT,
           "w0 is in two groups", "'w*' and 'w0'");
    REFUSE((b.sgd.n_groups = 1, b.sgd.groups = unknown, trama_minimize(b.net.loss, &b.sgd)), TRAMA_E_ARGUMENT,
           "no parameter is named 'count'", "group");
    REFUSE(trama_step_value(b.step, TRAMA_STEP_NORM), TRAMA_E_ARGUMENT, "step value", "norm");
    REFUSE(trama_step_value(b.step, (trama_step_part)77), TRAMA_E_ARGUMENT, "step value", "no such thing");
    REFUSE(trama_step_value(b.net.loss, TRAMA_STEP_NUMBER), TRAMA_E_ARGUMENT, "step value", "number");
    stop();
}
END_TEST

/* So that a chain needs one check: where NULL is listed. */
START_TEST(builders_of_merges_pass_null_through)
{
    start();
    REFUSE(trama_target_create(b.net.program, "listed", b.step, trama_merged_gradient(b.step, NULL)), TRAMA_E_ARGUMENT,
           "target 'listed'", "value 1 is NULL");
    wrong b = wrong_new();
    demand(!trama_gradient_merge(NULL, 2, AVG), "a merge of no target");
    demand(!trama_merged_gradient(NULL, b.w), "a merged gradient of no step");
    demand(!trama_step_value(NULL, TRAMA_STEP_NUMBER), "a number of no step");
    demand(!trama_minimize(NULL, &b.sgd), "a step of no loss");
    network_free(&b.net);
    stop();
}
END_TEST

START_TEST(eager_programs_do_not_merge)
{
    start();
    trama_program *p;
    trama_executable *e;
    must(trama_eager(ctx, &p, &e));
    double x[2] = {1, 2};
    trama_value *w = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(2), NULL);
    trama_optimizer sgd = trama_sgd(0.1);
    trama_value *step = trama_minimize(trama_sum(trama_mul(w, trama_constant(p, TRAMA_F64, TRAMA_SHAPE(2), x))), &sgd);
    trama_target *t = trama_target_create(p, "train", step);
    trama_gradient_merge(t, 2, AVG);
    demand(trama_program_status(p) == TRAMA_E_UNSUPPORTED && strstr(trama_program_error(p), __FILE__) &&
               strstr(trama_program_error(p), "eager"),
           "%s: %s", trama_status_text(trama_program_status(p)), trama_program_error(p));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* ---- While it runs ---- */

/* The cycle goes on from where it was. */
START_TEST(calls_that_do_not_fit_change_nothing)
{
    start();
    network net = merging_network("dp=2", TRAMA_F64, false, 3), other = merging_network(NULL, TRAMA_F64, false, 3);
    trama_target *late = trama_target_create(net.program, "late", net.loss);
    plain_net plain = plain_new(3, small_sizes, SEED);
    samples s = samples_new(&net, 12, 0);
    const cycle two = {{3, 5}}, last = {{4}};
    expect_here(trama_run(net.e, net.train), TRAMA_E_ORDER, "'train'", "not fed");
    must(trama_flush(net.e, net.train)); /* of nothing */
    run_cycle(&net, &s, &two);
    expect_here(trama_merge_set(net.e, net.train, 2), TRAMA_E_ORDER, "2 of 3", "'train'", "trama_flush");
    expect_here(trama_merge_set(net.e, net.train, 0), TRAMA_E_ARGUMENT, "k is 0");
    expect_here(trama_merge_set(net.e, net.train, -1), TRAMA_E_ARGUMENT, "k is -1");
    expect_here(trama_merge_set(net.e, net.eval, 2), TRAMA_E_ARGUMENT, "'eval' merges no gradients");
    expect_here(trama_merge_set(net.e, late, 2), TRAMA_E_ARGUMENT, "'late'", "compiled");
    expect_here(trama_merge_set(net.e, NULL, 2), TRAMA_E_ARGUMENT, "trama_merge_set", "target is NULL");
    expect_here(trama_merge_set(NULL, net.train, 2), TRAMA_E_ARGUMENT, "trama_merge_set", "executable is NULL");
    expect_here(trama_flush(net.e, net.eval), TRAMA_E_ARGUMENT, "trama_flush", "'eval' merges no gradients");
    expect_here(trama_flush(net.e, late), TRAMA_E_ARGUMENT, "trama_flush", "'late'");
    expect_here(trama_flush(net.e, NULL), TRAMA_E_ARGUMENT, "trama_flush", "target is NULL");
    expect_here(trama_flush(NULL, net.train), TRAMA_E_ARGUMENT, "trama_flush", "executable is NULL");
    must(trama_feed(net.e, net.y, s.y, TRAMA_SHAPE(4)));
    expect(trama_run(net.e, net.train), TRAMA_E_SHAPE, "network.h", "5", "4"); /* of x and y; the op's line */
    demand(parameters_differ(&net, &plain) <= 1e-15, "parameters moved within a cycle");
    samples rest = {4, s.x + 8 * 20, (double *)s.fed + 8 * 20, s.y + 8};
    run_cycle(&net, &rest, &last);
    plain_step(&plain, 12, s.x, s.y, false, net.lr);
    demand(parameters_differ(&net, &plain) <= 1e-12, "after the mistakes the cycle is not one batch");
    samples_free(&s);
    plain_free(&plain);
    network_free(&other);
    network_free(&net);
    stop();
}
END_TEST

TESTS(targets_that_cannot_merge_are_refused, merged_gradients_of_what_is_not_trained_are_refused,
      optimizers_that_have_nothing_to_do_or_do_it_twice_are_refused, builders_of_merges_pass_null_through,
      eager_programs_do_not_merge, calls_that_do_not_fit_change_nothing)
