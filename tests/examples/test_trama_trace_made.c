/* SPDX-License-Identifier: Apache-2.0 */
/* trama trace on files made by hand, which a script gives out in the place of StarPU's tool: every figure is worked out
 * here with pencil and paper, to the digit. */
#include "programs.h"

static void write_text(const char *name, const char *text)
{
    write_file(name, strlen(text), (const unsigned char *)text);
}

/* The folder "run" has events of the ranks, which nobody looks into; the "tool" hands out what lies in "made". */
static void make_run(const char *paje, const char *tasks, const char *comms, const char *data)
{
    text_of(run("cd %s && rm -rf run made && mkdir run made", scratch));
    write_text("made/paje.trace", paje);
    write_text("made/tasks.rec", tasks);
    write_text("made/comms.rec", comms);
    write_text("made/data.rec", data);
    write_text("made/dag.dot", "digraph G {\n}\n");
    char script[256];
    snprintf(script, sizeof script,
             "#!/bin/sh\nwhile [ $# -gt 1 ]; do [ \"$1\" = -d ] && to=$2; shift; done\ncp %s/made/* \"$to\"\n",
             scratch);
    write_text("tool", script);
    text_of(run("chmod +x %s/tool", scratch));
}

static void add_rank(int rank, const char *description)
{
    char name[32];
    snprintf(name, sizeof name, "run/prof_file_%d", rank);
    write_text(name, "events");
    snprintf(name, sizeof name, "run/about_%d", rank);
    write_text(name, description);
}

static const char *trace(const char *arguments)
{
    return text_of(run("TRAMA_FXT_TOOL=%s/tool ./trama trace --no-starvz %s/run %s", scratch, scratch, arguments));
}

static void expect_lines(const char *text, int n, const char *const *lines)
{
    for (int i = 0; i < n; i++)
        ck_assert_msg(contains(text, lines[i]), "no '%s' in %s", lines[i], text);
}
#define EXPECT(text, ...)                                                                                              \
    expect_lines(text, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

/* ---- Two ranks ---- */

static const char workers[] = "%EventDef PajeCreateContainer 7\n% Time date\n%EndEventDef\n"
                              "7 0.0 0_w0 W 0_t1 0_CPU0\n7 0.0 0_w1 W 0_t2 0_CPU1\n"
                              "7 0.0 1_w0 W 1_t1 1_CPU0\n7 0.0 1_w1 W 1_t2 1_CPU1\n";

/* On rank 0 matmul 10-20, then matmul.grad 20-30, which rank 1 gets in a message, 31-40, that leaves at 34; only then
 * update.adam 36-40, on the other worker, may overwrite it. On rank 1 reshard.copy 12-14, merge.add 42-50, which needs
 * the message, and a matmul 60-62 that is asked for at 59. Of two more tasks one never ends and one never begins. The
 * worker 1 of rank 1 has nothing to do. */
static const char tasks[] =
    "Name: matmul\nJobId: 0_1\nSubmitOrder: 1\nWorkerId: 0\nSubmitTime: 5\nStartTime: 10\nEndTime: 20\nGFlop: 0.05\n"
    "Iteration: 0\nMPIRank: 0\n\n"
    "Name: matmul.grad\nJobId: 0_2\nSubmitOrder: 2\nDependsOn: 0_7\nDepLabels: task\nWorkerId: 0\nSubmitTime: 5\n"
    "StartTime: 20\nEndTime: 30\nIteration: 0 1\nMPIRank: 0\n\n"
    "Name: _starpu_sync_task\nJobId: 0_7\nDependsOn: 0_1\nMPIRank: 0\n\n"
    "Name: _starpu_data_acquire_cb_pre\nJobId: 0_4\nDependsOn: 0_2\nSubmitTime: 6\nMPIRank: 0\n\n"
    "Name: _starpu_data_acquire_cb_release\nJobId: 0_5\nDependsOn: 0_4\nSubmitTime: 34\nMPIRank: 0\n\n"
    "Name: update.adam\nJobId: 0_6\nSubmitOrder: 3\nDependsOn: 0_5 0_1\nWorkerId: 1\nSubmitTime: 6\nStartTime: 36\n"
    "EndTime: 40\nMPIRank: 0\n\n"
    "Name: reshard.copy\nJobId: 1_1\nSubmitOrder: 1\nWorkerId: 0\nSubmitTime: 8\nStartTime: 12\nEndTime: 14\n"
    "MPIRank: 1\n\n"
    "JobId: 1_8\nDependsOn: 1_1\nMPIRank: 1\n\n"
    "Name: _starpu_data_acquire_cb_release\nJobId: 1_9\nDependsOn: 1_8\nSubmitTime: 40\nMPIRank: 1\n\n"
    "Name: merge.add\nJobId: 1_2\nSubmitOrder: 2\nDependsOn: 1_9 1_1\nWorkerId: 0\nSubmitTime: 8\nStartTime: 42\n"
    "EndTime: 50\nMPIRank: 1\n\n"
    "Name: matmul\nJobId: 1_3\nSubmitOrder: 3\nWorkerId: 0\nSubmitTime: 59\nStartTime: 60\nEndTime: 62\nIteration: 1\n"
    "MPIRank: 1\n\n"
    "Name: matmul\nJobId: 1_4\nSubmitOrder: 4\nSubmitTime: 61\nMPIRank: 1\n\n"
    "Name: matmul\nJobId: 1_5\nSubmitOrder: 5\nWorkerId: 0\nSubmitTime: 61\nStartTime: 62.5\nMPIRank: 1\n\n"
    "Control: WontUse\nJobId: 6\nSubmitTime: 61\nMPIRank: 1\n\n";

/* One more message takes no time: it seems to arrive before it is sent. One of a rank with itself does not count. */
static const char comms[] =
    "Src: 0\nDst: 1\nTag: 9\nSendTime: 31\nRecvTime: 40\nSendHandle: aa\nRecvHandle: bb\nSendJobId: 0_4\n"
    "RecvJobId: 1_9\nSize: 4096\n\n"
    "Src: 0\nDst: 0\nTag: 1\nSendTime: 10\nRecvTime: 60\nSize: 8\n\n"
    "Src: 1\nDst: 0\nTag: 9\nSendTime: 50\nRecvTime: 49.5\nSendHandle: cc\nSize: 100\n\n";

static const char data[] = "Handle: aa\nMPIRank: 0\nName: grad\n\nHandle: aa\nMPIRank: 1\nName: wrong\n\n";

static void make_two_ranks(void)
{
    make_run(workers, tasks, comms, data);
    add_rank(0, "trama-trace 1\nprogram by hand\nrank 0 of 2\nworker 0 place 0\nworker 1 place 1\nended\n");
    add_rank(1, "trama-trace 1\nprogram by hand\nrank 1 of 2\nworker 0 place 0\nworker 1 place 0\nended\n");
}

/* Busy: 10 + 10 + 4 + 2 + 8 + 2 = 36 of 4 * (62 - 10). The longest chain is matmul, matmul.grad, merge.add. A message
 * is sent and not taken for 9 ms on either rank; update.adam hides 36-40 of that. */
START_TEST(all_figures_of_two_ranks)
{
    make_two_ranks();
    const char *text = trace("");
    EXPECT(text, "by hand: 2 ranks, 4 workers, 6 tasks, 2 messages\n",
           "missing: 1 task began and never ended: left out of all figures\n",
           "         1 task was submitted and never began\n",
           "1 of 2 messages arrived up to 0.500 ms before they were sent", "makespan                   52.000 ms\n",
           "  area bound                9.000 ms   17.3 %", "  critical path            28.000 ms   53.8 %",
           "  with messages            37.000 ms   71.2 %", "idle                      172.000 ms   82.7 %",
           "bytes moved               4.1 KiB     in 2 messages", "the largest of 4.0 KiB",
           "communication              18.000 ms   17.3 %", "hidden                      4.000 ms   22.2 %",
           "steps                           2     median 20.000 ms, longest 20.000 ms (step 0)\n");
}
END_TEST

START_TEST(a_rank_that_is_not_read_is_in_no_figure)
{
    make_two_ranks();
    write_text("run/about_0", "trama-trace 1\nrank 0 of 3\nended\n");
    write_text("run/about_1", "trama-trace 1\nrank 1 of 3\nended\n");
    write_text("run/about_2", "trama-trace 1\nrank 2 of 3\nworker 0 place 0\nworker 1 place 0\n");
    EXPECT(trace(""), ": 3 ranks, 4 workers, 6 tasks, 2 messages\n", "  area bound                9.000 ms   17.3 %",
           "idle                      172.000 ms   82.7 %", "communication              18.000 ms   17.3 %",
           "\nforward                           2       12.000    5.8 %");
}
END_TEST

START_TEST(tables_by_role_op_and_place)
{
    make_two_ranks();
    EXPECT(trace(""), "\nforward                           2       12.000    5.8 %      6.000       5.00\n",
           "\nbackward                          1       10.000    4.8 %     10.000\n",
           "\nupdate                            1        4.000    1.9 %      4.000\n",
           "\nmerge                             1        8.000    3.8 %      8.000\n",
           "\nreshard                           1        2.000    1.0 %      2.000\n",
           "\nmatmul                            2       12.000    5.8 %      6.000       5.00\n"
           "matmul.grad                       1       10.000    4.8 %     10.000\n"
           "merge.add                         1        8.000    3.8 %      8.000\n",
           "\nrank 0 place 0, 1 worker          2       20.000   38.5 %     10.000       5.00\n"
           "rank 0 place 1, 1 worker          1        4.000    7.7 %      4.000\n"
           "rank 1 place 0, 2 workers         3       12.000   11.5 %      4.000\n");
}
END_TEST

START_TEST(waits_name_their_causes)
{
    make_two_ranks();
    EXPECT(
        trace(""),
        "\n    28.000 ms  at 4.000: merge.add (rank 1, worker 0): for 4.0 KiB of grad from rank 0\n"
        "    26.000 ms  at 0.000: update.adam (rank 0, worker 1): until 4.0 KiB of grad had left to rank 1\n"
        "    10.000 ms  at 40.000: matmul of step 1 (rank 1, worker 0): submitted late: the program had not asked for "
        "it yet\n"
        "     2.000 ms  at 0.000: reshard.copy (rank 1, worker 0): it was ready all the time, and no worker took "
        "it\n\n");
}
END_TEST

/* b needs a, which ends 2 ms into the wait; 8 of its 10 ms nobody took it. */
START_TEST(a_wait_that_went_on_when_its_cause_was_over_says_so)
{
    make_run("",
             "Name: a\nJobId: 0_1\nWorkerId: 0\nSubmitTime: 0\nStartTime: 5\nEndTime: 7\n\n"
             "Name: b\nJobId: 0_2\nDependsOn: 0_1\nWorkerId: 1\nSubmitTime: 0\nStartTime: 15\nEndTime: 16\n\n",
             "", "");
    add_rank(0, "trama-trace 1\nrank 0 of 1\nended\n");
    EXPECT(trace(""), ": b (worker 1): for a (worker 0); then it was ready for 8.000 ms, and no worker took it\n");
}
END_TEST

/* The first task begins at 0, a message is sent 2 ms before; viewers of trace.json refuse times below 0. */
START_TEST(time_begins_with_the_first_task)
{
    make_run("",
             "Name: a\nJobId: 0_1\nWorkerId: 0\nSubmitTime: 1000\nStartTime: 1005\nEndTime: 1007\n\n"
             "Name: b\nJobId: 1_1\nWorkerId: 0\nSubmitTime: 0\nStartTime: 1015\nEndTime: 1016\n\n",
             "Src: 0\nDst: 1\nSendTime: 1003\nRecvTime: 1006\nSize: 8\n\n", "");
    add_rank(0, "trama-trace 1\nrank 0 of 2\nended\n");
    add_rank(1, "trama-trace 1\nrank 1 of 2\nended\n");
    EXPECT(trace(""), "makespan                   11.000 ms\n", "\n    10.000 ms  at 0.000: b ");
    EXPECT(text_of(run("cat %s/run/timeline.svg", scratch)), "-2.000 to 11.000 ms of 11.000 ms",
           "\n0.000000 to 2.000000 ms", "\n-2.000000 to 1.000000 ms");
    EXPECT(text_of(run("cat %s/run/trace.json", scratch)), "\"time_0_at_ms\":2,", "\"ts\":0.000,\"dur\":3000.000",
           "\"ts\":2000.000,\"dur\":2000.000", "\"submitted_ms\":-5");
    ck_assert_int_ne(run("grep -e '\"ts\":-' -e '\"dur\":-' %s/run/trace.json", scratch)->status, 0);
}
END_TEST

START_TEST(messages_of_senders_that_the_tool_does_not_look_at_are_named)
{
    make_two_ranks();
    text_of(run("cd %s/run && mv prof_file_1 prof_file_2 && rm about_1", scratch));
    write_text("run/about_0", "trama-trace 1\nprogram by hand\nrank 0 of 3\nended\n");
    EXPECT(trace(""),
           "rank 1: no events: ", "rank 2: messages from there are left out, as ranks before it are missing\n",
           "rank 2: about_R is missing");
}
END_TEST

START_TEST(more_ranks_than_the_tool_merges_are_refused)
{
    make_two_ranks();
    text_of(run("cd %s/run && rm about_* && for i in $(seq 64); do echo events >prof_file_$i; done", scratch));
    const outcome *o = run("TRAMA_FXT_TOOL=%s/tool ./trama trace --no-starvz %s/run", scratch, scratch);
    ck_assert_msg(o->status == 1 && contains(o->text, "65 ranks") && contains(o->text, "at most 64"), "%s", o->text);
}
END_TEST

START_TEST(steps_that_are_not_there_are_told)
{
    make_two_ranks();
    ck_assert(!contains(trace("--steps=1-9"), "the steps asked for"));
    EXPECT(trace("--steps=7-9"), "\nthe steps asked for are not in the trace, which has steps 0 to 1: timeline.svg ");
}
END_TEST

START_TEST(results_that_are_not_made_again_are_gone)
{
    make_two_ranks();
    write_text("run/starvz.png", "old");
    write_text("run/papi.rec", "old");
    trace("");
    ck_assert_str_eq(text_of(run("cd %s/run && ls starvz.png papi.rec 2>/dev/null; true", scratch)), "");
}
END_TEST

START_TEST(a_rank_that_was_interrupted_before_it_wrote_is_told_so)
{
    make_two_ranks();
    write_text("run/about_1", "trama-trace 1\nrank 1 of 2\n");
    text_of(run("rm %s/run/prof_file_1", scratch));
    const char *text = trace("");
    EXPECT(text, "missing: rank 1: no events: interrupted before they were written");
    ck_assert(!contains(text, "the trace was not closed") && !contains(text, "prof_file_* is missing"));
}
END_TEST

/* As on a disk that fills up: the last tasks were submitted, and the events of their runs are lost. */
START_TEST(where_no_task_ran_all_that_is_missing_is_named)
{
    make_run(workers, "Name: matmul\nJobId: 0_1\nSubmitOrder: 1\nSubmitTime: 5\nMPIRank: 0\n\n", "", "");
    add_rank(0, "trama-trace 1\nprogram by hand\nrank 0 of 1\ncut\n");
    const outcome *o = run("TRAMA_FXT_TOOL=%s/tool ./trama trace --no-starvz %s/run", scratch, scratch);
    ck_assert_int_eq(o->status, 1);
    EXPECT(o->text, "there is nothing to show: no task of by hand ran; rank 0: cut: not all events could be written",
           "; 1 task was submitted and never began\n");
}
END_TEST

START_TEST(an_interrupted_command_leaves_nothing_behind)
{
    make_two_ranks();
    write_text("tool", "#!/bin/sh\n: >\"${0%/*}/begun\"\nexec sleep 600\n");
    const outcome *o = run("TRAMA_FXT_TOOL=%s/tool ./trama trace --no-starvz %s/run & p=$!; "
                           "until [ -e %s/begun ]; do sleep 0.05; done; ls -A %s/run | grep -c trama-trace; kill $p; "
                           "wait $p; echo status $?; ls -A %s/run",
                           scratch, scratch, scratch, scratch, scratch);
    ck_assert_msg(o->text[0] == '1' && contains(o->text, "status 143\nabout_0\nabout_1\nprof_file_0\nprof_file_1\n"),
                  "%s", o->text);
}
END_TEST

/* ---- Many needs ---- */

/* A handle that is only read: each reader waits, by StarPU's own jobs, for all before it. 1 ms each, on one worker. */
START_TEST(a_handle_with_many_readers_costs_each_a_little)
{
    enum { READERS = 3000 };
    char *records = malloc(READERS * 256);
    size_t n = 0;
    ck_assert_ptr_nonnull(records);
    for (int i = 0; i < READERS; i++)
        n += (size_t)sprintf(records + n,
                             "Name: read\nJobId: 0_%d\nSubmitOrder: %d\nWorkerId: 0\nSubmitTime: 0\nStartTime: %d\n"
                             "EndTime: %d\nDependsOn: 0_%d\n\nName: _starpu_sync_task\nJobId: 0_%d\n"
                             "DependsOn: 0_%d 0_%d\n\n",
                             2 * i + 1, i + 1, i, i + 1, 2 * i, 2 * i + 2, 2 * i, 2 * i + 1);
    make_run("", records, "", "");
    free(records);
    add_rank(0, "trama-trace 1\nrank 0 of 1\nended\n");
    EXPECT(trace(""), "1 rank, 1 worker, 3000 tasks", "  critical path          3000.000 ms  100.0 %");
    ck_assert_int_lt(atol(text_of(run("stat -c %%s %s/run/trace.json", scratch))), READERS * 2000L);
}
END_TEST

/* Random dependencies: the longest chain is that of a search through all of them. */
START_TEST(the_critical_path_is_that_of_the_whole_graph)
{
    enum { JOBS = 120, DENSE = 6 };
    static char records[JOBS * 256];
    for (uint64_t round = 0; round < 8; round++) {
        double chain[JOBS] = {0}, longest = 0;
        size_t n = 0;
        for (int i = 0; i < JOBS; i++) {
            bool own = i > 0 && plain_uniform(7, round, 0, (uint64_t)i, 0, 1) < 0.6;
            double lasts = own ? 0 : 1 + (int)plain_uniform(7, round, 1, (uint64_t)i, 0, 9);
            n += (size_t)sprintf(records + n, "Name: %s\nJobId: 0_%d\n", own ? "_starpu_sync_task" : "op", i + 1);
            if (!own) /* all begin one after the other, whatever they need */
                n += (size_t)sprintf(records + n, "SubmitOrder: %d\nWorkerId: 0\nStartTime: %d\nEndTime: %g\n", i,
                                     10 * i, 10 * i + lasts);
            n += (size_t)sprintf(records + n, "DependsOn:");
            for (int k = 0; k < DENSE && i > 0; k++) {
                int need = (int)plain_uniform(7, round, 2 + (uint64_t)k, (uint64_t)i, 0, i);
                n += (size_t)sprintf(records + n, " 0_%d", need + 1);
                chain[i] = chain[need] > chain[i] ? chain[need] : chain[i];
            }
            n += (size_t)sprintf(records + n, "\n\n");
            chain[i] += lasts;
            longest = chain[i] > longest ? chain[i] : longest;
        }
        make_run("", records, "", "");
        add_rank(0, "trama-trace 1\nrank 0 of 1\nended\n");
        char line[64];
        snprintf(line, sizeof line, "\n  critical path      %12.3f ms", longest);
        EXPECT(trace(""), line);
    }
}
END_TEST

/* ---- Names ---- */

/* 150 names of all roles: as many colours, and the summary stays short. */
START_TEST(many_names_have_a_colour_each)
{
    enum { NAMES = 150 };
    static const char *const forms[] = {"op%d", "op%d.grad", "update.op%d", "merge.op%d", "reshard.op%d", "a%d"};
    static char records[NAMES * 128], colors[NAMES][8];
    size_t n = 0;
    for (int i = 0; i < NAMES; i++) {
        n += (size_t)sprintf(records + n, "Name: ");
        n += (size_t)sprintf(records + n, forms[i % 6], i);
        n += (size_t)sprintf(records + n, "\nJobId: %d\nSubmitOrder: %d\nWorkerId: 0\nStartTime: %d\nEndTime: %d\n\n",
                             i + 1, i + 1, i + 1, i + 2);
    }
    make_run("", records, "", "");
    add_rank(0, "trama-trace 1\nrank 0 of 1\nended\n");
    const char *text = trace("");
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    ck_assert_int_le(lines, 60);
    EXPECT(text, "1 rank, 1 worker, 150 tasks", "\n135 others                      135      135.000   90.0 %",
           "idle                        0.000 ms    0.0 %");
    text = text_of(run("cat %s/run/starvz.yaml", scratch));
    for (int i = 0; i < NAMES; i++) {
        text = strstr(text, "{color: \"") + 9;
        ck_assert(*text == '#' && strspn(text + 1, "0123456789abcdef") == 6);
        memcpy(colors[i], text, 7);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(colors[i], colors[j]);
    }
}
END_TEST

/* ---- Trimming ---- */

#define BOTH                                                                                                           \
    "%EventDef PajeSetState 20\n% Time date\n% Container string\n% Type string\n% Value string\n% Params string\n"
#define PARAMS_20 "V1x4 V1x4 V1x4 V1x4 "
#define PARAMS_80 PARAMS_20 PARAMS_20 PARAMS_20 PARAMS_20

static const char whole[] =
    BOTH "% Priority string\n% GFlop string\n%EndEventDef\n"
         "%EventDef PajeStartLink 23\n% Time date\n% MPITAG string\n% Priority string\n"
         "% Handle string\n% HName string\n% X string\n% Y string\n%EndEventDef\n"
         "7 0.0 w0 W t1 CPU0\n7\t0.5\tt2\tUT\tp\tUserThread2\n"
         "6\ta b\tWS\ta b\t\"0.1 0.2 0.3\" \n6       I       S       Idle         \".9 .1 .0\"\t\n"
         "20\t1.5\tw0\tWS\t\"two words\"\t\"" PARAMS_80 PARAMS_20 "\"\t-7\t0.5\n"
         "20\t2.5\tw0\tWS\t\"\"\t\"V1x4\"\t3\t0.25\n"
         "23\t3.5\t17\t0\tabc\t\"a \t name\"\t4\t5\n"
         "18\t3.5\tWSL\tMPIroot\t1\tw0\tsteal_1\n18\t3.5\tF\tMPIroot\t1\tw0\tcom_1\n"
         "7\t0.0\tm\tMPICt\tp\tm\n10\t1.0\tm\tCtS \tPl\n10\t1.1\tm\tCtS \tDr\n10\t1.2\tm\tCtS \tPl\n"
         "10\t1.3\tm\tCtS \tSl\n10\t1.4\tm\tCtS \tDr\n10\t1.5\tm\tCtS \tPl\n10\t1.6\tw0\tWS\tPl\n"
         "9\t1.7\tprog_event\tp\t\"fxt flush\"\n"
         "10\t4.5\tt2\tS\tD\n10\t4.5\tt1\tS\tD\n8\t4.5\tt2\tT\n8\t4.5\tt1\tT\n";
static const char trimmed[] = BOTH "% GFlop string\n%EndEventDef\n"
                                   "%EventDef PajeStartLink 23\n% Time date\n%\tTag\tstring\n% Priority string\n"
                                   "% Handle string\n%EndEventDef\n"
                                   "7 0.0 w0 W t1 CPU0\n7\t0.5\tt2\tUT\tp\tUserThread2\n"
                                   "6\t\"a b\"\tWS\t\"a b\"\t\"0.1 0.2 0.3\" \n"
                                   "6       I       S       Idle         \".9 .1 .0\"\t\n"
                                   "20\t1.5\tw0\tWS\t\"two words\"\t\"" PARAMS_80 "V1x4 V1x4 V1x4 ...\"\t0.5\n"
                                   "20\t2.5\tw0\tWS\t\"\"\t\"V1x4\"\t0.25\n"
                                   "23\t3.5\t17\t0\tabc\n"
                                   "18\t3.5\tF\tMPIroot\t1\tw0\tcom_1\n"
                                   "7\t0.0\tm\tMPICt\tp\tm\n10\t1.0\tm\tCtS \tPl\n"
                                   "10\t1.3\tm\tCtS \tSl\n10\t1.4\tm\tCtS \tDr\n10\t1.6\tw0\tWS\tPl\n"
                                   "9\t1.7\tprog_event\tp\t\"fxt flush\"\n"
                                   "10\t4.5\tt1\tS\tD\n8\t4.5\tt2\tUT\n8\t4.5\tt1\tT\n";

START_TEST(paje_traces_are_trimmed_column_by_column)
{
    make_run(whole, "Name: a\nJobId: 1\nWorkerId: 0\nStartTime: 1\nEndTime: 2\n\n", "", "");
    add_rank(0, "trama-trace 1\nrank 0 of 1\nended\n");
    EXPECT(trace(""), "missing: rank 0: events were written to disk 1 time during the run");
    ck_assert_str_eq(text_of(run("cat %s/run/paje.trace", scratch)), trimmed);
}
END_TEST

TESTS(all_figures_of_two_ranks, time_begins_with_the_first_task, a_rank_that_is_not_read_is_in_no_figure,
      tables_by_role_op_and_place, waits_name_their_causes, a_wait_that_went_on_when_its_cause_was_over_says_so,
      messages_of_senders_that_the_tool_does_not_look_at_are_named, more_ranks_than_the_tool_merges_are_refused,
      steps_that_are_not_there_are_told, results_that_are_not_made_again_are_gone,
      a_rank_that_was_interrupted_before_it_wrote_is_told_so, where_no_task_ran_all_that_is_missing_is_named,
      an_interrupted_command_leaves_nothing_behind, a_handle_with_many_readers_costs_each_a_little,
      the_critical_path_is_that_of_the_whole_graph, many_names_have_a_colour_each,
      paje_traces_are_trimmed_column_by_column)
