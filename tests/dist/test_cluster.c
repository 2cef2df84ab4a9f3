/* SPDX-License-Identifier: Apache-2.0 */
/* Described machines: their text, errors that name the line, rates, machine tables. */
#include <string.h>

#include "fuzz_cluster.h"
#include "rehearsed.h"
#include "simulation.h"

static const char whole[] = "# two kinds of nodes under two switches\n"
                            "kind thin\n"
                            "  cores 4\n"
                            "  ranks 2\n"
                            "  core f32 40Gflop/s\n"
                            "  core f64 20Gflop/s 1Mflop\n"
                            "  core f64 10Gflop/s 1kflop\n"
                            "  core memory 5GB/s\n"
                            "  op matmul f32 80Gflop/s\n"
                            "  op sum memory 1GB/s 1MB\n"
                            "  op message memory 1GB/s 1kB\n"
                            "  op message memory 3GB/s 100kB\n"
                            "  task 3us 200ns\n"
                            "  submit 500ns 40ns 6us\n"
                            "  read 9us\n"
                            "  far 64MB 20GB/s 40GB/s\n"
                            "  evict 16MB 2.5 3\n"
                            "  message 4us 300ns 1.5\n"
                            "  local 6GB/s 1us\n"
                            "  eager 64kB\n"
                            "kind fat\n"
                            "  cores 32\n"
                            "  gpus 4\n"
                            "  gpu f32 20Tflop/s\n"
                            "switch core\n"
                            "switch leaf in core 100GB/s 1us # the rest of a line is a comment\n"
                            "nodes 2 thin in leaf 25GB/s 2us\n"
                            "nodes 1 fat in core 50GB/s 1.5us\n";

START_TEST(a_text_says_all_of_a_machine)
{
    trama_cluster *c = made(whole);
    ck_assert_int_eq(trama_cluster_ranks(c), 5);
    ck_assert_int_eq(cluster_node_of(c, 1), 0);
    ck_assert_int_eq(cluster_node_of(c, 2), 1);
    ck_assert_int_eq(cluster_node_of(c, 4), 2);
    const cluster_kind *k = cluster_kind_of(c, 3);
    ck_assert_double_eq_tol(k->task, 3e-6, 1e-12);
    ck_assert_double_eq_tol(k->task_operand, 2e-7, 1e-12);
    ck_assert_double_eq_tol(k->submit, 5e-7, 1e-12);
    ck_assert_double_eq_tol(k->submit_operand, 4e-8, 1e-12);
    ck_assert_double_eq_tol(k->submit_run, 6e-6, 1e-12);
    ck_assert_double_eq_tol(k->submit_message, 3e-7, 1e-12);
    ck_assert_double_eq_tol(k->read, 9e-6, 1e-12);
    ck_assert_double_eq_tol(k->far, 64e6, 1);
    ck_assert_double_eq_tol(k->far_rate, 20e9, 1);
    ck_assert_double_eq_tol(k->far_writes, 40e9, 1);
    ck_assert_double_eq_tol(k->evict, 16e6, 1);
    ck_assert_double_eq_tol(k->evict_task, 2.5, 1e-12);
    ck_assert_double_eq_tol(k->evict_submit, 3, 1e-12);
    ck_assert_double_eq_tol(k->message, 4e-6, 1e-12);
    ck_assert_double_eq_tol(k->evict_message, 1.5, 1e-12);
    ck_assert_double_eq_tol(cluster_copy_seconds(k, 10000), 5e-6, 1e-12); /* by its line of rates, half-way */
    ck_assert_double_eq_tol(cluster_copy_seconds(k, 1000000), 1e6 / 3e9, 1e-12);
    ck_assert_double_eq_tol(k->local_latency, 1e-6, 1e-12);
    ck_assert_double_eq_tol(k->eager, 64e3, 1e-3);
    ck_assert_double_eq_tol(c->switches.at[1].bandwidth, 1e11, 1);
    ck_assert_double_eq_tol(c->nodes.at[2].latency, 1.5e-6, 1e-12);
    trama_cluster_destroy(&c);
}
END_TEST

START_TEST(rates_are_of_the_op_or_of_the_core)
{
    trama_cluster *c = made(whole);
    const cluster_kind *thin = &c->kinds.at[0], *fat = &c->kinds.at[1];
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, "matmul", TRAMA_F32, 1e9), 80e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, "exp", TRAMA_F32, 1e9), 40e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, "sum", RATE_MEMORY, 5), 1e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, NULL, RATE_MEMORY, 5), 5e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(fat, true, "matmul", TRAMA_BF16, 1), 20e12, 1);
    /* between 1,000 and 1,000,000 flop the logarithm counts; beyond them nothing changes */
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, NULL, TRAMA_F64, 31622.776601683793), 15e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, NULL, TRAMA_F64, 1), 10e9, 1);
    ck_assert_double_eq_tol(cluster_rate_of(thin, false, NULL, TRAMA_F64, 1e12), 20e9, 1);
    trama_cluster_destroy(&c);
}
END_TEST

START_TEST(ranks_divide_the_cores_and_gpus_of_their_node)
{
    trama_cluster *c = made(whole);
    machine *m = cluster_machine(c, 5);
    ck_assert_int_eq(m->n_places, 4 + 4);
    for (int r = 0; r < 4; r++) {
        ck_assert(m->places[r].rank == r && !m->places[r].gpu && m->places[r].workers == 2);
        ck_assert_int_eq(m->places[r].path[0], r / 2);
    }
    for (int p = 4; p < 8; p++)
        ck_assert(m->places[p].rank == 4 && m->places[p].gpu && m->places[p].workers == 1);
    machine_destroy(&m);
    trama_cluster_destroy(&c);
    c = made("kind n\ncores 16\nswitch s\nnodes 2 n in s 1GB/s 0s");
    m = cluster_machine(c, 2); /* a rank of 8 cores or more keeps one for messages, if there are others */
    ck_assert_int_eq(m->places[1].workers, 15);
    machine_destroy(&m);
    m = cluster_machine(c, 1);
    ck_assert_int_eq(m->places[0].workers, 16);
    machine_destroy(&m);
    trama_cluster_destroy(&c);
}
END_TEST

static const struct wrong {
    const char *source, *says;
} wrong[] = {
    {"", "line 1: the machine ends without a node; add: nodes N KIND"},
    {"cores 3", "line 1: 'cores' describes a kind of node"},
    {"kind n\nkind n", "line 2: there is a kind 'n' already"},
    {"kind n\ncores x\nnodes 1 n", "line 2: 'x' must be a whole number from 1 to 65536"},
    {"kind n\ncores 0\nnodes 1 n", "line 2: '0' must be a whole number from 1 to 65536"},
    {"kind n\ncores 2 3\nnodes 1 n", "line 2: the statement has 3 words; its form is: cores N"},
    {"kind n\n\n\ncore f31 1Gflop/s\nnodes 1 n", "line 4: 'f31' is neither an element type"},
    {"kind n\ncore f32 1GB/s\nnodes 1 n", "line 2: '1GB/s' is no number of flop/s; write it as 25Gflop/s"},
    {"kind n\ncore memory 0GB/s\nnodes 1 n", "line 2: '0GB/s' must be above 0"},
    {"kind n\ntask -1s\nnodes 1 n", "line 2: '-1s' must be 0 or more"},
    {"kind n\ntask nan\nnodes 1 n", "line 2: 'nan' must be 0 or more"},
    {"kind n\ntask 1xs\nnodes 1 n", "line 2: '1xs' is no number of s"},
    {"kind n\ntask 1us 1xs\nnodes 1 n", "line 2: '1xs' is no number of s"},
    {"kind n\nread 1us 1us\nnodes 1 n", "line 2: the statement has 3 words; its form is: a word and one quantity"},
    {"kind n\ncache 1MB 1GB/s 1us\nnodes 1 n", "line 2: the statement has 4 words; its form is: a word and one"},
    {"kind n\nfar 1GB/s\nnodes 1 n", "line 2: '1GB/s' is no number of B"},
    {"kind n\nspeed 3\nnodes 1 n", "line 2: there is no statement 'speed'"},
    {"kind n\nswitch s\nswitch s\nnodes 1 n", "line 3: there is a switch 's' already"},
    {"kind n\nswitch t in s 1GB/s 0s\nnodes 1 n", "line 2: there is no switch 's' before this line"},
    {"kind n\nswitch s on t 1GB/s 0s\nnodes 1 n", "line 2: behind 's' comes: in SWITCH BANDWIDTH TIME"},
    {"kind n\nnodes 1 m", "line 2: there is no kind 'm' before this line"},
    {"kind n\nnodes 0 n", "line 2: '0' must be a whole number"},
    {"kind n\nnodes 2 n", "line 2: the machine has 2 nodes, and 2 of them in no switch"},
    {"kind n\nswitch s\nswitch t\nnodes 2 n in s 1GB/s 0s", "the machine has 2 switches that are in none"},
    {"kind n\nranks 3\nnodes 1 n", "kind 'n' has 3 ranks, but no cores; add: cores 3"},
    {"kind n\nnodes 1 n\ncores 3", "line 3: 'cores' comes behind nodes of kind 'n'"},
    {"kind n\nranks 65536\ncores 65536\nswitch s\nnodes 1000000 n in s 1GB/s 0s",
     "line 5: there are more than 1048576"},
    {"kind a123456789012345678901234567890123", "line 1: the name 'a123456789012345678901234567890123' has 32 letters"},
    {"kind n\nop f f32 1Gflop/s 1flop 2 3 4 5 6", "line 2: a statement has at most 8 words"},
};

START_TEST(errors_name_the_line_and_the_remedy)
{
    trama_cluster *c = NULL;
    ck_assert_int_eq(trama_cluster_create(wrong[_i].source, &c), TRAMA_E_ARGUMENT);
    ck_assert_ptr_null(c);
    ck_assert_msg(strstr(trama_error(), wrong[_i].says) != NULL, "'%s' lacks '%s'", trama_error(), wrong[_i].says);
}
END_TEST

START_TEST(changed_texts_make_a_machine_or_are_refused)
{
    enum { LONGEST = sizeof whole + 8 };
    static const char letters[] = "0123456789 \n#kMGTunms/Bflopinsdcrae.-+x\xff";
    uint64_t seed = 20261125;
    for (int i = 0; i < (suite_is_long() ? 2000000 : 20000); i++) {
        unsigned char bytes[LONGEST];
        size_t n = sizeof whole - 1;
        memcpy(bytes, whole, n);
        for (int k = 1 + random_below(&seed, 3); k > 0; k--) {
            const size_t at = (size_t)random_below(&seed, (int)n);
            const int length = random_below(&seed, 12);
            if (random_below(&seed, 3) == 0 && at + (size_t)length < n) { /* a part is missing */
                memmove(bytes + at, bytes + at + length, n - at - (size_t)length);
                n -= (size_t)length;
            } else {
                bytes[at] = (unsigned char)letters[random_below(&seed, (int)sizeof letters - 1)];
            }
        }
        fuzz_cluster(bytes, n);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cluster");
    TCase *c = tcase_create("cluster");
    tcase_add_test(c, a_text_says_all_of_a_machine);
    tcase_add_test(c, rates_are_of_the_op_or_of_the_core);
    tcase_add_test(c, ranks_divide_the_cores_and_gpus_of_their_node);
    tcase_add_loop_test(c, errors_name_the_line_and_the_remedy, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_test(c, changed_texts_make_a_machine_or_are_refused);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
