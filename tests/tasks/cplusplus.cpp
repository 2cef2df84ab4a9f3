// SPDX-License-Identifier: Apache-2.0
// The public headers from C++17: every macro that has a form of its own there, in a program that runs; one step of a
// linear model against plain loops.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <trama.h>

static void demand(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "%s; last message: %s\n", what, trama_error());
        std::exit(EXIT_FAILURE);
    }
}

static void must(trama_status status)
{
    demand(status == TRAMA_OK, trama_status_text(status));
}

static void shapes_are_as_in_c()
{
    const std::vector<double> numbers(7);
    trama_shape shape = TRAMA_SHAPE(TRAMA_ANY, 2, numbers.size());
    demand(shape.ndim == 3 && shape.dim[0] == TRAMA_ANY && shape.dim[1] == 2 && shape.dim[2] == 7, "a wrong shape");
    demand(trama_shape_equal(TRAMA_SHAPE(5), TRAMA_SHAPE(INT64_C(5))), "equal shapes that are not");
    demand(TRAMA_SCALAR.ndim == 0 && TRAMA_SHAPE().ndim == 0, "a scalar with dims");
}

static void lists_of_dims_are_as_in_c()
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(2, 3, 5));
    trama_shape kept = trama_value_shape(trama_sum_over(x, TRAMA_DIMS(0, -1), true));
    demand(trama_shape_equal(kept, TRAMA_SHAPE(1, 3, 1)), "sums over other dims");
    demand(trama_shape_equal(trama_value_shape(trama_max_over(x, TRAMA_DIMS(1), false)), TRAMA_SHAPE(2, 5)),
           "a maximum over another dim");
    demand(trama_program_status(p) == TRAMA_OK, trama_program_error(p));
    trama_program_destroy(&p);
}

static void halves_are_as_in_c()
{
    demand(trama_float_of_bf16(trama_bf16_of_float(1.00390625f)) == 1.0f, "bf16 does not go to even");
    demand(trama_float_of_f16(trama_f16_of_double(65520)) == HUGE_VALF, "f16 does not overflow");
}

static void errors_name_the_line()
{
    trama_program *p = trama_program_create();
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(2, 3));
    const int line = __LINE__ + 1;
    demand(!trama_matmul(x, x), "a product of shapes that do not fit");
    char place[64];
    std::snprintf(place, sizeof place, "cplusplus.cpp:%d", line);
    demand(std::strstr(trama_error(), place) != nullptr, "the message does not name this file and line");
    demand(!trama_target_create(p, "none", x, nullptr), "a target of nothing");
    trama_program_destroy(&p);
}

static void a_step_is_that_of_plain_loops()
{
    constexpr std::size_t n = 5, k = 3;
    std::vector<double> points(n * k), values(n), w(k, 0.5);
    for (std::size_t i = 0; i < n; i++) {
        values[i] = 1.0 / static_cast<double>(i + 1);
        for (std::size_t j = 0; j < k; j++)
            points[i * k + j] = static_cast<double>((3 * i + 5 * j) % 7) - 3;
    }

    trama_mesh *mesh = trama_mesh_create("dp=2");
    trama_program *p = trama_program_create();
    trama_init half{};
    half.low = half.high = 0.5;
    trama_value *x = trama_input(p, "x", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, k));
    trama_value *y = trama_input(p, "y", TRAMA_F64, TRAMA_SHAPE(TRAMA_ANY, 1));
    trama_value *weight = trama_parameter(p, "w", TRAMA_F64, TRAMA_SHAPE(k, 1), &half);
    trama_value *runs = trama_state(p, "runs", TRAMA_F64, TRAMA_SCALAR, NULL);
    trama_value *product = trama_shard_op(trama_matmul(x, weight), mesh, "S(0)", NULL, "S(0)");
    must(trama_shard_begin(p, mesh, "y", "dp,-"));
    trama_value *difference = trama_sub(product, y);
    must(trama_shard_end(p));
    must(trama_shard_begin(p, mesh, NULL));
    trama_value *loss = trama_mean(trama_square(difference));
    must(trama_shard_end(p));
    trama_optimizer sgd = trama_sgd(0.125);
    const double one = 1;
    trama_value *count = trama_assign(runs, trama_add(runs, trama_constant(p, TRAMA_F64, TRAMA_SCALAR, &one)));
    trama_target *train = trama_target_create(p, "train", trama_minimize(loss, &sgd), count, loss);

    trama_config config{};
    config.workers = 1;
    trama_context *context = nullptr;
    trama_executable *run = nullptr;
    must(trama_start(&config, &context));
    must(trama_compile(context, p, &run));
    must(trama_feed(run, x, points.data(), TRAMA_SHAPE(n, k)));
    must(trama_feed(run, y, values.data(), TRAMA_SHAPE(n, 1)));
    must(trama_run(run, train));
    double found_loss = 0, found_runs = 0, found[k] = {};
    must(trama_read(run, loss, &found_loss, sizeof found_loss));
    must(trama_read(run, runs, &found_runs, sizeof found_runs));
    must(trama_read(run, weight, found, sizeof found));

    double wanted_loss = 0;
    std::vector<double> gradient(k);
    for (std::size_t i = 0; i < n; i++) {
        double error = -values[i];
        for (std::size_t j = 0; j < k; j++)
            error += points[i * k + j] * w[j];
        wanted_loss += error * error / static_cast<double>(n);
        for (std::size_t j = 0; j < k; j++)
            gradient[j] += 2 * error * points[i * k + j] / static_cast<double>(n);
    }
    demand(std::fabs(found_loss - wanted_loss) < 1e-12, "a wrong loss"); // f64, sums of 5 terms
    demand(found_runs == 1, "a wrong count");
    for (std::size_t j = 0; j < k; j++)
        demand(std::fabs(found[j] - (w[j] - 0.125 * gradient[j])) < 1e-12, "a wrong weight");

    must(trama_executable_destroy(&run));
    must(trama_stop(&context));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
}

int main()
{
    shapes_are_as_in_c();
    lists_of_dims_are_as_in_c();
    halves_are_as_in_c();
    errors_name_the_line();
    a_step_is_that_of_plain_loops();
}
