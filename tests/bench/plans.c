/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a fixed set of programs, meshes and changes of layout, as text: equal texts before and after a change of the
 * library mean that it plans as before. It runs no step and needs neither StarPU nor MPI.
 * Usage: plans [--steps few|all]   all: every step of changes of layout among more than 8 ranks, too */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "hash.h"
#include "main_job.h"
#include "map_traffic.h"
#include "merge_gradients.h"
#include "sample.h"
#include "target_plans.h"
#include "trama_complete.h"
#include "trama_op_define.h"

static bool all_steps; /* --steps all */

/* ---- Printing ---- */

static void shard_text(text *out, const plan_shard *s, int number)
{
    text_add(out, "shard %d value %d place %d of kind %d ", number, s->value, s->place, (int)s->source);
    box_text(out, &s->box);
    if (s->cut_parts > 1)
        text_add(out, " in %d along %d", s->cut_parts, s->cut_dim);
    if (s->within >= 0)
        text_add(out, " in shard %d at %lld", s->within, (long long)s->at);
    text_add(out, "\n");
}

static void plan_text(text *out, const plan *p, const trama_program *program)
{
    plan_summary(p, program, out);
    for (int i = 0; i < p->shards.n; i++)
        shard_text(out, &p->shards.at[i], i);
    plan_describe(p, program, out);
    text_add(out, "priorities");
    for (int i = 0; i < p->steps.n; i++)
        text_add(out, " %d", p->steps.at[i].priority);
    text_add(out, "\n");
}

static void print_traffic(const target_plans *t)
{
    process_traffic *moved =
        traffic_of_program(t->program, &t->l, TARGET_PLANS_NOMINAL, t->machine->n_places, t->needed);
    traffic_pack(moved);
    for (int i = 0; i < moved->pairs.n; i++)
        printf("traffic %d %d %lld\n", moved->pairs.at[i].one, moved->pairs.at[i].other,
               (long long)moved->pairs.at[i].bytes);
    traffic_destroy(&moved);
}

static void print_layouts(const trama_program *program)
{
    char *lines = NULL;
    bench_try(trama_complete_text(program, TARGET_PLANS_NOMINAL, &lines), "completion");
    fputs(lines, stdout);
    free(lines);
}

/* The plans of all ranks, one process each; any: of what is fed. */
static void print_target(const char *title, const trama_program *program, const trama_target *target, int processes,
                         int64_t any, const plan_options *options)
{
    if (trama_program_status(program))
        bench_fail("%s: %s", title, trama_program_error(program));
    target_plans t = target_plans_new(program, target, machine_uniform(processes, 1), any);
    if (options)
        t.options = *options;
    bench_try(target_plans_complete(&t), "completion");
    bench_try(target_plans_prepare(&t), "shapes");
    printf("==== %s\n", title);
    print_layouts(program);
    print_traffic(&t);
    for (int r = 0; r < processes; r++) {
        text out = {0};
        plan *leaves = target_plans_leaves(&t, r), *made = target_plans_plan(&t, r, leaves);
        plan_text(&out, made, program);
        fputs(out.at, stdout);
        free(out.at);
        plan_destroy(&made);
        plan_destroy(&leaves);
    }
    target_plans_free(&t);
}

/* ---- The main job ---- */

static void print_main_job(const char *mesh, const char *hidden, int64_t batch, int k, const trama_optimizer *optimizer)
{
    char title[128];
    main_job job = main_job_forward(mesh, hidden);
    trama_target *train = trama_target_create(job.program, "train", trama_minimize(job.loss, optimizer), job.loss);
    snprintf(title, sizeof title, "main job, mesh %s, hidden %s, batch %lld, merged over %d, clip %g", mesh, hidden,
             (long long)batch, k, optimizer->clip_norm);
    if (k > 1)
        trama_gradient_merge(train, k, TRAMA_MERGE_AVG);
    accumulation *made = k > 1 ? merge_gradients(job.program) : NULL;
    print_target(title, job.program, train, trama_mesh_size(job.mesh), batch, NULL);
    if (made) /* which only needs state, and nothing that a micro-step computes */
        print_target("its apply", job.program, made[train->id].apply, trama_mesh_size(job.mesh), batch, NULL);
    free(made);
    main_job_free(&job);
}

static void print_main_jobs(void)
{
    static const char *const meshes[] = {"1", "dp=2", "mp=2", "dp=2,mp=2", "dp=4", "dp=3,mp=2"};
    const trama_optimizer sgd = trama_sgd(0.1);
    trama_optimizer adamw = trama_adamw(0.001);
    adamw.clip_norm = 1;
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        print_main_job(meshes[i], "512,256", 256, 1, &sgd);
        print_main_job(meshes[i], "33,17", 23, 1, &sgd);
    }
    print_main_job("dp=2", "33,17", 8, 3, &sgd);
    print_main_job("dp=3,mp=2", "33,17", 23, 3, &adamw);
    print_main_job("dp=2,mp=2", "512,256", 256, 1, &adamw);
    print_main_job("dp=[3,1]", "33,17", 23, 1, &adamw);
}

/* ---- Other programs ---- */

/* One iteration of conjugate gradients; A [n, n] by rows. */
static void print_cg(const char *spec, int n)
{
    char title[64];
    trama_mesh *mesh = trama_mesh_create(spec);
    trama_program *g = trama_program_create();
    trama_value *of[4];
    static const char *const names[] = {"A", "x", "r", "p"};
    for (int i = 0; i < 4; i++)
        of[i] = trama_shard(trama_state(g, names[i], TRAMA_F64, TRAMA_SHAPE(n, i ? 1 : n), NULL), mesh, "S(0)");
    trama_value *rho = trama_state(g, "rho", TRAMA_F64, TRAMA_SCALAR, NULL), *x = of[1], *r = of[2], *p = of[3];
    trama_value *q = trama_matmul(of[0], p), *alpha = trama_div(rho, trama_sum(trama_mul(p, q)));
    trama_value *left = trama_sub(r, trama_mul(alpha, q)), *next = trama_sum_square(left);
    trama_target *step = trama_target_create(
        g, "step", trama_assign(x, trama_add(x, trama_mul(alpha, p))), trama_assign(r, left),
        trama_assign(p, trama_add(left, trama_mul(trama_div(next, rho), p))), trama_assign(rho, next));
    snprintf(title, sizeof title, "conjugate gradients, mesh %s, %d rows", spec, n);
    print_target(title, g, step, trama_mesh_size(mesh), 0, NULL);
    trama_program_destroy(&g);
    trama_mesh_destroy(&mesh);
}

static trama_status never_run(const trama_call *call)
{
    (void)call;
    return trama_kernel_fail("it is only planned");
}

/* A five-point stencil from one state to another, and back. */
static void print_stencil(const char *spec, const char *layout, const char *rule, int n, const plan_options *options)
{
    char title[128];
    const trama_op_definition d = {
        .name = "points", .n_in = 2, .n_out = 1, .rule = rule, .updates = 1, .flops = 7, .cpu = never_run};
    const trama_op *op;
    bench_try(trama_op_define(&d, &op), "define");
    trama_mesh *mesh = trama_mesh_create(spec);
    trama_program *p = trama_program_create();
    trama_value *u = trama_shard(trama_state(p, "u", TRAMA_F64, TRAMA_SHAPE(n, n), NULL), mesh, layout),
                *v = trama_shard(trama_state(p, "v", TRAMA_F64, TRAMA_SHAPE(n, n), NULL), mesh, layout);
    trama_value *there[] = {v, u}, *back[] = {u, v};
    trama_target *step =
        trama_target_create(p, "step", trama_apply(op, 2, there, NULL), trama_apply(op, 2, back, NULL));
    snprintf(title, sizeof title, "stencil %s, mesh %s as %s, %d x %d, at most %d tiles", rule, spec, layout, n, n,
             options ? options->max_tiles : 0);
    print_target(title, p, step, trama_mesh_size(mesh), 0, options);
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    trama_op_destroy(&op);
}

/* Two layers, each on a mesh of its own, of which the second is asked for on every one of them; trained. */
static void print_two_meshes(const char *first, const char *second, int processes, const char *layout)
{
    char title[128];
    trama_mesh *a = trama_mesh_create(first), *b = trama_mesh_create(second);
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(TRAMA_ANY, 12)),
                *v = trama_parameter(p, "v", TRAMA_F32, TRAMA_SHAPE(12, 9), NULL),
                *w = trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(9, 5), NULL);
    trama_shard(x, a, "S(0)");
    trama_stage(p, 0);
    trama_value *h = trama_relu(trama_matmul(x, v));
    trama_stage(p, 1);
    trama_value *y = trama_matmul(trama_reshard(h, b, layout), w), *loss = trama_mean(trama_square(y));
    trama_optimizer sgd = trama_sgd(0.1);
    trama_target *train = trama_target_create(p, "train", trama_minimize(loss, &sgd), loss);
    snprintf(title, sizeof title, "layers on meshes %s and %s, as %s", first, second, layout);
    print_target(title, p, train, processes, 11, NULL);
    trama_program_destroy(&p);
    trama_mesh_destroy(&a);
    trama_mesh_destroy(&b);
}

static void print_programs(void)
{
    const plan_options fine = {.max_tiles = 3, .grain_flops = 1, .grain_bytes = 1};
    print_cg("2", 37);
    print_cg("3", 2048);
    print_stencil("2", "S(0)", "ij,i{1:1}j{1:1}->ij", 17, NULL);
    print_stencil("3", "S(0)", "ij,i{1:1~}j{1:1~}->ij", 17, &fine);
    print_stencil("2,2", "S(0),S(1)", "ij,i{1:1}j{1:1}->ij", 301, &fine);
    print_stencil("dp=[2,1]", "S(1)", "ij,i{2:1}j{0:3}->ij", 29, NULL);
    print_two_meshes("2", "2:2,3", 4, "S(1)");
    print_two_meshes("3", "2,2:2,3,0,1", 4, "S(0),S(1)");
    print_two_meshes("2", "3", 3, "R mask{1,0,1}");
    print_two_meshes("4", "2,2", 4, "R,S(0) mask{1,1,0,1}");
}

/* ---- Changes of layout ---- */

/* Steps in whole among few ranks, else a line a rank. */
static void print_change(const change *c, const char *title)
{
    int ranks = c->machine->n_ranks;
    trama_program *program = change_program(c);
    plan **plans = change_plans(c, program, NULL);
    char *what = change_text(c);
    printf("---- %s %s%s%s\n", title, what, c->collectives ? ", collectives" : "", c->nccl_sums ? " that sum" : "");
    for (int r = 0; r < ranks; r++) {
        text out = {0};
        plan_totals n = plan_count(plans[r]);
        plan_text(&out, plans[r], program);
        printf("rank %d: received %lld, sent %lld, %d messages, %d steps, text %016llx\n", r, (long long)n.received,
               (long long)n.sent, n.messages, n.steps, (unsigned long long)hash_text(HASH_START, out.at));
        if (all_steps || ranks <= 8)
            fputs(out.at, stdout);
        free(out.at);
        plan_destroy(&plans[r]);
    }
    free(what);
    free(plans);
    trama_program_destroy(&program);
}

/* Samples by chance; every other one of a size at which messages are cut, scattered and summed by slices. */
static void print_samples(int n, uint64_t seed, const variety *v)
{
    for (int i = 0; i < n; i++) {
        sample s = sample_random(v, &seed);
        if (i % 2 && s.c.shape.ndim)
            s.c.shape.dim[0] *= 89;
        s.c.collectives = i % 3 == 0;
        s.c.nccl_sums = i % 6 == 0;
        char title[32];
        snprintf(title, sizeof title, "sample %d", i);
        print_change(&s.c, title);
        sample_free(&s);
    }
}

/* Number i of the layouts without masks on a mesh, each axis in one of four placements. */
static trama_layout pair_layout(const trama_mesh *mesh, int i)
{
    static const char *const placements[] = {"R", "S(0)", "S(1)", "P(sum)"};
    trama_layout l;
    char words[64] = "";
    for (int a = 0; a < trama_mesh_ndim(mesh); a++, i /= 4)
        snprintf(words + strlen(words), 8, "%s%s", a ? "," : "", placements[i % 4]);
    bench_try(trama_layout_parse(mesh, 2, words, &l), "layout");
    return l;
}

/* All pairs of these layouts. */
static void print_pairs(const char *spec, int64_t rows, int64_t columns)
{
    trama_mesh *mesh = trama_mesh_create(spec);
    machine *m = machine_uniform(trama_mesh_size(mesh), 2);
    process_map *map = map_by_order(m->n_ranks, NULL, m);
    int n = 1 << 2 * trama_mesh_ndim(mesh);
    for (int i = 0; i < n * n; i++) {
        change c = {.from_mesh = mesh, .to_mesh = mesh, .machine = m, .map = map, .shape = TRAMA_SHAPE(rows, columns)};
        c.from = pair_layout(mesh, i / n);
        c.to = pair_layout(mesh, i % n);
        print_change(&c, "pair");
    }
    map_destroy(&map);
    machine_destroy(&m);
    trama_mesh_destroy(&mesh);
}

int main(int argc, char **argv)
{
    all_steps = !strcmp(bench_option(argc, argv, "steps", "few"), "all");
    print_main_jobs();
    print_programs();
    print_samples(40, 11, &(variety){.one_place_each = true});
    print_samples(60, 12, &(variety){.partials = true, .masks = true, .one_place_each = true});
    print_samples(50, 13, &(variety){.partials = true, .masks = true});
    print_pairs("5", 130, 127);
    print_pairs("130", 300, 260);
    print_pairs("a=[3,1],b=2", 130, 127);
    print_pairs("4,4", 509, 33);
    return 0;
}
