/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate_messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"

enum { HOPS = 20 };

/* A mesh of ranks that exchange messages, in pairs. Where ranks share cores there is one rank on each core: the time in
 * which a rank waits for its core is none of its message. Trama binds ranks that follow each other to one core. */
static trama_mesh *pair_ranks(const calibration *c)
{
    const int at_once = c->cores < c->ranks ? c->cores : c->ranks, paired = at_once < 4 ? 2 : at_once / 2 * 2;
    int *ids = malloc((size_t)paired * sizeof *ids);
    for (int i = 0; i < paired; i++)
        ids[i] = (i * c->ranks + paired - 1) / paired;
    trama_mesh *pairs = trama_mesh_child(c->mesh, 1, &paired, NULL, ids);
    free(ids);
    return pairs;
}

/* A mesh of the same ranks. swapped: the second rank of each pair comes first. */
static trama_mesh *arrange(const calibration *c, int ndim, const int *shape, bool swapped)
{
    int *ids = malloc((size_t)c->ranks * sizeof *ids);
    for (int i = 0; i < c->ranks; i++)
        ids[i] = trama_mesh_id(c->mesh, i ^ swapped);
    trama_mesh *mesh = trama_mesh_child(c->mesh, ndim, shape, NULL, ids);
    free(ids);
    return mesh;
}

/* Of a rank's core. */
static double run_seconds(const calibration *c, const measured *m)
{
    return m->run / sharing(c->ranks, c->cores);
}

static trama_value *own_state(const calibration *c, trama_program *p, int hop, int64_t bytes)
{
    char name[16];
    snprintf(name, sizeof name, "w%d", hop);
    return trama_state(p, name, TRAMA_F32, TRAMA_SHAPE(c->ranks, bytes / 4), NULL);
}

/* Seconds, beside the kernel of the first, in which a rank passes over `own` bytes that nothing else reads, and does two
 * tasks on `sent` bytes, each of which waits for the one before. exchanges: so many times the ranks of a pair exchange
 * the bytes before either of these, as ranks do that compute the same program. */
static core_cost time_exchanges(const calibration *c, int64_t own, int64_t sent, int exchanges)
{
    trama_program *p = trama_program_create();
    trama_mesh *end[2];
    for (int side = 0; side < 2; side++)
        end[side] = arrange(c, 1, &c->ranks, side);
    trama_value *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(c->ranks, sent / 4), NULL);
    trama_shard(v, end[0], "S(0)");
    for (int i = 0; i < HOPS; i++) {
        if (own)
            v = apply_pass(v, trama_shard(own_state(c, p, i, own), end[0], "S(0)"));
        for (int side = 1; side >= 0; side--)
            v = trama_flip(i < exchanges ? trama_reshard(v, end[side], "S(0)") : v, TRAMA_DIMS(1)); /* is never fused */
    }
    const double work = HOPS * (4e-5 + (double)sent / 1e9 + (double)own / 4e9);
    const measured m = time_program(c, p, trama_target_create(p, "hops", v), work);
    trama_program_destroy(&p);
    trama_mesh_destroy(&end[0]);
    trama_mesh_destroy(&end[1]);
    return (core_cost){run_seconds(c, &m) / HOPS - m.kernel, m.submit / HOPS};
}

/* Of two exchanges. Ranks that meet once a run go at the speed of the slower one, as those that meet in each hop. */
static core_cost exchange_twice(const calibration *c, int64_t own, int64_t sent)
{
    const core_cost every = time_exchanges(c, own, sent, HOPS), one = time_exchanges(c, own, sent, 1);
    const double hops = (double)HOPS / (HOPS - 1);
    return (core_cost){(every.seconds - one.seconds) * hops, (every.submit - one.submit) * hops};
}

/* Seconds of a core in which a rank writes n elements, and adds to others those of its pair, of which it reads one half
 * in the memory of the other rank. */
static double time_sums(const calibration *c, int64_t n)
{
    const int pairs[] = {c->ranks / 2, 2};
    trama_program *p = trama_program_create();
    trama_mesh *mesh = arrange(c, 2, pairs, false);
    trama_value *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(pairs[0], 2, n), NULL);
    trama_shard(v, mesh, "S(0),S(1)");
    for (int i = 0; i < HOPS; i++)
        v = trama_shard(trama_add(v, apply_term(v)), mesh, "S(0),S(1)");
    const measured m = time_program(c, p, trama_target_create(p, "sums", v), HOPS * (2e-5 + 1e-9 * (double)n));
    trama_program_destroy(&p);
    trama_mesh_destroy(&mesh);
    return run_seconds(c, &m) / HOPS;
}

/* exchange: seconds of a message of both ranks. */
static void measure_lent(const calibration *c, double exchange)
{
    for (int64_t n = 1 << 16; n <= 1 << 20; n *= 16) {
        const double bytes = sizeof(float) * (double)n;
        const sample terms = sample_of(c, record_terms, n, 3 * bytes, bytes, 4e9),
                     sums = sample_of(c, record_add, n, 4 * bytes, bytes, 4e9);
        const double lent = time_sums(c, n) - terms.seconds - sums.seconds - 2 * c->task - exchange;
        say_rate(c, "op lent memory", slower_rate(c, sums.work, lent), sums.work, "B");
    }
}

/* seconds: of the copies of two exchanges. */
static void say_copies(const calibration *c, int64_t sent, double seconds)
{
    const double copied = 4 * (double)sent;
    say_rate(c, "op message memory", copied / fmax(seconds, copied / 100e9), (double)sent, "B");
}

/* A rank serves both ends of an exchange, and copies the bytes of both: the ends of a message copy it in turn, while
 * the memory is faster. Messages behind passes over other data find theirs outside of the cache. */
static void measure_pairs(const calibration *c)
{
    enum { SMALL = 8, OWN = 4 << 20, ENDS = 4 };
    const core_cost exchanges = exchange_twice(c, 0, SMALL);
    const double small = exchanges.seconds, message = fmax(small / 2 - 1e-6, 1e-6) / 2;
    const double evicted = fmax(0, exchange_twice(c, OWN, SMALL).seconds - small) / ENDS;
    say(c, "message",
        (quantity[MOST_QUANTITIES]){{1e6 * message, "us"},
                                    {1e6 * fmax(0, exchanges.submit / ENDS - c->submit), "us"},
                                    {1 + evicted / message, ""}});
    for (int64_t sent = 1 << 12; sent <= 1 << 22; sent *= 32)
        say_copies(c, sent, exchange_twice(c, 0, sent).seconds - small);
    measure_lent(c, small / 2);
    say(c, "local", (quantity[MOST_QUANTITIES]){{100, "GB/s"}, {1, "us"}});
}

void measure_messages(const calibration *c)
{
    if (c->ranks < 2)
        return;
    calibration paired = *c;
    paired.mesh = pair_ranks(c);
    paired.ranks = trama_mesh_size(paired.mesh);
    measure_pairs(&paired);
    trama_mesh_destroy(&paired.mesh);
}
