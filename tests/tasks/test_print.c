/* SPDX-License-Identifier: Apache-2.0 */
/* Printed values: shape, layout and numbers. */
#include "network.h"
#include "pieces.h"

START_TEST(printing_shows_shape_layout_and_numbers)
{
    start();
    trama_mesh *mesh = mesh_of("dp=2,mp=2");
    trama_program *p = trama_program_create();
    float data[6] = {1, 2.5f, -3, 4, 5, 6};
    trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(2, 3)), mesh, "S(1),R");
    trama_init seven = {7, 7, 0, 0};
    trama_value *s = trama_state(p, "flag", TRAMA_U8, TRAMA_SCALAR, &seven);
    trama_init tenth = {0.1, 0.1, 0, 0};
    trama_value *none = trama_state(p, "none", TRAMA_I32, TRAMA_SHAPE(2, 0), NULL);
    trama_value *half = trama_state(p, "half", TRAMA_BF16, TRAMA_SHAPE(2), &tenth),
                *fine = trama_state(p, "fine", TRAMA_F16, TRAMA_SHAPE(2), &tenth);
    trama_target_create(p, "t", trama_sum(x), s, none, half, fine);
    trama_executable *e = compile(p);
    char *words = NULL;
    must(trama_feed(e, x, data, TRAMA_SHAPE(2, 3)));
    must(trama_print(e, x, 100, &words));
    ck_assert_str_eq(words, "x f32[2,3] as S(1),R\n[[1 2.5 -3]\n[4 5 6]]\n");
    free(words);
    must(trama_print(e, x, 2, &words));
    ck_assert_str_eq(words, "x f32[2,3] as S(1),R\n[[1 2.5 ...\n");
    free(words);
    must(trama_print(e, s, 1, &words));
    ck_assert_str_eq(words, "flag u8[] as R\n7\n");
    free(words);
    must(trama_print(e, none, 1, &words));
    ck_assert_ptr_nonnull(strstr(words, "none i32[2,0] as R"));
    free(words);
    must(trama_print(e, half, 2, &words)); /* 205 / 2048 and 1638 / 16384 are nearest to 0.1 */
    ck_assert_str_eq(words, "half bf16[2] as R\n[0.1001 0.1001]\n");
    free(words);
    must(trama_print(e, fine, 2, &words));
    ck_assert_str_eq(words, "fine f16[2] as R\n[0.099976 0.099976]\n");
    free(words);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

#define BLANK "   |                          |\n"
#define BLANK3 BLANK BLANK BLANK
#define BLANK4 BLANK3 BLANK
START_TEST(completion_and_plans_can_be_looked_at)
{
    start();
    network net = network_new("dp=2,mp=2", TRAMA_F32, false, 3, small_sizes);
    static const char *const w[] = {"R,S(1)", "R,S(0)", "R,R"}, *const b[] = {"R,S(0)", "R,R", "R,R"};
    net.e = compile(net.program);
    char *words;
    for (int l = 0; l < 3; l++) {
        must(trama_layout_of(net.e, net.w[l], &words));
        ck_assert_str_eq(words, w[l]);
        free(words);
        must(trama_layout_of(net.e, net.b[l], &words));
        ck_assert_str_eq(words, b[l]);
        free(words);
    }
    must(trama_layout_of(net.e, net.logits, &words));
    ck_assert_str_eq(words, "S(0),R");
    free(words);
    samples s = samples_new(&net, 6, 0);
    network_feed(&net, &s);
    must(trama_plan_text(net.e, net.train, false, &words)); /* before any run */
    ck_assert_ptr_nonnull(strstr(words, "rank 0: "));
    ck_assert_ptr_nonnull(strstr(words, "receives 0 B, sends 0 B, in 0 messages"));
    free(words);
    must(trama_plan_text(net.e, net.train, true, &words));
    ck_assert_ptr_nonnull(strstr(words, "matmul"));
    ck_assert_ptr_nonnull(strstr(words, "sgd"));
    int lines = 0;
    for (char *c = words; *c; c++)
        lines += *c == '\n';
    free(words);
    trama_traffic traffic = {0};
    must(trama_target_traffic(net.e, net.train, &traffic));
    ck_assert_int_eq(traffic.steps, lines);
    ck_assert_int_eq(traffic.tasks, lines);
    ck_assert_int_eq(traffic.bytes_received, 0);
    ck_assert_int_eq(traffic.bytes_sent, 0);
    must(trama_plan_graph(net.e, net.train, &words));
    static const char *const parts[] = {"digraph \"train\" {", "[shape=box, label=\"matmul\"]",
                                        "P(sum),R -> R,R",     "label=\"w0\\nf32[20,17]\\nR,S(1)\"",
                                        "color=brown",         "}\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        ck_assert_msg(strstr(words, parts[i]) != NULL, "no %s in\n%s", parts[i], words);
    free(words);
    must(trama_tensor_describe(net.e, net.w[1], &words));
    ck_assert_str_eq(words, "w1 f32[17,13] on dp=2,mp=2 as R,S(0)\n"
                            "process 0 (dp 0,mp 0) [0:9,0:13]\nprocess 1 (dp 0,mp 1) [9:17,0:13]\n"
                            "process 2 (dp 1,mp 0) [0:9,0:13]\nprocess 3 (dp 1,mp 1) [9:17,0:13]\n"
                            "\n   0                          13\n"
                            " 0 +--------------------------+\n" BLANK4 "   |           0,2            |\n" BLANK4
                            " 9 +--------------------------+\n" BLANK3 "   |           1,3            |\n" BLANK4
                            "17 +--------------------------+\n");
    free(words);
    must(trama_tensor_svg(net.e, net.w[1], &words));
    ck_assert(!strncmp(words, "<svg ", 5) && strstr(words, "<title>w1 f32[17,13] on dp=2,mp=2 as R,S(0)</title>"));
    ck_assert(strstr(words, ">0,2</text>") && strstr(words, ">process 3 (dp 1,mp 1) [9:17,0:13]</text>"));
    free(words);
    samples_free(&s);
    network_free(&net);
    stop();
}
END_TEST

TESTS(printing_shows_shape_layout_and_numbers, completion_and_plans_can_be_looked_at)
