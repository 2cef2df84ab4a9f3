/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a described machine. Its text is read in cluster_text.c. */
#include "cluster.h"

#include <math.h>
#include <string.h>

void trama_cluster_destroy(trama_cluster **cluster)
{
    if (!cluster || !*cluster)
        return;
    for (int i = 0; i < (*cluster)->kinds.n; i++)
        ARRAY_FREE(&(*cluster)->kinds.at[i].rates);
    ARRAY_FREE(&(*cluster)->kinds);
    ARRAY_FREE(&(*cluster)->switches);
    ARRAY_FREE(&(*cluster)->nodes);
    free(*cluster);
    *cluster = NULL;
}

int trama_cluster_ranks(const trama_cluster *cluster)
{
    return cluster ? cluster->ranks : 0;
}

int cluster_node_of(const trama_cluster *c, int rank)
{
    int low = 0, high = c->nodes.n - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (c->nodes.at[middle].first_rank <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

bool cluster_has_messenger(const trama_cluster *c, int rank, int n_ranks)
{
    const cluster_kind *k = cluster_kind_of(c, rank);
    return n_ranks > 1 && k->cores / k->ranks >= OWN_CORE_FOR_MESSAGES;
}

/* Of `all` cores or GPUs those of rank i of its node. */
static int share_of(int all, int ranks, int i)
{
    return all / ranks + (i < all % ranks);
}

int cluster_cores_of(const trama_cluster *c, int rank)
{
    const cluster_kind *k = cluster_kind_of(c, rank);
    return share_of(k->cores, k->ranks, rank - c->nodes.at[cluster_node_of(c, rank)].first_rank);
}

machine *cluster_machine(const trama_cluster *c, int n_ranks)
{
    machine *m = trama_alloc(sizeof *m);
    ARRAY(machine_place) places = {0};
    m->n_ranks = n_ranks;
    for (int r = 0; r < n_ranks; r++) {
        const int node = cluster_node_of(c, r), i = r - c->nodes.at[node].first_rank;
        const cluster_kind *k = &c->kinds.at[c->nodes.at[node].kind];
        const int kind = 2 * c->nodes.at[node].kind, gpus = share_of(k->gpus, k->ranks, i);
        for (int g = 0; g < gpus; g++)
            *ARRAY_PUSH(&places) = (machine_place){r, kind + 1, true, 1, {node, 0, 0, r}};
        const int cores = cluster_cores_of(c, r) - cluster_has_messenger(c, r, n_ranks);
        if (!gpus)
            *ARRAY_PUSH(&places) = (machine_place){r, kind, false, cores > 1 ? cores : 1, {node, 0, 0, r}};
    }
    m->n_places = places.n;
    m->places = places.at;
    m->loan_bytes = LOAN_BYTES; /* between ranks of one node */
    return m;
}

static bool fits(const cluster_rate *r, rate_of of, const char *op, int what)
{
    return r->of == of && r->what == what && (of != RATE_OF_OP || (op && !strcmp(r->op, op)));
}

/* Between the entries below and above the work; 0 where there is none. */
static double interpolate(const cluster_kind *k, rate_of of, const char *op, int what, double work)
{
    const cluster_rate *below = NULL, *above = NULL;
    for (int i = 0; i < k->rates.n; i++) {
        const cluster_rate *r = &k->rates.at[i];
        if (!fits(r, of, op, what))
            continue;
        if (r->work <= work && (!below || r->work > below->work))
            below = r;
        if (r->work > work && (!above || r->work < above->work))
            above = r;
    }
    if (!below || !above || below->work <= 0)
        return below ? below->rate : above ? above->rate : 0;
    const double part = log(work / below->work) / log(above->work / below->work);
    return below->rate + part * (above->rate - below->rate);
}

/* The op of which NAME_grad is the gradient; "" for other names. */
static void forward_name(const char *op, char *name)
{
    static const char own_gradient[] = "_grad";
    const size_t n = strlen(op), tail = sizeof own_gradient - 1;
    *name = 0;
    if (n > tail && n - tail < CLUSTER_NAME && !strcmp(op + n - tail, own_gradient)) {
        memcpy(name, op, n - tail);
        name[n - tail] = 0;
    }
}

bool cluster_has_rates(const cluster_kind *k, const char *op)
{
    char forward[CLUSTER_NAME];
    forward_name(op, forward);
    for (int i = 0; i < k->rates.n; i++)
        if (k->rates.at[i].of == RATE_OF_OP &&
            (!strcmp(k->rates.at[i].op, op) || (*forward && !strcmp(k->rates.at[i].op, forward))))
            return true;
    return false;
}

/* Some ops share the rates of another one: NAME_grad has those of NAME, and matvec has those of matmul. 0: the op
 * shares none. */
static double shared_rate(const cluster_kind *k, const char *op, int what, double work)
{
    char forward[CLUSTER_NAME];
    if (!strcmp(op, "matvec"))
        return interpolate(k, RATE_OF_OP, "matmul", what, work);
    forward_name(op, forward);
    return *forward ? interpolate(k, RATE_OF_OP, forward, what, work) : 0;
}

double cluster_rate_of(const cluster_kind *k, bool gpu, const char *op, int what, double work)
{
    enum { GUESS_FLOPS = 2000000000, GUESS_MEMORY = 2000000000 }; /* where the text does not say */
    double rate = gpu ? 0 : interpolate(k, RATE_OF_OP, op, what, work);
    if (rate <= 0 && !gpu && op)
        rate = shared_rate(k, op, what, work);
    if (rate <= 0)
        rate = interpolate(k, gpu ? RATE_OF_GPU : RATE_OF_CORE, NULL, what, work);
    if (rate <= 0 && what != RATE_MEMORY && what != TRAMA_F64)
        rate = interpolate(k, gpu ? RATE_OF_GPU : RATE_OF_CORE, NULL, TRAMA_F32, work);
    if (rate > 0)
        return rate;
    return what == RATE_MEMORY ? GUESS_MEMORY : GUESS_FLOPS;
}
