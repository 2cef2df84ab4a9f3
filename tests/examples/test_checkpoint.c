/* SPDX-License-Identifier: Apache-2.0 */
/* --save and --restart of the examples, and trama checkpoint: runs that were cut in two end as whole ones, on the same
 * mesh with the same bits, on another with the same losses. */
#define _GNU_SOURCE /* memmem */
#include <math.h>

#include "programs.h"

#define TRAIN "./fashion_mnist --data %s --hidden 32,16 --batch 12 --optimizer sgd --lr 0.05 --seed 3 --steps "
enum { LOGGED = 100 };

static void read_log(const char *name, int from, double *losses)
{
    char line[200];
    FILE *f = fopen(in_scratch(name), "r");
    ck_assert(f && fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        int step;
        double loss;
        ck_assert_int_eq(sscanf(line, "%d,%lf", &step, &loss), 2);
        ck_assert_int_eq(step, from++);
        losses[step] = loss;
    }
    ck_assert_int_eq(from, LOGGED);
    fclose(f);
}

/* Starts a program on so many ranks; without MPI its mesh lies in one process. */
static const char *on_ranks(int ranks)
{
    static char launcher[400];
    *launcher = 0;
    if (TRAMA_HAVE_MPI && ranks > 1)
        snprintf(launcher, sizeof launcher, MPIRUN "%d ", ranks);
    return launcher;
}

START_TEST(a_training_goes_on_with_other_meshes_and_ranks)
{
    static const struct {
        int ranks;
        const char *mesh;
    } later[] = {{4, "dp=4"}, {2, "mp=2"}, {1, "1"}, {1, "dp=2,mp=2"}, {4, "dp=2,mp=2"}};
    double wanted[LOGGED], got[LOGGED];
    write_data();
    text_of(run("%s" TRAIN "100 --mesh dp=4 --log %s", on_ranks(4), scratch, in_scratch("whole.csv")));
    read_log("whole.csv", 0, wanted);
    text_of(run("%s" TRAIN "50 --mesh dp=4 --save %s", on_ranks(4), scratch, in_scratch("saved")));
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        text_of(run("%s" TRAIN "100 --mesh %s --restart %s --log %s", on_ranks(later[i].ranks), scratch, later[i].mesh,
                    in_scratch("saved"), in_scratch("part.csv")));
        read_log("part.csv", 50, got);
        for (int s = 50; s < LOGGED; s++)
            ck_assert_msg(i ? fabs(got[s] - wanted[s]) <= 1e-5 * wanted[s] : got[s] == wanted[s],
                          "%s: the loss of step %d is %.9g instead of %.9g", later[i].mesh, s, got[s], wanted[s]);
    }
}
END_TEST

/* A training that reads its batches from files is killed, and goes on to the losses of one that nobody killed. */
static void kill_streamed(int ranks, const char *mesh)
{
    const char *killed =
        "(%s " TRAIN "1000000 --mesh %s --stream %s --save %s --save-every 7 --keep 2 > %s 2>&1 & job=$!; "
        "for i in $(seq 600); do grep -q 'saved step 77' %s && break; sleep 0.1; done; "
        "kill -9 $( [ %d = 1 ] && echo $job || pgrep -P $job -x fashion_mnist | head -n 1); wait $job)";
    char launcher[400], files[200], saved[200], log[200];
    if (ranks > 1 && !TRAMA_HAVE_MPI)
        return;
    snprintf(launcher, sizeof launcher, "%s", on_ranks(ranks));
    snprintf(files, sizeof files, "%s", in_scratch("files"));
    snprintf(saved, sizeof saved, "%s", in_scratch("streamed"));
    snprintf(log, sizeof log, "%s", in_scratch("log"));
    run("rm -rf %s %s", files, saved);
    run(killed, launcher, scratch, mesh, files, saved, log, log, ranks);
    const int newest = atoi(text_of(run("ls %s | sed -n 's/^step-0*\\(.*\\).h5$/\\1/p' | tail -n 1", saved)));
    ck_assert_int_ge(newest, 70);
    text_of(run("%s " TRAIN "%d --mesh %s --stream %s --log %s", launcher, scratch, newest + 20, mesh, files,
                in_scratch("whole.csv")));
    text_of(run("%s " TRAIN "%d --mesh %s --stream %s --restart %s --log %s", launcher, scratch, newest + 20, mesh,
                files, saved, in_scratch("part.csv")));
    text_of(run("cut -d , -f 1,2 %s | tail -n 20 > %s", in_scratch("whole.csv"), log));
    text_of(run("cut -d , -f 1,2 %s | tail -n +2 | cmp %s -", in_scratch("part.csv"), log));
}

START_TEST(a_streamed_training_that_is_killed_goes_on)
{
    write_data();
    kill_streamed(1, "1");
    kill_streamed(2, "dp=2");
}
END_TEST

/* The line that begins with the word. */
static const char *line_of(const char *text, const char *word)
{
    static char line[2][200];
    static int turn;
    const char *at = strstr(text, word);
    ck_assert_msg(at, "%s", text);
    turn = !turn;
    snprintf(line[turn], sizeof line[turn], "%.*s", (int)strcspn(at, "\n"), at);
    return line[turn];
}

START_TEST(the_heat_equation_goes_on)
{
    const char *wanted = line_of(text_of(run("./heat2d --n 33 --steps 150")), "checksum");
    const char *folder = in_scratch("heat");
    const char *first =
        text_of(run("%s./heat2d --n 33 --steps 77 --mesh 2 --save %s --save-every 30 --keep 2 --restart %s",
                    on_ranks(2), folder, folder));
    ck_assert_msg(contains(first, "saved step 30\n") && contains(first, "saved step 60\n") &&
                      contains(first, "saved step 77\n"),
                  "%s", first);
    ck_assert_str_eq(text_of(run("ls %s", folder)), "step-000000000060.h5\nstep-000000000077.h5\n");
    ck_assert_str_eq(
        line_of(text_of(run("%s./heat2d --n 33 --steps 150 --mesh 2,2 --restart %s", on_ranks(4), folder)), "checksum"),
        wanted);
    const outcome *o = run("./heat2d --n 33 --steps 50 --restart %s", folder);
    ck_assert_msg(o->status == 1 && contains(o->text, "is of step 77"), "%s", o->text);
    o = run("./heat2d --n 34 --steps 150 --restart %s", folder);
    ck_assert_msg(o->status == 1 && contains(o->text, "[33,33] instead of [34,34]"), "%s", o->text);
}
END_TEST

START_TEST(conjugate_gradients_go_on)
{
    int whole, rest;
    const char *form = "n 200, mesh %*[^:]: %d iterations";
    ck_assert_int_eq(sscanf(text_of(run("./cg --n 200")), form, &whole), 1);
    ck_assert_int_ne(run("./cg --n 200 --most 7 --save %s", in_scratch("cg"))->status, 0); /* not solved */
    ck_assert_int_eq(sscanf(text_of(run("./cg --n 200 --mesh 2 --restart %s", in_scratch("cg"))), form, &rest), 1);
    ck_assert_int_eq(rest, whole);
}
END_TEST

static size_t read_file(const char *path, char *to, size_t room)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(to, 1, room, f);
    fclose(f);
    return n;
}

START_TEST(checkpoints_are_listed_verified_compared_and_written_as_arrays)
{
    const char *a = in_scratch("h/step-000000000003.h5");
    text_of(run("./heat2d --n 33 --steps 4 --save %s --save-every 3", in_scratch("h")));
    const char *text = text_of(run("./trama checkpoint %s", a));
    ck_assert_msg(contains(text, "trama.step = 3\n") && contains(text, "u f64 [33,33]\n") && contains(text, "v f64"),
                  "%s", text);
    ck_assert_str_eq(text_of(run("./trama checkpoint --verify %s", a)), "2 states are as they were saved\n");
    ck_assert_str_eq(text_of(run("./trama checkpoint %s --compare %s", a, a)), "the states are equal\n");
    const outcome *o = run("./trama checkpoint %s --compare %s", a, in_scratch("h/step-000000000004.h5"));
    ck_assert_msg(o->status == 1 && !strcmp(o->text, "u differs first at [1,1]\n"), "%s", o->text);
    text_of(run("./trama checkpoint %s --npy %s", a, scratch));
    static char array[9000], file[60000];
    ck_assert_uint_eq(read_file(in_scratch("u.npy"), array, sizeof array), 128 + 33 * 33 * 8);
    const size_t bytes = read_file(a, file, sizeof file);
    const char *at = memmem(file, bytes, array + 128, 33 * 33 * 8);
    ck_assert_ptr_nonnull(at);
    text_of(run("printf '\\377\\377' | dd of=%s bs=1 seek=%d conv=notrunc", a, (int)(at - file) + 300));
    o = run("./trama checkpoint --verify %s", a);
    ck_assert_msg(o->status == 1 && contains(o->text, "step-000000000003.h5") && contains(o->text, "check sum"), "%s",
                  o->text);
}
END_TEST

START_TEST(checkpoints_are_converted)
{
    const char *to = in_scratch("c");
    text_of(run("mkdir %s && ./heat2d --n 33 --steps 4 --save %s", to, to));
    const outcome *o = run("./trama checkpoint %s/step-000000000004.h5 --to %s/a.safetensors", to, to);
    if (o->status && contains(o->text, "without cJSON")) {
        puts("skipped: conversions, since this build has no cJSON");
        return;
    }
    ck_assert_msg(!o->status, "%s", o->text);
    const char *text = text_of(run("./trama checkpoint %s/a.safetensors", to));
    ck_assert_msg(contains(text, "trama.step = 4\n") && contains(text, "u f64 [33,33]\n"), "%s", text);
    text_of(run("./trama checkpoint %s/a.safetensors --to %s/b.safetensors --shard-bytes 9000", to, to));
    text_of(run("./trama checkpoint %s/b.safetensors.index.json --to %s/b.h5", to, to));
    text_of(run("./trama checkpoint %s/b.h5 --verify --compare %s/step-000000000004.h5", to, to));
    text_of(run("mkdir %s/arrays && ./trama checkpoint %s/b.h5 --npy %s/arrays", to, to, to));
    text_of(run("./trama checkpoint %s/arrays --to %s/d.safetensors", to, to));
    ck_assert_str_eq(text_of(run("./trama checkpoint %s/d.safetensors --compare %s/a.safetensors", to, to)),
                     "the states are equal\n");
    text_of(run("./trama checkpoint %s/arrays/u.npy --to %s/e.h5 --names u=w --dtype f16", to, to));
    ck_assert_str_eq(text_of(run("./trama checkpoint %s/e.h5", to)), "w f16 [33,33]\n");
    text_of(run("./trama checkpoint %s/b.h5 --to %s/v.safetensors --states 'v*'", to, to));
    text = text_of(run("./trama checkpoint %s/v.safetensors", to));
    ck_assert_msg(contains(text, "v f64") && !contains(text, "u f64"), "%s", text);
    text_of(run("./heat2d --n 33 --steps 6 --restart %s/a.safetensors", to));
    ck_assert_msg(!contains(text_of(run("ls %s", to)), ".part"), "%s", run("ls %s", to)->text);
    o = run("./trama checkpoint %s/v.safetensors --verify", to);
    ck_assert_msg(contains(o->text, "no check sums"), "%s", o->text);
}
END_TEST

START_TEST(wrong_uses_are_refused)
{
    const wrong_use uses[] = {{"heat2d --save ''", "--save", "folder"},
                              {"heat2d --keep 2", "--keep", "without --save"},
                              {"heat2d --save-every 2", "--save-every", "without --save"},
                              {"heat2d --save x --keep 0", "--keep", "0"},
                              {"trama checkpoint", "file", "missing"},
                              {"trama checkpoint none.h5", "none.h5", "No such file"},
                              {"trama checkpoint trama", "trama", "no checkpoint"},
                              {"trama checkpoint x.h5 --dtype f16", "--dtype", "--to"},
                              {"trama checkpoint x.h5 --to y --shard-bytes 0", "--shard-bytes", "0"},
                              {"trama checkpoint /dev", "/dev", "no files .npy"},
                              {"trama checkpoint none.safetensors", "none.safetensors", "No such file"}};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++)
        run_wrong("", &uses[i]);
}
END_TEST

TESTS(a_training_goes_on_with_other_meshes_and_ranks, a_streamed_training_that_is_killed_goes_on,
      the_heat_equation_goes_on, conjugate_gradients_go_on,
      checkpoints_are_listed_verified_compared_and_written_as_arrays, checkpoints_are_converted, wrong_uses_are_refused)
