/* SPDX-License-Identifier: Apache-2.0 */
/* The main job, traced: what its names, steps and messages say in the files of trama trace, and that it computes what
 * it computes without. Counts are those of a network of two layers, by hand. */
#include "programs.h"

/* One worker, one task an op: 20 pixels, 17 hidden, 10 classes. */
#define JOB "TRAMA_WORKERS=1 TRAMA_MAX_TILES=1 ./fashion_mnist --data %s --hidden 17 --batch 10 --no-shuffle --steps 6"

/* How many tasks of a name stand in tasks.rec with all the other lines, which follow each other somehow. */
static int count_tasks(const char *name, const char *line, const char *other)
{
    const outcome *o = run("awk -v name='Name: %s' -v line='%s' -v other='%s' "
                           "'BEGIN { RS = \"\"; FS = \"\\n\" } { a = b = c = 0; for (i = 1; i <= NF; i++) "
                           "{ a += $i == name; b += line == \"\" || $i == line; c += other == \"\" || $i == other } "
                           "n += a > 0 && b > 0 && c > 0 } END { print n + 0 }' %s/run/tasks.rec",
                           name, line, other, scratch);
    return atoi(text_of(o));
}

static const char *trace(void)
{
    return text_of(run("./trama trace --no-starvz %s/run", scratch));
}

START_TEST(names_say_op_and_role_and_tasks_their_step)
{
    text_of(run(JOB " --merge 3 --trace %s/run", scratch, scratch));
    const char *text = trace();
    ck_assert_msg(contains(text, "fashion_mnist: 1 rank, 1 worker, ") && !contains(text, "missing:"), "%s", text);
    for (int step = 0; step < 2; step++) {
        char iteration[48];
        for (int micro = 0; micro < 3; micro++) {
            snprintf(iteration, sizeof iteration, "Iteration: %d %d", step, micro);
            ck_assert_int_eq(count_tasks("matmul", iteration, ""), 2);
            ck_assert_int_eq(count_tasks("matmul.grad", iteration, ""), 3); /* not that of the images */
            ck_assert_int_eq(count_tasks("cross_entropy.grad", iteration, ""), 1);
            ck_assert_int_eq(count_tasks("update.adam", iteration, ""), micro == 2 ? 4 : 0);
        }
    }
    ck_assert_int_eq(count_tasks("matmul", "GFlop: 0.000007", "Iteration: 0 1"), 1); /* 2 * 10 * 20 * 17 */
    ck_assert_int_eq(count_tasks("argmax", "Iteration: 0 0", ""), 0);
    ck_assert_int_eq(count_tasks("argmax", "Iteration: 2", ""), 1); /* the test set, behind both */
    ck_assert_str_eq(text_of(run("grep ^Name: %s/run/tasks.rec | grep -v _starpu | grep -vc '^Name: [A-Za-z0-9_.]*$'; "
                                 "true",
                                 scratch)),
                     "0\n");
    ck_assert(run("grep -qx 'Name: w1.0_0' %s/run/data.rec", scratch)->status == 0);
}
END_TEST

/* Steps that only order others run on no worker, so that they stand in the files without times, and no task is missing.
 */
START_TEST(orders_are_no_tasks_of_workers)
{
    text_of(run("TRAMA_WORKERS=1 TRAMA_ARENA_BYTES=1 ./transformer --blocks 1 --steps 3 --trace %s/run", scratch));
    const char *text = trace();
    ck_assert_msg(contains(text, "transformer: 1 rank, ") && !contains(text, "missing:"), "%s", text);
    ck_assert_int_gt(count_tasks("memory.order", "", ""), 0);
    ck_assert_int_eq(
        atoi(text_of(run("grep -A16 '^Name: memory.order' %s/run/tasks.rec | sed '/^$/q' | grep -c Time: ; "
                         "true",
                         scratch))),
        1); /* SubmitTime */
    ck_assert(!contains(text, "memory.order"));
}
END_TEST

START_TEST(what_is_traced_computes_the_same)
{
    text_of(run(JOB " --log %s/a.csv", scratch, scratch));
    text_of(run(JOB " --log %s/b.csv --trace %s/run", scratch, scratch, scratch));
    const outcome *o =
        run("cut -d, -f1,2 %s/a.csv >%s/a && cut -d, -f1,2 %s/b.csv | cmp - %s/a", scratch, scratch, scratch, scratch);
    ck_assert_msg(o->status == 0, "%s", o->text);
}
END_TEST

/* Messages of all ranks, as the ranks counted them: each has a sender and a receiver. */
static int messages_posted(void)
{
    return atoi(text_of(run("cat %s/run/about_* | awk '/^messages/ { n += $2 } END { print n / 2 }'", scratch)));
}

START_TEST(four_ranks_have_one_clock_and_every_message_its_ends)
{
    char expected[64];
    if (!TRAMA_HAVE_MPI) {
        printf("skipped: several ranks, this build has no MPI\n");
        return;
    }
    text_of(run(MPIRUN "4 env " JOB " --mesh dp=2,mp=2 --trace %s/run", scratch, scratch));
    trace();
    snprintf(expected, sizeof expected, " tasks, %d messages\n", messages_posted());
    const char *text = trace();
    ck_assert_msg(contains(text, "4 ranks, 4 workers") && contains(text, expected), "not%s: %s", expected, text);
    ck_assert_msg(!contains(text, "missing:"), "%s", text);
    ck_assert_str_eq(text_of(run("awk '/^Src/ { s = $2 } /^Dst/ { d = $2 } /^SendTime/ { t = $2 } "
                                 "/^RecvTime/ { n += s != d && $2 < t } END { print n + 0 }' %s/run/comms.rec",
                                 scratch)),
                     "0\n");
    ck_assert(run("test -s %s/run/timeline.svg -a -s %s/run/trace.json", scratch, scratch)->status == 0);
}
END_TEST

/* ms from the first task of rank 0 to that of rank 1, as tasks.rec has it; all with as many digits as that has. */
static double lead_of_rank_0(void)
{
    trace();
    return atof(text_of(run("awk 'BEGIN { RS = \"\"; FS = \"\\n\" } { rank = start = -1; for (i = 1; i <= NF; i++) "
                            "{ split($i, field, \": \"); if (field[1] == \"MPIRank\") rank = field[2]; "
                            "if (field[1] == \"StartTime\") start = field[2] } if (start >= 0 && "
                            "(!(rank in first) || start < first[rank])) first[rank] = start } "
                            "END { printf \"%%.9f\", first[1] - first[0] }' %s/run/tasks.rec",
                            scratch)));
}

/* The same events, of a rank whose clock is 5 ms ahead of rank 0's: what it did was 5 ms earlier. */
START_TEST(clocks_that_are_apart_are_aligned)
{
    if (!TRAMA_HAVE_MPI) {
        printf("skipped: clocks of two ranks, this build has no MPI\n");
        return;
    }
    text_of(run(MPIRUN "2 env " JOB " --mesh dp=2 --trace %s/run", scratch, scratch));
    text_of(run("grep -q '^clock ' %s/run/about_1", scratch));
    text_of(run("sed -i 's/^clock .*/clock 0/' %s/run/about_*", scratch));
    double together = lead_of_rank_0();
    text_of(run("sed -i 's/^clock .*/clock 5000000/' %s/run/about_1", scratch));
    ck_assert_double_eq_tol(lead_of_rank_0(), together - 5, 0.01);
}
END_TEST

TESTS(names_say_op_and_role_and_tasks_their_step, orders_are_no_tasks_of_workers, what_is_traced_computes_the_same,
      four_ranks_have_one_clock_and_every_message_its_ends, clocks_that_are_apart_are_aligned)
