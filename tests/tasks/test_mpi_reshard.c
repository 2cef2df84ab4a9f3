/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of layout over real ranks, a seeded sample: any mesh to any mesh, uneven, weighted, nested in any order,
 * masked, partial. Values are equal; MPI is given what was planned, and without sums of terms the least there is. */
#include "pieces.h"
#include "random_layouts.h"
#include "wire.h"

enum { PAIRS = 100 };

/* How the value that is resharded came into its layout. */
typedef enum { FED, RESHARDED, MULTIPLIED } origin;

typedef struct pair {
    origin origin;
    trama_mesh *from_mesh, *to_mesh;
    char from[200], to[200];
    trama_layout from_layout, to_layout;
    trama_shape shape;
    trama_dtype dtype;
    double *data;       /* [shape] what both values are */
    trama_value *x, *y; /* y is x in its new layout */
    trama_value *in[2]; /* fed; MULTIPLIED: both operands */
    double *fed[2];
    trama_target *t;
} pair;

static uint64_t chance = 20240611;

static int below(int n)
{
    return chance_below(&chance, n);
}

/* ---- Pairs ---- */

static trama_value *add_input(trama_program *p, int number, int operand, trama_dtype dtype, trama_shape shape)
{
    char name[32];
    snprintf(name, sizeof name, "x%d_%d", number, operand);
    return trama_input(p, name, dtype, shape);
}

/* c [m, n] = a [m, k] b [k, n], contracted along an axis: each process along it holds a term. */
static void multiplied_pair(pair *p, trama_program *program, int number)
{
    int64_t m = 1 + below(7), k = 1 + below(7), n = 1 + below(7);
    int naxes = trama_mesh_ndim(p->from_mesh), axis = below(naxes);
    char a[100] = "", b[100] = "";
    p->shape = TRAMA_SHAPE(m, n);
    p->from[0] = 0;
    for (int i = 0; i < naxes; i++) {
        const char *comma = i ? "," : "";
        sprintf(a + strlen(a), "%s%s", comma, i == axis ? "S(1)" : "R");
        sprintf(b + strlen(b), "%s%s", comma, i == axis ? "S(0)" : "R");
        sprintf(p->from + strlen(p->from), "%s%s", comma, i == axis ? "P(sum)" : "R");
    }
    must(trama_layout_parse(p->from_mesh, 2, p->from, &p->from_layout));
    p->in[0] = trama_shard(add_input(program, number, 0, p->dtype, TRAMA_SHAPE(m, k)), p->from_mesh, a);
    p->in[1] = trama_shard(add_input(program, number, 1, p->dtype, TRAMA_SHAPE(k, n)), p->from_mesh, b);
    p->fed[0] = random_numbers(&chance, m * k);
    p->fed[1] = random_numbers(&chance, k * n);
    p->data = calloc((size_t)(m * n), sizeof *p->data);
    for (int64_t i = 0; i < m * n; i++)
        for (int64_t j = 0; j < k; j++)
            p->data[i] += p->fed[0][i / n * k + j] * p->fed[1][j * n + i % n];
    p->x = trama_shard(trama_matmul(p->in[0], p->in[1]), p->from_mesh, p->from);
}

static void fed_pair(pair *p, trama_program *program, int number)
{
    p->shape = random_shape(&chance, number % 12 == 5);
    random_layout(&chance, p->from_mesh, p->shape.ndim, p->origin == RESHARDED, p->from, &p->from_layout);
    p->data = random_numbers(&chance, trama_shape_count(p->shape));
    p->fed[0] = p->data;
    p->in[0] = add_input(program, number, 0, p->dtype, p->shape);
    if (p->origin == FED)
        p->x = trama_shard(p->in[0], p->from_mesh, p->from);
    else
        p->x = trama_reshard(p->in[0], p->from_mesh, p->from);
}

static pair random_pair(trama_program *program, int number, int most, int pool)
{
    static const trama_dtype dtypes[] = {TRAMA_F64, TRAMA_F32, TRAMA_F64, TRAMA_I64, TRAMA_I32};
    char name[32];
    pair p = {.origin = (origin)(number % 5 < 3 ? FED : number % 5 - 2)};
    p.dtype = dtypes[p.origin == FED ? below(5) : below(2)];
    p.from_mesh = random_mesh(&chance, most, pool);
    char *same = trama_mesh_text(p.from_mesh);
    p.to_mesh = below(2) ? random_mesh(&chance, most, pool) : trama_mesh_create(same);
    free(same);
    if (p.origin == MULTIPLIED)
        multiplied_pair(&p, program, number);
    else
        fed_pair(&p, program, number);
    bool to_partial = !trama_dtype_is_float(p.dtype) ? false : !below(4);
    random_layout(&chance, p.to_mesh, p.shape.ndim, to_partial, p.to, &p.to_layout);
    p.y = trama_reshard(p.x, p.to_mesh, p.to);
    snprintf(name, sizeof name, "t%d", number);
    p.t = trama_target_create(program, name, p.y);
    demand(p.t, "pair %d, %s to %s: %s", number, p.from, p.to, trama_program_error(program));
    return p;
}

static void free_pair(pair *p)
{
    if (p->data != p->fed[0])
        free(p->fed[0]);
    free(p->fed[1]);
    free(p->data);
    trama_mesh_destroy(&p->from_mesh);
    trama_mesh_destroy(&p->to_mesh);
}

static bool has_partials(const trama_layout *l)
{
    for (int a = 0; a < l->naxes; a++)
        if (l->axis[a].kind == TRAMA_PARTIAL)
            return true;
    return false;
}

/* Of what is whole and becomes P(sum) the first process along the axis has the value, the others nothing. */
static bool has_content(const pair *p, int position)
{
    bool same = trama_mesh_equal(p->from_mesh, p->to_mesh);
    for (int a = 0; a < p->to_layout.naxes; a++)
        if (p->to_layout.axis[a].kind == TRAMA_PARTIAL && p->to_layout.axis[a].reduce == TRAMA_SUM &&
            !(same && p->from_layout.axis[a].kind == TRAMA_SPLIT) && coordinate_of(p->to_mesh, position, a))
            return false;
    return is_held(&p->to_layout, position);
}

/* Whether a process may need what another one has: where a split becomes a sum of terms, each makes its own piece its
 * term. */
static bool may_need(const pair *p, int position, int from)
{
    for (int a = 0; a < p->to_layout.naxes && trama_mesh_equal(p->from_mesh, p->to_mesh); a++) {
        const trama_placement *f = &p->from_layout.axis[a], *t = &p->to_layout.axis[a];
        if (f->kind == TRAMA_SPLIT && t->kind == TRAMA_PARTIAL && (t->reduce == TRAMA_SUM || t->reduce == TRAMA_AVG) &&
            coordinate_of(p->from_mesh, from, a) != coordinate_of(p->to_mesh, position, a))
            return false;
    }
    return true;
}

/* Bytes of its new box that a process needs and does not have in the old layout; every process has a rank of its own.
 */
static int64_t bytes_lacking(const pair *p, int position)
{
    piece seen[MOST_PROCESSES], b = piece_of_process(p->to_mesh, &p->to_layout, p->shape, position);
    int n = 0, ndim = p->shape.ndim;
    int64_t lacking = 0;
    for (int i = 0; i < trama_mesh_size(p->from_mesh) && has_content(p, position); i++) {
        piece a = piece_of_process(p->from_mesh, &p->from_layout, p->shape, i);
        bool new = may_need(p, position, i);
        for (int k = 0; k < n; k++)
            new = new && !piece_equal(&a, &seen[k], ndim);
        if (new)
            lacking += piece_common(&a, &b, ndim), seen[n++] = a;
        if (trama_mesh_id(p->from_mesh, i) == trama_mesh_id(p->to_mesh, position) && is_held(&p->from_layout, i))
            lacking -= piece_common(&a, &b, ndim);
    }
    return lacking * (int64_t)trama_dtype_size(p->dtype);
}

/* Pieces of all processes of this rank. */
static int rank_pieces(const trama_mesh *mesh, const trama_layout *layout, trama_shape shape, int processes,
                       piece *mine)
{
    int n = 0;
    for (int i = 0; i < trama_mesh_size(mesh); i++)
        if (trama_mesh_id(mesh, i) * n_ranks / processes == my_rank && is_held(layout, i))
            mine[n++] = piece_of_process(mesh, layout, shape, i);
    return n;
}

static bool pieces_have(const piece *pieces, int n, int ndim, const int64_t *element)
{
    for (int i = 0; i < n; i++) {
        int d = 0;
        while (d < ndim && element[d] >= pieces[i].lo[d] && element[d] < pieces[i].lo[d] + pieces[i].n[d])
            d++;
        if (d == ndim)
            return true;
    }
    return false;
}

/* Bytes that a rank of several processes needs and has in none of them, element by element; without partials. */
static int64_t bytes_rank_lacks(const pair *p, int processes)
{
    static piece has[MOST_PROCESSES], needs[MOST_PROCESSES];
    int n_has = rank_pieces(p->from_mesh, &p->from_layout, p->shape, processes, has);
    int n_needs = rank_pieces(p->to_mesh, &p->to_layout, p->shape, processes, needs), ndim = p->shape.ndim;
    int64_t lacking = 0, element[TRAMA_MAX_NDIM];
    for (int64_t i = 0; i < trama_shape_count(p->shape); i++) {
        int64_t rest = i;
        for (int d = ndim - 1; d >= 0; rest /= p->shape.dim[d], d--)
            element[d] = rest % p->shape.dim[d];
        lacking += pieces_have(needs, n_needs, ndim, element) && !pieces_have(has, n_has, ndim, element);
    }
    return lacking * (int64_t)trama_dtype_size(p->dtype);
}

/* ---- Running one ---- */

static void feed_pair(const pair *p, trama_executable *e)
{
    for (int i = 0; i < 2 && p->in[i]; i++) {
        trama_shape shape = trama_value_shape(p->in[i]);
        int64_t n = trama_shape_count(shape);
        void *data = malloc((size_t)n * trama_dtype_size(p->dtype) + 1);
        for (int64_t k = 0; k < n; k++)
            set_number(data, p->dtype, k, p->fed[i][k]);
        must(trama_feed(e, p->in[i], data, shape));
        free(data);
    }
}

static void demand_numbers(const pair *p, int number, trama_executable *e)
{
    int64_t n = trama_shape_count(p->shape);
    size_t bytes = (size_t)n * trama_dtype_size(p->dtype);
    void *read = malloc(bytes + 1);
    must(trama_read(e, p->y, read, bytes));
    for (int64_t i = 0; i < n; i++) {
        double is = number_at(read, p->dtype, i), off = fabs(is - p->data[i]);
        bool averaged = strstr(p->from, "avg") || strstr(p->to, "avg");
        double tolerance = !averaged ? 0 : p->dtype == TRAMA_F32 ? 1e-4 : 1e-11;
        demand(off <= tolerance, "pair %d, %s to %s: element %" PRId64 " is %.17g instead of %.17g", number, p->from,
               p->to, i, is, p->data[i]);
    }
    free(read);
}

static void demand_boxes(const pair *p, trama_executable *e, int processes)
{
    int mine[MOST_PROCESSES + 1], n = 0;
    int64_t count = trama_shape_count(p->shape);
    void *data = malloc((size_t)count * trama_dtype_size(p->dtype) + 1);
    for (int64_t i = 0; i < count; i++)
        set_number(data, p->dtype, i, p->data[i]);
    for (int i = 0; i < trama_mesh_size(p->to_mesh); i++) {
        int id = trama_mesh_id(p->to_mesh, i); /* more processes than ranks are dealt in order */
        if ((processes > n_ranks ? id * n_ranks / processes : id) == my_rank)
            mine[n++] = i;
    }
    mine[n] = -1;
    demand_local(e, p->y, p->to_mesh, &p->to_layout, p->shape, p->dtype, data, mine);
    free(data);
}

/* Checks this rank's traffic in MPI, and its own count, since `before`. */
static void demand_traffic(const pair *p, int number, const trama_traffic *planned, const wire_count *before,
                           const context_counters *counted)
{
    wire_count now = wire_now();
    context_counters own = context_count(ctx);
    int64_t in = now.bytes_received - before->bytes_received, out = now.bytes_sent - before->bytes_sent,
            sent = now.messages_sent - before->messages_sent,
            messages = sent + now.messages_received - before->messages_received;
    demand(in == planned->bytes_received - planned->collective_received &&
               out == planned->bytes_sent - planned->collective_sent && messages == planned->messages,
           "pair %d, %s to %s: %" PRId64 " B in, %" PRId64 " B out, %" PRId64 " messages; planned %" PRId64 ", %" PRId64
           ", %" PRId64,
           number, p->from, p->to, in, out, messages, planned->bytes_received, planned->bytes_sent, planned->messages);
    demand(own.bytes_received - counted->bytes_received == in && own.bytes_sent - counted->bytes_sent == out,
           "pair %d, %s to %s: the context counts other bytes than MPI", number, p->from, p->to);
    demand(now.envelopes_sent - before->envelopes_sent == sent,
           "pair %d: %" PRId64 " messages in %" PRId64 " envelopes", number, sent,
           now.envelopes_sent - before->envelopes_sent);
}

static void run_pair(const pair *p, int number, trama_executable *e, int processes)
{
    trama_traffic planned = {0};
    feed_pair(p, e);
    must(trama_target_traffic(e, p->t, &planned));
    must(trama_wait(e));
    wire_count before = wire_now();
    context_counters counted = context_count(ctx);
    must(trama_run(e, p->t));
    must(trama_wait(e));
    demand_traffic(p, number, &planned, &before, &counted);
    demand_numbers(p, number, e);
    if (!has_partials(&p->to_layout) && !strstr(p->from, "avg"))
        demand_boxes(p, e, processes);
    if (p->origin != FED)
        return;
    int64_t lacking = 0;
    if (processes > n_ranks) {
        lacking = has_partials(&p->to_layout) ? planned.bound : bytes_rank_lacks(p, processes);
        demand(planned.bound == lacking && planned.bound <= planned.bytes_received,
               "pair %d, %s to %s: bound %" PRId64 " B, the rank lacks %" PRId64 " B and receives %" PRId64 " B",
               number, p->from, p->to, planned.bound, lacking, planned.bytes_received);
        return;
    }
    for (int i = 0; i < trama_mesh_size(p->to_mesh); i++)
        if (trama_mesh_id(p->to_mesh, i) == my_rank)
            lacking += bytes_lacking(p, i);
    demand(planned.bytes_received == lacking && planned.bound == lacking,
           "pair %d, %s to %s: %" PRId64 " B in, bound %" PRId64 " B, lacking %" PRId64 " B", number, p->from, p->to,
           planned.bytes_received, planned.bound, lacking);
}

/* staging_bytes: bytes; 0: the default */
static void run_sample(int most, int pool, int64_t staging_bytes)
{
    static pair pairs[PAIRS];
    int processes = 0;
    const trama_config config = {.size = sizeof config,
                                 .map_by_order = true, /* so that it is known who holds what */
                                 .staging_bytes = staging_bytes,
                                 .loan_bytes = INT64_MAX}; /* so that MPI moves all elements */
    start_with(&config);
    demand(n_ranks > 1, "it takes several ranks");
    trama_program *program = trama_program_create();
    for (int i = 0; i < PAIRS; i++) {
        pairs[i] = random_pair(program, i, most ? most : n_ranks, pool ? pool : n_ranks);
        const trama_mesh *both[] = {pairs[i].from_mesh, pairs[i].to_mesh};
        for (int k = 0; k < trama_mesh_size(both[0]) || k < trama_mesh_size(both[1]); k++)
            for (int m = 0; m < 2; m++)
                if (k < trama_mesh_size(both[m]) && trama_mesh_id(both[m], k) >= processes)
                    processes = trama_mesh_id(both[m], k) + 1;
    }
    trama_executable *e = compile(program);
    for (int i = 0; i < PAIRS; i++)
        run_pair(&pairs[i], i, e, processes);
    for (int i = PAIRS - 1; i >= 0; i--) /* again, in another order and with plans that are there */
        run_pair(&pairs[i], i, e, processes);
    must(trama_executable_destroy(&e));
    trama_program_destroy(&program);
    for (int i = 0; i < PAIRS; i++)
        free_pair(&pairs[i]);
    stop();
}

static int samples(void)
{
    return (suite_is_long() ? 18 : 2) / (suite_is_sanitized() ? 2 : 1);
}

START_TEST(with_a_process_on_each_rank_values_are_equal_and_bytes_the_least)
{
    for (int i = 0; i < samples(); i++)
        run_sample(0, 0, 0);
}
END_TEST

START_TEST(with_many_processes_on_a_rank_values_are_equal_and_bytes_as_planned)
{
    for (int i = 0; i < samples(); i++)
        run_sample(8, 12, 0);
}
END_TEST

START_TEST(with_64_processes_values_are_equal_and_bytes_as_planned)
{
    for (int i = 0; i < samples(); i++)
        run_sample(MOST_PROCESSES, MOST_PROCESSES, 0);
}
END_TEST

/* Messages are cut, sent from where they lie, or go through the window in rounds. */
START_TEST(with_small_windows_values_are_equal_and_bytes_the_same)
{
    run_sample(0, 0, 60000);
    run_sample(8, 12, 20000);
}
END_TEST

TESTS(with_a_process_on_each_rank_values_are_equal_and_bytes_the_least,
      with_many_processes_on_a_rank_values_are_equal_and_bytes_as_planned,
      with_64_processes_values_are_equal_and_bytes_as_planned, with_small_windows_values_are_equal_and_bytes_the_same)
