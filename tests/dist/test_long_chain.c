/* SPDX-License-Identifier: Apache-2.0 */
/* Programs longer than a stack is deep: no walk over a program may call itself once an op. */
#include <pthread.h>

#include "simulation.h"
#include "suite.h"
#include "trama_ops.h"

enum { OPS = 40000, STACK = 512 * 1024 };

static void *plan_and_run(void *arg)
{
    int *steps = arg;
    trama_program *p = trama_program_create();
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(2), &(trama_init){.low = 1, .high = 1}), *y = x;
    for (int i = 0; i < OPS; i++)
        y = i % 2 ? trama_sub(y, x) : trama_add(y, x);
    trama_value *slope = trama_gradient(trama_sum(y), x); /* ... which passes every op on its way back */
    trama_target *t = trama_target_create(p, "chain", y, slope);
    machine *m = machine_uniform(1, 1);
    simulation_options o = {0};
    simulation *s = simulation_new(p, m, &o);
    simulation_run(s, t);
    *steps = simulation_plan(s, 0)->steps.n;
    simulation_destroy(&s);
    machine_destroy(&m);
    trama_program_destroy(&p);
    return NULL;
}

START_TEST(a_chain_longer_than_the_stack_is_planned_and_run)
{
    pthread_attr_t attributes;
    pthread_t thread;
    int steps = 0;
    pthread_attr_init(&attributes);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, plan_and_run, &steps), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    ck_assert_int_gt(steps, 0);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {a_chain_longer_than_the_stack_is_planned_and_run};
    return suite_run("long_chain", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
