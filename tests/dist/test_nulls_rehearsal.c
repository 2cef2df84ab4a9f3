/* SPDX-License-Identifier: Apache-2.0 */
/* NULL for every pointer of every function of rehearsals. */
#include "null_program.h"
#include "trama_auto.h"
#include "trama_rehearsal.h"

START_TEST(clusters)
{
    trama_cluster *none = NULL;
    REFUSES(trama_cluster_create(NULL, &none));
    REFUSES(trama_cluster_create("kind n\nnodes 1 n", NULL));
    GIVES(0, trama_cluster_ranks(NULL));
    trama_cluster_destroy(NULL);
    trama_cluster_destroy(&none);
}
END_TEST

START_TEST(rehearsals)
{
    trama_cluster *c;
    trama_rehearsal *r = NULL;
    trama_rehearsal_options options = {0};
    trama_rehearsal_report report = {0};
    const char *name = "";
    char *words;
    TAKES(trama_cluster_create("kind n\nnodes 1 n", &c));
    trama_target *t = trama_target_create(p, "t", loss);
    REFUSES(trama_rehearse(NULL, c, &options, &r));
    REFUSES(trama_rehearse(t, NULL, &options, &r));
    REFUSES(trama_rehearse(t, c, &options, NULL));
    TAKES(trama_rehearse(t, c, NULL, &r));
    REFUSES(trama_rehearsal_read(NULL, &report));
    REFUSES(trama_rehearsal_read(r, NULL));
    GIVES(0, trama_rehearsal_memory(NULL, 0));
    GIVES(0, trama_rehearsal_memory(r, 1));
    GIVES(0, trama_rehearsal_path(NULL, 0, &name));
    PASSES(name);
    ck_assert_double_gt(trama_rehearsal_path(r, 0, NULL), 0);
    REFUSES(trama_rehearsal_text(NULL, &words));
    REFUSES(trama_rehearsal_text(r, NULL));
    trama_rehearsal_destroy(NULL);
    trama_rehearsal_destroy(&r);
    trama_rehearsal_destroy(&r);
    trama_cluster_destroy(&c);
}
END_TEST

START_TEST(choices_of_layouts)
{
    trama_cluster *c;
    trama_auto_options options = {0};
    char *words;
    TAKES(trama_cluster_create("kind n\ncores 2\nranks 2\nnodes 1 n", &c));
    trama_target *t = trama_target_create(p, "t", loss);
    REFUSES(trama_auto_shard(NULL, c, &options, &words));
    REFUSES(trama_auto_shard(t, NULL, &options, &words));
    TAKES(trama_auto_shard(t, c, NULL, NULL));
    trama_cluster_destroy(&c);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {clusters, rehearsals, choices_of_layouts};
    return suite_run("nulls of rehearsals", set_up, tear_down, tests, sizeof tests / sizeof *tests);
}
