/* SPDX-License-Identifier: Apache-2.0 */
#include "calibrate_messages.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "must.h"

/* SMALL: bytes of a message. OWN: bytes over which a rank passes in a hop, and which no other hop reads. ENDS: ends of
 * messages in a hop there and back: one rank has as many where both send, and both ranks together where one sends. */
enum { HOPS = 20, SMALL = 8, OWN = 4 << 20, ENDS = 4 };

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

/* A mesh of the first ranks of all pairs, or of the second ones. */
static trama_mesh *half(const calibration *c, bool second)
{
    const int pairs = c->ranks / 2;
    int *ids = malloc((size_t)pairs * sizeof *ids);
    for (int i = 0; i < pairs; i++)
        ids[i] = trama_mesh_id(c->mesh, 2 * i + second);
    trama_mesh *mesh = trama_mesh_child(c->mesh, 1, &pairs, NULL, ids);
    free(ids);
    return mesh;
}

/* Of a rank's core. */
static double run_seconds(const calibration *c, const measured *m)
{
    return m->run / sharing(c->ranks, c->cores);
}

static trama_value *own_state(trama_program *p, const trama_mesh *mesh, int hop, int64_t bytes)
{
    char name[16];
    snprintf(name, sizeof name, "w%d", hop);
    return trama_shard(trama_state(p, name, TRAMA_F32, TRAMA_SHAPE(trama_mesh_size(mesh), bytes / 4), NULL), mesh,
                       "S(0)");
}

/* Seconds, beside the kernel of the first, in which a rank passes over `own` bytes that nothing else reads, and does
 * two tasks on `sent` bytes, each of which waits for the one before. moves: so many times the bytes move to the other
 * end before the first of these tasks, and back before the second. */
static core_cost time_hops(const calibration *c, trama_mesh *const end[2], int64_t own, int64_t sent, int moves)
{
    trama_program *p = trama_program_create();
    trama_value *v = trama_state(p, "v", TRAMA_F32, TRAMA_SHAPE(trama_mesh_size(end[0]), sent / 4), NULL);
    trama_shard(v, end[0], "S(0)");
    for (int i = 0; i < HOPS; i++) {
        if (own)
            v = apply_pass(v, own_state(p, end[0], i, own));
        for (int side = 1; side >= 0; side--)
            v = trama_flip(i < moves ? trama_reshard(v, end[side], "S(0)") : v, TRAMA_DIMS(1)); /* is never fused */
    }
    const double work = HOPS * (4e-5 + (double)sent / 1e9 + (double)own / 4e9);
    const measured m = time_program(c, p, trama_target_create(p, "hops", v), work);
    trama_program_destroy(&p);
    return (core_cost){run_seconds(c, &m) / HOPS - m.kernel, m.submit / HOPS};
}

/* Of the moves there and back. Ranks that meet once a run go at the speed of the slower one, as those that meet in each
 * hop. both_ways: both ranks of a pair send, as ranks do that compute the same program. */
static core_cost time_moves(const calibration *c, bool both_ways, int64_t own, int64_t sent)
{
    trama_mesh *end[2];
    for (int side = 0; side < 2; side++)
        end[side] = both_ways ? arrange(c, 1, &c->ranks, side) : half(c, side);
    const core_cost every = time_hops(c, end, own, sent, HOPS), one = time_hops(c, end, own, sent, 1);
    const double hops = (double)HOPS / (HOPS - 1);
    trama_mesh_destroy(&end[0]);
    trama_mesh_destroy(&end[1]);
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

/* One rank of a pair sends at a time. Where both do, they copy at the same time in one run and one after the other in
 * the next, and the wait for the other one costs a core nothing that has other work. */
static void say_copies(const calibration *c, int64_t sent, double small)
{
    const double copied = ENDS * (double)sent, seconds = time_moves(c, false, 0, sent).seconds - small;
    say_rate(c, "op message memory", copied / fmax(seconds, copied / 100e9), (double)sent, "B");
}

/* Messages behind passes over other data find theirs outside of the cache. */
static void measure_pairs(const calibration *c)
{
    const core_cost exchanges = time_moves(c, true, 0, SMALL);
    const double small = exchanges.seconds, message = fmax(small / 2 - 1e-6, 1e-6) / 2;
    const double evicted = fmax(0, time_moves(c, true, OWN, SMALL).seconds - small) / ENDS;
    const double one_way = time_moves(c, false, 0, SMALL).seconds;
    say(c, "message",
        (quantity[MOST_QUANTITIES]){{1e6 * message, "us"},
                                    {1e6 * fmax(0, exchanges.submit / ENDS - c->submit), "us"},
                                    {1 + evicted / message, ""}});
    for (int64_t sent = 1 << 12; sent <= 1 << 22; sent *= 32)
        say_copies(c, sent, one_way);
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
