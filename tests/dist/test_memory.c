/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the system refuses: recording, completing and planning end in order with E_MEMORY and a message, and
 * leave nothing behind (AddressSanitizer looks). */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "refusal.h"
#include "suite.h"
#include "trama_complete.h"
#include "trama_drawing.h"
#include "trama_network.h"
#include "trama_ops.h"
#include "trama_optimizer.h"
#include "trama_reshard_plan.h"

/* A network of two layers with an optimizer, on two axes. Returns the program's status. */
static trama_status record(trama_program **recorded)
{
    trama_mesh *mesh = trama_mesh_create("dp=2,mp=[2,1,1]");
    trama_program *p = *recorded = trama_program_create();
    if (!mesh || !p) {
        trama_mesh_destroy(&mesh);
        return strstr(trama_error(), "memory") ? TRAMA_E_MEMORY : TRAMA_E_ARGUMENT;
    }
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 6));
    trama_value *y = trama_input(p, "y", TRAMA_I64, TRAMA_SHAPE(TRAMA_ANY));
    trama_value *w1 = trama_parameter(p, "w1", TRAMA_F32, TRAMA_SHAPE(6, 8), NULL);
    trama_value *w2 = trama_parameter(p, "w2", TRAMA_F32, TRAMA_SHAPE(8, 5), NULL);
    trama_value *loss = trama_cross_entropy(trama_matmul(trama_relu(trama_matmul(x, w1)), w2), y);
    trama_shard(x, mesh, "S(0),R");
    trama_shard(w1, mesh, "R,S(1)");
    trama_optimizer adam = trama_adam(0.1);
    trama_target_create(p, "train", trama_minimize(loss, &adam), loss);
    trama_mesh_destroy(&mesh);
    return trama_program_status(p);
}

static trama_status record_and_complete(void)
{
    trama_program *p;
    char *layouts = NULL;
    trama_status status = record(&p);
    if (!status)
        status = trama_complete_text(p, 16, &layouts);
    free(layouts);
    trama_program_destroy(&p);
    return status;
}

/* On a child mesh, in a scope with names, with a mask; and completed, to be asked. */
static trama_status record_in_a_scope(void)
{
    trama_mesh *parent = trama_mesh_create("dp=2,mp=2");
    trama_mesh *mesh =
        parent ? trama_mesh_child(parent, 1, (int[]){2}, (const char *const[]){"q"}, (int[]){1, 3}) : NULL;
    trama_program *p = mesh ? trama_program_create() : NULL;
    trama_completion *found = NULL;
    trama_status status = strstr(trama_error(), "memory") ? TRAMA_E_MEMORY : TRAMA_E_ARGUMENT;
    if (p) {
        trama_value *x = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(5, 6)), parent, "dp,-");
        trama_value *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(6, 8), NULL);
        trama_shard(w, parent, "R,R mask{0,1,1,0}");
        trama_shard_begin(p, mesh, "x", "q,-", "h", "-,q");
        trama_value *h = trama_value_rename(trama_matmul(x, w), "h");
        trama_shard_end(p);
        trama_optimizer sgd = trama_sgd(0.1);
        sgd.momentum = 0.5;
        trama_target_create(p, "train", trama_minimize(trama_mean(trama_square(h)), &sgd));
        status = trama_program_status(p);
    }
    if (p && !status)
        status = trama_completion_create(p, 1, &found);
    trama_completion_destroy(&found);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_mesh_destroy(&parent);
    return status;
}

static trama_status plan_and_draw(void)
{
    const trama_shape shape = TRAMA_SHAPE(7, 9);
    trama_mesh *mesh = trama_mesh_create("2,3");
    trama_layout from, to;
    trama_reshard_plan *plan = NULL;
    char *picture = NULL;
    if (!mesh)
        return strstr(trama_error(), "memory") ? TRAMA_E_MEMORY : TRAMA_E_ARGUMENT;
    trama_status status = trama_layout_parse(mesh, 2, "[0,-1] P{1:sum}", &from);
    if (!status)
        status = trama_layout_parse(mesh, 2, "[1,0]", &to);
    if (!status)
        status = trama_reshard_plan_create(mesh, &from, mesh, &to, TRAMA_F32, shape, &plan);
    if (!status)
        status = trama_layout_picture(mesh, &to, shape, &picture);
    free(picture);
    trama_reshard_plan_destroy(&plan);
    trama_mesh_destroy(&mesh);
    return status;
}

/* The n-th request fails, for every n. */
static void refuse_each(const char *what, trama_status (*work)(void))
{
    refuse(-1, 0);
    ck_assert_msg(!work(), "%s: %s", what, trama_error());
    const long all = refusal_asked();
    ck_assert_int_gt(all, 50);
    for (long n = 0; n < all; n++) {
        refuse(n, 1);
        trama_status status = work();
        bool was_refused = refusal_refused() > 0;
        refuse(-1, 0);
        ck_assert_msg(!status || status == TRAMA_E_MEMORY, "%s, request %ld: %d, %s", what, n, (int)status,
                      trama_error());
        ck_assert_msg(!status || strstr(trama_error(), "memory"), "%s, request %ld: %s", what, n, trama_error());
        ck_assert_msg(!was_refused || status, "%s: request %ld was refused, and nobody told", what, n);
        ck_assert_msg(!work(), "%s, after request %ld: %s", what, n, trama_error());
    }
}

START_TEST(each_request_of_recording_and_completing_may_fail)
{
    refuse_each("recording", record_and_complete);
}
END_TEST

START_TEST(each_request_of_scopes_and_completions_may_fail)
{
    refuse_each("a scope", record_in_a_scope);
}
END_TEST

START_TEST(each_request_of_planning_and_drawing_may_fail)
{
    refuse_each("planning", plan_and_draw);
}
END_TEST

START_TEST(a_mesh_that_has_no_room_is_an_error)
{
    refuse(0, 1000000);
    trama_mesh *mesh = memory_expect(64 << 20) ? trama_mesh_create("2") : NULL;
    refuse(-1, 0);
    ck_assert_ptr_null(mesh);
}
END_TEST

static void tell(void *data, const char *reason)
{
    _exit(*(int *)data == 7 && strstr(reason, "bytes of memory left") ? 42 : 1);
}

START_TEST(the_reason_is_told_before_the_end_where_the_reserve_is_spent)
{
    int status;
    pid_t child = fork();
    if (!child) {
        int seven = 7;
        fatal_to(tell, &seven);
        refuse(0, 1000000);
        trama_alloc(100);
        _exit(2);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}
END_TEST

int main(void)
{
    const TTest *tests[] = {each_request_of_recording_and_completing_may_fail,
                            each_request_of_scopes_and_completions_may_fail,
                            each_request_of_planning_and_drawing_may_fail, a_mesh_that_has_no_room_is_an_error,
                            the_reason_is_told_before_the_end_where_the_reserve_is_spent};
    return suite_run("memory", NULL, NULL, tests, sizeof tests / sizeof *tests);
}
