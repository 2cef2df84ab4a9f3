/* SPDX-License-Identifier: Apache-2.0 */
/* The map of processes to places that shortens the distance of the largest traffic: constructions, improved by
 * exchanges. It knows traffic and distances, no programs and no kinds of places. */
#include <assert.h>
#include <string.h>

#include "map.h"
#include "map_traffic.h"

enum {
    MOST_GAINS = 1 << 25,  /* entries of the table of gains */
    MOST_STARTS = 16,      /* limit of constructions, each with another first process */
    START_WORK = 20 << 20, /* limit of operations of all constructions after the first */
    MOST_ROUNDS = 64       /* limit of rounds of exchanges */
};

/* A sparse symmetric matrix by rows. */
typedef struct entry {
    int column;
    int64_t value;
} entry;

typedef struct rows {
    int *first; /* [rows + 1] */
    entry *at;
} rows;

/* Gains use nearness, the maximum distance minus the distance: a placed process changes the gains only at places below
 * the maximum distance. */
typedef struct search {
    const machine *m;
    int n, places, least; /* processes; places; minimum of processes on a place. A place has at most least + 1 */
    int64_t far;          /* the largest distance */
    rows traffic;         /* [n] traffic with the other processes */
    rows near;            /* [places] places nearer than far, the place included, with their nearness */
    int64_t *gain;        /* [n, places] of a process at a place, with the others unmoved */
    int64_t *open;        /* [places] free room around a place, weighted by nearness */
    int64_t *attached;    /* [n] traffic with processes that are placed */
    int64_t *with;        /* [n] scratch: traffic with one process */
    int *at, *load;       /* [n] place or -1; [places] processes */
    int extra;            /* during construction: places that may still get least + 1 */
} search;

static int64_t *gain_of(const search *s, int process)
{
    return s->gain + (size_t)process * (size_t)s->places;
}

/* Traffic is summed in integers. The shift drops last bits of weights so that the sums fit. */
static int weight_shift(const process_traffic *traffic)
{
    double total = 0;
    int shift = 0;
    for (int i = 0; i < traffic->pairs.n; i++)
        total += (double)traffic->pairs.at[i].bytes;
    for (; total > 0x1p54; total /= 2)
        shift++;
    return shift;
}

static void read_traffic(search *s, const process_traffic *traffic)
{
    int shift = weight_shift(traffic), *first = trama_alloc(((size_t)s->n + 2) * sizeof *first);
    s->traffic.at = trama_alloc(2 * (size_t)traffic->pairs.n * sizeof *s->traffic.at);
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < traffic->pairs.n; i++) {
            const traffic_pair *p = &traffic->pairs.at[i];
            if (p->other >= s->n)
                continue;
            if (pass == 0) {
                first[p->one + 2]++;
                first[p->other + 2]++;
            } else {
                s->traffic.at[first[p->one + 1]++] = (entry){p->other, p->bytes >> shift};
                s->traffic.at[first[p->other + 1]++] = (entry){p->one, p->bytes >> shift};
            }
        }
        for (int i = 0; i < s->n && pass == 0; i++)
            first[i + 2] += first[i + 1];
    }
    s->traffic.first = first;
}

static void read_distances(search *s)
{
    ARRAY(entry) near = {0};
    for (int p = 0; p < s->places; p++)
        for (int q = 0; q < p; q++)
            s->far = max_i64(s->far, machine_distance(s->m, p, q));
    s->near.first = trama_alloc(((size_t)s->places + 1) * sizeof *s->near.first);
    for (int p = 0; p < s->places; p++) {
        for (int q = 0; q < s->places; q++) {
            int distance = machine_distance(s->m, p, q);
            if (distance < s->far)
                *ARRAY_PUSH(&near) = (entry){q, s->far - distance};
        }
        s->near.first[p + 1] = near.n;
    }
    s->near.at = near.at;
}

static search search_begin(const process_traffic *traffic, int n, const machine *m)
{
    search s = {.m = m, .n = n, .places = m->n_places, .least = n / m->n_places};
    read_traffic(&s, traffic);
    read_distances(&s);
    s.gain = trama_alloc((size_t)n * (size_t)s.places * sizeof *s.gain);
    s.open = trama_alloc((size_t)s.places * sizeof *s.open);
    s.attached = trama_alloc((size_t)n * sizeof *s.attached);
    s.with = trama_alloc((size_t)n * sizeof *s.with);
    s.at = trama_alloc((size_t)n * sizeof *s.at);
    s.load = trama_alloc((size_t)s.places * sizeof *s.load);
    return s;
}

static void search_end(search *s)
{
    void *owned[] = {s->traffic.first, s->traffic.at, s->near.first, s->near.at, s->gain,
                     s->open,          s->attached,   s->with,       s->at,      s->load};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
}

/* Removes all processes from their places. */
static void clear(search *s)
{
    memset(s->gain, 0, (size_t)s->n * (size_t)s->places * sizeof *s->gain);
    memset(s->attached, 0, (size_t)s->n * sizeof *s->attached);
    memset(s->load, 0, (size_t)s->places * sizeof *s->load);
    for (int i = 0; i < s->n; i++)
        s->at[i] = -1;
    s->extra = s->n % s->places;
    for (int p = 0; p < s->places; p++) {
        s->open[p] = 0;
        for (int k = s->near.first[p]; k < s->near.first[p + 1]; k++)
            s->open[p] += s->near.at[k].value * (s->least + (s->extra > 0));
    }
}

/* Updates the gains of the others for a process that comes to a place (sign 1) or leaves it (-1). */
static void spread(search *s, int process, int place, int sign)
{
    const rows *t = &s->traffic, *near = &s->near;
    for (int e = t->first[process]; e < t->first[process + 1]; e++) {
        int64_t *gain = gain_of(s, t->at[e].column), weight = sign * t->at[e].value;
        for (int k = near->first[place]; k < near->first[place + 1]; k++)
            gain[near->at[k].column] += weight * near->at[k].value;
    }
}

static void put(search *s, int process, int place)
{
    spread(s, process, place, 1);
    s->at[process] = place;
    s->load[place]++;
}

static void take(search *s, int process)
{
    spread(s, process, s->at[process], -1);
    s->load[s->at[process]]--;
    s->at[process] = -1;
}

static int64_t total_gain(const search *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->n; i++)
        sum += gain_of(s, i)[s->at[i]];
    return sum / 2; /* each pair was counted from both ends */
}

/* ---- Construction ---- */

/* The place with room and the highest gain of the process; at a tie that with the most free room around, then the
 * first. */
static int best_place(const search *s, int process)
{
    const int64_t *gain = gain_of(s, process);
    int best = -1;
    for (int p = 0; p < s->places; p++) {
        bool room = s->load[p] < s->least || (s->load[p] == s->least && s->extra > 0);
        if (room && (best < 0 || gain[p] > gain[best] || (gain[p] == gain[best] && s->open[p] > s->open[best])))
            best = p;
    }
    assert(best >= 0 && "room is made for every process");
    return best;
}

static void settle(search *s, int process)
{
    int place = best_place(s, process);
    s->extra -= s->load[place] == s->least;
    put(s, process, place);
    for (int k = s->near.first[place]; k < s->near.first[place + 1]; k++)
        s->open[s->near.at[k].column] -= s->near.at[k].value;
    for (int e = s->traffic.first[process]; e < s->traffic.first[process + 1]; e++)
        s->attached[s->traffic.at[e].column] += s->traffic.at[e].value;
}

static int64_t traffic_of(const search *s, int process)
{
    int64_t sum = 0;
    for (int e = s->traffic.first[process]; e < s->traffic.first[process + 1]; e++)
        sum += s->traffic.at[e].value;
    return sum;
}

/* Places all processes, next always the one with the most traffic to placed processes; at a tie that with the most
 * traffic, then the first. all [n]: the traffic of each process. */
static void construct(search *s, int first, const int64_t *all)
{
    clear(s);
    settle(s, first);
    for (int placed = 1; placed < s->n; placed++) {
        int next = -1;
        for (int i = 0; i < s->n; i++)
            if (s->at[i] < 0 && (next < 0 || s->attached[i] > s->attached[next] ||
                                 (s->attached[i] == s->attached[next] && all[i] > all[next])))
                next = i;
        settle(s, next);
    }
}

/* ---- Exchanges ---- */

typedef struct exchange_of {
    int64_t gain;
    int process, place; /* process -1: a move to a place */
} exchange_of;

/* Tries exchanges of a process with any other. Both gain at the other's place, minus their mutual traffic: its distance
 * stays, but the gains count it as if both were on one place. */
static void try_processes(const search *s, int i, exchange_of *best)
{
    const int64_t *mine = gain_of(s, i);
    int here = s->at[i];
    for (int j = 0; j < s->n; j++) {
        int there = s->at[j];
        if (there == here)
            continue;
        int64_t gain = mine[there] - mine[here] + gain_of(s, j)[here] - gain_of(s, j)[there];
        if (gain > best->gain && s->with[j])
            gain -= 2 * s->with[j] * machine_distance(s->m, here, there);
        if (gain > best->gain)
            *best = (exchange_of){gain, j, there};
    }
}

/* Tries moves that keep the loads even: from a place with least + 1 processes to one with least. */
static void try_places(const search *s, int i, exchange_of *best)
{
    const int64_t *mine = gain_of(s, i);
    int here = s->at[i];
    for (int p = 0; p < s->places && s->load[here] > s->least; p++)
        if (s->load[p] == s->least && mine[p] - mine[here] > best->gain)
            *best = (exchange_of){mine[p] - mine[here], -1, p};
}

/* Makes the best exchange of one process; false if none gains. */
static bool exchange_process(search *s, int i)
{
    exchange_of best = {0, -1, -1};
    const rows *t = &s->traffic;
    for (int e = t->first[i]; e < t->first[i + 1]; e++)
        s->with[t->at[e].column] += t->at[e].value;
    try_processes(s, i, &best);
    try_places(s, i, &best);
    for (int e = t->first[i]; e < t->first[i + 1]; e++)
        s->with[t->at[e].column] = 0;
    if (best.gain <= 0)
        return false;
    int here = s->at[i];
    take(s, i);
    if (best.process >= 0) {
        take(s, best.process);
        put(s, best.process, here);
    }
    put(s, i, best.place);
    return true;
}

static void improve(search *s)
{
    bool improved = true;
    for (int round = 0; improved && round < MOST_ROUNDS; round++) {
        improved = false;
        for (int i = 0; i < s->n; i++)
            improved |= exchange_process(s, i);
    }
}

/* ---- By traffic ---- */

/* The number of constructions: small problems get several. */
static int count_starts(const search *s)
{
    double near = (double)s->near.first[s->places] / s->places;
    double work = s->traffic.first[s->n] * near + (double)s->n * (s->n + 2.0 * s->places);
    int64_t starts = (int64_t)(START_WORK / (work + 1));
    return (int)max_i64(1, min_i64(starts, min_i64(s->n, MOST_STARTS)));
}

/* The process with the most traffic that no construction began with yet. */
static int next_first(const int64_t *all, bool *used, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++)
        if (!used[i] && (best < 0 || all[i] > all[best]))
            best = i;
    used[best] = true;
    return best;
}

/* Improves the current map by exchanges, and keeps it if it is the cheapest so far. */
static void finish(search *s, int64_t *most, process_map *map)
{
    improve(s);
    int64_t gain = total_gain(s);
    if (gain <= *most)
        return;
    *most = gain;
    memcpy(map->place, s->at, (size_t)s->n * sizeof *s->at);
}

static void search_places(search *s, process_map *map)
{
    bool *used = trama_alloc((size_t)s->n);
    int64_t *all = trama_alloc((size_t)s->n * sizeof *all), most;
    for (int i = 0; i < s->n; i++)
        all[i] = traffic_of(s, i);
    clear(s);
    for (int i = 0; i < s->n; i++)
        put(s, i, map->place[i]);
    most = total_gain(s);
    finish(s, &most, map);
    for (int k = count_starts(s); k > 0; k--) {
        construct(s, next_first(all, used, s->n), all);
        finish(s, &most, map);
    }
    free(used);
    free(all);
}

process_map *map_by_traffic(const process_traffic *traffic, int n, const machine *m)
{
    process_map *map = map_by_order(n, NULL, m);
    if (n < 2 || m->n_places < 2 || !traffic->pairs.n || (int64_t)n * m->n_places > MOST_GAINS)
        return map;
    search s = search_begin(traffic, n, m);
    search_places(&s, map);
    search_end(&s);
    return map;
}
