/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose operands are read in place, by strides into another tensor, give the bits that they give of a copy. */
#include "harness.h"
#include "trama_array.h"
#include "trama_attention.h"
#include "trama_composed.h"
#include "trama_network.h"

static trama_value *turned(trama_value *x)
{
    return trama_transpose(x, ((int[]){2, 0, 1, 3}));
}

static trama_value *reshaped(trama_value *x)
{
    return trama_reshape(x, TRAMA_SHAPE(4, 2, 20, 32));
}

static trama_value *sliced(trama_value *x)
{
    return trama_slice(trama_slice(x, 0, 2, 4), 3, 8, 20);
}

static trama_value *chained(trama_value *x)
{
    trama_value *parts = trama_transpose(trama_reshape(x, TRAMA_SHAPE(8, 5, 2, 2, 32)), ((int[]){3, 0, 2, 1, 4}));
    return trama_squeeze(trama_slice(parts, 0, 1, 1), 0);
}

static trama_value *repeated(trama_value *x)
{
    return trama_broadcast_to(trama_slice(x, 2, 1, 1), TRAMA_SHAPE(8, 5, 6, 32));
}

static trama_value *(*const forms[])(trama_value *x) = {turned, reshaped, sliced, chained, repeated};
enum { FORMS = sizeof forms / sizeof *forms, READERS = 12 };

/* Ops that are not done in one step with the op before; no two of them have a kernel in common. */
static void read_by_all(trama_program *p, trama_value *x, trama_value **y)
{
    const int32_t rows[] = {3, 0, -1};
    trama_value *index = trama_constant(p, TRAMA_I32, TRAMA_SHAPE(3), rows);
    int n = 0;
    y[n++] = trama_softmax(x, -1);
    y[n++] = trama_softmax(x, 1);
    y[n++] = trama_cumsum(x, 2);
    y[n++] = trama_sum_over(x, 2, ((int[]){0, 3}), false);
    y[n++] = trama_max_over(x, 1, ((int[]){2}), true);
    y[n++] = trama_sort(x, 0, true);
    y[n++] = trama_matmul(x, trama_transpose(x, ((int[]){0, 1, 3, 2})));
    y[n++] = trama_concat(1, 2, ((trama_value *[]){x, x}));
    y[n++] = trama_gather(x, index, 0);
    y[n++] = trama_attention(x, x, x);
    y[n++] = trama_layer_norm(x, 1, NULL, NULL, 1e-5);
    y[n++] = trama_flip(x, 1, ((int[]){3}));
    demand(n == READERS, "%d readers", n);
}

/* The bytes of all results; tasks. */
typedef struct outcome {
    char *at;
    size_t n;
    int64_t tasks;
    int in_place; /* shards */
} outcome;

/* of_state: the operands are parts of a state, of which each run makes the next; else of a result. */
static outcome outcome_of(const char *mesh_text, const trama_config *config, bool of_state)
{
    start_with(config);
    outcome o = {0};
    trama_program *p = trama_program_create();
    trama_mesh *mesh = trama_mesh_create(mesh_text);
    trama_value *x = trama_parameter(p, "x", TRAMA_F32, TRAMA_SHAPE(8, 5, 4, 32), &(trama_init){-1, 1, 3, 3});
    trama_value *y[FORMS * READERS + 1], *computed = trama_tanh(x);
    trama_shard(x, mesh, "S(0)");
    for (int f = 0; f < FORMS; f++)
        read_by_all(p, forms[f](of_state ? x : computed), y + f * READERS);
    y[FORMS * READERS] = of_state ? trama_assign(x, computed) : NULL;
    trama_target *t = trama_target_at(TRAMA_HERE, p, "t", FORMS * READERS + of_state, y);
    trama_executable *e = NULL;
    must(trama_compile(ctx, p, &e));
    for (int run = 0; run < 4; run++)
        must(trama_run(e, t));
    for (int i = 0; i < FORMS * READERS; i++) {
        const trama_shape shape = trama_value_shape(y[i]);
        const size_t bytes = (size_t)trama_shape_count(shape) * sizeof(float);
        o.at = realloc(o.at, o.n + bytes);
        must(trama_read(e, y[i], o.at + o.n, bytes));
        o.n += bytes;
    }
    trama_traffic traffic = {.size = sizeof traffic};
    must(trama_target_traffic(e, t, &traffic));
    o.tasks = traffic.tasks;
    char *plan = NULL;
    must(trama_plan_text(e, t, false, &plan));
    const char *shards = strstr(plan, " shards, ");
    demand(shards && sscanf(shards, " shards, %d of them read in place", &o.in_place) == 1, "%s", plan);
    trama_text_free(&plan);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    stop();
    return o;
}

START_TEST(operands_in_place_give_the_bits_of_copies)
{
    static const char *const meshes[] = {"1", "2"};
    for (int i = 0; i < 8; i++) {
        const char *mesh = meshes[i / 2 % 2];
        trama_config config = {.max_tiles = 1 + i % 2, .grain_flops = 1, .grain_bytes = 1, .no_fusion = true};
        outcome copies = outcome_of(mesh, &config, i / 4);
        config.no_fusion = false;
        outcome in_place = outcome_of(mesh, &config, i / 4);
        demand(in_place.n == copies.n && !memcmp(in_place.at, copies.at, copies.n), "mesh %s, %d tiles: other bits",
               mesh, config.max_tiles);
        demand(in_place.tasks < copies.tasks, "%d tiles: %" PRId64 " tasks, with copies %" PRId64, config.max_tiles,
               in_place.tasks, copies.tasks);
        demand(!copies.in_place && (in_place.in_place >= FORMS || n_ranks > 1), "mesh %s, %d tiles: %d and %d in place",
               mesh, config.max_tiles, copies.in_place, in_place.in_place);
        free(copies.at);
        free(in_place.at);
    }
}
END_TEST

TESTS(operands_in_place_give_the_bits_of_copies)
