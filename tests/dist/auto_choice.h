/* SPDX-License-Identifier: Apache-2.0 */
/* A perceptron and a machine of four nodes, for tests of trama_auto_shard. */
#ifndef AUTO_CHOICE_H
#define AUTO_CHOICE_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "pair.h"
#include "suite.h"
#include "trama_auto.h"
#include "trama_complete.h"
#include "trama_composed.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"

static const trama_init init = {-0.3, 0.3, 9, 9};
static trama_program *p;
static trama_cluster *cluster;
static trama_value *x, *labels, *w[2];
static trama_target *train;

static inline void set_up(void)
{
    static const char described[] =
        "kind node\ncores 1\ncore f32 50Gflop/s\ncore memory 20GB/s\ntask 1us\nmessage 1us\n"
        "switch top\nnodes 4 node in top 1GB/s 5us\n";
    p = trama_program_create();
    ck_assert_msg(!trama_cluster_create(described, &cluster), "%s", trama_error());
}

static inline void tear_down(void)
{
    trama_program_destroy(&p);
    trama_cluster_destroy(&cluster);
}

static inline void build(int64_t batch, int64_t hidden)
{
    const trama_optimizer adamw = trama_adamw(0.01);
    x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(batch, 40));
    labels = trama_input(p, "labels", TRAMA_I64, TRAMA_SHAPE(batch));
    w[0] = trama_parameter(p, "w0", TRAMA_F32, TRAMA_SHAPE(40, hidden), &init);
    w[1] = trama_parameter(p, "w1", TRAMA_F32, TRAMA_SHAPE(hidden, 24), &init);
    trama_value *loss = trama_cross_entropy(trama_matmul(trama_relu(trama_matmul(x, w[0])), w[1]), labels);
    train = trama_target_create(p, "train", trama_minimize(loss, &adamw), loss);
    ck_assert_msg(train != NULL, "%s", trama_program_error(p));
}

/* The first word of the line that is chosen, which is one line. */
static inline void expect_chosen(const char *table, const char *name)
{
    const char *end = strstr(table, "  chosen\n"), *line = end;
    ck_assert_msg(end && !strstr(end + 1, "  chosen\n"), "%s", table);
    while (line > table && line[-1] != '\n')
        line--;
    ck_assert_msg(!strncmp(line, name, strlen(name)), "%s is not chosen:\n%s", name, table);
}

static inline trama_layout layout_of(const trama_value *v, int *size)
{
    trama_completion *c;
    trama_layout layout;
    ck_assert_msg(!trama_completion_create(p, 1024, &c), "%s", trama_error());
    ck_assert(trama_completion_layout(c, v, &layout));
    *size = trama_mesh_size(trama_completion_mesh(c, v));
    trama_completion_destroy(&c);
    return layout;
}

static inline void compare_with_one_device(int64_t batch, const char *name)
{
    dense fed[] = {dense_random(TRAMA_SHAPE(batch, 40), 1, -1, 1, false),
                   dense_random(TRAMA_SHAPE(batch), 2, 0, 3, true)};
    trama_value *inputs[] = {x, labels};
    pair_try(p, train, 2, inputs, fed, 4, 1e-4, name);
    for (int i = 0; i < 2; i++)
        dense_free(&fed[i]);
}

#endif
