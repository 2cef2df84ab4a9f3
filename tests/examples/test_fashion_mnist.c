/* SPDX-License-Identifier: Apache-2.0 */
/* The main job on a small data set, on every mesh, beside plain loops in double precision: losses, order of the
 * samples, accuracy, and what it prints. */
#include "programs.h"

enum { BATCH = 10, MOST_STEPS = 64, DEPTH = 4 };
static const int widths[DEPTH + 1] = {PIXELS, 17, 13, 11, CLASSES}; /* column, row, column, row */
static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2", "dp=3", "mp=3", "mp=2,dp=2:3,2,0,1"};
enum { N_MESHES = sizeof meshes / sizeof *meshes };

/* ---- The same in plain loops ---- */

typedef struct wanted {
    int steps;
    double loss[MOST_STEPS], accuracy;
} wanted;

static void gather(const half *h, int n, const int *index, double *x, int64_t *y)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < PIXELS; k++)
            x[i * PIXELS + k] = h->images[index[i] * PIXELS + k] / 255.0;
        y[i] = h->labels[index[i]];
    }
}

/* The order that dataset.h states. */
static void shuffled(int epoch, uint64_t seed, int *order)
{
    for (int i = 0; i < TRAIN_SAMPLES; i++)
        order[i] = i;
    for (int i = TRAIN_SAMPLES - 1, k = 0; i > 0; i--, k++) {
        uint32_t counter[4] = {(uint32_t)k / 4, 0, 4294967295u, (uint32_t)epoch}, word[4];
        plain_philox(counter, (uint32_t[]){(uint32_t)seed, (uint32_t)(seed >> 32)}, word);
        int j = (int)((uint64_t)word[k % 4] * (uint64_t)(i + 1) >> 32), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

static double plain_accuracy(const plain_net *p)
{
    half test = test_half();
    int right = 0;
    for (int i = 0; i < TEST_SAMPLES; i++) {
        double from[32], to[32] = {0};
        int64_t label;
        gather(&test, 1, &i, from, &label);
        for (int l = 0; l < p->n; l++) {
            plain_forward(from, 1, p, l, to);
            memcpy(from, to, sizeof to);
        }
        int64_t best = 0;
        for (int c = 1; c < CLASSES; c++)
            best = to[c] > to[best] ? c : best;
        right += best == label;
    }
    return (double)right / TEST_SAMPLES;
}

/* epochs 0: so many steps in file order, else epochs of shuffled samples. */
static wanted plain_training(int depth, const int *size, int steps, int epochs, uint64_t seed, bool adamw, double lr)
{
    half train = train_half();
    plain_net p = plain_new(depth, size, seed);
    wanted w = {0};
    int order[TRAIN_SAMPLES], per_epoch = (TRAIN_SAMPLES + BATCH - 1) / BATCH;
    double x[BATCH * PIXELS];
    int64_t y[BATCH];
    for (w.steps = 0; w.steps < (epochs ? epochs * per_epoch : steps); w.steps++) {
        int index[BATCH], n = 0, first = w.steps % per_epoch * BATCH;
        if (epochs && first == 0)
            shuffled(w.steps / per_epoch, seed, order);
        for (; n < BATCH && (!epochs || first + n < TRAIN_SAMPLES); n++)
            index[n] = epochs ? order[first + n] : (w.steps * BATCH + n) % TRAIN_SAMPLES;
        gather(&train, n, index, x, y);
        w.loss[w.steps] = plain_step(&p, n, x, y, adamw, lr);
    }
    w.accuracy = plain_accuracy(&p);
    plain_free(&p);
    return w;
}

/* ---- The program's output ---- */

static void check_log(const char *mesh, const wanted *w, double tolerance)
{
    FILE *log = fopen(in_scratch("log.csv"), "r");
    ck_assert_ptr_nonnull(log);
    char line[256];
    ck_assert_ptr_nonnull(fgets(line, sizeof line, log));
    ck_assert_str_eq(line, "step,loss,seconds\n");
    for (int step = 0; step < w->steps; step++) {
        int number, end = 0;
        double loss, seconds;
        ck_assert_ptr_nonnull(fgets(line, sizeof line, log));
        ck_assert_msg(sscanf(line, "%d,%lf,%lf%n", &number, &loss, &seconds, &end) == 3 && line[end] == '\n', "%s",
                      line);
        ck_assert_int_eq(number, step);
        ck_assert_msg(fabs(loss - w->loss[step]) <= tolerance * w->loss[step],
                      "mesh %s, step %d: loss %.17g, not %.17g", mesh, step, loss, w->loss[step]);
        ck_assert(seconds > 0 && isfinite(seconds));
    }
    ck_assert_ptr_null(fgets(line, sizeof line, log));
    fclose(log);
}

/* The losses of a run that others are compared with. */
static void read_log(wanted *w)
{
    char line[256];
    FILE *log = fopen(in_scratch("log.csv"), "r");
    ck_assert_ptr_nonnull(log);
    for (w->steps = -1; w->steps < MOST_STEPS && fgets(line, sizeof line, log); w->steps++)
        if (w->steps >= 0)
            ck_assert_int_eq(sscanf(line, "%*d,%lf", &w->loss[w->steps]), 1);
    fclose(log);
}

static void check_last_line(const char *text, const wanted *w)
{
    const char *line = last_line(text);
    double accuracy, loss, seconds, rate;
    int end = 0;
    int n = sscanf(line, "test accuracy %lf, final loss %lf, %lf s, %lf samples/s%n", &accuracy, &loss, &seconds, &rate,
                   &end);
    ck_assert_msg(n == 4 && line[end] == '\n' && line[end + 1] == 0, "%s", line);
    ck_assert_double_le(fabs(loss - w->loss[w->steps - 1]), 1e-4 * loss);
    ck_assert_msg(fabs(accuracy - w->accuracy) < 0.5e-4 + 1e-9, "accuracy %g, not %g", accuracy, w->accuracy);
    ck_assert_double_gt(rate, 0);
}

/* mesh: the option that chooses it. */
static const char *train_by(const char *launcher, const char *mesh, const char *options)
{
    return text_of(run("%s ./fashion_mnist %s --batch %d --data %s --log %s %s", launcher, mesh, BATCH, scratch,
                       in_scratch("log.csv"), options));
}

static const char *train(const char *launcher, const char *mesh, const char *options)
{
    char option[64];
    snprintf(option, sizeof option, "--mesh %s", mesh);
    return train_by(launcher, option, options);
}

static void train_in_file_order(const char *dtype, double tolerance)
{
    wanted w = plain_training(DEPTH, widths, 7, 0, 1, false, 0.1);
    char options[128];
    snprintf(options, sizeof options, "--no-shuffle --optimizer sgd --steps 7 --hidden 17,13,11 --dtype %s", dtype);
    for (int i = 0; i < N_MESHES; i++) {
        check_last_line(train("", meshes[i], options), &w);
        check_log(meshes[i], &w, tolerance);
    }
}

/* ---- Tests ---- */

START_TEST(all_meshes_follow_plain_loops_in_f32)
{
    train_in_file_order("f32", 1e-5);
}
END_TEST

START_TEST(all_meshes_follow_plain_loops_in_f64)
{
    train_in_file_order("f64", 1e-10);
}
END_TEST

/* Without a mesh, on the layouts that are chosen for a machine. */
START_TEST(chosen_layouts_follow_plain_loops)
{
    wanted w = plain_training(DEPTH, widths, 7, 0, 1, false, 0.1);
    for (int ranks = 1; ranks <= (TRAMA_HAVE_MPI ? 2 : 1); ranks++) {
        const char *text = train_by(ranks > 1 ? MPIRUN "2" : "", "--auto builtin",
                                    "--no-shuffle --optimizer sgd --steps 7 --hidden 17,13,11 --dtype f64");
        ck_assert_msg(strstr(text, "chosen") != NULL, "%s", text);
        check_last_line(text, &w);
        check_log("of --auto", &w, 1e-10);
    }
}
END_TEST

/* Sums are of many rounded numbers: the loss is as near as few roundings of one number. */
START_TEST(layers_may_compute_in_halves)
{
    static const char *const halves[] = {"bf16", "f16 --loss-scale 256"};
    static const double rounding[] = {0x1p-8, 0x1p-11};
    wanted w = plain_training(DEPTH, widths, 7, 0, 1, false, 0.1);
    for (int h = 0; h < 2; h++) {
        char options[128];
        snprintf(options, sizeof options, "--no-shuffle --optimizer sgd --steps 7 --hidden 17,13,11 --dtype %s",
                 halves[h]);
        for (int i = 0; i < N_MESHES; i++) {
            train("", meshes[i], options);
            check_log(meshes[i], &w, rounding[h]);
        }
    }
}
END_TEST

START_TEST(epochs_are_shuffled_as_stated_and_end_with_a_short_batch)
{
    static const int size[] = {PIXELS, 17, 13, CLASSES}; /* the last layer is replicated */
    const uint64_t seed = 123456789012345;
    wanted w = plain_training(3, size, 0, 3, seed, true, 2e-3);
    const char *options = "--epochs 3 --hidden 17,13 --dtype f64 --seed 123456789012345 --lr 2e-3";
    for (int i = 2; i < 4; i++) {
        check_last_line(train("", meshes[i], options), &w);
        check_log(meshes[i], &w, 1e-10);
    }
}
END_TEST

START_TEST(the_default_rates_are_those_of_the_optimizers)
{
    static const int size[] = {PIXELS, 8, CLASSES};
    for (int adamw = 0; adamw < 2; adamw++) {
        wanted w = plain_training(2, size, 0, 1, 1, adamw, adamw ? 1e-3 : 0.1);
        train("", "1",
              adamw ? "--epochs 1 --hidden 8 --dtype f64" : "--epochs 1 --hidden 8 --dtype f64 --optimizer sgd");
        check_log("1", &w, 1e-10);
    }
}
END_TEST

/* Every mesh takes every option; results of optimizers are tested elsewhere (tests/dist, tests/tasks). */
START_TEST(optimizers_schedules_and_scales_are_the_same_on_all_meshes)
{
    static const char *const choices[] = {
        "--optimizer sgd --momentum 0.9 --clip 1 --schedule cosine",
        "--optimizer sgd --loss-scale 1024 --warmup 3",
        "--optimizer adam --clip 0.5 --schedule step --loss-scale 65536",
        "--optimizer lamb --schedule one-cycle --warmup 2",
        "--optimizer adamw --schedule cosine --clip 2",
    };
    double first[sizeof choices / sizeof *choices];
    for (size_t c = 0; c < sizeof choices / sizeof *choices; c++) {
        wanted w = {0};
        char options[192];
        snprintf(options, sizeof options, "--steps 8 --hidden 17,13,11 --dtype f64 %s", choices[c]);
        for (int i = 0; i < N_MESHES; i++) {
            train("", meshes[i], options);
            if (i == 0)
                read_log(&w);
            check_log(meshes[i], &w, 1e-9);
        }
        first[c] = w.loss[7];
        ck_assert_msg(w.steps == 8 && w.loss[7] < w.loss[0], "%s: loss %g, then %g", choices[c], w.loss[0], w.loss[7]);
        for (size_t k = 0; k < c; k++)
            ck_assert(first[k] != first[c]);
    }
}
END_TEST

/* With a scale that is no f32 nothing is learnt. */
START_TEST(steps_that_are_not_finite_are_left_out)
{
    wanted still = {0};
    train("", "1", "--steps 7 --hidden 8 --no-shuffle --optimizer sgd --lr 1e-30");
    read_log(&still);
    train("", "dp=2,mp=2", "--steps 7 --hidden 8 --no-shuffle --optimizer sgd --momentum 0.5 --loss-scale 1e60");
    check_log("dp=2,mp=2", &still, 1e-6);
}
END_TEST

START_TEST(several_ranks_follow_plain_loops_and_the_first_one_speaks)
{
    if (!TRAMA_HAVE_MPI) {
        printf("skipped: several ranks, this build has no MPI\n");
        return;
    }
    wanted w = plain_training(DEPTH, widths, 7, 0, 1, false, 0.1);
    const char *text =
        train(MPIRUN "2", "dp=2,mp=2", "--no-shuffle --optimizer sgd --steps 7 --hidden 17,13,11 2>/dev/null");
    ck_assert_ptr_eq(last_line(text), text);
    check_last_line(text, &w);
    check_log("dp=2,mp=2 on 2 ranks", &w, 1e-5);
}
END_TEST

START_TEST(elsewhere_than_on_a_terminal_progress_is_plain_lines_on_stderr)
{
    const char *text = train("", "1", "--steps 2 2>&1 >/dev/null");
    ck_assert_msg(!strncmp(text, "step 2/2, loss ", 15) && contains(text, " samples/s\n"), "%.2000s", text);
    ck_assert(!contains(text, "\r") && !contains(text, "accuracy"));
}
END_TEST

START_TEST(a_plan_is_printed_instead_of_training)
{
    const char *text = train("", "dp=2", "--plan");
    ck_assert_msg(contains(text, "steps") && !contains(text, "accuracy"), "%.2000s", text);
    text = train("", "dp=2", "--plan=steps");
    ck_assert_msg(contains(text, "compute  place 0") && contains(text, "matmul"), "%.2000s", text);
    text = train("", "mp=2", "--plan=dot");
    ck_assert_msg(!strncmp(text, "digraph \"", 9) && contains(text, "[shape=hexagon") &&
                      contains(text, "P(sum) -> R") && contains(text, "label=\"matmul\"") && contains(text, "S(1)\"];"),
                  "%.2000s", text);
}
END_TEST

START_TEST(a_log_on_a_full_disk_ends_it_with_an_error)
{
    for (int ranks = 0; ranks < (TRAMA_HAVE_MPI ? 3 : 1); ranks += 2) {
        char launcher[sizeof MPIRUN + 16] = "";
        if (ranks)
            snprintf(launcher, sizeof launcher, "%s%d ", MPIRUN, ranks);
        const outcome *o = run("%s./fashion_mnist --data %s --hidden 64 --steps 3 --log /dev/full", launcher, scratch);
        ck_assert_msg(o->status == 1 && contains(o->text, "/dev/full"), "status %d: %.2000s", o->status, o->text);
    }
}
END_TEST

START_TEST(the_images_that_debian_packs_are_found)
{
    if (access("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz", R_OK)) {
        printf("skipped: the images that Debian packs, dataset-fashion-mnist is not installed\n");
        return;
    }
    const char *text = text_of(run("./fashion_mnist --steps 3 --hidden 16 --batch 1000 2>/dev/null"));
    ck_assert_msg(!strncmp(text, "test accuracy 0.", 16), "%s", text);
}
END_TEST

TESTS(all_meshes_follow_plain_loops_in_f32, all_meshes_follow_plain_loops_in_f64, chosen_layouts_follow_plain_loops,
      layers_may_compute_in_halves, epochs_are_shuffled_as_stated_and_end_with_a_short_batch,
      the_default_rates_are_those_of_the_optimizers, optimizers_schedules_and_scales_are_the_same_on_all_meshes,
      steps_that_are_not_finite_are_left_out, several_ranks_follow_plain_loops_and_the_first_one_speaks,
      elsewhere_than_on_a_terminal_progress_is_plain_lines_on_stderr, a_plan_is_printed_instead_of_training,
      a_log_on_a_full_disk_ends_it_with_an_error, the_images_that_debian_packs_are_found)
