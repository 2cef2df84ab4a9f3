/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the package safetensors, and Trama's in that package: weights of PyTorch's nn.Sequential are loaded, trained
 * 10 steps, and saved for PyTorch, which finds the losses of its own training. It needs $TRAMA_TORCH_PYTHON, or a
 * python3 that has torch and safetensors. */
#define _GNU_SOURCE /* nftw */
#include <sys/wait.h>

#include "saved.h"

enum { ROWS = 12, TRAINED = 10 };

static bool is_absent;

/* Runs the script on rank 0; all ranks wait. */
static void run_python(const char *phase)
{
    char command[2000];
    const char *python = getenv("TRAMA_TORCH_PYTHON");
    int status = 0;
    barrier();
    if (my_rank == 0) {
        snprintf(command, sizeof command, "'%s' %s/torch_safetensors.py %s %s", python ? python : "python3",
                 TRAMA_TEST_FOLDER, phase, folder);
        fflush(NULL);
        status = system(command);
    }
    int *all = calloc((size_t)n_ranks, sizeof *all);
    must(context_gather(ctx, "a test", &status, sizeof status, all));
    status = all[0];
    free(all);
    is_absent = WIFEXITED(status) && (WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127);
    demand(is_absent || !status, "%s: status %d", phase, status);
}

static void read_one(const char *file, const char *name, void *data, size_t bytes)
{
    trama_checkpoint *c = NULL;
    must(trama_checkpoint_open(in_folder(file), &c));
    must(trama_checkpoint_read(c, trama_checkpoint_find(c, name), data, bytes));
    trama_checkpoint_destroy(&c);
}

/* Linear of PyTorch: weight [out, in]. */
static trama_value *linear(trama_program *p, trama_value *x, const char *number, int in, int out, trama_mesh *mesh,
                           const char *layout)
{
    char w[40], b[40];
    snprintf(w, sizeof w, "w%s", number);
    snprintf(b, sizeof b, "%s.bias", number);
    trama_value *weight = trama_shard(trama_parameter(p, w, TRAMA_F32, TRAMA_SHAPE(out, in), NULL), mesh, layout);
    return trama_add(trama_matmul_trans(x, weight, false, true),
                     trama_parameter(p, b, TRAMA_F32, TRAMA_SHAPE(out), NULL));
}

static training sequential(trama_optimizer *sgd)
{
    training t = {.mesh = mesh_of("dp=2,mp=2"), .p = trama_program_create()};
    t.x = trama_shard(trama_input(t.p, "x", TRAMA_F32, TRAMA_SHAPE(ROWS, 5)), t.mesh, "S(0),R");
    t.y = trama_input(t.p, "y", TRAMA_F32, TRAMA_SHAPE(ROWS, 3));
    trama_value *h = trama_tanh(linear(t.p, t.x, "0", 5, 7, t.mesh, "R,S(0)"));
    t.loss = trama_mean(trama_square(trama_sub(linear(t.p, h, "2", 7, 3, t.mesh, "R,S(1)"), t.y)));
    t.train = trama_target_create(t.p, "train", trama_minimize(t.loss, sgd), t.loss);
    t.e = compile(t.p);
    return t;
}

static void train(const training *t)
{
    float x[ROWS * 5], y[ROWS * 3], loss;
    double losses[TRAINED + 1], most = 0;
    read_one("batch.safetensors", "x", x, sizeof x);
    read_one("batch.safetensors", "y", y, sizeof y);
    read_one("batch.safetensors", "losses", losses, sizeof losses);
    for (int i = 0; i < TRAINED; i++) {
        must(trama_feed(t->e, t->x, x, TRAMA_SHAPE(ROWS, 5)));
        must(trama_feed(t->e, t->y, y, TRAMA_SHAPE(ROWS, 3)));
        must(trama_run(t->e, t->train));
        must(trama_read(t->e, t->loss, &loss, sizeof loss));
        most = fmax(most, fabs((double)loss - losses[i]) / losses[i]);
        demand(most <= 1e-5, "step %d: the loss is %.9g instead of %.9g", i, (double)loss, losses[i]);
    }
    if (my_rank == 0)
        printf("losses of %d steps: relative difference at most %.2g\n", TRAINED, most);
}

/* All element types of the file, through states. */
static void carry_types(void)
{
    trama_checkpoint *c = NULL;
    trama_program *p = trama_program_create();
    must(trama_checkpoint_open(in_folder("types.safetensors"), &c));
    trama_value *any = NULL;
    for (int i = 0; i < trama_checkpoint_count(c); i++)
        any = trama_state(p, trama_checkpoint_name(c, i), trama_checkpoint_dtype(c, i), trama_checkpoint_shape(c, i),
                          NULL);
    trama_target_create(p, "t", trama_equal(any, any));
    trama_executable *e = compile(p);
    must(trama_load(e, in_folder("types.safetensors"), NULL, NULL));
    must(trama_save(e, in_folder("types-again.safetensors"), NULL));
    trama_checkpoint_destroy(&c);
    must(trama_checkpoint_open(in_folder("types-again.safetensors"), &c));
    must(trama_checkpoint_write(c, in_folder("types.npz"), NULL));
    trama_checkpoint_destroy(&c);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

START_TEST(weights_come_from_pytorch_and_go_back)
{
    const char *names = "w0=0.weight,w2=2.weight";
    trama_checkpoint *found = NULL;
    trama_optimizer sgd = trama_sgd(0.1);
    start();
    folder_new();
    if (my_rank == 0)
        demand(!mkdir(folder, 0777), "%s", folder);
    run_python("write");
    if (!is_absent) {
        training t = sequential(&sgd);
        must(trama_load(t.e, in_folder("first.safetensors"),
                        &(trama_load_options){.names = names, .states = "w?,?.bias"}, &found));
        demand(!*trama_checkpoint_missing(found) && !*trama_checkpoint_left_over(found), "other names");
        demand(!strcmp(trama_checkpoint_get(found, "note"), "\xc3\xa9"), "the note");
        trama_checkpoint_destroy(&found);
        train(&t);
        trama_save_options o = {.step = TRAINED,
                                .names = names,
                                .states = "w?,?.bias",
                                .n_texts = 1,
                                .texts = (const char *const[]){"format=pt"}};
        must(trama_save(t.e, in_folder("trained.safetensors"), &o));
        o.dtype = "bf16";
        must(trama_save(t.e, in_folder("half.safetensors"), &o));
        o.dtype = NULL;
        o.shard_bytes = 120;
        must(trama_save(t.e, in_folder("sharded.safetensors"), &o));
        training_free(&t);
        carry_types();
        run_python("check");
    }
    folder_remove();
    stop();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {weights_come_from_pytorch_and_go_back};
    int status = run_tests(__FILE__, tests, 1);
    if (is_absent)
        puts("skipped: there is no Python with torch and safetensors; let TRAMA_TORCH_PYTHON name one");
    return is_absent && !status ? 77 : status;
}
