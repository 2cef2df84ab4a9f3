/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints: the time of a step while one is written, the speed of writing beside dd's, and the memory of both.
 * Usage: save --folder FOLDER [--what step|write] [--rounds 9] [--hidden 2048,2048] [--batch 256] [--mesh 1] [--mib
 * 1024] step   steps of the main job with adamw, in turns without a save and with an asynchronous one that begins
 * before the first of them; as many steps as the save lasts write  MiB of states, rows of which each rank has, in turns
 * by dd conv=fsync, a process a rank, by trama_save and by an asynchronous one and trama_save_wait */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "context.h"
#include "main_job.h"

enum { SAMPLES = 4096, STATES = 16, COLUMNS = 1024, MOST_ROUNDS = 100 };

typedef struct bench {
    trama_context *context;
    trama_executable *executable;
    const char *folder;
    int64_t step;
    int rounds;
} bench;

static double median(double *of, int n)
{
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && of[j] < of[j - 1]; j--) {
            double swapped = of[j];
            of[j] = of[j - 1];
            of[j - 1] = swapped;
        }
    return n % 2 ? of[n / 2] : (of[n / 2 - 1] + of[n / 2]) / 2;
}

/* "name: MEDIAN (LEAST to MOST) unit", on rank 0. */
static void tell(const bench *b, const char *name, double *of, const char *unit)
{
    double middle = median(of, b->rounds);
    if (context_rank(b->context) == 0)
        printf("%-28s %8.3f (%.3f to %.3f) %s\n", name, middle, of[0], of[b->rounds - 1], unit);
}

static double now_together(const bench *b)
{
    bench_try(context_barrier(b->context, "a benchmark"), "barrier");
    return bench_now();
}

static void save(bench *b, bool asynchronous)
{
    bench_try(trama_save(b->executable, b->folder,
                         &(trama_save_options){.step = b->step++, .keep = 1, .asynchronous = asynchronous}),
              "trama_save");
}

/* ---- Steps ---- */

typedef struct training {
    main_job job;
    float *images;
    int64_t *labels;
    int batch, at;
} training;

static void run_steps(const bench *b, training *t, int n)
{
    for (int i = 0; i < n; i++) {
        bench_try(trama_feed(b->executable, t->job.x, t->images + (size_t)t->at * MAIN_JOB_IN,
                             TRAMA_SHAPE(t->batch, MAIN_JOB_IN)),
                  "feed");
        bench_try(trama_feed(b->executable, t->job.y, t->labels + t->at, TRAMA_SHAPE(t->batch)), "feed");
        bench_try(trama_run(b->executable, t->job.train), "run");
        t->at = t->at + 2 * t->batch <= SAMPLES ? t->at + t->batch : 0;
    }
    bench_try(trama_wait(b->executable), "wait");
}

/* So many steps as a save lasts beside them. */
static int count_steps(bench *b, training *t)
{
    run_steps(b, t, 5);
    save(b, true);
    bench_try(trama_save_wait(b->executable), "trama_save_wait");
    int n = 1;
    for (double rest = 1; rest > 0.002; n += rest > 0.002) {
        save(b, true);
        run_steps(b, t, n);
        double begun = bench_now();
        bench_try(trama_save_wait(b->executable), "trama_save_wait");
        rest = bench_now() - begun;
    }
    return n;
}

static void measure_steps(bench *b, int argc, char **argv)
{
    double plain[MOST_ROUNDS], beside[MOST_ROUNDS], ratio[MOST_ROUNDS], noise[MOST_ROUNDS], call[MOST_ROUNDS];
    training t = {
        .job = main_job_forward(bench_option(argc, argv, "mesh", "1"), bench_option(argc, argv, "hidden", "2048,2048")),
        .batch = bench_number(argc, argv, "batch", 256)};
    const trama_optimizer adamw = trama_adamw(1e-4);
    t.job.train = trama_target_create(t.job.program, "train", trama_minimize(t.job.loss, &adamw));
    main_job_samples(SAMPLES, &t.images, &t.labels);
    bench_try(trama_compile(b->context, t.job.program, &b->executable), "compile");
    const int n = count_steps(b, &t);
    for (int i = 0; i < b->rounds; i++) {
        double begun = now_together(b);
        run_steps(b, &t, n);
        plain[i] = (now_together(b) - begun) / n;
        begun = now_together(b);
        save(b, true);
        call[i] = bench_now() - begun;
        run_steps(b, &t, n);
        beside[i] = (now_together(b) - begun) / n;
        bench_try(trama_save_wait(b->executable), "trama_save_wait");
        begun = now_together(b);
        run_steps(b, &t, n);
        noise[i] = (now_together(b) - begun) / n / plain[i];
        ratio[i] = beside[i] / plain[i];
    }
    if (context_rank(b->context) == 0)
        printf("%d steps a turn\n", n);
    tell(b, "a step", plain, "s");
    tell(b, "a step during a save", beside, "s");
    tell(b, "of the time without", ratio, "");
    tell(b, "noise floor", noise, "");
    tell(b, "the call trama_save", call, "s");
    bench_try(trama_executable_destroy(&b->executable), "destroy");
    main_job_free(&t.job);
    free(t.images);
    free(t.labels);
}

/* ---- Writing ---- */

static trama_program *states_of(int64_t mib, int ranks, trama_target **target)
{
    trama_program *program = trama_program_create();
    char spec[20], name[20];
    snprintf(spec, sizeof spec, "%d", ranks);
    trama_mesh *mesh = trama_mesh_create(spec);
    trama_value *first = NULL;
    for (int i = 0; i < STATES; i++) {
        const trama_init init = {.low = -1, .high = 1, .seed = 7, .stream = (uint64_t)i};
        snprintf(name, sizeof name, "s%d", i);
        trama_value *s =
            trama_state(program, name, TRAMA_F32,
                        TRAMA_SHAPE(mib * (1 << 20) / STATES / COLUMNS / (int64_t)sizeof(float), COLUMNS), &init);
        trama_shard(s, mesh, "S(0)");
        first = first ? first : s;
    }
    *target = trama_target_create(program, "t", trama_sum(first));
    trama_mesh_destroy(&mesh);
    return program;
}

/* Most bytes resident since peak_begin, in MiB; the largest of the ranks. */
static void peak_begin(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f || fputs("5", f) < 0 || fclose(f))
        bench_fail("/proc/self/clear_refs cannot be written");
}

static double status_mib(const char *key)
{
    char line[200];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key)))
            kib = strtol(line + strlen(key) + 1, NULL, 10);
    if (f)
        fclose(f);
    return (double)kib / 1024;
}

static double largest(const bench *b, double mine)
{
    double all[64];
    bench_try(context_gather(b->context, "a benchmark", &mine, sizeof mine, all), "gather");
    for (int i = 0; i < context_ranks(b->context); i++)
        mine = all[i] > mine ? all[i] : mine;
    return mine;
}

static void run_dd(const bench *b, int64_t mib)
{
    char out[4096], count[30];
    snprintf(out, sizeof out, "of=%s/dd-%d", b->folder, context_rank(b->context));
    snprintf(count, sizeof count, "count=%" PRId64, mib / 4 / context_ranks(b->context));
    pid_t child = vfork();
    if (!child) {
        execlp("dd", "dd", "if=/dev/zero", out, "bs=4M", count, "conv=fsync", "status=none", (char *)NULL);
        _exit(127);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status)
        bench_fail("dd failed");
}

/* Seconds of a save; *peak: MiB above those before. Its file goes, as dd's does. */
static double time_save(bench *b, bool asynchronous, double *peak)
{
    const double before = status_mib("VmRSS");
    peak_begin();
    double begun = now_together(b);
    save(b, asynchronous);
    bench_try(trama_save_wait(b->executable), "trama_save_wait");
    double seconds = now_together(b) - begun;
    *peak = largest(b, status_mib("VmHWM") - before);
    return seconds;
}

static void remove_file(const bench *b, const char *format, int64_t number)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/", b->folder);
    snprintf(path + n, sizeof path - (size_t)n, format, number);
    unlink(path);
}

static void remove_checkpoint(const bench *b)
{
    if (context_rank(b->context) == 0)
        remove_file(b, "step-%012" PRId64 ".h5", b->step - 1);
}

static void measure_writing(bench *b, int argc, char **argv)
{
    double dd[MOST_ROUNDS], speed[2][MOST_ROUNDS], ratio[2][MOST_ROUNDS], peak[2][MOST_ROUNDS];
    static const char *const names[2] = {"trama_save", "asynchronous"};
    const int64_t mib = bench_number(argc, argv, "mib", 1024);
    trama_target *target;
    trama_program *program = states_of(mib, context_ranks(b->context), &target);
    bench_try(trama_compile(b->context, program, &b->executable), "compile");
    bench_try(trama_run(b->executable, target), "run");
    bench_try(trama_wait(b->executable), "wait");
    save(b, false); /* makes the folder */
    remove_checkpoint(b);
    for (int i = 0; i < b->rounds; i++) {
        double begun = now_together(b);
        run_dd(b, mib);
        dd[i] = (double)mib / (now_together(b) - begun);
        remove_file(b, "dd-%" PRId64, context_rank(b->context));
        for (int k = 0; k < 2; k++) {
            speed[k][i] = (double)mib / time_save(b, k, &peak[k][i]);
            ratio[k][i] = speed[k][i] / dd[i];
            remove_checkpoint(b);
        }
    }
    tell(b, "dd conv=fsync", dd, "MiB/s");
    for (int k = 0; k < 2; k++) {
        tell(b, names[k], speed[k], "MiB/s");
        tell(b, "of dd's speed", ratio[k], "");
        tell(b, "memory beside the state", peak[k], "MiB a rank");
    }
    bench_try(trama_executable_destroy(&b->executable), "destroy");
    trama_program_destroy(&program);
}

int main(int argc, char **argv)
{
    const char *what = bench_option(argc, argv, "what", "step");
    bench b = {.folder = bench_option(argc, argv, "folder", NULL), .rounds = bench_number(argc, argv, "rounds", 9)};
    if (!b.folder || b.rounds > MOST_ROUNDS)
        bench_fail("give --folder FOLDER, and at most %d rounds", MOST_ROUNDS);
    bench_try(trama_start(NULL, &b.context), "start");
    (strcmp(what, "write") ? measure_steps : measure_writing)(&b, argc, argv);
    remove_checkpoint(&b);
    bench_try(trama_stop(&b.context), "stop");
    return 0;
}
