/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of several ranks: one file and one text each, which later contexts, traced or not, leave alone. */
#include <sys/stat.h>

#include "harness.h"
#include "state.h"

static char folder[64];

/* The first rank names the folder. */
static void name_folder(void)
{
    char names[64][64] = {{0}}, mine[64] = "/tmp/trama-trace-XXXXXX";
    start();
    if (context_rank(ctx) == 0)
        ck_assert_ptr_nonnull(mkdtemp(mine));
    ck_assert_int_eq(context_gather(ctx, "test", mine, sizeof mine, names), TRAMA_OK);
    snprintf(folder, sizeof folder, "%s", names[0]);
    stop();
}

/* This rank's text in the folder, and that its events are there. */
static const char *about(const char *end, int rank)
{
    static char all[1024];
    char path[128];
    struct stat s;
    snprintf(path, sizeof path, "%s%s/prof_file_%d", folder, end, rank);
    ck_assert_msg(!stat(path, &s) && s.st_size > 0, "%s", path);
    snprintf(path, sizeof path, "%s%s/about_%d", folder, end, rank);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    return all;
}

START_TEST(each_rank_leaves_its_own_and_later_contexts_leave_them_alone)
{
    int rank = 0, ranks = 0;
    char line[64];
    name_folder();
    for (int traced = 2; traced >= 0; traced--) { /* and then once without */
        trama_config config = {.log = keep_quiet, .trace = traced ? folder : NULL};
        ck_assert_msg(!context_create(&config, "cpu:test", NULL, &ctx), "%s", trama_error());
        rank = context_rank(ctx);
        ranks = context_ranks(ctx);
        stop();
    }
    snprintf(line, sizeof line, "rank %d of %d\n", rank, ranks);
    for (int i = 0; i < 2; i++) {
        const char *text_of = about(i ? ".2" : "", rank);
        ck_assert_msg(strstr(text_of, line) && strstr(text_of, "ended\n"), "%s", text_of);
    }
}
END_TEST

START_TEST(a_folder_that_some_rank_cannot_write_is_an_error_on_all)
{
    bool first = atoi(getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : "0") == 0;
    trama_config config = {.log = keep_quiet, .trace = first ? folder : "/proc/trama"};
    ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_E_SYSTEM);
    ck_assert_ptr_nonnull(strstr(trama_error(), "/proc/trama"));
    config.trace = first ? folder : NULL;
    ck_assert_int_eq(context_create(&config, "cpu:test", NULL, &ctx), TRAMA_E_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(trama_error(), "different options; only"));
}
END_TEST

START_TEST(where_one_rank_runs_starpu_itself_there_is_no_trace)
{
    bool host = atoi(getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : "0") == 1;
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncpus = 1;
    if (host)
        ck_assert_int_eq(starpu_init(&conf), 0);
    trama_config config = {.log = keep_quiet, .trace = folder};
    ck_assert_msg(!context_create(&config, "cpu:test", NULL, &ctx), "%s", trama_error());
    ck_assert(!context_traces(ctx));
    stop();
    if (host)
        starpu_shutdown();
}
END_TEST

START_TEST(clocks_of_one_machine_agree)
{
    start();
    ck_assert_int_eq(comm_clock_ahead(&ctx->comm, true), 0);
    int64_t ahead = comm_clock_ahead(&ctx->comm, false); /* as if they were on another */
    ck_assert_msg(ahead > -5000000 && ahead < 5000000, "%lld ns ahead", (long long)ahead);
    stop();
}
END_TEST

START_TEST(the_folders_go)
{
    char command[256];
    start();
    snprintf(command, sizeof command, "rm -rf %s %s.2 %s.3", folder, folder, folder);
    ck_assert_int_eq(context_barrier(ctx, "test"), TRAMA_OK);
    if (context_rank(ctx) == 0)
        ck_assert_int_eq(system(command), 0);
    stop();
}
END_TEST

TESTS(each_rank_leaves_its_own_and_later_contexts_leave_them_alone,
      a_folder_that_some_rank_cannot_write_is_an_error_on_all, where_one_rank_runs_starpu_itself_there_is_no_trace,
      clocks_of_one_machine_agree, the_folders_go)
