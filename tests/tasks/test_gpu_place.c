/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU as a place, be it what stands in for one: ops of one's own on it, its memory's limit, and replicas that it
 * shares with the cores. */
#include "harness.h"
#include "itself.h"
#include "network.h"

#if TRAMA_HAVE_CUDA
#include <cuda_runtime_api.h>

enum { ROWS = 16, COLUMNS = 12 };

static bool start_on(trama_device device, int64_t memory)
{
    trama_config config = {.device = device, .gpu_memory = memory, .map_by_order = true};
    if (trama_start(&config, &ctx))
        return false;
    my_rank = trama_context_rank(ctx);
    n_ranks = trama_context_ranks(ctx);
    return true;
}

/* ---- Ops of one's own ---- */

static int on_cores, on_gpu;

static trama_status take_on_cores(const trama_call *call)
{
    int64_t i[TRAMA_MAX_NDIM];
    on_cores++;
    for (bool more = trama_first(&call->out[0], i); more; more = trama_next(&call->out[0], i))
        *(double *)trama_element(&call->out[0], 2, i) = *(const double *)trama_element(&call->in[0], 2, i);
    return TRAMA_OK;
}

/* Rows without gaps, one after the other. */
static trama_status take_on_gpu(const trama_call *call, void *stream)
{
    const trama_view *to = &call->out[0], *from = &call->in[0];
    size_t width = (size_t)to->extent[1] * sizeof(double);
    on_gpu++;
    cudaError_t error = cudaMemcpy2DAsync(to->data, (size_t)to->stride[0] * sizeof(double), from->data,
                                          (size_t)from->stride[0] * sizeof(double), width, (size_t)to->extent[0],
                                          cudaMemcpyDeviceToDevice, stream);
    return error ? trama_kernel_fail("%s", cudaGetErrorString(error)) : TRAMA_OK;
}

static trama_status refuse_on_gpu(const trama_call *call, void *stream)
{
    (void)call, (void)stream;
    return trama_kernel_fail("the GPU said no");
}

/* x as an op of one's own gives it, doubled before and after by built-in ones. */
static trama_status run_own(trama_status (*cuda)(const trama_call *, void *), double *got)
{
    const trama_op *op = NULL;
    trama_op_definition take = {
        .name = "take", .n_in = 1, .n_out = 1, .rule = "ij->ij", .cpu = take_on_cores, .cuda = cuda};
    double data[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = i;
    must(trama_op_define(&take, &op));
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS)), *twice = trama_add(x, x);
    trama_value *y = trama_add(trama_apply(op, 1, &twice, NULL), twice);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    on_cores = on_gpu = 0;
    must(trama_feed(e, x, data, TRAMA_SHAPE(ROWS, COLUMNS)));
    must(trama_run(e, t));
    trama_status status = trama_read(e, y, got, ROWS * COLUMNS * sizeof *got);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_op_destroy(&op);
    return status;
}

static void demand_four_times(const double *got)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        demand(got[i] == 4.0 * i, "element %d is %g", i, got[i]);
}

START_TEST(an_op_of_ones_own_runs_where_it_has_a_kernel)
{
    double got[ROWS * COLUMNS];
    start_on(TRAMA_GPU, 0);
    must(run_own(take_on_gpu, got));
    demand_four_times(got);
    demand(on_gpu == 1 && on_cores == 0, "%d calls on the GPU, %d on the cores", on_gpu, on_cores);
    must(run_own(NULL, got));
    demand_four_times(got);
    demand(on_gpu == 0 && on_cores > 0, "%d calls on the GPU, %d on the cores", on_gpu, on_cores);
    stop();
}
END_TEST

START_TEST(a_kernel_that_fails_on_a_gpu_is_named)
{
    double got[ROWS * COLUMNS];
    start_on(TRAMA_GPU, 0);
    expect(run_own(refuse_on_gpu, got), TRAMA_E_KERNEL, "take", "the GPU said no");
    stop();
}
END_TEST

/* ---- Calls that are one kernel ---- */

enum { LONG = 40 };

/* x 0.5 + 1, in turn, of an input, `n` calls in all; `cast`: the call after which f64 become f32, or -1. `rows` 0: no
 * elements. */
static void run_chain(int n, int cast, int rows, bool keep, float *got)
{
    double data[LONG];
    for (int i = 0; i < LONG; i++)
        data[i] = 1 + 0.01 * i;
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(rows)), *y = x, *kept = NULL;
    for (int i = 0; i < n; i++) {
        y = i == cast ? trama_cast(y, TRAMA_F32) : i % 2 ? trama_add_scalar(y, 1) : trama_scale(y, 0.5);
        kept = i == n / 2 ? y : kept;
    }
    trama_value *last = trama_cast(keep && kept ? trama_add(y, trama_cast(kept, trama_value_dtype(y))) : y, TRAMA_F32);
    trama_target *t = trama_target_create(p, "t", last);
    trama_executable *e = compile(p);
    must(trama_feed(e, x, data, TRAMA_SHAPE(rows)));
    must(trama_run(e, t));
    must(trama_read(e, last, got, (size_t)rows * sizeof *got));
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
}

static float chained(int i, int n, int cast, bool keep)
{
    double y = 1 + 0.01 * i, kept = 0;
    for (int k = 0; k < n; k++) {
        const bool narrow = cast >= 0 && k >= cast;
        y = k == cast ? y : k % 2 ? y + 1 : y * 0.5;
        y = narrow ? (float)y : y;
        kept = k == n / 2 ? y : kept;
    }
    y = keep ? y + (cast >= 0 && cast < n ? (float)kept : kept) : y;
    return (float)y;
}

START_TEST(chains_of_any_length_give_the_bits_of_their_calls)
{
    static const int lengths[] = {1, 2, 15, 16, 17, 18, 31, 32, 33, 49};
    start_on(TRAMA_GPU, 0);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
        for (int variant = 0; variant < 8; variant++) {
            static const int casts[] = {-1, 0, 5, 16};
            const int n = lengths[l], cast = casts[variant / 2] < n ? casts[variant / 2] : -1;
            float got[LONG], again[LONG];
            run_chain(n, cast, LONG, variant % 2, got);
            run_chain(n, cast, LONG, variant % 2, again);
            demand(!memcmp(got, again, sizeof got), "%d calls, cast %d: two runs differ", n, cast);
            for (int i = 0; i < LONG; i++)
                demand(got[i] == chained(i, n, cast, variant % 2), "%d calls, cast %d: element %d is %.9g, not %.9g", n,
                       cast, i, (double)got[i], (double)chained(i, n, cast, variant % 2));
            run_chain(n, cast, 0, variant % 2, got);
        }
    stop();
}
END_TEST

/* ---- A product and relu ---- */

/* The one NaN of x is in its row 3. */
START_TEST(relu_behind_a_product_and_a_row_keeps_nan)
{
    enum { M = 8, K = 16, N = 24 };
    float x[M * K], w[K * N], row[N], got[2][M * N];
    for (int i = 0; i < M * K; i++)
        x[i] = i == 3 * K + 2 ? NAN : (float)(i % 7 - 3);
    for (int i = 0; i < K * N; i++)
        w[i] = (float)(i % 5 - 2);
    for (int i = 0; i < N; i++)
        row[i] = (float)(i % 3);
    start_on(TRAMA_GPU, 0);
    trama_program *p = trama_program_create();
    trama_value *xs = trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(M, K)),
                *ws = trama_input(p, "w", TRAMA_F32, TRAMA_SHAPE(K, N)),
                *rows = trama_input(p, "row", TRAMA_F32, TRAMA_SHAPE(N));
    trama_value *both = trama_relu(trama_add(trama_matmul(xs, ws), rows)), *plain = trama_relu(trama_matmul(xs, ws));
    trama_target *t = trama_target_create(p, "t", both, plain);
    trama_executable *e = compile(p);
    must(trama_feed(e, xs, x, TRAMA_SHAPE(M, K)));
    must(trama_feed(e, ws, w, TRAMA_SHAPE(K, N)));
    must(trama_feed(e, rows, row, TRAMA_SHAPE(N)));
    must(trama_run(e, t));
    must(trama_read(e, both, got[0], sizeof got[0]));
    must(trama_read(e, plain, got[1], sizeof got[1]));
    for (int i = 0; i < M * N; i++)
        for (int k = 0; k < 2; k++) {
            float sum = k ? 0 : row[i % N];
            for (int l = 0; l < K; l++)
                sum += x[i / N * K + l] * w[l * N + i % N];
            const bool same = isnan(sum) ? isnan(got[k][i]) : got[k][i] == (sum > 0 ? sum : 0);
            demand(same, "element %d of result %d is %g, of %g", i, k, (double)got[k][i], (double)sum);
        }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* ---- Memory ---- */

START_TEST(what_cannot_fit_a_gpu_is_refused_by_name)
{
    start_on(TRAMA_GPU, 2 << 20);
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(512, 512)), *y = trama_matmul(x, x);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    double *zeros = calloc(512 * 512, sizeof *zeros);
    must(trama_feed(e, x, zeros, TRAMA_SHAPE(512, 512)));
    expect(trama_run(e, t), TRAMA_E_MEMORY, "test_gpu_place.c", "matmul", "4 MB of a GPU", "TRAMA_GPU_MEMORY");
    free(zeros);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

/* 24 tensors of 1 MiB at a time on a GPU that takes 8 of them. */
START_TEST(data_may_exceed_the_memory_of_a_gpu)
{
    enum { N = 512 * 256, MANY = 24 };
    const int turned[] = {1, 0};
    start_on(TRAMA_GPU, 8 << 20);
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(512, 256)), *made[MANY], *sum = NULL;
    for (int i = 0; i < MANY; i++)
        made[i] = trama_transpose(trama_transpose(i ? trama_scale(made[i - 1], 1.5) : x, turned), turned);
    for (int i = 0; i < MANY; i++)
        sum = sum ? trama_add(sum, made[i]) : made[i];
    trama_target *t = trama_target_create(p, "t", sum, made[0], made[MANY - 1]);
    trama_executable *e = compile(p);
    double *data = malloc(N * sizeof *data), *got = malloc(N * sizeof *got);
    for (int i = 0; i < N; i++)
        data[i] = i % 101 - 50;
    must(trama_feed(e, x, data, TRAMA_SHAPE(512, 256)));
    must(trama_run(e, t));
    must(trama_read(e, sum, got, N * sizeof *got));
    double factor = 0, power = 1;
    for (int i = 0; i < MANY; i++, power *= 1.5)
        factor += power;
    for (int i = 0; i < N; i++)
        demand(fabs(got[i] - factor * data[i]) <= 1e-13 * fabs(factor * data[i]), "element %d is %g", i, got[i]);
    free(data);
    free(got);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
}
END_TEST

enum { AS_WANTED = 42 };

static void listen(void *data, trama_log_level level, const char *line)
{
    (void)data;
    fprintf(stderr, "%s\n", line);
    if (level == TRAMA_LOG_ERROR)
        _exit(strstr(line, "matmul") && strstr(line, "wants 96 MB") && strstr(line, " MB free") ? AS_WANTED : 1);
}

/* In a process of its own, whose GPU is filled by others after the start, but for what its driver may want. */
static void starve(void)
{
    enum { N = 2048, LEFT = 32 << 20 };
    trama_config config = {.device = TRAMA_GPU, .watchdog = 1, .log = listen};
    void *taken;
    alarm(60);
    must(trama_start(&config, &ctx));
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(N, N));
    trama_value *y = trama_matmul(x, trama_scale(x, 2));
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    double *data = calloc(N * N, sizeof *data);
    for (size_t bytes = (size_t)1 << 40; bytes >= LEFT; bytes /= 2)
        while (!cudaMalloc(&taken, bytes))
            ;
    must(trama_feed(e, x, data, TRAMA_SHAPE(N, N)));
    must(trama_run(e, t));
    must(trama_read(e, y, data, N * N * sizeof *data));
}

/* In a process of its own, for a GPU that fails on the way: doubles a tensor ten times, by a kernel and a product. */
static void work_on(void)
{
    enum { N = 16 };
    double data[N * N], unit[N * N] = {0}, got[N * N];
    for (int i = 0; i < N * N; i++)
        data[i] = i;
    for (int i = 0; i < N; i++)
        unit[i * N + i] = 1;
    start_on(TRAMA_GPU, 0);
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(N, N));
    trama_value *one = trama_input(p, "one", TRAMA_F64, TRAMA_SHAPE(N, N)), *y = x;
    for (int i = 0; i < 10; i++)
        y = trama_matmul(trama_add(y, y), one);
    trama_target *t = trama_target_create(p, "t", y);
    trama_executable *e = compile(p);
    must(trama_feed(e, one, unit, TRAMA_SHAPE(N, N)));
    for (int run = 0; run < 3; run++) {
        must(trama_feed(e, x, data, TRAMA_SHAPE(N, N)));
        must(trama_run(e, t));
        must(trama_read(e, y, got, sizeof got));
        for (int i = 0; i < N * N; i++)
            demand(got[i] == 1024 * data[i], "element %d is %g", i, got[i]);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    stop();
    printf("worked\n");
}

START_TEST(memory_that_others_take_meanwhile_ends_the_job)
{
    char said[4096];
    int status = run_itself("starve", "", said, sizeof said);
    demand(WIFEXITED(status) && WEXITSTATUS(status) == AS_WANTED, "it ended with status %d: %s", status, said);
}
END_TEST

/* Only what stands in for a GPU fails when it is told to. */
START_TEST(a_gpu_that_fails_ends_the_job_by_the_name_of_the_op)
{
    static const char *const fails[] = {"launch:1", "launch:7", "launch:20", "blas:3"};
    start_on(TRAMA_GPU, 0);
    bool standin = on_standin(ctx);
    stop();
    for (size_t i = 0; standin && i < sizeof fails / sizeof *fails; i++) {
        char said[4096];
        int status = run_itself("work", fails[i], said, sizeof said);
        demand(WIFSIGNALED(status) && !strstr(said, "worked"), "%s: status %d: %s", fails[i], status, said);
        demand(strstr(said, fails[i][0] == 'b' ? "trama: error: op matmul: cuBLASLt" : "trama: error: op "), "%s: %s",
               fails[i], said);
        demand(fails[i][0] == 'b' || (strstr(said, "it takes 0.0 MB") && strstr(said, "MB are free")), "%s: %s",
               fails[i], said);
    }
}
END_TEST

/* StarPU copes with it, and the error that CUDA keeps is none of the next kernel. */
START_TEST(an_allocation_that_fails_once_is_no_failure)
{
    for (int call = 3; call < 8; call++) {
        char said[4096], fails[16];
        snprintf(fails, sizeof fails, "malloc:%d", call);
        int status = run_itself("work", fails, said, sizeof said);
        demand(status == 0 && strstr(said, "worked"), "%s: status %d: %s", fails, status, said);
    }
}
END_TEST

/* ---- Cores and a GPU together ---- */

START_TEST(replicas_on_cores_and_gpu_stay_equal_to_the_bit)
{
    enum { IN = 24, OUT = 8, BATCH = 10 };
    float x[BATCH * IN], w[2][IN * OUT];
    for (int i = 0; i < BATCH * IN; i++)
        x[i] = sinf((float)i);
    start_on(TRAMA_AUTO, 0);
    trama_mesh *mesh = mesh_of("dp=2");
    trama_program *p = trama_program_create();
    trama_value *in = trama_shard(trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(BATCH, IN)), mesh, "S(0)");
    trama_value *weight = trama_shard(
        trama_parameter(p, "w", TRAMA_F32, TRAMA_SHAPE(IN, OUT), &(trama_init){.low = -1, .high = 1, .seed = 3}), mesh,
        "R");
    trama_value *loss = trama_mean(trama_square(trama_gelu(trama_matmul(in, weight))));
    trama_optimizer adam = trama_adam(1e-2);
    trama_target *t = trama_target_create(p, "t", trama_minimize(loss, &adam), loss);
    trama_executable *e = compile(p);
    for (int step = 0; step < 5; step++) {
        must(trama_feed(e, in, x, TRAMA_SHAPE(BATCH, IN)));
        must(trama_run(e, t));
        for (int i = 0; i < 2; i++)
            must(trama_read_local(e, weight, i, w[i], sizeof w[i]));
        demand(!memcmp(w[0], w[1], sizeof w[0]), "after step %d the replicas are apart", step);
    }
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1) {
        (argv[1][0] == 's' ? starve : work_on)();
        return argv[1][0] == 's';
    }
    const TTest *tests[] = {
        an_op_of_ones_own_runs_where_it_has_a_kernel,      a_kernel_that_fails_on_a_gpu_is_named,
        chains_of_any_length_give_the_bits_of_their_calls, relu_behind_a_product_and_a_row_keeps_nan,
        what_cannot_fit_a_gpu_is_refused_by_name,          data_may_exceed_the_memory_of_a_gpu,
        memory_that_others_take_meanwhile_ends_the_job,    a_gpu_that_fails_ends_the_job_by_the_name_of_the_op,
        an_allocation_that_fails_once_is_no_failure,       replicas_on_cores_and_gpu_stay_equal_to_the_bit};
    if (!start_on(TRAMA_GPU, 0)) {
        printf("skipped: %s\n", trama_error());
        return 77;
    }
    stop();
    return run_tests(__FILE__, tests, (int)(sizeof tests / sizeof *tests));
}

#else

NO_TESTS("this Trama was built without CUDA")

#endif
