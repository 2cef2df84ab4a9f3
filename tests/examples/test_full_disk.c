/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that fills up while a trace is written: the program goes on, it and trama trace say that the trace is not
 * whole. The disk is a tmpfs of 1 MiB that only the command itself sees. */
#include "programs.h"

static const char *unshare;

/* Runs a program with a trace on a disk with so many free KiB, then trama trace. */
static const outcome *run_on_disk(int free, const char *program)
{
    return run("mkdir %s/disk; %s sh -c 'mount -t tmpfs -o size=1m none %s/disk && "
               "head -c %d /dev/zero > %s/disk/filler && TRAMA_TRACE=%s/disk/t %s; echo \"program: $?\"; "
               "./trama trace %s/disk/t --out=%s --no-starvz; echo \"trace: $?\"'",
               scratch, unshare, scratch, (1024 - free) * 1024, scratch, scratch, program, scratch, scratch);
}

START_TEST(events_that_do_not_fit_are_warned_of_and_named)
{
    const char *text = text_of(run_on_disk(300, "./demo_mlp"));
    ck_assert_msg(contains(text, "will not be whole: its events are at least ") &&
                      contains(text, "is not whole: its events are at least "),
                  "%s", text);
    ck_assert_msg(contains(text, "largest relative difference") && contains(text, "program: 0"), "%s", text);
    ck_assert_msg(contains(text, "missing: rank 0: cut: not all events could be written"), "%s", text);
    ck_assert_msg(contains(text, "trace: 0"), "%s", text);
}
END_TEST

/* FxT ends the program with 1 where its list of the machine's processes does not fit, and goes on where it does. */
START_TEST(events_of_which_none_fit_are_named_too)
{
    const char *text = text_of(run_on_disk(8, "./demo_mlp"));
    ck_assert_msg(contains(text, "will not be whole: its events are at least "), "%s", text);
    ck_assert_msg(contains(text, "program: 0\n") || contains(text, "program: 1\n"), "%s", text);
    ck_assert_msg(contains(text, "rank 0: cut: ") && contains(text, "trace: 1"), "%s", text);
}
END_TEST

START_TEST(a_disk_that_is_full_before_is_an_error)
{
    const char *text = text_of(run_on_disk(0, "./hello_mesh"));
    ck_assert_msg(contains(text, "traces cannot be written to ") && contains(text, "No space left"), "%s", text);
    ck_assert_msg(contains(text, "program: 1") && contains(text, "trace: 1"), "%s", text);
}
END_TEST

START_TEST(a_trace_that_fits_is_whole)
{
    const char *text = text_of(run_on_disk(1000, "./hello_mesh"));
    ck_assert_msg(!contains(text, "not whole") && !contains(text, "missing: ") && contains(text, "trace: 0"), "%s",
                  text);
}
END_TEST

/* Root, or whoever may have a user namespace. */
static const char *find_unshare(void)
{
    static const char *const ways[] = {"unshare -m", "unshare -rm"};
    for (int i = 0; i < 2; i++) {
        char command[128];
        snprintf(command, sizeof command, "%s mount -t tmpfs -o size=1m none /mnt 2>/dev/null", ways[i]);
        if (!system(command))
            return ways[i];
    }
    return NULL;
}

int main(void)
{
    const TTest *tests[] = {events_that_do_not_fit_are_warned_of_and_named, events_of_which_none_fit_are_named_too,
                            a_disk_that_is_full_before_is_an_error, a_trace_that_fits_is_whole};
    unshare = find_unshare();
    if (!unshare) {
        printf("%s: skipped, no small disk can be mounted here: neither `unshare -m` nor `unshare -rm` works\n",
               __FILE__);
        return 77;
    }
    return run_tests(__FILE__, sizeof tests / sizeof *tests, tests);
}
